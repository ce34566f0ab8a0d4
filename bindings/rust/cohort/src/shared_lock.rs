// SPDX-License-Identifier: Apache-2.0
//! One lock for all objects that share memory with one another, or that a monitor watches: the library counts them as one object,
//! which one thread at a time may use. Other objects do not take it.
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{current, ThreadId};

/// The thread that holds the lock, and how often: callbacks run inside a call that holds it already.
static HOLDER: Mutex<(Option<ThreadId>, usize)> = Mutex::new((None, 0));
static ENDED: Condvar = Condvar::new();

fn holder() -> MutexGuard<'static, (Option<ThreadId>, usize)> {
    HOLDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct SharedLock;

impl SharedLock {
    fn take() -> SharedLock {
        let (me, mut held) = (current().id(), holder());
        while held.0.is_some() && held.0 != Some(me) {
            held = ENDED.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *held = (Some(me), held.1 + 1);
        SharedLock
    }
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        let mut held = holder();
        held.1 -= 1;
        if held.1 == 0 {
            held.0 = None;
            ENDED.notify_one();
        }
    }
}

/// A handle during a call, locked if it is shared.
pub(crate) struct LockedHandle<T> {
    raw: *mut T,
    _lock: Option<SharedLock>,
}

impl<T> LockedHandle<T> {
    pub(crate) fn new(raw: *mut T, tied: bool) -> LockedHandle<T> {
        LockedHandle { raw, _lock: if tied { Some(SharedLock::take()) } else { None } }
    }
}

impl<T> Deref for LockedHandle<T> {
    type Target = *mut T;

    fn deref(&self) -> &*mut T {
        &self.raw
    }
}
