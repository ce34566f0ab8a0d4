// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File
import java.util.concurrent.{CountDownLatch, TimeUnit}

import cohort._
import cohort.test.Nets._
import org.junit.{Assert, Test}

/** Objects that nothing refers to, and that nobody closes. */
final class MemoryTest extends Case {
  // In a process of its own, whose memory no other test uses.
  private def peakOf(what: String): Int = {
    val java = new File(System.getProperty("java.home"), "bin/java").getPath
    val command = new ProcessBuilder(java, "-Xmx128m", "-cp", System.getProperty("java.class.path"),
      "cohort.test.MemoryTest", what)
    for (name <- Seq("cohort.library", "jna.library.path"); value <- Option(System.getProperty(name)))
      command.command.add(1, s"-D$name=$value")
    val process = command.redirectErrorStream(true).start()
    val output = scala.io.Source.fromInputStream(process.getInputStream, "UTF-8").mkString
    Assert.assertEquals(output, 0, process.waitFor())
    output.trim.toInt
  }

  private def underLimit(mib: Int): Unit = Assert.assertTrue(s"$mib MiB", mib < 600)

  @Test def `arrays that are dropped do not fill memory`(): Unit = underLimit(peakOf("arrays"))

  @Test def `executors and groups that are dropped do not fill memory`(): Unit = underLimit(peakOf("bound"))

  @Test def `dropped arrays are freed before there is no room`(): Unit = {
    val device = Context.cpu(0)
    val kept = NDArray.ones(Shape(1 << 18))
    device.limitMemory(device.memory.used + (16 << 20)) // less than what the collector is run at
    try {
      MemoryTest.dropArrays(200)
      val held = Iterator.continually(scala.util.Try(NDArray.zeros(Shape(1 << 18)))).take(100).takeWhile(_.isSuccess).toVector
      Assert.assertTrue(s"room for ${held.length}", held.length >= 12 && held.length <= 17)
      refused(classOf[MemoryException], "no room")(NDArray.zeros(Shape(1 << 18)))
      held.foreach(_.get.close())
      equal(1f, kept.slice(0, 1).toScalar)
    } finally device.limitMemory(0)
  }

  @Test def `a thread that frees slowly stops no other`(): Unit = {
    val begun = new CountDownLatch(2) // in the thread that frees, and in the one that collects
    val go = new CountDownLatch(1)
    @volatile var waited = true
    for (_ <- 1 to 8) MemoryTest.dropFreedBy { () =>
      begun.countDown()
      waited &= go.await(20, TimeUnit.SECONDS)
    }
    val collecting = new Thread {
      override def run(): Unit = MemoryTest.collectInCall(())
    }
    collecting.start()
    Assert.assertTrue(begun.await(20, TimeUnit.SECONDS))
    val kept = NDArray.zeros(Shape(20 << 20)) // 80 MiB: more than what the collector is run at
    go.countDown()
    collecting.join()
    kept.close()
    Assert.assertTrue(waited)
  }

  @Test def `a call is made again when all that was found is freed`(): Unit = {
    val begun = new CountDownLatch(1)
    @volatile var freed = false
    MemoryTest.dropFreedBy { () =>
      begun.countDown()
      Thread.sleep(300)
      freed = true
    }
    System.gc()
    Assert.assertTrue(begun.await(20, TimeUnit.SECONDS))
    Assert.assertTrue(MemoryTest.collectInCall(freed))
  }
}

object MemoryTest {
  def dropFreedBy(free: () => Unit): Unit = new Handle(0, _ => free(), new Family) {}

  /** A call that fails for want of memory, then returns the value. */
  def collectInCall[A](value: => A): A = {
    var calls = 0
    Garbage.withRoom {
      calls += 1
      if (calls == 1) throw new MemoryException("no memory", "")
      value
    }
  }

  def dropArrays(num: Int): Unit = for (_ <- 1 to num) NDArray.zeros(Shape(1 << 18)) // 1 MiB

  private def dropBound(num: Int): Unit = for (_ <- 1 to num) { // 9 MiB each: data, and outputs
    linear().simpleBind(shapes = Map("data" -> Shape(1 << 18, 8)), gradReq = "null")
    new DataParallelExecutorGroup.Builder(linear(), two, Vector("fc_weight"))
      .setDataShapes(Vector(DataDesc("data", Shape(1 << 18, 8))))
      .setForTraining(false)
      .build()
  }

  /** Writes the most memory that this process has had, in MiB. */
  def main(args: Array[String]): Unit = {
    if (args.head == "arrays") dropArrays(6000) else dropBound(80)
    val status = scala.io.Source.fromFile("/proc/self/status")
    val peak = """VmHWM:\s*(\d+) kB""".r
    println(status.getLines().collectFirst { case peak(kib) => kib.toInt / 1024 }.get)
  }
}
