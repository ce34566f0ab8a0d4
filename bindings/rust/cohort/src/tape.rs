// SPDX-License-Identifier: Apache-2.0
//! Tapes: operators are applied to arrays one by one, a tape records them, and gradients flow back along it.
use crate::arrays::Arrays;
use crate::error::{check, guarded, Error, Result};
use crate::executor::GradReq;
use crate::ndarray::{pointers, NDArray};
use crate::operator::Invoke;
use crate::symbol::Symbol;
use cohort_sys as sys;
use std::os::raw::c_void;
use std::ptr::{null, null_mut};

crate::handle!(
    /// Records operators that are applied to arrays.
    ///
    /// ```
    /// use cohort::{NDArray, Tape};
    ///
    /// # fn main() -> cohort::Result<()> {
    /// let (x, gradient) = (NDArray::from_slice(&[1f32, 2.0], &[2])?, NDArray::from_slice(&[0f32; 2], &[2])?);
    /// let mut tape = Tape::new()?;
    /// tape.mark(&x, &gradient)?;
    /// let y = tape.invoke("square", &[&x], &[])?;
    /// tape.backward(&[&y[0]])?;
    /// assert_eq!(gradient.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    Tape,
    cohort_tape,
    cohort_tape_free
);

/// Computes the gradients of a custom function.
type Backward = Box<dyn FnMut(&[NDArray]) -> Result<Vec<Option<NDArray>>> + Send>;

unsafe extern "C" fn backward(
    head_grads: *mut sys::cohort_arrays,
    gradients: *mut sys::cohort_arrays,
    user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let heads: Vec<NDArray> = Arrays::lent(head_grads)?.into_iter().flatten().collect();
        Arrays::fill(gradients, &(*(user_data as *mut Backward))(&heads)?)
    })
}

unsafe extern "C" fn release(user_data: *mut c_void) {
    let function = Box::from_raw(user_data as *mut Backward);
    guarded(|| {
        drop(function);
        Ok(())
    });
}

impl Tape {
    /// A tape that records, in training mode.
    pub fn new() -> Result<Tape> {
        let mut made = null_mut();
        check(unsafe { sys::cohort_tape_create(&mut made) })?;
        Ok(Tape::adopt(made))
    }

    /// Pauses or resumes recording; returns the previous value.
    pub fn set_recording(&mut self, recording: bool) -> Result<bool> {
        let mut previous = 0;
        check(unsafe { sys::cohort_tape_set_recording(self.raw(), recording.into(), &mut previous) })?;
        Ok(previous != 0)
    }

    /// Sets whether operators are applied as in training; returns the previous value.
    pub fn set_training(&mut self, training: bool) -> Result<bool> {
        let mut previous = 0;
        check(unsafe { sys::cohort_tape_set_training(self.raw(), training.into(), &mut previous) })?;
        Ok(previous != 0)
    }

    /// Whether it records.
    pub fn is_recording(&self) -> Result<bool> {
        let mut found = 0;
        check(unsafe { sys::cohort_tape_is_recording(self.raw(), &mut found) })?;
        Ok(found != 0)
    }

    /// Whether operators are applied as in training.
    pub fn is_training(&self) -> Result<bool> {
        let mut found = 0;
        check(unsafe { sys::cohort_tape_is_training(self.raw(), &mut found) })?;
        Ok(found != 0)
    }

    /// Marks an array as a variable, with the array for its gradient.
    pub fn mark(&mut self, array: &NDArray, gradient: &NDArray) -> Result<()> {
        self.mark_with(array, Some(gradient), GradReq::Write)
    }

    /// The same with a request; without an array it is for [`Tape::grad`] only. [`GradReq::Null`] removes the mark.
    pub fn mark_with(&mut self, array: &NDArray, gradient: Option<&NDArray>, grad_req: GradReq) -> Result<()> {
        let (array, gradient, code) = (array.raw(), gradient.map_or(null_mut(), NDArray::raw), grad_req.code());
        check(unsafe { sys::cohort_tape_mark(self.raw(), &array, &gradient, &code, 1) })
    }

    /// Applies an operator to arrays and records it. With a seed, on a context or into arrays: [`Invoke::record`].
    pub fn invoke(&mut self, op: &str, inputs: &[&NDArray], attrs: &[(&str, &str)]) -> Result<Vec<NDArray>> {
        let with_attrs = attrs.iter().fold(Invoke::new(op), |made, (key, value)| made.attr(key, value));
        inputs.iter().fold(with_attrs, |made, array| made.input(array)).record(self)
    }

    /// Computes the gradients of the sum of the heads with respect to the marked arrays that they depend on.
    pub fn backward(&mut self, heads: &[&NDArray]) -> Result<()> {
        self.backward_with(heads, &[], false, false)
    }

    /// Like `backward`, with head gradients: none, or one for each head. `retain_graph` keeps the graph for another pass.
    /// `create_graph` records the pass itself.
    pub fn backward_with(
        &mut self,
        heads: &[&NDArray],
        head_grads: &[&NDArray],
        retain_graph: bool,
        create_graph: bool,
    ) -> Result<()> {
        let (arrays, grads) = (pointers(heads), heads_of(heads, head_grads)?);
        let options = options(retain_graph, create_graph);
        check(unsafe {
            sys::cohort_tape_backward(self.raw(), arrays.as_ptr(), or_null(&grads), arrays.len(), &options)
        })
    }

    /// Gradients of some arrays only, as new arrays.
    pub fn grad(
        &mut self,
        heads: &[&NDArray],
        head_grads: &[&NDArray],
        variables: &[&NDArray],
        create_graph: bool,
    ) -> Result<Vec<NDArray>> {
        let (arrays, grads, wanted) = (pointers(heads), heads_of(heads, head_grads)?, pointers(variables));
        let options = options(false, create_graph);
        let found = Arrays::out(|out| unsafe {
            let (heads, num, wanted_num) = (arrays.as_ptr(), arrays.len(), wanted.len());
            sys::cohort_tape_grad(self.raw(), heads, or_null(&grads), num, wanted.as_ptr(), wanted_num, &options, out)
        })?;
        Ok(found.list()?.into_iter().flatten().collect())
    }

    /// Records a computation of the caller's, with a function from the gradients of the outputs to those of the inputs.
    pub fn function(
        &mut self,
        inputs: &[&NDArray],
        outputs: &[&NDArray],
        gradients: impl FnMut(&[NDArray]) -> Result<Vec<Option<NDArray>>> + Send + 'static,
    ) -> Result<()> {
        let boxed: Box<Backward> = Box::new(Box::new(gradients));
        let (inputs, outputs) = (pointers(inputs), pointers(outputs));
        let user_data = Box::into_raw(boxed) as *mut c_void;
        let error = unsafe {
            sys::cohort_tape_function(
                self.raw(),
                inputs.as_ptr(),
                inputs.len(),
                outputs.as_ptr(),
                outputs.len(),
                Some(backward),
                Some(release),
                user_data,
            )
        };
        if !error.is_null() {
            // SAFETY: after an error the library never calls it.
            drop(unsafe { Box::from_raw(user_data as *mut Backward) });
        }
        check(error)
    }

    /// The recorded graph of an array as a symbol.
    pub fn symbol(&mut self, array: &NDArray) -> Result<Symbol> {
        Symbol::out(|out| unsafe { sys::cohort_tape_symbol(self.raw(), array.raw(), out) })
    }

    /// The number of recorded operators and functions through which a gradient could flow.
    pub fn num_recorded(&mut self) -> Result<usize> {
        let mut num = 0;
        check(unsafe { sys::cohort_tape_num_recorded(self.raw(), &mut num) })?;
        Ok(num)
    }
}

fn heads_of(heads: &[&NDArray], grads: &[&NDArray]) -> Result<Vec<*mut sys::cohort_ndarray>> {
    if !grads.is_empty() && grads.len() != heads.len() {
        let message = format!("head gradients: expected {}, found {}", heads.len(), grads.len());
        return Err(Error::invalid(message, "head_grads"));
    }
    Ok(pointers(grads))
}

fn or_null(grads: &[*mut sys::cohort_ndarray]) -> *const *mut sys::cohort_ndarray {
    if grads.is_empty() {
        null()
    } else {
        grads.as_ptr()
    }
}

fn options(retain_graph: bool, create_graph: bool) -> sys::cohort_backward_options {
    sys::cohort_backward_options {
        struct_size: std::mem::size_of::<sys::cohort_backward_options>(),
        retain_graph: retain_graph.into(),
        create_graph: create_graph.into(),
    }
}
