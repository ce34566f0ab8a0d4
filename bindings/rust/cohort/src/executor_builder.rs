// SPDX-License-Identifier: Apache-2.0
//! Settings of an executor.
use crate::arrays::Descs;
use crate::error::{Error, Result, Texts};
use crate::executor::{Executor, GradReq};
use crate::model::Params;
use crate::ndarray::{Context, Dtype, NDArray};
use crate::precision::{set_precision, Precision};
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::ptr::{null, null_mut};

/// Gradient requests in one of three forms.
#[derive(Debug)]
enum Requests {
    All(GradReq),
    Each(Vec<GradReq>),
    Named(Vec<(String, GradReq)>),
}

/// Memory that the options point to.
struct Kept {
    groups: Texts,
    contexts: Vec<sys::cohort_context>,
    names: (Texts, Texts),
}

/// The settings of an executor: [`ExecutorBuilder::allocate`] binds it to new arrays, [`ExecutorBuilder::bind`] to given ones.
#[derive(Debug)]
pub struct ExecutorBuilder<'a> {
    symbol: &'a Symbol,
    context: Context,
    shapes: Vec<(String, Vec<usize>)>,
    dtypes: Vec<(String, Dtype)>,
    requests: Requests,
    shared: Option<(&'a mut Executor, Vec<String>)>,
    ctx_groups: Vec<(String, Context)>,
    num_threads: i32,
    seed: u64,
    precision: Precision,
}

impl<'a> ExecutorBuilder<'a> {
    pub(crate) fn new(symbol: &'a Symbol) -> ExecutorBuilder<'a> {
        ExecutorBuilder {
            symbol,
            context: Context::cpu(0),
            shapes: Vec::new(),
            dtypes: Vec::new(),
            requests: Requests::All(GradReq::Write),
            shared: None,
            ctx_groups: Vec::new(),
            num_threads: 0,
            seed: 0,
            precision: Precision::default(),
        }
    }

    /// The context; the default is cpu(0).
    pub fn context(mut self, context: &Context) -> Self {
        self.context = *context;
        self
    }

    /// The shape of an argument or auxiliary state. Shapes that can be inferred need not be given.
    pub fn shape(mut self, name: &str, shape: &[usize]) -> Self {
        self.shapes.push((name.into(), shape.to_vec()));
        self
    }

    /// The type of an argument or auxiliary state.
    pub fn dtype(mut self, name: &str, dtype: Dtype) -> Self {
        self.dtypes.push((name.into(), dtype));
        self
    }

    /// The request for all gradients; the default is "write".
    pub fn grad_req(mut self, grad_req: GradReq) -> Self {
        self.requests = Requests::All(grad_req);
        self
    }

    /// A request for each argument in order.
    pub fn grad_req_list(mut self, of_arguments: &[GradReq]) -> Self {
        self.requests = Requests::Each(of_arguments.to_vec());
        self
    }

    /// Requests for some arguments by name; the others have no gradients.
    pub fn grad_reqs(mut self, by_name: &[(&str, GradReq)]) -> Self {
        self.requests = Requests::Named(by_name.iter().map(|(name, req)| (name.to_string(), *req)).collect());
        self
    }

    /// An executor to share memory with, and the arguments whose arrays are shared. From then on threads that use them are
    /// serialised.
    pub fn share(mut self, other: &'a mut Executor, arguments: &[&str]) -> Self {
        self.shared = Some((other, arguments.iter().map(|&name| name.into()).collect()));
        self
    }

    /// The context of the nodes in a `__ctx_group__`.
    pub fn ctx_group(mut self, name: &str, context: &Context) -> Self {
        self.ctx_groups.push((name.into(), *context));
        self
    }

    /// Threads of a CPU context.
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

    /// Binds it to new arrays of zeros.
    pub fn allocate(mut self) -> Result<Executor> {
        let known = Descs::new()?;
        for (name, shape) in &self.shapes {
            let dtype = self.dtypes.iter().find(|(of, _)| of == name).map_or(Dtype::None, |(_, dtype)| *dtype);
            known.add(name, shape, dtype, None)?;
        }
        for (name, dtype) in self.dtypes.iter().filter(|(name, _)| !self.shapes.iter().any(|(of, _)| of == name)) {
            known.add_unknown(name, *dtype)?;
        }
        let (each, named) = match &self.requests {
            Requests::All(req) => (vec![*req], Vec::new()),
            Requests::Each(each) => (each.clone(), Vec::new()),
            Requests::Named(named) => (named.iter().map(|(_, req)| *req).collect(), named.clone()),
        };
        let words = Texts::new(&each.iter().map(|req| req.word()).collect::<Vec<_>>(), "grad_req")?;
        let names = Texts::new(&named.iter().map(|(name, _)| name).collect::<Vec<_>>(), "grad_req")?;
        let kept = self.kept()?;
        let mut options = self.options(&kept);
        match &self.requests {
            Requests::All(_) => options.grad_req = unsafe { *words.as_ptr() },
            requests => {
                options.grad_req_list = words.as_ptr();
                options.num_grad_reqs = words.len();
                options.grad_req_names = if let Requests::Named(_) = requests { names.as_ptr() } else { null() };
            }
        }
        let mut shared = self.shared.take();
        let arguments = shared.as_ref().map_or(Vec::new(), |(_, arguments)| arguments.clone());
        let arguments = Texts::new(&arguments, "share")?;
        let pool = crate::arrays::Arrays::of([])?;
        if let Some((other, _)) = &mut shared {
            other.tied = true;
            options.shared_arg_names = arguments.as_ptr();
            options.num_shared_arg_names = arguments.len();
            options.shared_data = pool.raw();
        }
        let other = shared.as_ref().map(|(other, _)| other.at());
        options.shared_executor = other.as_ref().map_or(null_mut(), |other| **other);
        let context = self.context.to_raw();
        let calibration = self.precision.calibration.as_ref().map(|one| one.lock());
        options.calibration = calibration.as_ref().map_or(null_mut(), |one| one.raw());
        let mut made = Executor::out(|out| unsafe {
            sys::cohort_executor_simple_bind(self.symbol.raw(), &context, known.raw(), &options, out)
        })?;
        made.tied = other.is_some();
        Ok(made)
    }

    /// Binds it to arrays by name, without copying them. An argument has a gradient if there is an array for it in `grads`.
    pub fn bind(mut self, args: &Params, grads: &Params, aux: &Params) -> Result<Executor> {
        let names = self.symbol.arguments()?;
        let args = all_of(args, &names, "args")?;
        let aux = all_of(aux, &self.symbol.auxiliary_states()?, "aux")?;
        let pointers: Vec<_> = names.iter().map(|name| grads.get(name).map_or(null_mut(), NDArray::raw)).collect();
        let requests: Vec<i32> = match &self.requests {
            Requests::All(req) => names.iter().map(|_| req.code()).collect(),
            Requests::Each(each) if each.len() != names.len() => {
                let message = format!("grad_req: expected {}, found {}", names.len(), each.len());
                return Err(Error::invalid(message, "grad_req"));
            }
            Requests::Each(each) => each.iter().map(|req| req.code()).collect(),
            Requests::Named(named) => {
                let of = |name: &String| named.iter().find(|(of, _)| of == name).map_or(GradReq::Null, |(_, req)| *req);
                names.iter().map(|name| of(name).code()).collect()
            }
        };
        let mut shared = self.shared.take();
        if let Some((other, _)) = &mut shared {
            other.tied = true;
        }
        let other = shared.as_ref().map(|(other, _)| other.at());
        let kept = self.kept()?;
        let (mut options, context) = (self.options(&kept), self.context.to_raw());
        options.shared_executor = other.as_ref().map_or(null_mut(), |other| **other);
        let calibration = self.precision.calibration.as_ref().map(|one| one.lock());
        options.calibration = calibration.as_ref().map_or(null_mut(), |one| one.raw());
        let mut made = Executor::out(|out| unsafe {
            sys::cohort_executor_bind(
                self.symbol.raw(),
                &context,
                args.as_ptr(),
                args.len(),
                pointers.as_ptr(),
                requests.as_ptr(),
                aux.as_ptr(),
                aux.len(),
                &options,
                out,
            )
        })?;
        made.tied = other.is_some();
        Ok(made)
    }

    fn kept(&self) -> Result<Kept> {
        let groups: Vec<_> = self.ctx_groups.iter().map(|(name, _)| name).collect();
        let contexts = self.ctx_groups.iter().map(|(_, context)| context.to_raw()).collect();
        Ok(Kept { groups: Texts::new(&groups, "ctx_group")?, contexts, names: self.precision.names()? })
    }

    fn options(&self, kept: &Kept) -> sys::cohort_executor_options {
        // SAFETY: all zeros is a valid value, the defaults.
        let mut options: sys::cohort_executor_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        options.ctx_group_names = kept.groups.as_ptr();
        options.ctx_group_contexts = kept.contexts.as_ptr();
        options.num_ctx_groups = kept.contexts.len();
        set_precision!(options, self.precision, kept.names);
        options.num_threads = self.num_threads;
        options.seed = self.seed;
        options
    }
}

fn all_of(given: &Params, names: &[String], what: &str) -> Result<Vec<*mut sys::cohort_ndarray>> {
    let missing = |name: &String| Error::name(format!("{}: there is no array for '{}'", what, name), name);
    names.iter().map(|name| given.get(name).map(NDArray::raw).ok_or_else(|| missing(name))).collect()
}
