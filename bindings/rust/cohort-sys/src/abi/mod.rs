// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
//! A module for each header of the C interface.

mod arrays;
pub use arrays::*;
mod calibration;
pub use calibration::*;
mod checkpoint;
pub use checkpoint::*;
mod context;
pub use context::*;
mod custom;
pub use custom::*;
mod descs;
pub use descs::*;
mod error;
pub use error::*;
mod executor;
pub use executor::*;
mod group;
pub use group::*;
mod initializer;
pub use initializer::*;
mod log;
pub use log::*;
mod manager;
pub use manager::*;
mod metric;
pub use metric::*;
mod monitor;
pub use monitor::*;
mod ndarray;
pub use ndarray::*;
mod operator;
pub use operator::*;
mod optimizer;
pub use optimizer::*;
mod symbol;
pub use symbol::*;
mod tape;
pub use tape::*;
mod trace;
pub use trace::*;
mod types;
pub use types::*;
mod version;
pub use version::*;
