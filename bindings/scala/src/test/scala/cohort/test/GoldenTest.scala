// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File

import org.junit.{Assert, Test}
import org.junit.runner.RunWith
import org.junit.runners.Parameterized

/** Compares with MXNet 1.9.1, scenario by scenario. */
@RunWith(classOf[Parameterized])
final class GoldenTest(name: String) extends Case {
  @Test def replays(): Unit =
    Assert.assertEquals("", new Scenario(new File(GoldenTest.folder, name)).run().take(5).mkString("\n"))
}

object GoldenTest {
  val folder = new File(Nets.root, "tests/golden/group")

  @Parameterized.Parameters(name = "{0}")
  def scenarios(): java.util.List[Array[AnyRef]] = {
    val names = folder.listFiles.filter(_.isDirectory).map(_.getName).sorted
    java.util.Arrays.asList(names.map(name => Array[AnyRef](name)): _*)
  }
}
