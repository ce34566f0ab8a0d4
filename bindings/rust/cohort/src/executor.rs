// SPDX-License-Identifier: Apache-2.0
//! Executors: a network bound to arrays.
use crate::arrays::{Arrays, Descs};
use crate::error::{check, guarded, text, Error, Result};
use crate::executor_builder::ExecutorBuilder;
use crate::model::Params;
use crate::ndarray::{names, pointers, Context, MemoryInfo, NDArray};
use crate::shared_lock::LockedHandle;
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// The gradient request of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradReq {
    /// No gradient.
    Null,
    /// Each backward overwrites it.
    Write,
    /// Each backward adds to it.
    Add,
}

impl GradReq {
    pub(crate) fn of(code: i32) -> GradReq {
        match code {
            sys::COHORT_GRAD_WRITE => GradReq::Write,
            sys::COHORT_GRAD_ADD => GradReq::Add,
            _ => GradReq::Null,
        }
    }

    /// Parses "null", "write" or "add".
    pub fn parse(word: &str) -> Result<GradReq> {
        let found = [GradReq::Null, GradReq::Write, GradReq::Add].into_iter().find(|req| req.word() == word);
        found.ok_or_else(|| {
            Error::invalid(format!("grad_req: expected null, write or add, found {:?}", word), "grad_req")
        })
    }

    pub(crate) fn code(self) -> i32 {
        match self {
            GradReq::Null => sys::COHORT_GRAD_NULL,
            GradReq::Write => sys::COHORT_GRAD_WRITE,
            GradReq::Add => sys::COHORT_GRAD_ADD,
        }
    }

    /// The word for it: "null", "write" or "add".
    pub fn word(self) -> &'static str {
        match self {
            GradReq::Null => "null",
            GradReq::Write => "write",
            GradReq::Add => "add",
        }
    }
}

/// A function that is called with arrays while they are computed. An executor and those reshaped from it share it.
pub(crate) struct Watch(UnsafeCell<Watching>);
type Watching = Box<dyn FnMut(&str, &NDArray) + Send>;

// SAFETY: the function is called only inside a pass, and the executors that share it are locked together.
unsafe impl Sync for Watch {}

impl Watch {
    /// Passes a function to a `_set_monitor`; it lives as long as the returned object.
    pub(crate) fn with(
        function: impl FnMut(&str, &NDArray) + Send + 'static,
        set: impl FnOnce(sys::cohort_monitor_fn, *mut c_void) -> *mut sys::cohort_error,
    ) -> Result<Arc<Watch>> {
        let made = Arc::new(Watch(UnsafeCell::new(Box::new(function))));
        check(set(Some(see), Arc::as_ptr(&made) as *mut c_void))?;
        Ok(made)
    }
}

unsafe extern "C" fn see(name: *const c_char, array: *mut sys::cohort_ndarray, user_data: *mut c_void) {
    guarded(|| {
        let monitor = &mut *(*(user_data as *const Watch)).0.get();
        monitor(&text(name), &NDArray::share(array)?);
        Ok(())
    });
}

/// A network bound to its own or the caller's arrays. Passes are queued; reading an array waits for them.
pub struct Executor {
    raw: *mut sys::cohort_executor,
    monitor: Option<Arc<Watch>>, // outlives the handle: see drop()
    pub(crate) tied: bool,
}

// SAFETY: any thread may use a handle, one at a time; the function is Send.
unsafe impl Send for Executor {}

impl Drop for Executor {
    fn drop(&mut self) {
        // SAFETY: nothing is called any more once the callback has been removed; the executor of a group needs that.
        unsafe {
            if self.monitor.is_some() {
                sys::cohort_error_free(sys::cohort_executor_set_monitor(*self.at(), None, null_mut(), 0));
            }
            sys::cohort_executor_free(*self.at());
        }
    }
}

impl Executor {
    pub(crate) fn out(call: impl FnOnce(*mut *mut sys::cohort_executor) -> *mut sys::cohort_error) -> Result<Executor> {
        let mut raw = null_mut();
        check(call(&mut raw))?;
        Ok(Executor { raw, monitor: None, tied: false })
    }

    pub(crate) fn at(&self) -> LockedHandle<sys::cohort_executor> {
        LockedHandle::new(self.raw, self.tied)
    }

    /// Starts an executor with more settings than [`Executor::simple_bind`] and [`Executor::bind`] have.
    pub fn builder(symbol: &Symbol) -> ExecutorBuilder<'_> {
        ExecutorBuilder::new(symbol)
    }

    /// Binds to arrays of zeros, for shapes given by name.
    pub fn simple_bind(
        symbol: &Symbol,
        context: &Context,
        shapes: &[(&str, &[usize])],
        grad_req: GradReq,
    ) -> Result<Executor> {
        let begun = Executor::builder(symbol).context(context).grad_req(grad_req);
        shapes.iter().fold(begun, |made, (name, shape)| made.shape(name, shape)).allocate()
    }

    /// Binds to given arrays, each list in the symbol's order, without copying them.
    pub fn bind(
        symbol: &Symbol,
        context: &Context,
        args: &[&NDArray],
        grads: Option<&[Option<&NDArray>]>,
        aux: &[&NDArray],
    ) -> Result<Executor> {
        let context = context.to_raw();
        let (args, aux) = (pointers(args), pointers(aux));
        let grads: Option<Vec<_>> =
            grads.map(|list| list.iter().map(|grad| grad.map_or(null_mut(), |array| array.raw())).collect());
        if let Some(list) = &grads {
            if list.len() != args.len() {
                let message = format!("grads: expected {}, one for each argument, found {}", args.len(), list.len());
                return Err(crate::Error::invalid(message, "grads"));
            }
        }
        Executor::out(|out| unsafe {
            sys::cohort_executor_bind(
                symbol.raw(),
                &context,
                args.as_ptr(),
                args.len(),
                grads.as_ref().map_or(null(), |list| list.as_ptr()),
                null(),
                aux.as_ptr(),
                aux.len(),
                null(),
                out,
            )
        })
    }

    /// Rebinds for other shapes; this executor is consumed.
    pub fn reshape(self, shapes: &[(&str, &[usize])]) -> Result<Executor> {
        let mut old = self;
        let (tied, mut made) = (old.tied, old.reshaped(shapes, true, true)?);
        made.tied = tied; // no other executor shares its memory from now on
        Ok(made)
    }

    /// Another executor for other shapes, besides this one. They share memory, so threads that use them are serialised.
    ///
    /// `partial_shaping`: arguments that are not named, and auxiliary states, may change shape, too. `allow_up_sizing`: arguments
    /// may grow; they are then new arrays of zeros.
    pub fn reshaped(
        &mut self,
        shapes: &[(&str, &[usize])],
        partial_shaping: bool,
        allow_up_sizing: bool,
    ) -> Result<Executor> {
        let known = Descs::known(shapes)?;
        // SAFETY: all zeros is a valid value, the defaults.
        let mut options: sys::cohort_reshape_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        options.partial_shaping = partial_shaping.into();
        options.allow_up_sizing = allow_up_sizing.into();
        let mut made =
            Executor::out(|out| unsafe { sys::cohort_executor_reshape(*self.at(), known.raw(), &options, out) })?;
        self.tied = true;
        made.tied = true;
        made.monitor = self.monitor.clone();
        Ok(made)
    }

    /// Copies arrays into arguments by name.
    pub fn set_inputs(&mut self, inputs: &[(&str, &NDArray)]) -> Result<()> {
        let inputs = Arrays::of(inputs.iter().copied())?;
        check(unsafe { sys::cohort_executor_set_inputs(*self.at(), inputs.raw()) })
    }

    /// Runs a forward pass over the arguments' values; returns the outputs.
    pub fn forward(&mut self, is_train: bool) -> Result<Vec<NDArray>> {
        check(unsafe { sys::cohort_executor_forward(*self.at(), is_train.into()) })?;
        self.outputs()
    }

    /// Runs a backward pass. Losses need no head gradients.
    pub fn backward(&mut self, head_grads: &[&NDArray]) -> Result<()> {
        let grads = pointers(head_grads);
        check(unsafe { sys::cohort_executor_backward(*self.at(), grads.as_ptr(), grads.len(), 1) })
    }

    /// Like `backward`, with head gradients by the names of the outputs.
    pub fn backward_named(&mut self, head_grads: &Params) -> Result<()> {
        let names = self.names(sys::COHORT_EXECUTOR_OUTPUTS)?;
        let grads: Vec<&NDArray> = names
            .iter()
            .map(|name| {
                let found = head_grads.get(name);
                found.ok_or_else(|| Error::name(format!("head gradients: there is none for '{}'", name), name))
            })
            .collect::<Result<_>>()?;
        self.backward(&grads)
    }

    /// Runs one node of the network, beginning with `step` 0; returns how many are left.
    pub fn partial_forward(&mut self, is_train: bool, step: i32) -> Result<usize> {
        let mut left = 0;
        check(unsafe { sys::cohort_executor_partial_forward(*self.at(), is_train.into(), step, &mut left) })?;
        Ok(left as usize)
    }

    /// The network.
    pub fn symbol(&self) -> Result<Symbol> {
        Symbol::out(|out| unsafe { sys::cohort_executor_symbol(*self.at(), out) })
    }

    /// Its memory in bytes.
    pub fn memory(&self) -> Result<MemoryInfo> {
        MemoryInfo::out(|out| unsafe { sys::cohort_executor_memory(*self.at(), out) })
    }

    /// The context it runs on.
    pub fn context(&self) -> Result<Context> {
        let mut found = Context::cpu(0).to_raw();
        check(unsafe { sys::cohort_executor_context(*self.at(), &mut found) })?;
        Ok(Context::from_raw(found))
    }

    /// The plan as text: the nodes, then the steps of the latest pass, each with its operations and bytes, the least time that
    /// the machine needs for them, and the mean time it took while a [`Trace`](crate::Trace) was running.
    pub fn debug_text(&self) -> Result<String> {
        let (at, mut found) = (self.at(), null());
        check(unsafe { sys::cohort_executor_debug_text(*at, &mut found) })?;
        Ok(unsafe { text(found) })
    }

    fn names(&self, list: i32) -> Result<Vec<String>> {
        let (at, mut num) = (self.at(), 0);
        check(unsafe { sys::cohort_executor_num_arrays(*at, list, &mut num) })?;
        names(num, |i, out| unsafe { sys::cohort_executor_name(*at, list, i, out) })
    }

    fn list(&self, list: i32) -> Result<Arrays> {
        Arrays::out(|out| unsafe { sys::cohort_executor_arrays(*self.at(), list, out) })
    }

    /// The outputs, live.
    pub fn outputs(&self) -> Result<Vec<NDArray>> {
        Ok(self.list(sys::COHORT_EXECUTOR_OUTPUTS)?.list()?.into_iter().flatten().collect())
    }

    /// The arguments by name, live.
    pub fn args(&self) -> Result<BTreeMap<String, NDArray>> {
        self.list(sys::COHORT_EXECUTOR_ARGS)?.map()
    }

    /// The existing gradients by the names of their arguments, live.
    pub fn grads(&self) -> Result<BTreeMap<String, NDArray>> {
        self.list(sys::COHORT_EXECUTOR_GRADS)?.map()
    }

    /// The gradient request of each argument.
    pub fn grad_reqs(&self) -> Result<BTreeMap<String, GradReq>> {
        let keys = self.names(sys::COHORT_EXECUTOR_ARGS)?;
        keys.into_iter()
            .enumerate()
            .map(|(i, name)| {
                let mut code = 0;
                check(unsafe { sys::cohort_executor_grad_req(*self.at(), i, &mut code) })?;
                Ok((name, GradReq::of(code)))
            })
            .collect()
    }

    /// Copies parameters in by name. Unknown names are errors, unless `allow_extra`.
    pub fn copy_params_from(&mut self, args: &Params, aux: &Params, allow_extra: bool) -> Result<()> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        check(unsafe { sys::cohort_executor_copy_params_from(*self.at(), args.raw(), aux.raw(), allow_extra.into()) })
    }

    /// The auxiliary states by name, live.
    pub fn aux(&self) -> Result<BTreeMap<String, NDArray>> {
        self.list(sys::COHORT_EXECUTOR_AUX)?.map()
    }

    /// Calls a function with name and array of each output of each operator during a pass. A panic of the function is resumed
    /// after that call.
    pub fn set_monitor(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        self.monitor_with(function, false)
    }

    /// The same, with the inputs of each operator before its outputs.
    pub fn set_monitor_all(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        self.monitor_with(function, true)
    }

    /// Removes the monitor function.
    pub fn clear_monitor(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_executor_set_monitor(*self.at(), None, null_mut(), 0) })?;
        self.monitor = None;
        Ok(())
    }

    fn monitor_with(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static, all: bool) -> Result<()> {
        let made = Watch::with(function, |see, user_data| unsafe {
            sys::cohort_executor_set_monitor(*self.at(), see, user_data, all.into())
        })?;
        self.monitor = Some(made);
        Ok(())
    }

    /// The state of the random operators: which numbers they draw next.
    pub fn random_state(&self) -> Result<Vec<u8>> {
        let (at, mut bytes) = (self.at(), 0);
        check(unsafe { sys::cohort_executor_random_state(*at, null_mut(), 0, &mut bytes) })?;
        let mut found = vec![0u8; bytes];
        let into = found.as_mut_ptr() as *mut c_void;
        check(unsafe { sys::cohort_executor_random_state(*at, into, bytes, &mut bytes) })?;
        Ok(found)
    }

    /// Sets the result of [`Executor::random_state`]: they draw the same numbers again.
    pub fn set_random_state(&mut self, state: &[u8]) -> Result<()> {
        let from = state.as_ptr() as *const c_void;
        check(unsafe { sys::cohort_executor_set_random_state(*self.at(), from, state.len()) })
    }

    /// Waits for all queued work.
    pub fn wait(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_executor_wait(*self.at()) })
    }
}
