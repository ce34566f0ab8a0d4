// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

// Operators returns the names of all operators.
func Operators() ([]string, error) {
	var num C.size_t
	if err := call(func() *C.cohort_error { return C.cohort_operator_num(&num) }); err != nil {
		return nil, err
	}
	return names(int(num), func(i C.size_t, out **C.char) *C.cohort_error { return C.cohort_operator_name(i, out) })
}

// An OperatorAttr is an attribute of an operator. HasDefault is false if it is required.
type OperatorAttr struct {
	Name, Type, Default, Doc string
	HasDefault               bool
	Low, High                float64 // of numbers; infinite if there is no bound
}

// An OperatorInfo describes an operator.
type OperatorInfo struct {
	Name, Doc string
	Attrs     []OperatorAttr
	Inputs    []string  // auxiliary states among them
	Gradients []bool    // whether a gradient flows to each input
	Outputs   []string  // with all attributes at their defaults
	CountAttr string    // the attribute that counts the inputs, if their number is variable
	Precision Precision // its behaviour in a network that computes in a narrower type
}

// Operator describes one operator.
func Operator(op string) (*OperatorInfo, error) {
	var c scratch
	defer c.end()
	from := c.text(op, "operator")
	if c.err != nil {
		return nil, c.err
	}
	var name, doc, count *C.char
	var numAttrs, numInputs, numOutputs C.size_t
	var precision C.cohort_precision
	if err := call(func() *C.cohort_error {
		return C.cohort_operator_info(from, &name, &doc, &numAttrs, &numInputs, &numOutputs, &count)
	}); err != nil {
		return nil, err
	}
	if err := call(func() *C.cohort_error { return C.cohort_operator_precision(from, &precision) }); err != nil {
		return nil, err
	}
	found := &OperatorInfo{Name: goText(name), Doc: goText(doc), CountAttr: goText(count), Precision: Precision(precision)}
	for i := C.size_t(0); i < numAttrs; i++ {
		var name, kind, value, doc *C.char
		if err := call(func() *C.cohort_error { return C.cohort_operator_attr(from, i, &name, &kind, &value, &doc) }); err != nil {
			return nil, err
		}
		var low, high C.double
		if err := call(func() *C.cohort_error { return C.cohort_operator_attr_range(from, i, &low, &high) }); err != nil {
			return nil, err
		}
		attr := OperatorAttr{goText(name), goText(kind), goText(value), goText(doc), value != nil, float64(low), float64(high)}
		found.Attrs = append(found.Attrs, attr)
	}
	for i := C.size_t(0); i < numInputs; i++ {
		var flows C.cohort_bool
		if err := call(func() *C.cohort_error { return C.cohort_operator_input_gradient(from, i, &flows) }); err != nil {
			return nil, err
		}
		found.Gradients = append(found.Gradients, flows != 0)
	}
	var err error
	if found.Inputs, err = names(int(numInputs), func(i C.size_t, out **C.char) *C.cohort_error {
		return C.cohort_operator_input(from, i, out, nil, nil)
	}); err != nil {
		return nil, err
	}
	found.Outputs, err = names(int(numOutputs), func(i C.size_t, out **C.char) *C.cohort_error {
		return C.cohort_operator_output(from, i, out)
	})
	return found, err
}
