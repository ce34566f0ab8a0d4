// SPDX-License-Identifier: Apache-2.0
//! Checkpoints in MXNet's two files, and prediction from them.
use crate::arrays::Arrays;
use crate::error::{c_text, check, Error, Result};
use crate::executor::Executor;
use crate::ndarray::{Context, Dtype, NDArray};
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::ptr::null_mut;

/// Arrays by name.
pub type Params = BTreeMap<String, NDArray>;

/// Symbol, parameters and auxiliary states of `PREFIX-symbol.json` and `PREFIX-0007.params`.
pub fn load_checkpoint(prefix: &str, epoch: i32) -> Result<(Symbol, Params, Params)> {
    let prefix = c_text(prefix, "prefix")?;
    let (mut symbol, mut args, mut aux) = (null_mut(), null_mut(), null_mut());
    check(unsafe { sys::cohort_checkpoint_load(prefix.as_ptr(), epoch, &mut symbol, &mut args, &mut aux) })?;
    let (symbol, args, aux) = (Symbol::adopt(symbol), Arrays::adopt(args), Arrays::adopt(aux));
    Ok((symbol, args.map()?, aux.map()?))
}

/// Writes them.
pub fn save_checkpoint(prefix: &str, epoch: i32, symbol: &Symbol, args: &Params, aux: &Params) -> Result<()> {
    let prefix = c_text(prefix, "prefix")?;
    let (args, aux) = (Arrays::of_params(args)?, Arrays::of_params(aux)?);
    check(unsafe { sys::cohort_checkpoint_save(prefix.as_ptr(), epoch, symbol.raw(), args.raw(), aux.raw()) })
}

/// A network for inference. For several threads: one each, by [`Predictor::try_clone`], on the same parameters.
pub struct Predictor {
    symbol: Symbol,
    context: Context,
    args: Params,
    aux: Params,
    shapes: Vec<(String, Vec<usize>)>,
    executor: Option<Executor>,
}

impl Predictor {
    /// From a checkpoint, with the shapes of its inputs.
    pub fn load(prefix: &str, epoch: i32, context: &Context, inputs: &[(&str, &[usize])]) -> Result<Predictor> {
        let (symbol, args, aux) = load_checkpoint(prefix, epoch)?;
        Predictor::new(&symbol, &args, &aux, context, inputs)
    }

    /// Of a network and its parameters, which it shares where they are on its context.
    pub fn new(
        symbol: &Symbol,
        args: &Params,
        aux: &Params,
        context: &Context,
        inputs: &[(&str, &[usize])],
    ) -> Result<Predictor> {
        let here = |params: &Params| -> Result<Params> {
            params
                .iter()
                .map(|(name, array)| {
                    let there = array.context()? == *context;
                    Ok((name.clone(), if there { array.clone() } else { array.copy(context)? }))
                })
                .collect()
        };
        let shapes = inputs.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect();
        let (args, aux) = (here(args)?, here(aux)?);
        let mut made = Predictor { symbol: symbol.clone(), context: *context, args, aux, shapes, executor: None };
        made.executor = Some(made.bind()?);
        Ok(made)
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
        let mut args = Vec::new();
        for ((name, shape), (_, dtype)) in shapes.iter().zip(dtypes) {
            let is_input = is_given(name);
            args.push(match self.args.get(name) {
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
            });
        }
        let mut aux = Vec::new();
        for name in self.symbol.auxiliary_states()? {
            let found = self.aux.get(&name);
            aux.push(
                found.ok_or_else(|| {
                    Error::invalid(format!("states: expected all, found none called '{}'", name), &name)
                })?,
            );
        }
        Executor::bind(&self.symbol, &self.context, &args.iter().collect::<Vec<_>>(), None, &aux)
    }

    /// The outputs for inputs by name, in the caller's hands. A batch of another length is taken, too.
    pub fn predict(&mut self, inputs: &[(&str, &NDArray)]) -> Result<Vec<NDArray>> {
        let mut found = Vec::new(); // all is looked at before anything changes
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
        executor.forward(false)?.iter().map(|output| output.copy(&Context::cpu(0))).collect()
    }

    /// Another one on the same parameters, for another thread.
    pub fn try_clone(&self) -> Result<Predictor> {
        let shapes: Vec<(&str, &[usize])> =
            self.shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
        Predictor::new(&self.symbol, &self.args, &self.aux, &self.context, &shapes)
    }
}
