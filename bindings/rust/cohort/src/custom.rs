// SPDX-License-Identifier: Apache-2.0
//! Custom operators.
use crate::arrays::{Arrays, Descs};
use crate::error::{c_text, check, guarded, text, Result};
use crate::ndarray::{Context, Dtype, NDArray};
use cohort_sys as sys;
use std::ffi::CString;
use std::os::raw::{c_char, c_void};

/// The attributes of a node, without `op_type`.
pub type Attrs = [(String, String)];

/// Shapes in order.
pub type Shapes = Vec<Vec<usize>>;

/// A custom operator. [`register`] gives it a name, the `op_type` of nodes `Custom`.
pub trait CustomOp: Send + Sync + 'static {
    /// Names of the inputs.
    fn inputs(&self, _attrs: &Attrs) -> Result<Vec<String>> {
        Ok(vec!["data".into()])
    }

    /// Names of the auxiliary states.
    fn aux(&self, _attrs: &Attrs) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Names of the outputs.
    fn outputs(&self, _attrs: &Attrs) -> Result<Vec<String>> {
        Ok(vec!["output".into()])
    }

    /// Shapes of inputs, auxiliary states and outputs from the known shapes of the inputs; the first one is known. By default all
    /// are equal to the first.
    fn infer_shape(&self, attrs: &Attrs, known: &[Option<Vec<usize>>]) -> Result<(Shapes, Shapes, Shapes)> {
        let first = known.iter().flatten().next().cloned().unwrap_or_default();
        let of = |num| vec![first.clone(); num];
        Ok((of(known.len()), of(self.aux(attrs)?.len()), of(self.outputs(attrs)?.len())))
    }

    /// Creates the operator of one bound node.
    fn create(&self, attrs: &Attrs, context: Context) -> Result<Box<dyn CustomNode>>;

    /// Whether it is a loss, whose backward needs no head gradients.
    fn ignores_head_grads(&self) -> bool {
        false
    }
}

/// A bound node of a custom operator. The arrays are the library's working memory and must not be kept.
pub trait CustomNode: Send {
    /// Writes the outputs.
    fn forward(&mut self, inputs: &[NDArray], aux: &[NDArray], outputs: &[NDArray], is_train: bool) -> Result<()>;

    /// Writes the gradients of the inputs; None for an input whose gradient is not wanted.
    fn backward(
        &mut self,
        head_grads: &[NDArray],
        inputs: &[NDArray],
        aux: &[NDArray],
        outputs: &[NDArray],
        gradients: &[Option<NDArray>],
    ) -> Result<()>;
}

type Op = Box<dyn CustomOp>;
type Node = Box<dyn CustomNode>;

unsafe fn op<'a>(user_data: *mut c_void) -> &'a dyn CustomOp {
    &**(user_data as *const Op)
}

unsafe fn attrs(keys: *const *const c_char, values: *const *const c_char, num: usize) -> Vec<(String, String)> {
    (0..num).map(|i| (text(*keys.add(i)), text(*values.add(i)))).collect()
}

unsafe extern "C" fn declare(
    keys: *const *const c_char,
    values: *const *const c_char,
    num_attrs: usize,
    inputs: *mut sys::cohort_descs,
    aux: *mut sys::cohort_descs,
    outputs: *mut sys::cohort_descs,
    user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let (op, attrs) = (op(user_data), attrs(keys, values, num_attrs));
        let lists = [(inputs, op.inputs(&attrs)?), (aux, op.aux(&attrs)?), (outputs, op.outputs(&attrs)?)];
        for (list, names) in lists {
            let list = Descs::lent(list);
            names.iter().try_for_each(|name| list.add_unknown(name, Dtype::None))?;
        }
        Ok(())
    })
}

unsafe extern "C" fn infer_shape(
    keys: *const *const c_char,
    values: *const *const c_char,
    num_attrs: usize,
    known: *const sys::cohort_descs,
    inputs: *mut sys::cohort_descs,
    aux: *mut sys::cohort_descs,
    outputs: *mut sys::cohort_descs,
    user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let attrs = attrs(keys, values, num_attrs);
        let known: Vec<_> = Descs::lent(known as *mut _).list()?.into_iter().map(|(_, shape)| shape).collect();
        let found = op(user_data).infer_shape(&attrs, &known)?;
        for (list, shapes) in [(inputs, found.0), (aux, found.1), (outputs, found.2)] {
            let list = Descs::lent(list);
            shapes.iter().enumerate().try_for_each(|(i, shape)| list.add(&i.to_string(), shape, Dtype::None, None))?;
        }
        Ok(())
    })
}

unsafe extern "C" fn create(
    keys: *const *const c_char,
    values: *const *const c_char,
    num_attrs: usize,
    context: *const sys::cohort_context,
    out_state: *mut *mut c_void,
    user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let made = op(user_data).create(&attrs(keys, values, num_attrs), Context::from_raw(*context))?;
        *out_state = Box::into_raw(Box::new(made)) as *mut c_void;
        Ok(())
    })
}

unsafe fn given(list: *const sys::cohort_arrays) -> Result<Vec<NDArray>> {
    Ok(Arrays::lent(list)?.into_iter().flatten().collect())
}

unsafe extern "C" fn forward(
    state: *mut c_void,
    inputs: *const sys::cohort_arrays,
    aux: *const sys::cohort_arrays,
    outputs: *const sys::cohort_arrays,
    is_train: i32,
    _user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let node = &mut *(state as *mut Node);
        node.forward(&given(inputs)?, &given(aux)?, &given(outputs)?, is_train != 0)
    })
}

unsafe extern "C" fn backward(
    state: *mut c_void,
    head_grads: *const sys::cohort_arrays,
    inputs: *const sys::cohort_arrays,
    aux: *const sys::cohort_arrays,
    outputs: *const sys::cohort_arrays,
    gradients: *const sys::cohort_arrays,
    _user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let node = &mut *(state as *mut Node);
        let wanted = Arrays::lent(gradients)?;
        node.backward(&given(head_grads)?, &given(inputs)?, &given(aux)?, &given(outputs)?, &wanted)
    })
}

unsafe extern "C" fn release(state: *mut c_void, _user_data: *mut c_void) {
    if !state.is_null() {
        let node = Box::from_raw(state as *mut Node);
        guarded(|| {
            drop(node);
            Ok(())
        });
    }
}

unsafe extern "C" fn ended(user_data: *mut c_void) {
    let op = Box::from_raw(user_data as *mut Op);
    guarded(|| {
        drop(op);
        Ok(())
    });
}

/// The registration of a custom operator; dropping it removes the name. Existing nodes are not affected.
#[derive(Debug)]
#[must_use = "dropping it ends the name"]
pub struct Registration {
    op_type: CString,
}

impl Drop for Registration {
    fn drop(&mut self) {
        unsafe { sys::cohort_error_free(sys::cohort_custom_unregister(self.op_type.as_ptr())) }
    }
}

/// Registers an operator for the whole process.
///
/// ```
/// use cohort::{invoke, Attrs, Context, CustomNode, CustomOp, NDArray, Result};
///
/// struct Double;
///
/// impl CustomOp for Double {
///     fn create(&self, _attrs: &Attrs, _context: Context) -> Result<Box<dyn CustomNode>> {
///         Ok(Box::new(Double))
///     }
/// }
///
/// fn doubled(from: &NDArray, to: &NDArray) -> Result<()> {
///     to.write(&from.to_vec::<f32>()?.iter().map(|x| 2.0 * x).collect::<Vec<_>>())
/// }
///
/// impl CustomNode for Double {
///     fn forward(&mut self, inputs: &[NDArray], _aux: &[NDArray], outputs: &[NDArray], _is_train: bool) -> Result<()> {
///         doubled(&inputs[0], &outputs[0])
///     }
///
///     fn backward(
///         &mut self,
///         head_grads: &[NDArray],
///         _inputs: &[NDArray],
///         _aux: &[NDArray],
///         _outputs: &[NDArray],
///         gradients: &[Option<NDArray>],
///     ) -> Result<()> {
///         gradients[0].as_ref().map_or(Ok(()), |gradient| doubled(&head_grads[0], gradient))
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let _double = cohort::register("double", Double)?;
/// let x = NDArray::from_slice(&[1f32, 2.0], &[2])?;
/// assert_eq!(invoke("Custom", &[&x], &[("op_type", "double")])?[0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
pub fn register(op_type: &str, operator: impl CustomOp) -> Result<Registration> {
    let op_type = c_text(op_type, "op_type")?;
    // SAFETY: all zeros is a valid value, the defaults.
    let mut table: sys::cohort_custom_op = unsafe { std::mem::zeroed() };
    table.struct_size = std::mem::size_of_val(&table);
    table.ignores_head_grads = operator.ignores_head_grads().into();
    table.declare = Some(declare);
    table.infer_shape = Some(infer_shape);
    table.create = Some(create);
    table.forward = Some(forward);
    table.backward = Some(backward);
    table.release = Some(release);
    table.ended = Some(ended);
    let boxed: Box<Op> = Box::new(Box::new(operator));
    table.user_data = Box::into_raw(boxed) as *mut c_void;
    let error = unsafe { sys::cohort_custom_register(op_type.as_ptr(), &table) };
    if !error.is_null() {
        // SAFETY: after an error the library never calls it.
        drop(unsafe { Box::from_raw(table.user_data as *mut Op) });
    }
    check(error)?;
    Ok(Registration { op_type })
}
