// SPDX-License-Identifier: Apache-2.0
//! Traces: what the process does, step by step, and how long it takes beside what the machine can do.
use crate::error::{c_text, check, text, Result};
use cohort_sys as sys;
use std::os::raw::c_char;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Settings of a trace. Zero in any field is the library's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceOptions {
    /// How many events are kept; older ones make room.
    pub max_events: usize,
    /// What the threads of one device can compute in float32; 0: measured.
    pub flop_per_s: f64,
    /// The same in bfloat16.
    pub bfloat16_flop_per_s: f64,
    /// What they can read and write by copying; 0: measured.
    pub byte_per_s: f64,
}

/// What an event is about.
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
    /// A parameter that is updated, or a part of one.
    Update,
    /// A queue that waits for another one.
    Wait,
    /// A thread of the program's, in a call that starts passes.
    Call,
    /// What the program says of itself: [`Trace::span`].
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
    /// What it is about.
    pub kind: SpanKind,
    /// The node, parameter or call; empty in rows of operators.
    pub name: String,
    /// The operator or optimizer; empty where there is none.
    pub op: String,
    /// How often it was done.
    pub count: u64,
    /// In all.
    pub total: Duration,
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
    /// Additions and multiplications of products, in all; 0: none, or not known.
    pub flops: f64,
    /// Of arrays read and written, in all; 0: not known.
    pub bytes: f64,
    /// What the machine would take for these at least, in all; zero: not known.
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

/// Stops a trace, whatever ends what it is to record.
struct Stop<'a>(&'a Trace);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle of our own. What has been stopped by the caller is stopped.
        unsafe { sys::cohort_error_free(sys::cohort_trace_stop(self.0.raw())) }
    }
}

impl Trace {
    /// One that does not run yet.
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

    /// Goes on recording, behind what it holds already.
    pub fn start(&self) -> Result<()> {
        check(unsafe { sys::cohort_trace_start(self.raw()) })
    }

    /// Stops. Work that is queued must have been waited for, or it is not there.
    pub fn stop(&self) -> Result<()> {
        check(unsafe { sys::cohort_trace_stop(self.raw()) })
    }

    /// Records what a closure does, and waits for all work at its end.
    pub fn running<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.start()?;
        let _stop = Stop(self);
        let done = run()?;
        crate::wait_all()?;
        Ok(done)
    }

    /// Forgets what there is.
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

    /// How many events are kept.
    pub fn num_events(&self) -> Result<usize> {
        Ok(self.info()?.num_events)
    }

    /// How many had to make room.
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

    /// The same to a file, whole or not at all.
    pub fn write(&self, path: &str) -> Result<()> {
        let path = c_text(path, "path")?;
        check(unsafe { sys::cohort_trace_write(self.raw(), path.as_ptr()) })
    }

    /// What took how long, for a person.
    pub fn table(&self, by: TotalsBy) -> Result<String> {
        let mut found = null();
        check(unsafe { sys::cohort_trace_table(self.raw(), by.code(), &mut found) })?;
        Ok(unsafe { text(found) })
    }

    /// The same as numbers, what took longest first.
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

    /// Begins a span on a row of the program's own, such as "epoch 3" on row "training"; it ends when it is dropped. Spans of a row
    /// nest. They may be begun whether the trace runs or not.
    pub fn span(&self, row: &str, name: &str) -> Result<Span<'_>> {
        let (row, name) = (c_text(row, "row")?, c_text(name, "name")?);
        check(unsafe { sys::cohort_trace_begin(self.raw(), row.as_ptr(), name.as_ptr()) })?;
        Ok(Span { trace: self, row })
    }

    /// Marks a moment on a row.
    pub fn mark(&self, row: &str, name: &str) -> Result<()> {
        let (row, name) = (c_text(row, "row")?, c_text(name, "name")?);
        check(unsafe { sys::cohort_trace_mark(self.raw(), row.as_ptr(), name.as_ptr()) })
    }

    /// Notes the value of a counter, which a viewer draws as a curve.
    pub fn counter(&self, name: &str, value: f64) -> Result<()> {
        let name = c_text(name, "name")?;
        check(unsafe { sys::cohort_trace_counter(self.raw(), name.as_ptr(), value) })
    }
}

/// A span that is open: see [`Trace::span`].
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
