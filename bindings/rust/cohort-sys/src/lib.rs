// SPDX-License-Identifier: Apache-2.0
//! The C interface of libcohort as it is: see the crate `cohort` for one in Rust's own manner.
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod abi;
pub use abi::*;
