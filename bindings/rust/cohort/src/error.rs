// SPDX-License-Identifier: Apache-2.0
//! Errors, and panics of callbacks on their way through the library.
use cohort_sys as sys;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

/// Classes of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A wrong count, range or constant; contradictory options.
    InvalidArgument,
    /// An unknown, missing, duplicate or ambiguous name.
    Name,
    /// Shapes that differ or cannot be inferred.
    Shape,
    /// Element types that differ or cannot be inferred.
    Dtype,
    /// A valid call at the wrong time.
    State,
    /// A feature that this build or device does not have.
    Unsupported,
    /// No such device or backend; arrays on the wrong device.
    Device,
    /// Invalid contents of a file, of JSON or of a buffer.
    Format,
    /// A failed operation of the file system.
    Io,
    /// No memory left on the host or a device.
    OutOfMemory,
    /// Failed work on a device.
    Execution,
    /// A defect in the library.
    Internal,
}

/// An error of the library: a message of one line, and its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    subject: String,
}

/// The result of calls.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn invalid(message: impl Into<String>, subject: impl Into<String>) -> Error {
        Error { kind: ErrorKind::InvalidArgument, message: message.into(), subject: subject.into() }
    }

    pub(crate) fn name(message: impl Into<String>, subject: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Name, message: message.into(), subject: subject.into() }
    }

    /// An error of the caller's own, for a callback to return: the call that the callback runs in returns it.
    pub fn new(kind: ErrorKind, message: impl Into<String>, subject: impl Into<String>) -> Error {
        Error { kind, message: message.into(), subject: subject.into() }
    }

    /// The class.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operator, node, argument, array or file concerned; empty if there is none.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The failure of a callback, returned or raised again after the call that it ran in.
enum Ended {
    Panic(Box<dyn Any + Send>),
    Error(Error),
}

thread_local! {
    // Older versions of clippy mistake the macro's constant for ours.
    #[allow(clippy::declare_interior_mutable_const)]
    static ENDED: RefCell<Option<Ended>> = const { RefCell::new(None) };
}

/// Runs the body of a callback: 0, or 1 for a failure, which is kept. After that no callback runs in the same call.
pub(crate) fn guarded(run: impl FnOnce() -> Result<()>) -> i32 {
    if ENDED.with(|kept| kept.borrow().is_some()) {
        return 1;
    }
    let ended = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => Ended::Error(error),
        Err(payload) => Ended::Panic(payload),
    };
    ENDED.with(|kept| *kept.borrow_mut() = Some(ended));
    1
}

/// Whether the loaded library has been found recent enough.
static IS_RECENT: AtomicBool = AtomicBool::new(false);

/// An error if a library of this version number is older than these declarations.
fn recent(number: i32, version: &str) -> Result<()> {
    let needed = version.split('.').fold(0, |sum, part| sum * 100 + part.parse::<i32>().unwrap_or(0));
    if number >= needed {
        return Ok(());
    }
    let found = format!("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
    let message = format!("libcohort {} is loaded; this crate needs {} or later", found, version);
    Err(Error::new(ErrorKind::Unsupported, message, "libcohort"))
}

/// Turns the error returned by a call into a result. A panic of a callback in the call is resumed here.
pub(crate) fn check(error: *mut sys::cohort_error) -> Result<()> {
    let mut found = if error.is_null() { Ok(()) } else { Err(read(error)) };
    if !IS_RECENT.load(Ordering::Relaxed) {
        // SAFETY: the function has no arguments.
        found = found.and(recent(unsafe { sys::cohort_version_number() }, sys::COHORT_VERSION));
        IS_RECENT.store(found.is_ok(), Ordering::Relaxed);
    }
    match ENDED.with(|kept| kept.borrow_mut().take()) {
        Some(Ended::Panic(payload)) => resume_unwind(payload),
        Some(Ended::Error(error)) => Err(error),
        None => found,
    }
}

fn read(error: *mut sys::cohort_error) -> Error {
    // SAFETY: an error that a call has just returned, freed once.
    unsafe {
        let kind = match sys::cohort_error_code(error) {
            sys::COHORT_ERROR_INVALID_ARGUMENT => ErrorKind::InvalidArgument,
            sys::COHORT_ERROR_NAME => ErrorKind::Name,
            sys::COHORT_ERROR_SHAPE => ErrorKind::Shape,
            sys::COHORT_ERROR_DTYPE => ErrorKind::Dtype,
            sys::COHORT_ERROR_STATE => ErrorKind::State,
            sys::COHORT_ERROR_UNSUPPORTED => ErrorKind::Unsupported,
            sys::COHORT_ERROR_DEVICE => ErrorKind::Device,
            sys::COHORT_ERROR_FORMAT => ErrorKind::Format,
            sys::COHORT_ERROR_IO => ErrorKind::Io,
            sys::COHORT_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
            sys::COHORT_ERROR_EXECUTION => ErrorKind::Execution,
            _ => ErrorKind::Internal,
        };
        let made = Error {
            kind,
            message: text(sys::cohort_error_message(error)),
            subject: text(sys::cohort_error_subject(error)),
        };
        sys::cohort_error_free(error);
        made
    }
}

/// A copy of the library's text. NULL is empty.
///
/// # Safety
/// A text that ends with a zero byte, or NULL.
pub(crate) unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    CStr::from_ptr(from).to_string_lossy().into_owned()
}

pub(crate) fn c_text(from: &str, what: &str) -> Result<CString> {
    CString::new(from).map_err(|_| Error::invalid(format!("{}: found a zero byte in it", what), what))
}

/// A list of text for the library.
pub(crate) struct Texts {
    _kept: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    pub(crate) fn new<S: AsRef<str>>(from: &[S], what: &str) -> Result<Texts> {
        let kept: Vec<CString> = from.iter().map(|one| c_text(one.as_ref(), what)).collect::<Result<_>>()?;
        let pointers = kept.iter().map(|one| one.as_ptr()).collect();
        Ok(Texts { _kept: kept, pointers })
    }

    /// Never NULL: a list without entries is empty, not missing.
    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.pointers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_too_old_is_refused() {
        assert!(recent(100, "0.1.0").is_ok() && recent(101, "0.1.0").is_ok() && recent(10000, "0.1.0").is_ok());
        let error = recent(102, "0.2.0").unwrap_err();
        assert_eq!(error.to_string(), "libcohort 0.1.2 is loaded; this crate needs 0.2.0 or later");
    }
}
