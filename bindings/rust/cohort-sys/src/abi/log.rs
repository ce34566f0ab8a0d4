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

/// Says that a receiver has been freed and will not be called any more, so that its user_data may go.
///
/// Called once, at the end of a call of the library, on the thread that made that. It must not call the library.
pub type cohort_log_end_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
    ),
>;

/// Receives one message, whole, without a newline.
///
///
/// Runs on a thread that is inside a call of the library, on one thread at a time: while one is in the callback, the
/// messages of others are left to it, and those do not wait. It must not call the library but to free its own receiver.
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
    /// - `ended`: may be NULL. Called when the callback will not be called again, in cohort_log_free() or, while the callback runs, behind it; not if this call fails. NULL: nothing is.
    /// - `user_data`: may be NULL. Passed to both.
    pub fn cohort_log_create(
        lowest: cohort_log_level,
        callback: cohort_log_fn,
        ended: cohort_log_end_fn,
        user_data: *mut c_void,
        out_log: *mut *mut cohort_log,
    ) -> *mut cohort_error;
    /// Frees a receiver; NULL does nothing. No message begins to be delivered to it any more. Does not wait for a thread
    /// that is in the callback, so that a finaliser may call it.
    ///
    /// - `log`: may be NULL.
    pub fn cohort_log_free(
        log: *mut cohort_log,
    );
    /// Sets the one receiver that needs no handle, or where messages go without any. For a program; a library in it, or the
    /// binding of a language, makes a receiver of its own, lest they take the program's.
    ///
    ///
    /// Any thread. When it returns, the previous callback is not running on another thread and will not be called again.
    ///
    /// - `lowest`: The lowest level wanted; COHORT_LOG_OFF for none.
    /// - `callback`: may be NULL. NULL: there is none, and as long as there is no other receiver, warnings and errors go to stderr if `lowest` lets them pass; the state at the start, with COHORT_LOG_WARNING.
    /// - `user_data`: may be NULL. Passed to the callback; kept until another callback is set.
    pub fn cohort_set_log(
        lowest: cohort_log_level,
        callback: cohort_log_fn,
        user_data: *mut c_void,
    ) -> *mut cohort_error;
}
