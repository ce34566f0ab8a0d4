// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortCheckpoint._

/** Checkpoints in MXNet's two files, `PREFIX-symbol.json` and `PREFIX-0007.params`. */
object Model {

  /** Writes a checkpoint; without a symbol the parameters only. */
  def saveCheckpoint(
      prefix: String,
      epoch: Int,
      symbol: Symbol,
      argParams: Map[String, NDArray],
      auxParams: Map[String, NDArray]): Unit =
    Arrays.of(Native.needed(argParams, "argParams"), "argParams") { args =>
      Arrays.of(auxParams, "auxParams") { aux =>
        Handle.optional(symbol)(net => Native.check(cohort_checkpoint_save(Native.in(prefix, "prefix"), epoch, net,
          args, aux)))
      }
    }

  /** Symbol, parameters and auxiliary states. With `mapFile` large arrays stay in a mapping of the file and are read
    * when they are used; it must not be changed or truncated in place as long as they exist.
    */
  def loadCheckpoint(prefix: String, epoch: Int, mapFile: Boolean = false)
      : (Symbol, Map[String, NDArray], Map[String, NDArray]) = {
    val symbol, args, aux = new Array[Long](1)
    Native.in(prefix, "prefix")
    Garbage.withRoom {
      Native.check(
        if (mapFile) cohort_checkpoint_map(prefix, epoch, symbol, args, aux)
        else cohort_checkpoint_load(prefix, epoch, symbol, args, aux))
    }
    (new Symbol(symbol(0)), Arrays.named(args(0)), Arrays.named(aux(0)))
  }
}

/** A network for inference. One call at a time uses it; [[copy]] makes one for another thread, which shares the
  * parameters and runs in parallel.
  *
  * {{{
  * val net = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 1, no_bias = true, name = "fc")
  * val weights = Map("fc_weight" -> NDArray.array(Array(1f, 10f), Shape(1, 2)))
  * val predictor = new Predictor(net, weights, shapes = Map("data" -> Shape(1, 2)))
  * assert(predictor.predict(Array(3f, 4f)).toSeq == Seq(43f))
  * }}}
  */
final class Predictor(
    symbol: Symbol,
    argParams: Map[String, NDArray],
    auxParams: Map[String, NDArray] = Map.empty,
    shapes: Map[String, Shape],
    context: Context = Context.cpu(),
    numThreads: Int = 0,
    precision: Precision = Precision())
    extends Whole {
  private var bound = Native.needed(shapes, "shapes")
  private var executor = Scope.outside(bind())
  Scope.note(closing)

  private def bind(): Executor = {
    val names = Native.needed(symbol, "symbol").listArguments()
    val parameters = Native.needed(argParams, "argParams") ++ Native.needed(auxParams, "auxParams")
    for ((name, array) <- parameters) Native.needed(array, name)
    for (name <- shapes.keys if !names.contains(name))
      throw new UnknownNameException(
        s"inputs: the network has no argument '$name'; it has: ${names.mkString(", ")}", name)
    val notRead = symbol.listLabels()
    val missing =
      names.filterNot(name => shapes.contains(name) || argParams.contains(name) || notRead.contains(name)) ++
      symbol.listAuxiliaryStates().filterNot(auxParams.contains)
    if (missing.nonEmpty)
      throw new UnknownNameException(s"parameters: expected all, found none called ${missing.mkString(", ")}",
        missing.head)
    val bindable = argParams.filter { case (name, _) => names.contains(name) && !shapes.contains(name) }
    val (found, _, _) = symbol.inferShape(bindable.map { case (name, array) => (name, array.shape) } ++ shapes)
    val states = symbol.listAuxiliaryStates()
    val (dtypes, _, _) = symbol.inferTypePartial(
      (bindable ++ auxParams.filter { case (name, _) => states.contains(name) }).map { case (name, array) =>
        (name, array.dtype) })
    val args = (names, found, dtypes).zipped.toVector.map { case (name, shape, dtype) =>
      val made = () => NDArray.zeros(shape, context, Option(dtype).getOrElse(DType.Float32))
      (name, bindable.get(name).map(_.asInContext(context)).getOrElse(made()))
    }
    val aux = auxParams.map { case (name, array) => (name, array.asInContext(context)) }
    val made = Executor.bind(symbol, context, args.toMap, auxStates = aux, numThreads = numThreads,
      precision = precision)
    // From now on the executor owns these, but the parameters are the caller's.
    for ((name, array) <- args if !argParams.get(name).exists(_ eq array)) array.close()
    for ((name, array) <- aux if !auxParams.get(name).exists(_ eq array)) array.close()
    made
  }

  /** The outputs for inputs by name. A batch of another length is accepted, too. */
  def predict(inputs: Map[String, NDArray]): IndexedSeq[NDArray] = synchronized {
    load(inputs)
    executor.forward()
    val outputs = executor.outputs
    try outputs.map(_.copy())
    finally outputs.foreach(_.close())
  }

  /** Lets a calibration observe the network on these inputs. It has to compute in float32. */
  def observe(calibration: Calibration, inputs: Map[String, NDArray]): Unit = synchronized {
    Native.needed(calibration, "calibration")
    load(inputs)
    calibration.observe(executor)
  }

  // Copies inputs to the executor by name, after giving it their shapes.
  private def load(inputs: Map[String, NDArray]): Unit = {
    Native.needed(inputs, "inputs")
    if (inputs.keySet != bound.keySet)
      throw new UnknownNameException(
        s"inputs: expected ${bound.keys.mkString(", ")}, found ${inputs.keys.mkString(", ")}",
        (inputs.keySet ++ bound.keySet).find(name => !inputs.contains(name) || !bound.contains(name)).get)
    val found = inputs.map { case (name, array) => (name, Native.needed(array, name).shape) }
    if (found != bound) {
      val other = Scope.outside(executor.reshape(partialShaping = true, allowUpSizing = true, shapes = found))
      executor.close()
      executor = other
      bound = found
    }
    executor.setInputs(inputs)
  }

  /** The first output for the only input, which has the shape given at creation except for the batch size. */
  def predict(input: Array[Float]): Array[Float] = {
    val (name, shape) = bound.head
    if (bound.size != 1) Native.refuse(s"predict: expected ${bound.size} inputs, found one", "inputs")
    val row = shape.drop(1).product
    if (row == 0 || Native.needed(input, "input").length % row != 0)
      throw new ShapeException(s"predict: ${input.length} numbers are no batch of shape $shape", name)
    val array = NDArray.array(input, Shape((input.length / row).toInt) ++ shape.drop(1))
    try {
      val outputs = predict(Map(name -> array))
      try outputs.head.toArray
      finally outputs.foreach(_.close())
    } finally array.close()
  }

  /** Another predictor on the same parameters, for another thread. */
  def copy(): Predictor = new Predictor(symbol, argParams, auxParams, bound, context, numThreads, precision)

  override def isClosed: Boolean = synchronized(executor.isClosed)
  override def close(): Unit = synchronized(executor.close())
}

object Predictor {

  /** From a checkpoint; `shapes` are those of its inputs, `mapFile` as in [[Model.loadCheckpoint]]. */
  def load(prefix: String, epoch: Int, shapes: Map[String, Shape], context: Context = Context.cpu(),
    numThreads: Int = 0, precision: Precision = Precision(), mapFile: Boolean = false): Predictor = {
    // They belong to the predictor and its copies, not to the caller's scope.
    val (symbol, args, aux) = Scope.outside(Model.loadCheckpoint(prefix, epoch, mapFile))
    new Predictor(symbol, args, aux, shapes, context, numThreads, precision)
  }
}
