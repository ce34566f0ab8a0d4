// SPDX-License-Identifier: Apache-2.0
//! Optimizers, metrics, initializers.
use crate::arrays::Arrays;
use crate::error::{c_text, check, guarded, text, Result, Texts};
use crate::ndarray::{pointers, NDArray};
use crate::precision::LossScaleState;
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::os::raw::c_void;
use std::ptr::{null, null_mut};

pub(crate) fn settings(from: &[(&str, &str)]) -> Result<(Texts, Texts)> {
    let keys = Texts::new(&from.iter().map(|(key, _)| *key).collect::<Vec<_>>(), "settings")?;
    let values = Texts::new(&from.iter().map(|(_, value)| *value).collect::<Vec<_>>(), "settings")?;
    Ok((keys, values))
}

crate::handle!(
    /// A rule that updates parameters from gradients, with a state per parameter.
    Optimizer,
    cohort_optimizer,
    cohort_optimizer_free
);

impl Optimizer {
    /// By name, with settings as text: `("learning_rate", "0.1")`.
    pub fn new(name: &str, with: &[(&str, &str)]) -> Result<Optimizer> {
        let (name, (keys, values)) = (c_text(name, "optimizer")?, settings(with)?);
        let mut made = null_mut();
        check(unsafe {
            sys::cohort_optimizer_create(name.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len(), &mut made)
        })?;
        Ok(Optimizer::adopt(made))
    }

    /// A setting, or `num_update`.
    pub fn get(&self, key: &str) -> Result<f64> {
        let key = c_text(key, "key")?;
        let mut value = 0.0;
        check(unsafe { sys::cohort_optimizer_get(self.raw(), key.as_ptr(), &mut value) })?;
        Ok(value)
    }

    /// Changes a setting from the next update on.
    pub fn set(&self, key: &str, value: f64) -> Result<()> {
        let key = c_text(key, "key")?;
        check(unsafe { sys::cohort_optimizer_set(self.raw(), key.as_ptr(), value) })
    }

    /// Sets a schedule for the learning rate: "factor", "multifactor", "poly", "cosine".
    pub fn set_lr_schedule(&self, name: &str, with: &[(&str, &str)]) -> Result<()> {
        let (name, (keys, values)) = (c_text(name, "schedule")?, settings(with)?);
        check(unsafe {
            sys::cohort_optimizer_set_lr_schedule(self.raw(), name.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len())
        })
    }

    /// Uses the multipliers of a symbol's variables.
    pub fn use_symbol(&self, symbol: &Symbol) -> Result<()> {
        check(unsafe { sys::cohort_optimizer_use_symbol(self.raw(), symbol.raw()) })
    }

    /// The multipliers of learning rate and weight decay that apply to a parameter.
    pub fn mult(&self, param: &str) -> Result<(f64, f64)> {
        let param = c_text(param, "param")?;
        let (mut lr, mut wd) = (0.0, 0.0);
        check(unsafe { sys::cohort_optimizer_mult(self.raw(), param.as_ptr(), &mut lr, &mut wd) })?;
        Ok((lr, wd))
    }

    /// Sets the multipliers of a parameter.
    pub fn set_mult(&self, param: &str, lr_mult: f64, wd_mult: f64) -> Result<()> {
        let param = c_text(param, "param")?;
        check(unsafe { sys::cohort_optimizer_set_mult(self.raw(), param.as_ptr(), lr_mult, wd_mult) })
    }

    /// Updates one parameter from its gradient.
    pub fn update(&self, param: &str, weight: &NDArray, grad: &NDArray) -> Result<()> {
        let param = c_text(param, "param")?;
        check(unsafe { sys::cohort_optimizer_update(self.raw(), param.as_ptr(), 0, weight.raw(), grad.raw()) })
    }

    /// The loss scale of the group or manager that it updated last; saved with the states.
    pub fn loss_scale(&self) -> Result<LossScaleState> {
        LossScaleState::out(|scale, good, skipped| unsafe {
            sys::cohort_optimizer_loss_scale(self.raw(), scale, good, skipped)
        })
    }

    /// States and counts, from which training can be resumed.
    pub fn states(&self) -> Result<Vec<u8>> {
        let mut bytes = 0;
        check(unsafe { sys::cohort_optimizer_save_states_memory(self.raw(), null_mut(), 0, &mut bytes) })?;
        let mut found = vec![0u8; bytes];
        let into = found.as_mut_ptr() as *mut c_void;
        check(unsafe { sys::cohort_optimizer_save_states_memory(self.raw(), into, bytes, &mut bytes) })?;
        Ok(found)
    }

    /// Writes the states to a file.
    pub fn save_states(&self, path: &str) -> Result<()> {
        let path = c_text(path, "path")?;
        check(unsafe { sys::cohort_optimizer_save_states(self.raw(), path.as_ptr()) })
    }

    /// Reads the states from a file.
    pub fn load_states(&self, path: &str) -> Result<()> {
        let path = c_text(path, "path")?;
        check(unsafe { sys::cohort_optimizer_load_states(self.raw(), path.as_ptr()) })
    }

    /// Restores the result of [`Optimizer::states`].
    pub fn set_states(&self, states: &[u8]) -> Result<()> {
        let from = states.as_ptr() as *const c_void;
        check(unsafe { sys::cohort_optimizer_load_states_memory(self.raw(), from, states.len()) })
    }
}

/// A custom metric: from labels and predictions to a sum and a count.
type Measure = Box<dyn FnMut(&[NDArray], &[NDArray]) -> Result<(f64, f64)> + Send>;

/// A figure accumulated from labels and predictions.
pub struct Metric {
    raw: *mut sys::cohort_metric,
    _measure: Option<Box<Measure>>, // dropped after the handle
    _children: Vec<Metric>,         // it calls their functions
}

// SAFETY: any thread may use a handle, one at a time; the function is Send.
unsafe impl Send for Metric {}

impl Drop for Metric {
    fn drop(&mut self) {
        unsafe { sys::cohort_metric_free(self.raw) }
    }
}

unsafe extern "C" fn measure(
    labels: *const *mut sys::cohort_ndarray,
    num_labels: usize,
    preds: *const *mut sys::cohort_ndarray,
    num_preds: usize,
    out_sum: *mut f64,
    out_num: *mut f64,
    user_data: *mut c_void,
) -> i32 {
    let lent = |list: *const *mut sys::cohort_ndarray, num| -> Result<Vec<NDArray>> {
        (0..num).map(|i| NDArray::share(*list.add(i))).collect()
    };
    guarded(|| {
        let function = &mut *(user_data as *mut Measure);
        let (sum, num) = function(&lent(labels, num_labels)?, &lent(preds, num_preds)?)?;
        *out_sum = sum;
        *out_num = num;
        Ok(())
    })
}

impl Metric {
    /// By name, with settings as text.
    pub fn new(kind: &str, with: &[(&str, &str)]) -> Result<Metric> {
        let (kind, (keys, values)) = (c_text(kind, "metric")?, settings(with)?);
        let mut raw = null_mut();
        check(unsafe {
            sys::cohort_metric_create(kind.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len(), &mut raw)
        })?;
        Ok(Metric { raw, _measure: None, _children: Vec::new() })
    }

    /// From a function that returns sum and count for labels and predictions, of which there must be as many.
    pub fn custom(
        name: &str,
        function: impl FnMut(&[NDArray], &[NDArray]) -> Result<(f64, f64)> + Send + 'static,
    ) -> Result<Metric> {
        Metric::of_function(name, function, false)
    }

    /// The same for any numbers of labels and predictions.
    pub fn custom_allow_extra(
        name: &str,
        function: impl FnMut(&[NDArray], &[NDArray]) -> Result<(f64, f64)> + Send + 'static,
    ) -> Result<Metric> {
        Metric::of_function(name, function, true)
    }

    fn of_function(
        name: &str,
        function: impl FnMut(&[NDArray], &[NDArray]) -> Result<(f64, f64)> + Send + 'static,
        allow_extra: bool,
    ) -> Result<Metric> {
        let name = c_text(name, "metric")?;
        let mut boxed: Box<Measure> = Box::new(Box::new(function));
        let user_data = &mut *boxed as *mut Measure as *mut c_void;
        let mut raw = null_mut();
        check(unsafe {
            let allow_extra = allow_extra.into();
            sys::cohort_metric_create_custom(name.as_ptr(), Some(measure), user_data, allow_extra, &mut raw)
        })?;
        Ok(Metric { raw, _measure: Some(boxed), _children: Vec::new() })
    }

    pub(crate) fn raw(&self) -> *mut sys::cohort_metric {
        self.raw
    }

    /// Adds labels and predictions, pair by pair.
    pub fn update(&mut self, labels: &[&NDArray], preds: &[&NDArray]) -> Result<()> {
        let (labels, preds) = (pointers(labels), pointers(preds));
        check(unsafe {
            sys::cohort_metric_update(self.raw, labels.as_ptr(), labels.len(), preds.as_ptr(), preds.len())
        })
    }

    /// Adds named labels and predictions, from which [`Metric::set_names`] has selected.
    pub fn update_named(
        &mut self,
        labels: &BTreeMap<String, NDArray>,
        preds: &BTreeMap<String, NDArray>,
    ) -> Result<()> {
        let (labels, preds) = (Arrays::of_params(labels)?, Arrays::of_params(preds)?);
        check(unsafe { sys::cohort_metric_update_named(self.raw, labels.raw(), preds.raw()) })
    }

    /// Appends a metric to a composite one.
    pub fn add(&mut self, child: Metric) -> Result<()> {
        check(unsafe { sys::cohort_metric_add(self.raw, child.raw) })?;
        self._children.push(child);
        Ok(())
    }

    /// Selects labels and outputs by name, if they are given with names; none: all.
    pub fn set_names(&mut self, labels: &[&str], outputs: &[&str]) -> Result<()> {
        let (labels, outputs) = (Texts::new(labels, "label_names")?, Texts::new(outputs, "output_names")?);
        check(unsafe {
            sys::cohort_metric_set_names(self.raw, labels.as_ptr(), labels.len(), outputs.as_ptr(), outputs.len())
        })
    }

    /// Resets the local values, and keeps the global ones.
    pub fn reset_local(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_metric_reset_local(self.raw) })
    }

    /// Resets everything.
    pub fn reset(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_metric_reset(self.raw) })
    }

    /// Names and values; NaN if nothing was counted.
    pub fn values(&self) -> Result<Vec<(String, f64)>> {
        self.figures(0)
    }

    /// The same since the last global reset.
    pub fn global_values(&self) -> Result<Vec<(String, f64)>> {
        self.figures(1)
    }

    /// The sums and counts behind the values.
    pub fn counters(&self) -> Result<Vec<(f64, f64)>> {
        let mut num = 0;
        check(unsafe { sys::cohort_metric_num_values(self.raw, &mut num) })?;
        (0..num)
            .map(|i| {
                let (mut sum, mut instances) = (0.0, 0.0);
                check(unsafe { sys::cohort_metric_counters(self.raw, i, 0, &mut sum, &mut instances) })?;
                Ok((sum, instances))
            })
            .collect()
    }

    fn figures(&self, global: i32) -> Result<Vec<(String, f64)>> {
        let mut num = 0;
        check(unsafe { sys::cohort_metric_num_values(self.raw, &mut num) })?;
        (0..num)
            .map(|i| {
                let (mut name, mut value) = (null(), 0.0);
                check(unsafe { sys::cohort_metric_value(self.raw, i, global, &mut name, &mut value) })?;
                Ok((unsafe { text(name) }, value))
            })
            .collect()
    }
}

crate::handle!(
    /// A rule that fills parameters before training. The same seed and names give the same numbers.
    Initializer,
    cohort_initializer,
    cohort_initializer_free
);

impl Initializer {
    /// Fills one array by its name.
    pub fn fill(&self, name: &str, array: &NDArray) -> Result<()> {
        let name = c_text(name, "name")?;
        check(unsafe { sys::cohort_initializer_fill(self.raw(), name.as_ptr(), array.raw()) })
    }

    /// By name, with settings as text.
    pub fn new(name: &str, with: &[(&str, &str)], seed: u64) -> Result<Initializer> {
        let (name, (keys, values)) = (c_text(name, "initializer")?, settings(with)?);
        let mut made = null_mut();
        check(unsafe {
            sys::cohort_initializer_create(name.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len(), seed, &mut made)
        })?;
        Ok(Initializer::adopt(made))
    }

    /// Fills arrays by name: weights by this rule, biases with 0, and so on; `__init__` of a variable takes precedence.
    pub fn apply(&self, symbol: Option<&Symbol>, arrays: &BTreeMap<String, NDArray>) -> Result<()> {
        let arrays = Arrays::of(arrays.iter().map(|(name, array)| (name.as_str(), array)))?;
        let symbol = symbol.map_or(null_mut(), |symbol| symbol.raw());
        check(unsafe { sys::cohort_initializer_apply(self.raw(), symbol, arrays.raw()) })
    }
}
