// SPDX-License-Identifier: Apache-2.0
//! Checkpoints in MXNet's two files, and prediction from them.
use crate::arrays::Arrays;
use crate::calibration::Calibration;
use crate::error::{c_text, check, Error, Result};
use crate::executor::{Executor, GradReq};
use crate::ndarray::{Context, Dtype, NDArray};
use crate::precision::Precision;
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::null_mut;

/// Arrays by name.
pub type Params = BTreeMap<String, NDArray>;

/// Symbol, parameters and auxiliary states of `PREFIX-symbol.json` and `PREFIX-0007.params`.
pub fn load_checkpoint(prefix: &str, epoch: i32) -> Result<(Symbol, Params, Params)> {
    checkpoint(prefix, epoch, false)
}

/// Like `load_checkpoint`, with large arrays in a mapping of the file, read when they are used. As long as they exist, the file
/// must not be changed or truncated in place.
pub fn map_checkpoint(prefix: &str, epoch: i32) -> Result<(Symbol, Params, Params)> {
    checkpoint(prefix, epoch, true)
}

fn checkpoint(prefix: &str, epoch: i32, mapped: bool) -> Result<(Symbol, Params, Params)> {
    let prefix = c_text(prefix, "prefix")?;
    let (mut symbol, mut args, mut aux) = (null_mut(), null_mut(), null_mut());
    let read = if mapped { sys::cohort_checkpoint_map } else { sys::cohort_checkpoint_load };
    check(unsafe { read(prefix.as_ptr(), epoch, &mut symbol, &mut args, &mut aux) })?;
    let (symbol, args, aux) = (Symbol::adopt(symbol), Arrays::adopt(args), Arrays::adopt(aux));
    Ok((symbol, args.map()?, aux.map()?))
}

/// Writes a checkpoint.
pub fn save_checkpoint(prefix: &str, epoch: i32, symbol: &Symbol, args: &Params, aux: &Params) -> Result<()> {
    let prefix = c_text(prefix, "prefix")?;
    let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
    check(unsafe { sys::cohort_checkpoint_save(prefix.as_ptr(), epoch, symbol.raw(), args.raw(), aux.raw()) })
}

/// The settings of a predictor: [`PredictorBuilder::load`] makes it from a checkpoint, [`PredictorBuilder::build`] from a network
/// and its parameters.
#[derive(Debug)]
pub struct PredictorBuilder {
    shapes: Vec<(String, Vec<usize>)>,
    context: Context,
    num_threads: u16,
    precision: Precision,
    mapped: bool,
}

impl PredictorBuilder {
    /// The context; the default is cpu(0).
    pub fn context(mut self, context: &Context) -> Self {
        self.context = *context;
        self
    }

    /// Threads of a CPU context.
    pub fn num_threads(mut self, num: u16) -> Self {
        self.num_threads = num;
        self
    }

    /// The types in which to compute.
    pub fn precision(mut self, precision: &Precision) -> Self {
        self.precision = precision.clone();
        self
    }

    /// Uses the parameters of a checkpoint in a mapping of its file: see [`map_checkpoint`].
    pub fn mapped(mut self) -> Self {
        self.mapped = true;
        self
    }

    /// Makes it from a checkpoint.
    pub fn load(self, prefix: &str, epoch: i32) -> Result<Predictor> {
        let (symbol, args, aux) = checkpoint(prefix, epoch, self.mapped)?;
        self.build(&symbol, &args, &aux)
    }

    /// Makes it from a network and its parameters, which it shares if they are on its context.
    pub fn build(self, symbol: &Symbol, args: &Params, aux: &Params) -> Result<Predictor> {
        let here = |params: &Params| -> Result<Params> {
            params
                .iter()
                .map(|(name, array)| {
                    let there = array.context()? == self.context;
                    Ok((name.clone(), if there { array.clone() } else { array.copy(&self.context)? }))
                })
                .collect()
        };
        let (args, aux) = (here(args)?, here(aux)?);
        let PredictorBuilder { shapes, context, num_threads, precision, .. } = self;
        let symbol = symbol.clone();
        let mut made = Predictor { symbol, context, args, aux, shapes, num_threads, precision, executor: None };
        made.executor = Some(made.bind()?);
        Ok(made)
    }
}

/// A network for inference. With several threads, give each one a clone by [`Predictor::try_clone`], on the same parameters.
pub struct Predictor {
    symbol: Symbol,
    context: Context,
    args: Params,
    aux: Params,
    shapes: Vec<(String, Vec<usize>)>,
    num_threads: u16,
    precision: Precision,
    executor: Option<Executor>,
}

impl fmt::Debug for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut made = f.debug_struct("Predictor");
        made.field("symbol", &self.symbol).field("context", &self.context).field("inputs", &self.shapes);
        made.field("precision", &self.precision).finish_non_exhaustive()
    }
}

impl Predictor {
    /// From a checkpoint, with the shapes of its inputs.
    pub fn load(prefix: &str, epoch: i32, context: &Context, inputs: &[(&str, &[usize])]) -> Result<Predictor> {
        Predictor::builder(inputs).context(context).load(prefix, epoch)
    }

    /// Starts a predictor with more settings, for inputs of these shapes.
    pub fn builder(inputs: &[(&str, &[usize])]) -> PredictorBuilder {
        PredictorBuilder {
            shapes: inputs.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect(),
            context: Context::cpu(0),
            num_threads: 0,
            precision: Precision::default(),
            mapped: false,
        }
    }

    /// From a network and its parameters, which it shares if they are on its context.
    pub fn new(
        symbol: &Symbol,
        args: &Params,
        aux: &Params,
        context: &Context,
        inputs: &[(&str, &[usize])],
    ) -> Result<Predictor> {
        Predictor::builder(inputs).context(context).build(symbol, args, aux)
    }

    fn bind(&self) -> Result<Executor> {
        let param_shapes =
            self.args.iter().map(|(name, array)| Ok((name.clone(), array.shape()?))).collect::<Result<Vec<_>>>()?;
        let names = self.symbol.arguments()?;
        let known: Vec<(&str, &[usize])> = self
            .shapes
            .iter()
            .chain(param_shapes.iter().filter(|(name, _)| names.contains(name)))
            .map(|(name, shape)| (name.as_str(), shape.as_slice()))
            .collect();
        let inferred = self.symbol.infer_shape(&known)?;
        let (shapes, _, _) = inferred
            .ok_or_else(|| Error::invalid("inputs: their shapes do not give those of all arguments", "inputs"))?;
        let typed = |params: &'_ Params, of: &[String]| -> Result<Vec<(String, Dtype)>> {
            params
                .iter()
                .filter(|(name, _)| of.contains(name))
                .map(|(name, array)| Ok((name.clone(), array.dtype()?)))
                .collect()
        };
        let is_given = |name: &String| self.shapes.iter().any(|(input, _)| input == name);
        let mut types = typed(&self.args, &names)?;
        types.retain(|(name, _)| !is_given(name));
        types.extend(typed(&self.aux, &self.symbol.auxiliary_states()?)?);
        let types: Vec<(&str, Dtype)> = types.iter().map(|(name, dtype)| (name.as_str(), *dtype)).collect();
        let (dtypes, _, _) = self.symbol.infer_dtype_partial(&types)?;
        let labels = self.symbol.labels()?;
        let mut args = Params::new();
        for ((name, shape), (_, dtype)) in shapes.iter().zip(dtypes) {
            let is_input = is_given(name);
            let array = match self.args.get(name) {
                Some(array) if !is_input => array.clone(),
                None if !is_input && !labels.contains(name) => {
                    return Err(Error::invalid(
                        format!("parameters: expected all, found none called '{}'", name),
                        name,
                    ));
                }
                _ => {
                    let dtype = if dtype == Dtype::None { Dtype::Float32 } else { dtype };
                    NDArray::zeros(shape, dtype, &self.context)?
                }
            };
            args.insert(name.clone(), array);
        }
        if let Some(name) = self.symbol.auxiliary_states()?.iter().find(|&name| !self.aux.contains_key(name)) {
            return Err(Error::invalid(format!("states: expected all, found none called '{}'", name), name));
        }
        Executor::builder(&self.symbol)
            .context(&self.context)
            .grad_req(GradReq::Null)
            .num_threads(self.num_threads)
            .precision(&self.precision)
            .bind(&args, &Params::new(), &self.aux)
    }

    /// The outputs for inputs by name, as arrays of the caller's own. A batch of another length is accepted, too.
    pub fn predict(&mut self, inputs: &[(&str, &NDArray)]) -> Result<Vec<NDArray>> {
        self.loaded(inputs)?.forward(false)?.iter().map(|output| output.copy(&Context::cpu(0))).collect()
    }

    /// Lets a calibration observe the network on these inputs. It has to compute in float32.
    pub fn observe(&mut self, calibration: &Calibration, inputs: &[(&str, &NDArray)]) -> Result<()> {
        calibration.observe(self.loaded(inputs)?)
    }

    /// The executor for the shapes of these inputs, after copying them in.
    fn loaded(&mut self, inputs: &[(&str, &NDArray)]) -> Result<&mut Executor> {
        let mut found = Vec::new(); // everything is checked before anything changes
        for (name, _) in &self.shapes {
            let given = inputs.iter().find(|(input, _)| input == name);
            let (_, array) =
                given.ok_or_else(|| Error::invalid(format!("inputs: '{}' is missing", name), name.as_str()))?;
            found.push((name.clone(), array.shape()?));
        }
        if found != self.shapes || self.executor.is_none() {
            self.shapes = found;
            self.executor = None;
            self.executor = Some(self.bind()?);
        }
        let executor = self.executor.as_mut().expect("it has just been bound");
        executor.set_inputs(inputs)?;
        Ok(executor)
    }

    /// Another predictor on the same parameters, for another thread.
    pub fn try_clone(&self) -> Result<Predictor> {
        let (context, precision) = (self.context, self.precision.clone());
        let (shapes, num_threads) = (self.shapes.clone(), self.num_threads);
        let begun = PredictorBuilder { shapes, context, num_threads, precision, mapped: false };
        begun.build(&self.symbol, &self.args, &self.aux)
    }
}
