// SPDX-License-Identifier: Apache-2.0
package cohort

import com.sun.jna.Structure

import cohort.abi.CohortCalibration._
import cohort.abi.Constants
import cohort.abi.Structs

/** In which types a network computes: `compute` BFloat16 makes products of matrices, and what follows them, of float32
  * arrays in it (Float16 on GPUs; Int8 is inference in bytes, by the ranges of a [[Calibration]], of executors, groups and
  * predictors), but for the nodes and operators in `float32Names`, and those in `narrowNames`, too.
  * `tf32`: on GPUs, float32 products may round their factors. `backwardOnce`: a backward pass works in the memory of the
  * forward pass, so that there is one only. `recompute`: it makes again what is cheap, in the place of keeping it: less
  * memory, somewhat more time, the same numbers. Of groups and managers alone: `lossScale`, a factor on the loss, for Float16,
  * which doubles after `lossScaleWindow` updates (0: 2000); `gradientSum`, in which devices' gradients are summed.
  *
  * {{{
  * val net = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 2, name = "fc")
  * val shapes = Map("data" -> Shape(1, 3))
  * Executor.simpleBind(net, shapes = shapes, precision = Precision(DType.BFloat16, float32Names = Seq("fc"))).forward()
  * }}}
  */
final case class Precision(
    compute: DType.DType = DType.Float32,
    float32Names: Seq[String] = Nil,
    narrowNames: Seq[String] = Nil,
    tf32: Boolean = false,
    backwardOnce: Boolean = false,
    lossScale: Double = 0,
    lossScaleWindow: Int = 0,
    gradientSum: DType.DType = DType.Float32,
    calibration: Calibration = null,
    recompute: Boolean = false) {
  private[cohort] def of(executor: Structs.ExecutorOptions): Unit = {
    if (lossScale != 0 || lossScaleWindow != 0 || gradientSum != DType.Float32)
      Native.refuse("precision: an executor takes no lossScale, lossScaleWindow and gradientSum", "precision")
    write(executor)
  }

  private[cohort] def ofGroup(options: Structure): Unit = {
    write(options)
    Fields.set(options, "loss_scale" -> lossScale, "loss_scale_window" -> lossScaleWindow,
      "gradient_sum_dtype" -> DType.code(gradientSum))
  }

  /** Binds with the calibration, which nobody else uses meanwhile. */
  private[cohort] def during[A](options: Structure)(bind: => A): A =
    if (calibration == null) bind
    else
      calibration.use { handle =>
        Fields.set(options, "calibration" -> handle)
        bind
      }

  private def write(options: Structure): Unit = Fields.set(options, "compute_dtype" -> DType.code(compute),
    "float32_names" -> Native.texts(Native.needed(float32Names, "float32Names"), "float32Names"),
    "num_float32_names" -> float32Names.length,
    "narrow_names" -> Native.texts(Native.needed(narrowNames, "narrowNames"), "narrowNames"),
    "num_narrow_names" -> narrowNames.length, "tf32" -> Native.bool(tf32), "backward_once" -> Native.bool(backwardOnce),
    "recompute" -> Native.bool(recompute))
}

object Precision {

  /** Inference in bytes, by the ranges that a calibration has found. */
  def int8(calibration: Calibration): Precision =
    Precision(DType.Int8, calibration = Native.needed(calibration, "calibration"))
}

/** What a [[Calibration]] makes of the numbers that it sees. */
object CalibrationMethod extends Enumeration {
  type CalibrationMethod = Value

  /** The range from the least to the largest. */
  val MinMax = Value(Constants.CalibrationMethod.MIN_MAX, "min_max")

  /** That range cut off where bytes tell most of how the numbers are distributed. */
  val Entropy = Value(Constants.CalibrationMethod.ENTROPY, "entropy")
}

/** Watches a float32 network on batches and notes in which range each of its values lies. What is then bound with
  * `Precision.int8` of it computes in bytes; a [[Predictor]] needs it open for as long as copies are made of it.
  *
  * {{{
  * val net = sym.FullyConnected(Symbol.Variable("data"), num_hidden = 16, no_bias = true, name = "fc")
  * val weights = Map("fc_weight" -> NDArray.full(Shape(16, 16), 0.5))
  * val shapes = Map("data" -> Shape(4, 16))
  * val wide = new Predictor(net, weights, shapes = shapes)
  * val batch = NDArray.full(Shape(4, 16), 0.25)
  *
  * val calibration = new Calibration(CalibrationMethod.Entropy)
  * wide.observe(calibration, Map("data" -> batch))
  * val narrow = new Predictor(net, weights, shapes = shapes, precision = Precision.int8(calibration))
  * assert(math.abs(narrow.predict(batch.toArray).head - 2) < 0.1)
  * }}}
  */
final class Calibration private (made: Long) extends Handle(made, cohort_calibration_free, new Family) {
  def this(method: CalibrationMethod.CalibrationMethod = CalibrationMethod.MinMax) =
    this(Native.long(cohort_calibration_create(Native.needed(method, "method").id, _)))

  /** Runs a forward pass on what the executor's arguments hold, and notes the numbers of each value. A batch or some
    * hundred samples are usually enough.
    */
  def observe(executor: Executor): Calibration = {
    Native.needed(executor, "executor").use(watched => run(cohort_calibration_observe(_, watched)))
    this
  }

  /** The least and the largest number of a value, by the name that monitors have for it: "conv0_output", or an argument.
    */
  def range(name: String): (Double, Double) = {
    val low, high = new Array[Double](1)
    run(cohort_calibration_range(_, Native.in(name, "name"), low, high))
    (low(0), high(0))
  }

  /** All that was found, to be kept by [[NDArray.save]]: by name an array of the least and the largest number. */
  def ranges: Map[String, NDArray] = Arrays.named(use(raw => Native.long(cohort_calibration_ranges(raw, _))))
}

object Calibration {

  /** One that has found these, as [[Calibration.ranges]] of another gave them, and observes no more. */
  def fromRanges(ranges: Iterable[(String, NDArray)]): Calibration =
    Arrays.of(Native.needed(ranges, "ranges"), "ranges")(given =>
      new Calibration(Native.long(cohort_calibration_create_from(given, _))))
}

/** Where the factor on a loss has come to: what the next backward pass begins with (1: there is none), the updates made
  * since it changed, and those that were skipped because a gradient was infinite or no number.
  */
final case class LossScale(scale: Double, numGood: Int, numSkipped: Long)

private[cohort] object LossScales {
  def of(call: (Array[Double], Array[Int], Array[Long]) => Unit): LossScale = {
    val (scale, good, skipped) = (new Array[Double](1), new Array[Int](1), new Array[Long](1))
    call(scale, good, skipped)
    LossScale(scale(0), good(0), skipped(0))
  }
}
