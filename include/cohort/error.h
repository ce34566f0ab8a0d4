/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file error.h
 * Error objects. Each belongs to the call that returned it: no thread-local state, so a host may read it on any thread.
 */
#ifndef COHORT_ERROR_H
#define COHORT_ERROR_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Classes of errors. When memory runs out, the call that needed it, or that waited for work which needed it, returns an
 * error that says so, and all handles stay usable. The library cannot handle failed allocations inside libgomp and
 * oneDNN.
 */
enum {
  COHORT_SUCCESS = 0,                /* the class of NULL */
  COHORT_ERROR_INVALID_ARGUMENT = 1, /* a wrong handle, count, range or constant; options that contradict */
  COHORT_ERROR_NAME = 2,             /* an unknown, missing, duplicate or ambiguous name */
  COHORT_ERROR_SHAPE = 3,            /* shapes that differ or cannot be inferred */
  COHORT_ERROR_DTYPE = 4,            /* dtypes that differ or cannot be inferred */
  COHORT_ERROR_STATE = 5,            /* a valid call at the wrong time */
  COHORT_ERROR_UNSUPPORTED = 6,      /* a feature that this build or device does not offer */
  COHORT_ERROR_DEVICE = 7,           /* no such device or backend; arrays on the wrong device */
  COHORT_ERROR_FORMAT = 8,           /* contents of a file, of JSON or of a buffer */
  COHORT_ERROR_IO = 9,               /* the file system */
  COHORT_ERROR_OUT_OF_MEMORY = 10,   /* no memory left on the host or a device */
  COHORT_ERROR_EXECUTION = 11,       /* work on a device failed; returned by a call that waits for it */
  COHORT_ERROR_INTERNAL = 12         /* a defect in this library */
};
typedef int32_t cohort_error_class;

/**
 * The class of an error.
 *
 * @param error  @nullable NULL: COHORT_SUCCESS.
 */
COHORT_API cohort_error_class cohort_error_code(const cohort_error *error);

/**
 * One line for a person, which says what is wrong, where, what was expected and what was found. It is UTF-8, whatever
 * it quotes: other bytes and control characters are written as \xNN, in the subject too. The middle of a quotation of
 * more than 4 KiB is left out, but not of the subject. Lives until the error is freed.
 *
 * @param error  @nullable NULL: "".
 */
COHORT_API const char *cohort_error_message(const cohort_error *error);

/**
 * The operator, node, argument, array or file concerned; "" if there is none. Lives as the message does.
 *
 * @param error  @nullable NULL: "".
 */
COHORT_API const char *cohort_error_subject(const cohort_error *error);

/** The name of a class in lower case, such as "shape"; "unknown" for other values. Lives as long as the process. */
COHORT_API const char *cohort_error_code_text(cohort_error_class code);

/** Frees an error. NULL, and an error that is freed already, do nothing. */
COHORT_API void cohort_error_free(cohort_error *error);

COHORT_END_DECLS

#endif /* COHORT_ERROR_H */
