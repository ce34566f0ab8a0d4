// SPDX-License-Identifier: Apache-2.0
package cohort

/** Arithmetic and comparisons of arrays and of symbols, element by element; comparisons return 1 and 0. */
trait Arithmetic[T] {

  /** Applies an operator of two inputs, or of one input and a number; both have the same word in their names. */
  protected def withOther(word: String, other: T): T
  protected def withNumber(word: String, value: Float): T

  def +(other: T): T = withOther("add", other)
  def -(other: T): T = withOther("sub", other)
  def *(other: T): T = withOther("mul", other)
  def /(other: T): T = withOther("div", other)
  def %(other: T): T = withOther("mod", other)
  def **(other: T): T = withOther("power", other)
  def >(other: T): T = withOther("greater", other)
  def >=(other: T): T = withOther("greater_equal", other)
  def <(other: T): T = withOther("lesser", other)
  def <=(other: T): T = withOther("lesser_equal", other)

  def +(value: Float): T = withNumber("plus", value)
  def -(value: Float): T = withNumber("minus", value)
  def *(value: Float): T = withNumber("mul", value)
  def /(value: Float): T = withNumber("div", value)

  /** The remainder has the sign of the divisor. */
  def %(value: Float): T = withNumber("mod", value)
  def **(value: Float): T = withNumber("power", value)
  def >(value: Float): T = withNumber("greater", value)
  def >=(value: Float): T = withNumber("greater_equal", value)
  def <(value: Float): T = withNumber("lesser", value)
  def <=(value: Float): T = withNumber("lesser_equal", value)

  def unary_- : T = withNumber("mul", -1)
}
