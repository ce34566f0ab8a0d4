// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortSymbol._
import cohort.abi.Constants.SymbolList
import cohort.DType.DType

/** A network, or a part of one. [[sym]] applies operators.
  *
  * {{{
  * val fc = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 10, name = "fc")
  * val net = sym.SoftmaxOutput(fc, name = "softmax")
  * assert(net.listArguments() == Vector("data", "fc_weight", "fc_bias", "softmax_label"))
  * }}}
  */
final class Symbol private[cohort] (address: Long)
    extends Handle(address, cohort_symbol_free, new Family)
    with Arithmetic[Symbol] {
  private def made(call: (Long, Array[Long]) => Long): Symbol =
    new Symbol(use(handle => Native.long(out => call(handle, out))))

  private def names(list: Int): Vector[String] = use { handle =>
    Native.list(cohort_symbol_num_names(handle, list, _))(i => Native.text(cohort_symbol_name_at(handle, list, i, _)))
  }

  def name: String = use(handle => Native.text(cohort_symbol_name(handle, _)))
  def listArguments(): Vector[String] = names(SymbolList.ARGUMENTS)
  def listOutputs(): Vector[String] = names(SymbolList.OUTPUTS)
  def listAuxiliaryStates(): Vector[String] = names(SymbolList.AUX)

  /** Arguments and auxiliary states. */
  def listInputs(): Vector[String] = names(SymbolList.INPUTS)

  /** Arguments whose values inference does not need: they affect the outputs only as the label of a loss. */
  def listLabels(): Vector[String] = names(SymbolList.LABELS)
  def numNodes: Int = use(handle => Native.size(cohort_symbol_num_nodes(handle, _)))

  /** One output. */
  def get(index: Int): Symbol = made(cohort_symbol_output(_, index, _))
  def get(name: String): Symbol = {
    val text = Native.in(name, "name")
    made(cohort_symbol_output_named(_, text, _))
  }
  def getInternals(): Symbol = made(cohort_symbol_internals)

  /** The inputs of its node; None for a variable. */
  def getChildren(): Option[Symbol] = {
    val found = use(handle => Native.long(cohort_symbol_children(handle, _)))
    if (found == 0) None else Some(new Symbol(found))
  }
  override def clone(): Symbol = made(cohort_symbol_copy)

  /** A copy with variables replaced by name. */
  def compose(inputs: Map[String, Symbol], name: String = null): Symbol = {
    val list = Native.needed(inputs, "inputs").toVector
    val keys = Native.texts(list.map(_._1), "inputs")
    Handle.addresses(list.map(_._2), "inputs") { symbols =>
      made(cohort_symbol_compose(_, keys, symbols, symbols.length, Native.inOrNull(name, "name"), _))
    }
  }

  // ---- attributes

  def attr(key: String): Option[String] = {
    val text = Native.in(key, "key")
    use(handle => Option(Native.text(cohort_symbol_attr(handle, text, _))))
  }

  /** All attributes of its node. */
  def listAttr(): Map[String, String] = attributes(all = false).map { case (_, key, value) => (key, value) }.toMap

  /** The attributes of all nodes, by node name. */
  def attrMap(): Map[String, Map[String, String]] =
    attributes(all = true).groupBy(_._1).map { case (node, found) => (node, found.map(a => (a._2, a._3)).toMap) }

  private def attributes(all: Boolean): Vector[(String, String, String)] = use { handle =>
    Native.list(cohort_symbol_num_attrs(handle, Native.bool(all), _)) { i =>
      val node, key, value = new Array[Long](1)
      Native.check(cohort_symbol_attr_at(handle, Native.bool(all), i, node, key, value))
      (Native.textAt(node(0)), Native.textAt(key(0)), Native.textAt(value(0)))
    }
  }

  def setAttr(attrs: (String, String)*): Unit = {
    val pairs = new Native.Attributes(attrs, "attributes")
    run(cohort_symbol_set_attrs(_, pairs.keys, pairs.words, pairs.num))
  }

  // ---- inference

  /** Shapes of arguments, outputs and auxiliary states, in order; null if they cannot all be inferred. */
  def inferShape(known: Map[String, Shape]): (IndexedSeq[Shape], IndexedSeq[Shape], IndexedSeq[Shape]) = {
    val (args, outputs, aux) =
      Descs.known(known, Map.empty) { descs => inferred(cohort_symbol_infer_shape(_, descs, 0, _, _, _, _)) }
    def shapes(list: Vector[Descs.Entry]) = list.map(_.shape.orNull)
    (shapes(args), shapes(outputs), shapes(aux))
  }

  def inferType(known: Map[String, DType]): (IndexedSeq[DType], IndexedSeq[DType], IndexedSeq[DType]) =
    types(known, partial = false)

  /** Like `inferType`, with the types that could be inferred, null for the others. */
  def inferTypePartial(known: Map[String, DType]): (IndexedSeq[DType], IndexedSeq[DType], IndexedSeq[DType]) =
    types(known, partial = true)

  private def types(known: Map[String, DType], partial: Boolean) = {
    val all = if (partial) 1 else 0
    val (args, outputs, aux) =
      Descs.known(Map.empty, known) { descs => inferred(cohort_symbol_infer_dtype(_, descs, all, _, _, _, _)) }
    def types(list: Vector[Descs.Entry]) = list.map(_.dtype.orNull)
    (types(args), types(outputs), types(aux))
  }

  private def inferred(call: (Long, Array[Int], Array[Long], Array[Long], Array[Long]) => Long) = {
    val args, outputs, aux = new Array[Long](1)
    run(call(_, new Array[Int](1), args, outputs, aux))
    (Descs.take(args(0)), Descs.take(outputs(0)), Descs.take(aux(0)))
  }

  // ---- files

  def toJson: String = use(handle => Native.text(cohort_symbol_to_json(handle, _)))
  def save(fname: String): Unit = {
    val path = Native.in(fname, "fname")
    run(cohort_symbol_save(_, path))
  }

  // ---- binding

  /** An executor on new arrays, for shapes given by name. */
  def simpleBind(ctx: Context = null, gradReq: String = "write", shapes: Map[String, Shape]): Executor =
    Executor.simpleBind(this, ctx, GradReq.Each(gradReq), shapes)

  // ---- arithmetic

  protected def withOther(word: String, other: Symbol): Symbol =
    sym(if (Set("add", "sub", "mul", "div")(word)) "elemwise_" + word else "_" + word, Seq(this, other))
  protected def withNumber(word: String, value: Float): Symbol = sym(s"_${word}_scalar", Seq(this), "scalar" -> value)

  override def toString: String = if (isClosed) "Symbol(closed)" else s"Symbol(${listOutputs().mkString(", ")})"
}

object Symbol {

  /** Comparisons without an operator sign: `==` compares references. */
  def equal(left: Symbol, right: Symbol): Symbol = sym("_equal", Seq(left, right))
  def equal(left: Symbol, value: Float): Symbol = sym("_equal_scalar", Seq(left), "scalar" -> value)
  def notEqual(left: Symbol, right: Symbol): Symbol = sym("_not_equal", Seq(left, right))
  def notEqual(left: Symbol, value: Float): Symbol = sym("_not_equal_scalar", Seq(left), "scalar" -> value)

  def Variable(name: String, attrs: (String, Any)*): Symbol = {
    val pairs = new Native.Attributes(attrs, "attributes")
    new Symbol(Native.long(cohort_symbol_variable(Native.in(name, "name"), pairs.keys, pairs.words, pairs.num, _)))
  }

  /** One symbol with all outputs of several. */
  def Group(symbols: Symbol*): Symbol = new Symbol(Handle.addresses(symbols, "symbols") { list =>
    Native.long(cohort_symbol_group(list, list.length, _))
  })

  /** Reads a network in MXNet's JSON. */
  def load(fname: String): Symbol = new Symbol(Native.long(cohort_symbol_load(Native.in(fname, "fname"), _)))

  def loadJson(json: String): Symbol = {
    val bytes = Native.needed(json, "json").getBytes(java.nio.charset.StandardCharsets.UTF_8)
    new Symbol(Native.long(cohort_symbol_from_json(bytes, bytes.length, _)))
  }

  private[cohort] def create(op: String, name: String, inputs: Seq[Symbol], attrs: Iterable[(String, Any)]): Symbol = {
    val pairs = new Native.Attributes(attrs, "attributes")
    Handle.addresses(inputs, "inputs", nulls = true) { list =>
      new Symbol(Native.long(cohort_symbol_create(Native.in(op, "op"), Native.inOrNull(name, "name"), pairs.keys,
        pairs.words,
        pairs.num, list, null, list.length, _)))
    }
  }
}

/** Operators as parts of networks: `sym.Convolution(data, kernel = (3, 3), num_filter = 20, name = "conv1")`. Missing
  * inputs become variables. `sym(...)` takes the operator's name as text.
  */
object sym extends Operators[Symbol] {
  protected def isInput(value: Any): Boolean = value.isInstanceOf[Symbol]

  protected def applied(op: String, name: String, inputs: Seq[Symbol], attrs: Seq[(String, Any)]): Symbol =
    Symbol.create(op, name, inputs, attrs)

  def apply(op: String, inputs: Seq[Symbol], attrs: (String, Any)*): Symbol = Symbol.create(op, null, inputs, attrs)
}
