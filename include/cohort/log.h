/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file log.h
 * Where the library's messages go. While there is no receiver, the library prints warnings and errors to stderr;
 * otherwise it prints nothing. Each user of the library in a process makes a receiver of its own. All receivers get
 * every message, except messages of groups and managers that have a `log` callback of their own.
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
 * Runs on a thread that is inside a call of the library, on one thread at a time: messages of other threads are queued
 * for the thread that is in the callback; the other threads go on at once. It must not call the library, except to free
 * its own receiver.
 */
typedef void (*cohort_log_fn)(cohort_log_level level, const char *message, void *user_data);

/**
 * Says that a receiver has been freed and will not be called any more, so that its user_data may be freed.
 *
 * Called once, at the end of a call of the library, on the thread that made the call. It must not call the library.
 */
typedef void (*cohort_log_end_fn)(void *user_data);

/**
 * Makes a receiver of messages.
 *
 * @param lowest     The lowest level wanted; COHORT_LOG_OFF for none.
 * @param callback   Called with each message.
 * @param ended      @nullable Called when the callback will not be called again: in cohort_log_free() or, if the
 *                   callback is running then, after it. Not called if this call fails. NULL: nothing is called.
 * @param user_data  Passed to both.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_log_create(cohort_log_level lowest, cohort_log_fn callback,
                                                             cohort_log_end_fn ended, void *user_data,
                                                             cohort_log **out_log);

/**
 * Frees a receiver; NULL does nothing. No delivery of a message to it starts after that. Does not wait for a thread
 * that is in the callback, so a finaliser may call it.
 */
COHORT_API void cohort_log_free(cohort_log *log);

/**
 * Sets the one receiver without a handle, or the level of messages that go to stderr. It is meant for programs. A
 * library that a program uses, or a language's binding, makes a receiver of its own instead, so as not to replace the
 * program's.
 *
 * @param lowest     The lowest level wanted; COHORT_LOG_OFF for none.
 * @param callback   @nullable NULL: there is none. As long as there is no other receiver either, warnings and errors of
 *                   at least level `lowest` go to stderr. At the start of a process it is NULL, with
 *                   COHORT_LOG_WARNING.
 * @param user_data  Passed to the callback; kept until another callback is set.
 *
 * Any thread may call it. When it returns, the previous callback is not running on another thread and will not be
 * called again.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_set_log(cohort_log_level lowest, cohort_log_fn callback,
                                                          void *user_data);

COHORT_END_DECLS

#endif /* COHORT_LOG_H */
