// SPDX-License-Identifier: Apache-2.0
//! In which types a network computes.
use crate::error::{Result, Texts};
use crate::ndarray::Dtype;

/// In which types a network computes. The default is float32 for all.
///
/// ```
/// # use cohort::{Dtype, Precision};
/// let precision = Precision { compute: Dtype::Bfloat16, float32_names: vec!["fc2".into()], ..Precision::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precision {
    /// `Bfloat16`: products of matrices, and what follows them, of float32 arrays. `Float16` on GPUs.
    pub compute: Dtype,
    /// Nodes and operators that stay in the network's types.
    pub float32_names: Vec<String>,
    /// Those that compute so though their operator would not.
    pub narrow_names: Vec<String>,
    /// On GPUs, float32 products may round their factors.
    pub tf32: bool,
    /// A backward pass works in the memory of the forward pass: less of it, and only one after each forward pass.
    pub backward_once: bool,
}

impl Default for Precision {
    fn default() -> Precision {
        Precision {
            compute: Dtype::Float32,
            float32_names: Vec::new(),
            narrow_names: Vec::new(),
            tf32: false,
            backward_once: false,
        }
    }
}

impl Precision {
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
