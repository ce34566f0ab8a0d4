// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File

import cohort.examples.{FineTune, TrainDigits}
import org.junit.{Assert, BeforeClass, Test}

/** The program that the documentation names, and its examples. */
final class DocumentationTest extends Case {
  @Test def `the digits are learned over three devices with shares of different size`(): Unit =
    Assert.assertTrue(s"accuracy ${DocumentationTest.accuracy}", DocumentationTest.accuracy > 0.95)

  @Test def `a checkpoint of MXNet is fine-tuned, and a stop changes no bit`(): Unit = Nets.inFolder { folder =>
    val golden = new File(Nets.root, "tests/golden/group/lenet_2dev").toPath
    for ((from, to) <- Seq("symbol.json" -> "net-symbol.json", "init.params" -> "net-0007.params"))
      java.nio.file.Files.copy(golden.resolve(from), new File(folder, to).toPath)
    val digits = new File(Nets.root, "examples/data/digits.params").getPath
    val (accuracy, same) = FineTune.run(digits, new File(folder, "net").getPath, 7, 6, folder)
    Assert.assertTrue(s"accuracy $accuracy", accuracy > 0.85)
    Assert.assertTrue(same)
  }

  @Test def `the program has under 100 lines`(): Unit = {
    val source = scala.io.Source.fromFile(new File(Nets.root, "bindings/scala/examples/TrainDigits.scala"), "UTF-8")
    try Assert.assertTrue(source.getLines().length < 100)
    finally source.close()
  }

  // The build generates Examples from the README and the comments of the classes.
  @Test def `the examples of the README and of the classes run`(): Unit = {
    Assert.assertTrue(Examples.all.length >= 12)
    for ((place, example) <- Examples.all)
      try cohort.Scope(example())
      catch { case error: Throwable => throw new AssertionError(s"$place: $error", error) }
  }
}

object DocumentationTest {
  private var accuracy = 0.0

  @BeforeClass def train(): Unit = {
    new File("model").mkdirs()
    accuracy = TrainDigits.train(new File(Nets.root, "examples/data/digits.params").getPath, "model/digits", 6)
  }
}
