// SPDX-License-Identifier: Apache-2.0
package cohort

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.AtomicLong
import java.lang.ref.{Cleaner, WeakReference}

import com.sun.jna.{Memory, Pointer, StringArray}

import cohort.abi.CohortError._

/** Conversions at the C interface: errors, text, lists and results. */
private[cohort] object Native {

  /** State of a thread that is inside a call. */
  private final class Local {
    var depth = 0 // callbacks that are running, one inside another
    var thrown: Throwable = null // an exception of a callback, on its way to the caller at depth thrownAt
    var thrownAt = 0
  }

  private val local = new ThreadLocal[Local] {
    override def initialValue() = new Local
  }

  def depth: Int = local.get.depth

  // Handles whose last use ended inside a callback, where they must not be freed.
  private val unfreed = new ConcurrentLinkedQueue[() => Unit]

  /** Frees now, or after the call that a running callback belongs to. */
  def free(release: () => Unit): Unit =
    if (local.get.depth == 0) release()
    else unfreed.add(release)

  /** Throws the error that a call returned, or the exception of a callback in it. */
  def check(error: Long): Unit = {
    val here = local.get
    if (here.depth == 0 && !unfreed.isEmpty) letGo()
    if (here.thrown != null && here.thrownAt == here.depth) {
      val thrown = here.thrown
      here.thrown = null
      cohort_error_free(error)
      throw thrown
    }
    if (error != 0) throw exceptionOf(error)
  }

  private def letGo(): Unit = {
    var next = unfreed.poll()
    while (next != null) {
      next()
      next = unfreed.poll()
    }
  }

  private def exceptionOf(error: Long): RuntimeException = {
    val made = CohortException(cohort_error_code(error), cohort_error_message(error), cohort_error_subject(error))
    cohort_error_free(error)
    made
  }

  // ---- results

  /** A handle, size or number of 64 bits. */
  def long(call: Array[Long] => Long): Long = {
    val out = new Array[Long](1)
    check(call(out))
    out(0)
  }

  /** A handle on new arrays. */
  def created(call: Array[Long] => Long): Long = Garbage.withRoom(long(call))

  /** A handle on an object that has arrays of its own. */
  def bound(call: Array[Long] => Long): Long = {
    val made = created(call)
    Garbage.ask()
    made
  }

  def int(call: Array[Int] => Long): Int = {
    val out = new Array[Int](1)
    check(call(out))
    out(0)
  }

  def double(call: Array[Double] => Long): Double = {
    val out = new Array[Double](1)
    check(call(out))
    out(0)
  }

  /** The bytes that a call writes, which is asked for their number first. */
  def bytes(call: (ByteBuffer, Long, Array[Long]) => Long): Array[Byte] = {
    val found = new Array[Byte](size(call(null, 0, _)))
    check(call(ByteBuffer.wrap(found), found.length, new Array[Long](1)))
    found
  }

  def text(call: Array[Long] => Long): String = textAt(long(call))

  def textAt(address: Long): String = if (address == 0) null else new Pointer(address).getString(0, "UTF-8")

  def textOf(pointer: Pointer): String = if (pointer == null) null else pointer.getString(0, "UTF-8")

  def size(call: Array[Long] => Long): Int = toInt(long(call), "count")

  def toInt(value: Long, what: String): Int =
    if (value.toInt == value) value.toInt
    else throw new UnsupportedException(s"$what: $value is more than an Int holds", what)

  /** Entries of a list that is read by count and index. */
  def list[A](count: Array[Long] => Long)(at: Int => A): Vector[A] = Vector.tabulate(size(count))(at)

  def context(call: abi.Structs.Context => Long): Context = {
    val found = new abi.Structs.Context
    check(call(found))
    Context.of(found.device_type, found.device_id)
  }

  // ---- arguments

  def refuse(message: String, subject: String): Nothing = throw new InvalidArgumentException(message, subject)

  /** A value that must not be null. */
  def needed[A <: AnyRef](value: A, what: String): A = if (value == null) refuse(s"$what: found null", what) else value

  /** Text for the library: without zero bytes and unpaired surrogates. */
  def in(value: String, what: String): String = {
    needed(value, what)
    if (value.indexOf('\u0000') >= 0) refuse(s"$what: found a zero byte in it", what)
    if (!UTF_8.newEncoder.canEncode(value)) refuse(s"$what: found text that is no Unicode", what)
    value
  }

  def inOrNull(value: String, what: String): String = if (value == null) null else in(value, what)

  /** A list of text; an empty one is not NULL. */
  def texts(values: Iterable[String], what: String): Pointer = {
    val array = needed(values, what).map(in(_, what)).toArray
    if (array.isEmpty) new Memory(8) else new StringArray(array, "UTF-8")
  }

  def ints(values: Array[Int]): Pointer = {
    val made = new Memory(4L * math.max(values.length, 1))
    made.write(0, values, 0, values.length)
    made
  }

  def longs(values: Array[Long]): Pointer = {
    val made = new Memory(8L * math.max(values.length, 1))
    made.write(0, values, 0, values.length)
    made
  }

  def doubles(values: Array[Double]): Pointer = {
    val made = new Memory(8L * math.max(values.length, 1))
    made.write(0, values, 0, values.length)
    made
  }

  def bool(value: Boolean): Int = if (value) 1 else 0

  /** None means as bound. */
  def isTrain(value: Option[Boolean]): Int = needed(value, "isTrain").fold(-1)(bool)

  /** Keys and values of attributes and settings. null and None are left out. */
  final class Attributes(values: Iterable[(String, Any)], what: String) {
    private val found =
      needed(values, what)
        .collect { case (key, value) if value != null && value != None => (key, attribute(value)) }.toVector
    val keys: Pointer = texts(found.map(_._1), what)
    val words: Pointer = texts(found.map(_._2), what)
    val num: Long = found.length.toLong
  }

  /** An attribute in MXNet's spelling: (2, 2), 0.1, True, relu. */
  def attribute(value: Any): String = value match {
    case text: String                                          => text
    case yes: Boolean                                          => if (yes) "True" else "False"
    case Some(inner)                                           => attribute(inner)
    case shape: Shape                                          => attribute(shape.toVector)
    case list: Iterable[_]                                     =>
      list.map(attribute).mkString("(", ", ", if (list.size == 1) ",)" else ")")
    case pair: Product if pair.productPrefix.startsWith("Tuple") => attribute(pair.productIterator.toVector)
    case array: Array[_]                                       => attribute(array.toVector)
    case null | None                                           => "None"
    case other                                                 => other.toString
  }

  // ---- callbacks

  /** A function that the library calls: it is found by `number`, the library's user_data, for as long as this object
    * lives.
    */
  final class Callback(val function: AnyRef) {
    val number: Long = Callback.numbers.incrementAndGet()
    Callback.add(this)
  }

  object Callback {
    private[Native] val numbers = new AtomicLong
    // Weak references: the owner of a function may itself hold the object the function is given to; both must be
    // collectable.
    private val cleaner = Cleaner.create()
    private val table = new ConcurrentHashMap[java.lang.Long, WeakReference[Callback]]

    private[Native] def add(callback: Callback): Unit = {
      val number = callback.number
      table.put(number, new WeakReference(callback))
      cleaner.register(callback, new Removal(number))
    }

    private final class Removal(number: Long) extends Runnable {
      override def run(): Unit = table.remove(number)
    }

    private[Native] def find(number: Long): Callback = {
      val found = table.get(number)
      if (found == null) null else found.get
    }

    def count: Int = table.size
  }

  /** Runs the function behind a number; returns 0, or 1 if there is none any more or if it threw, which is thrown
    * again after the call. After a failure the following callbacks are not run, except those that are called
    * `always`.
    */
  def call[F <: AnyRef](number: Long, always: Boolean = false)(body: F => Unit): Int = {
    val here = local.get
    val callback = Callback.find(number)
    if (callback == null || (here.thrown != null && here.thrownAt == here.depth && !always)) 1
    else {
      here.depth += 1
      try {
        body(callback.function.asInstanceOf[F])
        0
      } catch {
        case error: Throwable =>
          here.thrown = error
          here.thrownAt = here.depth - 1
          1
      } finally here.depth -= 1
    }
  }
}
