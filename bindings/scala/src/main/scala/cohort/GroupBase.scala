// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortGroup._
import cohort.abi.Constants

/** How parameters are updated from the gradients of several devices. */
object UpdateMode extends Enumeration {
  type UpdateMode = Value

  /** Once, from their sum, and copied to all devices. */
  val OnStore = Value(Constants.UpdateMode.ON_STORE, "OnStore")

  /** On each device, from their sum. */
  val PerDevice = Value(Constants.UpdateMode.PER_DEVICE, "PerDevice")

  /** On each device, from its own gradients. */
  val NoStore = Value(Constants.UpdateMode.NO_STORE, "NoStore")
}

/** How shares of a batch are rounded to whole samples. */
object Rounding extends Enumeration {
  type Rounding = Value
  val HalfUp = Value(Constants.Rounding.HALF_UP, "half_up")
  val HalfEven = Value(Constants.Rounding.HALF_EVEN, "half_even")

  /** Works whenever there is a sample for each device. */
  val Balanced = Value(Constants.Rounding.BALANCED, "balanced")
}

/** Base of all groups: lists of arrays on devices, passes, parameters, metrics and updates. */
abstract class GroupBase private[cohort] (address: Long, family: Family)
  extends Handle(address, cohort_group_free, family) {
  private val monitored = new Monitored(family)

  def contexts: IndexedSeq[Context] = use { handle =>
    Native.list(cohort_group_num_contexts(handle, _))(i => Native.context(cohort_group_context(handle, i, _)))
  }

  // ---- lists of arrays

  private[cohort] def names(list: Int): Vector[String] = use { handle =>
    Native.list(cohort_group_num_arrays(handle, list, _))(i => Native.text(cohort_group_name(handle, list, i, _)))
  }

  private def numDevices: Int = use(handle => Native.size(cohort_group_num_contexts(handle, _)))

  /** The devices' arrays, for each entry. */
  private[cohort] def onDevices(list: Int): Vector[Vector[Option[NDArray]]] = {
    val devices =
      Vector.tabulate(numDevices)(i => Arrays.take(use(h => Native.long(cohort_group_arrays(h, list, i, _)))).map(_._2))
    devices.head.indices.map(entry => devices.map(_(entry))).toVector
  }

  private[cohort] def present(list: Int): Vector[Vector[NDArray]] = onDevices(list).map(_.map(_.orNull))

  private[cohort] def merged(list: Int): Vector[NDArray] = use { handle =>
    Native.list(cohort_group_num_arrays(handle, list, _)) { i =>
      new NDArray(Native.created(cohort_group_merged(handle, list, i, _)))
    }
  }

  private[cohort] def descs(list: Int): Vector[DataDesc] =
    Descs.take(use(handle => Native.long(cohort_group_descs(handle, list, _)))).map(_.desc)

  private[cohort] def axes(list: Int): Vector[Int] = use { handle =>
    Native.list(cohort_group_num_arrays(handle, list, _))(i => Native.int(cohort_group_axis(handle, list, i, _)))
  }

  private[cohort] def withSlices(list: Int): Vector[Array[((Int, Int), NDArray)]] = {
    val rows = slices
    present(list).map(entry => entry.indices.map(i => (rows.lift(i).getOrElse((i, i + 1)), entry(i))).toArray)
  }

  /** The rows of each device, from and until; none if nothing has a batch axis. */
  def slices: IndexedSeq[(Int, Int)] =
    if (getBatchSize == 0) Vector.empty
    else
      use { handle =>
        Vector.tabulate(Native.size(cohort_group_num_contexts(handle, _))) { i =>
          val begin, end = new Array[Long](1)
          Native.check(cohort_group_slice(handle, i, begin, end))
          (Native.toInt(begin(0), "slice"), Native.toInt(end(0), "slice"))
        }
      }

  /** 0 if nothing has a batch axis. */
  def getBatchSize: Int = Native.toInt(use(handle => Native.long(cohort_group_batch_size(handle, _))), "batch size")

  def batchSize: Int = getBatchSize

  /** The present executor of each device. */
  def execs: IndexedSeq[Executor] = use { handle =>
    Native.list(cohort_group_num_contexts(handle, _))(i =>
      new Executor(Native.long(cohort_group_executor(handle, i, _)), family))
  }

  /** The pool of input arrays of each device. */
  def sharedDataArrays: IndexedSeq[Map[String, NDArray]] =
    Vector.tabulate(numDevices)(i => Arrays.named(use(handle => Native.long(cohort_group_shared_data(handle, i, _)))))

  // ---- passes

  private[cohort] def loadBatch(batch: DataBatch): Unit =
    GroupBase.arraysOf(batch) { (data, label) =>
      run(cohort_group_load(_, data, data.length, label, label.length))
    }

  private[cohort] def runPass(isTrain: Option[Boolean]): Unit = run(cohort_group_run(_, Native.isTrain(isTrain)))

  private[cohort] def backwardPass(outGrads: Seq[NDArray]): Unit =
    Handle.addresses(outGrads, "outGrads", nulls = true)(grads => run(cohort_group_backward(_, grads, grads.length)))

  /** Updates every parameter that has a gradient. */
  def update(optimizer: Optimizer, mode: UpdateMode.UpdateMode = UpdateMode.OnStore): Unit = {
    val code = Native.needed(mode, "mode").id
    Native.needed(optimizer, "optimizer")
    use(handle => optimizer.use(rule => Native.check(cohort_group_update(handle, rule, code))))
  }

  /** Updates a metric once per device with its labels and outputs. */
  def updateMetric(evalMetric: EvalMetric, labels: IndexedSeq[NDArray]): Unit = {
    Native.needed(evalMetric, "evalMetric")
    Handle.addresses(labels, "labels") { list =>
      use(handle => evalMetric.use(metric => Native.check(cohort_group_update_metric(handle, metric, list,
        list.length))))
    }
  }

  /** Like `updateMetric`, with labels that are sliced already: those of each device. */
  def updateMetricPreSliced(evalMetric: EvalMetric, labels: IndexedSeq[IndexedSeq[NDArray]]): Unit = {
    Native.needed(evalMetric, "evalMetric")
    GroupBase.flat(labels, "labels") { (list, num, each) =>
      use(handle => evalMetric.use(metric => Native.check(cohort_group_update_metric_presliced(handle, metric, num,
        list, each))))
    }
  }

  /** Waits for all queued work. */
  def waitToFinish(): Unit = run(cohort_group_wait)

  // ---- parameters

  /** Copies parameters to every device by name; others keep their values. */
  def setParams(argParams: Map[String, NDArray], auxParams: Map[String, NDArray], allowExtra: Boolean = false): Unit =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams")(aux => run(cohort_group_set_params(_, args, aux, Native.bool(allowExtra))))
    }

  /** Like `setParams` for all parameters: missing ones are an error, or their names are returned. */
  def assignParams(
      argParams: Map[String, NDArray],
      auxParams: Map[String, NDArray],
      allowMissing: Boolean = false,
      allowExtra: Boolean = false): IndexedSeq[String] =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams") { aux =>
        val missing = use { handle =>
          Native.long(cohort_group_assign_params(handle, args, aux, Native.bool(allowMissing), Native.bool(allowExtra),
            _))
        }
        Descs.take(missing).map(_.name)
      }
    }

  /** Writes the means over the devices into given arrays, one for each. */
  def getParams(argParams: Map[String, NDArray], auxParams: Map[String, NDArray]): Unit =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams")(aux => run(cohort_group_get_params(_, args, aux)))
    }

  /** The means over the devices as new arrays: parameters and auxiliary states. */
  def copyParams(): (Map[String, NDArray], Map[String, NDArray]) = {
    val args, aux = new Array[Long](1)
    Garbage.withRoom(run(cohort_group_copy_params(_, args, aux)))
    (Arrays.named(args(0)), Arrays.named(aux(0)))
  }

  /** Fills all parameters with an initializer, equally on every device. */
  def initParams(initializer: Initializer): Unit = Scope {
    val (args, aux) = copyParams()
    val symbol = execs(0).symbol
    for (arrays <- Seq(args, aux)) Native.needed(initializer, "initializer").fill(arrays, symbol)
    setParams(args, aux)
  }

  /** The present loss scale. */
  def lossScale: LossScale = LossScales.of((scale, good, skipped) => run(cohort_group_loss_scale(_, scale, good, skipped)))

  /** Sets the loss scale. */
  def setLossScale(scale: Double, numGood: Int = 0): Unit = run(cohort_group_set_loss_scale(_, scale, numGood))

  /** Called once after `Optimizer.loadStates` and `setParams`: random operators and the loss scale go on from where they
    * were when the states were saved, with `keepDeviceAux` the moving statistics of each device, too. Training then gives
    * the same bits as if it had not been interrupted.
    */
  def resume(optimizer: Optimizer): Unit = {
    Native.needed(optimizer, "optimizer")
    use(handle => optimizer.use(rule => Native.check(cohort_group_resume(handle, rule))))
  }

  /** The state of the random operators: which numbers they draw next. */
  def getRandomState: Array[Byte] = use(handle => Native.bytes(cohort_group_random_state(handle, _, _, _)))

  /** Sets the result of `getRandomState`: they draw the same numbers again. */
  def setRandomState(state: Array[Byte]): Unit =
    run(cohort_group_set_random_state(_, java.nio.ByteBuffer.wrap(Native.needed(state, "state")), state.length))

  // ---- what it is

  /** Calls a function with each output of each operator on every device; null removes it. */
  def setMonitorCallback(callback: (String, NDArray) => Unit, monitorAll: Boolean = false): Unit =
    monitored.set(callback) { (function, number) =>
      run(cohort_group_set_monitor(_, function, number, Native.bool(monitorAll)))
    }

  /** Lets a monitor watch all devices. */
  def installMonitor(monitor: Monitor): Unit = Native.needed(monitor, "monitor").install(this)

  def memory(device: Int): MemoryInfo = use(handle => MemoryInfo.of(cohort_group_memory(handle, device, _)))
}

private[cohort] object GroupBase {

  /** Data and labels of a batch; null labels mean none. */
  def arraysOf[A](batch: DataBatch)(body: (Array[Long], Array[Long]) => A): A = {
    Native.needed(batch, "dataBatch")
    Handle.addresses(batch.data, "data") { data =>
      Handle.addresses(if (batch.label == null) Nil else batch.label, "label")(label => body(data, label))
    }
  }

  /** The lists of all devices in one, with the number of devices and of arrays per device. */
  def flat[A](lists: IndexedSeq[IndexedSeq[NDArray]], what: String)(body: (Array[Long], Long, Long) => A): A = {
    val num = Native.needed(lists, what).headOption.fold(0)(list => Native.needed(list, what).length)
    if (lists.exists(list => list == null || list.length != num)) Native.refuse(s"$what: expected $num for each", what)
    Handle.addresses(lists.flatten, what)(list => body(list, lists.length, num))
  }

  /** Passes both on: the library refuses both together, and neither. */
  def states(states: IndexedSeq[IndexedSeq[NDArray]], value: Option[Double])(
      call: (Array[Long], Long, Long, Array[Double]) => Unit): Unit = {
    val number = Native.needed(value, "value").map(Array(_)).orNull
    if (states == null) call(null, 0, 0, number)
    else flat(states, "states")((list, num, each) => call(list, num, each, number))
  }
}
