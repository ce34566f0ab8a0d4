// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// A Context is a device.
type Context struct {
	Type DeviceType
	ID   int32
}

// CPU is a CPU device; each id is a separate worker with its share of the processors.
func CPU(id int) Context { return Context{DeviceTypeCPU, int32(clamp(id))} }

// GPU is a GPU.
func GPU(id int) Context { return Context{DeviceTypeGPU, int32(clamp(id))} }

func clamp(id int) int {
	if id > math.MaxInt32 || id < math.MinInt32 {
		return -1 // no such device
	}
	return id
}

// ParseContext reads text such as "cpu(0)".
func ParseContext(text string) (Context, error) {
	var s scratch
	defer s.end()
	from := s.text(text, "context")
	if s.err != nil {
		return Context{}, s.err
	}
	var found C.cohort_context
	err := call(func() *C.cohort_error { return C.cohort_context_parse(from, &found) })
	return contextOf(found), err
}

func (c Context) String() string {
	return fmt.Sprintf("%s(%d)", strings.ReplaceAll(c.Type.String(), " ", "_"), c.ID)
}

func (c Context) raw() C.cohort_context {
	return C.cohort_context{device_type: C.cohort_device_type(c.Type), device_id: C.int32_t(c.ID)}
}

func contextOf(from C.cohort_context) Context {
	return Context{DeviceType(from.device_type), int32(from.device_id)}
}

// NumDevices returns the number of devices of a kind.
func NumDevices(kind DeviceType) (int, error) {
	var num C.size_t
	err := call(func() *C.cohort_error { return C.cohort_num_devices(C.cohort_device_type(kind), &num) })
	return int(num), err
}

// HasFeature reports whether the library has a feature, such as "cuda".
func HasFeature(name string) bool {
	var s scratch
	defer s.end()
	text := s.text(name, "feature")
	return s.err == nil && C.cohort_has_feature(text) != 0
}

// A DeviceMemory is the memory of a device that this process uses, in bytes.
type DeviceMemory struct {
	Used   int // arrays, and the working memory of executors, groups and operators
	Peak   int // the highest use since the last reset
	Cached int // cached for later use, beside that
	Limit  int // the limit set by LimitMemory; 0: none
}

// Memory returns the memory of the device that this process uses.
func (c Context) Memory() (DeviceMemory, error) {
	info, place := C.cohort_device_memory_info{struct_size: C.sizeof_cohort_device_memory_info}, c.raw()
	err := call(func() *C.cohort_error { return C.cohort_device_memory(&place, &info) })
	return DeviceMemory{int(info.used_bytes), int(info.peak_bytes), int(info.cached_bytes), int(info.limit_bytes)}, err
}

// ResetPeakMemory resets the peak to the present use.
func (c Context) ResetPeakMemory() error {
	place := c.raw()
	return call(func() *C.cohort_error { return C.cohort_device_reset_peak_memory(&place) })
}

// LimitMemory limits the memory that this process uses, in bytes; 0: no limit. An allocation beyond it is an ErrOutOfMemory.
func (c Context) LimitMemory(bytes int) error {
	if bytes < 0 {
		return newError(ErrorClassInvalidArgument, "bytes", "LimitMemory: expected 0 or more, found %d", bytes)
	}
	place := c.raw()
	return call(func() *C.cohort_error { return C.cohort_device_limit_memory(&place, C.size_t(bytes)) })
}

// WaitAll waits for all work queued so far on all devices.
func WaitAll() error { return call(func() *C.cohort_error { return C.cohort_wait_all() }) }

// LiveHandles returns the number of library objects that are alive in this process.
func LiveHandles() int { return int(C.cohort_live_handles()) }

// LibraryVersion returns the version of the loaded library.
func LibraryVersion() string { return goText(C.cohort_version()) }

func init() {
	var major, minor, patch int
	if _, err := fmt.Sscanf(Version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		panic(err)
	}
	if int(C.cohort_version_number()) < major*10000+minor*100+patch {
		panic(fmt.Sprintf("cohort: this is libcohort %s; the package needs %s or later", LibraryVersion(), Version))
	}
}

// A Desc is name, shape, type and layout of data or labels; the letter N in the layout is the batch axis, the first axis if there is no
// layout. The zero Dtype is DtypeFloat32.
type Desc struct {
	Name   string
	Shape  []int
	Dtype  Dtype
	Layout string
}

// Attrs are attributes of an operator, or settings of an optimizer, by name. Values are text in MXNet's spelling, numbers, bool, and
// lists of numbers.
type Attrs map[string]any

// pairs returns keys, and values in MXNet's spelling: (2, 2), 0.1, True, relu.
func (a Attrs) pairs(what string) (keys, values []string, err error) {
	for key := range a {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		value, err := spell(a[key])
		if err != nil {
			return nil, nil, newError(ErrorClassInvalidArgument, key, "%s: '%s': %s", what, key, err)
		}
		values = append(values, value)
	}
	return keys, values, nil
}

func (s *scratch) attrs(a Attrs, what string) (keys, values **C.char, num C.size_t) {
	names, words, err := a.pairs(what)
	if err != nil {
		s.fail(err)
	}
	return s.texts(names, what), s.texts(words, what), C.size_t(len(names))
}

func spell(value any) (string, error) {
	list := func(num int, at func(i int) any) (string, error) {
		words := make([]string, num)
		for i := range words {
			word, err := spell(at(i))
			if err != nil {
				return "", err
			}
			words[i] = word
		}
		if num == 1 {
			return "(" + words[0] + ",)", nil
		}
		return "(" + strings.Join(words, ", ") + ")", nil
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32), nil
	case Dtype:
		return v.String(), nil
	case []int:
		return list(len(v), func(i int) any { return v[i] })
	case []float64:
		return list(len(v), func(i int) any { return v[i] })
	case []any:
		return list(len(v), func(i int) any { return v[i] })
	}
	return "", fmt.Errorf("expected text, a number, bool or a list of numbers, found %s", describe(value))
}

// A MemoryInfo is memory in bytes, by kind.
type MemoryInfo struct {
	Planned      int // the pool of intermediate values and workspaces, after reuse
	Intermediate int // all intermediate arrays, without reuse
	Arguments    int // arguments and auxiliary states
	Gradients    int
	Outputs      int
	Values       int // the part of Planned that intermediate values use at their peak, without workspaces
}

func newMemoryInfo() *C.cohort_memory_info {
	return &C.cohort_memory_info{struct_size: C.sizeof_cohort_memory_info}
}

func memoryInfoOf(from *C.cohort_memory_info) MemoryInfo {
	return MemoryInfo{
		int(from.planned_bytes), int(from.intermediate_bytes), int(from.argument_bytes), int(from.gradient_bytes), int(from.output_bytes),
		int(from.value_bytes),
	}
}
