// SPDX-License-Identifier: Apache-2.0
//! In which types a network computes, the ranges that bytes need, and how gradients are summed.
use crate::calibration::Calibration;
use crate::error::{check, Result, Texts};
use crate::ndarray::Dtype;
use cohort_sys as sys;

/// In which types a network computes. The default is float32 for all.
///
/// ```
/// # use cohort::{Dtype, Precision};
/// let precision = Precision { compute: Dtype::Bfloat16, float32_names: vec!["fc2".into()], ..Precision::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precision {
    /// `Bfloat16`: products of matrices, and what follows them, of float32 arrays. `Float16` on GPUs. `Int8`: inference in bytes, by
    /// a calibration.
    pub compute: Dtype,
    /// Nodes and operators that stay in the network's types.
    pub float32_names: Vec<String>,
    /// Those that compute so though their operator would not.
    pub narrow_names: Vec<String>,
    /// On GPUs, float32 products may round their factors.
    pub tf32: bool,
    /// A backward pass works in the memory of the forward pass: less of it, and only one after each forward pass.
    pub backward_once: bool,
    /// A backward pass makes again what is cheap of the forward pass, in the place of keeping it: less memory, somewhat more time, the same
    /// numbers.
    pub recompute: bool,
    /// The ranges of the network's values, for `Int8`; of executors, groups and predictors.
    pub calibration: Option<Calibration>,
}

impl Default for Precision {
    fn default() -> Precision {
        Precision {
            compute: Dtype::Float32,
            float32_names: Vec::new(),
            narrow_names: Vec::new(),
            tf32: false,
            backward_once: false,
            recompute: false,
            calibration: None,
        }
    }
}

impl Precision {
    /// Inference in bytes, by the ranges that a calibration has found.
    pub fn int8(calibration: &Calibration) -> Precision {
        Precision { compute: Dtype::Int8, calibration: Some(calibration.clone()), ..Precision::default() }
    }

    /// Both lists of names, to be pointed to.
    pub(crate) fn names(&self) -> Result<(Texts, Texts)> {
        Ok((Texts::new(&self.float32_names, "float32_names")?, Texts::new(&self.narrow_names, "narrow_names")?))
    }
}

/// Writes a precision, with its names, to the options of a group, a manager or an executor.
macro_rules! set_precision {
    ($options:expr, $precision:expr, $names:expr) => {
        $options.compute_dtype = $precision.compute.code();
        $options.float32_names = $names.0.as_ptr();
        $options.num_float32_names = $names.0.len();
        $options.narrow_names = $names.1.as_ptr();
        $options.num_narrow_names = $names.1.len();
        $options.tf32 = $precision.tf32.into();
        $options.backward_once = $precision.backward_once.into();
        $options.recompute = $precision.recompute.into();
    };
}
pub(crate) use set_precision;

/// A factor on the loss, for float16: where a gradient is infinite or no number the update is skipped and the factor halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    /// The factor to begin with, such as 65536.
    pub scale: f64,
    /// Updates after which it doubles; 0: 2000.
    pub window: i32,
}

/// Where the factor on a loss has come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScaleState {
    /// What the next backward pass begins with; 1: there is none.
    pub scale: f64,
    /// The updates made since it changed.
    pub num_good: i32,
    /// The updates that were skipped because a gradient was infinite or no number.
    pub num_skipped: u64,
}

impl LossScaleState {
    pub(crate) fn out(call: impl FnOnce(*mut f64, *mut i32, *mut u64) -> *mut sys::cohort_error) -> Result<Self> {
        let mut found = LossScaleState { scale: 0.0, num_good: 0, num_skipped: 0 };
        check(call(&mut found.scale, &mut found.num_good, &mut found.num_skipped))?;
        Ok(found)
    }
}

/// What groups and managers do with gradients beside.
pub(crate) struct Gradients {
    pub(crate) loss_scale: Option<LossScale>,
    pub(crate) sum: Dtype,
}

impl Default for Gradients {
    fn default() -> Gradients {
        Gradients { loss_scale: None, sum: Dtype::Float32 }
    }
}

/// The methods of a builder that set its `gradients`.
macro_rules! gradient_methods {
    () => {
        /// A factor on the loss.
        pub fn loss_scale(mut self, scale: LossScale) -> Self {
            self.gradients.loss_scale = Some(scale);
            self
        }

        /// In which type the devices' gradients are summed: float32, or bfloat16, which is less to move.
        pub fn gradient_sum(mut self, dtype: Dtype) -> Self {
            self.gradients.sum = dtype;
            self
        }
    };
}
pub(crate) use gradient_methods;

/// Writes them to the options of a group or a manager.
macro_rules! set_gradients {
    ($options:expr, $gradients:expr) => {
        $options.gradient_sum_dtype = $gradients.sum.code();
        if let Some(LossScale { scale, window }) = $gradients.loss_scale {
            $options.loss_scale = scale;
            $options.loss_scale_window = window;
        }
    };
}
pub(crate) use set_gradients;
