/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cohort.h
 * All of Cohort's public interface: data-parallel training and inference behind a plain C ABI. The README has a whole
 * program, bindings/README.md what a binding for another language relies on.
 *
 *   types.h, error.h, context.h        handles and constants; errors; devices, dtypes and layouts as text
 *   ndarray.h, arrays.h, descs.h       arrays; lists of them by name, .params files; names with shapes and dtypes
 *   symbol.h, operator.h               networks, composed or read from JSON; operators, applied at once too
 *   tape.h                             gradients of operators that were applied at once
 *   executor.h, group.h, manager.h     a network on arrays; on several devices, by parts of a batch; in buckets
 *   initializer.h, optimizer.h, metric.h, monitor.h, checkpoint.h    what training needs beside
 *   calibration.h                      what inference in int8 needs
 *   trace.h                            what a step does, and how long it takes beside what the machine can do
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
 * Handles. Every handle is opaque. One that comes out through an `out_*` parameter is the caller's and is freed once
 * with its kind's `_free` function; `_free(NULL)` does nothing. Handles may be freed in any order and on any thread: an
 * object holds references on what it uses. Two handles on one thing are not the same pointer. A handle that was freed,
 * or is of another kind, is recognised - an error of the call it is passed to, nothing done by `_free` - but only until
 * its address is given out again. cohort_live_handles() counts those not yet freed.
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
 * Text. All text is UTF-8 and ends with a zero byte. A returned `const char *` belongs to the handle it came from and
 * lives until that handle is changed or freed; one that comes from no handle lives as long as the process. Text and
 * arrays of plain values passed in are copied before a call returns. Text and bytes of any length are written into the
 * caller's memory by functions with `out_X, capacity, out_bytes`: with out_X NULL they only report the bytes needed;
 * too small a capacity is an error.
 *
 * Lists. `const char *const *keys, *values, size_t num` are attributes: `num` pairs of text, in MXNet's own spelling. A
 * count of 0 allows NULL pointers. Lists of handles may hold NULL only where the comment says so.
 *
 * Option structs may be NULL: all defaults. Their first field is `struct_size`, the size that the caller was compiled
 * with; zero in any other field is its default. The `_INIT` macros and `_options_init` functions set both. Fields are
 * only ever added at the end: a newer library takes an older, smaller struct, and an older library a larger one whose
 * extra bytes are zero.
 *
 * Threads. Two threads may use two handles at the same time, except that executors and groups which share memory
 * (shared_executor, shared_group, reshape, buckets of a manager) count as one, and so do an executor and its group.
 * Executors that were only bound to the same arrays do not, as long as nobody writes those: so one set of parameters
 * serves any number of threads, each with an executor of its own for inference. One handle is used by one thread at a
 * time, but by any thread; arrays, symbols, descriptor lists and array lists may be read by several threads while none
 * changes them. What other threads do changes no result. After fork() handles of before are no good in the child:
 * COHORT_ERROR_STATE. They may be freed there, and new ones made if no other thread was inside a call at the fork.
 *
 * Waiting. Calls behave as if each had finished its work when it returned. In fact work on devices is queued, and a
 * call may return before it is done; what gives values to the host waits for them. Work that fails comes out as
 * COHORT_ERROR_EXECUTION, naming the operator, once, at the first call that waits for what it belongs to;
 * cohort_wait_all(), which waits for everybody's, reports it and leaves it there. Reading an array that is not
 * concerned reports nothing. The arrays that it should have written, or changed, stay bad until they are written again:
 * reading them is the same error, and so is computing from them once it is known. So every call that reads or writes
 * contents of arrays can return it, whether its comment says so or not. A failed pass or update of training leaves
 * parameters, auxiliary states and the optimizer's states to be set again, as cohort_group_set_params() and
 * cohort_optimizer_load_states() do; a failed pass of inference leaves nothing but its outputs.
 *
 * Callbacks run on the thread that made the call, while it is inside that call, and must not call the library with the
 * handle that the call works on, except where their comment allows it. They may free any handle, as collectors of
 * garbage do: what the call works on stays until it returns. They return: no exception, panic or longjmp goes
 * through the library. `user_data` is passed on untouched and never read; it may hold a number instead of an address.
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
