// SPDX-License-Identifier: Apache-2.0
//! Managers: a group for each bucket of a bucketing network, all with the parameters of the main group.
use crate::arrays::{Arrays, Descs};
use crate::error::{c_text, check, guarded, text, Error, Result, Texts};
use crate::executor::Watch;
use crate::group::{flat, Group, Update};
use crate::group_builder::{to_descs, Desc};
use crate::model::Params;
use crate::ndarray::{pointers, Context, Dtype, MemoryInfo, NDArray};
use crate::precision::{
    gradient_methods, set_gradients, set_precision, Gradients, LossScale, LossScaleState, Precision,
};
use crate::shared_lock::LockedHandle;
use crate::symbol::Symbol;
use crate::training::{Initializer, Metric, Optimizer};
use cohort_sys as sys;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Returns the symbol of a bucket by its key.
type Symbols = Box<dyn FnMut(&str) -> Result<Symbol> + Send>;

unsafe extern "C" fn bucket_symbol(
    key: *const c_char,
    out: *mut *mut sys::cohort_symbol,
    user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let symbols = &mut *(user_data as *mut Symbols);
        let made = symbols(&text(key))?;
        *out = made.raw();
        std::mem::forget(made); // the library frees it
        Ok(())
    })
}

/// The settings of a manager.
pub struct ManagerBuilder<'a> {
    symbol: &'a Symbol,
    contexts: Vec<Context>,
    workload: Vec<f64>,
    batch_size: usize,
    data: Vec<Desc>,
    label: Vec<Desc>,
    params: Option<Vec<String>>,
    states: Vec<String>,
    default_bucket: Option<String>,
    buckets: Vec<(String, &'a Symbol)>,
    symbols: Option<Symbols>,
    num_threads: i32,
    seed: u64,
    precision: Precision,
    gradients: Gradients,
}

impl fmt::Debug for ManagerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut made = f.debug_struct("ManagerBuilder");
        made.field("symbol", &self.symbol).field("contexts", &self.contexts).field("workload", &self.workload);
        made.field("batch_size", &self.batch_size).field("data", &self.data).field("label", &self.label);
        made.field("params", &self.params).field("states", &self.states).field("default_bucket", &self.default_bucket);
        made.field("buckets", &self.buckets).field("num_threads", &self.num_threads).field("seed", &self.seed);
        made.field("precision", &self.precision).field("gradients", &self.gradients).finish_non_exhaustive()
    }
}

impl<'a> ManagerBuilder<'a> {
    /// The devices; the default is cpu(0).
    pub fn contexts(mut self, contexts: &[Context]) -> Self {
        self.contexts = contexts.to_vec();
        self
    }

    /// The share of each device; the default is equal shares.
    pub fn workload(mut self, shares: &[f64]) -> Self {
        self.workload = shares.to_vec();
        self
    }

    /// Adds a descriptor of data, batched along the first axis, whose length is ignored.
    pub fn data(mut self, desc: Desc) -> Self {
        self.data.push(desc);
        self
    }

    /// Adds a descriptor of labels.
    pub fn label(mut self, desc: Desc) -> Self {
        self.label.push(desc);
        self
    }

    /// The parameters; the default is all arguments but data, labels and states.
    pub fn params(mut self, names: &[&str]) -> Self {
        self.params = Some(names.iter().map(|&name| name.into()).collect());
        self
    }

    /// Arguments that are states.
    pub fn states(mut self, names: &[&str]) -> Self {
        self.states = names.iter().map(|&name| name.into()).collect();
        self
    }

    /// The key of the main symbol, which should be the largest. Required if there are other buckets.
    pub fn default_bucket(mut self, key: &str) -> Self {
        self.default_bucket = Some(key.into());
        self
    }

    /// The symbol of another bucket.
    pub fn bucket(mut self, key: &str, symbol: &'a Symbol) -> Self {
        self.buckets.push((key.into(), symbol));
        self
    }

    /// A function that is called for the symbols of new keys. [`Manager::load_bucket`] returns its errors and resumes its panics.
    pub fn bucket_symbols(mut self, function: impl FnMut(&str) -> Result<Symbol> + Send + 'static) -> Self {
        self.symbols = Some(Box::new(function));
        self
    }

    /// Threads of each CPU context.
    pub fn num_threads(mut self, num: u16) -> Self {
        self.num_threads = num.into();
        self
    }

    /// The seed of random operators.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The types in which to compute.
    pub fn precision(mut self, precision: &Precision) -> Self {
        self.precision = precision.clone();
        self
    }

    gradient_methods!();

    /// Binds the main group.
    pub fn build(self) -> Result<Manager> {
        let contexts: Vec<_> = self.contexts.iter().map(|context| context.to_raw()).collect();
        let (data, label) = (to_descs(&self.data)?, to_descs(&self.label)?);
        let params = Texts::new(self.params.as_deref().unwrap_or_default(), "params")?;
        let states = Texts::new(&self.states, "states")?;
        let default = self.default_bucket.as_deref().map(|key| c_text(key, "default_bucket")).transpose()?;
        let keys = Texts::new(&self.buckets.iter().map(|(key, _)| key).collect::<Vec<_>>(), "bucket")?;
        let of_keys: Vec<_> = self.buckets.iter().map(|(_, symbol)| symbol.raw()).collect();
        let mut symbols = self.symbols.map(Box::new);
        // SAFETY: all zeros is a valid value, the defaults.
        let mut options: sys::cohort_manager_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        options.workload = self.workload.as_ptr();
        options.num_workloads = self.workload.len();
        options.default_bucket_key = default.as_ref().map_or(null(), |key| key.as_ptr());
        options.bucket_keys = keys.as_ptr();
        options.bucket_symbols = of_keys.as_ptr();
        options.num_buckets = keys.len();
        if let Some(symbols) = &mut symbols {
            options.bucket_symbol = Some(bucket_symbol);
            options.bucket_symbol_user_data = &mut **symbols as *mut Symbols as *mut c_void;
        }
        options.num_threads = self.num_threads;
        options.seed = self.seed;
        options.state_names = states.as_ptr();
        options.num_state_names = states.len();
        if self.precision.calibration.is_some() {
            return Err(Error::invalid("precision: a manager takes no calibration", "calibration"));
        }
        let names = self.precision.names()?;
        set_precision!(options, self.precision, names);
        set_gradients!(options, self.gradients);
        let mut raw = null_mut();
        check(unsafe {
            sys::cohort_manager_create(
                self.symbol.raw(),
                contexts.as_ptr(),
                contexts.len(),
                i64::try_from(self.batch_size).unwrap_or(i64::MAX),
                data.raw(),
                label.raw(),
                if self.params.is_some() { params.as_ptr() } else { null() },
                params.len(),
                &options,
                &mut raw,
            )
        })?;
        let symbol = self.symbol.clone();
        Ok(Manager { raw, symbol, num_contexts: contexts.len(), _symbols: symbols, monitor: None, tied: false })
    }
}

/// A group for each bucket. A bucket is bound when its key first occurs with a batch; that of the latest batch is current.
///
/// ```
/// use cohort::{Context, Desc, Initializer, Manager, NDArray, Op, Optimizer, Symbol, Update};
///
/// # fn main() -> cohort::Result<()> {
/// // The mean over however many columns there are, then a layer that all buckets share.
/// let net = || -> cohort::Result<Symbol> {
///     let mean = Op::new("mean").attr("axis", 1).attr("keepdims", 1).input(&Symbol::variable("data")?).build()?;
///     let fc = Op::new("FullyConnected").attr("num_hidden", 3).input(&mean).name("fc").build()?;
///     Op::new("SoftmaxOutput").input(&fc).name("softmax").build()
/// };
/// let mut manager = Manager::builder(&net()?, 4)
///     .contexts(&[Context::cpu(0), Context::cpu(1)])
///     .data(Desc::new("data", &[4, 10]))
///     .label(Desc::new("softmax_label", &[4]))
///     .default_bucket("10")
///     .bucket_symbols(move |_key| net())
///     .build()?;
/// manager.init_params(&Initializer::new("xavier", &[], 1)?)?;
/// let sgd = Optimizer::new("sgd", &[("learning_rate", "0.1")])?;
/// for length in [10, 5, 7, 5] {
///     let (data, label) = (NDArray::from_slice(&vec![1f32; 4 * length], &[4, length])?, NDArray::from_slice(&[0f32; 4], &[4])?);
///     let (data_desc, label_desc) = (Desc::new("data", &[4, length]), Desc::new("softmax_label", &[4]));
///     manager.load_bucket(&length.to_string(), &[&data], &[&label], &[data_desc], &[label_desc])?;
///     manager.forward(true)?;
///     manager.backward()?;
///     manager.update(&sgd, Update::OnStore)?;
/// }
/// assert_eq!(manager.buckets()?, ["10", "5", "7"]);
/// # Ok(())
/// # }
/// ```
pub struct Manager {
    raw: *mut sys::cohort_manager,
    symbol: Symbol,
    num_contexts: usize,
    _symbols: Option<Box<Symbols>>, // both outlive the handle
    monitor: Option<Arc<Watch>>,
    pub(crate) tied: bool,
}

// SAFETY: any thread may use a handle, one at a time; the functions are Send.
unsafe impl Send for Manager {}

impl Drop for Manager {
    fn drop(&mut self) {
        unsafe { sys::cohort_manager_free(*self.at()) }
    }
}

impl Manager {
    /// Starts a manager with the default bucket's network and the number of samples in every batch.
    pub fn builder(symbol: &Symbol, batch_size: usize) -> ManagerBuilder<'_> {
        ManagerBuilder {
            symbol,
            contexts: vec![Context::cpu(0)],
            workload: Vec::new(),
            batch_size,
            data: Vec::new(),
            label: Vec::new(),
            params: None,
            states: Vec::new(),
            default_bucket: None,
            buckets: Vec::new(),
            symbols: None,
            precision: Precision::default(),
            gradients: Gradients::default(),
            num_threads: 0,
            seed: 0,
        }
    }

    pub(crate) fn at(&self) -> LockedHandle<sys::cohort_manager> {
        LockedHandle::new(self.raw, self.tied)
    }

    /// The rows of each device, the same in all buckets.
    pub fn slices(&self) -> Result<Vec<Range<usize>>> {
        (0..self.num_contexts)
            .map(|device| {
                let (mut begin, mut end) = (0, 0);
                check(unsafe { sys::cohort_manager_slice(*self.at(), device, &mut begin, &mut end) })?;
                Ok(begin as usize..end as usize)
            })
            .collect()
    }

    /// The keys of the buckets made so far, sorted.
    pub fn buckets(&self) -> Result<Vec<String>> {
        let mut num = 0;
        check(unsafe { sys::cohort_manager_num_buckets(*self.at(), &mut num) })?;
        (0..num)
            .map(|i| {
                let mut key = null();
                check(unsafe { sys::cohort_manager_bucket(*self.at(), i, &mut key, null_mut()) })?;
                Ok(unsafe { text(key) })
            })
            .collect()
    }

    /// The main group, for reading.
    pub fn main_group(&mut self) -> Result<ManagerGroup<'_>> {
        let mut raw = null_mut();
        check(unsafe { sys::cohort_manager_main_group(*self.at(), &mut raw) })?;
        Ok(self.lend(raw))
    }

    /// The group of the batch loaded last, for reading.
    pub fn current_group(&mut self) -> Result<ManagerGroup<'_>> {
        let mut raw = null_mut();
        check(unsafe { sys::cohort_manager_current_group(*self.at(), &mut raw) })?;
        Ok(self.lend(raw))
    }

    fn lend(&self, raw: *mut sys::cohort_group) -> ManagerGroup<'_> {
        ManagerGroup { group: Group::adopt(raw, &self.symbol, self.num_contexts, self.tied), _manager: PhantomData }
    }

    /// Splits a batch of the main group over the devices.
    pub fn load(&mut self, data: &[&NDArray], label: &[&NDArray]) -> Result<()> {
        self.load_batch(None, data, label, &[], &[])
    }

    /// Like `load`, for a bucket, which is bound if it is new: then the descriptors are read.
    pub fn load_bucket(
        &mut self,
        key: &str,
        data: &[&NDArray],
        label: &[&NDArray],
        data_descs: &[Desc],
        label_descs: &[Desc],
    ) -> Result<()> {
        self.load_batch(Some(key), data, label, data_descs, label_descs)
    }

    fn load_batch(
        &mut self,
        key: Option<&str>,
        data: &[&NDArray],
        label: &[&NDArray],
        data_descs: &[Desc],
        label_descs: &[Desc],
    ) -> Result<()> {
        let key = key.map(|key| c_text(key, "bucket_key")).transpose()?;
        let (data, label) = (pointers(data), pointers(label));
        let (data_descs, label_descs) = (to_descs(data_descs)?, to_descs(label_descs)?);
        check(unsafe {
            sys::cohort_manager_load_data_batch(
                *self.at(),
                data.as_ptr(),
                data.len(),
                label.as_ptr(),
                label.len(),
                key.as_ref().map_or(null(), |key| key.as_ptr()),
                data_descs.raw(),
                label_descs.raw(),
            )
        })
    }

    /// Runs a forward pass of the current group.
    pub fn forward(&mut self, is_train: bool) -> Result<()> {
        check(unsafe { sys::cohort_manager_forward(*self.at(), is_train.into()) })
    }

    /// Runs a backward pass of the current group.
    pub fn backward(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_manager_backward(*self.at()) })
    }

    /// Updates the parameters, which all buckets share, from the gradients of the current group.
    pub fn update(&mut self, optimizer: &Optimizer, how: Update) -> Result<()> {
        check(unsafe { sys::cohort_manager_update(*self.at(), optimizer.raw(), how.code()) })
    }

    /// Updates a metric once per device.
    pub fn update_metric(&mut self, metric: &mut Metric, labels: &[&NDArray]) -> Result<()> {
        let labels = pointers(labels);
        check(unsafe { sys::cohort_manager_update_metric(*self.at(), metric.raw(), labels.as_ptr(), labels.len()) })
    }

    /// Like `update_metric`, with labels that are sliced already: those of each device.
    pub fn update_metric_presliced(&mut self, metric: &mut Metric, labels: &[Vec<&NDArray>]) -> Result<()> {
        let (flat, num) = flat(labels, "labels")?;
        check(unsafe {
            let num_devices = labels.len();
            sys::cohort_manager_update_metric_presliced(*self.at(), metric.raw(), num_devices, flat.as_ptr(), num)
        })
    }

    /// Copies parameters and auxiliary states to every device. All are required.
    pub fn set_params(&mut self, args: &Params, aux: &Params) -> Result<()> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        check(unsafe { sys::cohort_manager_set_params(*self.at(), args.raw(), aux.raw()) })
    }

    /// Like `set_params`, but some may be missing, whose names are returned, or unknown.
    pub fn assign_params(
        &mut self,
        args: &Params,
        aux: &Params,
        allow_missing: bool,
        allow_extra: bool,
    ) -> Result<Vec<String>> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        let (allow_missing, allow_extra) = (allow_missing.into(), allow_extra.into());
        let mut missing = null_mut();
        check(unsafe {
            let given = (args.raw(), aux.raw());
            sys::cohort_manager_assign_params(*self.at(), given.0, given.1, allow_missing, allow_extra, &mut missing)
        })?;
        Ok(Descs::adopt(missing).list()?.into_iter().map(|(name, _)| name).collect())
    }

    /// The present loss scale.
    pub fn loss_scale(&self) -> Result<LossScaleState> {
        let at = self.at();
        LossScaleState::out(|scale, good, skipped| unsafe { sys::cohort_manager_loss_scale(*at, scale, good, skipped) })
    }

    /// Sets the loss scale.
    pub fn set_loss_scale(&mut self, scale: f64, num_good: i32) -> Result<()> {
        check(unsafe { sys::cohort_manager_set_loss_scale(*self.at(), scale, num_good) })
    }

    /// Called once after [`Optimizer::load_states`] and the parameters were set: random operators and the loss scale go
    /// on from where they were when the states were saved, with `keep_device_aux` the moving statistics of each device,
    /// too. Training then gives the same bits as if it had not been interrupted.
    pub fn resume(&mut self, optimizer: &Optimizer) -> Result<()> {
        check(unsafe { sys::cohort_manager_resume(*self.at(), optimizer.raw()) })
    }

    /// The memory of all buckets together in bytes.
    pub fn memory(&self) -> Result<MemoryInfo> {
        MemoryInfo::out(|out| unsafe { sys::cohort_manager_memory(*self.at(), out) })
    }

    /// Writes the means over the devices into given arrays.
    pub fn copy_to(&self, args: &Params, aux: &Params) -> Result<()> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        check(unsafe { sys::cohort_manager_copy_to(*self.at(), args.raw(), aux.raw()) })
    }

    /// Parameters and auxiliary states, as means over the devices.
    pub fn params(&mut self) -> Result<(Params, Params)> {
        self.main_group()?.params()
    }

    /// Fills all parameters with an initializer, equally on every device.
    pub fn init_params(&mut self, initializer: &Initializer) -> Result<()> {
        let (args, aux) = self.params()?;
        initializer.apply(Some(&self.symbol), &args)?;
        initializer.apply(Some(&self.symbol), &aux)?;
        self.set_params(&args, &aux)
    }

    /// Sets the states of every device: for each state an array per device. They apply to any bucket that runs next.
    pub fn set_states(&mut self, states: &[Vec<&NDArray>]) -> Result<()> {
        let (arrays, num_devices) = flat(states, "states")?;
        check(unsafe { sys::cohort_manager_set_states(*self.at(), arrays.as_ptr(), states.len(), num_devices, null()) })
    }

    /// Sets all states to one number.
    pub fn fill_states(&mut self, value: f64) -> Result<()> {
        check(unsafe { sys::cohort_manager_set_states(*self.at(), null(), 0, 0, &value) })
    }

    /// The outputs of the current group, joined over the devices; valid until the next pass.
    pub fn outputs(&mut self) -> Result<Vec<NDArray>> {
        self.current_group()?.outputs()
    }

    /// Calls a function with name and array of each output of each operator, in all buckets.
    pub fn set_monitor(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        self.monitor_with(function, false)
    }

    /// The same, with the inputs of each operator before its outputs.
    pub fn set_monitor_all(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        self.monitor_with(function, true)
    }

    fn monitor_with(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static, all: bool) -> Result<()> {
        let made = Watch::with(function, |see, user_data| unsafe {
            sys::cohort_manager_set_monitor(*self.at(), see, user_data, all.into())
        })?;
        self.monitor = Some(made);
        Ok(())
    }

    /// Removes the monitor function.
    pub fn clear_monitor(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_manager_set_monitor(*self.at(), None, null_mut(), 0) })?;
        self.monitor = None;
        Ok(())
    }
}

/// A group of a manager, for reading; the manager runs it.
pub struct ManagerGroup<'a> {
    group: Group,
    _manager: PhantomData<&'a mut Manager>,
}

impl Deref for ManagerGroup<'_> {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}
