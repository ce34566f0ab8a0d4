// SPDX-License-Identifier: Apache-2.0
//! What operators there are.
use crate::error::{c_text, check, text, Result};
use crate::ndarray::names;
use cohort_sys as sys;
use std::ptr::{null, null_mut};

/// An attribute of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorAttr {
    /// Its name.
    pub name: String,
    /// In MXNet's words.
    pub attr_type: String,
    /// None: it has to be given.
    pub default: Option<String>,
    /// What it means.
    pub doc: String,
}

/// What an operator is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorInfo {
    /// The name that others are aliases of.
    pub name: String,
    /// What it computes.
    pub doc: String,
    /// In order.
    pub attrs: Vec<OperatorAttr>,
    /// Names of the inputs, auxiliary states among them.
    pub inputs: Vec<String>,
    /// The attribute that says how many inputs there are, of operators with any number.
    pub count_attr: Option<String>,
}

/// The names of all operators.
pub fn operators() -> Result<Vec<String>> {
    let mut num = 0;
    check(unsafe { sys::cohort_operator_num(&mut num) })?;
    names(num, |i, out| unsafe { sys::cohort_operator_name(i, out) })
}

/// What one is.
pub fn operator(op: &str) -> Result<OperatorInfo> {
    let op = c_text(op, "operator")?;
    let (mut name, mut doc, mut num_attrs, mut num_inputs, mut count) = (null(), null(), 0, 0, null());
    check(unsafe {
        let (attrs, inputs) = (&mut num_attrs, &mut num_inputs);
        sys::cohort_operator_info(op.as_ptr(), &mut name, &mut doc, attrs, inputs, null_mut(), &mut count)
    })?;
    let attrs = (0..num_attrs)
        .map(|i| {
            let (mut name, mut attr_type, mut default, mut doc) = (null(), null(), null(), null());
            check(unsafe {
                sys::cohort_operator_attr(op.as_ptr(), i, &mut name, &mut attr_type, &mut default, &mut doc)
            })?;
            Ok(unsafe {
                OperatorAttr {
                    name: text(name),
                    attr_type: text(attr_type),
                    default: if default.is_null() { None } else { Some(text(default)) },
                    doc: text(doc),
                }
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let inputs =
        names(num_inputs, |i, out| unsafe { sys::cohort_operator_input(op.as_ptr(), i, out, null_mut(), null_mut()) })?;
    let count_attr = unsafe { Some(text(count)).filter(|name| !name.is_empty()) };
    Ok(unsafe { OperatorInfo { name: text(name), doc: text(doc), attrs, inputs, count_attr } })
}
