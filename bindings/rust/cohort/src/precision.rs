// SPDX-License-Identifier: Apache-2.0
//! The types in which a network computes, the ranges for int8, and how gradients are summed.
use crate::calibration::Calibration;
use crate::error::{check, Result, Texts};
use crate::ndarray::Dtype;
use cohort_sys as sys;

/// The types in which a network computes. The default is float32 everywhere.
///
/// ```
/// # use cohort::{Dtype, Precision};
/// let precision = Precision { compute: Dtype::Bfloat16, float32_names: vec!["fc2".into()], ..Precision::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precision {
    /// `Bfloat16`: for matrix products of float32 arrays, and operators that follow them. `Float16` on GPUs. `Int8`: inference in
    /// int8, with a calibration.
    pub compute: Dtype,
    /// Nodes and operators that stay in the network's types.
    pub float32_names: Vec<String>,
    /// Nodes and operators that compute in the narrower type although by default they would not.
    pub narrow_names: Vec<String>,
    /// On GPUs, float32 products may round their factors.
    pub tf32: bool,
    /// A backward pass reuses the memory of the forward pass: less memory, and only one backward after each forward.
    pub backward_once: bool,
    /// A backward pass recomputes cheap results of the forward pass instead of keeping them: less memory, a little more time, the
    /// same numbers.
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
    /// Inference in int8, with the ranges of a calibration.
    pub fn int8(calibration: &Calibration) -> Precision {
        Precision { compute: Dtype::Int8, calibration: Some(calibration.clone()), ..Precision::default() }
    }

    /// Both lists of names, for options to point to.
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

/// A factor on the loss, for float16: if a gradient is infinite or NaN the update is skipped and the factor halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    /// The initial factor, such as 65536.
    pub scale: f64,
    /// The number of good updates after which it doubles; 0: 2000.
    pub window: i32,
}

/// The state of a loss scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScaleState {
    /// The factor of the next backward pass; 1: none.
    pub scale: f64,
    /// The number of updates since it changed.
    pub num_good: i32,
    /// The number of updates skipped because a gradient was infinite or NaN.
    pub num_skipped: u64,
}

impl LossScaleState {
    pub(crate) fn out(call: impl FnOnce(*mut f64, *mut i32, *mut u64) -> *mut sys::cohort_error) -> Result<Self> {
        let mut found = LossScaleState { scale: 0.0, num_good: 0, num_skipped: 0 };
        check(call(&mut found.scale, &mut found.num_good, &mut found.num_skipped))?;
        Ok(found)
    }
}

/// Further gradient settings of groups and managers.
#[derive(Debug)]
pub(crate) struct Gradients {
    pub(crate) loss_scale: Option<LossScale>,
    pub(crate) sum: Dtype,
    pub(crate) keep_device_aux: bool,
}

impl Default for Gradients {
    fn default() -> Gradients {
        Gradients { loss_scale: None, sum: Dtype::Float32, keep_device_aux: false }
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

        /// The type in which the devices' gradients are summed: float32, or bfloat16, which moves less data.
        pub fn gradient_sum(mut self, dtype: Dtype) -> Self {
            self.gradients.sum = dtype;
            self
        }

        /// The optimizer saves the moving statistics of each device, which `resume` sets.
        pub fn keep_device_aux(mut self, keep: bool) -> Self {
            self.gradients.keep_device_aux = keep;
            self
        }
    };
}
pub(crate) use gradient_methods;

/// Writes them to the options of a group or a manager.
macro_rules! set_gradients {
    ($options:expr, $gradients:expr) => {
        $options.gradient_sum_dtype = $gradients.sum.code();
        $options.keep_device_aux = $gradients.keep_device_aux.into();
        if let Some(LossScale { scale, window }) = $gradients.loss_scale {
            $options.loss_scale = scale;
            $options.loss_scale_window = window;
        }
    };
}
pub(crate) use set_gradients;
