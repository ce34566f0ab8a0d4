// SPDX-License-Identifier: Apache-2.0
//! The registry of operators, and operators applied to arrays at once.
use crate::arrays::Arrays;
use crate::error::{c_text, check, text, Result, Texts};
use crate::ndarray::{names, pointers, Context, NDArray};
use crate::tape::Tape;
use cohort_sys as sys;
use std::ptr::{null, null_mut};

/// The behaviour of an operator in a network that computes in a narrower type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorPrecision {
    /// Keeps the types of the network.
    Own,
    /// Computes in the narrower type.
    Narrow,
    /// Computes in the narrower type if its inputs are in it.
    Follows,
}

/// An attribute of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorAttr {
    /// Its name.
    pub name: String,
    /// Its type in MXNet's terms.
    pub attr_type: String,
    /// The default; None: it is required.
    pub default: Option<String>,
    /// Its meaning.
    pub doc: String,
    /// The least valid number; infinite if there is no bound.
    pub low: f64,
    /// The largest valid number.
    pub high: f64,
}

/// The description of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorInfo {
    /// The canonical name, of which others are aliases.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// Its attributes, in order.
    pub attrs: Vec<OperatorAttr>,
    /// Names of the inputs, auxiliary states among them.
    pub inputs: Vec<String>,
    /// Whether a gradient flows to each input.
    pub gradients: Vec<bool>,
    /// Names of the outputs, with all attributes at their defaults.
    pub outputs: Vec<String>,
    /// Its behaviour in a network that computes in a narrower type.
    pub precision: OperatorPrecision,
    /// The attribute that counts the inputs, if their number is variable.
    pub count_attr: Option<String>,
}

/// The names of all operators.
pub fn operators() -> Result<Vec<String>> {
    let mut num = 0;
    check(unsafe { sys::cohort_operator_num(&mut num) })?;
    names(num, |i, out| unsafe { sys::cohort_operator_name(i, out) })
}

/// The description of an operator.
pub fn operator(op: &str) -> Result<OperatorInfo> {
    let op = c_text(op, "operator")?;
    let (mut name, mut doc, mut num_attrs, mut num_inputs, mut count) = (null(), null(), 0, 0, null());
    let (mut num_outputs, mut precision) = (0, 0);
    check(unsafe {
        let (attrs, inputs) = (&mut num_attrs, &mut num_inputs);
        sys::cohort_operator_info(op.as_ptr(), &mut name, &mut doc, attrs, inputs, &mut num_outputs, &mut count)
    })?;
    check(unsafe { sys::cohort_operator_precision(op.as_ptr(), &mut precision) })?;
    let attrs = (0..num_attrs)
        .map(|i| {
            let (mut name, mut attr_type, mut default, mut doc) = (null(), null(), null(), null());
            check(unsafe {
                sys::cohort_operator_attr(op.as_ptr(), i, &mut name, &mut attr_type, &mut default, &mut doc)
            })?;
            let (mut low, mut high) = (0.0, 0.0);
            check(unsafe { sys::cohort_operator_attr_range(op.as_ptr(), i, &mut low, &mut high) })?;
            Ok(unsafe {
                OperatorAttr {
                    name: text(name),
                    attr_type: text(attr_type),
                    default: if default.is_null() { None } else { Some(text(default)) },
                    doc: text(doc),
                    low,
                    high,
                }
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let inputs =
        names(num_inputs, |i, out| unsafe { sys::cohort_operator_input(op.as_ptr(), i, out, null_mut(), null_mut()) })?;
    let gradients = (0..num_inputs)
        .map(|i| {
            let mut flows = 0;
            check(unsafe { sys::cohort_operator_input_gradient(op.as_ptr(), i, &mut flows) })?;
            Ok(flows != 0)
        })
        .collect::<Result<Vec<_>>>()?;
    let outputs = names(num_outputs, |i, out| unsafe { sys::cohort_operator_output(op.as_ptr(), i, out) })?;
    let precision = match precision {
        sys::COHORT_PRECISION_NARROW => OperatorPrecision::Narrow,
        sys::COHORT_PRECISION_FOLLOWS => OperatorPrecision::Follows,
        _ => OperatorPrecision::Own,
    };
    let count_attr = unsafe { Some(text(count)).filter(|name| !name.is_empty()) };
    let (name, doc) = unsafe { (text(name), text(doc)) };
    Ok(OperatorInfo { name, doc, attrs, inputs, gradients, outputs, precision, count_attr })
}

/// An operator to be applied to arrays at once.
///
/// ```
/// # fn main() -> cohort::Result<()> {
/// use cohort::Invoke;
/// let first = &Invoke::new("_random_normal").attr("shape", "(2, 3)").seed(7).run()?[0];
/// assert_eq!(first.shape()?, [2, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Invoke<'a> {
    op: String,
    keys: Vec<String>,
    values: Vec<String>,
    inputs: Vec<&'a NDArray>,
    outputs: Vec<&'a NDArray>,
    context: Option<Context>,
    seed: u64,
    is_train: bool,
}

impl<'a> Invoke<'a> {
    /// An operator by name.
    pub fn new(op: &str) -> Invoke<'a> {
        let (keys, values, inputs, outputs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Invoke { op: op.into(), keys, values, inputs, outputs, context: None, seed: 0, is_train: false }
    }

    /// An attribute, in MXNet's spelling: `(2, 2)`, `0.1`, `True`.
    pub fn attr(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.keys.push(key.into());
        self.values.push(value.to_string());
        self
    }

    /// Appends an input.
    pub fn input(mut self, array: &'a NDArray) -> Self {
        self.inputs.push(array);
        self
    }

    /// Appends an array to write an output to; without any, new ones are created.
    pub fn output(mut self, array: &'a NDArray) -> Self {
        self.outputs.push(array);
        self
    }

    /// The context of an operator without inputs; the default is cpu(0).
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(*context);
        self
    }

    /// The seed of a random operator: the same seed gives the same numbers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Training mode, which affects Dropout and BatchNorm.
    pub fn train(mut self) -> Self {
        self.is_train = true;
        self
    }

    /// Applies it; returns the outputs.
    pub fn run(self) -> Result<Vec<NDArray>> {
        self.apply(null_mut())
    }

    /// Applies it and records it, in the mode of the tape.
    pub fn record(self, tape: &mut Tape) -> Result<Vec<NDArray>> {
        self.apply(tape.raw())
    }

    /// With or without a tape.
    fn apply(self, tape: *mut sys::cohort_tape) -> Result<Vec<NDArray>> {
        let name = c_text(&self.op, "operator")?;
        let (keys, values) = (Texts::new(&self.keys, &self.op)?, Texts::new(&self.values, &self.op)?);
        let (inputs, outputs) = (pointers(&self.inputs), pointers(&self.outputs));
        let context = self.context.map(Context::to_raw);
        let options = sys::cohort_invoke_options {
            struct_size: std::mem::size_of::<sys::cohort_invoke_options>(),
            context: context.as_ref().map_or(null(), |context| context),
            seed: self.seed,
            is_train: self.is_train.into(),
        };
        let (name, keys, values, num) = (name.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len());
        let (from, num_in, num_out) = (inputs.as_ptr(), inputs.len(), outputs.len());
        let to = if outputs.is_empty() { null() } else { outputs.as_ptr() };
        let made = Arrays::out(|out| unsafe {
            if tape.is_null() {
                sys::cohort_operator_invoke(name, keys, values, num, from, num_in, to, num_out, &options, out)
            } else {
                sys::cohort_tape_invoke(tape, name, keys, values, num, from, num_in, to, num_out, &options, out)
            }
        })?;
        Ok(made.list()?.into_iter().flatten().collect())
    }
}
