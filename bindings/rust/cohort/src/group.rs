// SPDX-License-Identifier: Apache-2.0
//! Groups: one executor for each context, each batch split over them by workload.
use crate::arrays::{Arrays, Descs};
use crate::error::{c_text, check, Error, Result, Texts};
use crate::executor::{see, Executor, GradReq, Monitor};
use crate::model::Params;
use crate::ndarray::{names, pointers, Context, Dtype, NDArray};
use crate::symbol::Symbol;
use crate::training::{Initializer, Metric, Optimizer};
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
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
    grad_req_list: Option<Vec<GradReq>>,
    grad_reqs: Option<Vec<(String, GradReq)>>,
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

    /// What backward does with the gradients of all parameters.
    pub fn grad_req(mut self, grad_req: GradReq) -> Self {
        self.grad_req = grad_req;
        self
    }

    /// The same for each argument of the network in order, taken as it is.
    pub fn grad_req_list(mut self, of_arguments: &[GradReq]) -> Self {
        self.grad_req_list = Some(of_arguments.to_vec());
        self
    }

    /// The same for some arguments by name, over "write".
    pub fn grad_reqs(mut self, by_name: &[(&str, GradReq)]) -> Self {
        self.grad_reqs = Some(by_name.iter().map(|(name, req)| (name.to_string(), *req)).collect());
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
        let word = c_text(self.grad_req.word(), "grad_req")?;
        let listed: Vec<GradReq> = match (&self.grad_req_list, &self.grad_reqs) {
            (Some(list), _) => list.clone(),
            (None, Some(named)) => named.iter().map(|(_, req)| *req).collect(),
            (None, None) => Vec::new(),
        };
        let words = Texts::new(&listed.iter().map(|req| req.word()).collect::<Vec<_>>(), "grad_req")?;
        let named = self.grad_reqs.as_deref().unwrap_or_default();
        let grad_names = Texts::new(&named.iter().map(|(name, _)| name).collect::<Vec<_>>(), "grad_req")?;
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
        if self.grad_req_list.is_some() || self.grad_reqs.is_some() {
            options.grad_req_list = words.as_ptr();
            options.num_grad_reqs = words.len();
            options.grad_req_names = if self.grad_req_list.is_some() { null() } else { grad_names.as_ptr() };
        } else {
            options.grad_req = word.as_ptr();
        }
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
            grad_req_list: None,
            grad_reqs: None,
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

    /// Samples in a batch; None if nothing is batched.
    pub fn batch_size(&self) -> Result<Option<usize>> {
        let mut size = 0;
        check(unsafe { sys::cohort_group_batch_size(self.raw, &mut size) })?;
        Ok(if size == 0 { None } else { Some(size as usize) })
    }

    fn axes(&self, list: i32) -> Result<Vec<Option<usize>>> {
        (0..self.num(list)?)
            .map(|i| {
                let mut axis = 0;
                check(unsafe { sys::cohort_group_axis(self.raw, list, i, &mut axis) })?;
                Ok(usize::try_from(axis).ok())
            })
            .collect()
    }

    /// The batch axis of each descriptor of data; None: not batched.
    pub fn data_axes(&self) -> Result<Vec<Option<usize>>> {
        self.axes(sys::COHORT_GROUP_DATA)
    }

    /// The same of labels.
    pub fn label_axes(&self) -> Result<Vec<Option<usize>>> {
        self.axes(sys::COHORT_GROUP_LABELS)
    }

    /// The same of outputs.
    pub fn output_axes(&self) -> Result<Vec<Option<usize>>> {
        self.axes(sys::COHORT_GROUP_OUTPUTS)
    }

    /// Names and shapes of the joined outputs, known before any pass.
    pub fn output_shapes(&self) -> Result<Vec<(String, Vec<usize>)>> {
        let mut made = null_mut();
        check(unsafe { sys::cohort_group_output_shapes(self.raw, &mut made) })?;
        Ok(Descs::adopt(made).list()?.into_iter().map(|(name, shape)| (name, shape.unwrap_or_default())).collect())
    }

    /// One device's executor, which is of the group: it is borrowed for as long as it is looked at.
    pub fn executor(&mut self, device: usize) -> Result<GroupExecutor<'_>> {
        let executor = Executor::out(|out| unsafe { sys::cohort_group_executor(self.raw, device, out) })?;
        Ok(GroupExecutor { executor, _group: PhantomData })
    }

    fn num(&self, list: i32) -> Result<usize> {
        let mut num = 0;
        check(unsafe { sys::cohort_group_num_arrays(self.raw, list, &mut num) })?;
        Ok(num)
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

    /// The same with a batch that is split already: the arrays of each device.
    pub fn forward_presliced(&mut self, data: &[Vec<&NDArray>], label: &[Vec<&NDArray>], is_train: bool) -> Result<()> {
        let flat = |devices: &[Vec<&NDArray>]| -> Result<(Vec<*mut sys::cohort_ndarray>, usize)> {
            let num = devices.first().map_or(0, |device| device.len());
            if devices.iter().any(|device| device.len() != num) {
                return Err(Error::invalid(format!("batch: expected {} arrays for each device", num), "batch"));
            }
            Ok((devices.iter().flat_map(|device| pointers(device)).collect(), num))
        };
        let ((arrays, num_data), (labels, num_label)) = (flat(data)?, flat(label)?);
        if !label.is_empty() && label.len() != data.len() {
            return Err(Error::invalid(
                format!("label: expected {} devices, found {}", data.len(), label.len()),
                "label",
            ));
        }
        check(unsafe {
            sys::cohort_group_forward_presliced(
                self.raw,
                data.len(),
                arrays.as_ptr(),
                num_data,
                if num_label == 0 { null() } else { labels.as_ptr() },
                num_label,
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
        let merge = |i| NDArray::maybe(|out| unsafe { sys::cohort_group_merged(self.raw, list, i, out) }).transpose();
        (0..self.num(list)?).filter_map(merge).collect()
    }

    /// The outputs, joined over the devices; good until the next pass.
    pub fn outputs(&self) -> Result<Vec<NDArray>> {
        self.merged(sys::COHORT_GROUP_OUTPUTS)
    }

    /// One of them.
    pub fn output(&self, index: usize) -> Result<NDArray> {
        NDArray::out(|out| unsafe { sys::cohort_group_merged(self.raw, sys::COHORT_GROUP_OUTPUTS, index, out) })
    }

    /// The gradients of the data, joined over the devices; those that there are.
    pub fn input_grads(&self) -> Result<Vec<NDArray>> {
        self.array(sys::COHORT_GROUP_INPUT_GRADS, 0, 0)?; // which says what is wrong where there are none
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

    /// The auxiliary states of one device, live.
    pub fn device_aux(&self, device: usize) -> Result<BTreeMap<String, NDArray>> {
        self.of_device(sys::COHORT_GROUP_AUX, device)
    }

    /// The outputs of one device, in order.
    pub fn device_outputs(&self, device: usize) -> Result<Vec<NDArray>> {
        self.list_of_device(sys::COHORT_GROUP_OUTPUTS, device)
    }

    /// The gradients of one device's data, in order; those that there are.
    pub fn device_input_grads(&self, device: usize) -> Result<Vec<NDArray>> {
        self.array(sys::COHORT_GROUP_INPUT_GRADS, 0, device)?;
        self.list_of_device(sys::COHORT_GROUP_INPUT_GRADS, device)
    }

    fn list_of_device(&self, list: i32, device: usize) -> Result<Vec<NDArray>> {
        (0..self.num(list)?).filter_map(|i| self.array(list, i, device).transpose()).collect()
    }

    fn array(&self, list: i32, index: usize, device: usize) -> Result<Option<NDArray>> {
        NDArray::maybe(|out| unsafe { sys::cohort_group_array(self.raw, list, index, device, out) })
    }

    /// Names of the parameters, in the order of the arguments.
    pub fn param_names(&self) -> Result<Vec<String>> {
        let list = sys::COHORT_GROUP_PARAMS;
        names(self.num(list)?, |i, out| unsafe { sys::cohort_group_name(self.raw, list, i, out) })
    }

    /// Copies parameters and auxiliary states to every device. All have to be there.
    pub fn set_params(&mut self, args: &Params, aux: &Params) -> Result<()> {
        self.assign_params(args, aux, false, false).map(drop)
    }

    /// The same, where some may be missing, whose names come back, or names unknown.
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
            sys::cohort_group_assign_params(self.raw, given.0, given.1, allow_missing, allow_extra, &mut missing)
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

    /// Writes the mean over the devices into the arrays given, of which there is one for each.
    pub fn params_into(&self, args: &Params, aux: &Params) -> Result<()> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        check(unsafe { sys::cohort_group_get_params(self.raw, args.raw(), aux.raw()) })
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

    /// The same with labels that are split already: those of each device.
    pub fn update_metric_presliced(&mut self, metric: &mut Metric, labels: &[Vec<&NDArray>]) -> Result<()> {
        let num = labels.first().map_or(0, |device| device.len());
        if labels.iter().any(|device| device.len() != num) {
            return Err(Error::invalid(format!("labels: expected {} for each device", num), "labels"));
        }
        let flat: Vec<_> = labels.iter().flat_map(|device| pointers(device)).collect();
        check(unsafe {
            let num_devices = labels.len();
            sys::cohort_group_update_metric_presliced(self.raw, metric.raw(), num_devices, flat.as_ptr(), num)
        })
    }
}

/// An executor of a group. It can be looked at and given parameters; the group runs it.
pub struct GroupExecutor<'a> {
    executor: Executor,
    _group: PhantomData<&'a mut Group>,
}

impl GroupExecutor<'_> {
    /// Copies parameters into this device alone.
    pub fn copy_params_from(&mut self, args: &Params, aux: &Params, allow_extra: bool) -> Result<()> {
        self.executor.copy_params_from(args, aux, allow_extra)
    }
}

impl Deref for GroupExecutor<'_> {
    type Target = Executor;

    fn deref(&self) -> &Executor {
        &self.executor
    }
}
