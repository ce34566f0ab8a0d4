/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file log.h
 * Where the library's messages go. It prints nothing itself but, as long as no callback is set, warnings and errors to
 * stderr.
 */
#ifndef COHORT_LOG_H
#define COHORT_LOG_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Levels of messages. */
enum {
  COHORT_LOG_DEBUG = 0,
  COHORT_LOG_INFO = 1,
  COHORT_LOG_WARNING = 2,
  COHORT_LOG_ERROR = 3,
  COHORT_LOG_OFF = 4 /* as the lowest level: no messages */
};

/**
 * Receives one message, whole, without a newline.
 *
 * @param level      COHORT_LOG_DEBUG to COHORT_LOG_ERROR, higher is graver.
 * @param message    Lives until the callback returns.
 * @param user_data  As given with the callback.
 *
 * Runs on a thread that is inside a call of the library, on one thread at a time. It must not call the library.
 */
typedef void (*cohort_log_fn)(int32_t level, const char *message, void *user_data);

/**
 * Sends the messages of the whole library to a callback.
 *
 * @param lowest     The lowest level wanted; COHORT_LOG_OFF for none.
 * @param callback   NULL: warnings and errors go to stderr, if `lowest` lets them pass; the state at the start, with
 *                   COHORT_LOG_WARNING.
 * @param user_data  Passed to the callback; kept until another callback is set.
 *
 * Any thread. When it returns, the previous callback is not running and will not be called again.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_set_log(int32_t lowest, cohort_log_fn callback, void *user_data);

COHORT_END_DECLS

#endif /* COHORT_LOG_H */
