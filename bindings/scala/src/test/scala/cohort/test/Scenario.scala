// SPDX-License-Identifier: Apache-2.0
package cohort.test

import java.io.File

import scala.collection.mutable

import cohort._

/** The fields of a step, or of a part of one. */
final class Step(val fields: Map[String, Any]) {
  def get(key: String): Any = fields.getOrElse(key, null)
  def has(key: String): Boolean = get(key) != null
  def text(key: String): String = get(key).asInstanceOf[String]
  def textOr(key: String, default: String): String = if (has(key)) text(key) else default
  def int(key: String): Int = get(key).asInstanceOf[Double].toInt
  def intOr(key: String, default: Int): Int = if (has(key)) int(key) else default
  def double(key: String, default: Double = 0): Double = if (has(key)) get(key).asInstanceOf[Double] else default
  def flag(key: String, default: Boolean = false): Boolean = if (has(key)) get(key).asInstanceOf[Boolean] else default
  def list(key: String): Vector[Any] = get(key).asInstanceOf[Vector[Any]]
  def texts(key: String): Vector[String] = if (has(key)) list(key).asInstanceOf[Vector[String]] else Vector.empty
  def map(key: String): Map[String, Any] = if (has(key)) get(key).asInstanceOf[Map[String, Any]] else Map.empty
  def isTrain: Option[Boolean] = if (has("is_train")) Some(flag("is_train")) else None
}

/** Replays a scenario of tests/golden/group, which records results of MXNet 1.9.1, with the classes of this binding.
  * tests/golden/README.md describes the format.
  */
final class Scenario(folder: File) extends GoldenSteps {
  private val head = new Step(Json.read(new File(folder, "scenario.json")))
  private val files = mutable.Map.empty[String, Map[String, NDArray]]
  private val symbols = mutable.Map.empty[String, Symbol]

  /** Runs all steps; returns a line for each difference. */
  def run(): Vector[String] = {
    val failures = mutable.ArrayBuffer.empty[String]
    for ((one, number) <- head.list("steps").zipWithIndex if failures.isEmpty) {
      val step = new Step(one.asInstanceOf[Map[String, Any]])
      val place = s"step $number ${step.text("op")}: "
      val expected = step.get("expect")
      val error = expected match {
        case map: Map[_, _] => map.asInstanceOf[Map[String, Any]].getOrElse("error", null)
        case _              => null
      }
      try {
        val found = run(step)
        if (error != null) failures += s"${place}expected an error ($error), found success"
        else if (expected != null) {
          val List(rtol, atol) = List("rtol", "atol").map(key => step.double(key, head.double(key)))
          failures ++= differences(expected, found, "", rtol, atol).map(place + _)
        }
      } catch {
        case why: CohortException =>
          if (error == null) failures += s"$place$why"
          else {
            val kind = Scenario.kindOf(new Step(error.asInstanceOf[Map[String, Any]]).text("class"))
            if (!kind.isInstance(why)) failures += s"${place}expected ${kind.getSimpleName}, found $why"
          }
      }
    }
    failures.toVector
  }

  // ---- what is expected

  private def differences(expected: Any, found: Any, what: String, rtol: Double, atol: Double): Seq[String] =
    (expected, found) match {
    case (map: Map[_, _], array: NDArray) =>
      val reference = new Step(map.asInstanceOf[Map[String, Any]])
      compare(this.array(reference.fields), array, what, rtol, reference.double("atol", atol))
    case (wanted: Map[_, _], map: Map[_, _]) =>
      wanted.toSeq.flatMap { case (key, value) =>
        map.asInstanceOf[Map[Any, Any]].get(key) match {
          case Some(one) => differences(value, one, s"$what.$key", rtol, atol)
          case None      => Seq(s"$what.$key: is not there")
        }
      }
    case (wanted: Vector[_], list: Seq[_]) if wanted.length == list.length =>
      wanted.indices.flatMap(i => differences(wanted(i), list(i), s"$what[$i]", rtol, atol))
    case (wanted: Vector[_], shape: Shape) => differences(wanted, shape.toVector, what, rtol, atol)
    case (wanted: Vector[_], (a, b))       => differences(wanted, Vector(a, b), what, rtol, atol)
    case (wanted: Vector[_], (a, b, c))    => differences(wanted, Vector(a, b, c), what, rtol, atol)
    case (wanted, Some(one))               => differences(wanted, one, what, rtol, atol)
    case (null, None | null)               => Nil
    case (wanted: Double, number: Number)  => numbers(wanted, number.doubleValue, what, rtol, atol)
    case (wanted: Double, text: String)    => numbers(wanted, number(text), what, rtol, atol)
    case (wanted: String, number: Double)  => numbers(this.number(wanted), number, what, rtol, atol)
    case (wanted: String, text: String) =>
      if (wanted == text ||
        asNumbers(wanted, text).exists { case (a, b) => numbers(a, b, what, rtol, atol).isEmpty }) Nil
      else Seq(s"$what: expected $wanted, found $text")
    case _ => if (expected == found) Nil else Seq(s"$what: expected $expected, found $found")
  }

  private def asNumbers(a: String, b: String): Option[(Double, Double)] =
    try Some((number(a), number(b)))
    catch { case _: NumberFormatException => None }

  private def number(text: String): Double = if (text.trim == "nan") Double.NaN else text.trim.toDouble

  private def numbers(e: Double, f: Double, what: String, rtol: Double, atol: Double): Seq[String] =
    if (e == f || (e.isNaN && f.isNaN) || math.abs(f - e) <= atol + rtol * math.abs(e)) Nil
    else Seq(s"$what: expected $e, found $f")

  private def compare(expected: NDArray, found: NDArray, what: String, rtol: Double, atol: Double): Seq[String] =
    if ((expected.dtype,
      expected.shape) != ((found.dtype, found.shape))) Seq(s"$what: expected $expected, found $found")
    else {
      val wrong = expected.toFloat64Array.zip(found.toFloat64Array)
        .filter { case (e, f) => numbers(e, f, "", rtol, atol).nonEmpty }
      if (wrong.isEmpty) Nil
        else Seq(s"$what: ${wrong.length} wrong, ${wrong.head._2} where ${wrong.head._1} is expected")
    }

  // ---- what a scenario names

  private def pathOf(name: String): String =
    if (!name.startsWith("@")) new File(folder, name).getPath
    else {
      val above = Iterator.iterate(folder)(_.getParentFile).take(6)
      val places = above.flatMap(place => Seq(new File(place, name.tail), new File(place, "examples/" + name.tail)))
      places.find(_.exists).getOrElse(throw new AssertionError(s"there is no $name above $folder")).getPath
    }

  def array(reference: Any): NDArray = if (reference == null) null else {
    val step = new Step(reference.asInstanceOf[Map[String, Any]])
    val Array(key, name) = step.text("array").split("/", 2)
    val file = files.getOrElseUpdate(key, NDArray.load2Map(pathOf(head.map("files")(key).asInstanceOf[String])))
    if (!step.has("rows")) file(name)
    else {
      val rows = step.list("rows").map(_.asInstanceOf[Double].toInt)
      file(name).slice(rows(0), rows(1))
    }
  }

  def symbol(key: String): Symbol =
    symbols.getOrElseUpdate(key, Symbol.load(pathOf(head.map("symbols")(key).asInstanceOf[String])))
}

object Scenario {
  private val kinds: Seq[(Class[_], String)] = Seq(
    classOf[InvalidArgumentException] -> ("too_many_slices empty_data_shapes bad_grad_req head_grad_required " +
      "no_such_output count_mismatch not_binary bad_arguments"),
    classOf[UnknownNameException] -> ("unknown_input unknown_parameter missing_parameter missing_argument " +
      "missing_target"),
    classOf[ShapeException] -> ("batch_size_mismatch shape_mismatch incomplete_shapes unspecified_shape_changed " +
      "up_sizing_not_allowed"),
    classOf[DTypeException] -> "type_mismatch",
    classOf[UnsupportedException] -> "not_supported",
    classOf[StateException] -> "already_bound not_for_training inputs_need_grad_false no_labels"
  )

  /** The exception class for a word of a scenario. */
  def kindOf(word: String): Class[_] = kinds.find(_._2.split(" ").contains(word)).get._1
}
