// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortArrays.cohort_arrays_add
import cohort.abi.Callbacks.{TapeFunctionFn, TapeReleaseFn}
import cohort.abi.CohortTape._
import cohort.abi.Structs

/** Records operators as they are applied, and computes gradients backwards along them.
  *
  * {{{
  * val tape = new Tape
  * val x = NDArray.array(Array(1f, 2f, 3f), Shape(3))
  * val gradient = tape.attachGrad(x)
  * val y = tape.record(tape.op.square(x))
  * tape.backward(Seq(y))
  * assert(gradient.toArray.toSeq == Seq(2f, 4f, 6f))
  * }}}
  */
final class Tape extends Handle(Native.long(cohort_tape_create), cohort_tape_free, new Family) {

  /** Operators that are recorded while the tape records: `tape.op.exp(x)`. */
  object op extends Operators[NDArray] {
    protected def isInput(value: Any): Boolean = value.isInstanceOf[NDArray]
    protected def applied(op: String, name: String, inputs: Seq[NDArray], attrs: Seq[(String, Any)]): NDArray =
      invoke(op, inputs, attrs: _*).head
  }

  /** Applies an operator; returns all its outputs. Besides attributes there are `seed`, `ctx` and `out`, as for
    * [[nd]]. A function's backward may do so, too, but must not use the tape otherwise.
    */
  def invoke(op: String, inputs: Seq[NDArray], attrs: (String, Any)*): IndexedSeq[NDArray] =
    nd.applied(op, inputs, attrs, Nil) { (pairs, list, targets, options) =>
      useInside { handle =>
        Native.created(cohort_tape_invoke(handle, Native.in(op, "op"), pairs.keys, pairs.words, pairs.num, list, list.length,
          targets, if (targets == null) 0 else targets.length, options, _))
      }
    }

  def isRecording: Boolean = use(handle => Native.int(cohort_tape_is_recording(handle, _))) != 0
  def isTraining: Boolean = use(handle => Native.int(cohort_tape_is_training(handle, _))) != 0

  /** Records operators in the body, in training mode by default. */
  def record[A](body: => A): A = inMode(recording = true, training = true)(body)
  def record[A](trainMode: Boolean)(body: => A): A = inMode(recording = true, trainMode)(body)

  /** Records nothing in the body. */
  def pause[A](body: => A): A = inMode(recording = false, training = false)(body)

  private def inMode[A](recording: Boolean, training: Boolean)(body: => A): A = {
    val wasRecording = set(cohort_tape_set_recording, recording)
    val wasTraining = set(cohort_tape_set_training, training)
    try body
    finally {
      set(cohort_tape_set_recording, wasRecording)
      set(cohort_tape_set_training, wasTraining)
    }
  }

  private def set(call: (Long, Int, Array[Int]) => Long, value: Boolean): Boolean =
    use(handle => Native.int(call(handle, Native.bool(value), _))) != 0

  /** Attaches a gradient array of zeros to an array, and returns it. */
  def attachGrad(array: NDArray, gradReq: String = "write"): NDArray = {
    val gradient = NDArray.zeros(Native.needed(array, "array").shape, array.context, array.dtype)
    markVariables(Seq(array), Seq(gradient), gradReq)
    gradient
  }

  /** The same with gradient arrays of the caller's. */
  def markVariables(variables: Seq[NDArray], gradients: Seq[NDArray], gradReq: String = "write"): Unit = {
    val code = GradReq.code(gradReq)
    if (Native.needed(variables, "variables").length != Native.needed(gradients, "gradients").length)
      Native.refuse(s"gradients: expected ${variables.length}, found ${gradients.length}", "gradients")
    Handle.addresses(variables, "variables") { arrays =>
      Handle.addresses(gradients, "gradients", nulls = true) { grads =>
        run(cohort_tape_mark(_, arrays, grads, Array.fill(math.max(arrays.length, 1))(code), arrays.length))
      }
    }
  }

  /** Computes the gradients of all marked arrays that the heads depend on; head gradients are ones by default.
    */
  def backward(heads: Seq[NDArray], headGrads: Seq[NDArray] = null, retainGraph: Boolean = false,
    createGraph: Boolean = false): Unit =
    withHeads(heads, headGrads) { (list, grads) =>
      run(cohort_tape_backward(_, list, grads, list.length, options(retainGraph, createGraph)))
    }

  /** The gradients of some arrays only, as new arrays; with `createGraph` they can be differentiated themselves. */
  def grad(
      heads: Seq[NDArray],
      variables: Seq[NDArray],
      headGrads: Seq[NDArray] = null,
      retainGraph: Boolean = false,
      createGraph: Boolean = false): IndexedSeq[NDArray] =
    withHeads(heads, headGrads) { (list, grads) =>
      Handle.addresses(variables, "variables") { of =>
        Arrays.take(use { handle =>
          Native.long(cohort_tape_grad(handle, list, grads, list.length, of, of.length,
            options(retainGraph, createGraph), _))
        }).flatMap(_._2)
      }
    }

  private def withHeads[A](heads: Seq[NDArray], headGrads: Seq[NDArray])(body: (Array[Long], Array[Long]) => A): A = {
    if (headGrads != null && headGrads.length != Native.needed(heads, "heads").length)
      Native.refuse(s"headGrads: expected ${heads.length}, found ${headGrads.length}", "headGrads")
    Handle.addresses(heads, "heads") { list =>
      if (headGrads == null) body(list, null)
      else Handle.addresses(headGrads, "headGrads", nulls = true)(body(list, _))
    }
  }

  private def options(retain: Boolean, create: Boolean): Structs.BackwardOptions = {
    val options = Fields.sized(new Structs.BackwardOptions)(cohort_backward_options_init)
    options.retain_graph = Native.bool(retain)
    options.create_graph = Native.bool(create)
    options
  }

  /** Records a function that was computed outside: from the gradients of the outputs, `backward` returns one for each
    * input, or null.
    */
  def function(inputs: Seq[NDArray], outputs: Seq[NDArray])(backward: IndexedSeq[NDArray] => Seq[NDArray]): Unit =
    Handle.addresses(inputs, "inputs") { from =>
      Handle.addresses(outputs, "outputs") { to =>
        val recorded = new Tape.Recorded(Native.needed(backward, "backward"), family)
        family.keep(recorded.callback)
        try
          run(cohort_tape_function(_, from, from.length, to, to.length, Tape.Backward, Tape.Release,
            recorded.callback.number))
        catch {
          case error: Throwable =>
            recorded.forget()
            throw error
        }
      }
    }

  /** The recorded graph of an array as a symbol. */
  def symbol(array: NDArray): Symbol =
    Native.needed(array, "array").hold(one => new Symbol(use(handle => Native.long(cohort_tape_symbol(handle, one, _)))))

  /** The number of recorded operators and functions. */
  def numRecorded: Int = use(handle => Native.size(cohort_tape_num_recorded(handle, _)))
}

private[cohort] object Tape {
  final class Recorded(val backward: IndexedSeq[NDArray] => Seq[NDArray], family: Family) {
    val callback = new Native.Callback(this)
    def forget(): Unit = family.forget(callback)
  }

  object Backward extends TapeFunctionFn {
    override def invoke(head_grads: Long, gradients: Long, user_data: Long): Int =
      Native.call[Recorded](user_data) { recorded =>
        for (gradient <- recorded.backward(Arrays.read(head_grads).map(_._2.orNull)))
          Handle.optional(gradient)(array => Native.check(cohort_arrays_add(gradients, null, array)))
      }
  }

  object Release extends TapeReleaseFn {
    override def invoke(user_data: Long): Unit = Native.call[Recorded](user_data, always = true)(_.forget())
  }
}
