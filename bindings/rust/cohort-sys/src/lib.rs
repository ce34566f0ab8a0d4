// SPDX-License-Identifier: Apache-2.0
//! The C interface of libcohort, unchanged: see the crate `cohort` for an idiomatic one.
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod abi;
pub use abi::*;
