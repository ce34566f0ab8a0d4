// SPDX-License-Identifier: Apache-2.0
//! The library's messages.
use crate::error::{check, guarded, text, Result};
use cohort_sys as sys;
use std::os::raw::{c_char, c_void};
use std::ptr::null_mut;

/// Levels of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details, such as what was created and how.
    Debug,
    /// Progress.
    Info,
    /// Possible mistakes.
    Warning,
    /// Errors.
    Error,
}

type Receiver = Box<dyn FnMut(Level, &str) + Send>;

unsafe extern "C" fn receive(level: i32, message: *const c_char, user_data: *mut c_void) {
    guarded(|| {
        let level = match level {
            sys::COHORT_LOG_DEBUG => Level::Debug,
            sys::COHORT_LOG_INFO => Level::Info,
            sys::COHORT_LOG_WARNING => Level::Warning,
            _ => Level::Error,
        };
        (*(user_data as *mut Receiver))(level, &text(message));
        Ok(())
    });
}

unsafe extern "C" fn ended(user_data: *mut c_void) {
    let function = Box::from_raw(user_data as *mut Receiver);
    guarded(|| {
        drop(function);
        Ok(())
    });
}

crate::handle!(
    /// Receives the library's messages until it is dropped. Without any receiver, warnings go to stderr.
    LogReceiver,
    cohort_log,
    cohort_log_free
);

impl LogReceiver {
    /// Calls a function with each message from a level on. It must not call the library.
    pub fn new(lowest: Level, function: impl FnMut(Level, &str) + Send + 'static) -> Result<LogReceiver> {
        let lowest = match lowest {
            Level::Debug => sys::COHORT_LOG_DEBUG,
            Level::Info => sys::COHORT_LOG_INFO,
            Level::Warning => sys::COHORT_LOG_WARNING,
            Level::Error => sys::COHORT_LOG_ERROR,
        };
        let boxed: Box<Receiver> = Box::new(Box::new(function));
        let (user_data, mut made) = (Box::into_raw(boxed) as *mut c_void, null_mut());
        let error = unsafe { sys::cohort_log_create(lowest, Some(receive), Some(ended), user_data, &mut made) };
        if !error.is_null() {
            // SAFETY: after an error the library never calls it.
            drop(unsafe { Box::from_raw(user_data as *mut Receiver) });
        }
        check(error)?;
        Ok(LogReceiver::adopt(made))
    }
}
