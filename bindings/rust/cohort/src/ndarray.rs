// SPDX-License-Identifier: Apache-2.0
//! Arrays on devices.
use crate::arrays::Arrays;
use crate::error::{c_text, check, text, Error, ErrorKind, Result};
use crate::operator::Invoke;
use cohort_sys as sys;
use std::fmt;
use std::os::raw::c_void;
use std::ptr::{null, null_mut};

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    device_type: i32,
    device_id: i32,
}

impl Context {
    /// A CPU device; each id is a separate worker with its share of the processors.
    pub fn cpu(device_id: u16) -> Context {
        Context { device_type: sys::COHORT_DEVICE_CPU, device_id: device_id.into() }
    }

    /// A GPU.
    pub fn gpu(device_id: u16) -> Context {
        Context { device_type: sys::COHORT_DEVICE_GPU, device_id: device_id.into() }
    }

    /// From text: `cpu(0)`.
    pub fn parse(from: &str) -> Result<Context> {
        let wanted = c_text(from, "context")?;
        let mut found = sys::cohort_context { device_type: 0, device_id: 0 };
        check(unsafe { sys::cohort_context_parse(wanted.as_ptr(), &mut found) })?;
        Ok(Context::from_raw(found))
    }

    /// The memory of the device that this process uses.
    pub fn memory(&self) -> Result<DeviceMemory> {
        // SAFETY: all zeros is a valid value.
        let mut info: sys::cohort_device_memory_info = unsafe { std::mem::zeroed() };
        info.struct_size = std::mem::size_of_val(&info);
        check(unsafe { sys::cohort_device_memory(&self.to_raw(), &mut info) })?;
        let (used, peak, cached, limit) = (info.used_bytes, info.peak_bytes, info.cached_bytes, info.limit_bytes);
        Ok(DeviceMemory { used, peak, cached, limit })
    }

    /// Resets the peak to the present use.
    pub fn reset_peak_memory(&self) -> Result<()> {
        check(unsafe { sys::cohort_device_reset_peak_memory(&self.to_raw()) })
    }

    /// Limits the memory that this process uses, in bytes; 0: no limit. An allocation beyond it is [`ErrorKind::OutOfMemory`].
    pub fn limit_memory(&self, bytes: usize) -> Result<()> {
        check(unsafe { sys::cohort_device_limit_memory(&self.to_raw(), bytes) })
    }

    pub(crate) fn from_raw(from: sys::cohort_context) -> Context {
        Context { device_type: from.device_type, device_id: from.device_id }
    }

    pub(crate) fn to_raw(self) -> sys::cohort_context {
        sys::cohort_context { device_type: self.device_type, device_id: self.device_id }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.device_type {
            sys::COHORT_DEVICE_GPU => "gpu",
            sys::COHORT_DEVICE_CPU_PINNED => "cpu_pinned",
            sys::COHORT_DEVICE_CPU_SHARED => "cpu_shared",
            _ => "cpu",
        };
        write!(f, "{}({})", word, self.device_id)
    }
}

/// The memory of a device that this process uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Arrays, and the working memory of executors, groups and operators.
    pub used: usize,
    /// The highest use since the last reset.
    pub peak: usize,
    /// Cached for later use, beside that.
    pub cached: usize,
    /// The limit set by [`Context::limit_memory`]; 0: none.
    pub limit: usize,
}

/// Element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// Not given, or unknown.
    None,
    /// `f32`
    Float32,
    /// `f64`
    Float64,
    /// IEEE 754's half
    Float16,
    /// `u8`
    Uint8,
    /// `i32`
    Int32,
    /// `i8`
    Int8,
    /// `i64`
    Int64,
    /// A byte, 0 or 1
    Bool,
    /// The upper half of a `f32`
    Bfloat16,
}

const DTYPES: [(Dtype, i32); 10] = [
    (Dtype::None, sys::COHORT_DTYPE_NONE),
    (Dtype::Float32, sys::COHORT_DTYPE_FLOAT32),
    (Dtype::Float64, sys::COHORT_DTYPE_FLOAT64),
    (Dtype::Float16, sys::COHORT_DTYPE_FLOAT16),
    (Dtype::Uint8, sys::COHORT_DTYPE_UINT8),
    (Dtype::Int32, sys::COHORT_DTYPE_INT32),
    (Dtype::Int8, sys::COHORT_DTYPE_INT8),
    (Dtype::Int64, sys::COHORT_DTYPE_INT64),
    (Dtype::Bool, sys::COHORT_DTYPE_BOOL),
    (Dtype::Bfloat16, sys::COHORT_DTYPE_BFLOAT16),
];

impl Dtype {
    pub(crate) fn code(self) -> i32 {
        DTYPES.iter().find(|(dtype, _)| *dtype == self).map_or(sys::COHORT_DTYPE_NONE, |(_, code)| *code)
    }

    pub(crate) fn of(code: i32) -> Dtype {
        DTYPES.iter().find(|(_, known)| *known == code).map_or(Dtype::None, |(dtype, _)| *dtype)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Rust's number types that arrays can be made from.
pub trait Element: sealed::Sealed + Copy + Default + 'static {
    /// Their type in arrays.
    const DTYPE: Dtype;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )*};
}
element!(f32 => Float32, f64 => Float64, u8 => Uint8, i32 => Int32, i8 => Int8, i64 => Int64);

crate::handle!(
    /// An array on a device, or a view of one. A clone is another handle on the same array.
    NDArray,
    cohort_ndarray,
    cohort_ndarray_free
);

/// Releases the vector that an array was made from.
unsafe extern "C" fn let_go<T: Element>(_data: *mut c_void, owner: *mut c_void) {
    drop(Box::from_raw(owner as *mut Vec<T>));
}

fn lengths(shape: &[usize]) -> Result<Vec<i64>> {
    shape
        .iter()
        .map(|&length| i64::try_from(length).map_err(|_| Error::invalid(format!("shape: length {}", length), "shape")))
        .collect()
}

impl NDArray {
    pub(crate) fn out(call: impl FnOnce(*mut *mut sys::cohort_ndarray) -> *mut sys::cohort_error) -> Result<NDArray> {
        let mut made = null_mut();
        check(call(&mut made))?;
        Ok(NDArray::adopt(made))
    }

    /// For calls that may return no array.
    pub(crate) fn maybe(
        call: impl FnOnce(*mut *mut sys::cohort_ndarray) -> *mut sys::cohort_error,
    ) -> Result<Option<NDArray>> {
        let mut made = null_mut();
        check(call(&mut made))?;
        Ok(if made.is_null() { None } else { Some(NDArray::adopt(made)) })
    }

    /// An array of zeros.
    pub fn zeros(shape: &[usize], dtype: Dtype, context: &Context) -> Result<NDArray> {
        let (shape, context) = (lengths(shape)?, context.to_raw());
        NDArray::out(|out| unsafe {
            sys::cohort_ndarray_zeros(shape.as_ptr(), shape.len() as i32, dtype.code(), &context, out)
        })
    }

    /// An array on cpu(0) with a copy of these numbers, row-major.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<NDArray> {
        NDArray::from_slice_on(values, shape, &Context::cpu(0))
    }

    /// Like `from_slice`, on a context.
    pub fn from_slice_on<T: Element>(values: &[T], shape: &[usize], context: &Context) -> Result<NDArray> {
        let (shape, context) = (lengths(shape)?, context.to_raw());
        NDArray::out(|out| unsafe {
            sys::cohort_ndarray_from_host(
                values.as_ptr() as *const c_void,
                std::mem::size_of_val(values),
                shape.as_ptr(),
                shape.len() as i32,
                T::DTYPE.code(),
                &context,
                out,
            )
        })
    }

    /// An array on cpu(0) that takes over the vector's memory, without a copy.
    pub fn from_vec<T: Element>(values: Vec<T>, shape: &[usize]) -> Result<NDArray> {
        let size = shape.iter().try_fold(1usize, |size, &length| size.checked_mul(length));
        if size != Some(values.len()) {
            let message = format!("shape: {:?} is not that of {} elements", shape, values.len());
            return Err(Error::new(ErrorKind::Shape, message, "shape"));
        }
        let (shape, context) = (lengths(shape)?, Context::cpu(0).to_raw());
        let mut boxed = Box::new(values);
        let data = boxed.as_mut_ptr() as *mut c_void;
        let owner = Box::into_raw(boxed) as *mut c_void;
        let (num, code) = (shape.len() as i32, T::DTYPE.code());
        let made = NDArray::out(|out| unsafe {
            sys::cohort_ndarray_wrap(data, shape.as_ptr(), num, code, &context, Some(let_go::<T>), owner, out)
        });
        if made.is_err() {
            // SAFETY: after an error nobody else owns it.
            drop(unsafe { Box::from_raw(owner as *mut Vec<T>) });
        }
        made
    }

    /// A `DLManagedTensorVersioned` for another library, which is to call its deleter.
    pub fn to_dlpack(&self) -> Result<*mut c_void> {
        let mut managed = null_mut();
        check(unsafe { sys::cohort_ndarray_to_dlpack(self.raw(), &mut managed) })?;
        Ok(managed)
    }

    /// From a `DLManagedTensorVersioned`, which the array then owns.
    ///
    /// # Safety
    /// A tensor that another library exported, and that nobody else uses or deletes.
    pub unsafe fn from_dlpack(managed: *mut c_void) -> Result<NDArray> {
        NDArray::out(|out| sys::cohort_ndarray_from_dlpack(managed, out))
    }

    /// Joins arrays along an axis.
    pub fn concat(arrays: &[&NDArray], axis: i32) -> Result<NDArray> {
        let arrays = pointers(arrays);
        NDArray::out(|out| unsafe { sys::cohort_ndarray_concat(arrays.as_ptr(), arrays.len(), axis, out) })
    }

    /// The lengths of the axes.
    pub fn shape(&self) -> Result<Vec<usize>> {
        let (mut shape, mut num) = ([0i64; sys::COHORT_MAX_AXES as usize], 0);
        check(unsafe { sys::cohort_ndarray_shape(self.raw(), shape.as_mut_ptr(), shape.len(), &mut num) })?;
        Ok(shape[..num as usize].iter().map(|&length| length as usize).collect())
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Result<Dtype> {
        let mut code = 0;
        check(unsafe { sys::cohort_ndarray_dtype(self.raw(), &mut code) })?;
        Ok(Dtype::of(code))
    }

    /// The context it is on.
    pub fn context(&self) -> Result<Context> {
        let mut found = Context::cpu(0).to_raw();
        check(unsafe { sys::cohort_ndarray_context(self.raw(), &mut found) })?;
        Ok(Context::from_raw(found))
    }

    /// The number of elements.
    pub fn size(&self) -> Result<usize> {
        let mut size = 0;
        check(unsafe { sys::cohort_ndarray_size(self.raw(), &mut size) })?;
        Ok(size as usize)
    }

    /// A copy of the elements, after waiting for the work that writes them. The types have to be the same: see [`NDArray::cast`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let mut found = vec![T::default(); self.size()?];
        self.read(&mut found)?;
        Ok(found)
    }

    /// Like `to_vec`, into memory of the caller's, of exactly that size.
    pub fn read<T: Element>(&self, into: &mut [T]) -> Result<()> {
        self.same_type::<T>()?;
        check(unsafe {
            sys::cohort_ndarray_read(self.raw(), into.as_mut_ptr() as *mut c_void, std::mem::size_of_val(into))
        })
    }

    /// Sets all elements.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        self.same_type::<T>()?;
        check(unsafe {
            sys::cohort_ndarray_write(self.raw(), values.as_ptr() as *const c_void, std::mem::size_of_val(values))
        })
    }

    fn same_type<T: Element>(&self) -> Result<()> {
        let found = self.dtype()?;
        if found == T::DTYPE {
            return Ok(());
        }
        Err(Error::invalid(format!("array: expected elements of {:?}, found {:?}", T::DTYPE, found), "dtype"))
    }

    /// Sets all elements to one number.
    pub fn fill(&self, value: f64) -> Result<()> {
        check(unsafe { sys::cohort_ndarray_fill(self.raw(), value) })
    }

    /// Copies into another array of the same shape, converting.
    pub fn copy_to(&self, target: &NDArray) -> Result<()> {
        check(unsafe { sys::cohort_ndarray_copy_to(self.raw(), target.raw()) })
    }

    /// A copy on a context.
    pub fn copy(&self, context: &Context) -> Result<NDArray> {
        let context = context.to_raw();
        NDArray::out(|out| unsafe { sys::cohort_ndarray_copy(self.raw(), &context, out) })
    }

    /// A copy of another type.
    pub fn cast(&self, dtype: Dtype) -> Result<NDArray> {
        NDArray::out(|out| unsafe { sys::cohort_ndarray_cast(self.raw(), dtype.code(), out) })
    }

    /// A view of rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> Result<NDArray> {
        let ends = lengths(&[rows.start, rows.end])?;
        NDArray::out(|out| unsafe { sys::cohort_ndarray_slice(self.raw(), ends[0], ends[1], out) })
    }

    /// A view of one row, without the first axis.
    pub fn at(&self, index: usize) -> Result<NDArray> {
        let index = lengths(&[index])?[0];
        NDArray::out(|out| unsafe { sys::cohort_ndarray_at(self.raw(), index, out) })
    }

    /// A part along any axis.
    pub fn slice_axis(&self, axis: i32, range: std::ops::Range<usize>) -> Result<NDArray> {
        let ends = lengths(&[range.start, range.end])?;
        NDArray::out(|out| unsafe { sys::cohort_ndarray_slice_axis(self.raw(), axis, ends[0], ends[1], out) })
    }

    /// Random numbers, uniform between two bounds.
    pub fn fill_uniform(&self, low: f64, high: f64, seed: u64) -> Result<()> {
        check(unsafe { sys::cohort_ndarray_fill_uniform(self.raw(), low, high, seed) })
    }

    /// Normally distributed random numbers.
    pub fn fill_normal(&self, mean: f64, deviation: f64, seed: u64) -> Result<()> {
        check(unsafe { sys::cohort_ndarray_fill_normal(self.raw(), mean, deviation, seed) })
    }

    /// A view of the same memory with another shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<NDArray> {
        let shape = lengths(shape)?;
        NDArray::out(|out| unsafe { sys::cohort_ndarray_reshape(self.raw(), shape.as_ptr(), shape.len() as i32, out) })
    }

    /// Waits for the work that writes the array.
    pub fn wait(&self) -> Result<()> {
        check(unsafe { sys::cohort_ndarray_wait(self.raw()) })
    }

    /// A reference of its own to an array that a callback was given.
    pub(crate) fn share(lent: *const sys::cohort_ndarray) -> Result<NDArray> {
        NDArray::out(|out| unsafe { sys::cohort_ndarray_share(lent, out) })
    }
}

impl Clone for NDArray {
    fn clone(&self) -> NDArray {
        NDArray::share(self.raw()).expect("another handle on an array")
    }
}

impl fmt::Debug for NDArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.shape(), self.dtype()) {
            (Ok(shape), Ok(dtype)) => write!(f, "NDArray({:?}, {:?})", shape, dtype),
            (Err(error), _) | (_, Err(error)) => write!(f, "NDArray({:?})", error),
        }
    }
}

pub(crate) fn pointers(arrays: &[&NDArray]) -> Vec<*mut sys::cohort_ndarray> {
    arrays.iter().map(|array| array.raw()).collect()
}

/// The arrays of a .params file, with their names; empty names if it has none.
pub fn load(path: &str) -> Result<Vec<(String, NDArray)>> {
    let path = c_text(path, "path")?;
    let file = Arrays::out(|out| unsafe { sys::cohort_arrays_load(path.as_ptr(), null(), out) })?;
    file.pairs()
}

/// Writes a .params file.
pub fn save<'a>(path: &str, arrays: impl IntoIterator<Item = (&'a str, &'a NDArray)>) -> Result<()> {
    let (path, arrays) = (c_text(path, "path")?, Arrays::of(arrays)?);
    check(unsafe { sys::cohort_arrays_save(arrays.raw(), path.as_ptr()) })
}

/// Like [`load`], from memory.
pub fn load_bytes(file: &[u8]) -> Result<Vec<(String, NDArray)>> {
    let data = file.as_ptr() as *const c_void;
    Arrays::out(|out| unsafe { sys::cohort_arrays_load_memory(data, file.len(), null(), out) })?.pairs()
}

/// A .params file in memory.
pub fn save_bytes<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a NDArray)>) -> Result<Vec<u8>> {
    let (arrays, mut size) = (Arrays::of(arrays)?, 0);
    check(unsafe { sys::cohort_arrays_save_memory(arrays.raw(), null_mut(), 0, &mut size) })?;
    let mut found = vec![0u8; size];
    let into = found.as_mut_ptr() as *mut c_void;
    check(unsafe { sys::cohort_arrays_save_memory(arrays.raw(), into, size, &mut size) })?;
    Ok(found)
}

/// Writes one array as a NumPy .npy file.
pub fn save_npy(path: &str, array: &NDArray) -> Result<()> {
    let (path, arrays) = (c_text(path, "path")?, Arrays::of([("", array)])?);
    check(unsafe { sys::cohort_arrays_save_npy(arrays.raw(), path.as_ptr()) })
}

/// Writes a NumPy .npz file.
pub fn save_npz<'a>(path: &str, arrays: impl IntoIterator<Item = (&'a str, &'a NDArray)>) -> Result<()> {
    let (path, arrays) = (c_text(path, "path")?, Arrays::of(arrays)?);
    check(unsafe { sys::cohort_arrays_save_npz(arrays.raw(), path.as_ptr()) })
}

/// Memory in bytes, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// The pool of intermediate values and workspaces, after reuse.
    pub planned: usize,
    /// All intermediate arrays, without reuse.
    pub intermediate: usize,
    /// Arguments and auxiliary states.
    pub arguments: usize,
    /// Their gradients.
    pub gradients: usize,
    /// Outputs.
    pub outputs: usize,
    /// The part of planned that intermediate values use at their peak, without workspaces.
    pub values: usize,
}

impl MemoryInfo {
    pub(crate) fn out(call: impl FnOnce(*mut sys::cohort_memory_info) -> *mut sys::cohort_error) -> Result<MemoryInfo> {
        // SAFETY: all zeros is a valid value.
        let mut info: sys::cohort_memory_info = unsafe { std::mem::zeroed() };
        info.struct_size = std::mem::size_of_val(&info);
        check(call(&mut info))?;
        Ok(MemoryInfo {
            planned: info.planned_bytes,
            intermediate: info.intermediate_bytes,
            arguments: info.argument_bytes,
            gradients: info.gradient_bytes,
            outputs: info.output_bytes,
            values: info.value_bytes,
        })
    }
}

/// The number of GPUs.
pub fn num_gpus() -> Result<usize> {
    let mut num = 0;
    check(unsafe { sys::cohort_num_devices(sys::COHORT_DEVICE_GPU, &mut num) })?;
    Ok(num)
}

/// Applies an operator to arrays at once; [`Invoke`](crate::Invoke) has more settings.
pub fn invoke(op: &str, inputs: &[&NDArray], attrs: &[(&str, &str)]) -> Result<Vec<NDArray>> {
    let begun = attrs.iter().fold(Invoke::new(op), |made, (key, value)| made.attr(key, value));
    inputs.iter().fold(begun, |made, input| made.input(input)).run()
}

pub(crate) fn names(
    num: usize,
    at: impl Fn(usize, *mut *const std::os::raw::c_char) -> *mut sys::cohort_error,
) -> Result<Vec<String>> {
    (0..num)
        .map(|i| {
            let mut name = null();
            check(at(i, &mut name))?;
            Ok(unsafe { text(name) })
        })
        .collect()
}
