// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

// TraceOptions are settings of a trace. Zero in any field means the library's default.
type TraceOptions struct {
	MaxEvents        int     // the number of events kept; older ones are dropped
	FlopPerS         float64 // float32 operations per second of one device's threads; 0: measured
	Bfloat16FlopPerS float64 // bfloat16 operations per second of one device's threads; 0: measured
	BytePerS         float64 // bytes per second that they read and write when copying; 0: measured
}

// A Trace records every operator, copy, sum of gradients and update of the process while it runs:
//
//	trace, err := cohort.NewTrace(cohort.TraceOptions{})
//	...
//	err = trace.Running(func() error { return group.Forward(data, label, true) })
//	err = trace.Write("step.json") // for chrome://tracing or Perfetto
//	table, err := trace.Table(cohort.TotalsByOperator)
type Trace struct{ handle }

// NewTrace makes a trace that does not run yet.
func NewTrace(settings TraceOptions) (*Trace, error) {
	if settings.MaxEvents < 0 {
		return nil, newError(ErrorClassInvalidArgument, "MaxEvents", "MaxEvents: expected 0 or more, found %d", settings.MaxEvents)
	}
	options := C.cohort_trace_options{
		struct_size:         C.sizeof_cohort_trace_options,
		max_events:          C.size_t(settings.MaxEvents),
		flop_per_s:          C.double(settings.FlopPerS),
		bfloat16_flop_per_s: C.double(settings.Bfloat16FlopPerS),
		byte_per_s:          C.double(settings.BytePerS),
	}
	var raw *C.cohort_trace
	if err := call(func() *C.cohort_error { return C.cohort_trace_create(&options, &raw) }); err != nil {
		return nil, err
	}
	made := &Trace{}
	made.init("trace", unsafe.Pointer(raw), freeTrace, nil)
	runtime.SetFinalizer(made, func(t *Trace) { finalizer(&t.handle) })
	return made, nil
}

func (t *Trace) on(f func(raw *C.cohort_trace) *C.cohort_error) error {
	return t.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_trace)(ptr)) })
}

// Start starts or resumes recording.
func (t *Trace) Start() error {
	return t.on(func(raw *C.cohort_trace) *C.cohort_error { return C.cohort_trace_start(raw) })
}

// Stop stops recording; recorded events stay. Queued work is only recorded if it has been waited for.
func (t *Trace) Stop() error {
	return t.on(func(raw *C.cohort_trace) *C.cohort_error { return C.cohort_trace_stop(raw) })
}

// Running records while a function runs, and waits for all work at its end.
func (t *Trace) Running(function func() error) (err error) {
	if function == nil {
		return newError(ErrorClassInvalidArgument, "function", "Running: expected a function, found nil")
	}
	if err := t.Start(); err != nil {
		return err
	}
	defer func() {
		if failed := t.Stop(); err == nil {
			err = failed
		}
	}()
	if err := function(); err != nil {
		return err
	}
	return WaitAll()
}

// Clear discards all events and totals.
func (t *Trace) Clear() error {
	return t.on(func(raw *C.cohort_trace) *C.cohort_error { return C.cohort_trace_clear(raw) })
}

// A TraceInfo is the state of a trace.
type TraceInfo struct {
	NumEvents  int
	NumDropped uint64 // events dropped
	Running    bool
}

// Info returns the state of the trace.
func (t *Trace) Info() (TraceInfo, error) {
	info := C.cohort_trace_info{struct_size: C.sizeof_cohort_trace_info}
	err := t.on(func(raw *C.cohort_trace) *C.cohort_error { return C.cohort_trace_get_info(raw, &info) })
	return TraceInfo{int(info.num_events), uint64(info.num_dropped), info.running != 0}, err
}

// JSON returns the events in Chrome's format.
func (t *Trace) JSON() (found string, err error) {
	err = t.on(func(raw *C.cohort_trace) *C.cohort_error {
		var text *C.char
		failed := C.cohort_trace_json(raw, &text)
		found = goText(text)
		return failed
	})
	return found, err
}

// Write writes the events to a file in Chrome's format, completely or not at all.
func (t *Trace) Write(path string) error {
	return t.named(func(raw *C.cohort_trace, path, _ *C.char) *C.cohort_error { return C.cohort_trace_write(raw, path) }, path, "")
}

// Table returns a table of the times, for a person.
func (t *Trace) Table(by TotalsBy) (found string, err error) {
	err = t.on(func(raw *C.cohort_trace) *C.cohort_error {
		var text *C.char
		failed := C.cohort_trace_table(raw, C.cohort_totals_by(by), &text)
		found = goText(text)
		return failed
	})
	return found, err
}

// A Total is a row of the totals of a trace.
type Total struct {
	Kind               SpanKind
	Name               string // the node, parameter or call; "" in rows of operators
	Op                 string // the operator or optimizer; "" if there is none
	Count              uint64
	Total, Least, Most time.Duration
	Flops              float64       // total additions and multiplications in products and factorizations; 0: none, or unknown
	Bytes              float64       // total bytes of arrays read and written; 0: unknown
	Bound              time.Duration // the least total time that the machine needs for these; 0: unknown
}

// Totals returns the times by node, operator or kind, longest first.
func (t *Trace) Totals(by TotalsBy) (found []Total, err error) {
	err = t.on(func(raw *C.cohort_trace) *C.cohort_error {
		var num C.size_t
		if failed := C.cohort_trace_num_totals(raw, C.cohort_totals_by(by), &num); failed != nil {
			return failed
		}
		for i := C.size_t(0); i < num; i++ {
			row := C.cohort_span_total{struct_size: C.sizeof_cohort_span_total}
			var name, op *C.char
			if failed := C.cohort_trace_total(raw, C.cohort_totals_by(by), i, &name, &op, &row); failed != nil {
				return failed
			}
			found = append(found, Total{
				SpanKind(row.kind), goText(name), goText(op), uint64(row.count), time.Duration(row.total_ns), time.Duration(row.least_ns),
				time.Duration(row.most_ns), float64(row.flops), float64(row.bytes), time.Duration(row.bound_ns),
			})
		}
		return nil
	})
	return found, err
}

func (t *Trace) named(f func(raw *C.cohort_trace, first, second *C.char) *C.cohort_error, first, second string) error {
	var c scratch
	defer c.end()
	one, other := c.text(first, "name"), c.text(second, "name")
	if c.err != nil {
		return c.err
	}
	return t.on(func(raw *C.cohort_trace) *C.cohort_error { return f(raw, one, other) })
}

// Begin begins a span on a row of the program's own, such as "epoch 3" on row "training". Spans of a row nest; they may be begun and
// ended whether the trace is running or not.
func (t *Trace) Begin(row, name string) error {
	return t.named(func(raw *C.cohort_trace, row, name *C.char) *C.cohort_error {
		return C.cohort_trace_begin(raw, row, name)
	}, row, name)
}

// End ends the last span begun on a row.
func (t *Trace) End(row string) error {
	return t.named(func(raw *C.cohort_trace, row, _ *C.char) *C.cohort_error { return C.cohort_trace_end(raw, row) }, row, "")
}

// Mark marks a point in time on a row.
func (t *Trace) Mark(row, name string) error {
	return t.named(func(raw *C.cohort_trace, row, name *C.char) *C.cohort_error {
		return C.cohort_trace_mark(raw, row, name)
	}, row, name)
}

// Counter records a value, which a viewer draws as a curve.
func (t *Trace) Counter(name string, value float64) error {
	return t.named(func(raw *C.cohort_trace, name, _ *C.char) *C.cohort_error {
		return C.cohort_trace_counter(raw, name, C.double(value))
	}, name, "")
}
