// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// An NDArray is an array on a device, or a view of one. Several goroutines may use it; calls on it wait for each other.
type NDArray struct{ handle }

// An Element is a Go number type that arrays can be made from.
type Element interface {
	float32 | float64 | uint8 | int32 | int8 | int64
}

func dtypeOf[T Element]() Dtype {
	var sample T
	switch any(sample).(type) {
	case float32:
		return DtypeFloat32
	case float64:
		return DtypeFloat64
	case uint8:
		return DtypeUint8
	case int32:
		return DtypeInt32
	case int8:
		return DtypeInt8
	}
	return DtypeInt64
}

func newNDArray(raw *C.cohort_ndarray) *NDArray {
	made := &NDArray{}
	made.init("array", unsafe.Pointer(raw), freeNDArray, nil)
	runtime.SetFinalizer(made, func(a *NDArray) { finalizer(&a.handle) })
	collectBeside(raw)
	return made
}

// maybeNDArray makes a call that returns an array, or nil.
func maybeNDArray(make func(out **C.cohort_ndarray) *C.cohort_error) (*NDArray, error) {
	var raw *C.cohort_ndarray
	err := withRoom(func() error { return call(func() *C.cohort_error { return make(&raw) }) })
	if err != nil || raw == nil {
		return nil, err
	}
	return newNDArray(raw), nil
}

// from makes a call on the array that returns another one.
func (a *NDArray) from(make func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error) (*NDArray, error) {
	var raw *C.cohort_ndarray
	err := withRoom(func() error {
		return a.do(func(ptr unsafe.Pointer) *C.cohort_error { return make((*C.cohort_ndarray)(ptr), &raw) })
	})
	if err != nil {
		return nil, err
	}
	return newNDArray(raw), nil
}

func (a *NDArray) on(f func(raw *C.cohort_ndarray) *C.cohort_error) error {
	return a.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_ndarray)(ptr)) })
}

// Zeros makes an array of zeros.
func Zeros(shape []int, dtype Dtype, context Context) (*NDArray, error) {
	var s scratch
	defer s.end()
	lengths, place := s.shape(shape), context.raw()
	return maybeNDArray(func(out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_zeros(lengths, C.int32_t(len(shape)), C.cohort_dtype(dtype), &place, out)
	})
}

// FromSlice makes an array on cpu(0) with a copy of these numbers, row-major; without a shape it has one axis.
func FromSlice[T Element](values []T, shape ...int) (*NDArray, error) {
	return FromSliceOn(CPU(0), values, shape...)
}

// FromSliceOn makes an array on a context with a copy of these numbers, row-major; without a shape it has one axis.
func FromSliceOn[T Element](context Context, values []T, shape ...int) (*NDArray, error) {
	if shape == nil {
		shape = []int{len(values)}
	}
	data, size := memoryOf(values)
	return fromMemory(context, data, size, dtypeOf[T](), shape)
}

// memoryOf returns the address of numbers, never nil, and their size.
func memoryOf[T Element](values []T) (unsafe.Pointer, int) {
	var sample [1]T
	if len(values) == 0 {
		return unsafe.Pointer(&sample[0]), 0
	}
	return unsafe.Pointer(&values[0]), len(values) * int(unsafe.Sizeof(sample[0]))
}

func fromMemory(context Context, data unsafe.Pointer, size int, dtype Dtype, shape []int) (*NDArray, error) {
	var s scratch
	defer s.end()
	lengths, place := s.shape(shape), context.raw()
	return maybeNDArray(func(out **C.cohort_ndarray) *C.cohort_error {
		axes := C.int32_t(len(shape))
		return C.cohort_ndarray_from_host(data, C.size_t(size), lengths, axes, C.cohort_dtype(dtype), &place, out)
	})
}

// Shape returns the lengths of the axes.
func (a *NDArray) Shape() ([]int, error) {
	var shape [MaxAxes]C.int64_t
	var axes C.int32_t
	err := a.on(func(raw *C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_shape(raw, &shape[0], MaxAxes, &axes)
	})
	return lengthsOf(shape[:axes]), err
}

// Dtype returns the element type.
func (a *NDArray) Dtype() (Dtype, error) {
	var dtype C.cohort_dtype
	err := a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_dtype(raw, &dtype) })
	return Dtype(dtype), err
}

// Context returns the context it is on.
func (a *NDArray) Context() (Context, error) {
	var found C.cohort_context
	err := a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_context(raw, &found) })
	return contextOf(found), err
}

// Size returns the number of elements.
func (a *NDArray) Size() (int, error) {
	var size C.int64_t
	err := a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_size(raw, &size) })
	return int(size), err
}

func (a *NDArray) expect(wanted Dtype) error {
	found, err := a.Dtype()
	if err == nil && found != wanted {
		return newError(ErrorClassDtype, "array", "array: expected elements of %s, found %s", wanted, found)
	}
	return err
}

// Read copies the elements into memory of the caller's, of exactly that size, after waiting for the work that writes them. The types have
// to be the same: see [NDArray.Cast].
func Read[T Element](a *NDArray, into []T) error {
	if err := a.expect(dtypeOf[T]()); err != nil {
		return err
	}
	data, size := memoryOf(into)
	return a.readInto(data, size)
}

func (a *NDArray) readInto(data unsafe.Pointer, size int) error {
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_read(raw, data, C.size_t(size))
	})
}

// ReadAll returns a copy of the elements, after waiting for the work that writes them. The types have to be the same: see [NDArray.Cast].
func ReadAll[T Element](a *NDArray) ([]T, error) {
	size, err := a.Size()
	if err != nil {
		return nil, err
	}
	if err := a.expect(dtypeOf[T]()); err != nil {
		return nil, err
	}
	found := make([]T, size)
	return found, Read(a, found)
}

// Write copies numbers into the array, of exactly its size and type.
func Write[T Element](a *NDArray, values []T) error {
	if err := a.expect(dtypeOf[T]()); err != nil {
		return err
	}
	data, size := memoryOf(values)
	return a.writeFrom(data, size)
}

func (a *NDArray) writeFrom(data unsafe.Pointer, size int) error {
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_write(raw, data, C.size_t(size))
	})
}

// Float32s returns the elements of an array of float32.
func (a *NDArray) Float32s() ([]float32, error) { return ReadAll[float32](a) }

// Fill sets all elements to one number.
func (a *NDArray) Fill(value float64) error {
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_fill(raw, C.double(value)) })
}

// FillUniform sets all elements to random numbers, uniform between two bounds.
func (a *NDArray) FillUniform(low, high float64, seed uint64) error {
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_fill_uniform(raw, C.double(low), C.double(high), C.uint64_t(seed))
	})
}

// FillNormal sets all elements to normally distributed random numbers.
func (a *NDArray) FillNormal(mean, deviation float64, seed uint64) error {
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_fill_normal(raw, C.double(mean), C.double(deviation), C.uint64_t(seed))
	})
}

// CopyTo copies into another array of the same shape, converting.
func (a *NDArray) CopyTo(target *NDArray) error {
	var s scratch
	defer s.end()
	to, _ := s.listNDArray([]*NDArray{target}, false, "target")
	if s.err != nil {
		return s.err
	}
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_copy_to(raw, *to) })
}

// Copy makes a copy on a context.
func (a *NDArray) Copy(context Context) (*NDArray, error) {
	place := context.raw()
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_copy(raw, &place, out)
	})
}

// Cast makes a copy of another type.
func (a *NDArray) Cast(dtype Dtype) (*NDArray, error) {
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_cast(raw, C.cohort_dtype(dtype), out)
	})
}

// Slice is a view of rows.
func (a *NDArray) Slice(begin, end int) (*NDArray, error) {
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_slice(raw, C.int64_t(begin), C.int64_t(end), out)
	})
}

// SliceAxis is a range along any axis.
func (a *NDArray) SliceAxis(axis, begin, end int) (*NDArray, error) {
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_slice_axis(raw, C.int32_t(clamp(axis)), C.int64_t(begin), C.int64_t(end), out)
	})
}

// At is a view of one row, without the first axis.
func (a *NDArray) At(index int) (*NDArray, error) {
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_at(raw, C.int64_t(index), out)
	})
}

// Reshape is a view of the same memory with another shape.
func (a *NDArray) Reshape(shape ...int) (*NDArray, error) {
	var s scratch
	defer s.end()
	lengths := s.shape(shape)
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_reshape(raw, lengths, C.int32_t(len(shape)), out)
	})
}

// Share returns another handle on the same array; use it to keep an array that a callback was given, which is closed afterwards.
func (a *NDArray) Share() (*NDArray, error) {
	return a.from(func(raw *C.cohort_ndarray, out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_share(raw, out)
	})
}

// Wait waits for the work that writes the array.
func (a *NDArray) Wait() error {
	return a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_wait(raw) })
}

// ToDLPack returns the address of a DLManagedTensorVersioned for another library, which has to call its deleter.
func (a *NDArray) ToDLPack() (unsafe.Pointer, error) {
	var managed unsafe.Pointer
	err := a.on(func(raw *C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_to_dlpack(raw, &managed) })
	return managed, err
}

// FromDLPack takes over a DLManagedTensorVersioned that another library exported, and that nobody else uses or deletes.
func FromDLPack(managed unsafe.Pointer) (*NDArray, error) {
	return maybeNDArray(func(out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_from_dlpack(managed, out)
	})
}

// Concat joins arrays along an axis.
func Concat(axis int, arrays ...*NDArray) (*NDArray, error) {
	var s scratch
	defer s.end()
	list, num := s.listNDArray(arrays, false, "arrays")
	if s.err != nil {
		return nil, s.err
	}
	return maybeNDArray(func(out **C.cohort_ndarray) *C.cohort_error {
		return C.cohort_ndarray_concat(list, num, C.int32_t(clamp(axis)), out)
	})
}

// Invoke applies an operator to arrays at once.
func Invoke(op string, attrs Attrs, inputs ...*NDArray) ([]*NDArray, error) {
	return InvokeWith(op, attrs, inputs)
}

// InvokeWith applies an operator to arrays at once, with settings: WithSeed (for random operators: the same seed gives the same numbers),
// OnContext, Training, Into.
func InvokeWith(op string, attrs Attrs, inputs []*NDArray, options ...Option) ([]*NDArray, error) {
	chosen, err := settingsOf("InvokeWith", options, "WithSeed", "OnContext", "Training", "Into")
	if err != nil {
		return nil, err
	}
	var s scratch
	defer s.end()
	what := s.application(op, attrs, inputs, chosen)
	if s.err != nil {
		return nil, s.err
	}
	return onlyArrays(takeArrays(func(out **C.cohort_arrays) *C.cohort_error {
		return C.cohort_operator_invoke(what.op, what.keys, what.values, what.num, what.inputs, what.numInputs, what.outputs, what.numOutputs,
			what.options, out)
	}))
}

// An application holds the arguments of a call that applies an operator.
type application struct {
	op                         *C.char
	keys, values               **C.char
	inputs, outputs            **C.cohort_ndarray
	num, numInputs, numOutputs C.size_t
	options                    *C.cohort_invoke_options
}

func (s *scratch) application(op string, attrs Attrs, inputs []*NDArray, chosen *settings) (what application) {
	what.op = s.text(op, "operator")
	what.keys, what.values, what.num = s.attrs(attrs, op)
	what.inputs, what.numInputs = s.listNDArray(inputs, false, "inputs")
	if len(chosen.into) > 0 {
		what.outputs, what.numOutputs = s.listNDArray(chosen.into, false, "outputs")
	}
	what.options = (*C.cohort_invoke_options)(s.bytes(C.sizeof_cohort_invoke_options))
	C.cohort_invoke_options_init(what.options, C.sizeof_cohort_invoke_options)
	what.options.seed, what.options.is_train = C.uint64_t(chosen.seed), truth(chosen.training)
	if chosen.context != nil {
		what.options.context = s.contexts([]Context{*chosen.context})
	}
	return what
}
