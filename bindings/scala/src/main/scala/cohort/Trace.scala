// SPDX-License-Identifier: Apache-2.0
package cohort

import cohort.abi.CohortTrace._
import cohort.abi.Constants
import cohort.abi.Structs

/** The kind of an event of a [[Trace]]. */
object SpanKind extends Enumeration {
  type SpanKind = Value

  /** A step of a network, or an operator that was applied at once. */
  val Operator = Value(Constants.SpanKind.OPERATOR, "operator")

  /** Steps that were queued together. */
  val Pass = Value(Constants.SpanKind.PASS, "pass")
  val Copy = Value(Constants.SpanKind.COPY, "copy")

  /** Gradients summed over devices. */
  val Exchange = Value(Constants.SpanKind.EXCHANGE, "exchange")

  /** The update of a parameter, or of a part of one. */
  val Update = Value(Constants.SpanKind.UPDATE, "update")

  /** A queue that waits for another one. */
  val Wait = Value(Constants.SpanKind.WAIT, "wait")

  /** A thread of the program in a call that starts passes. */
  val Call = Value(Constants.SpanKind.CALL, "call")

  /** A span of the program's own. */
  val User = Value(Constants.SpanKind.USER, "user")
}

/** One row of the totals of a [[Trace]]; times in nanoseconds. 0: unknown. In rows of operators `name` is empty;
  * without an operator `op` is.
  */
final case class Total(
    kind: SpanKind.SpanKind,
    name: String,
    op: String,
    count: Long,
    totalNs: Long,
    leastNs: Long,
    mostNs: Long,
    flops: Double,
    bytes: Double,
    boundNs: Double)

/** Records every operator, copy, sum of gradients and update of the process while it runs. The last `maxEvents` are
  * kept; totals include all. The rates are those of the threads of one device, and are measured if they are not
  * given.
  *
  * {{{
  * val net = sym.exp(Symbol.Variable("x"), name = "e")
  * val executor = net.simpleBind(shapes = Map("x" -> Shape(1000)))
  * val trace = new Trace
  * trace.running(executor.forward())
  * print(trace.table())
  * assert(trace.totals().exists(total => total.name == "e" && total.op == "exp"))
  * trace.write("step.json") // for chrome://tracing or Perfetto
  * }}}
  */
final class Trace(
    maxEvents: Int = 0,
    flopPerS: Double = 0,
    bytePerS: Double = 0,
    bfloat16FlopPerS: Double = 0)
    extends Handle(Trace.made(maxEvents, flopPerS, bytePerS, bfloat16FlopPerS), cohort_trace_free, new Family) {

  /** Starts or resumes recording. */
  def start(): Unit = run(cohort_trace_start)

  /** Stops recording. Queued work is only recorded if it has been waited for. */
  def stop(): Unit = run(cohort_trace_stop)

  /** Records while the body runs, and waits for all work at its end. */
  def running[A](body: => A): A = {
    start()
    try {
      val found = body
      Cohort.waitAll()
      found
    } finally stop()
  }

  /** Discards all events and totals. */
  def clear(): Unit = run(cohort_trace_clear)

  private def info: Structs.TraceInfo = {
    val found = new Structs.TraceInfo
    found.struct_size = found.size
    run(cohort_trace_get_info(_, found))
    found
  }

  /** The number of events kept. */
  def numEvents: Long = info.num_events

  /** The number of events dropped. */
  def numDropped: Long = info.num_dropped
  def isRunning: Boolean = info.running != 0

  /** The events in Chrome's format. */
  def json: String = use(handle => Native.text(cohort_trace_json(handle, _)))

  /** Writes the events to a file, completely or not at all. */
  def write(fname: String): Unit = run(cohort_trace_write(_, Native.in(fname, "fname")))

  private def by(operator: Boolean): Int =
    if (operator) Constants.TotalsBy.OPERATOR else Constants.TotalsBy.NAME

  /** A table of the times, for a person. */
  def table(byOperator: Boolean = true): String = use(handle => Native.text(cohort_trace_table(handle, by(byOperator), _)))

  /** The same as numbers, longest first. */
  def totals(byOperator: Boolean = false): IndexedSeq[Total] = use { handle =>
    Native.list(cohort_trace_num_totals(handle, by(byOperator), _)) { i =>
      val name, op = new Array[Long](1)
      val row = new Structs.SpanTotal
      row.struct_size = row.size
      Native.check(cohort_trace_total(handle, by(byOperator), i, name, op, row))
      Total(SpanKind(row.kind), Native.textAt(name(0)), Native.textAt(op(0)), row.count, row.total_ns, row.least_ns,
        row.most_ns, row.flops, row.bytes, row.bound_ns)
    }
  }

  /** Shows the body as a span on a row of the program's own; the spans of a row nest. */
  def span[A](name: String, row: String = "host")(body: => A): A = {
    run(cohort_trace_begin(_, Native.in(row, "row"), Native.in(name, "name")))
    try body
    finally run(cohort_trace_end(_, row))
  }

  /** Marks a point in time. */
  def mark(name: String, row: String = "host"): Unit =
    run(cohort_trace_mark(_, Native.in(row, "row"), Native.in(name, "name")))

  /** Records a value, which a viewer draws as a curve. */
  def counter(name: String, value: Double): Unit = run(cohort_trace_counter(_, Native.in(name, "name"), value))
}

private object Trace {
  def made(maxEvents: Int, flopPerS: Double, bytePerS: Double, bfloat16FlopPerS: Double): Long = {
    if (maxEvents < 0) Native.refuse(s"maxEvents: expected 0 or more, found $maxEvents", "maxEvents")
    val options = Fields.sized(new Structs.TraceOptions)(cohort_trace_options_init)
    options.max_events = maxEvents
    options.flop_per_s = flopPerS
    options.byte_per_s = bytePerS
    options.bfloat16_flop_per_s = bfloat16FlopPerS
    Native.long(cohort_trace_create(options, _))
  }
}
