// SPDX-License-Identifier: Apache-2.0
package cohort.test

import cohort._
import cohort.test.Nets._
import org.junit.Test

/** Groups, managers and modules: cases that golden scenarios do not cover. */
final class GroupTest extends Case {
  private def builder(): DataParallelExecutorGroup.Builder =
    new DataParallelExecutorGroup.Builder(linear(), two, Vector("fc_weight"))
      .setDataShapes(Vector(DataDesc("data", Shape(4, 2))))

  @Test def `a group is what its builder says, in any order`(): Unit = {
    val group = builder().setGradReq("add").setWorkLoadList(Vector(1f, 3f)).setInputsNeedGrad(true).build()
    equal(Vector((0, 1), (1, 4)), group.slices)
    equal(Map("data" -> "add", "fc_weight" -> "add"), group.gradReq)
    equal((Vector("data", "fc_weight"), Vector("fc_weight"), Vector("fc_output")),
      (group.argNames, group.paramNames, group.outputNames))
    equal((Vector(DataDesc("data", Shape(4, 2))), None, Vector(0)),
      (group.dataShapes, group.labelShapes, group.dataLayouts))
    equal(Vector(("data", Shape(3, 2))), group.slicedShape(group.dataShapes, 1))
    equal(Vector(("data", Shape(4, 3))), group.slicedShape(group.dataShapes, 1, Vector(1)))
    equal(Vector(1), group.decideSlices(Vector(DataDesc("more", Shape(2, 4), layout = "TN"))))
    equal(Vector(("fc_output", Shape(4, 1))), group.getOutputShapes)
    equal(two.toVector, group.contexts)
    equal(Shape(3, 2), group.sharedDataArrays(1)("data").shape)
    equal((0, 1), group.dataArrays(0)(0)._1)
  }

  @Test def `halves of a sample are rounded as each language's MXNet does`(): Unit = {
    equal(Vector((0, 3), (3, 5)), DataParallelExecutorGroup.splitInputSlice(5, Vector(1f, 1f)))
    equal(Vector((0, 2), (2, 5)), DataParallelExecutorGroup.splitInputSlice(5, Vector(1f, 1f), Rounding.HalfEven))
    equal(Vector((0, 1), (1, 6)), builderOf(6, Vector((0, 1), (1, 6))).slices)
    refused(classOf[InvalidArgumentException])(DataParallelExecutorGroup.splitInputSlice(1, Vector(1f, 1f)))
  }

  private def builderOf(rows: Int, slices: IndexedSeq[(Int, Int)]): DataParallelExecutorGroup =
    builder().setDataShapesByName(Vector(("data", Shape(rows, 2)))).setSlices(slices).build()

  @Test def `the companion makes the same with all at once`(): Unit = {
    val group = DataParallelExecutorGroup(
      linear(), two, Vector(1f, 1f), Vector(DataDesc("data", Shape(4, 2))), None, Vector("fc_weight"), forTraining =
        true,
      inputsNeedGrad = false, gradReq = Map("fc_weight" -> "null"))
    equal("null", group.gradReq("fc_weight"))
    equal(None, group.gradArrays(0)(1))
  }

  @Test def `gradients of outputs and inputs`(): Unit = {
    val group = linearGroup(inputsNeedGrad = true)
    group.forward(linearBatch, Some(true))
    group.backward(Array(array(Shape(4, 1))(1, 2, 3, 4)))
    near(group.getInputGradsMerged()(0).toArray, 1, 10, 2, 20, 3, 30, 4, 40)
    equal(Vector(2, 2), group.getInputGrads()(0).map(_.shape(0)))
    near(group.gradArrays(0)(0).get.toArray, 7, 10)
    refused(classOf[StateException], "inputsNeedGrad")(linearGroup().getInputGrads())
    refused(classOf[StateException])(linearGroup(forTraining = false).backward())
  }

  @Test def `parameters are set by name, and the missing ones known`(): Unit = {
    val group = linearGroup()
    equal(Vector("fc_weight"), group.assignParams(Map.empty, Map.empty, allowMissing = true))
    refused(classOf[UnknownNameException], "fc_weight")(group.assignParams(Map.empty, Map.empty))
    refused(classOf[UnknownNameException], "other")(group.setParams(Map("other" -> NDArray.ones(Shape(1))), null))
    group.setParams(Map("other" -> NDArray.ones(Shape(1))), null, allowExtra = true)
    val target = Map("fc_weight" -> NDArray.zeros(Shape(1, 2)))
    group.getParams(target, Map.empty)
    near(target("fc_weight").toArray, 1, 10)
    group.initParams(Initializer("constant", 0, "value" -> 3))
    near(group.copyParams()._1("fc_weight").toArray, 3, 3)
  }

  @Test def `a reshape keeps parameters, a bind does not`(): Unit = {
    val group = linearGroup()
    group.reshape(Vector(DataDesc("data", Shape(6, 2))), None)
    equal((6, Vector((0, 3), (3, 6))), (group.batchSize, group.slices))
    near(group.paramArrays(0)(1).toArray, 1, 10)
    group.bindExec(Vector(DataDesc("data", Shape(4, 2))), None)
    near(group.paramArrays(0)(1).toArray, 0, 0)
    refused(classOf[StateException])(group.bindExec(Vector(DataDesc("data", Shape(4, 2))), None, rebind = false))
    refused(classOf[InvalidArgumentException])(group.reshape(Vector.empty, None))
  }

  @Test def `groups share parameters`(): Unit = {
    val group = linearGroup()
    val other = builder().setDataShapes(Vector(DataDesc("data", Shape(2, 2)))).setSharedGroup(group).build()
    group.close()
    near(other.paramArrays(0)(0).toArray, 1, 10)
    other.forward(DataBatch(Vector(array(Shape(2, 2))(1, 1, 2, 2))))
    near(other.getOutputsMerged()(0).toArray, 11, 22)
  }

  @Test def `what does not fit is refused`(): Unit = {
    val group = linearGroup()
    refused(classOf[ShapeException], "data")(group.forward(DataBatch(Vector(NDArray.ones(Shape(5, 2))))))
    refused(classOf[InvalidArgumentException])(group.forward(DataBatch(Vector.empty)))
    refused(classOf[InvalidArgumentException], "null")(group.forward(null))
    refused(classOf[InvalidArgumentException],
      "dataShapes")(new DataParallelExecutorGroup.Builder(linear(), two, Vector.empty).build())
    refused(classOf[InvalidArgumentException])(builder().setGradReq("sometimes").build())
    refused(classOf[InvalidArgumentException])(builder().setGradReq(Seq("data" -> "null")))
    refused(classOf[UnknownNameException])(builder().setGradReq(Seq("data" -> "null", "more" -> "null")))
    refused(classOf[InvalidArgumentException])(new DataParallelExecutorGroup.Builder(linear(), Array.empty,
      Vector.empty).setDataShapes(Vector(DataDesc("data", Shape(4, 2)))).build())
    refused(classOf[InvalidArgumentException])(group.updateMetric(EvalMetric("loss"), null))
    refused(classOf[StateException])(group.updateMetric(EvalMetric("loss"), Vector.empty))
    near({ group.forward(linearBatch); group.getOutputsMerged()(0).toArray }, 21, 43, 65, 87)
  }

  @Test def `messages go to the logger that is given`(): Unit = {
    var said = Vector.empty[String]
    val group = new DataParallelExecutorGroup.Builder(mlp(), two, null)
      .setDataShapes(Vector(DataDesc("data", Shape(4, 4))))
      .setLogger((level, text) => said :+= s"$level $text")
      .build()
    group.forward(DataBatch(Vector(NDArray.ones(Shape(4, 4)))), Some(true))
    equal(true, said.exists(_.startsWith("warning")))
  }

  @Test def `states are carried on`(): Unit = {
    val net = Symbol.Variable("data") + Symbol.Variable("state")
    val group = new DataParallelExecutorGroup.Builder(net, two, Vector.empty)
      .setDataShapes(Vector(DataDesc("data", Shape(4, 1))))
      .setStateNames(Vector("state"))
      .build()
    group.setStates(value = Some(2.0))
    group.forward(DataBatch(Vector(NDArray.ones(Shape(4, 1)))), Some(false))
    group.setStates(group.getOutputs())
    near(group.getStates()(0)(1).toArray, 3, 3)
  }

  @Test def `a manager makes buckets by its function`(): Unit = {
    var asked = Vector.empty[AnyRef]
    val manager = Nets.manager(key => { asked :+= key; mlp() })
    manager.initParams(Initializer("uniform", 1))
    equal(None, manager.currExecgrp)
    def batch(key: AnyRef, length: Int) =
      DataBatch(Vector(NDArray.ones(Shape(4, 4))), Vector(array(Shape(4))(0, 1, 2, 0)), bucketKey = key,
      provideData = Vector(DataDesc("data", Shape(4, 4))), provideLabel = Vector(DataDesc("softmax_label", Shape(4))))
    for (key <- Seq("a", "b", "b", "a")) {
      manager.loadDataBatch(batch(key, 4))
      manager.forward(isTrain = true)
      manager.backward()
      manager.update(Optimizer("sgd"))
    }
    equal((Vector("b"), Set("a", "b")), (asked, manager.buckets.keySet))
    equal(Shape(4, 3), manager.getOutputsMerged()(0).shape)
    equal(true, manager.memory.arguments > 0)
    refused(classOf[InvalidArgumentException], "bucketKey")(manager.loadDataBatch(batch(null, 4)))
    val failing = Nets.manager(key => throw new java.util.MissingResourceException("no net", "", key.toString))
    refused(classOf[java.util.MissingResourceException], "no net")(failing.loadDataBatch(batch("c", 4)))
  }

  @Test def `a module follows batches of other shapes and keeps its parameters`(): Unit = {
    val module = new Module(linear(), labelNames = Vector.empty, contexts = two)
    refused(classOf[StateException], "not bound")(module.forward(linearBatch))
    module.bind(Vector(DataDesc("data", Shape(4, 2))))
    module.setParams(Map("fc_weight" -> array(Shape(1, 2))(1, 10)), Map.empty)
    module.forward(DataBatch(Vector(array(Shape(2, 2))(1, 1, 2, 2))))
    near(module.getOutputsMerged()(0).toArray, 11, 22)
    module.bind(Vector(DataDesc("data", Shape(4, 2))), forceRebind = true)
    module.forward(linearBatch)
    near(module.getOutputsMerged()(0).toArray, 21, 43, 65, 87)
    refused(classOf[StateException], "optimizer")(module.update())
    module.close()
  }
}
