/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file monitor.h
 * Monitors: statistics of the arrays of executors, groups and managers while they run, every so many batches.
 *
 * Call cohort_monitor_tic() before a batch and cohort_monitor_toc() after it, then read the entries of what ran between
 * them. Results do not change, except for the rounding of operators that a plan would have fused. Passes wait for their
 * work while a monitor is installed.
 */
#ifndef COHORT_MONITOR_H
#define COHORT_MONITOR_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Where in a name a pattern has to match. */
enum {
  COHORT_PATTERN_ANCHORED = 0, /* from the start of the name, not necessarily to its end */
  COHORT_PATTERN_ANYWHERE = 1  /* any part of it */
};
typedef int32_t cohort_pattern_mode;

/**
 * Computes the values that a monitor reports of an array.
 *
 * @param array      Lent for the time of the call, complete; not to be freed.
 * @param values     Lent likewise, empty: takes one array or more by cohort_arrays_add(), in the order of the report.
 * @param user_data  As given with the callback.
 * @return 0, or anything else to fail the call it runs in (COHORT_ERROR_EXECUTION).
 *
 * Runs inside the forward and backward calls of what is monitored, and inside cohort_monitor_toc(), for each array that
 * is reported; not after the monitor was freed. It may use the array, and must not use the monitor or what is
 * monitored. If it fails or gives no array in a forward or backward call, the rest of that pass does not run.
 */
typedef int32_t (*cohort_statistic_fn)(cohort_ndarray *array, cohort_arrays *values, void *user_data);

/**
 * Says whether a monitor is to report an array: for hosts with regular expressions of their own.
 *
 * @param name       As the report has it. Lives until the callback returns.
 * @param user_data  As given with the callback.
 * @return 1 to report it, 0 to leave it out, anything else to fail the call it runs in (COHORT_ERROR_EXECUTION).
 *
 * Runs where cohort_statistic_fn does, for each array that could be reported, and under the same rules.
 */
typedef int32_t (*cohort_name_filter_fn)(const char *name, void *user_data);

/**
 * Settings of a monitor that few callers change. Zero in any field means its default.
 *
 * Patterns are UTF-8 in the syntax of RE2: that of ECMAScript and Python without features that need backtracking (back
 * references such as `\1`, and assertions such as `(?=x)` and `(?!x)`), so that matching takes time linear in the
 * length of the name, and little stack. Further differences: `^` and `$` are the ends of the name, `.` is any character
 * except a newline, also one of several bytes, `\d`, `\w`, `\s` and `\b` know ASCII only, `x{n}` repeats at most 1,000
 * times, and a character is `\x{263A}`, not `\u263A`. A pattern has at most 64 KiB, and some MiB when compiled. Other
 * patterns are refused; hosts that need them use `filter`.
 */
typedef struct cohort_monitor_options {
  size_t struct_size; /* size the caller was compiled with; set by the initialisers */

  const char *pattern;              /* regular expression of the names to report, see below; NULL or "": all */
  cohort_pattern_mode pattern_mode; /* COHORT_PATTERN_ constant */
  cohort_bool all_in_toc;           /* 1: arguments and auxiliary states are reported whatever pattern and filter say */
  cohort_bool sort;        /* 1: entries by name, equal ones in the order of execution; 0: in the order of execution */
  cohort_bool monitor_all; /* 1: the inputs of each operator too, before its outputs */

  cohort_statistic_fn statistic; /* NULL: the Euclidean norm over the square root of the size, one float32 */
  void *statistic_user_data;     /* passed to statistic */

  cohort_name_filter_fn filter; /* chooses the names to report; NULL: pattern does. Not both */
  void *filter_user_data;       /* passed to filter */

  /* 1: a pass fails with COHORT_ERROR_EXECUTION at the first output or gradient with an infinity or a NaN, whatever
     pattern and filter say. The error names it, and the rest of the pass does not run. */
  cohort_bool stop_if_not_finite;
} cohort_monitor_options;

#define COHORT_MONITOR_OPTIONS_INIT \
  { sizeof(cohort_monitor_options), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0 }

/** COHORT_MONITOR_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_monitor_options_init(cohort_monitor_options *options, size_t struct_size);

/**
 * Makes a monitor.
 *
 * @param interval  Batches, at least 1: of each `interval` batches the first is reported.
 * @param options   NULL: all defaults.
 * @return NULL, or COHORT_ERROR_INVALID_ARGUMENT (interval, a constant, an invalid or too large pattern, both filter
 *   and pattern).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_create(int64_t interval,
                                                                 const cohort_monitor_options *options,
                                                                 cohort_monitor **out_monitor);

/** Frees a monitor; NULL does nothing. Objects that it was installed on continue without it. */
COHORT_API void cohort_monitor_free(cohort_monitor *monitor);

/**
 * Watches an executor, which the monitor keeps alive. A monitor can watch several; entries do not say which.
 *
 * An executor has one callback: this replaces the one of cohort_executor_set_monitor() and that of a monitor installed
 * before, which then reports the executor's arguments and auxiliary states only.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_install_on_executor(cohort_monitor *monitor,
                                                                              cohort_executor *executor);

/** The same for every device of a group, device 0 first. It follows the group when that is bound anew or reshaped. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_install_on_group(cohort_monitor *monitor,
                                                                           cohort_group *group);

/**
 * The same for the main group of a manager.
 *
 * @return NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_install_on_manager(cohort_monitor *monitor,
                                                                             cohort_manager *manager);

/**
 * Begins a batch. If it is on the interval, waits for the work queued so far, and reporting starts.
 *
 * @return NULL, or COHORT_ERROR_EXECUTION if queued work failed; the batch is not begun then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_tic(cohort_monitor *monitor);

/**
 * Ends a batch, and waits for the executors. If the batch is on the interval there are entries, which can be read by
 * index until the next successful call: first the arrays computed since cohort_monitor_tic(), in the order of
 * execution, device after device; then the arguments and auxiliary states, but not the gradients, of each executor, in
 * the order of installation.
 *
 * @param out_num_entries  How many; 0 if the batch is not on the interval, or no cohort_monitor_tic() went before.
 * @return NULL, or, with the batch not ended and the entries as before, COHORT_ERROR_EXECUTION (queued work or the
 *   statistic failed), COHORT_ERROR_INVALID_ARGUMENT (the statistic gave no array).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_toc(cohort_monitor *monitor, size_t *out_num_entries);

/** How many batches were begun. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_step(const cohort_monitor *monitor, int64_t *out_step);

/**
 * Reads an entry of the latest cohort_monitor_toc().
 *
 * @param out_step  @nullable The batch, counted from 1.
 * @param out_name  @nullable As the callback of cohort_executor_set_monitor() is given it, or the name of an argument
 *                  or auxiliary state.
 * @param out_text  @nullable Each value followed by a tab: a value of one element as a number, others as elements in
 *                  brackets. If it is wanted, the call waits for the values.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_entry(const cohort_monitor *monitor, size_t index,
                                                                int64_t *out_step, const char **out_name,
                                                                const char **out_text);

/** The values of an entry: what the statistic gave, in its order, without names. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_monitor_values(const cohort_monitor *monitor, size_t index,
                                                                 cohort_arrays **out_values);

COHORT_END_DECLS

#endif /* COHORT_MONITOR_H */
