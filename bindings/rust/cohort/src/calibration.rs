// SPDX-License-Identifier: Apache-2.0
//! The ranges of a network's values, for inference in int8.
use crate::arrays::Arrays;
use crate::error::{c_text, check, Result};
use crate::executor::Executor;
use crate::model::Params;
use cohort_sys as sys;
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard};

/// How a calibration chooses a range from the observed numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrationMethod {
    /// The range from the least to the largest.
    MinMax,
    /// That range cut off so that int8 preserves most of the distribution.
    Entropy,
}

crate::handle!(
    #[doc(hidden)]
    Seen,
    cohort_calibration,
    cohort_calibration_free
);

/// Observes a float32 network on batches and records the range of each of its values. Executors, groups and predictors that are
/// then created with [`Precision::int8`](crate::Precision::int8) compute in int8. A clone is the same calibration; any thread may
/// use it.
///
/// ```
/// use cohort::{Calibration, CalibrationMethod, Context, NDArray, Op, Params, Precision, Predictor, Symbol};
///
/// # fn main() -> cohort::Result<()> {
/// let data = Symbol::variable("data")?;
/// let net = Op::new("FullyConnected").attr("num_hidden", 16).attr("no_bias", "True").input(&data).name("fc").build()?;
/// let params = Params::from([("fc_weight".to_string(), NDArray::from_slice(&[0.5f32; 256], &[16, 16])?)]);
/// let inputs: [(&str, &[usize]); 1] = [("data", &[4, 16])];
/// let mut wide = Predictor::new(&net, &params, &Params::new(), &Context::cpu(0), &inputs)?;
/// let batch = NDArray::from_slice(&[0.25f32; 64], &[4, 16])?;
///
/// let calibration = Calibration::new(CalibrationMethod::MinMax)?;
/// wide.observe(&calibration, &[("data", &batch)])?;
/// let mut narrow = Predictor::builder(&inputs).precision(&Precision::int8(&calibration)).build(&net, &params, &Params::new())?;
/// let scores = narrow.predict(&[("data", &batch)])?[0].to_vec::<f32>()?;
/// assert!((scores[0] - 2.0).abs() < 0.1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Calibration(Arc<Mutex<Seen>>);

impl Calibration {
    /// A calibration without observations.
    pub fn new(method: CalibrationMethod) -> Result<Calibration> {
        let code = match method {
            CalibrationMethod::MinMax => sys::COHORT_CALIBRATION_MIN_MAX,
            CalibrationMethod::Entropy => sys::COHORT_CALIBRATION_ENTROPY,
        };
        let mut made = null_mut();
        check(unsafe { sys::cohort_calibration_create(code, &mut made) })?;
        Ok(Calibration(Arc::new(Mutex::new(Seen::adopt(made)))))
    }

    /// Runs a forward pass on the values in the executor's arguments, and records the range of each value. A batch or some
    /// hundred samples are usually enough.
    pub fn observe(&self, executor: &mut Executor) -> Result<()> {
        let at = executor.at(); // before the lock, in the same order as where a network is bound
        check(unsafe { sys::cohort_calibration_observe(self.lock().raw(), *at) })
    }

    /// The least and the largest number of a value, under its name in monitors, "conv0_output", or that of an argument.
    pub fn range(&self, name: &str) -> Result<(f64, f64)> {
        let (name, mut low, mut high) = (c_text(name, "name")?, 0.0, 0.0);
        check(unsafe { sys::cohort_calibration_range(self.lock().raw(), name.as_ptr(), &mut low, &mut high) })?;
        Ok((low, high))
    }

    /// All ranges, for [`save`](crate::save): by name an array of the least and the largest number.
    pub fn ranges(&self) -> Result<Params> {
        let seen = self.lock();
        Arrays::out(|out| unsafe { sys::cohort_calibration_ranges(seen.raw(), out) })?.map()
    }

    /// A calibration with these ranges, from [`ranges`](Calibration::ranges) of another one; it observes no more.
    pub fn from_ranges(ranges: &Params) -> Result<Calibration> {
        let given = Arrays::of(ranges.iter().map(|(name, range)| (name.as_str(), range)))?;
        let mut made = null_mut();
        check(unsafe { sys::cohort_calibration_create_from(given.raw(), &mut made) })?;
        Ok(Calibration(Arc::new(Mutex::new(Seen::adopt(made)))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl PartialEq for Calibration {
    /// Whether both are the same object.
    fn eq(&self, other: &Calibration) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Calibration {}

impl fmt::Debug for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calibration")
    }
}
