// SPDX-License-Identifier: Apache-2.0
//! Objects that share memory with one another, or that a monitor looks into, count as one for the library, which one thread uses at a
//! time. They take turns; all others know of no lock.
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{current, ThreadId};

/// Who has the turn, and how often: what runs inside a callback has it already.
static HOLDER: Mutex<(Option<ThreadId>, usize)> = Mutex::new((None, 0));
static ENDED: Condvar = Condvar::new();

fn holder() -> MutexGuard<'static, (Option<ThreadId>, usize)> {
    HOLDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Turn;

impl Turn {
    fn take() -> Turn {
        let (me, mut held) = (current().id(), holder());
        while held.0.is_some() && held.0 != Some(me) {
            held = ENDED.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *held = (Some(me), held.1 + 1);
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut held = holder();
        held.1 -= 1;
        if held.1 == 0 {
            held.0 = None;
            ENDED.notify_one();
        }
    }
}

/// A handle for the time of a call.
pub(crate) struct At<T> {
    raw: *mut T,
    _turn: Option<Turn>,
}

impl<T> At<T> {
    pub(crate) fn new(raw: *mut T, tied: bool) -> At<T> {
        At { raw, _turn: if tied { Some(Turn::take()) } else { None } }
    }
}

impl<T> Deref for At<T> {
    type Target = *mut T;

    fn deref(&self) -> &*mut T {
        &self.raw
    }
}
