// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.lang.reflect.{InvocationTargetException, Method, Modifier}
import java.nio.ByteBuffer

import cohort._
import cohort.test.Nets._
import org.junit.{After, Assert, Before, Test}

/** With any arguments a method works or throws an exception of these classes; the process survives, and other objects
  * stay usable. cohort.abi tests the C interface function by function, from bindings/abi.json.
  */
final class BadInputTest extends Case {
  private var closed = Seq.empty[AnyRef]

  @Before def close(): Unit = Scope {
    closed = objects.map { one =>
      one.asInstanceOf[AutoCloseable].close()
      one
    }
    ()
  }

  @After def forget(): Unit = closed = Nil

  private def objects: Seq[AnyRef] = Seq(
    NDArray.ones(Shape(2, 2)),
    mlp(),
    linear().simpleBind(shapes = Map("data" -> Shape(4, 2))),
    linearGroup(inputsNeedGrad = true),
    Nets.manager(),
    Nets.manager().execgrp,
    EvalMetric("acc"),
    Optimizer("sgd"),
    Initializer("zeros", 0),
    new Monitor(1),
    new Tape,
    new LogReceiver(LogLevel.Error)((_, _) => ()),
    new Module(linear(), labelNames = Vector.empty),
    new Predictor(linear(), Map("fc_weight" -> NDArray.ones(Shape(1, 2))), shapes = Map("data" -> Shape(1, 2))))

  private val companions: Seq[AnyRef] =
    Seq(NDArray, Symbol, Executor, DataParallelExecutorGroup, EvalMetric, Optimizer, Initializer, Context,
    DType, Shape, DataDesc, Operators, Model, Predictor, Cohort, nd, sym, CustomOp)

  private def builders: Seq[AnyRef] = Seq(
    new DataParallelExecutorGroup.Builder(linear(), two, null).setDataShapes(Vector(DataDesc("data", Shape(4, 2)))),
    new DataParallelExecutorGroup.Builder(linear(), two, null),
    new DataParallelExecutorManager.Builder(mlp(), two, null))

  /** Values of a type: the first one may well be valid. */
  private def values(kind: Class[_]): Seq[Any] = kind.getName match {
    case "int"     => Seq(1, 0, -1, Int.MaxValue, Int.MinValue)
    case "long"    => Seq(1L, 0L, -1L, Long.MaxValue, Long.MinValue)
    case "float"   => Seq(1f, Float.NaN, Float.NegativeInfinity)
    case "double"  => Seq(1.0, Double.NaN, Double.NegativeInfinity)
    case "boolean" => Seq(true, false)
    case "java.lang.String" => Seq("x", null, "", "a\u0000b", "\ud800", "größe", "%s%n")
    case "java.nio.ByteBuffer" =>
      Seq(ByteBuffer.allocateDirect(16), null, ByteBuffer.allocate(4), ByteBuffer.allocateDirect(0))
    case "cohort.Shape" =>
      Seq(Shape(2, 2), null, Shape(), Shape(0), Shape(-1), Shape(Int.MaxValue, Int.MaxValue, Int.MaxValue))
    case "cohort.Context" =>
      Seq(Context.cpu(), null, Context("cpu", -1), Context("tpu"), Context.gpu(77), Context(null))
    case "cohort.DataBatch" => Seq(DataBatch(Vector(NDArray.ones(Shape(4, 2)))), null, DataBatch(null),
      DataBatch(Vector(null)), DataBatch(Vector.empty))
    case "scala.Enumeration$Value" => Seq(DType.Float32, null)
    case "scala.Option" => Seq(None, null, Some(null))
    case "scala.collection.immutable.Map" => Seq(Map.empty, null, Map("nothing" -> null), Map("data" -> null))
    case "scala.collection.immutable.Set" => Seq(Set.empty, null, Set(null))
    case "scala.Function0" => Seq(() => null)
    case "scala.Function1" => Seq((_: Any) => null, null)
    case "scala.Function2" => Seq((_: Any, _: Any) => null, null)
    case "scala.Tuple2" => Seq((0, 1), null, (-1, Int.MaxValue))
    case "java.lang.Object" => Seq("x", null)
    case _ if kind.isArray =>
      val empty = java.lang.reflect.Array.newInstance(kind.getComponentType, 0)
      val one = java.lang.reflect.Array.newInstance(kind.getComponentType, 1)
      Seq(empty, null, one)
    case name if name.startsWith("scala.collection") => Seq(Vector.empty, null, Vector(null), Vector(null, null))
    case _ => (objects.find(kind.isInstance(_)) ++ Seq(null) ++ closed.find(kind.isInstance(_))).toSeq
  }

  // Methods of java.lang.Object, and those private to the package, which are public in bytecode.
  private val left =
    ("close dispose hashCode equals toString getClass notify notifyAll wait hold use useInside run cell closing family " +
      "names onDevices present merged descs axes withSlices loadBatch runPass backwardPass create struct structs of " +
      "code simpleBind longs withOther withNumber").split(" ").toSet

  private def methods(target: AnyRef): Seq[Method] = target.getClass.getMethods.toSeq
    .filter(method => method.getDeclaringClass.getName.startsWith("cohort.") && !method.getName.contains("$") &&
      !left(method.getName))
    .filterNot(method => Modifier.isStatic(method.getModifiers))
    .sortBy(_.toString)

  private var calls = 0

  /** Returns a line if the call neither works nor throws a proper exception. */
  private def trial(target: AnyRef, method: Method, arguments: Seq[Any]): Option[String] = {
    calls += 1
    try {
      Scope(method.invoke(target, arguments.map(_.asInstanceOf[AnyRef]): _*)) match {
        case made: AutoCloseable if made ne target => made.close()
        case made: DataParallelExecutorGroup.Builder => made.build().close()
        case _                                     =>
      }
      None
    } catch {
      case thrown: InvocationTargetException if thrown.getCause.isInstanceOf[CohortException] => None
      case _: CohortException => None
      case thrown: InvocationTargetException =>
        Some(s"${target.getClass.getSimpleName}.${method.getName}(${arguments.mkString(", ")}): ${thrown.getCause}")
      case thrown: Throwable =>
        Some(s"build after ${method.getName}(${arguments.mkString(", ")}): $thrown")
    }
  }

  private def sweep(targets: => Seq[AnyRef]): Seq[String] = {
    val found = targets.indices.flatMap { i =>
      methods(targets(i)).flatMap { method =>
        val kinds = method.getParameterTypes.toSeq
        val all = Scope {
          val choices = kinds.map(values)
          val plain = choices.map(_.head)
          val changed = for (k <- choices.indices; value <- choices(k).tail) yield plain.updated(k, value)
          val target = targets(i)
          (plain +: changed).flatMap(trial(target, method, _))
        }
        all
      }
    }
    found
  }

  private def none(found: Seq[String]): Unit =
    Assert.assertEquals(s"${found.length} of $calls", "", found.take(20).mkString("\n"))

  @Test def `methods of objects take what they are given or throw`(): Unit = {
    none(sweep(objects))
    Assert.assertTrue(s"$calls calls", calls > 400)
  }

  @Test def `so do those of companions and builders`(): Unit = {
    none(sweep(companions))
    none(sweep(builders))
  }

  @Test def `closed objects throw, whatever is asked of them`(): Unit = {
    val left = for {
      target <- closed
      method <- methods(target) if target.isInstanceOf[Handle]
      line <- trial(target, method, method.getParameterTypes.toSeq.map(kind => values(kind).head))
    } yield line
    none(left)
    for (handle <- closed.collect { case handle: Handle => handle })
      refused(classOf[StateException], "closed")(handle.run(_ => 0L))
  }
}
