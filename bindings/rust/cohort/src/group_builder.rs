// SPDX-License-Identifier: Apache-2.0
//! Settings of a group.
use crate::arrays::{Arrays, Descs};
use crate::error::{c_text, check, Error, Result, Texts};
use crate::executor::GradReq;
use crate::group::Group;
use crate::model::Params;
use crate::ndarray::{Context, Dtype};
use crate::precision::{gradient_methods, set_gradients, set_precision, Gradients, LossScale, Precision};
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::ops::Range;
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
    /// A descriptor of `f32`, batched along the first axis.
    pub fn new(name: &str, shape: &[usize]) -> Desc {
        Desc { name: name.into(), shape: shape.to_vec(), dtype: Dtype::Float32, layout: None }
    }

    /// The same with another shape.
    pub fn shape(mut self, shape: &[usize]) -> Desc {
        self.shape = shape.to_vec();
        self
    }

    /// The same with another type.
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

pub(crate) fn to_descs(from: &[Desc]) -> Result<Descs> {
    let made = Descs::new()?;
    for desc in from {
        made.add(&desc.name, &desc.shape, desc.dtype, desc.layout.as_deref())?;
    }
    Ok(made)
}

/// How shares of the batch are rounded to whole samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, halves up; missing samples are added to the last device.
    HalfUp,
    /// The same with halves rounded to even.
    HalfEven,
    /// Largest remainder, at least one sample for each device.
    Balanced,
}

impl Rounding {
    pub(crate) fn code(self) -> i32 {
        match self {
            Rounding::HalfUp => sys::COHORT_ROUNDING_HALF_UP,
            Rounding::HalfEven => sys::COHORT_ROUNDING_HALF_EVEN,
            Rounding::Balanced => sys::COHORT_ROUNDING_BALANCED,
        }
    }
}

/// The settings of a group.
#[derive(Debug)]
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
    slices: Vec<i64>,
    ctx_groups: Vec<(String, Vec<Context>)>,
    shared_group: Option<&'a mut Group>,
    precision: Precision,
    gradients: Gradients,
    given: Option<(&'a Params, &'a Params)>,
    strict_names: bool,
    stop_if_not_finite: bool,
}

impl<'a> GroupBuilder<'a> {
    pub(crate) fn new(symbol: &'a Symbol) -> GroupBuilder<'a> {
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
            slices: Vec::new(),
            ctx_groups: Vec::new(),
            shared_group: None,
            precision: Precision::default(),
            gradients: Gradients::default(),
            given: None,
            strict_names: false,
            stop_if_not_finite: false,
        }
    }

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

    /// How shares are rounded.
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

    /// The parameters; the default is all arguments but data, labels and states.
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

    /// The request for the gradients of all parameters.
    pub fn grad_req(mut self, grad_req: GradReq) -> Self {
        self.grad_req = grad_req;
        self
    }

    /// A request for each argument of the network in order, used as it is.
    pub fn grad_req_list(mut self, of_arguments: &[GradReq]) -> Self {
        self.grad_req_list = Some(of_arguments.to_vec());
        self
    }

    /// Requests for some arguments by name, over a default of "write".
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

    /// The seed of random operators.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The rows of each device, instead of shares.
    pub fn slices(mut self, rows: &[Range<usize>]) -> Self {
        self.slices = rows.iter().flat_map(|rows| [rows.start as i64, rows.end as i64]).collect();
        self
    }

    /// The context of the nodes in a `__ctx_group__`: one for all devices, or one per device.
    pub fn ctx_group(mut self, name: &str, contexts: &[Context]) -> Self {
        self.ctx_groups.push((name.into(), contexts.to_vec()));
        self
    }

    /// A group of another bucket to share memory with: parameters of the same name are the same arrays. From then on threads that
    /// use them are serialised.
    pub fn shared_group(mut self, other: &'a mut Group) -> Self {
        self.shared_group = Some(other);
        self
    }

    /// The types in which to compute.
    pub fn precision(mut self, precision: &Precision) -> Self {
        self.precision = precision.clone();
        self
    }

    gradient_methods!();

    /// For inference: parameters and auxiliary states that the group uses directly, without a copy, on all its devices together.
    /// Those on other devices or of other types are copied, and those that are not named are zeros.
    pub fn given_params(mut self, args: &'a Params, aux: &'a Params) -> Self {
        self.given = Some((args, aux));
        self
    }

    /// Names of parameters, requests and input types that would be ignored with a warning are errors.
    pub fn strict_names(mut self) -> Self {
        self.strict_names = true;
        self
    }

    /// A pass fails at the first output or gradient with an infinity or a NaN; the error names it.
    pub fn stop_if_not_finite(mut self) -> Self {
        self.stop_if_not_finite = true;
        self
    }

    /// Binds the group.
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
        // SAFETY: all zeros is a valid value, the defaults.
        let mut options: sys::cohort_group_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        if !self.workload.is_empty() {
            options.workload = self.workload.as_ptr();
            options.num_workloads = self.workload.len();
        }
        options.rounding = self.rounding.code();
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
        options.slices = self.slices.as_ptr();
        options.num_slices = self.slices.len() / 2;
        let group_names = Texts::new(&self.ctx_groups.iter().map(|(name, _)| name).collect::<Vec<_>>(), "ctx_group")?;
        let each = self.ctx_groups.first().map_or(0, |(_, contexts)| contexts.len());
        if self.ctx_groups.iter().any(|(_, of_group)| of_group.len() != each || each == 0) {
            return Err(Error::invalid(format!("ctx_group: expected {} contexts for each", each.max(1)), "ctx_group"));
        }
        let group_contexts: Vec<_> =
            self.ctx_groups.iter().flat_map(|(_, contexts)| contexts.iter().map(|one| one.to_raw())).collect();
        options.ctx_group_names = group_names.as_ptr();
        options.ctx_group_contexts = group_contexts.as_ptr();
        options.num_ctx_groups = group_names.len();
        options.contexts_per_ctx_group = each;
        let names = self.precision.names()?;
        set_precision!(options, self.precision, names);
        set_gradients!(options, self.gradients);
        options.strict_names = self.strict_names.into();
        options.stop_if_not_finite = self.stop_if_not_finite.into();
        let given =
            self.given.map(|(args, aux)| Ok((Arrays::of_params(args)?, Arrays::of_params(aux)?))).transpose()?;
        if let Some((args, aux)) = &given {
            options.arg_params = args.raw();
            options.aux_params = aux.raw();
        }
        let tied = self.shared_group.is_some();
        let other = self.shared_group.map(|other| {
            other.tied = true;
            other.at()
        });
        options.shared_group = other.as_ref().map_or(null_mut(), |other| **other);
        let calibration = self.precision.calibration.as_ref().map(|one| one.lock());
        options.calibration = calibration.as_ref().map_or(null_mut(), |one| one.raw());
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
        Ok(Group::adopt(raw, self.symbol, contexts.len(), tied))
    }
}
