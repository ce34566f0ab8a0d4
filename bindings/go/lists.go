// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"sort"
	"unsafe"
)

// Params are arrays by name.
type Params map[string]*NDArray

// Close closes all arrays.
func (p Params) Close() {
	for _, array := range p {
		if array != nil {
			array.Close()
		}
	}
}

func sortedKeys[T any](from map[string]T) []string {
	keys := make([]string, 0, len(from))
	for key := range from {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// arrays makes a list for the duration of a call.
func (s *scratch) arrays(from Params, what string) *C.cohort_arrays {
	var made *C.cohort_arrays
	if err := call(func() *C.cohort_error { return C.cohort_arrays_create(&made) }); err != nil {
		s.fail(err)
		return nil
	}
	s.frees = append(s.frees, func() { C.cohort_arrays_free(made) })
	for _, name := range sortedKeys(from) {
		var array *C.cohort_ndarray
		if one := from[name]; one != nil {
			array = (*C.cohort_ndarray)(s.pin(&one.handle, what))
		} else {
			s.pin(nil, what+" '"+name+"'")
		}
		key := s.text(name, what)
		if s.err != nil {
			return nil
		}
		if err := call(func() *C.cohort_error { return C.cohort_arrays_add(made, key, array) }); err != nil {
			s.fail(err)
		}
	}
	return made
}

// descs makes a list of descriptors for the duration of a call.
func (s *scratch) descs(from []Desc) *C.cohort_descs {
	var made *C.cohort_descs
	if err := call(func() *C.cohort_error { return C.cohort_descs_create(&made) }); err != nil {
		s.fail(err)
		return nil
	}
	s.frees = append(s.frees, func() { C.cohort_descs_free(made) })
	for _, one := range from {
		s.addDesc(made, one, len(one.Shape))
	}
	return made
}

// addDesc appends a descriptor; with UnknownShape axes it has no shape.
func (s *scratch) addDesc(to *C.cohort_descs, one Desc, axes int) {
	name, shape, layout := s.text(one.Name, "descriptor"), s.shape(one.Shape), s.textOrNull(one.Layout, "layout")
	if axes == UnknownShape {
		shape = nil
	}
	if s.err != nil {
		return
	}
	s.fail(call(func() *C.cohort_error {
		return C.cohort_descs_add(to, name, shape, C.int32_t(axes), C.cohort_dtype(one.Dtype), layout)
	}))
}

// known makes descriptors from shapes and types by name, either of which may be missing.
func (s *scratch) known(shapes map[string][]int, types map[string]Dtype) *C.cohort_descs {
	made := s.descs(nil)
	for _, name := range sortedKeys(shapes) {
		dtype, given := types[name]
		if !given {
			dtype = DtypeNone
		}
		s.addDesc(made, Desc{Name: name, Shape: shapes[name], Dtype: dtype}, len(shapes[name]))
	}
	for _, name := range sortedKeys(types) {
		if _, given := shapes[name]; !given {
			s.addDesc(made, Desc{Name: name, Dtype: types[name]}, UnknownShape)
		}
	}
	return made
}

// A NamedArray is an entry of a list.
type NamedArray struct {
	Name  string
	Array *NDArray // nil: an entry without an array
}

// readArrays reads a list. The handles of a list that a callback was given are created here, too.
func readArrays(list *C.cohort_arrays) ([]NamedArray, error) {
	var num C.size_t
	if err := call(func() *C.cohort_error { return C.cohort_arrays_num(list, &num) }); err != nil {
		return nil, err
	}
	found := make([]NamedArray, 0, int(num))
	for i := C.size_t(0); i < num; i++ {
		var name *C.char
		if err := call(func() *C.cohort_error { return C.cohort_arrays_name(list, i, &name) }); err != nil {
			return nil, err
		}
		array, err := maybeNDArray(func(out **C.cohort_ndarray) *C.cohort_error { return C.cohort_arrays_get(list, i, out) })
		if err != nil {
			return nil, err
		}
		found = append(found, NamedArray{goText(name), array})
	}
	return found, nil
}

// takeArrays makes a call that returns a list, and reads it.
func takeArrays(make func(out **C.cohort_arrays) *C.cohort_error) ([]NamedArray, error) {
	var list *C.cohort_arrays
	err := withRoom(func() error { return call(func() *C.cohort_error { return make(&list) }) })
	if err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(list)
	return readArrays(list)
}

func onlyArrays(entries []NamedArray, err error) ([]*NDArray, error) {
	var found []*NDArray
	for _, entry := range entries {
		if entry.Array != nil {
			found = append(found, entry.Array)
		}
	}
	return found, err
}

func byName(entries []NamedArray, err error) (Params, error) {
	if err != nil {
		return nil, err
	}
	found := Params{}
	for _, entry := range entries {
		if entry.Array != nil {
			found[entry.Name] = entry.Array
		}
	}
	return found, nil
}

// readDescs reads a list of descriptors; an unknown shape is nil.
func readDescs(list *C.cohort_descs) ([]Desc, error) {
	var num C.size_t
	if err := call(func() *C.cohort_error { return C.cohort_descs_num(list, &num) }); err != nil {
		return nil, err
	}
	found := make([]Desc, 0, int(num))
	for i := C.size_t(0); i < num; i++ {
		var name, layout *C.char
		var shape [MaxAxes]C.int64_t
		var axes C.int32_t
		var dtype C.cohort_dtype
		if err := call(func() *C.cohort_error {
			return C.cohort_descs_get(list, i, &name, &shape[0], MaxAxes, &axes, &dtype, &layout)
		}); err != nil {
			return nil, err
		}
		one := Desc{Name: goText(name), Dtype: Dtype(dtype), Layout: goText(layout)}
		if axes >= 0 {
			one.Shape = lengthsOf(shape[:axes])
		}
		found = append(found, one)
	}
	return found, nil
}

func lengthsOf(shape []C.int64_t) []int {
	found := make([]int, len(shape))
	for i, length := range shape {
		found[i] = int(length)
	}
	return found
}

// Load reads the arrays of a .params, .npy or .npz file, with their names; "" if it has none.
func Load(path string) ([]NamedArray, error) {
	var s scratch
	defer s.end()
	from := s.text(path, "path")
	if s.err != nil {
		return nil, s.err
	}
	return takeArrays(func(out **C.cohort_arrays) *C.cohort_error { return C.cohort_arrays_load(from, nil, out) })
}

// LoadParams reads the arrays of a .params, .npy or .npz file by name.
func LoadParams(path string) (Params, error) { return byName(Load(path)) }

// Save writes a .params file.
func Save(path string, arrays Params) error {
	var s scratch
	defer s.end()
	to, list := s.text(path, "path"), s.arrays(arrays, "arrays")
	if s.err != nil {
		return s.err
	}
	return call(func() *C.cohort_error { return C.cohort_arrays_save(list, to) })
}

// optional returns the address of an object that may be nil.
func (s *scratch) optional(h *handle, what string) unsafe.Pointer {
	if h == nil {
		return nil
	}
	return s.pin(h, what)
}

// LoadBytes reads the arrays of a .params, .npy or .npz file that is in memory, with their names.
func LoadBytes(file []byte) ([]NamedArray, error) {
	data, size := memoryOf(file)
	return takeArrays(func(out **C.cohort_arrays) *C.cohort_error {
		return C.cohort_arrays_load_memory(data, C.size_t(size), nil, out)
	})
}

// SaveBytes returns a .params file in memory.
func SaveBytes(arrays Params) ([]byte, error) {
	var s scratch
	defer s.end()
	list := s.arrays(arrays, "arrays")
	if s.err != nil {
		return nil, s.err
	}
	var size C.size_t
	if err := call(func() *C.cohort_error { return C.cohort_arrays_save_memory(list, nil, 0, &size) }); err != nil {
		return nil, err
	}
	found := make([]byte, int(size)+1)
	err := call(func() *C.cohort_error {
		return C.cohort_arrays_save_memory(list, unsafe.Pointer(&found[0]), size, &size)
	})
	return found[:int(size)], err
}

// SaveNPY writes one array as a NumPy .npy file.
func SaveNPY(path string, array *NDArray) error {
	var s scratch
	defer s.end()
	to, list := s.text(path, "path"), s.arrays(Params{"array": array}, "array")
	if s.err != nil {
		return s.err
	}
	return call(func() *C.cohort_error { return C.cohort_arrays_save_npy(list, to) })
}

// SaveNPZ writes a NumPy .npz file.
func SaveNPZ(path string, arrays Params) error {
	var s scratch
	defer s.end()
	to, list := s.text(path, "path"), s.arrays(arrays, "arrays")
	if s.err != nil {
		return s.err
	}
	return call(func() *C.cohort_error { return C.cohort_arrays_save_npz(list, to) })
}
