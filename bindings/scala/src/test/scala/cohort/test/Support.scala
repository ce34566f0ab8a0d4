// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File

import cohort._
import org.junit.{Assert, Rule}
import org.junit.rules.TestRule
import org.junit.runner.{Description, JUnitCore}
import org.junit.runner.notification.{Failure, RunListener}
import org.junit.runners.model.Statement

/** Each test runs in a scope; at its end no object of the library, and no callback, may be left. */
abstract class Case {
  @Rule def scoped: TestRule = new TestRule {
    override def apply(base: Statement, description: Description): Statement = new Statement {
      override def evaluate(): Unit = {
        val before = Case.settled((0, 0)) // (0, 0), except after a test that has failed
        Scope(base.evaluate())
        Cohort.waitAll()
        val left = Case.settled(before)
        if (left != before)
          throw new AssertionError(s"left: ${left._1 - before._1} handles, ${left._2 - before._2} functions")
      }
    }
  }

  def near(found: Array[Float], expected: Float*): Unit = Assert.assertArrayEquals(expected.toArray, found, 1e-4f)

  def equal(expected: Any, found: Any): Unit = Assert.assertEquals(expected, found)

  /** The exception that a call throws, whose message contains these words. */
  def refused[E <: Throwable](kind: Class[E], words: String = "")(call: => Any): E = {
    val thrown =
      try {
        call
        null
      } catch { case error: Throwable => error }
    if (thrown == null) throw new AssertionError(s"expected ${kind.getSimpleName}, found success")
    if (!kind.isInstance(thrown)) throw new AssertionError(s"expected ${kind.getSimpleName}, found $thrown", thrown)
    Assert.assertTrue(s"'$words' is not in: ${thrown.getMessage}", thrown.getMessage.contains(words))
    kind.cast(thrown)
  }
}

object Case {
  def left(): (Long, Int) = (Cohort.liveHandles, Native.Callback.count)

  /** The objects that remain after the garbage collector and the cleaners have run. */
  def settled(wanted: (Long, Int)): (Long, Int) = {
    var tries = 0
    while (left() != wanted && tries < 1000) {
      System.gc()
      Thread.sleep(if (tries < 5) 2 else 20)
      tries += 1
    }
    left()
  }
}

/** Networks and batches that several tests use. */
object Nets {
  val root: File = new File(System.getProperty("cohort.root", ".")).getAbsoluteFile

  /** data (B, 4) -> fc (3) -> softmax */
  def mlp(): Symbol =
    sym.SoftmaxOutput(sym.FullyConnected(Symbol.Variable("data"), num_hidden = 3, name = "fc"), name = "softmax")

  /** data * w', without a loss. */
  def linear(): Symbol = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 1, no_bias = true, name = "fc")

  val two: Array[Context] = Array(Context.cpu(0), Context.cpu(1))

  def array(shape: Shape)(values: Float*): NDArray = NDArray.array(values.toArray, shape)

  def linearGroup(inputsNeedGrad: Boolean = false, forTraining: Boolean = true): DataParallelExecutorGroup = {
    val group = new DataParallelExecutorGroup.Builder(linear(), two, Vector("fc_weight"))
      .setDataShapes(Vector(DataDesc("data", Shape(4, 2))))
      .setInputsNeedGrad(inputsNeedGrad)
      .setForTraining(forTraining)
      .build()
    group.setParams(Map("fc_weight" -> array(Shape(1, 2))(1, 10)), null)
    group
  }

  def linearBatch: DataBatch = DataBatch(Vector(array(Shape(4, 2))(1, 2, 3, 4, 5, 6, 7, 8)))

  def manager(symGen: AnyRef => Symbol = null): DataParallelExecutorManager = {
    val builder = new DataParallelExecutorManager.Builder(mlp(), two, Vector("fc_weight", "fc_bias"))
      .setBatchSize(4)
      .setDataShapes(Vector(DataDesc("data", Shape(4, 4))))
      .setLabelShapes(Vector(DataDesc("softmax_label", Shape(4))))
    (if (symGen == null) builder else builder.setSymGen("a", symGen)).build()
  }

  def mlpBatch: DataBatch = DataBatch(Vector(NDArray.ones(Shape(4, 4))), Vector(array(Shape(4))(0, 1, 2, 0)))

  def inThreads(num: Int)(work: Int => Unit): Unit = {
    val raised = new java.util.concurrent.ConcurrentLinkedQueue[Throwable]
    val ready = new java.util.concurrent.CyclicBarrier(num)
    val threads = Vector.tabulate(num) { i =>
      new Thread(new Runnable {
        override def run(): Unit =
          try {
            ready.await()
            Scope(work(i))
          } catch { case error: Throwable => raised.add(error) }
      })
    }
    threads.foreach(_.start())
    threads.foreach(_.join())
    if (!raised.isEmpty) throw raised.peek
  }

  def inFolder[A](body: File => A): A = {
    val folder = java.nio.file.Files.createTempDirectory("cohort").toFile
    def remove(file: File): Unit = {
      Option(file.listFiles).foreach(_.foreach(remove))
      file.delete()
    }
    try body(folder)
    finally remove(folder)
  }
}

/** Runs the named test classes and writes TAP; a test is named by the sentence that it proves. */
object RunTap {
  def main(args: Array[String]): Unit = {
    var (number, failed) = (0, false)
    val core = new JUnitCore
    core.addListener(new RunListener {
      private var why: Option[Failure] = None
      override def testStarted(description: Description): Unit = why = None
      override def testFailure(failure: Failure): Unit = {
        why = Some(failure)
        if (failure.getDescription.isSuite) testFinished(failure.getDescription)
      }
      override def testFinished(description: Description): Unit = {
        number += 1
        for (failure <- why) {
          failed = true
          val own = failure.getTrace.split("\n").filterNot(_.matches("\\s+at (org\\.junit|java|jdk|sun|scala)\\..*"))
          own.take(12).foreach(line => println(s"# $line"))
        }
        val method = Option(description.getMethodName).getOrElse("class")
        val name = scala.reflect.NameTransformer.decode(method).replaceAll("\\[(.*)\\]$", " $1")
        println(s"${if (why.isEmpty) "ok" else "not ok"} $number - ${description.getTestClass.getSimpleName}: $name")
      }
    })
    core.run(args.map(name => Class.forName("cohort.test." + name)): _*)
    println(s"1..$number")
    System.out.flush()
    System.exit(if (failed || number == 0) 1 else 0)
  }
}
