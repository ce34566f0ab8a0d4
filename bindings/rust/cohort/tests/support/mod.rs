// SPDX-License-Identifier: Apache-2.0
//! Shared by the tests. At the end of each test no object of the library may be left.
#![allow(dead_code)]
use cohort::{live_handles, wait_all, Context, Desc, ErrorKind, Group, GroupBuilder, NDArray, Op, Result, Symbol};
use std::panic::{catch_unwind, resume_unwind, UnwindSafe};
use std::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs one test at a time, and checks that it left no objects.
pub fn case(body: impl FnOnce() + UnwindSafe) {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = live_handles();
    let ended = catch_unwind(body);
    wait_all().unwrap();
    let after = live_handles();
    drop(guard);
    if let Err(payload) = ended {
        resume_unwind(payload);
    }
    assert_eq!(after, before, "handles are left");
}

/// Checks that the call fails with an error of this class, whose single line contains these words.
pub fn fails<T>(found: Result<T>, kind: ErrorKind, words: &str) {
    match found {
        Ok(_) => panic!("expected an error with '{}'", words),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{}", error);
            assert!(error.to_string().contains(words), "expected '{}' in: {}", words, error);
            assert!(!error.to_string().contains('\n'));
        }
    }
}

pub fn floats(values: &[f32], shape: &[usize]) -> NDArray {
    NDArray::from_slice(values, shape).unwrap()
}

pub fn near(array: &NDArray, expected: &[f32]) {
    let found = array.to_vec::<f32>().unwrap();
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(f, e)| (f - e).abs() <= 1e-5 * (1.0 + e.abs()));
    assert!(same, "expected {:?}, found {:?}", expected, found);
}

/// out = data * w', without a loss: its gradient is the head gradient.
pub fn linear() -> Symbol {
    let data = Symbol::variable("data").unwrap();
    Op::new("FullyConnected").attr("num_hidden", 1).attr("no_bias", "True").input(&data).name("fc").build().unwrap()
}

/// data (B, 4) -> fc (3) -> softmax
pub fn mlp() -> Symbol {
    let data = Symbol::variable("data").unwrap();
    let fc = Op::new("FullyConnected").attr("num_hidden", 3).input(&data).name("fc").build().unwrap();
    Op::new("SoftmaxOutput").input(&fc).name("softmax").build().unwrap()
}

pub fn linear_group(symbol: &Symbol) -> GroupBuilder<'_> {
    Group::builder(symbol).contexts(&[Context::cpu(0), Context::cpu(1)]).data(Desc::new("data", &[4, 2]))
}
