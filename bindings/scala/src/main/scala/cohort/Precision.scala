// SPDX-License-Identifier: Apache-2.0
package cohort

import com.sun.jna.Structure

import cohort.abi.CohortCalibration._
import cohort.abi.Constants
import cohort.abi.Structs

/** The types in which a network computes. `compute` BFloat16: for matrix products of float32 arrays, and operators
  * that follow them (Float16 on GPUs; Int8 is inference in int8, with the ranges of a [[Calibration]], for executors,
  * groups and predictors), except for the nodes and operators in `float32Names`, and also for those in `narrowNames`.
  * `tf32`: on GPUs, float32 products may round their factors. `backwardOnce`: backward reuses the memory of the
  * forward pass, so that there can be only one. `recompute`: backward recomputes cheap results instead of keeping
  * them: less memory, a little more time, the same numbers. For groups and managers only: `lossScale`, a factor on
  * the loss, for Float16, which doubles after `lossScaleWindow` good updates (0: 2000); `gradientSum`, the type in
  * which devices' gradients are summed; `keepDeviceAux`: the optimizer saves the moving statistics of each device, which
  * `resume` sets.
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
    recompute: Boolean = false,
    keepDeviceAux: Boolean = false) {
  private[cohort] def of(executor: Structs.ExecutorOptions): Unit = {
    if (lossScale != 0 || lossScaleWindow != 0 || gradientSum != DType.Float32)
      Native.refuse("precision: an executor takes no lossScale, lossScaleWindow and gradientSum", "precision")
    write(executor)
  }

  private[cohort] def ofGroup(options: Structure): Unit = {
    write(options)
    Fields.set(options, "loss_scale" -> lossScale, "loss_scale_window" -> lossScaleWindow,
      "gradient_sum_dtype" -> DType.code(gradientSum), "keep_device_aux" -> Native.bool(keepDeviceAux))
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

  /** Inference in int8, with the ranges of a calibration. */
  def int8(calibration: Calibration): Precision =
    Precision(DType.Int8, calibration = Native.needed(calibration, "calibration"))
}

/** How a [[Calibration]] chooses a range from the observed numbers. */
object CalibrationMethod extends Enumeration {
  type CalibrationMethod = Value

  /** The range from the least to the largest. */
  val MinMax = Value(Constants.CalibrationMethod.MIN_MAX, "min_max")

  /** That range cut off so that int8 preserves most of the distribution. */
  val Entropy = Value(Constants.CalibrationMethod.ENTROPY, "entropy")
}

/** Observes a float32 network on batches and records the range of each of its values. Objects that are then bound
  * with its `Precision.int8` compute in int8; a [[Predictor]] needs it open as long as copies are made of it.
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

  /** Runs a forward pass on the values in the executor's arguments, and records the range of each value. A batch or
    * some hundred samples are usually enough.
    */
  def observe(executor: Executor): Calibration = {
    Native.needed(executor, "executor").use(watched => run(cohort_calibration_observe(_, watched)))
    this
  }

  /** The least and the largest number of a value, under its name in monitors, "conv0_output", or that of an argument.
    */
  def range(name: String): (Double, Double) = {
    val low, high = new Array[Double](1)
    run(cohort_calibration_range(_, Native.in(name, "name"), low, high))
    (low(0), high(0))
  }

  /** All ranges, for [[NDArray.save]]: by name an array of the least and the largest number. */
  def ranges: Map[String, NDArray] = Arrays.named(use(raw => Native.long(cohort_calibration_ranges(raw, _))))
}

object Calibration {

  /** A calibration with these ranges, from [[Calibration.ranges]] of another one; it observes no more. */
  def fromRanges(ranges: Iterable[(String, NDArray)]): Calibration =
    Arrays.of(Native.needed(ranges, "ranges"), "ranges")(given =>
      new Calibration(Native.long(cohort_calibration_create_from(given, _))))
}

/** The state of a loss scale: the factor of the next backward pass (1: none), the number of updates since it changed,
  * and of updates skipped because a gradient was infinite or NaN.
  */
final case class LossScale(scale: Double, numGood: Int, numSkipped: Long)

private[cohort] object LossScales {
  def of(call: (Array[Double], Array[Int], Array[Long]) => Unit): LossScale = {
    val (scale, good, skipped) = (new Array[Double](1), new Array[Int](1), new Array[Long](1))
    call(scale, good, skipped)
    LossScale(scale(0), good(0), skipped(0))
  }
}
