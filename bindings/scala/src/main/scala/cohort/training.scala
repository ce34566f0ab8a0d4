// SPDX-License-Identifier: Apache-2.0
package cohort

import com.sun.jna.Pointer

import cohort.abi.Callbacks.MetricFn
import cohort.abi.CohortInitializer._
import cohort.abi.CohortMetric._
import cohort.abi.CohortNdarray.cohort_ndarray_share
import cohort.abi.CohortOptimizer._

/** Figures accumulated from labels and predictions.
  *
  * {{{
  * val accuracy = EvalMetric("acc")
  * accuracy.update(
  *   Vector(NDArray.array(Array(0f, 1f), Shape(2))),
  *   Vector(NDArray.array(Array(0.9f, 0.1f, 0.8f, 0.2f), Shape(2, 2))))
  * assert(accuracy.get == Vector("accuracy" -> 0.5))
  * }}}
  */
final class EvalMetric private[cohort] (address: Long, family: Family = new Family)
    extends Handle(address, cohort_metric_free, family) {

  /** Adds labels and predictions, pair by pair. */
  def update(labels: IndexedSeq[NDArray], preds: IndexedSeq[NDArray]): Unit =
    Handle.addresses(labels, "labels") { first =>
      Handle.addresses(preds, "preds") { second =>
        run(cohort_metric_update(_, first, first.length, second, second.length))
      }
    }

  /** Like `update`, by name. */
  def update(labels: Map[String, NDArray], preds: Map[String, NDArray]): Unit =
    Arrays.of(Native.needed(labels, "labels"), "labels") { first =>
      Arrays.of(Native.needed(preds, "preds"), "preds")(second => run(cohort_metric_update_named(_, first, second)))
    }

  /** Appends a metric to a composite one. */
  def add(metric: EvalMetric): EvalMetric = {
    use(handle => Native.needed(metric, "metric").use(child => Native.check(cohort_metric_add(handle, child))))
    family.keep(metric.family) // it calls the child's callbacks from now on
    this
  }

  /** A child of a composite metric. */
  def getMetric(index: Int): EvalMetric =
    new EvalMetric(use(handle => Native.long(cohort_metric_child(handle, index, _))), family)
  def numChildren: Int = use(handle => Native.size(cohort_metric_num_children(handle, _)))

  /** Selects labels and outputs by name, if they are given with names. */
  def setNames(labelNames: Seq[String], outputNames: Seq[String]): EvalMetric = {
    val (labels, outputs) = (Native.texts(labelNames, "labelNames"), Native.texts(outputNames, "outputNames"))
    run(cohort_metric_set_names(_, labels, labelNames.length, outputs, outputNames.length))
    this
  }

  def reset(): Unit = run(cohort_metric_reset)

  /** Resets the local values, and keeps the global ones. */
  def resetLocal(): Unit = run(cohort_metric_reset_local)

  /** Names and values since the last reset. */
  def get: IndexedSeq[(String, Double)] = values(everything = false)
  def getGlobal: IndexedSeq[(String, Double)] = values(everything = true)

  /** The first value. */
  def value: Double = get.head._2

  /** The sums and counts behind the values. */
  def counters(everything: Boolean = false): IndexedSeq[(Double, Double)] = use { handle =>
    Native.list(cohort_metric_num_values(handle, _)) { i =>
      val sum, num = new Array[Double](1)
      Native.check(cohort_metric_counters(handle, i, Native.bool(everything), sum, num))
      (sum(0), num(0))
    }
  }

  private def values(everything: Boolean): Vector[(String, Double)] = use { handle =>
    Native.list(cohort_metric_num_values(handle, _)) { i =>
      val name = new Array[Long](1)
      val value = new Array[Double](1)
      Native.check(cohort_metric_value(handle, i, Native.bool(everything), name, value))
      (Native.textAt(name(0)), value(0))
    }
  }
}

object EvalMetric {

  /** By name: "acc", "ce", "top_k_accuracy" with `"top_k" -> 5`, ... */
  def apply(name: String, settings: (String, Any)*): EvalMetric = {
    val pairs = new Native.Attributes(settings, "settings")
    new EvalMetric(Native.long(cohort_metric_create(Native.in(name, "name"), pairs.keys, pairs.words, pairs.num, _)))
  }

  /** A composite of several metrics. */
  def composite(metrics: EvalMetric*): EvalMetric = {
    val made = EvalMetric("composite")
    Native.needed(metrics, "metrics").foreach(made.add)
    made
  }

  /** From a function of label and prediction, which returns a sum and the number to divide it by.
    *
    * {{{
    * val error = EvalMetric.custom("error") { (label, pred) =>
    *   (label.toArray.zip(pred.toArray).map { case (a, b) => math.abs(a - b).toDouble }.sum, label.size.toDouble)
    * }
    * error.update(Vector(NDArray.array(Array(1f, 2f), Shape(2))), Vector(NDArray.array(Array(1f, 4f), Shape(2))))
    * assert(error.get == Vector("error" -> 1.0))
    * }}}
    */
  def custom(name: String, allowExtraOutputs: Boolean = false)(
      function: (NDArray, NDArray) => (Double, Double)): EvalMetric = {
    val callback = new Native.Callback(Native.needed(function, "function"))
    val made = new EvalMetric(Native.long(
      cohort_metric_create_custom(Native.in(name, "name"), Custom, callback.number, Native.bool(allowExtraOutputs), _)))
    made.family.keep(callback)
    made
  }

  private object Custom extends MetricFn {
    override def invoke(labels: Pointer, num_labels: Long, preds: Pointer, num_preds: Long, out_sum: Pointer,
      out_num: Pointer,
        user_data: Long): Int =
      Native.call[(NDArray, NDArray) => (Double, Double)](user_data) { function =>
        def array(list: Pointer, i: Int) = new NDArray(Native.long(cohort_ndarray_share(list.getLong(8L * i), _)))
        val found = Vector.tabulate(math.min(num_labels, num_preds).toInt) { i =>
          val (label, pred) = (array(labels, i), array(preds, i))
          try function(label, pred)
          finally {
            label.close()
            pred.close()
          }
        }
        out_sum.setDouble(0, found.map(_._1).sum)
        out_num.setDouble(0, found.map(_._2).sum)
      }
  }
}

/** A rule that updates parameters from gradients, with a state per parameter. */
final class Optimizer private[cohort] (address: Long) extends Handle(address, cohort_optimizer_free, new Family) {

  /** A setting, or "num_update". */
  def get(key: String): Double = {
    val text = Native.in(key, "key")
    use(handle => Native.double(cohort_optimizer_get(handle, text, _)))
  }

  def set(key: String, value: Double): Optimizer = changed(cohort_optimizer_set(_, Native.in(key, "key"), value))
  def learningRate: Double = get("learning_rate")

  /** Sets a schedule for the learning rate: "factor", "multifactor", "poly", "cosine", "constant"; null: none. */
  def setLrSchedule(name: String, settings: (String, Any)*): Optimizer = {
    val pairs = new Native.Attributes(settings, "settings")
    changed(cohort_optimizer_set_lr_schedule(_, Native.inOrNull(name, "name"), pairs.keys, pairs.words, pairs.num))
  }

  /** Uses `__lr_mult__` and `__wd_mult__` of a symbol's variables. */
  def useSymbol(symbol: Symbol): Optimizer =
    changed(handle => Native.needed(symbol, "symbol").hold(cohort_optimizer_use_symbol(handle, _)))

  /** Multipliers of learning rate and weight decay of a parameter; negative ones leave the present value. */
  def setMult(param: String, lrMult: Double = -1, wdMult: Double = -1): Optimizer =
    changed(cohort_optimizer_set_mult(_, Native.in(param, "param"), lrMult, wdMult))

  def mult(param: String): (Double, Double) = {
    val lr, wd = new Array[Double](1)
    run(cohort_optimizer_mult(_, Native.in(param, "param"), lr, wd))
    (lr(0), wd(0))
  }

  /** Updates one parameter from its gradient. */
  def update(param: String, weight: NDArray, grad: NDArray, copy: Int = 0): Unit =
    Handle.addresses(Seq(weight, grad), "arrays") { arrays =>
      run(cohort_optimizer_update(_, Native.in(param, "param"), copy, arrays(0), arrays(1)))
    }

  /** The loss scale of the group or manager that it updated last; saved with the states. */
  def lossScale: LossScale =
    LossScales.of((scale, good, skipped) => run(cohort_optimizer_loss_scale(_, scale, good, skipped)))

  /** States and counts, from which training can be resumed. */
  def getStates: Array[Byte] =
    use(handle => Native.bytes(cohort_optimizer_save_states_memory(handle, _, _, _)))

  def setStates(states: Array[Byte]): Unit =
    run(cohort_optimizer_load_states_memory(_, java.nio.ByteBuffer.wrap(Native.needed(states, "states")), states.length))

  def saveStates(fname: String): Unit = run(cohort_optimizer_save_states(_, Native.in(fname, "fname")))
  def loadStates(fname: String): Unit = run(cohort_optimizer_load_states(_, Native.in(fname, "fname")))

  private def changed(call: Long => Long): Optimizer = {
    run(call)
    this
  }
}

object Optimizer {

  /** By name: `Optimizer("sgd", "learning_rate" -> 0.1, "momentum" -> 0.9)`. */
  def apply(name: String, settings: (String, Any)*): Optimizer = {
    val pairs = new Native.Attributes(settings, "settings")
    new Optimizer(Native.long(cohort_optimizer_create(Native.in(name, "name"), pairs.keys, pairs.words, pairs.num, _)))
  }
}

/** A rule for the initial values of parameters. */
final class Initializer private[cohort] (address: Long) extends Handle(address, cohort_initializer_free, new Family) {

  /** Fills arrays by name; attributes `__init__` of a symbol's variables take precedence. */
  def fill(arrays: Map[String, NDArray], symbol: Symbol = null): Unit =
    Arrays.of(Native.needed(arrays, "arrays"), "arrays") { list =>
      Handle.optional(symbol)(net => run(cohort_initializer_apply(_, net, list)))
    }

  /** Fills one array by the rule for its name. */
  def fill(name: String, array: NDArray): Unit =
    Native.needed(array, "array").hold(one => run(cohort_initializer_fill(_, Native.in(name, "name"), one)))
}

object Initializer {

  /** By name: `Initializer("xavier", 1, "magnitude" -> 2)`. */
  def apply(name: String, seed: Long, settings: (String, Any)*): Initializer = {
    val pairs = new Native.Attributes(settings, "settings")
    new Initializer(Native.long(cohort_initializer_create(Native.in(name, "name"), pairs.keys, pairs.words, pairs.num,
      seed, _)))
  }
}
