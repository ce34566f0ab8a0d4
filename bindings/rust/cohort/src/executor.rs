// SPDX-License-Identifier: Apache-2.0
//! Executors: a network bound to arrays.
use crate::arrays::{Arrays, Descs};
use crate::error::{c_text, check, keep_panic, panicking, text, Result};
use crate::model::Params;
use crate::ndarray::{names, pointers, Context, NDArray};
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};

/// What backward does with the gradient of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradReq {
    /// There is none.
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

    /// The word for it: "null", "write" or "add".
    pub fn word(self) -> &'static str {
        match self {
            GradReq::Null => "null",
            GradReq::Write => "write",
            GradReq::Add => "add",
        }
    }
}

/// A function that sees arrays while they are computed.
pub(crate) type Monitor = Box<dyn FnMut(&str, &NDArray) + Send>;

/// Runs what a callback does, and keeps its panic for behind the call. After one nothing runs in that call any more.
pub(crate) fn guarded(run: impl FnOnce() -> i32) -> i32 {
    if panicking() {
        return 1;
    }
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        keep_panic(payload);
        1
    })
}

pub(crate) unsafe extern "C" fn see(name: *const c_char, array: *mut sys::cohort_ndarray, user_data: *mut c_void) {
    guarded(|| {
        let monitor = &mut *(user_data as *mut Monitor);
        if let Ok(array) = NDArray::share(array) {
            monitor(&text(name), &array);
        }
        0
    });
}

/// A network on arrays of its own, or of the caller's. Passes are queued; reading an array waits for them.
pub struct Executor {
    raw: *mut sys::cohort_executor,
    monitor: Option<Box<Monitor>>, // outlives the handle: see drop()
}

// SAFETY: any thread may use a handle, one at a time; the function is Send.
unsafe impl Send for Executor {}

impl Drop for Executor {
    fn drop(&mut self) {
        // SAFETY: nothing is called any more once the callback is taken away, which the executor of a group needs.
        unsafe {
            if self.monitor.is_some() {
                sys::cohort_error_free(sys::cohort_executor_set_monitor(self.raw, None, null_mut(), 0));
            }
            sys::cohort_executor_free(self.raw);
        }
    }
}

impl Executor {
    pub(crate) fn out(call: impl FnOnce(*mut *mut sys::cohort_executor) -> *mut sys::cohort_error) -> Result<Executor> {
        let mut raw = null_mut();
        check(call(&mut raw))?;
        Ok(Executor { raw, monitor: None })
    }

    /// Binds to arrays of zeros, made for the shapes that are known by name.
    pub fn simple_bind(
        symbol: &Symbol,
        context: &Context,
        shapes: &[(&str, &[usize])],
        grad_req: GradReq,
    ) -> Result<Executor> {
        let (known, context) = (Descs::known(shapes)?, context.to_raw());
        let word = c_text(grad_req.word(), "grad_req")?;
        // SAFETY: zero in any field is its default.
        let mut options: sys::cohort_executor_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        options.grad_req = word.as_ptr();
        Executor::out(|out| unsafe {
            sys::cohort_executor_simple_bind(symbol.raw(), &context, known.raw(), &options, out)
        })
    }

    /// Binds to arrays that are given, each in the order of the symbol's list; the arrays are used as they are.
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

    /// For other shapes; what the two share, this one has from now on.
    pub fn reshape(self, shapes: &[(&str, &[usize])]) -> Result<Executor> {
        let known = Descs::known(shapes)?;
        let mut options: sys::cohort_reshape_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        options.partial_shaping = 1;
        options.allow_up_sizing = 1;
        let mut made =
            Executor::out(|out| unsafe { sys::cohort_executor_reshape(self.raw, known.raw(), &options, out) })?;
        let mut old = self;
        made.monitor = old.monitor.take();
        Ok(made)
    }

    /// Copies arrays into arguments by name.
    pub fn set_inputs(&mut self, inputs: &[(&str, &NDArray)]) -> Result<()> {
        let inputs = Arrays::of(inputs.iter().copied())?;
        check(unsafe { sys::cohort_executor_set_inputs(self.raw, inputs.raw()) })
    }

    /// Runs a forward pass over what the arguments hold; the outputs.
    pub fn forward(&mut self, is_train: bool) -> Result<Vec<NDArray>> {
        check(unsafe { sys::cohort_executor_forward(self.raw, is_train.into()) })?;
        self.outputs()
    }

    /// Runs a backward pass. Losses need no head gradients.
    pub fn backward(&mut self, head_grads: &[&NDArray]) -> Result<()> {
        let grads = pointers(head_grads);
        check(unsafe { sys::cohort_executor_backward(self.raw, grads.as_ptr(), grads.len(), 1) })
    }

    fn list(&self, list: i32) -> Result<Arrays> {
        Arrays::out(|out| unsafe { sys::cohort_executor_arrays(self.raw, list, out) })
    }

    /// The outputs, live.
    pub fn outputs(&self) -> Result<Vec<NDArray>> {
        Ok(self.list(sys::COHORT_EXECUTOR_OUTPUTS)?.list()?.into_iter().flatten().collect())
    }

    /// The arguments by name, live.
    pub fn args(&self) -> Result<BTreeMap<String, NDArray>> {
        self.list(sys::COHORT_EXECUTOR_ARGS)?.map()
    }

    /// The gradients by the names of their arguments, live; those that there are.
    pub fn grads(&self) -> Result<BTreeMap<String, NDArray>> {
        self.list(sys::COHORT_EXECUTOR_GRADS)?.map()
    }

    /// What backward does with the gradient of each argument.
    pub fn grad_reqs(&self) -> Result<BTreeMap<String, GradReq>> {
        let list = sys::COHORT_EXECUTOR_ARGS;
        let mut num = 0;
        check(unsafe { sys::cohort_executor_num_arrays(self.raw, list, &mut num) })?;
        let keys = names(num, |i, out| unsafe { sys::cohort_executor_name(self.raw, list, i, out) })?;
        keys.into_iter()
            .enumerate()
            .map(|(i, name)| {
                let mut code = 0;
                check(unsafe { sys::cohort_executor_grad_req(self.raw, i, &mut code) })?;
                Ok((name, GradReq::of(code)))
            })
            .collect()
    }

    /// Copies parameters in by name. Unknown names are errors, unless `allow_extra`.
    pub fn copy_params_from(&mut self, args: &Params, aux: &Params, allow_extra: bool) -> Result<()> {
        let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
        check(unsafe { sys::cohort_executor_copy_params_from(self.raw, args.raw(), aux.raw(), allow_extra.into()) })
    }

    /// The auxiliary states by name, live.
    pub fn aux(&self) -> Result<BTreeMap<String, NDArray>> {
        self.list(sys::COHORT_EXECUTOR_AUX)?.map()
    }

    /// Calls a function with name and array of each output of each operator while a pass runs. What it panics with goes on behind
    /// that call.
    pub fn set_monitor(&mut self, function: impl FnMut(&str, &NDArray) + Send + 'static) -> Result<()> {
        let mut boxed: Box<Monitor> = Box::new(Box::new(function));
        let user_data = &mut *boxed as *mut Monitor as *mut c_void;
        check(unsafe { sys::cohort_executor_set_monitor(self.raw, Some(see), user_data, 0) })?;
        self.monitor = Some(boxed);
        Ok(())
    }

    /// Waits for all queued work.
    pub fn wait(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_executor_wait(self.raw) })
    }
}
