// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortContext._
import cohort.abi.CohortDescs._
import cohort.abi.Constants
import cohort.abi.Structs
import cohort.DType.DType

/** A device: `Context.cpu(1)`, `Context("gpu", 0)`. */
final case class Context(deviceType: String, deviceId: Int = 0) {
  private[cohort] def code: Int = Context.codes.getOrElse(
    deviceType,
    Native.refuse(s"context: expected one of ${Context.codes.keys.mkString(", ")}, found $deviceType", "context"))

  /** The memory of the device that this process uses. */
  def memory: DeviceMemory = {
    val info = new Structs.DeviceMemoryInfo
    info.struct_size = info.size
    Native.check(cohort_device_memory(Context.struct(this), info))
    DeviceMemory(info.used_bytes, info.peak_bytes, info.cached_bytes, info.limit_bytes)
  }

  /** Resets the peak to the present use. */
  def resetPeakMemory(): Unit = Native.check(cohort_device_reset_peak_memory(Context.struct(this)))

  /** Limits the memory that this process uses, in bytes; 0: no limit. An allocation beyond it is a
    * [[MemoryException]]. */
  def limitMemory(bytes: Long): Unit = {
    if (bytes < 0) Native.refuse(s"limitMemory: expected 0 or more, found $bytes", "bytes")
    Native.check(cohort_device_limit_memory(Context.struct(this), bytes))
  }

  override def toString: String = s"$deviceType($deviceId)"
}

/** The memory of a device that this process uses, in bytes: now, at its peak since the last reset, cached for later
  * use beside that, and the limit (0: none).
  */
final case class DeviceMemory(used: Long, peak: Long, cached: Long, limit: Long)

object Context {
  import Constants.DeviceType._

  private val codes = Map("cpu" -> CPU, "gpu" -> GPU, "cpu_pinned" -> CPU_PINNED, "cpu_shared" -> CPU_SHARED)

  def cpu(deviceId: Int = 0): Context = Context("cpu", deviceId)

  def gpu(deviceId: Int = 0): Context = Context("gpu", deviceId)

  /** Parses text such as "gpu(1)". */
  def parse(text: String): Context = Native.context(cohort_context_parse(Native.in(text, "context"), _))

  /** The number of devices of a kind; for the CPU any id is valid. */
  def numDevices(deviceType: String): Int = Native.size(cohort_num_devices(Context(deviceType).code, _))

  private[cohort] def of(code: Int, id: Int): Context =
    Context(codes.collectFirst { case (name, `code`) => name }.getOrElse("unknown"), id)

  /** The C struct; null is cpu(0). */
  private[cohort] def struct(context: Context): Structs.Context = if (context == null) null else structs(Seq(context))

  /** The first of a list of structs in contiguous memory. */
  private[cohort] def structs(contexts: Seq[Context]): Structs.Context = {
    val first = new Structs.Context
    val list = first.toArray(math.max(Native.needed(contexts, "contexts").length, 1))
    for ((one, context) <- list.zip(contexts)) {
      val struct = one.asInstanceOf[Structs.Context]
      struct.device_type = Native.needed(context, "context").code
      Garbage.name(context)
      struct.device_id = context.deviceId
      struct.write()
    }
    first
  }
}

/** Element types with MXNet's names: `DType.Float32`. */
object DType extends Enumeration {
  import Constants.Dtype._

  type DType = Value
  val Float32 = Value(FLOAT32, "float32")
  val Float64 = Value(FLOAT64, "float64")
  val Float16 = Value(FLOAT16, "float16")
  val UInt8 = Value(UINT8, "uint8")
  val Int32 = Value(INT32, "int32")
  val Int8 = Value(INT8, "int8")
  val Int64 = Value(INT64, "int64")
  val Bool = Value(BOOL, "bool")
  val BFloat16 = Value(BFLOAT16, "bfloat16")

  /** Bytes of an element. */
  def numOfBytes(dtype: DType): Int = Native.size(cohort_dtype_bytes(code(dtype), _))

  private[cohort] def code(dtype: DType): Int = Native.needed(dtype, "dtype").id

  private[cohort] def of(code: Int): DType =
    values.find(_.id == code).getOrElse(throw new DTypeException(s"dtype: there is no $code", "dtype"))
}

/** Lengths of axes: `Shape(32, 3, 28, 28)`. */
final class Shape private (val toVector: Vector[Int]) {
  def apply(axis: Int): Int =
    toVector.lift(axis).getOrElse(Native.refuse(s"shape: expected an axis of $this, found $axis", "shape"))
  def length: Int = toVector.length
  def product: Long = toVector.foldLeft(1L)(_ * _)
  def head: Int = apply(0)
  def drop(num: Int): Shape = Shape(toVector.drop(num))
  def slice(from: Int, until: Int): Shape = Shape(toVector.slice(from, until))
  def updated(axis: Int, length: Int): Shape =
    if (toVector.isDefinedAt(axis)) Shape(toVector.updated(axis, length))
    else Native.refuse(s"shape: expected an axis of $this, found $axis", "shape")
  def ++(other: Shape): Shape = Shape(toVector ++ Native.needed(other, "shape").toVector)
  def toArray: Array[Int] = toVector.toArray
  private[cohort] def longs: Array[Long] = toVector.map(_.toLong).toArray

  override def equals(other: Any): Boolean = other match {
    case shape: Shape => shape.toVector == toVector
    case _            => false
  }
  override def hashCode: Int = toVector.hashCode
  override def toString: String = toVector.mkString("(", ",", ")")
}

object Shape {
  def apply(lengths: Int*): Shape = new Shape(Native.needed(lengths, "shape").toVector)
  def apply(lengths: Iterable[Int]): Shape = new Shape(Native.needed(lengths, "shape").toVector)
  def apply(lengths: Array[Int]): Shape = new Shape(Native.needed(lengths, "shape").toVector)
}

/** Name, shape, type and layout of an input. The batch axis is the position of N in the layout; null means "N". */
final case class DataDesc(name: String, shape: Shape, dtype: DType = DType.Float32, layout: String = "NCHW")

object DataDesc {

  /** The position of N in a layout: 0 without a layout, -1 if it has none. */
  def getBatchAxis(layout: Option[String]): Int =
    Native.int(cohort_layout_batch_axis(Native.needed(layout, "layout").map(Native.in(_, "layout")).orNull, _))
}

/** Data and labels of a batch, each in the order of its descriptors; for bucketing also the key of its bucket, and
  * descriptors.
  */
final case class DataBatch(
    data: IndexedSeq[NDArray],
    label: IndexedSeq[NDArray] = null,
    index: IndexedSeq[Long] = null,
    pad: Int = 0,
    bucketKey: AnyRef = null,
    provideData: IndexedSeq[DataDesc] = null,
    provideLabel: IndexedSeq[DataDesc] = null)

/** The library's lists of descriptors, for the duration of a call. */
private[cohort] object Descs {
  private val unknown = Constants.UNKNOWN_SHAPE

  private def made[A](what: String, body: Long => A): A = {
    val handle = Native.long(cohort_descs_create)
    try body(handle)
    finally cohort_descs_free(handle)
  }

  /** null means an empty list. */
  def of[A](descs: Seq[DataDesc], what: String)(body: Long => A): A =
    if (descs == null) body(0)
    else
      made(
        what,
        { handle =>
          for (desc <- descs) {
            Native.needed(desc, what)
            add(handle, desc.name, desc.shape, DType.code(desc.dtype), desc.layout, what)
          }
          body(handle)
        })

  /** Known shapes and types, by name. */
  def known[A](shapes: Map[String, Shape], dtypes: Map[String, DType])(body: Long => A): A =
    made(
      "known",
      { handle =>
        for (name <- Native.needed(shapes, "shapes").keySet ++ Native.needed(dtypes, "types").keySet) {
          val dtype = dtypes.get(name).map(DType.code).getOrElse(Constants.Dtype.NONE)
          add(handle, name, shapes.getOrElse(name, null), dtype, null, "known")
        }
        body(handle)
      })

  private def add(handle: Long, name: String, shape: Shape, dtype: Int, layout: String, what: String): Unit = {
    val lengths = if (shape == null) null else shape.longs
    val num = if (shape == null) unknown else lengths.length
    Native.check(cohort_descs_add(handle, Native.in(name, what), lengths, num, dtype, Native.inOrNull(layout, what)))
  }

  /** Reads the list that a call has returned, and frees it. */
  def take(handle: Long): Vector[Entry] =
    try read(handle)
    finally cohort_descs_free(handle)

  /** Shape and type are None if they are unknown. */
  final case class Entry(name: String, shape: Option[Shape], dtype: Option[DType], layout: Option[String]) {
    def desc: DataDesc = DataDesc(name, shape.getOrElse(Shape()), dtype.getOrElse(DType.Float32), layout.orNull)
  }

  def read(handle: Long): Vector[Entry] =
    Native.list(cohort_descs_num(handle, _)) { i =>
      val name, layout = new Array[Long](1)
      val lengths = new Array[Long](Constants.MAX_AXES)
      val axes, dtype = new Array[Int](1)
      Native.check(cohort_descs_get(handle, i, name, lengths, lengths.length, axes, dtype, layout))
      val shape = if (axes(0) == unknown) None else Some(Shape(lengths.take(axes(0)).map(Native.toInt(_, "shape"))))
      val kind = if (dtype(0) == Constants.Dtype.NONE) None else Some(DType.of(dtype(0)))
      Entry(Native.textAt(name(0)), shape, kind, Option(Native.textAt(layout(0))))
    }
}
