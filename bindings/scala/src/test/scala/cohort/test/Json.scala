// SPDX-License-Identifier: Apache-2.0
package cohort.test

/** JSON as maps, vectors, texts, Doubles, Booleans and null. */
final class Json(text: String) {
  private var at = 0

  def parse(): Any = {
    val found = value()
    space()
    require(at == text.length, s"JSON: more at $at")
    found
  }

  private def space(): Unit = while (at < text.length && text(at).isWhitespace) at += 1

  private def next(wanted: Char): Boolean = {
    space()
    val is = at < text.length && text(at) == wanted
    if (is) at += 1
    is
  }

  private def need(wanted: Char): Unit = require(next(wanted), s"JSON: no $wanted at $at")

  private def word(wanted: String, found: Any): Any = {
    require(text.startsWith(wanted, at), s"JSON: no $wanted at $at")
    at += wanted.length
    found
  }

  private def several[A](end: Char)(one: => A): Vector[A] = {
    val found = Vector.newBuilder[A]
    if (!next(end)) {
      found += one
      while (next(',')) found += one
      need(end)
    }
    found.result()
  }

  private def value(): Any = {
    space()
    text(at) match {
      case '{' =>
        at += 1
        several('}') {
          space()
          val key = string()
          need(':')
          (key, value())
        }.toMap
      case '[' =>
        at += 1
        several(']')(value())
      case '"' => string()
      case 't' => word("true", true)
      case 'f' => word("false", false)
      case 'n' => word("null", null)
      case 'N' => word("NaN", Double.NaN)
      case _ =>
        val start = at
        while (at < text.length && "+-.0123456789eE".indexOf(text(at)) >= 0) at += 1
        text.substring(start, at).toDouble
    }
  }

  private def string(): String = {
    val found = new StringBuilder
    at += 1
    while (text(at) != '"') {
      if (text(at) == '\\') {
        at += 1
        text(at) match {
          case 'n' => found += '\n'
          case 't' => found += '\t'
          case 'u' =>
            found += Integer.parseInt(text.substring(at + 1, at + 5), 16).toChar
            at += 4
          case other => found += other
        }
      } else found += text(at)
      at += 1
    }
    at += 1
    found.toString
  }
}

object Json {
  def read(file: java.io.File): Map[String, Any] =
    new Json(new String(java.nio.file.Files.readAllBytes(file.toPath), "UTF-8")).parse().asInstanceOf[Map[String, Any]]
}
