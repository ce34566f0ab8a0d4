/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cohort.h
 * All of Cohort's public interface: data-parallel training and inference behind a plain C ABI. The README shows a whole
 * program; bindings/README.md lists what a binding for another language relies on.
 *
 *   types.h, error.h, context.h        handles and constants; errors; devices, dtypes and layouts as text
 *   ndarray.h, arrays.h, descs.h       arrays; lists of them by name, .params files; names with shapes and dtypes
 *   symbol.h, operator.h, custom.h     networks, composed or read from JSON; operators; operators of the host's own
 *   tape.h                             gradients of operators that were applied to arrays one by one
 *   executor.h, group.h, manager.h     a network bound to arrays; on several devices, each with a part of the batch; in
 *                                      buckets
 *   initializer.h, optimizer.h, metric.h, monitor.h, checkpoint.h    what training needs besides
 *   calibration.h                      inference in 8-bit integers
 *   trace.h                            what each step does, how long it takes and how long it would have to take
 *   log.h, version.h                   messages; versions and features
 *   cohort_functions.h                 all functions in one macro, for dlopen(); not included here
 *
 * These rules hold for every function; a comment at a function only adds to them.
 *
 * Errors. A function that can fail returns `cohort_error *`: NULL is success, anything else is an error object to be
 * read and freed with cohort_error_free(). After an error all `out_*` parameters are untouched, objects are as before
 * the call unless the function says otherwise, and there is nothing to clean up but the error. Every such function can
 * return COHORT_ERROR_INVALID_ARGUMENT (a NULL, freed or wrong-kind handle, a missing out parameter, a count, range or
 * constant out of bounds), COHORT_ERROR_OUT_OF_MEMORY and COHORT_ERROR_INTERNAL; comments name the others. No call ends
 * the process, and no exception leaves the library.
 *
 * Handles. Every handle is opaque. A handle that a call returns through an `out_*` parameter belongs to the caller, who
 * frees it once with the `_free` function of its kind; `_free(NULL)` does nothing. Handles may be freed in any order
 * and on any thread: an object holds references on what it uses. Two handles on one object are different pointers. A
 * call that is given a freed handle, or one of another kind, returns an error, and `_free` does nothing with it. A
 * freed handle is recognised until a new handle happens to get the same address. cohort_live_handles() counts the
 * handles that are not yet freed.
 *
 * Values. Counts and bytes are `size_t`, lengths of axes and samples `int64_t`. Constants are `int32_t`, named by their
 * family (cohort_dtype, cohort_group_list); yes and no are `cohort_bool`, an `int32_t` of 1 or 0 and nothing else.
 *
 * NULL. Tags in the comments say where NULL is allowed: `@nullable` means that NULL may be passed for the parameter,
 * `@null_entries` that entries of the list may be NULL, and `@gives_null` that the function may set the out parameter
 * to NULL. NULL may also be passed for `user_data`, for options, for a context (cpu(0)), to `_free` functions and for a
 * list without entries. `@as f()` means "as for f()": its parameters that are not described again mean the same here.
 * Declarations for other languages are generated from these tags.
 *
 * Text. All text is UTF-8 and ends with a zero byte. A returned `const char *` belongs to the handle that the call was
 * given, and is valid until that handle is changed or freed; if the call takes no handle, the text is valid as long as
 * the process lives. Text and arrays of plain values passed in are copied before a call returns. Text and bytes of any
 * length are written into the caller's memory by functions with `out_X, capacity, out_bytes`: with out_X NULL they only
 * report the bytes needed; too small a capacity is an error.
 *
 * Lists. `const char *const *keys, *values, size_t num` are attributes: `num` pairs of text, in MXNet's own spelling. A
 * count of 0 allows NULL pointers.
 *
 * Option structs may be NULL: all defaults. Their first field is `struct_size`, the size that the caller was compiled
 * with; zero in any other field is its default. The `_INIT` macros and `_options_init` functions set both. Fields are
 * only ever added at the end: a newer library takes an older, smaller struct, and an older library a larger one whose
 * extra bytes are zero.
 *
 * Structs that a function fills (cohort_memory_info and others) begin with `struct_size` as well, which the caller
 * sets. Fields behind the end of the library's own struct are left as they were: start from the `_INIT` macro, so that
 * they are zero with an older library.
 *
 * Threads. Two threads may call the library at the same time if they work on different objects. All handles on one
 * object count as one, and so do executors and groups that share memory (shared_executor, shared_group, reshape,
 * buckets of a manager), and an executor and its group; metrics (metric.h) are an exception. Reading arrays, symbols,
 * descriptor lists and array lists from several threads is allowed while none changes them. Executors that were merely bound to the same arrays are different
 * objects as long as nothing writes these arrays: so one set of parameters serves any number of threads, each with an
 * executor of its own for inference. An object is not tied to a thread. What other threads do changes no result. After
 * fork(), calls in the child return COHORT_ERROR_STATE for handles that were made before. They may be freed there, and
 * new ones may be made if no other thread was inside a call at the time of the fork.
 *
 * Waiting. Calls behave as if each had finished its work when it returned. In fact work on devices is queued, and a
 * call may return before it is done; a call that gives values to the host waits for them. Failed work is reported as
 * COHORT_ERROR_EXECUTION, which names the operator. Each executor (a group has one for each device) remembers that a
 * pass failed until one call has returned that error: the first one that waits for this executor or reads an array
 * which the pass writes. So a group whose two devices both fail reports two errors. cohort_wait_all() reports an error
 * and leaves it to be reported by the executor, too.
 *
 * A pass fails as a whole: all arrays that it writes are bad from then on, even outputs that do not depend on the
 * operator that failed, until they are written again. Reading such an array returns the same error. A call that is
 * given such an array to compute from returns the error if the failure has been seen by then; else the arrays that it
 * writes become bad too. So every call that reads or writes contents of arrays can return COHORT_ERROR_EXECUTION,
 * whether its comment says so or not. Reading an array that the failed pass does not write returns no error. After a
 * failed pass or update of training, parameters, auxiliary states and the optimizer's states have to be set again, for
 * example by cohort_group_set_params() and cohort_optimizer_load_states(). After a failed pass of inference only its
 * outputs are bad.
 *
 * Callbacks run on the thread that made the call, while it is inside that call, and must not call the library with the
 * handle that the call works on, except where their comment allows it; for a group or manager, by whatever handle, that
 * is COHORT_ERROR_STATE. They may free any handle, as garbage collectors
 * do: the objects that the call works on live until it returns. A callback has to return: no exception, panic or
 * longjmp may pass through the library. `user_data` is passed on untouched and never read; it may hold a number instead
 * of an address.
 */
#ifndef COHORT_COHORT_H
#define COHORT_COHORT_H

#include "cohort/arrays.h"
#include "cohort/calibration.h"
#include "cohort/checkpoint.h"
#include "cohort/context.h"
#include "cohort/custom.h"
#include "cohort/descs.h"
#include "cohort/error.h"
#include "cohort/executor.h"
#include "cohort/group.h"
#include "cohort/initializer.h"
#include "cohort/log.h"
#include "cohort/manager.h"
#include "cohort/metric.h"
#include "cohort/monitor.h"
#include "cohort/ndarray.h"
#include "cohort/operator.h"
#include "cohort/optimizer.h"
#include "cohort/symbol.h"
#include "cohort/tape.h"
#include "cohort/trace.h"
#include "cohort/types.h"
#include "cohort/version.h"

#endif /* COHORT_COHORT_H */
