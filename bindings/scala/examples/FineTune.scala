// SPDX-License-Identifier: Apache-2.0
package cohort.examples

import java.io.File
import java.nio.file.Files

import cohort._

/** Fine-tunes a checkpoint of MXNet on handwritten digits, over three devices that take 5, 2 and 1 of 8 samples. Once it
  * trains without a stop; once it stops half-way, saves parameters and optimizer states, and goes on from the files, as a
  * later process would. Both end with the same bits.
  *
  * scala -cp ... cohort.examples.FineTune PREFIX EPOCH [DIGITS.params [FOLDER]]
  */
object FineTune {
  private val batch = 64

  /** Trains from one checkpoint, and the states beside it if there are any, to another; returns the accuracy. */
  private def tune(train: NDArrayIter, from: String, epoch: Int, to: String, numEpoch: Int): Double = Scope {
    val (net, args, aux) = Model.loadCheckpoint(from, epoch)
    val module = new Module(
      net,
      contexts = Array(Context.cpu(0), Context.cpu(1), Context.cpu(2)),
      workLoadList = Vector(5f, 2f, 1f),
      fixedParamNames = Set("conv1_weight", "conv1_bias"), // the first layer stays as it is
      precision = Precision(keepDeviceAux = true)
    )
    module.bind(train.provideData, Some(train.provideLabel))
    module.setParams(args, aux)
    val sgd = Optimizer("sgd", "learning_rate" -> 0.05, "momentum" -> 0.9)
    val states = new File(f"$from-$epoch%04d.states")
    if (states.exists) sgd.loadStates(states.getPath)
    var accuracy = 0.0
    module.fit(
      train,
      numEpoch = numEpoch,
      optimizer = sgd,
      epochEnd = (_, figures, _) => {
        accuracy = figures.head._2
        true
      })
    module.saveCheckpoint(to, epoch + numEpoch)
    sgd.saveStates(f"$to-${epoch + numEpoch}%04d.states")
    accuracy
  }

  /** The accuracy, and whether training with a stop ends with the same bits as without one. */
  def run(data: String, prefix: String, epoch: Int, numEpoch: Int, folder: File): (Double, Boolean) = {
    val digits = Scope(NDArray.load2Map(data).map { case (name, array) => name -> array.toArray })
    val train = new NDArrayIter(digits("images"), Shape(1, 8, 8), digits("labels"), batch, lastBatchHandle = "discard")
    val (whole, parts, half) = (new File(folder, "whole").getPath, new File(folder, "parts").getPath, numEpoch / 2)
    val accuracy = tune(train, prefix, epoch, whole, numEpoch)
    tune(train, prefix, epoch, parts, half)
    tune(train, parts, epoch + half, parts, numEpoch - half)
    def read(prefix: String) = Files.readAllBytes(new File(f"$prefix-${epoch + numEpoch}%04d.params").toPath).toSeq
    (accuracy, read(whole) == read(parts))
  }

  def main(args: Array[String]): Unit = {
    val digits = args.lift(2).getOrElse("examples/data/digits.params")
    val folder = new File(args.lift(3).getOrElse(System.getProperty("java.io.tmpdir")))
    val (accuracy, same) = run(digits, args(0), args(1).toInt, 6, folder)
    println(f"accuracy $accuracy%.4f, ${if (same) "the same bits" else "OTHER BITS"} after the stop")
  }
}
