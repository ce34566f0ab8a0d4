/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * Traces: records of what the process does, step by step, how long it takes, and how long it would take at the
 * machine's full speed.
 *
 * While a trace runs it records, of all executors, groups, managers and applied operators of the process: each operator
 * with the name of its node, each copy, each sum of gradients and update of a parameter, what a queue waits for, and
 * the host's threads inside the calls that start passes. It keeps the latest events, and totals of all. Several traces
 * may run at once; each records everything. While none runs, nothing is recorded; the cost is then a check of one flag
 * for each program of steps.
 *
 * Work is recorded when it has ended: wait for queued work before cohort_trace_stop(), or it is missing.
 *
 * Work on a GPU is shown as it is enqueued, on a row "gpu(0) enqueued": how long the host takes to launch it, and the
 * least time that the GPU would take; rates and `of_bound` are left out there. The vendor's tools show the time on the
 * GPU itself.
 */
#ifndef COHORT_TRACE_H
#define COHORT_TRACE_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Settings of a trace that few callers change. Zero in any field means its default. */
typedef struct cohort_trace_options {
  size_t struct_size;         /* size the caller was compiled with; set by the initialisers */
  size_t max_events;          /* how many are kept, the latest ones; 0: 2^20. An event takes some 50 bytes */
  double flop_per_s;          /* the speed of one device's threads in float32; 0: measured */
  double bfloat16_flop_per_s; /* the same in bfloat16; 0: measured if there are units for it */
  double byte_per_s;          /* the bytes that they read and write in a copy; 0: measured */
} cohort_trace_options;

#define COHORT_TRACE_OPTIONS_INIT \
  { sizeof(cohort_trace_options), 0, 0, 0, 0 }

/** COHORT_TRACE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_trace_options_init(cohort_trace_options *options, size_t struct_size);

/** Kinds of events. */
enum {
  COHORT_SPAN_OPERATOR = 0, /* a step of a network, or of an operator applied to arrays */
  COHORT_SPAN_PASS = 1,     /* steps that were queued together: "forward", "backward", "update" */
  COHORT_SPAN_COPY = 2,
  COHORT_SPAN_EXCHANGE = 3, /* gradients summed over devices */
  COHORT_SPAN_UPDATE = 4,   /* a parameter, or a part of one */
  COHORT_SPAN_WAIT = 5,     /* a queue waits for another one */
  COHORT_SPAN_CALL = 6,     /* a host thread is in a call that starts passes */
  COHORT_SPAN_USER = 7      /* a span of the host's own: cohort_trace_begin() */
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
  int64_t least_ns;      /* the shortest */
  int64_t most_ns;       /* the longest */
  double flops;    /* additions and multiplications of products and factorizations, in all; 0: none, or not known */
  double bytes;    /* of arrays read and written, in all; 0: not known */
  double bound_ns; /* the least time the machine would take for these, in all; 0: not known */
} cohort_span_total;

#define COHORT_SPAN_TOTAL_INIT \
  { sizeof(cohort_span_total), 0, 0, 0, 0, 0, 0, 0, 0 }

/** The contents of a trace. struct_size is set by the caller. */
typedef struct cohort_trace_info {
  size_t struct_size;   /* sizeof(cohort_trace_info) where the caller was compiled */
  size_t num_events;    /* events that are kept */
  uint64_t num_dropped; /* events dropped for newer ones, or for lack of memory */
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

/** Frees a trace, running or not; NULL does nothing. */
COHORT_API void cohort_trace_free(cohort_trace *trace);

/** Starts or continues recording; it keeps what it holds. COHORT_ERROR_STATE: it is running. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_start(cohort_trace *trace);

/** Stops recording; it keeps what it holds, and open spans up to now. COHORT_ERROR_STATE: it is not running. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_stop(cohort_trace *trace);

/** Removes events and totals; the trace may be running. Open spans stay open, and are shown from here on. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_clear(cohort_trace *trace);

/** How much a trace holds. struct_size of *out_info is set by the caller. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_get_info(const cohort_trace *trace,
                                                                 cohort_trace_info *out_info);

/**
 * The events in Chrome's format, for chrome://tracing, Perfetto and similar viewers; the trace may be running.
 *
 * It is one JSON object with `traceEvents`. Each queue of a device and each host thread is a thread there, with a name
 * that says which; beyond 1024 of them, further ones share rows, on which spans may overlap. Spans (`ph` "X") have the
 * name of the node, parameter or call; `cat` is operator, pass, copy, exchange, update, wait, call or user; spans of
 * one thread nest. `args` has, as far as known: `op` and `kernel`, the operator and its implementation; `flops`,
 * `gflop_per_s`, `bytes`, `gbyte_per_s`; `bound_us`, the least time that the machine would take; `bound`, "flops" or
 * "bytes", whichever decides that time; and `of_bound`, bound_us divided by the time taken, which is above 1 if arrays
 * were in a cache. Events `cohort_machine` have the speed of each thread, which is measured when this or totals are
 * first asked for, in about a tenth of a second.
 *
 * The text belongs to the trace, until this is called again.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_json(cohort_trace *trace, const char **out_json);

/** The same to a file, whole or not at all. COHORT_ERROR_IO: it cannot be written. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_write(const cohort_trace *trace, const char *path);

/** How many rows of totals there are now; cohort_trace_total() reads these rows until this is called again. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_num_totals(const cohort_trace *trace, cohort_totals_by by,
                                                                   size_t *out_num);

/**
 * One row of totals, sorted by total time, the longest first. Dropped events count, too. The rows are those of the last
 * cohort_trace_num_totals() with the same `by`, whatever was recorded since. After cohort_trace_clear(), or without
 * such a call, they are those at the first call of this function.
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
 * Rows belong to no thread; spans of one row nest. Spans may be begun and ended whether or not the trace is running, so
 * that a host need not know when it is started and stopped: each part of a span in which the trace runs is recorded as
 * a span of its own. Marks and counters are noted only while it runs. Several threads may make these calls at once.
 *
 * @return NULL, or COHORT_ERROR_STATE: 1024 spans of the row are open, or there are open spans on 1024 rows; or
 *   COHORT_ERROR_INVALID_ARGUMENT: the trace is running and has 1024 rows of other names. All counters together count
 *   as one row.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_begin(cohort_trace *trace, const char *row, const char *name);

/**
 * Ends the open span that was begun last on a row. COHORT_ERROR_STATE: there is none, whether or not the trace is
 * running.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_end(cohort_trace *trace, const char *row);

/**
 * Marks a moment on a row. COHORT_ERROR_INVALID_ARGUMENT: the trace is running and has 1024 rows of other names, all
 * counters counting as one.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_mark(cohort_trace *trace, const char *row, const char *name);

/** Notes the value of a counter, which a viewer draws as a curve. COHORT_ERROR_INVALID_ARGUMENT: not finite. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_trace_counter(cohort_trace *trace, const char *name, double value);

COHORT_END_DECLS

#endif /* COHORT_TRACE_H */
