// SPDX-License-Identifier: Apache-2.0
package cohort

import com.sun.jna.Pointer

import cohort.abi.Callbacks.LogFn
import cohort.abi.CohortGroup._
import cohort.abi.Constants.GroupList
import cohort.abi.Structs
import cohort.DType.DType

/** A network on several devices, for data parallelism: each batch is split over them by workload. Created by its
  * [[DataParallelExecutorGroup.Builder]].
  *
  * {{{
  * val fc = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 1, no_bias = true, name = "fc")
  * val group = new DataParallelExecutorGroup.Builder(fc, Array(Context.cpu(0), Context.cpu(1)), Vector("fc_weight"))
  *   .setWorkLoadList(Vector(3f, 1f))
  *   .setDataShapes(Vector(DataDesc("data", Shape(4, 2), layout = "NC")))
  *   .build()
  * group.setParams(Map("fc_weight" -> NDArray.array(Array(1f, 10f), Shape(1, 2))), Map.empty)
  * group.forward(DataBatch(Vector(NDArray.array(Array(1f, 2f, 3f, 4f, 5f, 6f, 7f, 8f), Shape(4, 2)))))
  * assert(group.slices == Vector((0, 3), (3, 4)))
  * assert(group.getOutputsMerged()(0).toArray.toSeq == Seq(21f, 43f, 65f, 87f))
  * }}}
  */
final class DataParallelExecutorGroup private[cohort] (
    address: Long,
    family: Family,
    val symbol: Symbol,
    val forTraining: Boolean,
    val inputsNeedGrad: Boolean)
    extends GroupBase(address, family) {

  def argNames: IndexedSeq[String] = names(GroupList.ARGS)
  def auxNames: IndexedSeq[String] = names(GroupList.AUX)

  /** In the order of the arguments. */
  def paramNames: IndexedSeq[String] = names(GroupList.PARAMS)
  def outputNames: IndexedSeq[String] = names(GroupList.OUTPUTS)

  // ---- shapes

  def dataShapes: IndexedSeq[DataDesc] = descs(GroupList.DATA)
  def labelShapes: Option[IndexedSeq[DataDesc]] = Some(descs(GroupList.LABELS)).filter(_.nonEmpty)

  /** Batch axes; -1 for none. */
  def dataLayouts: IndexedSeq[Int] = axes(GroupList.DATA)
  def labelLayouts: IndexedSeq[Int] = axes(GroupList.LABELS)
  def outputLayouts: IndexedSeq[Int] = axes(GroupList.OUTPUTS)

  /** The batch axis of each descriptor, checked against the group's batch size. */
  def decideSlices(dataShapes: Seq[DataDesc]): IndexedSeq[Int] = {
    val found = new Array[Int](math.max(Native.needed(dataShapes, "dataShapes").length, 1))
    Descs.of(dataShapes, "dataShapes")(descs => run(cohort_group_decide_slices(_, descs, found)))
    found.toVector.take(dataShapes.length)
  }

  /** The shapes of device `i`'s slice, along the given axes or those of the layouts. */
  def slicedShape(shapes: Seq[DataDesc], i: Int, majorAxis: Seq[Int] = null): IndexedSeq[(String, Shape)] = {
    if (majorAxis != null && majorAxis.length != Native.needed(shapes, "shapes").length)
      Native.refuse(s"majorAxis: expected ${shapes.length} axes, found ${majorAxis.length}", "majorAxis")
    val axes = if (majorAxis == null) null else majorAxis.toArray
    Descs.of(Native.needed(shapes, "shapes"), "shapes") { descs =>
      Descs.take(use(handle => Native.long(cohort_group_sliced_shape(handle, descs, i, axes, _))))
        .map(e => (e.name, e.desc.shape))
    }
  }

  /** Binds again, from zeros; with `reshape` like [[reshape]]. Without `rebind` a bound group refuses. */
  def bindExec(
      dataShapes: Seq[DataDesc],
      labelShapes: Option[Seq[DataDesc]],
      sharedGroup: Option[DataParallelExecutorGroup] = None,
      reshape: Boolean = false,
      rebind: Boolean = true): Unit =
    if (reshape) this.reshape(dataShapes, labelShapes)
    else
      withDescs(dataShapes, labelShapes) { (data, label) =>
        Handle.optional(Native.needed(sharedGroup, "sharedGroup").orNull) { shared =>
          Garbage.withRoom(run(cohort_group_bind(_, data, label, shared, Native.bool(rebind))))
        }
      }

  /** Changes the shapes of the batch; parameters stay. On an error nothing changes. */
  def reshape(dataShapes: Seq[DataDesc], labelShapes: Option[Seq[DataDesc]]): Unit =
    withDescs(dataShapes, labelShapes)((data, label) => Garbage.withRoom(run(cohort_group_reshape(_, data, label))))

  private def withDescs(data: Seq[DataDesc], label: Option[Seq[DataDesc]])(body: (Long, Long) => Unit): Unit =
    Descs.of(Native.needed(data, "dataShapes"), "dataShapes") { first =>
      Descs.of(Native.needed(label, "labelShapes").orNull, "labelShapes")(body(first, _))
    }

  // ---- passes

  /** Splits a batch over the devices and runs a forward pass on each; None means `forTraining`. */
  def forward(dataBatch: DataBatch, isTrain: Option[Boolean] = None): Unit =
    GroupBase.arraysOf(dataBatch) { (data, label) =>
      run(cohort_group_forward(_, data, data.length, label, label.length, Native.isTrain(isTrain)))
    }

  /** Like `forward`, with batches that are sliced already, one per device. */
  def forwardPreSliced(batches: IndexedSeq[DataBatch], isTrain: Option[Boolean] = None): Unit = {
    val labels =
      Native.needed(batches, "batches").map(batch => Option(Native.needed(batch, "batch").label).getOrElse(Vector.empty))
    GroupBase.flat(batches.map(_.data), "data") { (data, num, numData) =>
      GroupBase.flat(labels, "label") { (label, _, numLabel) =>
        run(cohort_group_forward_presliced(_, num, data, numData, if (numLabel == 0) null else label, numLabel,
          Native.isTrain(isTrain)))
      }
    }
  }

  /** The first half of `forward`: splits a batch. */
  def load(dataBatch: DataBatch): Unit = loadBatch(dataBatch)

  /** The second half: runs a pass over the loaded batch. */
  def runForward(isTrain: Option[Boolean] = None): Unit = runPass(isTrain)

  /** Runs a backward pass after the latest forward pass; losses need no head gradients. */
  def backward(outGrads: Array[NDArray] = null): Unit = backwardPass(if (outGrads == null) Nil else outGrads.toSeq)

  // ---- results

  /** Names and shapes of the merged outputs, known before any pass. */
  def getOutputShapes: IndexedSeq[(String, Shape)] =
    Descs.take(use(handle => Native.long(cohort_group_output_shapes(handle, _))))
      .map(entry => (entry.name, entry.desc.shape))

  /** The devices' arrays of each output. */
  def getOutputs(): IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.OUTPUTS)

  /** Outputs joined over the devices; the next pass overwrites them. */
  def getOutputsMerged(): IndexedSeq[NDArray] = merged(GroupList.OUTPUTS)

  /** The devices' gradients of each data input, in the order of the descriptors. */
  def getInputGrads(): IndexedSeq[IndexedSeq[NDArray]] = {
    needsInputGrads()
    present(GroupList.INPUT_GRADS)
  }

  def getInputGradsMerged(): IndexedSeq[NDArray] = {
    needsInputGrads()
    merged(GroupList.INPUT_GRADS)
  }

  private def needsInputGrads(): Unit =
    if (!inputsNeedGrad || !forTraining)
      throw new StateException("input gradients: the group was bound without inputsNeedGrad and forTraining",
        "inputsNeedGrad")

  // ---- states

  def getStates(): IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.STATES)

  /** Sets states: the devices' arrays for each state, or one number for all. */
  def setStates(states: IndexedSeq[IndexedSeq[NDArray]] = null, value: Option[Double] = None): Unit =
    GroupBase.states(states, value) { (list, num, each, number) =>
      run(cohort_group_set_states(_, list, num, each, number))
    }

  // ---- live arrays

  /** With the rows of each device. */
  def dataArrays: IndexedSeq[Array[((Int, Int), NDArray)]] = withSlices(GroupList.DATA)
  def labelArrays: Option[IndexedSeq[Array[((Int, Int), NDArray)]]] =
    Some(withSlices(GroupList.LABELS)).filter(_.nonEmpty)

  /** The devices' arrays of each parameter, in the order of `paramNames`. */
  def paramArrays: IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.PARAMS)

  /** None for parameters without gradient. */
  def gradArrays: IndexedSeq[IndexedSeq[Option[NDArray]]] = onDevices(GroupList.GRADS)
  def auxArrays: IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.AUX)
  def inputGradArrays: IndexedSeq[IndexedSeq[NDArray]] = present(GroupList.INPUT_GRADS)

  /** The gradient request of each argument: "null", "write" or "add". */
  def gradReq: Map[String, String] = execs(0).gradReq
}

object DataParallelExecutorGroup {

  /** Settings of a group, in any order; `build` creates it. A null `paramNames` means all arguments but data, labels
    * and states.
    */
  final class Builder(symbol: Symbol, contexts: Array[Context], paramNames: IndexedSeq[String]) {
    Native.needed(symbol, "symbol")
    Native.needed(contexts, "contexts")

    private var workLoadList: IndexedSeq[Float] = null
    private var dataShapes: IndexedSeq[DataDesc] = null
    private var labelShapes: Option[IndexedSeq[DataDesc]] = None
    private var forTraining = true
    private var inputsNeedGrad = false
    private var sharedGroup: Option[DataParallelExecutorGroup] = None
    private var inputTypes = Map.empty[String, DType]
    private var fixedParamNames = Set.empty[String]
    private var strictNames = false
    private var stopIfNotFinite = false
    private var gradReq: GradReq = null
    private var stateNames = IndexedSeq.empty[String]
    private var rounding = Rounding.HalfUp
    private var slices = IndexedSeq.empty[(Int, Int)]
    private var group2Ctxs = Map.empty[String, IndexedSeq[Context]]
    private var numThreads = 0
    private var gradientBucketBytes = 0L
    private var seed = 0L
    private var precision = Precision()
    private var givenParams = Option.empty[(Map[String, NDArray], Map[String, NDArray])]
    private var logger: (LogLevel.LogLevel, String) => Unit = null

    private def set(change: => Unit): Builder = {
      change
      this
    }

    /** Names of the network's arguments. */
    val argNames: IndexedSeq[String] = symbol.listArguments()

    /** One share per context; equal shares by default. */
    def setWorkLoadList(workLoad: IndexedSeq[Float]): Builder = set { workLoadList = workLoad }
    def setDataShapes(shapes: IndexedSeq[DataDesc]): Builder = set { dataShapes = Native.needed(shapes, "dataShapes") }
    def setDataShapesByName(shapes: IndexedSeq[(String, Shape)]): Builder =
      setDataShapes(descs(Native.needed(shapes, "dataShapes")))
    def setLabelShapes(shapes: IndexedSeq[DataDesc]): Builder = set { labelShapes = Option(shapes) }
    def setLabelShapesByName(shapes: IndexedSeq[(String, Shape)]): Builder =
      setLabelShapes(Option(shapes).map(descs).orNull)
    private def descs(shapes: IndexedSeq[(String, Shape)]): IndexedSeq[DataDesc] =
      shapes.map(one => DataDesc(Native.needed(one, "shapes")._1, one._2))
    def setForTraining(forTraining: Boolean): Builder = set { this.forTraining = forTraining }
    def setInputsNeedGrad(needGrad: Boolean): Builder = set { inputsNeedGrad = needGrad }

    /** A group of another bucket to share parameters and memory with. */
    def setSharedGroup(sharedGroup: DataParallelExecutorGroup): Builder = set { this.sharedGroup = Option(sharedGroup) }
    def setInputTypes(inputTypes: Map[String, DType]): Builder =
      set { this.inputTypes = Option(inputTypes).getOrElse(Map.empty) }
    def setFixedParamNames(fixedParamNames: Set[String]): Builder =
      set { this.fixedParamNames = Option(fixedParamNames).getOrElse(Set.empty) }

    /** Whether names of parameters, requests and input types that would be ignored with a warning are errors. */
    def setStrictNames(strictNames: Boolean): Builder = set { this.strictNames = strictNames }

    /** Whether a pass fails at the first output or gradient with an infinity or a NaN; the error names it. */
    def setStopIfNotFinite(stopIfNotFinite: Boolean): Builder = set { this.stopIfNotFinite = stopIfNotFinite }

    /** Requests by name, over "write" for parameters, and for data with `setInputsNeedGrad`. */
    def setGradReq(gradReq: Map[String, String]): Builder =
      set { this.gradReq = GradReq.ByName(Native.needed(gradReq, "gradReq")) }

    /** "write", "add" or "null" for parameters that are not fixed, and for data with `setInputsNeedGrad`. */
    def setGradReq(gradReq: String): Builder = set { this.gradReq = GradReq.Each(Native.needed(gradReq, "gradReq")) }

    /** A word for each argument, used as it is. */
    def setGradReq(gradReq: Seq[(String, String)]): Builder = set {
      val words = Native.needed(gradReq, "gradReq").map(Native.needed(_, "gradReq")).toMap
      if (gradReq.length != argNames.length)
        Native.refuse(s"gradReq: expected ${argNames.length} words, found ${gradReq.length}", "gradReq")
      this.gradReq = GradReq.InOrder(argNames.map { name =>
        words.getOrElse(name, throw new UnknownNameException(s"gradReq: there is none for '$name'", name))
      })
    }

    /** Arguments that keep their values from pass to pass. */
    def setStateNames(stateNames: IndexedSeq[String]): Builder =
      set { this.stateNames = Native.needed(stateNames, "stateNames") }
    def setRounding(rounding: Rounding.Rounding): Builder = set { this.rounding = Native.needed(rounding, "rounding") }

    /** The rows of each device, instead of workloads. */
    def setSlices(slices: IndexedSeq[(Int, Int)]): Builder = set { this.slices = Native.needed(slices, "slices") }

    /** The contexts of nodes with attribute `ctx_group`: one per device, or one for all. */
    def setGroup2Ctxs(group2Ctxs: Map[String, IndexedSeq[Context]]): Builder =
      set { this.group2Ctxs = Native.needed(group2Ctxs, "group2Ctxs") }
    def setNumThreads(numThreads: Int): Builder = set { this.numThreads = numThreads }
    def setGradientBucketBytes(bytes: Long): Builder = set { gradientBucketBytes = bytes }
    def setSeed(seed: Long): Builder = set { this.seed = seed }
    def setPrecision(precision: Precision): Builder = set { this.precision = Native.needed(precision, "precision") }

    /** For inference: the group uses these arrays directly, without a copy, on all its devices together. Those on
      * other devices or of other types are copied, and parameters that are not named are zeros.
      */
    def setGivenParams(argParams: Map[String, NDArray], auxParams: Map[String, NDArray] = Map.empty): Builder =
      set { givenParams = Some((Native.needed(argParams, "argParams"), Native.needed(auxParams, "auxParams"))) }

    /** Receives the group's messages; without one a [[LogReceiver]] receives them. */
    def setLogger(logger: (LogLevel.LogLevel, String) => Unit): Builder = set { this.logger = logger }

    def build(): DataParallelExecutorGroup = {
      if (dataShapes == null) Native.refuse("build: dataShapes are not set", "dataShapes")
      val family = sharedGroup.fold(new Family)(_.family)
      val options = this.options()
      val log = if (logger == null) null else new Native.Callback(logger)
      if (log != null) {
        options.log = LogCallback
        options.log_user_data = log.number
        family.keep(log)
      }
      val params = if (paramNames == null) null else Native.texts(paramNames, "paramNames")
      val made = Descs.of(dataShapes, "dataShapes") { data =>
        Descs.of(labelShapes.orNull, "labelShapes") { label =>
          Handle.optional(sharedGroup.orNull) { shared =>
            options.shared_group = shared
            symbol.hold { net =>
              family.synchronized {
                withGiven(options)(precision.during(options)(Native.bound(cohort_group_create(net,
                  Context.structs(contexts.toSeq), contexts.length, data, label, params,
                  if (paramNames == null) 0 else paramNames.length, Native.bool(forTraining), options, _))))
              }
            }
          }
        }
      }
      new DataParallelExecutorGroup(made, family, symbol, forTraining, inputsNeedGrad)
    }

    private def withGiven[A](options: Structs.GroupOptions)(body: => A): A = givenParams.fold(body) {
      case (argParams, auxParams) =>
        Arrays.of(argParams, "argParams") { args =>
          Arrays.of(auxParams, "auxParams") { aux =>
            options.arg_params = args
            options.aux_params = aux
            body
          }
        }
    }

    private def options(): Structs.GroupOptions = {
      val options = Fields.sized(new Structs.GroupOptions)(cohort_group_options_init)
      if (workLoadList != null && workLoadList.nonEmpty) {
        options.workload = Native.doubles(workLoadList.map(_.toDouble).toArray)
        options.num_workloads = workLoadList.length
      }
      options.rounding = rounding.id
      if (slices.nonEmpty) {
        options.slices =
          Native.longs(slices.flatMap(rows => Seq(Native.needed(rows, "slices")._1.toLong, rows._2.toLong)).toArray)
        options.num_slices = slices.length
      }
      options.inputs_need_grad = Native.bool(inputsNeedGrad)
      options.fixed_param_names = Native.texts(fixedParamNames, "fixedParamNames")
      options.num_fixed_param_names = fixedParamNames.size
      options.strict_names = Native.bool(strictNames)
      options.stop_if_not_finite = Native.bool(stopIfNotFinite)
      val (word, list, names, num) = Fields.gradReq(gradReq)
      options.grad_req = word
      options.grad_req_list = list
      options.grad_req_names = names
      options.num_grad_reqs = num
      options.state_names = Native.texts(stateNames, "stateNames")
      options.num_state_names = stateNames.length
      val types = inputTypes.toVector
      options.input_dtype_names = Native.texts(types.map(_._1), "inputTypes")
      options.input_dtypes = Native.ints(types.map(one => DType.code(one._2)).toArray)
      options.num_input_dtypes = types.length
      if (group2Ctxs.nonEmpty) setGroups(options)
      options.num_threads = numThreads
      options.gradient_bucket_bytes = gradientBucketBytes
      options.seed = seed
      precision.ofGroup(options)
      options
    }

    private def setGroups(options: Structs.GroupOptions): Unit = {
      val groups = group2Ctxs.toVector
      val each = groups.flatMap { case (name, list) =>
        Native.needed(list, "group2Ctxs").length match {
          case 1                              => contexts.toSeq.map(_ => list.head)
          case num if num == contexts.length  => list
          case num => Native.refuse(s"group2Ctxs: expected 1 or ${contexts.length} contexts, found $num", name)
        }
      }
      options.ctx_group_names = Native.texts(groups.map(_._1), "group2Ctxs")
      options.ctx_group_contexts = Context.structs(each).getPointer
      options.num_ctx_groups = groups.length
      options.contexts_per_ctx_group = contexts.length
    }
  }

  /** All settings at once, like MXNet's constructor. */
  def apply(
      symbol: Symbol,
      contexts: Array[Context],
      workLoadList: IndexedSeq[Float],
      dataShapes: IndexedSeq[DataDesc],
      labelShapes: Option[IndexedSeq[DataDesc]] = None,
      paramNames: IndexedSeq[String],
      forTraining: Boolean,
      inputsNeedGrad: Boolean,
      sharedGroup: Option[DataParallelExecutorGroup] = None,
      inputTypes: Option[Map[String, DType]] = None,
      fixedParamNames: Set[String] = Set.empty,
      gradReq: Map[String, String] = null): DataParallelExecutorGroup = {
    val builder = new Builder(symbol, contexts, paramNames)
      .setWorkLoadList(workLoadList)
      .setDataShapes(dataShapes)
      .setLabelShapes(Native.needed(labelShapes, "labelShapes").orNull)
      .setForTraining(forTraining)
      .setInputsNeedGrad(inputsNeedGrad)
      .setSharedGroup(Native.needed(sharedGroup, "sharedGroup").orNull)
      .setInputTypes(Native.needed(inputTypes, "inputTypes").orNull)
      .setFixedParamNames(fixedParamNames)
    (if (gradReq == null) builder else builder.setGradReq(gradReq)).build()
  }

  /** The rows of each device for a batch: halves of a sample are rounded up, as in MXNet's Scala. */
  def splitInputSlice(
      batchSize: Int,
      workLoadList: IndexedSeq[Float],
      rounding: Rounding.Rounding = Rounding.HalfUp): IndexedSeq[(Int, Int)] = {
    val shares = Native.needed(workLoadList, "workLoadList").map(_.toDouble).toArray
    val begin, end = new Array[Long](math.max(shares.length, 1))
    Native.check(cohort_split_slices(batchSize, shares, shares.length, Native.needed(rounding, "rounding").id, begin,
      end))
    shares.indices.map(i => (begin(i).toInt, end(i).toInt))
  }
}

/** Passes messages of the library to a function of level and text. */
private[cohort] object LogCallback extends LogFn {
  override def invoke(level: Int, message: Pointer, user_data: Long): Unit =
    Native.call[(LogLevel.LogLevel, String) => Unit](user_data)(_(LogLevel.of(level), Native.textOf(message)))
}
