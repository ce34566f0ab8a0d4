// SPDX-License-Identifier: Apache-2.0
package cohort

import scala.language.dynamics

import cohort.abi.CohortArrays._
import cohort.abi.CohortOperator._

/** The library's lists of named arrays, for the duration of a call. */
private[cohort] object Arrays {

  /** A null collection is an empty list, and a null array an entry without one. */
  def of[A](arrays: Iterable[(String, NDArray)], what: String)(body: Long => A): A = {
    val handle = Native.long(cohort_arrays_create)
    try {
      if (arrays != null)
        for ((name, array) <- arrays)
          Handle.optional(array)(one => Native.check(cohort_arrays_add(handle, Native.inOrNull(name, what), one)))
      body(handle)
    } finally cohort_arrays_free(handle)
  }

  /** Reads the list that a call has returned, and frees it. */
  def take(handle: Long): Vector[(String, Option[NDArray])] =
    try read(handle)
    finally cohort_arrays_free(handle)

  def read(handle: Long): Vector[(String, Option[NDArray])] =
    Native.list(cohort_arrays_num(handle, _)) { i =>
      val array = Native.long(cohort_arrays_get(handle, i, _))
      (Native.text(cohort_arrays_name(handle, i, _)), if (array == 0) None else Some(new NDArray(array)))
    }

  def named(handle: Long): Map[String, NDArray] =
    take(handle).collect { case (name, Some(array)) => (name, array) }.toMap

  def save(path: String, arrays: Iterable[(String, NDArray)]): Unit =
    of(arrays, "data")(handle => Native.check(cohort_arrays_save(handle, Native.in(path, "fname"))))

  def saveNpy(path: String, array: NDArray): Unit =
    of(Seq((null, Native.needed(array, "data"))), "data") { handle =>
      Native.check(cohort_arrays_save_npy(handle, Native.in(path, "fname")))
    }

  def saveNpz(path: String, arrays: Iterable[(String, NDArray)]): Unit =
    of(arrays, "data")(handle => Native.check(cohort_arrays_save_npz(handle, Native.in(path, "fname"))))

  def saveBytes(arrays: Iterable[(String, NDArray)]): Array[Byte] = of(arrays, "data") { handle =>
    val bytes = new Array[Byte](Native.size(cohort_arrays_save_memory(handle, null, 0, _)))
    val size = new Array[Long](1)
    Native.check(cohort_arrays_save_memory(handle, java.nio.ByteBuffer.wrap(bytes), bytes.length, size))
    bytes
  }

  def loadBytes(bytes: Array[Byte], context: Context): Vector[(String, Option[NDArray])] = {
    val data = java.nio.ByteBuffer.wrap(Native.needed(bytes, "bytes"))
    take(Native.created(cohort_arrays_load_memory(data, bytes.length, Context.struct(context), _)))
  }

  def load(path: String, context: Context): Vector[(String, Option[NDArray])] =
    take(Native.created(cohort_arrays_load(Native.in(path, "fname"), Context.struct(context), _)))
}

/** Operators as methods that the registry resolves, not the compiler: an unknown one throws [[UnknownNameException]].
  * Arguments without a name, and those named like inputs of the operator, are inputs; `name` names the node; the
  * others are attributes.
  */
abstract class Operators[A] private[cohort] extends Dynamic {
  protected def isInput(value: Any): Boolean
  protected def applied(op: String, name: String, inputs: Seq[A], attrs: Seq[(String, Any)]): A

  def applyDynamic(op: String)(inputs: Any*): A = applyDynamicNamed(op)(Native.needed(inputs, "inputs").map(("", _)): _*)

  def applyDynamicNamed(op: String)(arguments: (String, Any)*): A = {
    for (one <- Native.needed(arguments, "arguments")) Native.needed(one, "arguments")
    val (inputs, attrs) = arguments.partition { case (key, value) => key == "" || key != "out" && isInput(value) }
    val flat = inputs.flatMap {
      case ("", list: Iterable[_]) => list.toSeq.map(("", _))
      case one                     => Seq(one)
    }
    for ((_, value) <- flat if !isInput(value))
      Native.refuse(s"$op: expected an input, found $value (attributes are given by name)", op)
    val (name, rest) = attrs.partition(_._1 == "name")
    applied(op, name.headOption.map(_._2.toString).orNull, inOrder(op, flat), rest)
  }

  // Named inputs are put at their positions.
  private def inOrder(op: String, inputs: Seq[(String, Any)]): Seq[A] =
    if (inputs.forall(_._1 == "")) inputs.map(_._2.asInstanceOf[A])
    else {
      val names = Operators.inputs(op)
      for ((name, _) <- inputs if name != "" && !names.contains(name))
        throw new UnknownNameException(s"$op: there is no input '$name', but ${names.mkString(", ")}", name)
      val named = inputs.filter(_._1 != "").toMap
      val others = inputs.filter(_._1 == "").map(_._2).iterator
      val placed = names.map(name => named.getOrElse(name, if (others.hasNext) others.next() else null))
      if (others.hasNext) Native.refuse(s"$op: more than ${names.length} inputs", op)
      val last = placed.lastIndexWhere(_ != null)
      placed.take(last + 1).map(_.asInstanceOf[A])
    }
}

/** The library's registry of operators. */
object Operators {

  /** The names of all operators. */
  def names: Vector[String] = Native.list(cohort_operator_num)(i => Native.text(cohort_operator_name(i, _)))

  /** Attributes of an operator: name, type, default ("" if it is required) and meaning. */
  def attributes(op: String): Vector[(String, String, String, String)] = {
    val num, out = new Array[Long](1)
    Native.check(cohort_operator_info(Native.in(op, "op"), out, null, num, null, null, null))
    Vector.tabulate(num(0).toInt) { i =>
      val parts = Array.fill(4)(new Array[Long](1))
      Native.check(cohort_operator_attr(op, i, parts(0), parts(1), parts(2), parts(3)))
      val texts = parts.map(part => Option(Native.textAt(part(0))).getOrElse(""))
      (texts(0), texts(1), texts(2), texts(3))
    }
  }

  /** The names of the inputs of an operator, as far as they have any. */
  def inputs(op: String): Vector[String] = {
    val num = new Array[Long](1)
    Native.check(cohort_operator_info(Native.in(op, "op"), null, null, null, num, null, null))
    Vector.tabulate(num(0).toInt)(i => Native.text(cohort_operator_input(op, i, _, null, null)))
  }

  /** The least and the largest valid number of each attribute, infinite if there is no bound. */
  def ranges(op: String): Vector[(Double, Double)] = Vector.tabulate(attributes(op).length) { i =>
    val low, high = new Array[Double](1)
    Native.check(cohort_operator_attr_range(op, i, low, high))
    (low(0), high(0))
  }

  /** Whether a gradient flows to each input. */
  def gradients(op: String): Vector[Boolean] =
    Vector.tabulate(inputs(op).length)(i => Native.int(cohort_operator_input_gradient(op, i, _)) != 0)

  /** The behaviour of an operator in a network that computes in a narrower type: `narrow` (computes in it), `follows`
    * (keeps the type of its inputs) or `own` (keeps the types of the network).
    */
  def precision(op: String): String =
    Vector("own", "narrow", "follows")(Native.int(cohort_operator_precision(Native.in(op, "op"), _)))

  /** The names of the outputs, with all attributes at their defaults. */
  def outputs(op: String): Vector[String] = {
    val num = new Array[Long](1)
    Native.check(cohort_operator_info(Native.in(op, "op"), null, null, null, null, num, null))
    Vector.tabulate(num(0).toInt)(i => Native.text(cohort_operator_output(op, i, _)))
  }

  /** The documentation of an operator. */
  def doc(op: String): String = {
    val out = new Array[Long](1)
    Native.check(cohort_operator_info(Native.in(op, "op"), null, out, null, null, null, null))
    Option(Native.textAt(out(0))).getOrElse("")
  }
}
