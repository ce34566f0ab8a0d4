// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File

import cohort._
import cohort.test.Nets._
import org.junit.Test

/** The types in which networks compute, int8 ranges, the loss scale, traces, memory of devices. */
final class PrecisionTest extends Case {
  private val shapes = Map("data" -> Shape(32, 16))

  /** Two layers of 16, each large enough for the processor's units for narrow types. */
  private def wide(): Symbol = {
    val first = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 16, no_bias = true, name = "first")
    sym.FullyConnected(first, num_hidden = 16, no_bias = true, name = "second")
  }

  private def noise(seed: Long, shape: Shape) = NDArray.zeros(shape).uniform(-1, 1, seed)
  private def weights() =
    Map("first_weight" -> noise(1, Shape(16, 16)), "second_weight" -> noise(2, Shape(16, 16)))

  /** The largest difference from the expected numbers, relative to the largest number. */
  private def apart(found: NDArray, expected: Array[Float]): Float =
    found.toArray.zip(expected).map { case (f, e) => math.abs(f - e) }.max / expected.map(math.abs(_)).max

  private def count(text: String, words: String) = text.split("\n").count(_.contains(words))

  @Test def `a calibrated predictor answers in bytes, in every copy and shape`(): Unit = {
    val (net, params, batch) = (wide(), weights(), noise(3, Shape(32, 16)))
    val inputs = Map("data" -> batch)
    val plain = new Predictor(net, params, shapes = shapes)
    val expected = plain.predict(inputs)(0).toArray
    for (method <- CalibrationMethod.values) {
      val calibration = new Calibration(method)
      refused(classOf[StateException], "observed")(calibration.range("data"))
      plain.observe(calibration, inputs)
      val (low, high) = calibration.range("data")
      equal(true, -1 <= low && low < 0 && 0 < high && high <= 1)
      refused(classOf[UnknownNameException], "third")(calibration.range("third"))
      val kept = calibration.ranges
      equal((low, high), (kept("data").toArray(0).toDouble, kept("data").toArray(1).toDouble))
      val again = Calibration.fromRanges(kept)
      equal((low, high), again.range("data"))
      refused(classOf[StateException], "made from ranges")(plain.observe(again, inputs))
      val narrow = Precision.int8(calibration)
      val predictor = new Predictor(net, params, shapes = shapes, precision = narrow)
      for (one <- Seq(predictor, predictor.copy())) equal(true, apart(one.predict(inputs)(0), expected) < 0.1)
      equal(true, apart(predictor.predict(Map("data" -> batch.slice(0, 4)))(0), expected.take(64)) < 0.1)
      val executor = Executor.simpleBind(net, shapes = shapes, gradReq = Map("data" -> "null"), precision = narrow)
      equal(true, Set(0, 2).contains(count(executor.debugStr, "Computes in int8")))
      val group = new DataParallelExecutorGroup.Builder(net, two, null)
        .setDataShapes(Vector(DataDesc("data", Shape(32, 16)))).setForTraining(false)
        .setPrecision(narrow).setGivenParams(params).build()
      group.forward(DataBatch(Vector(batch)))
      equal(true, apart(group.getOutputsMerged()(0), expected) < 0.1)
      calibration.close()
      refused(classOf[StateException], "closed")(predictor.copy())
      refused(classOf[StateException], "closed")(plain.observe(calibration, inputs))
    }
    refused(classOf[InvalidArgumentException], "expected a calibration") {
      new Predictor(net, params, shapes = shapes, precision = Precision(DType.Int8))
    }
    refused(classOf[InvalidArgumentException], "takes no calibration") {
      new DataParallelExecutorManager.Builder(net, two, null).setBatchSize(32)
        .setDataShapes(Vector(DataDesc("data", Shape(32, 16)))).setPrecision(Precision.int8(new Calibration)).build()
    }
    refused(classOf[InvalidArgumentException], "null")(plain.observe(null, inputs))
  }

  @Test def `a predictor computes in the types that it is told`(): Unit = inFolder { folder =>
    val prefix = new File(folder, "net").getPath
    Model.saveCheckpoint(prefix, 1, wide(), weights(), Map.empty)
    val inputs = Map("data" -> noise(3, Shape(32, 16)))
    def asked(precision: Precision) =
      Predictor.load(prefix, 1, shapes, precision = precision, mapFile = true).predict(inputs)(0)
    val expected = Predictor.load(prefix, 1, shapes).predict(inputs)(0).toArray
    equal(true, apart(asked(Precision(DType.BFloat16)), expected) < 0.05)
    near(asked(Precision(DType.BFloat16, float32Names = Seq("FullyConnected"), tf32 = true)).toArray, expected.toSeq: _*)
    refused(classOf[UnknownNameException], "narrow_names: 'third'") {
      asked(Precision(DType.BFloat16, narrowNames = Seq("third")))
    }
    refused(classOf[UnsupportedException])(asked(Precision(DType.Float16)))
  }

  @Test def `a loss scale tells where it is, and goes on from there`(): Unit = {
    val (data, label) = (Vector(DataDesc("data", Shape(4, 4))), Vector(DataDesc("softmax_label", Shape(4))))
    val group = new DataParallelExecutorGroup.Builder(mlp(), two, null)
      .setDataShapes(data).setLabelShapes(label).setPrecision(Precision(lossScale = 1024, lossScaleWindow = 2)).build()
    val rule = Optimizer("sgd", "learning_rate" -> 0.1)
    equal((LossScale(1024, 0, 0), LossScale(1, 0, 0)), (group.lossScale, rule.lossScale))
    for ((value, expected) <- Seq(
        (1.0, LossScale(1024, 1, 0)), (Double.PositiveInfinity, LossScale(512, 0, 1)), (1.0, LossScale(512, 1, 1)),
        (1.0, LossScale(1024, 0, 1)))) {
      val batch = DataBatch(Vector(NDArray.full(Shape(4, 4), value)), Vector(NDArray.zeros(Shape(4))))
      group.forward(batch, Some(true))
      group.backward()
      group.update(rule)
      equal((expected, expected), (group.lossScale, rule.lossScale))
    }
    group.setLossScale(64, 1)
    equal(LossScale(64, 1, 1), group.lossScale)
    refused(classOf[InvalidArgumentException])(group.setLossScale(-1))
    val manager = new DataParallelExecutorManager.Builder(mlp(), two, null).setBatchSize(4)
      .setDataShapes(data).setLabelShapes(label).setPrecision(Precision(lossScale = 256)).build()
    equal(LossScale(256, 0, 0), manager.lossScale)
    manager.setLossScale(8, 3)
    equal(LossScale(8, 3, 0), manager.lossScale)
  }

  @Test def `a step can be seen, and what it took`(): Unit = inFolder { folder =>
    val executor = linear().simpleBind(shapes = Map("data" -> Shape(2, 2)))
    val trace = new Trace(flopPerS = 1e9, bytePerS = 1e9)
    trace.running {
      trace.span("step 1", "training")(executor.forward())
      trace.counter("loss", 0.5)
      equal(true, trace.isRunning)
    }
    executor.forward() // not recorded
    executor.waitToFinish()
    val totals = trace.totals()
    val fc = totals.find(_.name == "fc").get
    equal((SpanKind.Operator, "FullyConnected", 1L), (fc.kind, fc.op, fc.count))
    equal(true, fc.flops > 0 && fc.bytes > 0 && fc.totalNs >= fc.mostNs && fc.mostNs >= fc.leastNs && fc.boundNs > 0)
    equal(true, totals.exists(total => total.kind == SpanKind.User && total.name == "step 1"))
    equal(true, trace.totals(byOperator = true).exists(total => total.name == "" && total.op == "FullyConnected"))
    equal(true, trace.table().contains("of bound"))
    trace.write(new File(folder, "step.json").getPath)
    val source = scala.io.Source.fromFile(new File(folder, "step.json"), "UTF-8")
    try equal(trace.json, source.mkString)
    finally source.close()
    equal(true, trace.json.contains("\"traceEvents\""))
    val step = executor.debugStr.split("\n").find(_.contains("forward FullyConnected 'fc'")).get
    equal(true, step.contains("us by ") && !step.endsWith("- us"))
    trace.clear()
    equal((0L, 0L, false), (trace.numEvents, trace.numDropped, trace.isRunning))
  }

  @Test def `a trace ends with what it records, and refuses what cannot be`(): Unit = {
    val trace = new Trace(maxEvents = 1)
    refused(classOf[NumberFormatException], "mine")(trace.running(throw new NumberFormatException("mine")))
    refused(classOf[StateException], "not running")(trace.stop())
    trace.clear()
    trace.start()
    refused(classOf[StateException], "running already")(trace.start())
    trace.mark("a")
    trace.mark("b")
    equal((1L, 1L), (trace.numEvents, trace.numDropped))
    refused(classOf[FileException], "/nowhere/x.json")(trace.write("/nowhere/x.json"))
    refused(classOf[InvalidArgumentException], "flop_per_s")(new Trace(flopPerS = -1))
    refused(classOf[InvalidArgumentException], "maxEvents")(new Trace(maxEvents = -1))
  }

  @Test def `an operator is applied with a seed, on a context, as in training and into arrays`(): Unit = {
    def draw(seed: Long) = nd.random_uniform(shape = Shape(8), seed = seed).toArray.toSeq
    equal(draw(1), draw(1))
    equal(false, draw(1) == draw(2))
    equal(Context.cpu(3), nd("_zeros", Nil, "shape" -> "(2,)", "ctx" -> Context.cpu(3)).context)
    val (x, into) = (NDArray.ones(Shape(1000)), NDArray.zeros(Shape(1000)))
    equal(true, nd.Dropout(x, is_train = true).toArray.count(_ == 0) > 100)
    equal(0, nd.Dropout(x).toArray.count(_ == 0))
    nd("_plus_scalar", Seq(x), "scalar" -> 2, "out" -> into)
    equal(Set(3f), into.toArray.toSet)
    nd.sqrt(into + 1f, out = into)
    equal(Set(2f), into.toArray.toSet)
    refused(classOf[ShapeException])(nd.sqrt(x, out = NDArray.zeros(Shape(1))))
    refused(classOf[InvalidArgumentException], "seed")(nd.random_uniform(shape = Shape(8), seed = "one"))
  }

  @Test def `the memory of a device is told and limited`(): Unit = {
    val here = Context.cpu(9)
    val before = here.memory
    val array = NDArray.zeros(Shape(1000), here)
    array.waitToRead()
    val found = here.memory
    equal(true, found.used >= before.used + 4000 && found.peak >= found.used && found.limit == 0)
    here.limitMemory(found.used + 100)
    refused(classOf[MemoryException], "cpu(9)")(NDArray.zeros(Shape(1000), here))
    here.limitMemory(0)
    refused(classOf[InvalidArgumentException], "-1")(here.limitMemory(-1))
    array.close()
    here.resetPeakMemory()
    equal(true, here.memory.peak < found.peak)
  }

  @Test def `arrays are kept in memory, and for NumPy; a metric tells what it counted`(): Unit = inFolder { folder =>
    val bytes = NDArray.saveBytes(Map("a" -> array(Shape(2))(1, 2)))
    near(NDArray.loadBytes(bytes)("a").toArray, 1, 2)
    refused(classOf[FormatException])(NDArray.loadBytes(Array[Byte](1, 2, 3)))
    NDArray.saveNpz(new File(folder, "a.npz").getPath, Map("b" -> array(Shape(2))(3, 4)))
    near(NDArray.load2Map(new File(folder, "a.npz").getPath)("b").toArray, 3, 4)
    NDArray.saveNpy(new File(folder, "a.npy").getPath, array(Shape(2))(5, 6))
    near(NDArray.load(new File(folder, "a.npy").getPath)._2.head.toArray, 5, 6)
    val accuracy = EvalMetric("acc")
    accuracy.update(Vector(array(Shape(2))(0, 1)), Vector(array(Shape(2, 2))(1, 0, 1, 0)))
    equal(Vector((1.0, 2.0)), accuracy.counters())
  }
}
