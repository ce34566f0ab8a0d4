// SPDX-License-Identifier: Apache-2.0
//! Symbols: networks, composed or read from MXNet's JSON.
use crate::arrays::Descs;
use crate::error::{c_text, check, text, Result, Texts};
use crate::ndarray::{names, Dtype};
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::{null, null_mut};

crate::handle!(
    /// A graph of operators over variables.
    Symbol,
    cohort_symbol,
    cohort_symbol_free
);

/// Inferred types.
pub type Dtypes = Vec<(String, Dtype)>;

/// Inferred shapes.
pub type Shapes = Vec<(String, Vec<usize>)>;

impl Symbol {
    pub(crate) fn out(call: impl FnOnce(*mut *mut sys::cohort_symbol) -> *mut sys::cohort_error) -> Result<Symbol> {
        let mut made = null_mut();
        check(call(&mut made))?;
        Ok(Symbol::adopt(made))
    }

    /// A variable.
    pub fn variable(name: &str) -> Result<Symbol> {
        let name = c_text(name, "variable")?;
        Symbol::out(|out| unsafe { sys::cohort_symbol_variable(name.as_ptr(), null(), null(), 0, out) })
    }

    /// A symbol with all outputs of the given ones.
    pub fn group(symbols: &[&Symbol]) -> Result<Symbol> {
        let handles: Vec<_> = symbols.iter().map(|one| one.raw()).collect();
        Symbol::out(|out| unsafe { sys::cohort_symbol_group(handles.as_ptr(), handles.len(), out) })
    }

    /// From the JSON of any MXNet version.
    pub fn from_json(json: &str) -> Result<Symbol> {
        Symbol::out(|out| unsafe { sys::cohort_symbol_from_json(json.as_ptr() as *const _, json.len(), out) })
    }

    /// Like `from_json`, from a file.
    pub fn load(path: &str) -> Result<Symbol> {
        let path = c_text(path, "path")?;
        Symbol::out(|out| unsafe { sys::cohort_symbol_load(path.as_ptr(), out) })
    }

    /// As JSON in the form of MXNet 1.9.
    pub fn to_json(&self) -> Result<String> {
        let mut json = null();
        check(unsafe { sys::cohort_symbol_to_json(self.raw(), &mut json) })?;
        Ok(unsafe { text(json) })
    }

    /// One output, by name.
    pub fn output(&self, name: &str) -> Result<Symbol> {
        let name = c_text(name, "output")?;
        Symbol::out(|out| unsafe { sys::cohort_symbol_output_named(self.raw(), name.as_ptr(), out) })
    }

    /// All outputs of all nodes.
    pub fn internals(&self) -> Result<Symbol> {
        Symbol::out(|out| unsafe { sys::cohort_symbol_internals(self.raw(), out) })
    }

    /// The number of nodes in MXNet's JSON form.
    pub fn num_nodes(&self) -> Result<usize> {
        let mut num = 0;
        check(unsafe { sys::cohort_symbol_num_nodes(self.raw(), &mut num) })?;
        Ok(num)
    }

    /// Writes it to a file.
    pub fn save(&self, path: &str) -> Result<()> {
        let path = c_text(path, "path")?;
        check(unsafe { sys::cohort_symbol_save(self.raw(), path.as_ptr()) })
    }

    /// An attribute of the node; None if it has none of that name.
    pub fn attr(&self, key: &str) -> Result<Option<String>> {
        let (key, mut value) = (c_text(key, "key")?, null());
        check(unsafe { sys::cohort_symbol_attr(self.raw(), key.as_ptr(), &mut value) })?;
        Ok(if value.is_null() { None } else { Some(unsafe { text(value) }) })
    }

    /// The name of the head's node; None if there are several heads.
    pub fn name(&self) -> Result<Option<String>> {
        let mut found = null();
        check(unsafe { sys::cohort_symbol_name(self.raw(), &mut found) })?;
        Ok(if found.is_null() { None } else { Some(unsafe { text(found) }) })
    }

    /// The inputs of the head nodes as heads; None if these have none.
    pub fn children(&self) -> Result<Option<Symbol>> {
        let mut made = null_mut();
        check(unsafe { sys::cohort_symbol_children(self.raw(), &mut made) })?;
        Ok(if made.is_null() { None } else { Some(Symbol::adopt(made)) })
    }

    /// The attributes of all nodes that have any, by node name.
    pub fn attr_dict(&self) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
        let (mut num, mut found) = (0, BTreeMap::<String, BTreeMap<String, String>>::new());
        check(unsafe { sys::cohort_symbol_num_attrs(self.raw(), 1, &mut num) })?;
        for i in 0..num {
            let (mut node, mut key, mut value) = (null(), null(), null());
            check(unsafe { sys::cohort_symbol_attr_at(self.raw(), 1, i, &mut node, &mut key, &mut value) })?;
            unsafe { found.entry(text(node)).or_default().insert(text(key), text(value)) };
        }
        Ok(found)
    }

    /// Sets attributes of the node, such as `__lr_mult__`.
    pub fn set_attrs(&mut self, attrs: &[(&str, &str)]) -> Result<()> {
        let keys = Texts::new(&attrs.iter().map(|(key, _)| *key).collect::<Vec<_>>(), "attributes")?;
        let values = Texts::new(&attrs.iter().map(|(_, value)| *value).collect::<Vec<_>>(), "attributes")?;
        check(unsafe { sys::cohort_symbol_set_attrs(self.raw(), keys.as_ptr(), values.as_ptr(), keys.len()) })
    }

    /// One output, by index.
    pub fn output_at(&self, index: usize) -> Result<Symbol> {
        Symbol::out(|out| unsafe { sys::cohort_symbol_output(self.raw(), index, out) })
    }

    /// A copy with other symbols instead of variables, by name.
    pub fn compose(&self, inputs: &[(&str, &Symbol)]) -> Result<Symbol> {
        let names = Texts::new(&inputs.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "inputs")?;
        let handles: Vec<_> = inputs.iter().map(|(_, symbol)| symbol.raw()).collect();
        Symbol::out(|out| unsafe {
            let (names, inputs) = (names.as_ptr(), handles.as_ptr());
            sys::cohort_symbol_compose(self.raw(), names, inputs, handles.len(), null(), out)
        })
    }

    fn names(&self, list: i32) -> Result<Vec<String>> {
        let mut num = 0;
        check(unsafe { sys::cohort_symbol_num_names(self.raw(), list, &mut num) })?;
        names(num, |i, out| unsafe { sys::cohort_symbol_name_at(self.raw(), list, i, out) })
    }

    /// Names of the arguments.
    pub fn arguments(&self) -> Result<Vec<String>> {
        self.names(sys::COHORT_SYMBOL_ARGUMENTS)
    }

    /// Names of the auxiliary states.
    pub fn auxiliary_states(&self) -> Result<Vec<String>> {
        self.names(sys::COHORT_SYMBOL_AUX)
    }

    /// Names of the arguments whose values inference does not need: they affect the outputs only as the label of a loss.
    pub fn labels(&self) -> Result<Vec<String>> {
        self.names(sys::COHORT_SYMBOL_LABELS)
    }

    /// Names of the outputs.
    pub fn outputs(&self) -> Result<Vec<String>> {
        self.names(sys::COHORT_SYMBOL_OUTPUTS)
    }

    /// Shapes of arguments, outputs and auxiliary states; None if some cannot be inferred.
    pub fn infer_shape(&self, known: &[(&str, &[usize])]) -> Result<Option<(Shapes, Shapes, Shapes)>> {
        let known = Descs::known(known)?;
        let (mut complete, mut args, mut outputs, mut aux) = (0, null_mut(), null_mut(), null_mut());
        check(unsafe {
            sys::cohort_symbol_infer_shape(self.raw(), known.raw(), 0, &mut complete, &mut args, &mut outputs, &mut aux)
        })?;
        if complete == 0 {
            return Ok(None);
        }
        let read = |raw| -> Result<Shapes> {
            Ok(Descs::adopt(raw).list()?.into_iter().map(|(name, shape)| (name, shape.unwrap_or_default())).collect())
        };
        let (args, outputs, aux) = (read(args), read(outputs), read(aux));
        Ok(Some((args?, outputs?, aux?)))
    }
}

impl Symbol {
    /// Types of arguments, outputs and auxiliary states; None if some cannot be inferred.
    pub fn infer_dtype(&self, known: &[(&str, Dtype)]) -> Result<Option<(Dtypes, Dtypes, Dtypes)>> {
        let (complete, found) = self.types(known)?;
        Ok(Some(found).filter(|_| complete))
    }

    /// Like `infer_dtype`; types that cannot be inferred are [`Dtype::None`].
    pub fn infer_dtype_partial(&self, known: &[(&str, Dtype)]) -> Result<(Dtypes, Dtypes, Dtypes)> {
        Ok(self.types(known)?.1)
    }

    fn types(&self, known: &[(&str, Dtype)]) -> Result<(bool, (Dtypes, Dtypes, Dtypes))> {
        let given = Descs::new()?;
        known.iter().try_for_each(|(name, dtype)| given.add_unknown(name, *dtype))?;
        let (mut complete, mut args, mut outputs, mut aux) = (0, null_mut(), null_mut(), null_mut());
        check(unsafe {
            sys::cohort_symbol_infer_dtype(self.raw(), given.raw(), 1, &mut complete, &mut args, &mut outputs, &mut aux)
        })?;
        let (args, outputs, aux) = (Descs::adopt(args), Descs::adopt(outputs), Descs::adopt(aux));
        Ok((complete == 1, (args.dtypes()?, outputs.dtypes()?, aux.dtypes()?)))
    }
}

impl Clone for Symbol {
    fn clone(&self) -> Symbol {
        Symbol::out(|out| unsafe { sys::cohort_symbol_copy(self.raw(), out) }).expect("a copy of a symbol")
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outputs() {
            Ok(outputs) => write!(f, "Symbol({:?})", outputs),
            Err(error) => write!(f, "Symbol({:?})", error),
        }
    }
}

/// The settings of an operator's node. [`Op::build`] returns the first error.
#[derive(Clone, Debug)]
pub struct Op {
    op: String,
    name: Option<String>,
    attrs: Vec<(String, String)>,
    inputs: Vec<(Option<String>, Symbol)>,
}

impl Op {
    /// A node of the operator with this MXNet name.
    pub fn new(op: &str) -> Op {
        Op { op: op.into(), name: None, attrs: Vec::new(), inputs: Vec::new() }
    }

    /// The node's name; the default is derived from the operator's.
    pub fn name(mut self, name: &str) -> Op {
        self.name = Some(name.into());
        self
    }

    /// An attribute in MXNet's spelling: `2`, `"(2, 2)"`, `"relu"`.
    pub fn attr(mut self, key: &str, value: impl fmt::Display) -> Op {
        self.attrs.push((key.into(), value.to_string()));
        self
    }

    /// The next input.
    pub fn input(mut self, symbol: &Symbol) -> Op {
        self.inputs.push((None, symbol.clone()));
        self
    }

    /// An input by its name.
    pub fn named_input(mut self, name: &str, symbol: &Symbol) -> Op {
        self.inputs.push((Some(name.into()), symbol.clone()));
        self
    }

    /// The symbol of its outputs. Missing inputs become variables.
    pub fn build(self) -> Result<Symbol> {
        let op = c_text(&self.op, "operator")?;
        let name = self.name.as_deref().map(|name| c_text(name, "name")).transpose()?;
        let keys = Texts::new(&self.attrs.iter().map(|(key, _)| key).collect::<Vec<_>>(), "attributes")?;
        let values = Texts::new(&self.attrs.iter().map(|(_, value)| value).collect::<Vec<_>>(), "attributes")?;
        let handles: Vec<_> = self.inputs.iter().map(|(_, symbol)| symbol.raw()).collect();
        let named: Vec<&str> = self.inputs.iter().filter_map(|(name, _)| name.as_deref()).collect();
        if !named.is_empty() && named.len() != self.inputs.len() {
            return Err(crate::Error::invalid("inputs: expected all in order or all by name, found both", self.op));
        }
        let input_names = Texts::new(&named, "inputs")?;
        Symbol::out(|out| unsafe {
            sys::cohort_symbol_create(
                op.as_ptr(),
                name.as_ref().map_or(null(), |name| name.as_ptr()),
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
                handles.as_ptr(),
                if named.is_empty() { null() } else { input_names.as_ptr() },
                handles.len(),
                out,
            )
        })
    }
}
