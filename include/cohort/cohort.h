/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cohort.h
 * All of Cohort's public interface: data-parallel training and inference behind a plain C ABI.
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
 * object holds references on what it uses. cohort_live_handles() counts those not yet freed.
 *
 * Text. All text is UTF-8 and ends with a zero byte. A returned `const char *` belongs to the handle it came from and
 * lives until that handle is changed or freed; one that comes from no handle lives as long as the process. Text and
 * arrays of plain values passed in are copied before a call returns. Text and bytes of any length are written into the
 * caller's memory by functions with `out_X, capacity, out_bytes`: with out_X NULL they only report the bytes needed.
 *
 * Lists. `const char *const *keys, *values, size_t num` are attributes: `num` pairs of text, in MXNet's own spelling. A
 * count of 0 allows NULL pointers. Option structs may be NULL: all defaults.
 *
 * Threads. Two threads may use two handles at the same time, except that executors and groups which share memory count
 * as one. One handle is used by one thread at a time, but by any thread; symbols, descriptor lists and array lists may
 * be read by several threads while none changes them. Contents of an array are ordered by the library: a read waits for
 * the queued work that writes it.
 *
 * Waiting. Work on devices is queued. Only functions that say so wait for it; an error of queued work comes out there
 * as COHORT_ERROR_EXECUTION, once, and names the operator.
 *
 * Callbacks run on the thread that made the call, while it is inside that call, and must not call the library with the
 * handle that the call works on, except where their comment allows it.
 */
#ifndef COHORT_COHORT_H
#define COHORT_COHORT_H

#include "cohort/arrays.h"
#include "cohort/checkpoint.h"
#include "cohort/context.h"
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
#include "cohort/types.h"
#include "cohort/version.h"

#endif /* COHORT_COHORT_H */
