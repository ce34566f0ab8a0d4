// SPDX-License-Identifier: Apache-2.0
package cohort

/** An iterable over batches: `for (batch <- iter)`, from the start each time. */
trait DataIter extends Iterable[DataBatch] {
  def batchSize: Int
  def provideData: IndexedSeq[DataDesc]
  def provideLabel: IndexedSeq[DataDesc]
  def defaultBucketKey: AnyRef = null
}

/** Rows of Java arrays in batches. If the last batch is not full, `lastBatchHandle` "pad" fills it up with the first
  * rows, whose number is the batch's `pad`; "discard" leaves it out. With a seed the rows are shuffled, differently
  * each time.
  *
  * {{{
  * val iter = new NDArrayIter(Array(1f, 2f, 3f, 4f, 5f, 6f), Shape(2), Array(0f, 1f, 0f), batchSize = 2)
  * assert(iter.map(_.data(0).toArray.toSeq).toSeq == Seq(Seq(1f, 2f, 3f, 4f), Seq(5f, 6f, 1f, 2f)))
  * assert(iter.map(_.pad).toSeq == Seq(0, 1))
  * }}}
  */
final class NDArrayIter(
    data: Array[Float],
    rowShape: Shape,
    label: Array[Float],
    val batchSize: Int,
    dataName: String = "data",
    labelName: String = "softmax_label",
    shuffleSeed: Option[Long] = None,
    lastBatchHandle: String = "pad")
    extends DataIter {
  private val row = Native.toInt(Native.needed(rowShape, "rowShape").product, "row")
  private val num = if (row == 0) 0 else Native.needed(data, "data").length / row
  if (row == 0 || data.length % row != 0 || Native.needed(label, "label").length != num)
    throw new ShapeException(s"data: ${data.length} numbers in rows of $rowShape, ${label.length} labels", dataName)
  if (batchSize < 1 || batchSize > num) Native.refuse(s"batchSize: expected 1 to $num, found $batchSize", "batchSize")
  if (lastBatchHandle != "pad" && lastBatchHandle != "discard")
    Native.refuse(s"lastBatchHandle: expected pad or discard, found $lastBatchHandle", "lastBatchHandle")
  private val random = shuffleSeed.map(seed => new java.util.Random(seed))
  private val order = Array.range(0, num)

  override def provideData: IndexedSeq[DataDesc] = Vector(DataDesc(dataName, Shape(batchSize) ++ rowShape))
  override def provideLabel: IndexedSeq[DataDesc] = Vector(DataDesc(labelName, Shape(batchSize), layout = "N"))

  /** The number of batches. */
  val numBatches: Int = num / batchSize + (if (lastBatchHandle == "pad" && num % batchSize != 0) 1 else 0)

  override def iterator: Iterator[DataBatch] = {
    random.foreach(shuffle)
    val rows = order.clone()
    Iterator.range(0, numBatches).map { i =>
      val own = rows.slice(i * batchSize, (i + 1) * batchSize)
      batch(own ++ rows.take(batchSize - own.length), batchSize - own.length)
    }
  }

  private def shuffle(random: java.util.Random): Unit =
    for (i <- num - 1 to 1 by -1) {
      val j = random.nextInt(i + 1)
      val kept = order(i)
      order(i) = order(j)
      order(j) = kept
    }

  private def batch(rows: Array[Int], pad: Int): DataBatch = {
    val values = new Array[Float](batchSize * row)
    for (i <- rows.indices) System.arraycopy(data, rows(i) * row, values, i * row, row)
    DataBatch(
      Vector(NDArray.array(values, Shape(batchSize) ++ rowShape)),
      Vector(NDArray.array(rows.map(label(_)), Shape(batchSize))),
      index = rows.map(_.toLong).toVector,
      pad = pad)
  }
}

/** Trains a network like MXNet's Module: it binds a group, keeps its parameters when it is bound again, and follows
  * batches of other shapes.
  *
  * {{{
  * val fc = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 2, name = "fc")
  * val module = new Module(sym.SoftmaxOutput(fc, name = "softmax"), contexts = Array(Context.cpu(0), Context.cpu(1)))
  * val points = Array(-2f, -1f, 1f, 2f)
  * val train = new NDArrayIter(points, Shape(1), points.map(x => if (x > 0) 1f else 0f), batchSize = 4)
  * module.fit(train, numEpoch = 20, optimizer = Optimizer("sgd", "learning_rate" -> 1.0))
  * assert(module.score(train, EvalMetric("acc")) == Vector("accuracy" -> 1.0))
  * }}}
  */
final class Module(
    val symbol: Symbol,
    dataNames: IndexedSeq[String] = Vector("data"),
    labelNames: IndexedSeq[String] = Vector("softmax_label"),
    contexts: Array[Context] = Array(Context.cpu()),
    workLoadList: IndexedSeq[Float] = null,
    fixedParamNames: Set[String] = Set.empty,
    logger: (LogLevel.LogLevel, String) => Unit = null,
    precision: Precision = Precision())
    extends Whole {
  for (name <- Native.needed(dataNames, "dataNames") if !Native.needed(symbol, "symbol").listArguments().contains(name))
    throw new UnknownNameException(s"dataNames: the network has no '$name'", name)

  /** All arguments but data and labels. */
  val paramNames: IndexedSeq[String] =
    symbol.listArguments()
      .filterNot(name => dataNames.contains(name) || Native.needed(labelNames, "labelNames").contains(name))

  private var group: Option[DataParallelExecutorGroup] = None
  private var hasParams = false
  private var optimizer: Option[(Optimizer, UpdateMode.UpdateMode)] = None

  Scope.note(closing)

  /** The bound group. */
  def execGroup: DataParallelExecutorGroup =
    group.getOrElse(throw new StateException("the module is not bound", "bind"))
  def binded: Boolean = group.isDefined

  /** Binds a group, unless one is bound. */
  def bind(
      dataShapes: IndexedSeq[DataDesc],
      labelShapes: Option[IndexedSeq[DataDesc]] = None,
      forTraining: Boolean = true,
      inputsNeedGrad: Boolean = false,
      forceRebind: Boolean = false,
      gradReq: String = "write"): Unit =
    if (group.isEmpty || forceRebind) {
      val made = Scope.outside(
        new DataParallelExecutorGroup.Builder(symbol, contexts, paramNames)
          .setWorkLoadList(workLoadList)
          .setDataShapes(dataShapes)
          .setLabelShapes(Native.needed(labelShapes, "labelShapes").orNull)
          .setForTraining(forTraining)
          .setInputsNeedGrad(inputsNeedGrad)
          .setFixedParamNames(fixedParamNames)
          .setStrictNames(true)
          .setGradReq(gradReq)
          .setRounding(Rounding.HalfEven)
          .setLogger(logger)
          .setPrecision(precision)
          .build())
      for (bound <- group) {
        Scope {
          val (args, aux) = bound.copyParams()
          made.setParams(args, aux)
        }
        bound.close()
      }
      group = Some(made)
    }

  // ---- parameters

  /** Fills all parameters with an initializer, then sets the given ones; with `allowMissing` the others keep their
    * initial values, with `allowExtra` those that the network does not have are ignored.
    */
  def initParams(
      initializer: Initializer,
      argParams: Map[String, NDArray] = null,
      auxParams: Map[String, NDArray] = null,
      allowMissing: Boolean = false,
      allowExtra: Boolean = false): Unit = {
    if (argParams == null || allowMissing) execGroup.initParams(initializer)
    if (argParams != null) execGroup.assignParams(argParams, auxParams, allowMissing, allowExtra)
    hasParams = true
  }

  /** Sets all parameters, or with `allowMissing` some. */
  def setParams(
      argParams: Map[String, NDArray],
      auxParams: Map[String, NDArray],
      allowMissing: Boolean = false,
      allowExtra: Boolean = false): Unit = {
    execGroup.assignParams(argParams, auxParams, allowMissing, allowExtra)
    hasParams = true
  }

  /** The means over the devices: parameters and auxiliary states. */
  def getParams: (Map[String, NDArray], Map[String, NDArray]) = execGroup.copyParams()

  /** Writes a checkpoint. */
  def saveCheckpoint(prefix: String, epoch: Int): Unit = Scope {
    val (args, aux) = getParams
    Model.saveCheckpoint(prefix, epoch, symbol, args, aux)
  }

  // ---- training

  /** Sets the optimizer; its `rescale_grad` becomes 1 / batch size, unless it was set. If it has loaded states, training
    * goes on as it would have when they were saved, with the same bits (`DataParallelExecutorGroup.resume`).
    */
  def initOptimizer(optimizer: Optimizer): Unit = {
    val batch = execGroup.batchSize
    Native.needed(optimizer, "optimizer").useSymbol(symbol)
    if (optimizer.get("rescale_grad") == 1 && batch > 0) optimizer.set("rescale_grad", 1.0 / batch)
    val mode = if (contexts.length > 1) UpdateMode.OnStore else UpdateMode.NoStore
    // A store starts from one set of parameters.
    if (mode == UpdateMode.OnStore) Scope {
      val (args, aux) = execGroup.copyParams()
      execGroup.setParams(args, aux)
    }
    execGroup.resume(optimizer)
    this.optimizer = Some((optimizer, mode))
  }

  /** Runs a batch; the group is reshaped if the batch has other shapes. */
  def forward(dataBatch: DataBatch, isTrain: Option[Boolean] = None): Unit = {
    val (bound, batch) = (execGroup, Native.needed(dataBatch, "dataBatch"))
    val data = shapesOf(bound.dataShapes, batch.data)
    if (data != bound.dataShapes)
      bound.reshape(data, bound.labelShapes.filter(_ => batch.label != null).map(shapesOf(_, batch.label)))
    bound.forward(batch, isTrain)
  }

  // Descriptors with the shapes of a batch; the group refuses a wrong number of arrays.
  private def shapesOf(descs: IndexedSeq[DataDesc], arrays: IndexedSeq[NDArray]): IndexedSeq[DataDesc] =
    if (arrays == null || arrays.length != descs.length) descs
    else descs.zip(arrays).map { case (desc, array) => desc.copy(shape = Native.needed(array, "data").shape) }

  def backward(outGrads: Array[NDArray] = null): Unit = execGroup.backward(outGrads)

  def update(): Unit = {
    val (rule, mode) = optimizer.getOrElse(throw new StateException("the module has no optimizer", "initOptimizer"))
    execGroup.update(rule, mode)
  }

  def updateMetric(evalMetric: EvalMetric, labels: IndexedSeq[NDArray]): Unit =
    execGroup.updateMetric(evalMetric, labels)
  def getOutputsMerged(): IndexedSeq[NDArray] = execGroup.getOutputsMerged()
  def getOutputs(): IndexedSeq[IndexedSeq[NDArray]] = execGroup.getOutputs()
  def getInputGradsMerged(): IndexedSeq[NDArray] = execGroup.getInputGradsMerged()
  def installMonitor(monitor: Monitor): Unit = execGroup.installMonitor(monitor)

  /** Trains on an iterator: first binds and fills parameters if that has not been done. `epochEnd` is called with the
    * number of each epoch and the metrics of both data sets, and returns whether to continue.
    */
  def fit(
      trainData: DataIter,
      evalData: Option[DataIter] = None,
      numEpoch: Int = 1,
      evalMetric: EvalMetric = null,
      optimizer: Optimizer = null,
      initializer: Initializer = null,
      epochEnd: (Int, IndexedSeq[(String, Double)], IndexedSeq[(String, Double)]) => Boolean =
        (_, _, _) => true): Unit = {
    bind(Native.needed(trainData, "trainData").provideData,
      Some(trainData.provideLabel).filter(list => list != null && list.nonEmpty))
    if (!hasParams) initParams(if (initializer == null) Initializer("uniform", 0) else initializer)
    if (optimizer != null || this.optimizer.isEmpty)
      initOptimizer(if (optimizer == null) Optimizer("sgd", "learning_rate" -> 0.01) else optimizer)
    val metric = if (evalMetric == null) EvalMetric("acc") else evalMetric
    var (epoch, goesOn) = (0, true)
    while (goesOn && epoch < numEpoch) {
      metric.reset()
      trainData.foreach { batch =>
        forward(batch, Some(true))
        backward()
        update()
        updateMetric(metric, batch.label)
        Module.close(batch)
      }
      val train = metric.get
      goesOn = epochEnd(epoch, train, evalData.fold(IndexedSeq.empty[(String, Double)])(score(_, metric)))
      epoch += 1
    }
  }

  /** Metrics on other data; rows that only pad a batch count as well. */
  def score(evalData: DataIter, evalMetric: EvalMetric): IndexedSeq[(String, Double)] = {
    Native.needed(evalMetric, "evalMetric").reset()
    Native.needed(evalData, "evalData").foreach { batch =>
      forward(batch, Some(false))
      updateMetric(evalMetric, batch.label)
      Module.close(batch)
    }
    evalMetric.get
  }

  override def isClosed: Boolean = group.exists(_.isClosed)
  override def close(): Unit = group.foreach(_.close())
}

private[cohort] object Module {
  def close(batch: DataBatch): Unit = {
    batch.data.foreach(_.close())
    if (batch.label != null) batch.label.foreach(_.close())
  }
}
