// SPDX-License-Identifier: Apache-2.0
package cohort

import com.sun.jna.Pointer

import cohort.abi.Callbacks.{NameFilterFn, StatisticFn}
import cohort.abi.CohortArrays.cohort_arrays_add
import cohort.abi.CohortMonitor._
import cohort.abi.CohortNdarray.cohort_ndarray_share
import cohort.abi.Structs

/** Reports a statistic of each array whose name matches from its start, every `interval` batches: `tic` before a
  * batch, `toc` after it. The default of `statFunc` is the norm divided by the root of the size. With `stopIfNotFinite` a
  * pass fails at the first output or gradient with an infinity or a NaN, whatever the pattern says; the error names it.
  */
final class Monitor private (address: Long, family: Family) extends Handle(address, cohort_monitor_free, family) {
  private def this(made: (Long, Family)) = this(made._1, made._2)

  def this(
      interval: Int,
      statFunc: NDArray => NDArray = null,
      pattern: String = ".*",
      sort: Boolean = false,
      monitorAll: Boolean = false,
      stopIfNotFinite: Boolean = false) =
    this(Monitor.made(interval, statFunc, pattern, sort, monitorAll, stopIfNotFinite))

  def install(executor: Executor): Unit = installOn(executor, cohort_monitor_install_on_executor)
  def install(group: GroupBase): Unit = installOn(group, cohort_monitor_install_on_group)
  def install(manager: DataParallelExecutorManager): Unit = installOn(manager, cohort_monitor_install_on_manager)

  private def installOn(target: Handle, call: (Long, Long) => Long): Unit =
    Native.needed(target, "target").use { watched =>
      run(call(_, watched))
      target.family.keep(family) // kept alive for the target, which calls its functions
    }

  /** Begins a batch. */
  def tic(): Unit = run(cohort_monitor_tic)

  /** Ends a batch; returns its number, and name and text of each statistic. */
  def toc(): IndexedSeq[(Int, String, String)] = use { handle =>
    Native.list(cohort_monitor_toc(handle, _)) { i =>
      val step, name, text = new Array[Long](1)
      Native.check(cohort_monitor_entry(handle, i, step, name, text))
      (Native.toInt(step(0), "step"), Native.textAt(name(0)), Native.textAt(text(0)))
    }
  }

  /** The number of batches begun. */
  def step: Int = Native.toInt(use(handle => Native.long(cohort_monitor_step(handle, _))), "step")
}

object Monitor {
  private def made(
      interval: Int,
      statFunc: NDArray => NDArray,
      pattern: String,
      sort: Boolean,
      monitorAll: Boolean,
      stopIfNotFinite: Boolean): (Long, Family) = {
    val family = new Family
    val options = Fields.sized(new Structs.MonitorOptions)(cohort_monitor_options_init)
    options.sort = Native.bool(sort)
    options.monitor_all = Native.bool(monitorAll)
    options.stop_if_not_finite = Native.bool(stopIfNotFinite)
    if (Native.needed(pattern, "pattern") != ".*") {
      val compiled =
        try java.util.regex.Pattern.compile(pattern)
        catch {
          case error: java.util.regex.PatternSyntaxException =>
            Native.refuse(s"pattern: expected a regular expression, found $pattern (${error.getDescription})",
              "pattern")
        }
      val chooses = new Native.Callback((name: String) => compiled.matcher(name).lookingAt)
      options.filter = Filter
      options.filter_user_data = chooses.number
      family.keep(chooses)
    }
    if (statFunc != null) {
      val computes = new Native.Callback(statFunc)
      options.statistic = Statistic
      options.statistic_user_data = computes.number
      family.keep(computes)
    }
    (Native.long(cohort_monitor_create(interval, options, _)), family)
  }

  private object Filter extends NameFilterFn {
    override def invoke(name: Pointer, user_data: Long): Int = {
      var matches = false
      Native.call[String => Boolean](user_data)(chooses => matches = chooses(Native.textOf(name)))
      Native.bool(matches)
    }
  }

  private object Statistic extends StatisticFn {
    override def invoke(array: Long, values: Long, user_data: Long): Int =
      Native.call[NDArray => NDArray](user_data) { computes =>
        val lent = new NDArray(Native.long(cohort_ndarray_share(array, _)))
        Handle.optional(computes(lent))(value => Native.check(cohort_arrays_add(values, null, value)))
      }
  }
}
