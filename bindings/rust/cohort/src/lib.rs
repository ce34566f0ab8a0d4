// SPDX-License-Identifier: Apache-2.0
//! Data-parallel training and inference on libcohort.
//!
//! Load and predict:
//!
//! ```no_run
//! use cohort::{Context, NDArray, Predictor};
//!
//! # fn main() -> cohort::Result<()> {
//! let mut predictor = Predictor::load("model/digits", 6, &Context::cpu(0), &[("data", &[1, 1, 8, 8])])?;
//! let image = NDArray::from_slice(&[0.0f32; 64], &[1, 1, 8, 8])?;
//! let scores: Vec<f32> = predictor.predict(&[("data", &image)])?[0].to_vec()?;
//! # Ok(())
//! # }
//! ```
//!
//! Train over two devices:
//!
//! ```
//! use cohort::{Context, Desc, Group, NDArray, Op, Optimizer, Symbol, Update};
//!
//! # fn main() -> cohort::Result<()> {
//! let fc = Op::new("FullyConnected").attr("num_hidden", 1).input(&Symbol::variable("x")?).name("fc").build()?;
//! let net = Op::new("LinearRegressionOutput").input(&fc).name("fit").build()?;
//! let mut group = Group::builder(&net)
//!     .contexts(&[Context::cpu(0), Context::cpu(1)])
//!     .data(Desc::new("x", &[8, 1]))
//!     .label(Desc::new("fit_label", &[8, 1]))
//!     .build()?;
//! let sgd = Optimizer::new("sgd", &[("learning_rate", "0.01")])?;
//! let x = NDArray::from_slice(&[-4f32, -3., -2., -1., 1., 2., 3., 4.], &[8, 1])?;
//! let y = NDArray::from_slice(&[-9f32, -7., -5., -3., 1., 3., 5., 7.], &[8, 1])?;
//! for _ in 0..200 {
//!     group.forward(&[&x], &[&y], true)?;
//!     group.backward(&[])?;
//!     group.update(&sgd, Update::OnStore)?;
//! }
//! let (params, _) = group.params()?;
//! assert!((params["fc_weight"].to_vec::<f32>()?[0] - 2.0).abs() < 0.01);
//! # Ok(())
//! # }
//! ```
//!
//! # Memory
//! Every object is freed when it is dropped; dropping a group or an executor waits for its work. The arrays of a group or an
//! executor are live, and may outlive it. [`live_handles`] returns the number of objects that are alive.
//!
//! # Threads
//! Everything is [`Send`]: any thread may use an object, one at a time, which `&mut self` ensures. Different objects compute in
//! parallel, except those that share memory or that a [`Monitor`] watches, which are serialised. Executors of a group borrow it,
//! and groups of a manager borrow the manager. Closures run on the thread that made the call; their errors and panics are
//! returned or resumed after that call.
#![warn(missing_docs, missing_debug_implementations)]

mod arrays;
mod calibration;
mod custom;
mod debug;
mod error;
mod executor;
mod executor_builder;
mod group;
mod group_builder;
mod log;
mod manager;
mod model;
mod monitor;
mod ndarray;
mod operator;
mod precision;
mod shared_lock;
mod symbol;
mod tape;
mod trace;
mod training;

pub use calibration::{Calibration, CalibrationMethod};
pub use custom::{register, Attrs, CustomNode, CustomOp, Registration, Shapes};
pub use error::{Error, ErrorKind, Result};
pub use executor::{Executor, GradReq};
pub use executor_builder::ExecutorBuilder;
pub use group::{split_slices, Group, GroupExecutor, Update};
pub use group_builder::{Desc, GroupBuilder, Rounding};
pub use log::{Level, LogReceiver};
pub use manager::{Manager, ManagerBuilder, ManagerGroup};
pub use model::{load_checkpoint, map_checkpoint, save_checkpoint, Params, Predictor, PredictorBuilder};
pub use monitor::{Entry, Monitor, MonitorBuilder};
pub use ndarray::{
    invoke, load, load_bytes, num_gpus, save, save_bytes, save_npy, save_npz, Context, DeviceMemory, Dtype, Element,
    MemoryInfo, NDArray,
};
pub use operator::{operator, operators, Invoke, OperatorAttr, OperatorInfo, OperatorPrecision};
pub use precision::{LossScale, LossScaleState, Precision};
pub use symbol::{Op, Symbol};
pub use tape::Tape;
pub use trace::{Span, SpanKind, Total, TotalsBy, Trace, TraceOptions};
pub use training::{Initializer, Metric, Optimizer};

use cohort_sys as sys;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The number of library objects that are alive in this process.
pub fn live_handles() -> usize {
    // SAFETY: the function has no arguments.
    unsafe { sys::cohort_live_handles() }
}

/// Waits for all work queued so far on all devices.
pub fn wait_all() -> Result<()> {
    // SAFETY: the function has no arguments.
    error::check(unsafe { sys::cohort_wait_all() })
}

/// The version of the loaded library.
pub fn version() -> String {
    // SAFETY: a text that lives as long as the process.
    unsafe { error::text(sys::cohort_version()) }
}

/// Whether the library has a feature, such as "cuda".
pub fn has_feature(name: &str) -> Result<bool> {
    let name = error::c_text(name, "feature")?;
    // SAFETY: a text that ends with a zero byte.
    Ok(unsafe { sys::cohort_has_feature(name.as_ptr()) } != 0)
}

/// An object that owns a handle of the library and frees it once.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $free:ident) => {
        $(#[$doc])*
        pub struct $name {
            raw: std::ptr::NonNull<cohort_sys::$raw>,
        }

        impl $name {
            /// Takes over a handle that a call has returned.
            #[allow(dead_code)]
            pub(crate) fn adopt(raw: *mut cohort_sys::$raw) -> $name {
                $name { raw: std::ptr::NonNull::new(raw).expect("the library gave a handle") }
            }

            #[allow(dead_code)]
            pub(crate) fn raw(&self) -> *mut cohort_sys::$raw {
                self.raw.as_ptr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: a handle of our own, freed once.
                unsafe { cohort_sys::$free(self.raw()) }
            }
        }

        // SAFETY: any thread may use a handle, one at a time.
        unsafe impl Send for $name {}
    };
}
pub(crate) use handle;
