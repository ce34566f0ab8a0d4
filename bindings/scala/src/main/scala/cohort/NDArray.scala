// SPDX-License-Identifier: Apache-2.0
package cohort

import java.nio.{Buffer, ByteBuffer, DoubleBuffer, FloatBuffer, IntBuffer, LongBuffer}

import com.sun.jna.{Native => JNA, Pointer}

import cohort.abi.Callbacks.DeleterFn
import cohort.abi.CohortNdarray._
import cohort.abi.CohortOperator._
import cohort.abi.{Constants, Structs}
import cohort.DType.DType

/** An array on a device. Calls that work on it are queued; reading it waits. Slices, and the arrays of groups and
  * executors, are live: they share memory, and keep it alive.
  *
  * {{{
  * val a = NDArray.array(Array(1f, 2f, 3f, 4f), Shape(2, 2))
  * val b = (a + 1) * a
  * assert(b.toArray.toSeq == Seq(2f, 6f, 12f, 20f))
  * assert(b.slice(1, 2).shape == Shape(1, 2))
  * }}}
  */
final class NDArray private[cohort] (address: Long, kept: AnyRef = null)
    extends Handle(address, cohort_ndarray_free, new Family)
    with Arithmetic[NDArray] {
  Garbage.count(address)

  private def made(call: (Long, Array[Long]) => Long): NDArray =
    new NDArray(use(handle => Native.created(call(handle, _))), kept)

  // ---- what it is

  def shape: Shape = {
    val lengths = new Array[Long](Constants.MAX_AXES)
    val axes = new Array[Int](1)
    run(cohort_ndarray_shape(_, lengths, lengths.length, axes))
    Shape(lengths.take(axes(0)).map(Native.toInt(_, "shape")))
  }

  def dtype: DType = DType.of(use(handle => Native.int(cohort_ndarray_dtype(handle, _))))

  def context: Context = use(handle => Native.context(cohort_ndarray_context(handle, _)))

  /** The number of elements. */
  def size: Int = Native.toInt(use(handle => Native.long(cohort_ndarray_size(handle, _))), "size")

  // ---- reading, which waits

  /** Its elements as Floats, converted from any type. */
  def toArray: Array[Float] = {
    val made = new Array[Float](size)
    as(DType.Float32, FloatBuffer.wrap(made), 4L * made.length)
    made
  }

  /** Its elements as Doubles, converted from any type. */
  def toFloat64Array: Array[Double] = {
    val made = new Array[Double](size)
    as(DType.Float64, DoubleBuffer.wrap(made), 8L * made.length)
    made
  }

  /** Its elements as Longs, converted from any type. */
  def toLongArray: Array[Long] = {
    val made = new Array[Long](size)
    as(DType.Int64, LongBuffer.wrap(made), 8L * made.length)
    made
  }

  /** Its elements as Ints, converted from any type. */
  def toIntArray: Array[Int] = {
    val made = new Array[Int](size)
    as(DType.Int32, IntBuffer.wrap(made), 4L * made.length)
    made
  }

  /** The bytes of its elements, in the machine's byte order. */
  def toByteArray: Array[Byte] = {
    val made = new Array[Byte](Native.size(out => use(cohort_ndarray_bytes(_, out))))
    run(cohort_ndarray_read(_, ByteBuffer.wrap(made), made.length))
    made
  }

  /** The element of an array of size one. */
  def toScalar: Float =
    if (size == 1) toArray(0) else Native.refuse(s"toScalar: expected one element, found shape $shape", "toScalar")

  private def as(wanted: DType, target: Buffer, bytes: Long): Unit =
    if (dtype == wanted) run(cohort_ndarray_read(_, target, bytes))
    else {
      val cast = asType(wanted)
      try cast.run(cohort_ndarray_read(_, target, bytes))
      finally cast.close()
    }

  /** Waits for the queued work that writes it. */
  def waitToRead(): Unit = run(cohort_ndarray_wait)

  // ---- writing

  def set(value: Float): NDArray = fill(value.toDouble)

  def set(values: Array[Float]): NDArray = {
    val source = NDArray.array(values, shape)
    try set(source)
    finally source.close()
  }

  def set(other: NDArray): NDArray = {
    Native.needed(other, "other").copyTo(this)
    this
  }

  private def fill(value: Double): NDArray = {
    run(cohort_ndarray_fill(_, value))
    this
  }

  /** Fills it with uniform random numbers between two bounds. */
  def uniform(low: Double, high: Double, seed: Long): NDArray = {
    run(cohort_ndarray_fill_uniform(_, low, high, seed))
    this
  }

  def normal(mean: Double, deviation: Double, seed: Long): NDArray = {
    run(cohort_ndarray_fill_normal(_, mean, deviation, seed))
    this
  }

  // ---- views, which share its memory

  /** Rows `start` until `stop`. */
  def slice(start: Int, stop: Int): NDArray = made(cohort_ndarray_slice(_, start, stop, _))

  def slice(range: (Int, Int)): NDArray = slice(Native.needed(range, "range")._1, range._2)

  /** One row, without its axis. */
  def at(index: Int): NDArray = made(cohort_ndarray_at(_, index, _))

  def reshape(shape: Shape): NDArray = {
    val lengths = Native.needed(shape, "shape").longs
    made(cohort_ndarray_reshape(_, lengths, lengths.length, _))
  }

  // ---- copies

  def copy(): NDArray = made(cohort_ndarray_copy(_, null, _))

  def copyTo(context: Context): NDArray = {
    val struct = Context.struct(Native.needed(context, "context"))
    made(cohort_ndarray_copy(_, struct, _))
  }

  /** Copies into another array of its shape, of any type and on any context. */
  def copyTo(other: NDArray): NDArray = {
    Native.needed(other, "other").hold(target => run(cohort_ndarray_copy_to(_, target)))
    other
  }

  /** The array itself if it is on this context, otherwise a copy. */
  def asInContext(context: Context): NDArray = if (this.context == context) this else copyTo(context)

  def asType(dtype: DType): NDArray = {
    val code = DType.code(dtype)
    made(cohort_ndarray_cast(_, code, _))
  }

  /** A range along any axis; a copy if it is not contiguous. */
  def sliceAxis(axis: Int, begin: Int, end: Int): NDArray = made(cohort_ndarray_slice_axis(_, axis, begin, end, _))

  // ---- arithmetic

  protected def withOther(word: String, other: NDArray): NDArray = nd("broadcast_" + word, Seq(this, other))
  protected def withNumber(word: String, value: Float): NDArray = nd(s"_${word}_scalar", Seq(this), "scalar" -> value)

  /** These write into the array itself, so that other references and its slices see the change. */
  def +=(other: NDArray): NDArray = inPlace("broadcast_add", Seq(this, other))
  def -=(other: NDArray): NDArray = inPlace("broadcast_sub", Seq(this, other))
  def *=(other: NDArray): NDArray = inPlace("broadcast_mul", Seq(this, other))
  def /=(other: NDArray): NDArray = inPlace("broadcast_div", Seq(this, other))
  def %=(other: NDArray): NDArray = inPlace("broadcast_mod", Seq(this, other))
  def **=(other: NDArray): NDArray = inPlace("broadcast_power", Seq(this, other))
  def +=(value: Float): NDArray = inPlace("_plus_scalar", Seq(this), "scalar" -> value)
  def -=(value: Float): NDArray = inPlace("_minus_scalar", Seq(this), "scalar" -> value)
  def *=(value: Float): NDArray = inPlace("_mul_scalar", Seq(this), "scalar" -> value)
  def /=(value: Float): NDArray = inPlace("_div_scalar", Seq(this), "scalar" -> value)
  def %=(value: Float): NDArray = inPlace("_mod_scalar", Seq(this), "scalar" -> value)
  def **=(value: Float): NDArray = inPlace("_power_scalar", Seq(this), "scalar" -> value)

  private def inPlace(op: String, inputs: Seq[NDArray], attrs: (String, Any)*): NDArray = {
    nd.invoke(op, inputs, attrs, Seq(this)).foreach(_.close())
    this
  }

  override def toString: String = if (isClosed) "NDArray(closed)" else s"NDArray($shape, $dtype, $context)"
}

object NDArray {

  /** Comparisons without an operator sign: `==` compares references. */
  def equal(left: NDArray, right: NDArray): NDArray = nd("broadcast_equal", Seq(left, right))
  def equal(left: NDArray, value: Float): NDArray = nd("_equal_scalar", Seq(left), "scalar" -> value)
  def notEqual(left: NDArray, right: NDArray): NDArray = nd("broadcast_not_equal", Seq(left, right))
  def notEqual(left: NDArray, value: Float): NDArray = nd("_not_equal_scalar", Seq(left), "scalar" -> value)

  private def made(shape: Shape)(call: (Array[Long], Int, Array[Long]) => Long): NDArray = {
    val lengths = Native.needed(shape, "shape").longs
    new NDArray(Native.created(call(lengths, lengths.length, _)))
  }

  def zeros(shape: Shape, ctx: Context = null, dtype: DType = DType.Float32): NDArray =
    made(shape)(cohort_ndarray_zeros(_, _, DType.code(dtype), Context.struct(ctx), _))

  def ones(shape: Shape, ctx: Context = null, dtype: DType = DType.Float32): NDArray = full(shape, 1, ctx, dtype)

  def full(shape: Shape, value: Double, ctx: Context = null, dtype: DType = DType.Float32): NDArray =
    made(shape)(cohort_ndarray_full(_, _, DType.code(dtype), Context.struct(ctx), value, _))

  /** Its contents are unspecified. */
  def empty(shape: Shape, ctx: Context = null, dtype: DType = DType.Float32): NDArray =
    made(shape)(cohort_ndarray_empty(_, _, DType.code(dtype), Context.struct(ctx), _))

  /** A copy of a Java array, of its type. */
  def array(values: Array[Float], shape: Shape, ctx: Context = null): NDArray =
    ofBuffer(FloatBuffer.wrap(Native.needed(values, "values")), 4L * values.length, shape, DType.Float32, ctx)

  def array(values: Array[Double], shape: Shape): NDArray =
    ofBuffer(DoubleBuffer.wrap(Native.needed(values, "values")), 8L * values.length, shape, DType.Float64, null)

  def array(values: Array[Int], shape: Shape): NDArray =
    ofBuffer(IntBuffer.wrap(Native.needed(values, "values")), 4L * values.length, shape, DType.Int32, null)

  def array(values: Array[Long], shape: Shape): NDArray =
    ofBuffer(LongBuffer.wrap(Native.needed(values, "values")), 8L * values.length, shape, DType.Int64, null)

  /** From the bytes of elements of any type, in the machine's byte order. */
  def array(bytes: Array[Byte], shape: Shape, dtype: DType): NDArray =
    ofBuffer(ByteBuffer.wrap(Native.needed(bytes, "bytes")), bytes.length, shape, dtype, null)

  private def ofBuffer(data: Buffer, bytes: Long, shape: Shape, dtype: DType, ctx: Context): NDArray =
    made(shape)(cohort_ndarray_from_host(data, bytes, _, _, DType.code(dtype), Context.struct(ctx), _))

  /** Uses the memory of a direct buffer, from its position on, and keeps the buffer alive until queued work has
    * read it. */
  def wrap(buffer: ByteBuffer, shape: Shape, dtype: DType = DType.Float32): NDArray = {
    if (!Native.needed(buffer, "buffer").isDirect) Native.refuse("wrap: expected a direct buffer", "buffer")
    val bytes = BigInt(DType.numOfBytes(dtype)) * Native.needed(shape, "shape").toVector.map(BigInt(_)).product
    if (bytes > buffer.remaining)
      throw new ShapeException(s"wrap: shape $shape has $bytes bytes, the buffer ${buffer.remaining}", "buffer")
    val address = Pointer.nativeValue(JNA.getDirectBufferPointer(buffer)) + buffer.position()
    val lent = new Native.Callback(buffer)
    Lent.keep(lent)
    try
      made(shape)(cohort_ndarray_wrap(address, _, _, DType.code(dtype), null, Lent, lent.number, _))
    catch {
      case error: Throwable =>
        Lent.release(lent.number)
        throw error
    }
  }

  /** Buffers whose memory the library uses; it calls the deleter when it is done, on any of its threads, and the
    * deleter calls nothing. */
  private object Lent extends DeleterFn {
    private val buffers = new java.util.concurrent.ConcurrentHashMap[java.lang.Long, Native.Callback]
    def keep(lent: Native.Callback): Unit = buffers.put(lent.number, lent)
    def release(number: Long): Unit = buffers.remove(number)
    override def invoke(data: Long, user_data: Long): Unit = release(user_data)
  }

  /** Arrays joined along an axis. */
  def concatenate(arrays: Seq[NDArray], axis: Int = 0): NDArray =
    new NDArray(Handle.addresses(arrays, "arrays") { list =>
      Native.created(cohort_ndarray_concat(list, list.length, axis, _))
    })

  /** Writes arrays by name, like MXNet's nd.save. */
  def save(fname: String, data: Map[String, NDArray]): Unit = Arrays.save(fname, Native.needed(data, "data"))

  def save(fname: String, data: Seq[NDArray]): Unit = Arrays.save(fname, Native.needed(data, "data").map((null, _)))

  /** Names (none, or one per array) and arrays of a file: MXNet's .params, NumPy's .npy or .npz. */
  def load(fname: String, ctx: Context = null): (Vector[String], Vector[NDArray]) = {
    val (names, arrays) = Arrays.load(fname, ctx).collect { case (name, Some(array)) => (name, array) }.unzip
    (if (names.forall(_.isEmpty)) Vector.empty else names, arrays)
  }

  /** Writes one array as a NumPy .npy file. */
  def saveNpy(fname: String, data: NDArray): Unit = Arrays.saveNpy(fname, data)

  /** Writes a NumPy .npz file. */
  def saveNpz(fname: String, data: Map[String, NDArray]): Unit = Arrays.saveNpz(fname, Native.needed(data, "data"))

  /** A .params file in memory, and back. */
  def saveBytes(data: Map[String, NDArray]): Array[Byte] = Arrays.saveBytes(Native.needed(data, "data"))

  def loadBytes(bytes: Array[Byte], ctx: Context = null): Map[String, NDArray] =
    Arrays.loadBytes(bytes, ctx).collect { case (name, Some(array)) => (name, array) }.toMap

  /** Like `load`, by name. */
  def load2Map(fname: String, ctx: Context = null): Map[String, NDArray] =
    Arrays.load(fname, ctx).collect { case (name, Some(array)) => (name, array) }.toMap

  /** Waits for all queued work on all devices. */
  def waitall(): Unit = Cohort.waitAll()
}

/** Operators applied at once to arrays, by their names in the registry; attributes by name. Further arguments: `out`,
  * an array or several to write the outputs to; `seed` for random operators, which draw the same numbers for the same
  * seed; `ctx`, the context of an operator without inputs; `is_train`, for training mode, which affects Dropout.
  *
  * {{{
  * val scores = nd.softmax(NDArray.array(Array(1f, 1f), Shape(1, 2)))
  * assert(scores.toArray.toSeq == Seq(0.5f, 0.5f))
  * assert(nd.sum(scores, axis = 1).toScalar == 1f)
  * assert(nd.random_normal(shape = (2, 3), seed = 7).shape == Shape(2, 3))
  * }}}
  */
object nd extends Operators[NDArray] {
  private val settings = Set("out", "seed", "ctx", "is_train")

  protected def isInput(value: Any): Boolean = value.isInstanceOf[NDArray]

  protected def applied(op: String, name: String, inputs: Seq[NDArray], attrs: Seq[(String, Any)]): NDArray =
    all(op, inputs, attrs: _*).head

  /** The first output. */
  def apply(op: String, inputs: Seq[NDArray], attrs: (String, Any)*): NDArray = applied(op, null, inputs, attrs)

  /** All outputs. */
  def all(op: String, inputs: Seq[NDArray], attrs: (String, Any)*): Vector[NDArray] = invoke(op, inputs, attrs, Nil)

  // Writes into `outputs` if there are any; returns new handles.
  private[cohort] def invoke(
      op: String,
      inputs: Seq[NDArray],
      attrs: Seq[(String, Any)],
      given: Seq[NDArray]): Vector[NDArray] =
    applied(op, inputs, attrs, given) { (pairs, list, targets, options) =>
      Native.created(cohort_operator_invoke(Native.in(op, "op"), pairs.keys, pairs.words, pairs.num, list, list.length,
        targets, if (targets == null) 0 else targets.length, options, _))
    }

  // Calls a function with attributes, inputs, outputs or null, and settings, which returns the list of outputs.
  private[cohort] def applied(op: String, inputs: Seq[NDArray], attrs: Seq[(String, Any)], given: Seq[NDArray])(
      call: (Native.Attributes, Array[Long], Array[Long], Structs.InvokeOptions) => Long): Vector[NDArray] = {
    val (settings, own) = Native.needed(attrs, "attributes").partition {
      case (key, _) => nd.settings(key)
      case _        => false
    }
    val pairs = new Native.Attributes(own, "attributes")
    val options = Fields.sized(new Structs.InvokeOptions)(cohort_invoke_options_init)
    var outputs = given
    settings.foreach {
      case (_, null)                           =>
      case ("out", array: NDArray)             => outputs = Seq(array)
      case ("out", several: Iterable[_])       => outputs = several.map {
          case array: NDArray => array
          case other          => Native.refuse(s"$op: out: expected arrays, found $other", "out")
        }.toSeq
      case ("seed", value: Int)                => options.seed = value
      case ("seed", value: Long)               => options.seed = value
      case ("ctx", context: Context)           => options.context = Context.struct(context).getPointer
      case ("is_train", value: Boolean)        => options.is_train = Native.bool(value)
      case (key, value)                        => Native.refuse(s"$op: $key: found $value", key)
    }
    Arrays.take(Handle.addresses(inputs, "inputs") { list =>
      Handle.addresses(outputs, "outputs") { targets =>
        Native.needed(call, "call")(pairs, list, if (outputs.isEmpty) null else targets, options)
      }
    }).flatMap(_._2)
  }
}
