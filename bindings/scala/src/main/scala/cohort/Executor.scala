// SPDX-License-Identifier: Apache-2.0
package cohort

import com.sun.jna.{Pointer, Structure}

import cohort.abi.Callbacks.MonitorFn
import cohort.abi.CohortExecutor._
import cohort.abi.CohortNdarray.cohort_ndarray_share
import cohort.abi.Constants
import cohort.abi.Structs
import cohort.DType.DType

/** Gradient requests: one word for all that have a gradient, a word by name, or one for each argument. */
private[cohort] sealed trait GradReq

private[cohort] object GradReq {
  final case class Each(word: String) extends GradReq
  final case class ByName(words: Map[String, String]) extends GradReq
  final case class InOrder(words: Seq[String]) extends GradReq

  private val codes =
    Map("null" -> Constants.GradReq.NULL, "write" -> Constants.GradReq.WRITE, "add" -> Constants.GradReq.ADD)

  def code(word: String): Int =
    codes.getOrElse(word, Native.refuse(s"gradReq: expected null, write or add, found $word", "gradReq"))

  def word(code: Int): String = codes.collectFirst { case (word, `code`) => word }.getOrElse("null")
}

/** Text as a struct field, which keeps it alive. */
private[cohort] object Fields {
  def text(value: String, what: String): Pointer = if (value == null) null else {
    val bytes = Native.in(value, what).getBytes("UTF-8")
    val made = new com.sun.jna.Memory(bytes.length + 1L)
    made.write(0, bytes, 0, bytes.length)
    made.setByte(bytes.length.toLong, 0)
    made
  }

  /** The three fields of a request: the word, the list, the names. */
  def gradReq(req: GradReq): (Pointer, Pointer, Pointer, Long) = req match {
    case null                   => (null, null, null, 0)
    case GradReq.Each(word)     => (text(word, "gradReq"), null, null, 0)
    case GradReq.InOrder(words) => (null, Native.texts(words, "gradReq"), null, words.length)
    case GradReq.ByName(words) =>
      val list = Native.needed(words, "gradReq").toVector
      (null, Native.texts(list.map(_._2), "gradReq"), Native.texts(list.map(_._1), "gradReq"), list.length)
  }

  /** Fields that structs of several types have. */
  def set(struct: Structure, values: (String, Any)*): Unit =
    for ((name, value) <- values) struct.getClass.getField(name).set(struct, value)

  def sized[S <: Structure](struct: S)(init: (S, Long) => Unit): S = {
    init(struct, struct.size)
    struct
  }
}

/** The memory of an executor or a device in bytes; `values` is the part of `planned` that intermediate values use
  * at their peak. */
final case class MemoryInfo(planned: Long, intermediate: Long, arguments: Long, gradients: Long, outputs: Long, values: Long)

private[cohort] object MemoryInfo {
  def of(call: Structs.MemoryInfo => Long): MemoryInfo = {
    val info = new Structs.MemoryInfo
    info.struct_size = info.size
    Native.check(call(info))
    MemoryInfo(info.planned_bytes, info.intermediate_bytes, info.argument_bytes, info.gradient_bytes, info.output_bytes, info.value_bytes)
  }
}

/** A callback that is called with each output of each operator during passes. */
private[cohort] object MonitorCallback extends MonitorFn {
  override def invoke(name: Pointer, array: Long, user_data: Long): Unit =
    Native.call[(String, NDArray) => Unit](user_data) { told =>
      told(Native.textOf(name), new NDArray(Native.long(cohort_ndarray_share(array, _))))
    }
}

/** An object with a monitor callback, which lives as long as the family that runs it. */
private[cohort] final class Monitored(family: Family) {
  private var present: Native.Callback = null

  def set(callback: (String, NDArray) => Unit)(call: (MonitorFn, Long) => Unit): Unit = family.synchronized {
    val made = if (callback == null) null else new Native.Callback(callback)
    call(if (made == null) null else MonitorCallback, if (made == null) 0 else made.number)
    if (present != null) family.forget(present)
    if (made != null) family.keep(made)
    present = made
  }
}

/** A network bound to its own or the caller's arrays. Passes are queued; reading an array waits.
  *
  * {{{
  * val fc = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 1, no_bias = true, name = "fc")
  * val executor = fc.simpleBind(shapes = Map("data" -> Shape(1, 2)))
  * executor.argDict("fc_weight").set(Array(1f, 10f))
  * executor.argDict("data").set(Array(3f, 4f))
  * executor.forward()
  * assert(executor.outputs(0).toScalar == 43f)
  * }}}
  */
final class Executor private[cohort] (address: Long, family: Family)
  extends Handle(address, cohort_executor_free, family) {
  private val monitored = new Monitored(family)

  private def list(which: Int): Vector[(String, Option[NDArray])] =
    Arrays.take(use(handle => Native.long(cohort_executor_arrays(handle, which, _))))

  private def arrays(which: Int): Vector[NDArray] = list(which).map(_._2.orNull)

  private def dict(which: Int): Map[String, NDArray] =
    list(which).collect { case (name, Some(array)) => (name, array) }.toMap

  def argArrays: IndexedSeq[NDArray] = arrays(Constants.ExecutorList.ARGS)

  /** None for arguments without gradient. */
  def gradArrays: IndexedSeq[Option[NDArray]] = list(Constants.ExecutorList.GRADS).map(_._2)
  def auxArrays: IndexedSeq[NDArray] = arrays(Constants.ExecutorList.AUX)
  def outputs: IndexedSeq[NDArray] = arrays(Constants.ExecutorList.OUTPUTS)
  def argDict: Map[String, NDArray] = dict(Constants.ExecutorList.ARGS)
  def gradDict: Map[String, NDArray] = dict(Constants.ExecutorList.GRADS)
  def auxDict: Map[String, NDArray] = dict(Constants.ExecutorList.AUX)
  def outputDict: Map[String, NDArray] = dict(Constants.ExecutorList.OUTPUTS)

  /** The gradient request of each argument: "null", "write" or "add". */
  def gradReq: Map[String, String] = use { handle =>
    val args = Constants.ExecutorList.ARGS
    Native
      .list(cohort_executor_num_arrays(handle, args, _)) { i =>
        (Native.text(cohort_executor_name(handle, args, i, _)),
          GradReq.word(Native.int(cohort_executor_grad_req(handle, i, _))))
      }
      .toMap
  }

  /** Copies parameters in by name; on an error nothing is copied. */
  def copyParamsFrom(argParams: Map[String, NDArray], auxParams: Map[String, NDArray] = null,
    allowExtraParams: Boolean = false)
      : Unit =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams") { aux =>
        run(cohort_executor_copy_params_from(_, args, aux, Native.bool(allowExtraParams)))
      }
    }

  /** Copies inputs by name. */
  def setInputs(inputs: Map[String, NDArray]): Unit =
    Arrays.of(Native.needed(inputs, "inputs"), "inputs")(arrays => run(cohort_executor_set_inputs(_, arrays)))

  /** Copies given inputs by name, and runs a forward pass. */
  def forward(isTrain: Boolean = false, inputs: Map[String, NDArray] = Map.empty): Unit =
    if (Native.needed(inputs, "inputs").isEmpty) run(cohort_executor_forward(_, Native.bool(isTrain)))
    else
      Arrays.of(inputs, "inputs") { arrays =>
        use { handle =>
          Native.check(cohort_executor_set_inputs(handle, arrays))
          Native.check(cohort_executor_forward(handle, Native.bool(isTrain)))
        }
      }

  /** Runs one node of the network; returns how many are left. */
  def partialForward(isTrain: Boolean, step: Int): Int =
    use(handle => Native.int(cohort_executor_partial_forward(handle, Native.bool(isTrain), step, _)))

  /** Runs a backward pass after the latest forward pass. Losses need no head gradients. */
  def backward(outGrads: Array[NDArray] = Array.empty, isTrain: Boolean = true): Unit =
    Handle.addresses(if (outGrads == null) Nil else outGrads.toSeq, "outGrads", nulls = true) { grads =>
      run(cohort_executor_backward(_, grads, grads.length, Native.bool(isTrain)))
    }

  /** Waits for all queued work. */
  def waitToFinish(): Unit = run(cohort_executor_wait)

  /** Calls a function with each output of each operator in every pass, with `monitorAll` with inputs, too; null
    * removes it. It runs on the thread that runs the pass; its exceptions come out there.
    */
  def setMonitorCallback(callback: (String, NDArray) => Unit, monitorAll: Boolean = false): Unit =
    monitored.set(callback) { (function, number) =>
      run(cohort_executor_set_monitor(_, function, number, Native.bool(monitorAll)))
    }

  /** The state of the random operators: which numbers they draw next. */
  def getRandomState: Array[Byte] = use(handle => Native.bytes(cohort_executor_random_state(handle, _, _, _)))

  /** Sets the result of `getRandomState`: they draw the same numbers again. */
  def setRandomState(state: Array[Byte]): Unit =
    run(cohort_executor_set_random_state(_, java.nio.ByteBuffer.wrap(Native.needed(state, "state")), state.length))

  /** An executor for other shapes that shares this one's memory. */
  def reshape(partialShaping: Boolean = false, allowUpSizing: Boolean = false, shapes: Map[String, Shape]): Executor = {
    val options = Fields.sized(new Structs.ReshapeOptions)(cohort_reshape_options_init)
    options.partial_shaping = Native.bool(partialShaping)
    options.allow_up_sizing = Native.bool(allowUpSizing)
    Descs.known(shapes, Map.empty) { known =>
      new Executor(use(handle => Native.bound(cohort_executor_reshape(handle, known, options, _))), family)
    }
  }

  def symbol: Symbol = new Symbol(use(handle => Native.long(cohort_executor_symbol(handle, _))))
  def context: Context = use(handle => Native.context(cohort_executor_context(handle, _)))

  /** The plan as text: the nodes, then the steps of the latest pass, each with its operations and bytes, the least
    * time that the machine needs for them, and the mean time it took while a [[Trace]] was running.
    */
  def debugStr: String = use(handle => Native.text(cohort_executor_debug_text(handle, _)))
  def memory: MemoryInfo = use(handle => MemoryInfo.of(cohort_executor_memory(handle, _)))
}

object Executor {

  /** Binds to arrays of zeros, for shapes and types given by name. Arguments named in `sharedArgNames` are the arrays
    * of `sharedExec`; nodes with attribute `ctx_group` run on the context that `group2ctx` gives.
    */
  def simpleBind(
      symbol: Symbol,
      ctx: Context = null,
      shapes: Map[String, Shape],
      types: Map[String, DType] = Map.empty,
      gradReq: Map[String, String] = null,
      sharedExec: Executor = null,
      sharedArgNames: Seq[String] = Nil,
      group2ctx: Map[String, Context] = Map.empty,
      numThreads: Int = 0,
      seed: Long = 0,
      precision: Precision = Precision()): Executor = {
    val req = if (gradReq == null) GradReq.Each("write") else GradReq.ByName(gradReq)
    simpleBind(symbol, ctx, req, shapes, types, sharedExec, sharedArgNames, group2ctx, numThreads, seed, precision)
  }

  private[cohort] def simpleBind(
      symbol: Symbol,
      ctx: Context,
      gradReq: GradReq,
      shapes: Map[String, Shape],
      types: Map[String, DType],
      sharedExec: Executor,
      sharedArgNames: Seq[String],
      group2ctx: Map[String, Context],
      numThreads: Int,
      seed: Long,
      precision: Precision): Executor = {
    val options = this.options(group2ctx, numThreads, seed, precision)
    val (word, list, names, num) = Fields.gradReq(gradReq)
    options.grad_req = word
    options.grad_req_list = list
    options.grad_req_names = names
    options.num_grad_reqs = num
    options.shared_arg_names = Native.texts(sharedArgNames, "sharedArgNames")
    options.num_shared_arg_names = sharedArgNames.length
    made(sharedExec, options, precision) {
      Native.needed(symbol, "symbol").hold { net =>
        Arrays.of(Nil, "pool") { pool =>
          if (sharedArgNames.nonEmpty) options.shared_data = pool // without a pool the library ignores the names
          Descs.known(shapes, types) { known =>
            Native.bound(cohort_executor_simple_bind(net, Context.struct(ctx), known, options, _))
          }
        }
      }
    }
  }

  private[cohort] def simpleBind(symbol: Symbol, ctx: Context, gradReq: GradReq, shapes: Map[String, Shape]): Executor =
    simpleBind(symbol, ctx, gradReq, shapes, Map.empty[String, DType], null, Nil, Map.empty[String, Context], 0, 0,
      Precision())

  /** Binds to arrays given by name, without copying them; gradients are written to those of `argsGrad`, as `gradReq`
    * says or all with "write".
    */
  def bind(
      symbol: Symbol,
      ctx: Context = null,
      args: Map[String, NDArray],
      argsGrad: Map[String, NDArray] = Map.empty,
      gradReq: Map[String, String] = null,
      auxStates: Map[String, NDArray] = Map.empty,
      sharedExec: Executor = null,
      group2ctx: Map[String, Context] = Map.empty,
      numThreads: Int = 0,
      seed: Long = 0,
      precision: Precision = Precision()): Executor = {
    val names = Native.needed(symbol, "symbol").listArguments()
    val ordered = inOrder(args, names, "args")
    val grads = names.map(Native.needed(argsGrad, "argsGrad").getOrElse(_, null))
    val aux = inOrder(auxStates, symbol.listAuxiliaryStates(), "auxStates")
    val codes = names.map { name =>
      val implied = if (gradReq == null && argsGrad.contains(name)) "write" else "null"
      GradReq.code(if (gradReq == null) implied else gradReq.getOrElse(name, "null"))
    }.toArray
    val options = this.options(group2ctx, numThreads, seed, precision)
    made(sharedExec, options, precision) {
      Handle.addresses(ordered, "args") { args =>
        Handle.addresses(grads, "argsGrad", nulls = true) { grads =>
          Handle.addresses(aux, "auxStates") { aux =>
            symbol.hold { net =>
              Native.bound(cohort_executor_bind(net, Context.struct(ctx), args, args.length, grads, codes, aux,
                aux.length, options, _))
            }
          }
        }
      }
    }
  }

  private def options(group2ctx: Map[String, Context], numThreads: Int, seed: Long, precision: Precision)
      : Structs.ExecutorOptions = {
    val options = Fields.sized(new Structs.ExecutorOptions)(cohort_executor_options_init)
    val groups = Native.needed(group2ctx, "group2ctx").toVector
    options.ctx_group_names = Native.texts(groups.map(_._1), "group2ctx")
    options.ctx_group_contexts = Context.structs(groups.map(_._2)).getPointer
    options.num_ctx_groups = groups.length
    options.num_threads = numThreads
    options.seed = seed
    Native.needed(precision, "precision").of(options)
    options
  }

  private def made(shared: Executor, options: Structs.ExecutorOptions, precision: Precision)(bind: => Long): Executor =
    if (shared == null) new Executor(precision.during(options)(bind), new Family)
    else
      shared.use { handle =>
        options.shared_executor = handle
        new Executor(precision.during(options)(bind), shared.family)
      }

  private def inOrder(arrays: Map[String, NDArray], names: Seq[String], what: String): Seq[NDArray] =
    names.map { name =>
      Native.needed(arrays, what).getOrElse(name, throw new UnknownNameException(s"$what: there is no '$name'", name))
    }
}
