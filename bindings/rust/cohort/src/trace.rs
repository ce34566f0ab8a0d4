// SPDX-License-Identifier: Apache-2.0
//! Traces: what the process runs, and how long it takes compared with the machine's limits.
use crate::error::{c_text, check, text, Result};
use cohort_sys as sys;
use std::os::raw::c_char;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Settings of a trace. Zero in any field means the library's default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceOptions {
    /// The number of events kept; older ones are dropped.
    pub max_events: usize,
    /// Float32 operations per second of one device's threads; 0: measured.
    pub flop_per_s: f64,
    /// The same in bfloat16.
    pub bfloat16_flop_per_s: f64,
    /// Bytes per second that they read and write when copying; 0: measured.
    pub byte_per_s: f64,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpanKind {
    /// A step of a network, or an operator that was applied at once.
    Operator,
    /// Steps that were queued together.
    Pass,
    /// A copy.
    Copy,
    /// Gradients summed over devices.
    Exchange,
    /// The update of a parameter, or of a part of one.
    Update,
    /// A queue that waits for another one.
    Wait,
    /// A thread of the program in a call that starts passes.
    Call,
    /// A span of the program's own: [`Trace::span`].
    User,
}

/// How totals are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalsBy {
    /// A row for each operator of each node, each parameter, ...
    Name,
    /// A row for each operator, optimizer, ...
    Operator,
}

impl TotalsBy {
    fn code(self) -> i32 {
        match self {
            TotalsBy::Name => sys::COHORT_TOTALS_BY_NAME,
            TotalsBy::Operator => sys::COHORT_TOTALS_BY_OPERATOR,
        }
    }
}

/// A row of the totals of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The kind of the events.
    pub kind: SpanKind,
    /// The node, parameter or call; empty in rows of operators.
    pub name: String,
    /// The operator or optimizer; empty if there is none.
    pub op: String,
    /// The number of events.
    pub count: u64,
    /// Their total time.
    pub total: Duration,
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
    /// Total additions and multiplications in products; 0: none, or unknown.
    pub flops: f64,
    /// Total bytes of arrays read and written; 0: unknown.
    pub bytes: f64,
    /// The least total time that the machine needs for these; zero: unknown.
    pub bound: Duration,
}

crate::handle!(
    /// Records every operator, copy, sum of gradients and update of the process while it runs.
    ///
    /// ```
    /// use cohort::{Context, Executor, GradReq, Op, Symbol, TotalsBy, Trace};
    ///
    /// # fn main() -> cohort::Result<()> {
    /// let net = Op::new("exp").input(&Symbol::variable("x")?).name("e").build()?;
    /// let mut executor = Executor::simple_bind(&net, &Context::cpu(0), &[("x", &[1000])], GradReq::Null)?;
    /// let trace = Trace::new()?;
    /// trace.running(|| executor.forward(false))?;
    /// print!("{}", trace.table(TotalsBy::Operator)?);
    /// assert!(trace.totals(TotalsBy::Name)?.iter().any(|total| total.name == "e" && total.op == "exp"));
    /// trace.write(std::env::temp_dir().join("step.json").to_str().unwrap())?; // for chrome://tracing or Perfetto
    /// # Ok(())
    /// # }
    /// ```
    Trace,
    cohort_trace,
    cohort_trace_free
);

/// Stops a trace when dropped, however the recorded work ends.
struct Stop<'a>(&'a Trace);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle of our own. Stopping a stopped trace is an error that is freed here.
        unsafe { sys::cohort_error_free(sys::cohort_trace_stop(self.0.raw())) }
    }
}

impl Trace {
    /// A trace that does not run yet.
    pub fn new() -> Result<Trace> {
        Trace::with(&TraceOptions::default())
    }

    /// The same with settings.
    pub fn with(settings: &TraceOptions) -> Result<Trace> {
        let options = sys::cohort_trace_options {
            struct_size: std::mem::size_of::<sys::cohort_trace_options>(),
            max_events: settings.max_events,
            flop_per_s: settings.flop_per_s,
            bfloat16_flop_per_s: settings.bfloat16_flop_per_s,
            byte_per_s: settings.byte_per_s,
        };
        let mut made = null_mut();
        check(unsafe { sys::cohort_trace_create(&options, &mut made) })?;
        Ok(Trace::adopt(made))
    }

    /// Starts or resumes recording.
    pub fn start(&self) -> Result<()> {
        check(unsafe { sys::cohort_trace_start(self.raw()) })
    }

    /// Stops recording. Queued work is only recorded if it has been waited for.
    pub fn stop(&self) -> Result<()> {
        check(unsafe { sys::cohort_trace_stop(self.raw()) })
    }

    /// Records while a closure runs, and waits for all work at its end.
    pub fn running<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.start()?;
        let _stop = Stop(self);
        let done = run()?;
        crate::wait_all()?;
        Ok(done)
    }

    /// Discards all events and totals.
    pub fn clear(&self) -> Result<()> {
        check(unsafe { sys::cohort_trace_clear(self.raw()) })
    }

    fn info(&self) -> Result<sys::cohort_trace_info> {
        // SAFETY: numbers.
        let mut info: sys::cohort_trace_info = unsafe { std::mem::zeroed() };
        info.struct_size = std::mem::size_of_val(&info);
        check(unsafe { sys::cohort_trace_get_info(self.raw(), &mut info) })?;
        Ok(info)
    }

    /// The number of events kept.
    pub fn num_events(&self) -> Result<usize> {
        Ok(self.info()?.num_events)
    }

    /// The number of events dropped.
    pub fn num_dropped(&self) -> Result<u64> {
        Ok(self.info()?.num_dropped)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> Result<bool> {
        Ok(self.info()?.running != 0)
    }

    /// The events in Chrome's format.
    pub fn json(&self) -> Result<String> {
        let mut found = null();
        check(unsafe { sys::cohort_trace_json(self.raw(), &mut found) })?;
        Ok(unsafe { text(found) })
    }

    /// Writes the events to a file, completely or not at all.
    pub fn write(&self, path: &str) -> Result<()> {
        let path = c_text(path, "path")?;
        check(unsafe { sys::cohort_trace_write(self.raw(), path.as_ptr()) })
    }

    /// A table of the times, for a person.
    pub fn table(&self, by: TotalsBy) -> Result<String> {
        let mut found = null();
        check(unsafe { sys::cohort_trace_table(self.raw(), by.code(), &mut found) })?;
        Ok(unsafe { text(found) })
    }

    /// The same as numbers, longest first.
    pub fn totals(&self, by: TotalsBy) -> Result<Vec<Total>> {
        let mut num = 0;
        check(unsafe { sys::cohort_trace_num_totals(self.raw(), by.code(), &mut num) })?;
        (0..num).map(|i| self.total(by, i)).collect()
    }

    fn total(&self, by: TotalsBy, index: usize) -> Result<Total> {
        let (mut name, mut op): (*const c_char, *const c_char) = (null(), null());
        // SAFETY: numbers.
        let mut row: sys::cohort_span_total = unsafe { std::mem::zeroed() };
        row.struct_size = std::mem::size_of_val(&row);
        check(unsafe { sys::cohort_trace_total(self.raw(), by.code(), index, &mut name, &mut op, &mut row) })?;
        let time = |ns: i64| Duration::from_nanos(ns.max(0) as u64);
        Ok(Total {
            kind: match row.kind {
                sys::COHORT_SPAN_PASS => SpanKind::Pass,
                sys::COHORT_SPAN_COPY => SpanKind::Copy,
                sys::COHORT_SPAN_EXCHANGE => SpanKind::Exchange,
                sys::COHORT_SPAN_UPDATE => SpanKind::Update,
                sys::COHORT_SPAN_WAIT => SpanKind::Wait,
                sys::COHORT_SPAN_CALL => SpanKind::Call,
                sys::COHORT_SPAN_USER => SpanKind::User,
                _ => SpanKind::Operator,
            },
            name: unsafe { text(name) },
            op: unsafe { text(op) },
            count: row.count,
            total: time(row.total_ns),
            least: time(row.least_ns),
            most: time(row.most_ns),
            flops: row.flops,
            bytes: row.bytes,
            bound: time(row.bound_ns as i64),
        })
    }

    /// Begins a span on a row of the program's own, such as "epoch 3" on row "training"; it ends when it is dropped. Spans of a
    /// row nest. They may be begun whether the trace is running or not.
    pub fn span(&self, row: &str, name: &str) -> Result<Span<'_>> {
        let (row, name) = (c_text(row, "row")?, c_text(name, "name")?);
        check(unsafe { sys::cohort_trace_begin(self.raw(), row.as_ptr(), name.as_ptr()) })?;
        Ok(Span { trace: self, row })
    }

    /// Marks a point in time on a row.
    pub fn mark(&self, row: &str, name: &str) -> Result<()> {
        let (row, name) = (c_text(row, "row")?, c_text(name, "name")?);
        check(unsafe { sys::cohort_trace_mark(self.raw(), row.as_ptr(), name.as_ptr()) })
    }

    /// Records the value of a counter, which a viewer draws as a curve.
    pub fn counter(&self, name: &str, value: f64) -> Result<()> {
        let name = c_text(name, "name")?;
        check(unsafe { sys::cohort_trace_counter(self.raw(), name.as_ptr(), value) })
    }
}

/// An open span: see [`Trace::span`].
#[derive(Debug)]
pub struct Span<'a> {
    trace: &'a Trace,
    row: std::ffi::CString,
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle that lives, and a span that is open.
        unsafe { sys::cohort_error_free(sys::cohort_trace_end(self.trace.raw(), self.row.as_ptr())) }
    }
}
