// SPDX-License-Identifier: Apache-2.0
package cohort

import java.util.concurrent.ConcurrentHashMap

import com.sun.jna.Pointer

import cohort.abi.Callbacks.BucketSymbolFn
import cohort.abi.CohortManager._
import cohort.abi.CohortSymbol.cohort_symbol_copy
import cohort.abi.Constants.GroupList
import cohort.abi.Structs

/** A group of a manager: batches are split along their first axis. */
final class ManagerGroup private[cohort] (address: Long, family: Family) extends GroupBase(address, family) {
  def paramNames: IndexedSeq[String] = names(GroupList.PARAMS)
  def auxNames: IndexedSeq[String] = names(GroupList.AUX)

  /** The devices' arrays of each output. */
  def outputs: IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.OUTPUTS)
  def dataArrays: IndexedSeq[Array[((Int, Int), NDArray)]] = withSlices(GroupList.DATA)
  def labelArrays: IndexedSeq[Array[((Int, Int), NDArray)]] = withSlices(GroupList.LABELS)
  def paramArrays: IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.PARAMS)
  def gradArrays: IndexedSeq[IndexedSeq[Option[NDArray]]] = onDevices(GroupList.GRADS)
  def auxArrays: IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.AUX)
  def loadDataBatch(dataBatch: DataBatch): Unit = loadBatch(dataBatch)
  def forward(isTrain: Boolean = false): Unit = runPass(Some(isTrain))
  def backward(): Unit = backwardPass(Nil)
}

/** Trains on several devices, with a group for each bucket and one set of parameters: `symGen` makes the network for
  * a bucket's key. Created by its [[DataParallelExecutorManager.Builder]].
  */
final class DataParallelExecutorManager private[cohort] (
    address: Long,
    family: Family,
    keys: DataParallelExecutorManager.Keys,
    hasBuckets: Boolean)
    extends Handle(address, cohort_manager_free, family) {

  /** The main group, which owns the shared parameters. */
  def execgrp: ManagerGroup = group(cohort_manager_main_group)

  /** The group of the batch that was loaded last; None before the first one. */
  def currExecgrp: Option[ManagerGroup] =
    try Some(group(cohort_manager_current_group))
    catch { case _: StateException if !isClosed => None }

  private def group(call: (Long, Array[Long]) => Long): ManagerGroup =
    new ManagerGroup(use(handle => Native.long(call(handle, _))), family)

  /** The groups made so far, by the keys of their buckets. */
  def buckets: Map[AnyRef, ManagerGroup] = use { handle =>
    Native
      .list(cohort_manager_num_buckets(handle, _)) { i =>
        val key, group = new Array[Long](1)
        Native.check(cohort_manager_bucket(handle, i, key, group))
        (keys.of(Native.textAt(key(0))), new ManagerGroup(group(0), family))
      }
      .toMap
  }

  def slices: IndexedSeq[(Int, Int)] = use { handle =>
    Native.list(cohort_manager_num_contexts(handle, _)) { i =>
      val begin, end = new Array[Long](1)
      Native.check(cohort_manager_slice(handle, i, begin, end))
      (begin(0).toInt, end(0).toInt)
    }
  }

  /** The present loss scale. */
  def lossScale: LossScale = LossScales.of((scale, good, skipped) => run(cohort_manager_loss_scale(_, scale, good, skipped)))

  /** Sets the loss scale. */
  def setLossScale(scale: Double, numGood: Int = 0): Unit = run(cohort_manager_set_loss_scale(_, scale, numGood))

  /** As `DataParallelExecutorGroup.resume`, for all buckets, those too that are made later. */
  def resume(optimizer: Optimizer): Unit = {
    Native.needed(optimizer, "optimizer")
    use(handle => optimizer.use(rule => Native.check(cohort_manager_resume(handle, rule))))
  }

  // ---- passes

  /** Loads a batch; makes its bucket if it is new. */
  def loadDataBatch(dataBatch: DataBatch): Unit = GroupBase.arraysOf(dataBatch) { (data, label) =>
    val key = if (hasBuckets) keys.text(dataBatch.bucketKey) else null
    val shapes = if (hasBuckets) (dataBatch.provideData, dataBatch.provideLabel) else (null, null)
    Descs.of(DataParallelExecutorManager.firstAxis(shapes._1), "provideData") { dataDescs =>
      Descs.of(DataParallelExecutorManager.firstAxis(shapes._2), "provideLabel") { labelDescs =>
        run(cohort_manager_load_data_batch(_, data, data.length, if (label.isEmpty) null else label, label.length, key,
          dataDescs,
          labelDescs))
      }
    }
  }

  def forward(isTrain: Boolean = false): Unit = run(cohort_manager_forward(_, Native.bool(isTrain)))
  def backward(): Unit = run(cohort_manager_backward)

  def update(optimizer: Optimizer, mode: UpdateMode.UpdateMode = UpdateMode.OnStore): Unit = {
    val code = Native.needed(mode, "mode").id
    Native.needed(optimizer, "optimizer")
    use(handle => optimizer.use(rule => Native.check(cohort_manager_update(handle, rule, code))))
  }

  def updateMetric(metric: EvalMetric, labels: IndexedSeq[NDArray]): Unit = {
    Native.needed(metric, "metric")
    Handle.addresses(labels, "labels") { list =>
      use(handle => metric.use(one => Native.check(cohort_manager_update_metric(handle, one, list, list.length))))
    }
  }

  /** Like `updateMetric`, with labels that are sliced already: those of each device. */
  def updateMetricPreSliced(metric: EvalMetric, labels: IndexedSeq[IndexedSeq[NDArray]]): Unit = {
    Native.needed(metric, "metric")
    GroupBase.flat(labels, "labels") { (list, num, each) =>
      use(handle => metric.use(one => Native.check(cohort_manager_update_metric_presliced(handle, one, num, list,
        each))))
    }
  }

  /** The outputs of the current group, joined over the devices. */
  def getOutputsMerged(): IndexedSeq[NDArray] = use { handle =>
    val outputs = GroupList.OUTPUTS
    Native.list(cohort_manager_num_arrays(handle, outputs, _))(i =>
      new NDArray(Native.created(cohort_manager_merged(handle, outputs, i, _))))
  }

  /** Sets states of the current group: the devices' arrays for each state, or one number for all. */
  def setStates(states: IndexedSeq[IndexedSeq[NDArray]] = null, value: Option[Double] = None): Unit =
    GroupBase.states(states, value) { (list, num, each, number) =>
      run(cohort_manager_set_states(_, list, num, each, number))
    }

  /** Lets a monitor watch all devices. */
  def installMonitor(monitor: Monitor): Unit = Native.needed(monitor, "monitor").install(this)

  // ---- parameters

  def setParams(argParams: Map[String, NDArray], auxParams: Map[String, NDArray]): Unit =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams")(aux => run(cohort_manager_set_params(_, args, aux)))
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
          Native.long(cohort_manager_assign_params(handle, args, aux, Native.bool(allowMissing),
            Native.bool(allowExtra), _))
        }
        Descs.take(missing).map(_.name)
      }
    }

  /** Writes the means over the devices into given arrays. */
  def copyTo(argParams: Map[String, NDArray], auxParams: Map[String, NDArray]): Unit =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams")(aux => run(cohort_manager_copy_to(_, args, aux)))
    }

  /** Fills all parameters with an initializer. */
  def initParams(initializer: Initializer): Unit = {
    val group = execgrp
    try group.initParams(initializer)
    finally group.close()
  }

  def paramArrays: IndexedSeq[IndexedSeq[NDArray]] = execgrp.paramArrays
  def gradArrays: IndexedSeq[IndexedSeq[Option[NDArray]]] = execgrp.gradArrays
  def auxArrays: IndexedSeq[IndexedSeq[NDArray]] = execgrp.auxArrays

  /** The memory of all buckets together. */
  def memory: MemoryInfo = use(handle => MemoryInfo.of(cohort_manager_memory(handle, _)))
}

object DataParallelExecutorManager {

  /** Settings of a manager; a null `paramNames` means all arguments but data and labels. */
  final class Builder(symbol: Symbol, contexts: Array[Context], paramNames: IndexedSeq[String]) {
    Native.needed(symbol, "symbol")
    Native.needed(contexts, "contexts")

    private var batchSize = 0
    private var dataShapes: IndexedSeq[DataDesc] = null
    private var labelShapes: IndexedSeq[DataDesc] = null
    private var workLoadList: IndexedSeq[Float] = null
    private var defaultBucketKey: AnyRef = null
    private var symGen: AnyRef => Symbol = null
    private var stateNames = IndexedSeq.empty[String]
    private var numThreads = 0
    private var seed = 0L
    private var precision = Precision()
    private var logger: (LogLevel.LogLevel, String) => Unit = null

    private def set(change: => Unit): Builder = {
      change
      this
    }

    def setBatchSize(batchSize: Int): Builder = set { this.batchSize = batchSize }
    def setDataShapes(shapes: IndexedSeq[DataDesc]): Builder = set { dataShapes = Native.needed(shapes, "dataShapes") }
    def setLabelShapes(shapes: IndexedSeq[DataDesc]): Builder = set { labelShapes = shapes }

    /** Batch size, descriptors and default key of an iterator. */
    def setTrainData(iter: DataIter): Builder = set {
      setBatchSize(Native.needed(iter, "iter").batchSize).setDataShapes(iter.provideData)
        .setLabelShapes(iter.provideLabel)
      defaultBucketKey = iter.defaultBucketKey
    }
    def setWorkLoadList(workLoad: IndexedSeq[Float]): Builder = set { workLoadList = workLoad }

    /** A function from a bucket's key to its network; `symbol` is that of the default key. Keys are compared with
     * `==`.
      */
    def setSymGen(defaultBucketKey: AnyRef, symGen: AnyRef => Symbol): Builder = set {
      this.defaultBucketKey = Native.needed(defaultBucketKey, "defaultBucketKey")
      this.symGen = Native.needed(symGen, "symGen")
    }
    def setStateNames(stateNames: IndexedSeq[String]): Builder =
      set { this.stateNames = Native.needed(stateNames, "stateNames") }
    def setNumThreads(numThreads: Int): Builder = set { this.numThreads = numThreads }
    def setSeed(seed: Long): Builder = set { this.seed = seed }
    def setPrecision(precision: Precision): Builder = set { this.precision = Native.needed(precision, "precision") }
    def setLogger(logger: (LogLevel.LogLevel, String) => Unit): Builder = set { this.logger = logger }

    def build(): DataParallelExecutorManager = {
      if (dataShapes == null) Native.refuse("build: dataShapes are not set", "dataShapes")
      val (family, keys) = (new Family, new Keys)
      val options = Fields.sized(new Structs.ManagerOptions)(cohort_manager_options_init)
      if (workLoadList != null && workLoadList.nonEmpty) {
        options.workload = Native.doubles(workLoadList.map(_.toDouble).toArray)
        options.num_workloads = workLoadList.length
      }
      if (symGen != null) {
        val (made, function) = (symGen, keys)
        val callback = new Native.Callback((text: String) => made(function.of(text)))
        options.default_bucket_key = Fields.text(keys.text(defaultBucketKey), "defaultBucketKey")
        options.bucket_symbol = BucketSymbol
        options.bucket_symbol_user_data = callback.number
        family.keep(callback)
      }
      options.state_names = Native.texts(stateNames, "stateNames")
      options.num_state_names = stateNames.length
      options.num_threads = numThreads
      options.seed = seed
      if (precision.calibration != null) Native.refuse("precision: a manager takes no calibration", "calibration")
      precision.ofGroup(options)
      if (logger != null) {
        val log = new Native.Callback(logger)
        options.log = LogCallback
        options.log_user_data = log.number
        family.keep(log)
      }
      val params = if (paramNames == null) null else Native.texts(paramNames, "paramNames")
      val made = Descs.of(firstAxis(dataShapes), "dataShapes") { data =>
        Descs.of(firstAxis(labelShapes), "labelShapes") { label =>
          symbol.hold { net =>
            Native.bound(cohort_manager_create(net, Context.structs(contexts.toSeq), contexts.length, batchSize, data,
              label, params,
              if (paramNames == null) 0 else paramNames.length, options, _))
          }
        }
      }
      new DataParallelExecutorManager(made, family, keys, symGen != null)
    }
  }

  /** Descriptors that are batched along the first axis, whatever their layouts say. */
  private[cohort] def firstAxis(descs: Seq[DataDesc]): Seq[DataDesc] =
    if (descs == null) null else descs.map(desc => Native.needed(desc, "descriptor").copy(layout = "N"))

  /** Keys are any objects; the library identifies them by text. */
  private[cohort] final class Keys {
    private val texts = new ConcurrentHashMap[AnyRef, String]
    private val objects = new ConcurrentHashMap[String, AnyRef]

    def text(key: AnyRef): String = synchronized {
      Native.needed(key, "bucketKey")
      val known = texts.get(key)
      if (known != null) known
      else {
        val made = s"${texts.size}: ${key.toString.take(200)}".filter(c => c != '\u0000' && !c.isSurrogate)
        objects.put(made, key)
        texts.put(key, made)
        made
      }
    }

    def of(text: String): AnyRef = objects.get(text)
  }

  private[cohort] object BucketSymbol extends BucketSymbolFn {
    override def invoke(bucket_key: Pointer, out_symbol: Pointer, user_data: Long): Int =
      Native.call[String => Symbol](user_data) { symGen =>
        val made = symGen(Native.textOf(bucket_key))
        if (made == null) Native.refuse(s"symGen: found null for ${Native.textOf(bucket_key)}", "symGen")
        // The library frees the handle it is given, so it gets a copy.
        out_symbol.setLong(0, made.use(handle => Native.long(cohort_symbol_copy(handle, _))))
      }
  }
}
