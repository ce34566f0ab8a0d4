// SPDX-License-Identifier: Apache-2.0
package cohort

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import com.sun.jna.Pointer

import cohort.abi.Callbacks._
import cohort.abi.CohortCustom._
import cohort.abi.CohortDescs.cohort_descs_add
import cohort.abi.Constants
import cohort.abi.Structs
import cohort.DType.DType

/** The computation of a custom operator, for one bound node. The arrays are the library's working memory: they must
  * not be kept or used after the call.
  */
abstract class CustomOp {

  /** Writes all of `outData`. */
  def forward(isTrain: Boolean, inData: IndexedSeq[NDArray], outData: IndexedSeq[NDArray],
    aux: IndexedSeq[NDArray]): Unit

  /** Writes the wanted ones of `inGrad`. */
  def backward(
      outGrad: IndexedSeq[NDArray],
      inData: IndexedSeq[NDArray],
      outData: IndexedSeq[NDArray],
      inGrad: IndexedSeq[Option[NDArray]],
      aux: IndexedSeq[NDArray]): Unit
}

/** The description of a custom operator's nodes. Unknown shapes and types are null. */
abstract class CustomOpProp {
  def listArguments(): IndexedSeq[String] = Vector("data")
  def listOutputs(): IndexedSeq[String] = Vector("output")
  def listAuxiliaryStates(): IndexedSeq[String] = Vector.empty

  /** Shapes of inputs, outputs and auxiliary states from those of the inputs. */
  def inferShape(inShape: IndexedSeq[Shape]): (IndexedSeq[Shape], IndexedSeq[Shape], IndexedSeq[Shape]) =
    (inShape, listOutputs().map(_ => inShape(0)), listAuxiliaryStates().map(_ => inShape(0)))

  def inferType(inType: IndexedSeq[DType]): (IndexedSeq[DType], IndexedSeq[DType], IndexedSeq[DType]) =
    (inType.map(_ => inType(0)), listOutputs().map(_ => inType(0)), listAuxiliaryStates().map(_ => inType(0)))

  def createOperator(ctx: Context): CustomOp
}

object CustomOp {

  /** Registers an operator for the whole process: for each node `sym.Custom(data, op_type = regName)`, `make` is
    * called with its attributes. Without `needTopGrad` it is a loss, whose backward needs no head gradients.
    */
  def register(regName: String, needTopGrad: Boolean = true)(make: Map[String, String] => CustomOpProp): Unit = {
    val callback = new Native.Callback(Native.needed(make, "make"))
    val op = Fields.sized(new Structs.CustomOp)(cohort_custom_op_init)
    op.declare = Declare
    op.infer_shape = InferShape
    op.infer_dtype = InferType
    op.create = Create
    op.forward = Forward
    op.backward = Backward
    op.release = Release
    op.ended = Ended
    op.user_data = callback.number
    op.ignores_head_grads = Native.bool(!needTopGrad)
    registered.put(callback.number, callback)
    try Native.check(cohort_custom_register(Native.in(regName, "regName"), op))
    catch {
      case error: Throwable =>
        registered.remove(callback.number)
        throw error
    }
  }

  /** Removes the name; existing nodes are not affected. */
  def unregister(regName: String): Unit = Native.check(cohort_custom_unregister(Native.in(regName, "regName")))

  private val registered = new ConcurrentHashMap[java.lang.Long, Native.Callback]
  private val nodes = new ConcurrentHashMap[java.lang.Long, CustomOp]
  private val lastNode = new AtomicLong

  private type Make = Map[String, String] => CustomOpProp

  private def prop(make: Make, keys: Pointer, values: Pointer, num: Long): CustomOpProp = {
    def list(pointer: Pointer) = if (num == 0) Array.empty[String] else pointer.getStringArray(0, num.toInt, "UTF-8")
    make(list(keys).zip(list(values)).toMap)
  }

  private def add(descs: Long, names: Seq[String]): Unit =
    for (name <- names)
      Native.check(cohort_descs_add(descs, Native.in(name, "names"), null, Constants.UNKNOWN_SHAPE,
        Constants.Dtype.NONE, null))

  private def addShapes(descs: Long, shapes: Seq[Shape]): Unit =
    for (shape <- shapes) {
      val lengths = if (shape == null) null else shape.longs
      val num = if (shape == null) Constants.UNKNOWN_SHAPE else lengths.length
      Native.check(cohort_descs_add(descs, null, lengths, num, Constants.Dtype.NONE, null))
    }

  private def addTypes(descs: Long, types: Seq[DType]): Unit =
    for (dtype <- types) {
      val code = if (dtype == null) Constants.Dtype.NONE else DType.code(dtype)
      Native.check(cohort_descs_add(descs, null, null, Constants.UNKNOWN_SHAPE, code, null))
    }

  /** Arrays that a callback was given, for the duration of a call. */
  private def lent(lists: Long*)(body: Seq[Vector[Option[NDArray]]] => Unit): Unit = {
    val arrays = lists.map(list => Arrays.read(list).map(_._2))
    try body(arrays)
    finally arrays.foreach(_.flatten.foreach(_.close()))
  }

  private object Declare extends CustomDeclareFn {
    override def invoke(keys: Pointer, values: Pointer, num: Long, inputs: Long, aux: Long, outputs: Long,
      user_data: Long): Int =
      Native.call[Make](user_data) { make =>
        val node = prop(make, keys, values, num)
        add(inputs, node.listArguments())
        add(aux, node.listAuxiliaryStates())
        add(outputs, node.listOutputs())
      }
  }

  private object InferShape extends CustomInferFn {
    override def invoke(keys: Pointer, values: Pointer, num: Long, known: Long, inputs: Long, aux: Long, outputs: Long,
        user_data: Long): Int =
      Native.call[Make](user_data) { make =>
        val (in, out, states) = prop(make, keys, values, num).inferShape(Descs.read(known).map(_.shape.orNull))
        addShapes(inputs, in)
        addShapes(aux, states)
        addShapes(outputs, out)
      }
  }

  private object InferType extends CustomInferFn {
    override def invoke(keys: Pointer, values: Pointer, num: Long, known: Long, inputs: Long, aux: Long, outputs: Long,
        user_data: Long): Int =
      Native.call[Make](user_data) { make =>
        val (in, out, states) = prop(make, keys, values, num).inferType(Descs.read(known).map(_.dtype.orNull))
        addTypes(inputs, in)
        addTypes(aux, states)
        addTypes(outputs, out)
      }
  }

  private object Create extends CustomCreateFn {
    override def invoke(keys: Pointer, values: Pointer, num: Long, context: Pointer, out_state: Pointer,
      user_data: Long): Int =
      Native.call[Make](user_data) { make =>
        val number = lastNode.incrementAndGet()
        nodes.put(number,
          prop(make, keys, values, num).createOperator(Context.of(context.getInt(0), context.getInt(4))))
        out_state.setLong(0, number)
      }
  }

  private object Forward extends CustomForwardFn {
    override def invoke(state: Long, inputs: Long, aux: Long, outputs: Long, is_train: Int, user_data: Long): Int =
      Native.call[Make](user_data) { _ =>
        lent(inputs, outputs, aux) { case Seq(in, out, states) =>
          nodes.get(state).forward(is_train != 0, in.flatten, out.flatten, states.flatten)
        }
      }
  }

  private object Backward extends CustomBackwardFn {
    override def invoke(state: Long, head_grads: Long, inputs: Long, aux: Long, outputs: Long, gradients: Long,
      user_data: Long): Int =
      Native.call[Make](user_data) { _ =>
        lent(head_grads, inputs, outputs, gradients, aux) { case Seq(heads, in, out, grads, states) =>
          nodes.get(state).backward(heads.flatten, in.flatten, out.flatten, grads, states.flatten)
        }
      }
  }

  private object Release extends CustomReleaseFn {
    override def invoke(state: Long, user_data: Long): Unit = nodes.remove(state)
  }

  private object Ended extends CustomEndFn {
    override def invoke(user_data: Long): Unit = registered.remove(user_data)
  }
}
