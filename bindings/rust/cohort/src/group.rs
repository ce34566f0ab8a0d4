// SPDX-License-Identifier: Apache-2.0
//! Groups: one executor for each context, each batch split over them by workload.
use crate::arrays::{Arrays, Descs};
use crate::error::{c_text, check, text, Result, Texts};
use crate::executor::{see, GradReq, Monitor};
use crate::model::Params;
use crate::ndarray::{names, pointers, Context, Dtype, NDArray};
use crate::symbol::Symbol;
use crate::training::{Initializer, Metric, Optimizer};
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::raw::c_void;
use std::ptr::{null, null_mut};

/// Name, shape, type and layout of data or labels; the letter N in the layout is the batch axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desc {
    name: String,
    shape: Vec<usize>,
    dtype: Dtype,
    layout: Option<String>,
}

impl Desc {
    /// Of `f32`, batched along the first axis.
    pub fn new(name: &str, shape: &[usize]) -> Desc {
        Desc { name: name.into(), shape: shape.to_vec(), dtype: Dtype::Float32, layout: None }
    }

    /// Of another type.
    pub fn dtype(mut self, dtype: Dtype) -> Desc {
        self.dtype = dtype;
        self
    }

    /// With a layout, such as "TNC".
    pub fn layout(mut self, layout: &str) -> Desc {
        self.layout = Some(layout.into());
        self
    }
}

fn to_descs(from: &[Desc]) -> Result<Descs> {
    let made = Descs::new()?;
    for desc in from {
        made.add(&desc.name, &desc.shape, desc.dtype, desc.layout.as_deref())?;
    }
    Ok(made)
}

/// How a share of the batch becomes a whole number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, halves up; what is missing goes to the last device.
    HalfUp,
    /// The same with halves to the even number.
    HalfEven,
    /// Largest remainder, at least one sample for each device.
    Balanced,
}

/// How the devices' gradients are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// One update from the sum, copied to all.
    OnStore,
    /// Each device updates its own from the sum.
    PerDevice,
    /// Each device updates from its own gradient.
    NoStore,
}

/// A group in the making.
pub struct GroupBuilder<'a> {
    symbol: &'a Symbol,
    contexts: Vec<Context>,
    workload: Vec<f64>,
    rounding: Rounding,
    data: Vec<Desc>,
    label: Vec<Desc>,
    params: Option<Vec<String>>,
    fixed: Vec<String>,
    states: Vec<String>,
    grad_req: GradReq,
    for_training: bool,
    inputs_need_grad: bool,
    num_threads: i32,
    seed: u64,
}

impl GroupBuilder<'_> {
    /// The devices; cpu(0) if this is not called.
    pub fn contexts(mut self, contexts: &[Context]) -> Self {
        self.contexts = contexts.to_vec();
        self
    }

    /// The share of each device; equal ones if this is not called.
    pub fn workload(mut self, shares: &[f64]) -> Self {
        self.workload = shares.to_vec();
        self
    }

    /// How shares become whole numbers.
    pub fn rounding(mut self, rounding: Rounding) -> Self {
        self.rounding = rounding;
        self
    }

    /// Adds a descriptor of data.
    pub fn data(mut self, desc: Desc) -> Self {
        self.data.push(desc);
        self
    }

    /// Adds a descriptor of labels.
    pub fn label(mut self, desc: Desc) -> Self {
        self.label.push(desc);
        self
    }

    /// The parameters; all arguments but data, labels and states if this is not called.
    pub fn params(mut self, names: &[&str]) -> Self {
        self.params = Some(names.iter().map(|&name| name.into()).collect());
        self
    }

    /// Parameters without gradient.
    pub fn fixed_params(mut self, names: &[&str]) -> Self {
        self.fixed = names.iter().map(|&name| name.into()).collect();
        self
    }

    /// Arguments that are states.
    pub fn states(mut self, names: &[&str]) -> Self {
        self.states = names.iter().map(|&name| name.into()).collect();
        self
    }

    /// What backward does with gradients.
    pub fn grad_req(mut self, grad_req: GradReq) -> Self {
        self.grad_req = grad_req;
        self
    }

    /// Without gradients.
    pub fn for_inference(mut self) -> Self {
        self.for_training = false;
        self
    }

    /// With gradients of the data.
    pub fn inputs_need_grad(mut self) -> Self {
        self.inputs_need_grad = true;
        self
    }

    /// Threads of each CPU context.
    pub fn num_threads(mut self, num: u16) -> Self {
        self.num_threads = num.into();
        self
    }

    /// Of random operators.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Binds it.
    pub fn build(self) -> Result<Group> {
        let contexts: Vec<_> = self.contexts.iter().map(|context| context.to_raw()).collect();
        let (data, label) = (to_descs(&self.data)?, to_descs(&self.label)?);
        let params = Texts::new(self.params.as_deref().unwrap_or_default(), "params")?;
        let (fixed, states) = (Texts::new(&self.fixed, "fixed_params")?, Texts::new(&self.states, "states")?);
        let word = c_text(["null", "write", "", "add"][self.grad_req.code() as usize], "grad_req")?;
        // SAFETY: zero in any field is its default.
        let mut options: sys::cohort_group_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        if !self.workload.is_empty() {
            options.workload = self.workload.as_ptr();
            options.num_workloads = self.workload.len();
        }
        options.rounding = match self.rounding {
            Rounding::HalfUp => sys::COHORT_ROUNDING_HALF_UP,
            Rounding::HalfEven => sys::COHORT_ROUNDING_HALF_EVEN,
            Rounding::Balanced => sys::COHORT_ROUNDING_BALANCED,
        };
        options.inputs_need_grad = self.inputs_need_grad.into();
        options.fixed_param_names = fixed.as_ptr();
        options.num_fixed_param_names = fixed.len();
        options.state_names = states.as_ptr();
        options.num_state_names = states.len();
        options.grad_req = word.as_ptr();
        options.num_threads = self.num_threads;
        options.seed = self.seed;
        let mut raw = null_mut();
        check(unsafe {
            sys::cohort_group_create(
                self.symbol.raw(),
                contexts.as_ptr(),
                contexts.len(),
                data.raw(),
                label.raw(),
                if self.params.is_some() { params.as_ptr() } else { null() },
                params.len(),
                self.for_training.into(),
                &options,
                &mut raw,
            )
        })?;
        Ok(Group { raw, symbol: self.symbol.clone(), num_contexts: contexts.len(), monitor: None })
    }
}

/// One executor for each context, a batch split over them.
pub struct Group {
    raw: *mut sys::cohort_group,
    symbol: Symbol,
    num_contexts: usize,
    monitor: Option<Box<Monitor>>, // outlives the handle
}

// SAFETY: any thread may use a handle, one at a time; the function is Send.
unsafe impl Send for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        unsafe { sys::cohort_group_free(self.raw) }
    }
}

impl Group {
    /// Begins a group of a network.
    pub fn builder(symbol: &Symbol) -> GroupBuilder<'_> {
        GroupBuilder {
            symbol,
            contexts: vec![Context::cpu(0)],
            workload: Vec::new(),
            rounding: Rounding::HalfUp,
            data: Vec::new(),
            label: Vec::new(),
            params: None,
            fixed: Vec::new(),
            states: Vec::new(),
            grad_req: GradReq::Write,
            for_training: true,
            inputs_need_grad: false,
            num_threads: 0,
            seed: 0,
        }
    }

    /// The rows of each device.
    pub fn slices(&self) -> Result<Vec<Range<usize>>> {
        (0..self.num_contexts)
            .map(|device| {
                let (mut begin, mut end) = (0, 0);
                check(unsafe { sys::cohort_group_slice(self.raw, device, &mut begin, &mut end) })?;
                Ok(begin as usize..end as usize)
            })
            .collect()
    }

    /// Changes the shapes of the batch; parameters stay.
    pub fn reshape(&mut self, data: &[Desc], label: &[Desc]) -> Result<()> {
        let (data, label) = (to_descs(data)?, to_descs(label)?);
        check(unsafe { sys::cohort_group_reshape(self.raw, data.raw(), label.raw()) })
    }

    /// Loads a batch and runs a forward pass.
    pub fn forward(&mut self, data: &[&NDArray], label: &[&NDArray], is_train: bool) -> Result<()> {
        let (data, label) = (pointers(data), pointers(label));
        check(unsafe {
            sys::cohort_group_forward(
                self.raw,
                data.as_ptr(),
                data.len(),
                if label.is_empty() { null() } else { label.as_ptr() },
                label.len(),
                is_train.into(),
            )
        })
    }

    /// Runs a backward pass. Losses need no head gradients.
    pub fn backward(&mut self, head_grads: &[&NDArray]) -> Result<()> {
        let grads = pointers(head_grads);
        check(unsafe { sys::cohort_group_backward(self.raw, grads.as_ptr(), grads.len()) })
    }

    /// Updates every parameter that has a gradient.
    pub fn update(&mut self, optimizer: &Optimizer, how: Update) -> Result<()> {
        let mode = match how {
            Update::OnStore => sys::COHORT_UPDATE_ON_STORE,
            Update::PerDevice => sys::COHORT_UPDATE_PER_DEVICE,
            Update::NoStore => sys::COHORT_UPDATE_NO_STORE,
        };
        check(unsafe { sys::cohort_group_update(self.raw, optimizer.raw(), mode) })
    }

    /// Updates a metric once for each device.
    pub fn update_metric(&mut self, metric: &mut Metric, labels: &[&NDArray]) -> Result<()> {
        let labels = pointers(labels);
        check(unsafe { sys::cohort_group_update_metric(self.raw, metric.raw(), labels.as_ptr(), labels.len()) })
    }

    fn merged(&self, list: i32) -> Result<Vec<NDArray>> {
        let mut num = 0;
        check(unsafe { sys::cohort_group_num_arrays(self.raw, list, &mut num) })?;
        (0..num).map(|i| NDArray::out(|out| unsafe { sys::cohort_group_merged(self.raw, list, i, out) })).collect()
    }

    /// The outputs, joined over the devices; good until the next pass.
    pub fn outputs(&self) -> Result<Vec<NDArray>> {
        self.merged(sys::COHORT_GROUP_OUTPUTS)
    }

    /// The gradients of the data, joined over the devices.
    pub fn input_grads(&self) -> Result<Vec<NDArray>> {
        self.merged(sys::COHORT_GROUP_INPUT_GRADS)
    }

    fn of_device(&self, list: i32, device: usize) -> Result<BTreeMap<String, NDArray>> {
        Arrays::out(|out| unsafe { sys::cohort_group_arrays(self.raw, list, device, out) })?.map()
    }

    /// The parameters of one device, live.
    pub fn device_params(&self, device: usize) -> Result<BTreeMap<String, NDArray>> {
        self.of_device(sys::COHORT_GROUP_PARAMS, device)
    }

    /// Their gradients, live.
    pub fn device_grads(&self, device: usize) -> Result<BTreeMap<String, NDArray>> {
        self.of_device(sys::COHORT_GROUP_GRADS, device)
    }

    /// Names of the parameters, in the order of the arguments.
    pub fn param_names(&self) -> Result<Vec<String>> {
        let list = sys::COHORT_GROUP_PARAMS;
        let mut num = 0;
        check(unsafe { sys::cohort_group_num_arrays(self.raw, list, &mut num) })?;
        names(num, |i, out| unsafe { sys::cohort_group_name(self.raw, list, i, out) })
    }

    /// Copies parameters and auxiliary states to every device. All have to be there.
    pub fn set_params(&mut self, args: &Params, aux: &Params) -> Result<()> {
        self.assign(args, aux, false).map(drop)
    }

    /// The same of some of them; the names of those that are missing.
    pub fn set_some_params(&mut self, args: &Params, aux: &Params) -> Result<Vec<String>> {
        self.assign(args, aux, true)
    }

    fn assign(&mut self, args: &Params, aux: &Params, allow_missing: bool) -> Result<Vec<String>> {
        let by_name = |params: &Params| Arrays::of(params.iter().map(|(name, array)| (name.as_str(), array)));
        let (args, aux) = (by_name(args)?, by_name(aux)?);
        let mut missing = null_mut();
        check(unsafe {
            sys::cohort_group_assign_params(self.raw, args.raw(), aux.raw(), allow_missing.into(), 0, &mut missing)
        })?;
        Ok(Descs::adopt(missing).list()?.into_iter().map(|(name, _)| name).collect())
    }

    /// Parameters and auxiliary states, the mean over the devices.
    pub fn params(&self) -> Result<(Params, Params)> {
        let (mut args, mut aux) = (null_mut(), null_mut());
        check(unsafe { sys::cohort_group_copy_params(self.raw, &mut args, &mut aux) })?;
        let (args, aux) = (Arrays::adopt(args), Arrays::adopt(aux));
        Ok((args.map()?, aux.map()?))
    }

    /// Fills all parameters by an initializer, the same on every device.
    pub fn init_params(&mut self, initializer: &Initializer) -> Result<()> {
        let (args, aux) = self.params()?;
        initializer.apply(Some(&self.symbol), &args)?;
        initializer.apply(Some(&self.symbol), &aux)?;
        self.set_params(&args, &aux)
    }

    /// Calls a function with name and array of each output of each operator, device after device.
    pub fn set_monitor(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        let mut boxed: Box<Monitor> = Box::new(Box::new(function));
        let user_data = &mut *boxed as *mut Monitor as *mut c_void;
        check(unsafe { sys::cohort_group_set_monitor(self.raw, Some(see), user_data, 0) })?;
        self.monitor = Some(boxed);
        Ok(())
    }

    /// Waits for all queued work.
    pub fn wait(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_group_wait(self.raw) })
    }

    /// The names of the outputs.
    pub fn output_names(&self) -> Result<Vec<String>> {
        let mut num = 0;
        check(unsafe { sys::cohort_group_num_arrays(self.raw, sys::COHORT_GROUP_OUTPUTS, &mut num) })?;
        (0..num)
            .map(|i| {
                let mut name = null();
                check(unsafe { sys::cohort_group_name(self.raw, sys::COHORT_GROUP_OUTPUTS, i, &mut name) })?;
                Ok(unsafe { text(name) })
            })
            .collect()
    }
}
