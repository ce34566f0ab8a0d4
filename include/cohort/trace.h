/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * Traces: what the process does, step by step, and how long it takes beside what the machine can do.
 *
 * While a trace runs it records, of all executors, groups, managers and applied operators of the process: each operator
 * with the name of its node, each copy, each sum of gradients and update of a parameter, what a queue waits for, and
 * the host's threads inside the calls that start passes. It keeps the last events, and totals of all. Several traces
 * may run at once; each sees everything. As long as none runs, nothing is recorded, and that costs a look at one flag
 * for each program of steps.
 *
 * Work is recorded when it has ended: wait for what was queued before cohort_trace_stop(), or it is not there.
 *
 * On a GPU, work is shown as it is enqueued, on a row "gpu(0) enqueued": how long the host takes to launch it, beside
 * the least time that the GPU would take; rates and `of_bound` are left out there. Its row of time on the GPU itself is
 * what the vendor's tools show.
 */
#ifndef COHORT_TRACE_H
#define COHORT_TRACE_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Settings of a trace that few callers change. Zero in any field means its default. */
typedef struct cohort_trace_options {
  size_t struct_size;         /* size the caller was compiled with; set by the initialisers */
  size_t max_events;          /* how many are kept, older ones make room; 0: 2^20. An event takes some 50 bytes */
  double flop_per_s;          /* what the threads of one device can compute, in float32; 0: measured */
  double bfloat16_flop_per_s; /* the same in bfloat16; 0: measured, where there are units for it */
  double byte_per_s;          /* what they can read and write by copying; 0: measured */
} cohort_trace_options;

#define COHORT_TRACE_OPTIONS_INIT \
  { sizeof(cohort_trace_options), 0, 0, 0, 0 }

/** The same as COHORT_TRACE_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's. */
COHORT_API void cohort_trace_options_init(cohort_trace_options *options, size_t struct_size);

/** What an event is about. */
enum {
  COHORT_SPAN_OPERATOR = 0, /* a step of a network, or of an operator that was applied at once */
  COHORT_SPAN_PASS = 1,     /* steps that were queued together: "forward", "backward", "update" */
  COHORT_SPAN_COPY = 2,
  COHORT_SPAN_EXCHANGE = 3, /* gradients summed over devices */
  COHORT_SPAN_UPDATE = 4,   /* a parameter, or a part of one */
  COHORT_SPAN_WAIT = 5,     /* a queue, for another one */
  COHORT_SPAN_CALL = 6,     /* a thread of the host's, in a call that starts passes */
  COHORT_SPAN_USER = 7      /* what the host says of itself: cohort_trace_begin() */
};
typedef int32_t cohort_span_kind;

/** How totals are summed. */
enum {
  COHORT_TOTALS_BY_NAME = 0,    /* a row for each operator of each node, each parameter, ... */
  COHORT_TOTALS_BY_OPERATOR = 1 /* a row for each operator, optimizer, ... */
};
typedef int32_t cohort_totals_by;

/** One row of totals. struct_size is set by the caller. */
typedef struct cohort_span_total {
  size_t struct_size;    /* sizeof(cohort_span_total) where the caller was compiled */
  cohort_span_kind kind; /* COHORT_SPAN_ constant */
  uint64_t count;        /* how often it was done */
  int64_t total_ns;      /* in all */
  int64_t least_ns;      /* the shortest and the longest */
  int64_t most_ns;
  double flops;    /* additions and multiplications of products and factorizations, in all; 0: none, or not known */
  double bytes;    /* of arrays read and written, in all; 0: not known */
  double bound_ns; /* what the machine would take for these at least, in all; 0: not known */
} cohort_span_total;

#define COHORT_SPAN_TOTAL_INIT \
  { sizeof(cohort_span_total), 0, 0, 0, 0, 0, 0, 0, 0 }

/** What a trace holds. struct_size is set by the caller. */
typedef struct cohort_trace_info {
  size_t struct_size;   /* sizeof(cohort_trace_info) where the caller was compiled */
  size_t num_events;    /* that are kept */
  uint64_t num_dropped; /* that had to make room, or for which there was no memory */
  cohort_bool running;
} cohort_trace_info;

#define COHORT_TRACE_INFO_INIT \
  { sizeof(cohort_trace_info), 0, 0, 0 }

/**
 * Makes a trace, which does not run yet.
 *
 * @return NULL, or COHORT_ERROR_INVALID_ARGUMENT: a rate that is negative or not finite
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_create(const cohort_trace_options *options,
                                                               cohort_trace **out_trace);

/** Ends it, running or not. */
COHORT_API void cohort_trace_free(cohort_trace *trace);

/** Goes on recording, behind what it holds already. COHORT_ERROR_STATE: it runs. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_start(cohort_trace *trace);

/** Stops recording; what it holds stays, with spans that are open as far as they went. COHORT_ERROR_STATE: it does not run. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_stop(cohort_trace *trace);

/** Forgets events and totals; may run meanwhile. Spans that are open stay so, and are shown from here on. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_clear(cohort_trace *trace);

/** How much it holds. struct_size of *out_info is set by the caller. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_get_info(const cohort_trace *trace,
                                                                 cohort_trace_info *out_info);

/**
 * The events in Chrome's format, for chrome://tracing, Perfetto and the like; may be asked for while it runs.
 *
 * One JSON object, `traceEvents` in it. A queue of a device is a thread, and so is a thread of the host's; their names
 * say which; beyond 1024 of them, further ones share rows, on which spans may overlap. Spans (`ph` "X") are named by
 * the node, parameter or call, `cat` is operator, pass, copy, exchange, update, wait, call or user; spans of one thread
 * nest. `args` has, where they are known: `op` and `kernel`, which the operator and its implementation are; `flops`,
 * `gflop_per_s`, `bytes`, `gbyte_per_s`; and `bound_us`, the time that the machine would take at least, which is due to
 * `bound`, "flops" or "bytes", and `of_bound`, that by the time it took, which is above 1 where arrays were in a cache.
 * Events `cohort_machine` have what each thread can do; it is measured when this, or totals, are first asked for, in
 * about a tenth of a second.
 *
 * The text belongs to the trace, until this is called again.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_json(cohort_trace *trace, const char **out_json);

/** The same to a file, whole or not at all. COHORT_ERROR_IO: it cannot be written. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_write(const cohort_trace *trace, const char *path);

/** How many rows of totals there are, as they are now; cohort_trace_total() reads these until this is called again. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_num_totals(const cohort_trace *trace, cohort_totals_by by,
                                                                   size_t *out_num);

/**
 * One row of totals, those that took longest first; of all events, those dropped among them. The rows are those of the
 * last cohort_trace_num_totals() with the same `by`, whatever was recorded since; after cohort_trace_clear(), or
 * without such a call, those at the first call of this.
 *
 * @param out_name   The node, parameter or call; "" in rows of operators. Both texts belong to the trace, until this is
 *                   called again.
 * @param out_op     The operator or optimizer; "" where there is none.
 * @param out_total  struct_size is set by the caller.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_total(cohort_trace *trace, cohort_totals_by by, size_t index,
                                                              const char **out_name, const char **out_op,
                                                              cohort_span_total *out_total);

/** The totals as a table for a person. The text belongs to the trace, until this is called again. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_table(cohort_trace *trace, cohort_totals_by by,
                                                              const char **out_text);

/**
 * Begins a span of the host's own, shown on a row of that name beside those of queues: "epoch 3" on row "training".
 * Rows belong to no thread; spans of one row nest. Spans may be begun and ended whether the trace runs or not, so that
 * a host need not know who starts and stops it: what is recorded of one is the part in which it runs, each part a span
 * of its own. Marks and counters are noted only while it runs. Several threads may make these calls at once.
 *
 * @return NULL, or COHORT_ERROR_STATE: 1024 spans of the row are open, or spans of 1024 rows; or
 *   COHORT_ERROR_INVALID_ARGUMENT: the trace runs and has 1024 rows of other names
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_begin(cohort_trace *trace, const char *row, const char *name);

/** Ends the span that was begun last on a row and is open. COHORT_ERROR_STATE: there is none, the trace running or not. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_end(cohort_trace *trace, const char *row);

/** Marks a moment on a row. COHORT_ERROR_INVALID_ARGUMENT: the trace runs and has 1024 rows of other names. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_mark(cohort_trace *trace, const char *row, const char *name);

/** Notes the value of a counter, which a viewer draws as a curve. COHORT_ERROR_INVALID_ARGUMENT: not finite. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_counter(cohort_trace *trace, const char *name, double value);

COHORT_END_DECLS

#endif /* COHORT_TRACE_H */
