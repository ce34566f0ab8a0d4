// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import "unsafe"

// Functions called from C. Each finds the Go value by the cell in user_data, and returns to C even if that panics.

type (
	monitorFunc   func(name string, array *NDArray) error
	metricFunc    func(labels, preds []*NDArray) (sum, num float64, err error)
	bucketFunc    func(key string) (*Symbol, error)
	filterFunc    func(name string) (bool, error)
	statisticFunc func(array *NDArray) ([]*NDArray, error)
	gradientFunc  func(headGrads []*NDArray) ([]*NDArray, error)
	logFunc       func(level LogLevel, message string)
)

// lent makes arrays that are closed after the callback.
func lent(raw *C.cohort_ndarray) (*NDArray, error) {
	return maybeNDArray(func(out **C.cohort_ndarray) *C.cohort_error { return C.cohort_ndarray_share(raw, out) })
}

func lentList(raw **C.cohort_ndarray, num C.size_t) ([]*NDArray, error) {
	var found []*NDArray
	for _, one := range unsafe.Slice(raw, int(num)) {
		array, err := lent(one)
		if err != nil {
			return found, err
		}
		found = append(found, array)
	}
	return found, nil
}

func closeAll(arrays []*NDArray) {
	for _, array := range arrays {
		if array != nil {
			array.Close()
		}
	}
}

// fillArrays appends to a list that a callback was given.
func fillArrays(list *C.cohort_arrays, arrays []*NDArray) error {
	var s scratch
	defer s.end()
	for _, array := range arrays {
		var raw *C.cohort_ndarray
		if array != nil {
			raw = (*C.cohort_ndarray)(s.pin(&array.handle, "result"))
		}
		if s.err != nil {
			return s.err
		}
		if err := call(func() *C.cohort_error { return C.cohort_arrays_add(list, nil, raw) }); err != nil {
			return err
		}
	}
	return nil
}

//export cohortGoMonitor
func cohortGoMonitor(name *C.char, array *C.cohort_ndarray, user unsafe.Pointer) {
	guarded(func() error {
		shown, err := lent(array)
		if err != nil {
			return err
		}
		defer shown.Close()
		return valueIn(user).(monitorFunc)(goText(name), shown)
	})
}

//export cohortGoMetric
func cohortGoMetric(labels **C.cohort_ndarray, numLabels C.size_t, preds **C.cohort_ndarray, numPreds C.size_t,
	outSum, outNum *C.double, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		shown, err := lentList(labels, numLabels)
		defer func() { closeAll(shown) }()
		if err != nil {
			return err
		}
		predicted, err := lentList(preds, numPreds)
		defer func() { closeAll(predicted) }()
		if err != nil {
			return err
		}
		sum, num, err := valueIn(user).(metricFunc)(shown, predicted)
		*outSum, *outNum = C.double(sum), C.double(num)
		return err
	})
}

//export cohortGoBucket
func cohortGoBucket(key *C.char, out **C.cohort_symbol, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		symbol, err := valueIn(user).(bucketFunc)(goText(key))
		if err != nil {
			return err
		}
		if symbol == nil {
			return newError(ErrorClassInvalidArgument, goText(key), "bucket '%s': expected a symbol, found nil", goText(key))
		}
		return symbol.on(func(raw *C.cohort_symbol) *C.cohort_error { return C.cohort_symbol_copy(raw, out) })
	})
}

//export cohortGoFilter
func cohortGoFilter(name *C.char, user unsafe.Pointer) C.int32_t {
	chosen := false
	failed := guarded(func() (err error) {
		chosen, err = valueIn(user).(filterFunc)(goText(name))
		return err
	})
	switch {
	case failed != 0:
		return -1
	case chosen:
		return 1
	}
	return 0
}

//export cohortGoStatistic
func cohortGoStatistic(array *C.cohort_ndarray, values *C.cohort_arrays, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		shown, err := lent(array)
		if err != nil {
			return err
		}
		defer shown.Close()
		found, err := valueIn(user).(statisticFunc)(shown)
		if err != nil {
			return err
		}
		return fillArrays(values, found)
	})
}

//export cohortGoGradient
func cohortGoGradient(headGrads, gradients *C.cohort_arrays, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		heads, err := onlyArrays(readArrays(headGrads))
		defer func() { closeAll(heads) }()
		if err != nil {
			return err
		}
		found, err := valueIn(user).(gradientFunc)(heads)
		if err != nil {
			return err
		}
		return fillArrays(gradients, found)
	})
}

//export cohortGoLog
func cohortGoLog(level C.int32_t, message *C.char, user unsafe.Pointer) {
	guarded(func() error {
		valueIn(user).(logFunc)(LogLevel(level), goText(message))
		return nil
	})
}

//export cohortGoEnded
func cohortGoEnded(user unsafe.Pointer) { dropCell(user) }

// ---- custom operators

func attrsOf(keys, values **C.char, num C.size_t) map[string]string {
	found := map[string]string{}
	words := unsafe.Slice(values, int(num))
	for i, key := range unsafe.Slice(keys, int(num)) {
		found[goText(key)] = goText(words[i])
	}
	return found
}

func addNames(to *C.cohort_descs, names []string) error {
	var s scratch
	defer s.end()
	for _, name := range names {
		s.addDesc(to, Desc{Name: name, Dtype: DtypeNone}, UnknownShape)
	}
	return s.err
}

func addShapes(to *C.cohort_descs, shapes [][]int) error {
	var s scratch
	defer s.end()
	for _, shape := range shapes {
		s.addDesc(to, Desc{Shape: shape, Dtype: DtypeNone}, len(shape))
	}
	return s.err
}

//export cohortGoDeclare
func cohortGoDeclare(keys, values **C.char, num C.size_t, inputs, aux, outputs *C.cohort_descs, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		declared, err := valueIn(user).(CustomOp).Declare(attrsOf(keys, values, num))
		if err != nil {
			return err
		}
		if err := addNames(inputs, declared.Inputs); err != nil {
			return err
		}
		if err := addNames(aux, declared.Aux); err != nil {
			return err
		}
		return addNames(outputs, declared.Outputs)
	})
}

//export cohortGoInfer
func cohortGoInfer(keys, values **C.char, num C.size_t, known, inputs, aux, outputs *C.cohort_descs, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		descs, err := readDescs(known)
		if err != nil {
			return err
		}
		shapes := make([][]int, len(descs))
		for i, desc := range descs {
			shapes[i] = desc.Shape
		}
		found, err := valueIn(user).(CustomOp).InferShape(attrsOf(keys, values, num), shapes)
		if err != nil {
			return err
		}
		if err := addShapes(inputs, found.Inputs); err != nil {
			return err
		}
		if err := addShapes(aux, found.Aux); err != nil {
			return err
		}
		return addShapes(outputs, found.Outputs)
	})
}

//export cohortGoCreate
func cohortGoCreate(keys, values **C.char, num C.size_t, context *C.cohort_context, out *unsafe.Pointer, user unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		node, err := valueIn(user).(CustomOp).Create(attrsOf(keys, values, num), contextOf(*context))
		if err != nil {
			return err
		}
		if node == nil {
			return newError(ErrorClassInvalidArgument, "Create", "Create: expected a node, found nil")
		}
		*out = newCallback(node).cell
		return nil
	})
}

// lists reads lists that a callback was given, passes them to a function, and closes them.
func lists(from []*C.cohort_arrays, f func(lists [][]*NDArray) error) error {
	found := make([][]*NDArray, len(from))
	defer func() {
		for _, list := range found {
			closeAll(list)
		}
	}()
	for i, list := range from {
		entries, err := readArrays(list)
		for _, entry := range entries {
			found[i] = append(found[i], entry.Array)
		}
		if err != nil {
			return err
		}
	}
	return f(found)
}

//export cohortGoForward
func cohortGoForward(state unsafe.Pointer, inputs, aux, outputs *C.cohort_arrays, isTrain C.int32_t, _ unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		return lists([]*C.cohort_arrays{inputs, aux, outputs}, func(lists [][]*NDArray) error {
			return valueIn(state).(CustomNode).Forward(lists[0], lists[1], lists[2], isTrain != 0)
		})
	})
}

//export cohortGoBackward
func cohortGoBackward(state unsafe.Pointer, headGrads, inputs, aux, outputs, gradients *C.cohort_arrays, _ unsafe.Pointer) C.int32_t {
	return guarded(func() error {
		return lists([]*C.cohort_arrays{headGrads, inputs, aux, outputs, gradients}, func(lists [][]*NDArray) error {
			return valueIn(state).(CustomNode).Backward(lists[0], lists[1], lists[2], lists[3], lists[4])
		})
	})
}

//export cohortGoRelease
func cohortGoRelease(state, _ unsafe.Pointer) {
	if state != nil {
		dropCell(state)
	}
}
