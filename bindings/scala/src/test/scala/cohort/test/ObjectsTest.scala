// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File
import java.nio.{ByteBuffer, ByteOrder}

import cohort._
import cohort.test.Nets._
import org.junit.Test

/** Arrays, symbols, executors, and the lifetimes of objects. */
final class ObjectsTest extends Case {
  @Test def `arrays go in and out by type`(): Unit = {
    near(array(Shape(2, 2))(1, 2, 3, 4).toArray, 1, 2, 3, 4)
    equal(DType.Int64, NDArray.array(Array(1L << 40), Shape(1)).dtype)
    equal(1L << 40, NDArray.array(Array(1L << 40), Shape(1)).toLongArray(0))
    equal(Seq(0.1), NDArray.array(Array(0.1), Shape(1)).toFloat64Array.toSeq)
    equal(Seq(7, 8), NDArray.array(Array(7, 8), Shape(2)).toIntArray.toSeq)
    equal(Seq[Byte](1, 2), NDArray.array(Array[Byte](1, 2), Shape(2), DType.UInt8).toByteArray.toSeq)
    near(NDArray.array(Array(1, 2), Shape(2)).asType(DType.Float16).toArray, 1, 2)
    equal(Shape(), NDArray.array(Array(3f), Shape()).shape)
    equal(0, NDArray.zeros(Shape(0, 3)).toArray.length)
    refused(classOf[ShapeException])(NDArray.array(Array(1f), Shape(2)))
  }

  @Test def `slices and reshaped arrays are live`(): Unit = {
    val all = NDArray.zeros(Shape(3, 2), Context.cpu(1))
    all.slice(1, 2).set(5)
    all.at(2).set(Array(6f, 7f))
    near(all.reshape(Shape(6)).toArray, 0, 0, 5, 5, 6, 7)
    equal(Context.cpu(1), all.at(0).context)
    equal(Shape(3, 1), all.sliceAxis(1, 0, 1).shape)
    near((-all.slice((1, 2)) + 1f).toArray, -4, -4)
    near(NDArray.concatenate(Seq(all.at(1), all.at(2))).toArray, 5, 5, 6, 7)
    refused(classOf[InvalidArgumentException])(all.slice(2, 9))
  }

  @Test def `what is written in place is seen by other names and by slices`(): Unit = {
    val all = array(Shape(2, 2))(1, 2, 3, 4)
    val (same, row) = (all, all.at(1))
    for ((change, expected) <- Seq[(NDArray => NDArray, Seq[Float])](
        (_ += 1f, Seq(4, 5)), (_ -= 2f, Seq(2, 3)), (_ *= 6f, Seq(12, 18)), (_ /= 2f, Seq(6, 9)))) {
      assert(change(all) eq all)
      near(row.toArray, expected: _*)
    }
    row += array(Shape(2))(10, 20)
    row -= array(Shape(2))(6, 9)
    row *= array(Shape(2))(2, 3)
    row /= array(Shape(2))(4, 6)
    near(same.toArray, 0, 3, 5, 10)
    all += row
    near(all.toArray, 5, 13, 10, 20)
    row %= array(Shape(2))(4, 6)
    row **= array(Shape(2))(3, 2)
    near(row.toArray, 8, 4)
    near((row %= 5f).toArray, 3, 4)
    near((row **= 2f).toArray, 9, 16)
    near(all.toArray, 5, 13, 9, 16)
    refused(classOf[ShapeException])(row += array(Shape(3))(1, 2, 3))
  }

  @Test def `arrays and symbols have remainders, powers and comparisons`(): Unit = {
    val a = array(Shape(3))(-4, 3, 2)
    val b = array(Shape(3))(2, 3, 3)
    val ofArrays = Seq[((NDArray, NDArray) => NDArray, (Symbol, Symbol) => Symbol, Seq[Float])](
      (_ % _, _ % _, Seq(0, 0, 2)), (_ ** _, _ ** _, Seq(16, 27, 8)), (_ > _, _ > _, Seq(0, 0, 0)),
      (_ >= _, _ >= _, Seq(0, 1, 0)), (_ < _, _ < _, Seq(1, 0, 1)), (_ <= _, _ <= _, Seq(1, 1, 1)),
      (NDArray.equal(_, _), Symbol.equal(_, _), Seq(0, 1, 0)),
      (NDArray.notEqual(_, _), Symbol.notEqual(_, _), Seq(1, 0, 1)))
    val ofNumbers = Seq[(NDArray => NDArray, Symbol => Symbol, Seq[Float])](
      (_ % 3f, _ % 3f, Seq(2, 0, 2)), (_ ** 2f, _ ** 2f, Seq(16, 9, 4)), (_ > 2f, _ > 2f, Seq(0, 1, 0)),
      (_ >= 2f, _ >= 2f, Seq(0, 1, 1)), (_ < 2f, _ < 2f, Seq(1, 0, 0)), (_ <= 2f, _ <= 2f, Seq(1, 0, 1)),
      (NDArray.equal(_, 2f), Symbol.equal(_, 2f), Seq(0, 0, 1)),
      (NDArray.notEqual(_, 2f), Symbol.notEqual(_, 2f), Seq(1, 1, 0)), (-_, -_, Seq(4, -3, -2)))
    val shapes = Map("a" -> a.shape, "b" -> a.shape)
    val (x, y) = (Symbol.Variable("a"), Symbol.Variable("b"))
    def run(symbol: Symbol): Seq[Float] = {
      val executor = symbol.simpleBind(gradReq = "null", shapes = shapes.filterKeys(symbol.listArguments().contains).toMap)
      for ((name, values) <- Seq("a" -> a, "b" -> b); to <- executor.argDict.get(name)) to.set(values)
      executor.forward()
      executor.outputs(0).toArray.toSeq
    }
    for ((arrays, symbols, expected) <- ofArrays) {
      near(arrays(a, b).toArray, expected: _*)
      equal(expected, run(symbols(x, y)))
    }
    for ((arrays, symbols, expected) <- ofNumbers) {
      near(arrays(a).toArray, expected: _*)
      equal(expected, run(symbols(x)))
    }
    near((array(Shape(2, 1))(1, 2) > array(Shape(2))(0, 1)).toArray, 1, 0, 1, 1) // repeated where a length is 1
  }

  @Test def `a direct buffer is used where it is`(): Unit = {
    val buffer = ByteBuffer.allocateDirect(12).order(ByteOrder.nativeOrder)
    buffer.putFloat(-1).putFloat(1).putFloat(2)
    buffer.position(4)
    val lent = NDArray.wrap(buffer, Shape(2))
    near(lent.toArray, 1, 2)
    lent.set(9)
    lent.waitToRead()
    equal(9f, buffer.getFloat(8))
    refused(classOf[ShapeException])(NDArray.wrap(buffer, Shape(3)))
    refused(classOf[InvalidArgumentException], "direct")(NDArray.wrap(ByteBuffer.allocate(8), Shape(2)))
  }

  @Test def `files hold arrays by name, whatever the letters`(): Unit = inFolder { folder =>
    val path = new File(folder, "größe 漢.params").getPath
    NDArray.save(path, Map("ä" -> array(Shape(1))(3), "b" -> NDArray.ones(Shape(2), dtype = DType.Int8)))
    near(NDArray.load2Map(path)("ä").toArray, 3)
    equal(DType.Int8, NDArray.load2Map(path)("b").dtype)
    NDArray.save(path, Seq(array(Shape(1))(4)))
    val (names, arrays) = NDArray.load(path)
    equal((Vector(), 4f), (names, arrays(0).toScalar))
    equal(folder.getPath, refused(classOf[FileException], folder.getPath)(NDArray.load(folder.getPath + "/no"))
      .subject.take(folder.getPath.length))
  }

  @Test def `operators are found in the registry`(): Unit = {
    equal(Vector("data", "weight", "bias"), Operators.inputs("FullyConnected"))
    equal(true, Operators.names.contains("softmax") && Operators.doc("softmax").nonEmpty)
    equal(true, Operators.attributes("Convolution").exists(_._1 == "num_filter"))
    equal((0.0, 1.0), Operators.ranges("Dropout")(Operators.attributes("Dropout").indexWhere(_._1 == "p")))
    equal(Vector(false, true), Operators.gradients("Embedding"))
    equal(Vector("narrow", "follows"), Vector("FullyConnected", "Dropout").map(Operators.precision))
    equal("output", Operators.outputs("BatchNorm").head)
    val named = nd.FullyConnected(array(Shape(1, 2))(1, 2), bias = array(Shape(1))(5),
      weight = array(Shape(1, 2))(10, 1), num_hidden = 1)
    near(named.toArray, 17)
    equal(2, nd.all("SliceChannel", Seq(NDArray.ones(Shape(2, 2))), "num_outputs" -> 2).length)
    near(nd.Concat(Seq(NDArray.ones(Shape(1)), NDArray.zeros(Shape(1))), dim = 0, num_args = 2).toArray, 1, 0)
    refused(classOf[UnknownNameException], "softmax")(nd.softmaxx(NDArray.ones(Shape(1))))
    refused(classOf[UnknownNameException], "weigth")(nd.FullyConnected(weigth = NDArray.ones(Shape(1)), num_hidden = 1))
    refused(classOf[InvalidArgumentException], "by name")(sym.Flatten(Symbol.Variable("x"), 3))
  }

  @Test def `symbols tell what they are made of`(): Unit = inFolder { folder =>
    val net = mlp()
    equal(Vector("data", "fc_weight", "fc_bias", "softmax_label"), net.listArguments())
    equal(Vector("softmax_output"), net.listOutputs())
    equal("softmax", net.name)
    val (args, outputs, aux) = net.inferShape(Map("data" -> Shape(2, 4)))
    equal((Vector(Shape(2, 4), Shape(3, 4), Shape(3), Shape(2)), Vector(Shape(2, 3)), Vector()), (args, outputs, aux))
    equal(Vector(DType.Float64), net.inferType(Map("data" -> DType.Float64))._2)
    equal(Vector("fc_output"), net.getInternals().get("fc_output").listOutputs())
    equal(Some("3"), net.get(0).getChildren().get.get("fc_output").attr("num_hidden"))
    val variable = Symbol.Variable("w", "__gift__" -> 2)
    variable.setAttr("__mood__" -> "good")
    equal(Map("__gift__" -> "2", "__mood__" -> "good"), variable.listAttr())
    equal(Some("2"), (variable + 1f).attrMap().get("w").map(_("__gift__")))
    val both = Symbol.Group(variable, net)
    equal(2, both.listOutputs().length)
    net.save(new File(folder, "net.json").getPath)
    equal(net.toJson, Symbol.load(new File(folder, "net.json").getPath).toJson)
    equal(net.listInputs(), Symbol.loadJson(net.toJson).listInputs())
    val other = net.compose(Map("data" -> sym.exp(Symbol.Variable("x"))))
    equal("x", other.listArguments().head)
    refused(classOf[FormatException])(Symbol.loadJson("{"))
    refused(classOf[ShapeException])(net.inferShape(Map("data" -> Shape(2, 4), "fc_weight" -> Shape(5, 5))))
  }

  @Test def `an executor runs forward and back`(): Unit = {
    val executor = linear().simpleBind(shapes = Map("data" -> Shape(2, 2)))
    executor.copyParamsFrom(Map("fc_weight" -> array(Shape(1, 2))(1, 10)))
    executor.forward(isTrain = true, Map("data" -> array(Shape(2, 2))(1, 2, 3, 4)))
    near(executor.outputs(0).toArray, 21, 43)
    executor.backward(Array(array(Shape(2, 1))(1, 1)))
    near(executor.gradDict("fc_weight").toArray, 4, 6)
    equal(Map("data" -> "write", "fc_weight" -> "write"), executor.gradReq)
    equal((Context.cpu(), Vector("fc_output")), (executor.context, executor.symbol.listOutputs()))
    equal(true, executor.debugStr.nonEmpty && executor.memory.arguments > 0)
    val longer = executor.reshape(allowUpSizing = true, partialShaping = true, shapes = Map("data" -> Shape(3, 2)))
    longer.forward(inputs = Map("data" -> NDArray.ones(Shape(3, 2))))
    near(longer.outputs(0).toArray, 11, 11, 11)
    val bound =
      Executor.bind(linear(), args = Map("data" -> NDArray.ones(Shape(1, 2)), "fc_weight" -> array(Shape(1, 2))(2, 3)))
    bound.forward()
    near(bound.outputDict("fc_output").toArray, 5)
    refused(classOf[UnknownNameException],
      "fc_weight")(Executor.bind(linear(), args = Map("data" -> NDArray.ones(Shape(1, 2)))))
  }

  @Test def `parts of a network run where their group says`(): Unit = {
    val part = Symbol.Variable("x", "ctx_group" -> "far")
    val net = sym.exp(part) + Symbol.Variable("y", "ctx_group" -> "near")
    val places = Map("far" -> Context.cpu(1), "near" -> Context.cpu(0))
    val executor = Executor.simpleBind(net, shapes = Map("x" -> Shape(2)), group2ctx = places)
    equal((Context.cpu(1), Context.cpu(0)), (executor.argDict("x").context, executor.argDict("y").context))
    executor.forward(inputs = Map("y" -> array(Shape(2))(1, 2)))
    near(executor.outputs(0).toArray, 2, 3)
    refused(classOf[InvalidArgumentException], "null")(
      Executor.simpleBind(net, shapes = Map("x" -> Shape(2)), group2ctx = Map("far" -> null)))
  }

  @Test def `errors come whole, as exceptions of Java's too`(): Unit = {
    val error = refused(classOf[ShapeException], "FullyConnected")(
      nd.FullyConnected(NDArray.ones(Shape(2, 3)), NDArray.ones(Shape(4, 5)), num_hidden = 4, no_bias = true))
    equal(true, error.isInstanceOf[IllegalArgumentException] && error.isInstanceOf[CohortException])
    refused(classOf[NoSuchElementException], "nothing")(EvalMetric("nothing"))
    refused(classOf[UnsupportedOperationException])(throw new UnsupportedException("", ""))
    refused(classOf[DeviceException])(NDArray.zeros(Shape(1), Context.gpu(99)))
    refused(classOf[java.io.UncheckedIOException], "/no/where")(Symbol.load("/no/where"))
    refused(classOf[InvalidArgumentException], "zero byte")(Symbol.Variable("a\u0000b"))
    refused(classOf[InvalidArgumentException], "Unicode")(Symbol.Variable("a\ud800"))
    refused(classOf[InvalidArgumentException], "found tpu")(NDArray.zeros(Shape(1), Context("tpu")))
  }

  @Test def `a closed object says so`(): Unit = {
    val one = NDArray.ones(Shape(1))
    one.close()
    one.dispose()
    equal(true, one.isClosed)
    refused(classOf[IllegalStateException], "NDArray has been closed")(one.shape)
    refused(classOf[StateException], "number 1")(NDArray.concatenate(Seq(NDArray.ones(Shape(1)), one)))
    equal("NDArray(closed)", one.toString)
  }

  @Test def `a scope closes what it does not give`(): Unit = {
    var inner, thrown: NDArray = null
    val (kept, list) = Scope {
      inner = NDArray.ones(Shape(1))
      val result = Scope((inner + inner, Map("a" -> Vector(Option(NDArray.ones(Shape(2)))))))
      equal(false, result._1.isClosed)
      result
    }
    equal(Seq(true, false, false), Seq(inner, kept, list("a")(0).get).map(_.isClosed))
    refused(classOf[ArithmeticException])(Scope {
      thrown = NDArray.ones(Shape(1))
      throw new ArithmeticException("none")
    })
    equal(true, thrown.isClosed)
  }

  @Test def `what nobody refers to is freed`(): Unit = {
    def make(): Unit = Scope(Vector.fill(50)(NDArray.ones(Shape(10)))).foreach(_.shape)
    val before = Cohort.liveHandles
    val thread = new Thread(new Runnable { override def run(): Unit = for (_ <- 0 until 20) make() })
    thread.start() // outside the test's scope
    thread.join()
    equal(before, Case.settled((before, Native.Callback.count))._1)
  }

  @Test def `the library is there, and its messages`(): Unit = {
    equal("0.1.0", Cohort.version)
    equal(false, Cohort.hasFeature("flying"))
    equal(true, Cohort.library.getName.startsWith("libcohort.so") && Context.numDevices("cpu") >= 1)
    val said = new scala.collection.mutable.ArrayBuffer[String]
    val receiver = new LogReceiver(LogLevel.Warning)((level, text) => said += s"$level: $text")
    val warned = mlp().simpleBind(shapes = Map("data" -> Shape(1, 2)))
    val group = new DataParallelExecutorGroup.Builder(mlp(), two, null)
      .setDataShapes(Vector(DataDesc("data", Shape(4, 4)))).build()
    group.forward(DataBatch(Vector(NDArray.ones(Shape(4, 4)))), Some(true))
    warned.close()
    receiver.close()
    equal(true, said.exists(_.contains("softmax_label")))
  }
}
