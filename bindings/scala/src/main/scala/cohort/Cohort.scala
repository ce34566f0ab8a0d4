// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortContext.cohort_wait_all
import cohort.abi.CohortLog._
import cohort.abi.CohortTypes._
import cohort.abi.CohortVersion._
import cohort.abi.Constants

/** Levels of the library's messages. */
object LogLevel extends Enumeration {
  type LogLevel = Value
  val Debug = Value(Constants.LogLevel.DEBUG, "debug")
  val Info = Value(Constants.LogLevel.INFO, "info")
  val Warning = Value(Constants.LogLevel.WARNING, "warning")
  val Error = Value(Constants.LogLevel.ERROR, "error")

  private[cohort] def of(code: Int): LogLevel = values.find(_.id == code).getOrElse(Error)
}

/** The library as a whole. */
object Cohort {

  /** The version of the loaded library. */
  def version: String = cohort_version()

  /** Whether the library has a feature, such as "cuda". */
  def hasFeature(name: String): Boolean = cohort_has_feature(Native.in(name, "name")) != 0

  /** The file of the loaded library. */
  def library: java.io.File = abi.Loader.file()

  /** The number of library objects that are alive in this process. */
  def liveHandles: Long = cohort_live_handles()

  /** Waits for all work queued so far on all devices. */
  def waitAll(): Unit = Native.check(cohort_wait_all())
}

/** Receives messages of the library for as long as it lives, on the threads whose calls cause them. */
final class LogReceiver private (address: Long, family: Family) extends Handle(address, cohort_log_free, family) {
  private def this(made: (Long, Family)) = this(made._1, made._2)

  def this(lowest: LogLevel.LogLevel)(receive: (LogLevel.LogLevel, String) => Unit) =
    this(LogReceiver.made(lowest, receive))
}

object LogReceiver {
  private def made(lowest: LogLevel.LogLevel, receive: (LogLevel.LogLevel, String) => Unit): (Long, Family) = {
    val callback = new Native.Callback(Native.needed(receive, "receive"))
    val family = new Family
    family.keep(callback)
    (Native.long(cohort_log_create(Native.needed(lowest, "lowest").id, LogCallback, null, callback.number, _)), family)
  }
}
