// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Levels of messages.
pub type cohort_log_level = i32;
pub const COHORT_LOG_DEBUG: cohort_log_level = 0;
pub const COHORT_LOG_INFO: cohort_log_level = 1;
pub const COHORT_LOG_WARNING: cohort_log_level = 2;
pub const COHORT_LOG_ERROR: cohort_log_level = 3;
/// as the lowest level: no messages
pub const COHORT_LOG_OFF: cohort_log_level = 4;

/// Says that a receiver has been freed and will not be called any more, so that its user_data may be freed.
///
/// Called once, at the end of a call of the library, on the thread that made the call. It must not call the library.
pub type cohort_log_end_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
    ),
>;

/// Receives one message, whole, without a newline.
///
///
/// Runs on a thread that is inside a call of the library, on one thread at a time: messages of other threads are queued
/// for the thread that is in the callback; the other threads go on at once. It must not call the library, except to free
/// its own receiver.
pub type cohort_log_fn = Option<
    unsafe extern "C" fn(
        level: cohort_log_level,
        message: *const c_char,
        user_data: *mut c_void,
    ),
>;

extern "C" {
    /// Makes a receiver of messages.
    ///
    /// - `lowest`: The lowest level wanted; COHORT_LOG_OFF for none.
    /// - `callback`: Called with each message.
    /// - `ended`: may be NULL. Called when the callback will not be called again: in cohort_log_free() or, if the callback is running then, after it. Not called if this call fails. NULL: nothing is called.
    /// - `user_data`: may be NULL. Passed to both.
    pub fn cohort_log_create(
        lowest: cohort_log_level,
        callback: cohort_log_fn,
        ended: cohort_log_end_fn,
        user_data: *mut c_void,
        out_log: *mut *mut cohort_log,
    ) -> *mut cohort_error;
    /// Frees a receiver; NULL does nothing. No delivery of a message to it starts after that. Does not wait for a thread
    /// that is in the callback, so a finaliser may call it.
    ///
    /// - `log`: may be NULL.
    pub fn cohort_log_free(
        log: *mut cohort_log,
    );
    /// Sets the one receiver without a handle, or the level of messages that go to stderr. It is meant for programs. A
    /// library that a program uses, or a language's binding, makes a receiver of its own instead, so as not to replace the
    /// program's.
    ///
    ///
    /// Any thread may call it. When it returns, the previous callback is not running on another thread and will not be
    /// called again.
    ///
    /// - `lowest`: The lowest level wanted; COHORT_LOG_OFF for none.
    /// - `callback`: may be NULL. NULL: there is none. As long as there is no other receiver either, warnings and errors of at least level `lowest` go to stderr. At the start of a process it is NULL, with COHORT_LOG_WARNING.
    /// - `user_data`: may be NULL. Passed to the callback; kept until another callback is set.
    pub fn cohort_set_log(
        lowest: cohort_log_level,
        callback: cohort_log_fn,
        user_data: *mut c_void,
    ) -> *mut cohort_error;
}
