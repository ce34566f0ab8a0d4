// SPDX-License-Identifier: Apache-2.0
//! Groups: one executor for each context, each batch split over them by workload.
use crate::arrays::{Arrays, Descs};
use crate::error::{check, Error, Result};
use crate::executor::{Executor, Watch};
use crate::group_builder::{to_descs, Desc, GroupBuilder, Rounding};
use crate::model::Params;
use crate::ndarray::{names, pointers, Context, MemoryInfo, NDArray};
use crate::precision::LossScaleState;
use crate::shared_lock::LockedHandle;
use crate::symbol::Symbol;
use crate::training::{Initializer, Metric, Optimizer};
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::os::raw::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// How the devices' gradients are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// One update from the sum, copied to all devices.
    OnStore,
    /// Each device updates its parameters from the sum.
    PerDevice,
    /// Each device updates its parameters from its own gradient.
    NoStore,
}

impl Update {
    pub(crate) fn code(self) -> i32 {
        match self {
            Update::OnStore => sys::COHORT_UPDATE_ON_STORE,
            Update::PerDevice => sys::COHORT_UPDATE_PER_DEVICE,
            Update::NoStore => sys::COHORT_UPDATE_NO_STORE,
        }
    }
}

/// One executor per context, each batch split over them.
pub struct Group {
    raw: *mut sys::cohort_group,
    symbol: Symbol,
    num_contexts: usize,
    monitor: Option<Arc<Watch>>, // outlives the handle
    pub(crate) tied: bool,
}

// SAFETY: any thread may use a handle, one at a time; the function is Send.
unsafe impl Send for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        unsafe { sys::cohort_group_free(*self.at()) }
    }
}

impl Group {
    pub(crate) fn adopt(raw: *mut sys::cohort_group, symbol: &Symbol, num_contexts: usize, tied: bool) -> Group {
        Group { raw, symbol: symbol.clone(), num_contexts, monitor: None, tied }
    }

    pub(crate) fn at(&self) -> LockedHandle<sys::cohort_group> {
        LockedHandle::new(self.raw, self.tied)
    }

    /// Starts a group of a network.
    pub fn builder(symbol: &Symbol) -> GroupBuilder<'_> {
        GroupBuilder::new(symbol)
    }

    /// The rows of each device.
    pub fn slices(&self) -> Result<Vec<Range<usize>>> {
        (0..self.num_contexts)
            .map(|device| {
                let (mut begin, mut end) = (0, 0);
                check(unsafe { sys::cohort_group_slice(*self.at(), device, &mut begin, &mut end) })?;
                Ok(begin as usize..end as usize)
            })
            .collect()
    }

    /// Samples in a batch; None if nothing has a batch axis.
    pub fn batch_size(&self) -> Result<Option<usize>> {
        let mut size = 0;
        check(unsafe { sys::cohort_group_batch_size(*self.at(), &mut size) })?;
        Ok(if size == 0 { None } else { Some(size as usize) })
    }

    fn axes(&self, list: i32) -> Result<Vec<Option<usize>>> {
        (0..self.num(list)?)
            .map(|i| {
                let mut axis = 0;
                check(unsafe { sys::cohort_group_axis(*self.at(), list, i, &mut axis) })?;
                Ok(usize::try_from(axis).ok())
            })
            .collect()
    }

    /// The batch axis of each data descriptor; None if it has none.
    pub fn data_axes(&self) -> Result<Vec<Option<usize>>> {
        self.axes(sys::COHORT_GROUP_DATA)
    }

    /// The batch axis of each label descriptor.
    pub fn label_axes(&self) -> Result<Vec<Option<usize>>> {
        self.axes(sys::COHORT_GROUP_LABELS)
    }

    /// The batch axis of each output.
    pub fn output_axes(&self) -> Result<Vec<Option<usize>>> {
        self.axes(sys::COHORT_GROUP_OUTPUTS)
    }

    /// Names and shapes of the joined outputs, known before any pass.
    pub fn output_shapes(&self) -> Result<Vec<(String, Vec<usize>)>> {
        let mut made = null_mut();
        check(unsafe { sys::cohort_group_output_shapes(*self.at(), &mut made) })?;
        Ok(Descs::adopt(made).list()?.into_iter().map(|(name, shape)| (name, shape.unwrap_or_default())).collect())
    }

    /// One device's executor, borrowed from the group.
    pub fn executor(&mut self, device: usize) -> Result<GroupExecutor<'_>> {
        let mut executor = Executor::out(|out| unsafe { sys::cohort_group_executor(*self.at(), device, out) })?;
        executor.tied = self.tied;
        Ok(GroupExecutor { executor, _group: PhantomData })
    }

    fn num(&self, list: i32) -> Result<usize> {
        let mut num = 0;
        check(unsafe { sys::cohort_group_num_arrays(*self.at(), list, &mut num) })?;
        Ok(num)
    }

    /// Changes the shapes of the batch; parameters stay.
    pub fn reshape(&mut self, data: &[Desc], label: &[Desc]) -> Result<()> {
        let (data, label) = (to_descs(data)?, to_descs(label)?);
        check(unsafe { sys::cohort_group_reshape(*self.at(), data.raw(), label.raw()) })
    }

    /// Loads a batch and runs a forward pass.
    pub fn forward(&mut self, data: &[&NDArray], label: &[&NDArray], is_train: bool) -> Result<()> {
        let (data, label) = (pointers(data), pointers(label));
        check(unsafe {
            sys::cohort_group_forward(
                *self.at(),
                data.as_ptr(),
                data.len(),
                if label.is_empty() { null() } else { label.as_ptr() },
                label.len(),
                is_train.into(),
            )
        })
    }

    /// Like `forward`, with a batch that is sliced already: the arrays of each device.
    pub fn forward_presliced(&mut self, data: &[Vec<&NDArray>], label: &[Vec<&NDArray>], is_train: bool) -> Result<()> {
        let ((arrays, num_data), (labels, num_label)) = (flat(data, "batch")?, flat(label, "batch")?);
        if !label.is_empty() && label.len() != data.len() {
            return Err(Error::invalid(
                format!("label: expected {} devices, found {}", data.len(), label.len()),
                "label",
            ));
        }
        check(unsafe {
            sys::cohort_group_forward_presliced(
                *self.at(),
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
        check(unsafe { sys::cohort_group_backward(*self.at(), grads.as_ptr(), grads.len()) })
    }

    /// Updates every parameter that has a gradient.
    pub fn update(&mut self, optimizer: &Optimizer, how: Update) -> Result<()> {
        check(unsafe { sys::cohort_group_update(*self.at(), optimizer.raw(), how.code()) })
    }

    /// Updates a metric once per device.
    pub fn update_metric(&mut self, metric: &mut Metric, labels: &[&NDArray]) -> Result<()> {
        let labels = pointers(labels);
        check(unsafe { sys::cohort_group_update_metric(*self.at(), metric.raw(), labels.as_ptr(), labels.len()) })
    }

    fn merged(&self, list: i32) -> Result<Vec<NDArray>> {
        let merge = |i| NDArray::maybe(|out| unsafe { sys::cohort_group_merged(*self.at(), list, i, out) }).transpose();
        (0..self.num(list)?).filter_map(merge).collect()
    }

    /// The outputs, joined over the devices; valid until the next pass.
    pub fn outputs(&self) -> Result<Vec<NDArray>> {
        self.merged(sys::COHORT_GROUP_OUTPUTS)
    }

    /// One output.
    pub fn output(&self, index: usize) -> Result<NDArray> {
        NDArray::out(|out| unsafe { sys::cohort_group_merged(*self.at(), sys::COHORT_GROUP_OUTPUTS, index, out) })
    }

    /// The existing gradients of the data, joined over the devices.
    pub fn input_grads(&self) -> Result<Vec<NDArray>> {
        self.array(sys::COHORT_GROUP_INPUT_GRADS, 0, 0)?; // an error if there are none
        self.merged(sys::COHORT_GROUP_INPUT_GRADS)
    }

    fn of_device(&self, list: i32, device: usize) -> Result<BTreeMap<String, NDArray>> {
        Arrays::out(|out| unsafe { sys::cohort_group_arrays(*self.at(), list, device, out) })?.map()
    }

    /// The parameters of one device, live.
    pub fn device_params(&self, device: usize) -> Result<BTreeMap<String, NDArray>> {
        self.of_device(sys::COHORT_GROUP_PARAMS, device)
    }

    /// The parameters' gradients on one device, live.
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

    /// The existing gradients of one device's data, in order.
    pub fn device_input_grads(&self, device: usize) -> Result<Vec<NDArray>> {
        self.array(sys::COHORT_GROUP_INPUT_GRADS, 0, device)?;
        self.list_of_device(sys::COHORT_GROUP_INPUT_GRADS, device)
    }

    fn list_of_device(&self, list: i32, device: usize) -> Result<Vec<NDArray>> {
        (0..self.num(list)?).filter_map(|i| self.array(list, i, device).transpose()).collect()
    }

    fn array(&self, list: i32, index: usize, device: usize) -> Result<Option<NDArray>> {
        NDArray::maybe(|out| unsafe { sys::cohort_group_array(*self.at(), list, index, device, out) })
    }

    /// Names of the parameters, in the order of the arguments.
    pub fn param_names(&self) -> Result<Vec<String>> {
        let list = sys::COHORT_GROUP_PARAMS;
        names(self.num(list)?, |i, out| unsafe { sys::cohort_group_name(*self.at(), list, i, out) })
    }

    /// Copies parameters and auxiliary states to every device. All are required.
    pub fn set_params(&mut self, args: &Params, aux: &Params) -> Result<()> {
        self.assign_params(args, aux, false, false).map(drop)
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
            sys::cohort_group_assign_params(*self.at(), given.0, given.1, allow_missing, allow_extra, &mut missing)
        })?;
        Ok(Descs::adopt(missing).list()?.into_iter().map(|(name, _)| name).collect())
    }

    /// Parameters and auxiliary states, as means over the devices.
    pub fn params(&self) -> Result<(Params, Params)> {
        let (mut args, mut aux) = (null_mut(), null_mut());
        check(unsafe { sys::cohort_group_copy_params(*self.at(), &mut args, &mut aux) })?;
        let (args, aux) = (Arrays::adopt(args), Arrays::adopt(aux));
        Ok((args.map()?, aux.map()?))
    }

    /// Writes the means over the devices into given arrays, of which there must be one for each.
    pub fn params_into(&self, args: &Params, aux: &Params) -> Result<()> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        check(unsafe { sys::cohort_group_get_params(*self.at(), args.raw(), aux.raw()) })
    }

    /// Fills all parameters with an initializer, equally on every device.
    pub fn init_params(&mut self, initializer: &Initializer) -> Result<()> {
        let (args, aux) = self.params()?;
        initializer.apply(Some(&self.symbol), &args)?;
        initializer.apply(Some(&self.symbol), &aux)?;
        self.set_params(&args, &aux)
    }

    /// The present loss scale.
    pub fn loss_scale(&self) -> Result<LossScaleState> {
        let at = self.at();
        LossScaleState::out(|scale, good, skipped| unsafe { sys::cohort_group_loss_scale(*at, scale, good, skipped) })
    }

    /// Sets the loss scale.
    pub fn set_loss_scale(&mut self, scale: f64, num_good: i32) -> Result<()> {
        check(unsafe { sys::cohort_group_set_loss_scale(*self.at(), scale, num_good) })
    }

    /// Called once after [`Optimizer::load_states`] and the parameters were set: random operators and the loss scale go
    /// on from where they were when the states were saved, with `keep_device_aux` the moving statistics of each device,
    /// too. Training then gives the same bits as if it had not been interrupted.
    pub fn resume(&mut self, optimizer: &Optimizer) -> Result<()> {
        check(unsafe { sys::cohort_group_resume(*self.at(), optimizer.raw()) })
    }

    /// The state of the random operators: which numbers they draw next.
    pub fn random_state(&self) -> Result<Vec<u8>> {
        let (at, mut bytes) = (self.at(), 0);
        check(unsafe { sys::cohort_group_random_state(*at, null_mut(), 0, &mut bytes) })?;
        let mut found = vec![0u8; bytes];
        let into = found.as_mut_ptr() as *mut c_void;
        check(unsafe { sys::cohort_group_random_state(*at, into, bytes, &mut bytes) })?;
        Ok(found)
    }

    /// Sets the result of [`Group::random_state`]: they draw the same numbers again.
    pub fn set_random_state(&mut self, state: &[u8]) -> Result<()> {
        let from = state.as_ptr() as *const c_void;
        check(unsafe { sys::cohort_group_set_random_state(*self.at(), from, state.len()) })
    }

    /// The states, joined over the devices; those that have a batch axis.
    pub fn states(&self) -> Result<Vec<NDArray>> {
        self.merged(sys::COHORT_GROUP_STATES)
    }

    /// The states of one device, live, in order.
    pub fn device_states(&self, device: usize) -> Result<Vec<NDArray>> {
        self.list_of_device(sys::COHORT_GROUP_STATES, device)
    }

    /// Sets the states of every device: for each state an array per device. They stay until they are set again.
    pub fn set_states(&mut self, states: &[Vec<&NDArray>]) -> Result<()> {
        let (arrays, num_devices) = flat(states, "states")?;
        check(unsafe { sys::cohort_group_set_states(*self.at(), arrays.as_ptr(), states.len(), num_devices, null()) })
    }

    /// Sets all states to one number.
    pub fn fill_states(&mut self, value: f64) -> Result<()> {
        check(unsafe { sys::cohort_group_set_states(*self.at(), null(), 0, 0, &value) })
    }

    /// For callers that expect a group that is not bound yet: always an error.
    #[doc(hidden)]
    pub fn bind(&mut self, data: &[Desc], label: &[Desc]) -> Result<()> {
        let (data, label) = (to_descs(data)?, to_descs(label)?);
        check(unsafe { sys::cohort_group_bind(*self.at(), data.raw(), label.raw(), null_mut(), 0) })
    }

    /// Binds again: new arrays of zeros for other shapes.
    pub fn rebind(&mut self, data: &[Desc], label: &[Desc]) -> Result<()> {
        let (data, label) = (to_descs(data)?, to_descs(label)?);
        check(unsafe { sys::cohort_group_bind(*self.at(), data.raw(), label.raw(), null_mut(), 1) })
    }

    /// Splits a batch over the devices and copies it there; [`Group::run`] computes.
    pub fn load(&mut self, data: &[&NDArray], label: &[&NDArray]) -> Result<()> {
        let (data, label) = (pointers(data), pointers(label));
        check(unsafe { sys::cohort_group_load(*self.at(), data.as_ptr(), data.len(), label.as_ptr(), label.len()) })
    }

    /// Runs a forward pass over the loaded batch.
    pub fn run(&mut self, is_train: bool) -> Result<()> {
        check(unsafe { sys::cohort_group_run(*self.at(), is_train.into()) })
    }

    /// The memory of one device in bytes.
    pub fn memory(&self, device: usize) -> Result<MemoryInfo> {
        MemoryInfo::out(|out| unsafe { sys::cohort_group_memory(*self.at(), device, out) })
    }

    /// The devices.
    pub fn contexts(&self) -> Result<Vec<Context>> {
        (0..self.num_contexts)
            .map(|device| {
                let mut found = Context::cpu(0).to_raw();
                check(unsafe { sys::cohort_group_context(*self.at(), device, &mut found) })?;
                Ok(Context::from_raw(found))
            })
            .collect()
    }

    /// Names and shapes of the bound data.
    pub fn data_shapes(&self) -> Result<Vec<(String, Vec<usize>)>> {
        self.shapes(sys::COHORT_GROUP_DATA)
    }

    /// Names and shapes of the bound labels.
    pub fn label_shapes(&self) -> Result<Vec<(String, Vec<usize>)>> {
        self.shapes(sys::COHORT_GROUP_LABELS)
    }

    fn shapes(&self, list: i32) -> Result<Vec<(String, Vec<usize>)>> {
        let mut made = null_mut();
        check(unsafe { sys::cohort_group_descs(*self.at(), list, &mut made) })?;
        Ok(Descs::adopt(made).list()?.into_iter().map(|(name, shape)| (name, shape.unwrap_or_default())).collect())
    }

    /// The network.
    pub fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    /// Calls a function with name and array of each output of each operator, device after device.
    pub fn set_monitor(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        self.monitor_with(function, false)
    }

    /// The same, with the inputs of each operator before its outputs.
    pub fn set_monitor_all(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        self.monitor_with(function, true)
    }

    fn monitor_with(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static, all: bool) -> Result<()> {
        let made = Watch::with(function, |see, user_data| unsafe {
            sys::cohort_group_set_monitor(*self.at(), see, user_data, all.into())
        })?;
        self.monitor = Some(made);
        Ok(())
    }

    /// Removes the monitor function.
    pub fn clear_monitor(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_group_set_monitor(*self.at(), None, null_mut(), 0) })?;
        self.monitor = None;
        Ok(())
    }

    /// Waits for all queued work.
    pub fn wait(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_group_wait(*self.at()) })
    }

    /// Like `update_metric`, with labels that are sliced already: those of each device.
    pub fn update_metric_presliced(&mut self, metric: &mut Metric, labels: &[Vec<&NDArray>]) -> Result<()> {
        let (flat, num) = flat(labels, "labels")?;
        check(unsafe {
            let num_devices = labels.len();
            sys::cohort_group_update_metric_presliced(*self.at(), metric.raw(), num_devices, flat.as_ptr(), num)
        })
    }
}

/// The rows of each device, for a batch size and shares.
pub fn split_slices(batch_size: usize, workload: &[f64], rounding: Rounding) -> Result<Vec<Range<usize>>> {
    let (mut begin, mut end) = (vec![0i64; workload.len()], vec![0i64; workload.len()]);
    let size = i64::try_from(batch_size).unwrap_or(i64::MAX);
    check(unsafe {
        let (begin, end) = (begin.as_mut_ptr(), end.as_mut_ptr());
        sys::cohort_split_slices(size, workload.as_ptr(), workload.len(), rounding.code(), begin, end)
    })?;
    Ok(begin.into_iter().zip(end).map(|(begin, end)| begin as usize..end as usize).collect())
}

/// Arrays that are sliced already in one list, and the number per device.
pub(crate) fn flat(devices: &[Vec<&NDArray>], what: &str) -> Result<(Vec<*mut sys::cohort_ndarray>, usize)> {
    let num = devices.first().map_or(0, |device| device.len());
    if devices.iter().any(|device| device.len() != num) {
        return Err(Error::invalid(format!("{}: expected {} for each device", what, num), what));
    }
    Ok((devices.iter().flat_map(|device| pointers(device)).collect(), num))
}

/// An executor of a group. It can be read and given parameters; the group runs it.
pub struct GroupExecutor<'a> {
    executor: Executor,
    _group: PhantomData<&'a mut Group>,
}

impl GroupExecutor<'_> {
    /// Copies parameters to this device only.
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
