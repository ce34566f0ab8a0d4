// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import cohort._
import cohort.test.Nets._
import org.junit.Test

/** Threads, and the garbage collector at its worst moments. */
final class ThreadsTest extends Case {
  private def inThread(body: => Unit): Thread = {
    val thread = new Thread(new Runnable { override def run(): Unit = body })
    thread.start()
    thread
  }

  @Test def `predictors on the same parameters run at once`(): Unit = {
    val random = new scala.util.Random(1)
    val weights =
      Map("fc_weight" -> array(Shape(3, 4))(Seq.fill(12)(random.nextFloat()): _*), "fc_bias" -> NDArray.zeros(Shape(3)))
    val first = new Predictor(mlp(), weights, shapes = Map("data" -> Shape(2, 4)))
    val predictors = first +: Vector.fill(3)(first.copy())
    val data = Vector.fill(60)(Array.fill(8)(random.nextFloat()))
    val expected = data.map(first.predict(_).toSeq)
    inThreads(4)(i => for ((one, wanted) <- data.zip(expected)) equal(wanted, predictors(i).predict(one).toSeq))
    equal(9, first.predict(Array.fill(12)(1f)).length) // a batch of another length
    refused(classOf[ShapeException])(first.predict(Array(1f)))
    refused(classOf[UnknownNameException])(first.predict(Map("other" -> weights("fc_bias"))))
    refused(classOf[UnknownNameException],
      "fc_weight")(new Predictor(mlp(), Map.empty, shapes = Map("data" -> Shape(2, 4))))
    predictors.foreach(_.close())
  }

  @Test def `a predictor takes what network and parameters say`(): Unit = {
    val loss = sym.LinearRegressionOutput(linear(), Symbol.Variable("target"), name = "near")
    equal(Vector("target"), loss.listLabels())
    val weight = array(Shape(1, 2))(1, 10)
    for (dtype <- Seq(DType.Float32, DType.Float64)) {
      val params = Map("fc_weight" -> weight.asType(dtype), "of_another_head" -> NDArray.zeros(Shape(3)))
      val predictor = new Predictor(loss, params, shapes = Map("data" -> Shape(1, 2)))
      val found = predictor.predict(Map("data" -> array(Shape(1, 2))(3, 4)))
      equal(dtype, found(0).dtype)
      near(found(0).asType(DType.Float32).toArray, 43f)
      predictor.close()
      refused(classOf[UnknownNameException],
        "no argument 'dat'; it has: data")(new Predictor(loss, params, shapes = Map("dat" -> Shape(1, 2))))
    }
  }

  @Test def `one object in several threads is used by one after the other`(): Unit = {
    val weights = Map("fc_weight" -> array(Shape(1, 2))(1, 10))
    val predictor = new Predictor(linear(), weights, shapes = Map("data" -> Shape(1, 2)))
    val (metric, shared) = (EvalMetric("loss"), NDArray.zeros(Shape(3)))
    inThreads(4) { i =>
      for (k <- 0 until 30) {
        equal(i + 10f * k, predictor.predict(Array.fill(1 + i % 2)(Array[Float](i.toFloat, k.toFloat)).flatten).head)
        metric.update(Vector.empty[NDArray], Vector(array(Shape(1))(1)))
        shared.set(k.toFloat)
        shared.toArray
      }
    }
    equal(1.0, metric.value)
    predictor.close()
  }

  @Test def `groups of their own train at once`(): Unit = inThreads(4) { i =>
    val group = linearGroup()
    group.setParams(Map("fc_weight" -> array(Shape(1, 2))(1, i.toFloat)), null)
    for (_ <- 0 until 20) {
      group.forward(linearBatch, Some(true))
      group.backward(Array(NDArray.ones(Shape(4, 1))))
    }
    near(group.getOutputsMerged()(0).toArray, Seq(1f, 3f, 5f, 7f).map(x => x + (x + 1) * i): _*)
  }

  @Test def `a call lets other threads run`(): Unit = {
    val executor = linear().simpleBind(shapes = Map("data" -> Shape(1, 2)))
    val (inside, goOn, waited) = (new CountDownLatch(1), new CountDownLatch(1), new AtomicBoolean)
    executor.setMonitorCallback { (_, array) =>
      array.close()
      inside.countDown()
      waited.set(goOn.await(20, TimeUnit.SECONDS))
    }
    val runs = inThread(executor.forward())
    inside.await()
    val other = linear().simpleBind(shapes = Map("data" -> Shape(1, 2)))
    other.forward() // while the other thread is inside its call
    near(other.outputs(0).toArray, 0)
    goOn.countDown()
    runs.join()
    equal(true, waited.get)
  }

  @Test def `closing waits for the call of another thread`(): Unit = {
    val executor = linear().simpleBind(shapes = Map("data" -> Shape(1, 2)))
    val (inside, ended) = (new CountDownLatch(1), new AtomicBoolean)
    executor.setMonitorCallback { (_, array) =>
      array.close()
      inside.countDown()
      Thread.sleep(50)
    }
    val runs = inThread {
      executor.forward()
      ended.set(true)
    }
    inside.await()
    executor.close()
    runs.join()
    equal(true, ended.get)
    refused(classOf[StateException], "closed")(executor.forward())
  }

  @Test def `arguments that another thread closes are used whole or refused`(): Unit = {
    val group = linearGroup()
    for (_ <- 0 until 100) {
      val data = NDArray.ones(Shape(4, 2))
      val closes = inThread(data.close())
      try {
        group.forward(DataBatch(Vector(data)))
        near(group.getOutputsMerged()(0).toArray, 11, 11, 11, 11)
      } catch { case _: StateException => }
      closes.join()
    }
  }

  @Test def `the collector may run at any moment`(): Unit = {
    val stop = new AtomicBoolean
    val collector = inThread(while (!stop.get) {
      System.gc()
      Thread.sleep(1)
    })
    val before = Cohort.liveHandles
    inThread { // outside the test's scope: only the garbage collector frees
      for (i <- 0 until 15) {
        val manager = Nets.manager()
        manager.loadDataBatch(mlpBatch)
        manager.forward(isTrain = true)
        manager.backward()
        val group = linearGroup()
        group.setMonitorCallback((_, _) => Vector.fill(3)(NDArray.zeros(Shape(2))))
        group.forward(linearBatch, Some(true))
        val views = group.paramArrays.flatten.map(_.at(0)) ++ group.getOutputsMerged()
        for (_ <- 0 until 20) equal(Seq(21f, 43f, 65f, 87f), views.last.toArray.toSeq)
        equal(10f, views(i % 2).toArray.last)
      }
    }.join()
    stop.set(true)
    collector.join()
    equal((before, 0), Case.settled((before, 0)))
  }

  @Test def `a cycle through a callback is collected`(): Unit = {
    inThread {
      lazy val manager: DataParallelExecutorManager = Nets.manager(key => if (manager.isClosed) null else mlp())
      manager.loadDataBatch(mlpBatch.copy(bucketKey = "a"))
      lazy val executor: Executor = linear().simpleBind(shapes = Map("data" -> Shape(1, 2)))
      executor.setMonitorCallback((_, _) => executor.isClosed)
      executor.forward()
      equal(2, Native.Callback.count)
    }.join()
    equal((0L, 0), Case.settled((0L, 0)))
  }

  @Test def `objects may go in any order`(): Unit = {
    val random = new scala.util.Random(4)
    for (_ <- 0 until 10) {
      val group = linearGroup()
      group.forward(linearBatch)
      val all: Seq[Handle] =
        Seq(group, group.symbol) ++ group.execs ++ group.getOutputsMerged() ++ group.getOutputs().flatten ++
          group.dataArrays(0).map(_._2)
      random.shuffle(all).foreach(_.close())
    }
  }

  @Test def `what is closed in a callback goes behind the call`(): Unit = {
    val executor = linear().simpleBind(shapes = Map("data" -> Shape(1, 2)))
    val held = Seq(NDArray.zeros(Shape(2)), linear().simpleBind(shapes = Map("data" -> Shape(1, 2))), executor)
    var (before, inside) = (0L, 0L)
    executor.setMonitorCallback { (_, array) =>
      before = Cohort.liveHandles
      held.foreach(_.close())
      array.close()
      inside = Cohort.liveHandles
    }
    executor.forward()
    equal(before, inside)
    Cohort.waitAll()
    equal(true, Cohort.liveHandles <= before - 4)
    refused(classOf[StateException])(executor.forward())
  }

  @Test def `callbacks inside callbacks throw where they belong`(): Unit = {
    val (outer, inner) = (linear().simpleBind(shapes = Map("data" -> Shape(1, 2))),
      linear().simpleBind(shapes = Map("data" -> Shape(1, 2))))
    var told = ""
    inner.setMonitorCallback((_, _) => throw new NoSuchFieldException("inner"))
    outer.setMonitorCallback { (_, _) =>
      try inner.forward()
      catch { case error: NoSuchFieldException => told = error.getMessage }
      throw new ArithmeticException("outer")
    }
    refused(classOf[ArithmeticException], "outer")(outer.forward())
    equal("inner", told)
    outer.setMonitorCallback(null)
    outer.forward()
  }

  @Test def `a callback may not run what runs it`(): Unit = {
    val group = linearGroup()
    var said: Throwable = null
    group.setMonitorCallback((_, _) =>
      try group.forward(linearBatch)
      catch { case error: CohortException => said = error })
    group.forward(linearBatch)
    group.setMonitorCallback(null)
    equal(true, said.isInstanceOf[StateException])
    group.forward(linearBatch)
    near(group.getOutputsMerged()(0).toArray, 21, 43, 65, 87)
  }

  @Test def `memory that is lent stays until queued work has read it`(): Unit = {
    val group = linearGroup(forTraining = false)
    for (i <- 0 until 20) {
      val buffer = java.nio.ByteBuffer.allocateDirect(32).order(java.nio.ByteOrder.nativeOrder)
      buffer.asFloatBuffer.put(Array.fill(8)(i.toFloat))
      val lent = NDArray.wrap(buffer, Shape(4, 2))
      group.load(DataBatch(Vector(lent)))
      lent.close()
      System.gc()
      group.runForward(Some(false))
      near(group.getOutputsMerged()(0).toArray, Seq.fill(4)(11f * i): _*)
    }
  }

  @Test def `a process ends well whatever is alive and running`(): Unit = {
    val java = System.getProperty("java.home") + "/bin/java"
    for (how <- Seq("returns", "exits")) {
      val process = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), "cohort.test.Ends", how)
        .redirectErrorStream(true)
        .start()
      val said = scala.io.Source.fromInputStream(process.getInputStream, "UTF-8").mkString
      equal((0, "end\n"), (process.waitFor(), said))
    }
  }
}

/** A program that closes nothing, and ends while another thread is in a call. */
object Ends {
  private val held = scala.collection.mutable.ArrayBuffer.empty[AnyRef]

  def main(args: Array[String]): Unit = {
    val executor = linear().simpleBind(shapes = Map("data" -> Shape(1, 2)))
    executor.setMonitorCallback((_, _) => held.synchronized(held += NDArray.ones(Shape(1))))
    executor.forward()
    val lent = NDArray.wrap(java.nio.ByteBuffer.allocateDirect(4096), Shape(1024))
    held ++= Seq(executor, lent, new Tape, Nets.manager(_ => mlp()), new LogReceiver(LogLevel.Error)((_, _) => ()))
    val group = linearGroup()
    val began = new CountDownLatch(1)
    val thread = new Thread(new Runnable {
      override def run(): Unit = while (true) {
        group.forward(linearBatch)
        began.countDown()
      }
    })
    thread.setDaemon(true)
    thread.start()
    began.await()
    println("end")
    if (args(0) == "exits") System.exit(0)
  }
}
