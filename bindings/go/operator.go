// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

// Operators gives the names of all operators.
func Operators() ([]string, error) {
	var num C.size_t
	if err := call(func() *C.cohort_error { return C.cohort_operator_num(&num) }); err != nil {
		return nil, err
	}
	return names(int(num), func(i C.size_t, out **C.char) *C.cohort_error { return C.cohort_operator_name(i, out) })
}

// An OperatorAttr is an attribute of an operator. HasDefault is false where it has to be given.
type OperatorAttr struct {
	Name, Type, Default, Doc string
	HasDefault               bool
}

// An OperatorInfo is what an operator is.
type OperatorInfo struct {
	Name, Doc string
	Attrs     []OperatorAttr
	Inputs    []string // auxiliary states among them
	CountAttr string   // the attribute that says how many inputs there are, of operators with any number
}

// Operator says what one is.
func Operator(op string) (*OperatorInfo, error) {
	var c scratch
	defer c.end()
	from := c.text(op, "operator")
	if c.err != nil {
		return nil, c.err
	}
	var name, doc, count *C.char
	var numAttrs, numInputs C.size_t
	if err := call(func() *C.cohort_error {
		return C.cohort_operator_info(from, &name, &doc, &numAttrs, &numInputs, nil, &count)
	}); err != nil {
		return nil, err
	}
	found := &OperatorInfo{Name: goText(name), Doc: goText(doc), CountAttr: goText(count)}
	for i := C.size_t(0); i < numAttrs; i++ {
		var name, kind, value, doc *C.char
		if err := call(func() *C.cohort_error { return C.cohort_operator_attr(from, i, &name, &kind, &value, &doc) }); err != nil {
			return nil, err
		}
		found.Attrs = append(found.Attrs, OperatorAttr{goText(name), goText(kind), goText(value), goText(doc), value != nil})
	}
	inputs, err := names(int(numInputs), func(i C.size_t, out **C.char) *C.cohort_error {
		return C.cohort_operator_input(from, i, out, nil, nil)
	})
	found.Inputs = inputs
	return found, err
}
