// SPDX-License-Identifier: Apache-2.0
package cohort.examples

import java.io.File

import cohort._

/** Trains LeNet on handwritten digits over three devices with unequal shares, saves a checkpoint, and predicts with
  * it.
  *
  * scala -cp ... cohort.examples.TrainDigits [DIGITS.params [PREFIX [EPOCHS]]]
  */
object TrainDigits {
  private val batch = 50
  private val test = 360

  def lenet(): Symbol = {
    var net = Symbol.Variable("data")
    for ((filters, i) <- Seq(20, 50).zipWithIndex) {
      net = sym.Convolution(net, kernel = (3, 3), pad = (1, 1), num_filter = filters, name = s"conv${i + 1}")
      net = sym.Pooling(sym.tanh(net), kernel = (2, 2), stride = (2, 2), pool_type = "max")
    }
    net = sym.tanh(sym.FullyConnected(sym.Flatten(net), num_hidden = 128, name = "fc1"))
    sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden = 10, name = "fc2"), name = "softmax")
  }

  /** Images and labels in an order that is the same in each run. */
  def load(path: String): (Array[Array[Float]], Array[Float]) = Scope {
    val file = NDArray.load2Map(path)
    val images = file("images").toArray.grouped(64).toArray
    val order = new scala.util.Random(1).shuffle(images.indices.toVector)
    val labels = file("labels").toArray
    (order.map(images(_)).toArray, order.map(labels(_)).toArray)
  }

  def train(digits: String, prefix: String, epochs: Int): Double = {
    val (images, labels) = load(digits)
    val (trainImages, testImages) = images.splitAt(images.length - test)
    val (trainLabels, testLabels) = labels.splitAt(images.length - test)
    val train = new NDArrayIter(trainImages.flatten, Shape(1, 8, 8), trainLabels, batch, shuffleSeed = Some(1))

    Scope {
      val module = new Module(
        lenet(),
        contexts = Array(Context.cpu(0), Context.cpu(1), Context.cpu(2)),
        workLoadList = Vector(2f, 1f, 1f))
      val sgd = Optimizer("sgd", "learning_rate" -> 0.05, "momentum" -> 0.9)
        .setLrSchedule("cosine", "max_update" -> epochs * train.numBatches)
      module.fit(
        train,
        numEpoch = epochs,
        optimizer = sgd,
        initializer = Initializer("xavier", 1),
        epochEnd = (epoch, figures, _) => {
          for ((name, value) <- figures) println(f"epoch ${epoch + 1}: train $name $value%.4f")
          true
        })
      module.saveCheckpoint(prefix, epochs)
    }

    Scope {
      val predictor = Predictor.load(prefix, epochs, Map("data" -> Shape(1, 1, 8, 8)))
      val scores = predictor.predict(testImages.flatten).grouped(10).toArray
      val right = scores.zip(testLabels).count { case (row, label) => row.indexOf(row.max) == label.toInt }
      val accuracy = right.toDouble / test
      println(f"test accuracy: $accuracy%.4f")
      accuracy
    }
  }

  def main(args: Array[String]): Unit = {
    val digits = args.lift(0).getOrElse("examples/data/digits.params")
    val prefix = args.lift(1).getOrElse(new File(System.getProperty("java.io.tmpdir"), "digits").getPath)
    train(digits, prefix, args.lift(2).fold(8)(_.toInt))
  }
}
