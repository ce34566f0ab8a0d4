/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file log.h
 * Where the library's messages go. It prints nothing itself but, as long as nobody receives messages, warnings and
 * errors to stderr. Each user of the library in a process makes a receiver of its own; all get every message, but those
 * of groups and managers that have a `log` of theirs.
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
typedef int32_t cohort_log_level;

/**
 * Receives one message, whole, without a newline.
 *
 * @param level      COHORT_LOG_DEBUG to COHORT_LOG_ERROR, higher is graver.
 * @param message    Lives until the callback returns.
 * @param user_data  As given with the callback.
 *
 * Runs on a thread that is inside a call of the library, on one thread at a time: while one is in the callback, the
 * messages of others are left to it, and those do not wait. It must not call the library but to free its own receiver.
 */
typedef void (*cohort_log_fn)(cohort_log_level level, const char *message, void *user_data);

/**
 * Says that a receiver has been freed and will not be called any more, so that its user_data may go.
 *
 * Called once, at the end of a call of the library, on the thread that made that. It must not call the library.
 */
typedef void (*cohort_log_end_fn)(void *user_data);

/**
 * Makes a receiver of messages.
 *
 * @param lowest     The lowest level wanted; COHORT_LOG_OFF for none.
 * @param callback   Called with each message.
 * @param ended      @nullable Called when the callback will not be called again, in cohort_log_free() or, while the
 *                   callback runs, behind it; not if this call fails. NULL: nothing is.
 * @param user_data  Passed to both.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_log_create(cohort_log_level lowest, cohort_log_fn callback,
                                                             cohort_log_end_fn ended, void *user_data,
                                                             cohort_log **out_log);

/**
 * Frees a receiver; NULL does nothing. No message begins to be delivered to it any more. Does not wait for a thread
 * that is in the callback, so that a finaliser may call it.
 */
COHORT_API void cohort_log_free(cohort_log *log);

/**
 * Sets the one receiver that needs no handle, or where messages go without any. For a program; a library in it, or the
 * binding of a language, makes a receiver of its own, lest they take the program's.
 *
 * @param lowest     The lowest level wanted; COHORT_LOG_OFF for none.
 * @param callback   @nullable NULL: there is none, and as long as there is no other receiver, warnings and errors go to
 *                   stderr if `lowest` lets them pass; the state at the start, with COHORT_LOG_WARNING.
 * @param user_data  Passed to the callback; kept until another callback is set.
 *
 * Any thread. When it returns, the previous callback is not running on another thread and will not be called again.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_set_log(cohort_log_level lowest, cohort_log_fn callback,
                                                          void *user_data);

COHORT_END_DECLS

#endif /* COHORT_LOG_H */
