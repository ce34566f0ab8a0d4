// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File

import cohort._
import cohort.test.Nets._
import org.junit.{Assert, Test}

/** Metrics, optimizers, monitors, tapes and custom operators. */
final class TrainingTest extends Case {
  private def labels = Vector(array(Shape(2))(0, 1))
  private def preds = Vector(array(Shape(2, 2))(0.9f, 0.1f, 0.8f, 0.2f))

  @Test def `metrics, composite ones and functions`(): Unit = {
    val own = EvalMetric.custom("own")((label, pred) => (label.toArray.sum.toDouble, pred.shape(0).toDouble))
    val all = EvalMetric.composite(EvalMetric("acc"), EvalMetric("top_k_accuracy", "top_k" -> 2), own)
    all.update(labels, preds)
    equal(Vector("accuracy" -> 0.5, "top_k_accuracy_2" -> 1.0, "own" -> 0.5), all.get)
    equal((3, 0.5), (all.numChildren, all.getMetric(2).value))
    all.resetLocal()
    equal((true, 0.5), (all.value.isNaN, all.getGlobal.head._2))
    val named = EvalMetric("acc").setNames(Vector("y"), Vector("p"))
    named.update(Map("x" -> labels(0), "y" -> labels(0)), Map("p" -> preds(0)))
    equal(0.5, named.value)
    refused(classOf[InvalidArgumentException])(all.update(labels, Vector.empty))
  }

  @Test def `precision is what the library takes`(): Unit = {
    val net = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 1, no_bias = true, name = "fc")
    def bind(precision: Precision) =
      Executor.simpleBind(net, shapes = Map("data" -> Shape(1, 2)), precision = precision).forward()
    bind(Precision(DType.BFloat16, float32Names = Seq("fc"), tf32 = true))
    refused(classOf[InvalidArgumentException], "compute_dtype")(bind(Precision(DType.Int32)))
    refused(classOf[UnsupportedException], "float16")(bind(Precision(DType.Float16)))
    refused(classOf[UnknownNameException], "nobody")(bind(Precision(DType.BFloat16, narrowNames = Seq("nobody"))))
    refused(classOf[InvalidArgumentException], "an executor takes no lossScale")(bind(Precision(lossScale = 2)))
    val precision = Precision(DType.BFloat16, Seq("FullyConnected"), backwardOnce = true, lossScale = 1024,
      lossScaleWindow = 10, gradientSum = DType.BFloat16)
    val group = new DataParallelExecutorGroup.Builder(net, Array(Context.cpu(0), Context.cpu(1)), Vector("fc_weight"))
      .setDataShapes(Vector(DataDesc("data", Shape(4, 2)))).setPrecision(precision).build()
    group.forward(DataBatch(Vector(NDArray.ones(Shape(4, 2)))), isTrain = Some(true))
    group.backward(Array(NDArray.ones(Shape(4, 1))))
    near(group.gradArrays(0)(0).get.toArray, 2048, 2048)
    refused(classOf[StateException])(group.backward(Array(NDArray.ones(Shape(4, 1)))))
    group.update(Optimizer("sgd", "learning_rate" -> 1.0))
    near(group.paramArrays(0)(0).toArray, -4, -4)
    refused(classOf[InvalidArgumentException], "gradient_sum_dtype") {
      new Module(net, labelNames = Vector.empty, precision = Precision(gradientSum = DType.Int8))
        .bind(Vector(DataDesc("data", Shape(4, 2))))
    }
  }

  @Test def `training that is saved goes on with the same bits`(): Unit = {
    val fc = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 8, name = "fc")
    val dropped = sym.Dropout(sym.BatchNorm(fc, fix_gamma = false, name = "bn"), p = 0.5, name = "drop")
    val net = sym.SoftmaxOutput(sym.FullyConnected(dropped, num_hidden = 2, name = "out"), name = "softmax")
    val train = new NDArrayIter(Array.tabulate(48)(i => i % 7 - 3f), Shape(4), Array.tabulate(12)(i => i % 2f), 12)
    def module = new Module(net, contexts = Array(Context.cpu(0), Context.cpu(1)), precision = Precision(keepDeviceAux = true))
    def adam = Optimizer("adam", "learning_rate" -> 0.1)
    def bits(fitted: Module) = {
      val (args, aux) = fitted.getParams
      (args.toSeq ++ aux).sortBy(_._1).map { case (name, array) => name -> array.toArray.toSeq }
    }
    val (whole, part, rest) = (module, module, module)
    whole.fit(train, numEpoch = 5, optimizer = adam)
    val (before, after) = (adam, adam)
    part.fit(train, numEpoch = 2, optimizer = before)
    after.setStates(before.getStates)
    rest.bind(train.provideData, Some(train.provideLabel))
    val (args, aux) = part.getParams
    rest.initParams(Initializer("uniform", 0), args, aux)
    rest.fit(train, numEpoch = 3, optimizer = after)
    Assert.assertEquals(bits(whole), bits(rest))
  }

  @Test def `a group takes no wrong names and stops at numbers that are not finite`(): Unit = {
    def builder = new DataParallelExecutorGroup.Builder(linear(), two, Vector("fc_weight"))
      .setDataShapes(Vector(DataDesc("data", Shape(4, 2))))
    refused(classOf[UnknownNameException], "'fc_weight'")(builder.setFixedParamNames(Set("fc_wieght")).setStrictNames(true).build())
    val wrong = DataBatch(Vector(array(Shape(4, 2))(1, Float.PositiveInfinity, 1, 1, 1, 1, 1, 1)))
    def run(group: DataParallelExecutorGroup): Unit = {
      group.forward(wrong, isTrain = Some(false))
      group.waitToFinish()
    }
    val (stops, watched) = (builder.setStopIfNotFinite(true).build(), builder.build())
    for (group <- Seq(stops, watched)) group.setParams(Map("fc_weight" -> NDArray.ones(Shape(1, 2))), null)
    refused(classOf[ExecutionException], "fc_output")(run(stops))
    run(watched)
    val monitor = new Monitor(1, pattern = "nothing", stopIfNotFinite = true)
    monitor.install(watched)
    monitor.tic()
    refused(classOf[ExecutionException], "fc_output")(run(watched))
  }

  @Test def `a random state is read and set`(): Unit = {
    val drop = sym.Dropout(Symbol.Variable("data"), name = "drop")
    val group = new DataParallelExecutorGroup.Builder(drop, two, Vector.empty)
      .setDataShapes(Vector(DataDesc("data", Shape(4, 2))))
      .build()
    val state = group.getRandomState
    def draw() = {
      group.setRandomState(state)
      group.forward(DataBatch(Vector(NDArray.ones(Shape(4, 2)))), isTrain = Some(true))
      group.getOutputs()(0)(0).toArray.toSeq
    }
    equal(draw(), draw())
    refused(classOf[FormatException])(group.setRandomState(state.tail))
    val executor = drop.simpleBind(shapes = Map("data" -> Shape(8, 8)), gradReq = "null")
    val before = executor.getRandomState
    def drawn() = {
      executor.setRandomState(before)
      executor.forward(isTrain = true, Map("data" -> NDArray.ones(Shape(8, 8))))
      executor.outputs(0).toArray.toSeq
    }
    equal(drawn(), drawn())
  }

  @Test def `cheap values are made again`(): Unit = {
    val net = Seq("a", "b", "c").foldLeft(Symbol.Variable("data")) { (below, name) =>
      sym.LeakyReLU(sym.FullyConnected(below, num_hidden = 8, no_bias = true, name = name), act_type = "gelu")
    }
    def planned(recompute: Boolean) = {
      val precision = Precision(recompute = recompute)
      val executor = Executor.simpleBind(net, shapes = Map("data" -> Shape(512, 8)), precision = precision)
      executor.forward(isTrain = true)
      executor.memory.planned
    }
    Assert.assertTrue(planned(recompute = true) < planned(recompute = false))
  }

  @Test def `the last batch is filled up or left out`(): Unit = {
    def iter(handle: String) =
      new NDArrayIter(Array(1f, 2f, 3f, 4f, 5f), Shape(1), Array(0f, 1f, 2f, 3f, 4f), batchSize = 2, lastBatchHandle = handle)
    val filled = iter("pad").toVector
    equal(Vector(Vector(1f, 2f), Vector(3f, 4f), Vector(5f, 1f)), filled.map(_.data(0).toArray.toVector))
    equal((Vector(0, 0, 1), Vector(4L, 0L), 3), (filled.map(_.pad), filled(2).index, iter("pad").numBatches))
    near(filled(2).label(0).toArray, 4, 0)
    equal(Vector(0, 0), iter("discard").map(_.pad).toVector)
    refused(classOf[InvalidArgumentException], "expected pad or discard, found roll_over")(iter("roll_over"))
  }

  @Test def `a metric's function that throws is thrown by the update`(): Unit = {
    val metric = EvalMetric.custom("fails")((_, _) => throw new NoSuchFieldException("mine"))
    refused(classOf[NoSuchFieldException], "mine")(metric.update(labels, preds))
    val group = linearGroup()
    refused(classOf[NumberFormatException], "later") {
      group.setMonitorCallback((_, _) => throw new NumberFormatException("later"))
      group.forward(linearBatch)
      group.waitToFinish()
    }
    group.setMonitorCallback(null)
    group.forward(linearBatch)
    near(group.getOutputsMerged()(0).toArray, 21, 43, 65, 87)
  }

  @Test def `a checkpoint of MXNet's is loaded, asked and written`(): Unit = inFolder { folder =>
    val from = new File(root, "tests/golden/group/mlp_1dev")
    val prefix = new File(folder, "net").getPath
    for ((name, to) <- Seq("symbol.json" -> "-symbol.json", "init.params" -> "-0007.params"))
      java.nio.file.Files.copy(new File(from, name).toPath, new File(prefix + to).toPath)
    val data = NDArray.load2Map(new File(from, "inputs.params").getPath)("data0").toArray
    val expected = NDArray.load2Map(new File(from, "expected.params").getPath)("s005.values.0").toArray
    near(Predictor.load(prefix, 7, Map("data" -> Shape(8, 6))).predict(data), expected.toSeq: _*)
    val (net, args, aux) = Model.loadCheckpoint(prefix, 7)
    equal((6, 0), (args.size, aux.size))
    Model.saveCheckpoint(prefix, 8, net, args, aux)
    near(Predictor.load(prefix, 8, Map("data" -> Shape(8, 6))).predict(data), expected.toSeq: _*)
    refused(classOf[FileException], "-0009.params")(Model.loadCheckpoint(prefix, 9))
  }

  @Test def `optimizers have settings, states and schedules`(): Unit = inFolder { folder =>
    val sgd = Optimizer("sgd", "learning_rate" -> 0.5, "momentum" -> 0.9)
    val weight = NDArray.ones(Shape(2))
    sgd.update("w", weight, NDArray.ones(Shape(2)))
    near(weight.toArray, 0.5f, 0.5f)
    val states = sgd.getStates
    sgd.saveStates(new File(folder, "s").getPath)
    sgd.update("w", weight, NDArray.ones(Shape(2)))
    near(weight.toArray, -0.45f, -0.45f)
    sgd.setStates(states)
    sgd.loadStates(new File(folder, "s").getPath)
    equal((1.0, 0.5, 0.9), (sgd.get("num_update"), sgd.learningRate, sgd.get("momentum")))
    sgd.setMult("w", lrMult = 0)
    equal(0.0, sgd.mult("w")._1)
    sgd.set("learning_rate", 1).setLrSchedule("factor", "step" -> 1, "factor" -> 0.1)
    refused(classOf[FormatException])(sgd.setStates(Array[Byte](1, 2, 3)))
    refused(classOf[UnknownNameException])(sgd.get("speed"))
  }

  @Test def `initializers fill by name`(): Unit = {
    val arrays = Map("fc_weight" -> NDArray.zeros(Shape(4, 4)), "fc_bias" -> NDArray.ones(Shape(4)))
    Initializer("xavier", 1).fill(arrays)
    equal((true, 0f), (arrays("fc_weight").toArray.exists(_ != 0), arrays("fc_bias").toArray.sum))
    Initializer("one", 0).fill("w_weight", arrays("fc_bias"))
    near(arrays("fc_bias").toArray, 1, 1, 1, 1)
    val random = NDArray.zeros(Shape(100)).uniform(2, 3, seed = 1)
    equal(true, random.toArray.forall(x => x >= 2 && x <= 3) && random.normal(0, 1, 2).toArray.exists(_ < 0))
  }

  @Test def `a monitor reports what its function computes`(): Unit = {
    val group = linearGroup()
    val monitor = new Monitor(2, array => nd.max(array), "fc_(weight|output)", sort = true)
    group.installMonitor(monitor)
    val reports = for (_ <- 1 to 3) yield {
      monitor.tic()
      group.forward(linearBatch)
      monitor.toc()
    }
    equal((3, 0), (monitor.step, reports(1).length))
    equal(Set("fc_weight", "fc_output"), reports(0).map(_._2).toSet)
    equal(true,
      reports(2).exists { case (step, name, text) => step == 3 && name == "fc_output" && text.trim.toFloat == 87f })
    refused(classOf[InvalidArgumentException], "(")(new Monitor(1, pattern = "("))
    refused(classOf[InvalidArgumentException])(new Monitor(0))
  }

  @Test def `a tape gives gradients of any order, through functions of one's own`(): Unit = {
    val tape = new Tape
    val x = array(Shape(2))(2, 3)
    val gradient = tape.attachGrad(x)
    val cube = tape.record(tape.op.elemwise_mul(tape.op.square(x), x))
    val first = tape.grad(Seq(cube), Seq(x), createGraph = true)(0)
    tape.backward(Seq(first))
    near(gradient.toArray, 12, 18)
    val doubled = tape.pause(x * 2f)
    equal(true, tape.isRecording && tape.isTraining)
    val before = tape.numRecorded
    tape.function(Seq(x), Seq(doubled))(heads => heads.map(_ * 2f))
    equal(before + 1, tape.numRecorded)
    tape.backward(Seq(doubled), Seq(array(Shape(2))(1, 10)))
    near(gradient.toArray, 2, 20)
    val failing = tape.pause(x * 2f)
    tape.function(Seq(x), Seq(failing))(_ => throw new IllegalMonitorStateException("mine"))
    refused(classOf[IllegalMonitorStateException], "mine")(tape.backward(Seq(failing)))
    equal(Vector("var0"), tape.symbol(tape.record(trainMode = false)(tape.op.exp(x))).listArguments())
    refused(classOf[StateException])(tape.backward(Seq(NDArray.ones(Shape(1)))))
    val many = NDArray.ones(Shape(64))
    def drop(seed: Int): Seq[Float] = {
      val into = NDArray.zeros(Shape(64))
      tape.record(tape.op.Dropout(many, seed = seed, out = into))
      into.toArray.toSeq
    }
    equal(drop(1), drop(1))
    equal(false, drop(1) == drop(2))
    refused(classOf[InvalidArgumentException], "is_train")(tape.op.exp(many, is_train = true))
  }

  private final class Scale(factor: Float) extends CustomOp {
    override def forward(isTrain: Boolean, in: IndexedSeq[NDArray], out: IndexedSeq[NDArray],
      aux: IndexedSeq[NDArray]): Unit =
      out(0).set(in(0).toArray.map(_ * factor))

    override def backward(heads: IndexedSeq[NDArray], in: IndexedSeq[NDArray], out: IndexedSeq[NDArray],
        grads: IndexedSeq[Option[NDArray]], aux: IndexedSeq[NDArray]): Unit =
      grads(0).foreach(_.set(heads(0).toArray.map(_ * factor)))
  }

  @Test def `an operator of one's own runs in networks, and on several devices`(): Unit = {
    CustomOp.register("scale") { attrs =>
      val factor = attrs.getOrElse("factor", "1").toFloat
      new CustomOpProp { override def createOperator(ctx: Context): CustomOp = new Scale(factor) }
    }
    try {
      val net = sym.Custom(linear(), op_type = "scale", factor = 3, name = "scaled")
      val group = new DataParallelExecutorGroup.Builder(net, two, null)
        .setDataShapes(Vector(DataDesc("data", Shape(4, 2)))).build()
      group.setParams(Map("fc_weight" -> array(Shape(1, 2))(1, 10)), null)
      group.forward(linearBatch, Some(true))
      near(group.getOutputsMerged()(0).toArray, 63, 129, 195, 261)
      group.backward(Array(NDArray.ones(Shape(4, 1))))
      near(group.gradArrays(0)(0).get.toArray, 12, 18)
      refused(classOf[UnknownNameException], "scale")(CustomOp.register("scale")(_ => null))
      refused(classOf[NumberFormatException], "much")(sym.Custom(linear(), op_type = "scale", factor = "much"))
      group.close()
    } finally CustomOp.unregister("scale")
  }
}
