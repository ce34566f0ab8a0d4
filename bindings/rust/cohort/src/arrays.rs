// SPDX-License-Identifier: Apache-2.0
//! The library's lists: arrays by name, descriptors.
use crate::error::{c_text, check, text, Result};
use crate::model::Params;
use crate::ndarray::{names, Dtype, NDArray};
use cohort_sys as sys;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};

crate::handle!(
    #[doc(hidden)]
    Arrays,
    cohort_arrays,
    cohort_arrays_free
);

impl Arrays {
    pub(crate) fn out(call: impl FnOnce(*mut *mut sys::cohort_arrays) -> *mut sys::cohort_error) -> Result<Arrays> {
        let mut made = null_mut();
        check(call(&mut made))?;
        Ok(Arrays::adopt(made))
    }

    pub(crate) fn of<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a NDArray)>) -> Result<Arrays> {
        let made = Arrays::out(|out| unsafe { sys::cohort_arrays_create(out) })?;
        for (name, array) in arrays {
            let name = c_text(name, "array")?;
            check(unsafe { sys::cohort_arrays_add(made.raw(), name.as_ptr(), array.raw()) })?;
        }
        Ok(made)
    }

    pub(crate) fn of_params(params: &Params) -> Result<Arrays> {
        Arrays::of(params.iter().map(|(name, array)| (name.as_str(), array)))
    }

    fn num(&self) -> Result<usize> {
        let mut num = 0;
        check(unsafe { sys::cohort_arrays_num(self.raw(), &mut num) })?;
        Ok(num)
    }

    /// The entries of a list that a callback was given.
    ///
    /// # Safety
    /// The list has to live through the call.
    pub(crate) unsafe fn lent(raw: *const sys::cohort_arrays) -> Result<Vec<Option<NDArray>>> {
        ManuallyDrop::new(Arrays::adopt(raw as *mut _)).list()
    }

    /// Appends to a list that a callback was given.
    ///
    /// # Safety
    /// The list has to live through the call.
    pub(crate) unsafe fn fill(raw: *mut sys::cohort_arrays, arrays: &[Option<NDArray>]) -> Result<()> {
        for array in arrays {
            check(sys::cohort_arrays_add(raw, null(), array.as_ref().map_or(null_mut(), NDArray::raw)))?;
        }
        Ok(())
    }

    pub(crate) fn list(&self) -> Result<Vec<Option<NDArray>>> {
        (0..self.num()?)
            .map(|i| {
                let mut array = null_mut();
                check(unsafe { sys::cohort_arrays_get(self.raw(), i, &mut array) })?;
                Ok(if array.is_null() { None } else { Some(NDArray::adopt(array)) })
            })
            .collect()
    }

    /// The entries that have an array.
    pub(crate) fn pairs(&self) -> Result<Vec<(String, NDArray)>> {
        let keys = names(self.num()?, |i, out| unsafe { sys::cohort_arrays_name(self.raw(), i, out) })?;
        Ok(keys.into_iter().zip(self.list()?).filter_map(|(key, array)| Some((key, array?))).collect())
    }

    pub(crate) fn map(&self) -> Result<BTreeMap<String, NDArray>> {
        Ok(self.pairs()?.into_iter().collect())
    }
}

crate::handle!(
    #[doc(hidden)]
    Descs,
    cohort_descs,
    cohort_descs_free
);

impl Descs {
    pub(crate) fn new() -> Result<Descs> {
        let mut made = null_mut();
        check(unsafe { sys::cohort_descs_create(&mut made) })?;
        Ok(Descs::adopt(made))
    }

    pub(crate) fn add(&self, name: &str, shape: &[usize], dtype: Dtype, layout: Option<&str>) -> Result<()> {
        let name = c_text(name, "descriptor")?;
        let layout = layout.map(|one| c_text(one, "layout")).transpose()?;
        let lengths: Vec<i64> = shape.iter().map(|&length| length as i64).collect();
        check(unsafe {
            sys::cohort_descs_add(
                self.raw(),
                name.as_ptr(),
                lengths.as_ptr(),
                lengths.len() as i32,
                dtype.code(),
                layout.as_ref().map_or(null(), |one| one.as_ptr()),
            )
        })
    }

    /// A list that a callback was given, owned by the library.
    ///
    /// # Safety
    /// The list has to live through the call.
    pub(crate) unsafe fn lent(raw: *mut sys::cohort_descs) -> ManuallyDrop<Descs> {
        ManuallyDrop::new(Descs::adopt(raw))
    }

    /// A type without a shape.
    pub(crate) fn add_unknown(&self, name: &str, dtype: Dtype) -> Result<()> {
        let name = c_text(name, "descriptor")?;
        check(unsafe {
            sys::cohort_descs_add(self.raw(), name.as_ptr(), null(), sys::COHORT_UNKNOWN_SHAPE, dtype.code(), null())
        })
    }

    pub(crate) fn known(shapes: &[(&str, &[usize])]) -> Result<Descs> {
        let made = Descs::new()?;
        for (name, shape) in shapes {
            made.add(name, shape, Dtype::None, None)?;
        }
        Ok(made)
    }

    /// Names and types.
    pub(crate) fn dtypes(&self) -> Result<Vec<(String, Dtype)>> {
        let mut num = 0;
        check(unsafe { sys::cohort_descs_num(self.raw(), &mut num) })?;
        (0..num)
            .map(|i| {
                let (mut name, mut code) = (null(), 0);
                check(unsafe {
                    let (none, axes) = (null_mut(), null_mut());
                    sys::cohort_descs_get(self.raw(), i, &mut name, none, 0, axes, &mut code, null_mut())
                })?;
                Ok((unsafe { text(name) }, Dtype::of(code)))
            })
            .collect()
    }

    /// Names and shapes; an unknown shape is None.
    pub(crate) fn list(&self) -> Result<Vec<(String, Option<Vec<usize>>)>> {
        let mut num = 0;
        check(unsafe { sys::cohort_descs_num(self.raw(), &mut num) })?;
        (0..num)
            .map(|i| {
                let (mut name, mut shape, mut axes) = (null(), [0i64; sys::COHORT_MAX_AXES as usize], 0);
                check(unsafe {
                    sys::cohort_descs_get(
                        self.raw(),
                        i,
                        &mut name,
                        shape.as_mut_ptr(),
                        shape.len(),
                        &mut axes,
                        null_mut(),
                        null_mut(),
                    )
                })?;
                let known = usize::try_from(axes).ok();
                let lengths = known.map(|axes| shape[..axes].iter().map(|&length| length as usize).collect());
                Ok((unsafe { text(name) }, lengths))
            })
            .collect()
    }
}
