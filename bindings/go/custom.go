// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import "sync"

// A Declaration says what a node of a custom operator has: names of inputs, of which there is one at least, auxiliary states and outputs.
type Declaration struct{ Inputs, Aux, Outputs []string }

// CustomShapes are shapes in the order of the declaration.
type CustomShapes struct{ Inputs, Aux, Outputs [][]int }

// A CustomOp is an operator of the caller's. Register gives it a name, which then is the op_type of nodes Custom. What its methods fail or
// panic with comes out of the call that they run in.
type CustomOp interface {
	// Declare says what a node with these attributes has.
	Declare(attrs map[string]string) (Declaration, error)
	// InferShape gives all shapes from what is known of the inputs; what is not known is nil or has lengths of 0, the first is known.
	InferShape(attrs map[string]string, known [][]int) (CustomShapes, error)
	// Create makes what belongs to one bound node.
	Create(attrs map[string]string, context Context) (CustomNode, error)
}

// A CustomNode is a bound node. The arrays are the library's working memory: they are closed behind the call, and not to be kept.
type CustomNode interface {
	// Forward writes the outputs.
	Forward(inputs, aux, outputs []*NDArray, isTrain bool) error
	// Backward writes the gradients of the inputs; nil where one is not wanted.
	Backward(headGrads, inputs, aux, outputs, gradients []*NDArray) error
}

// A Registration is the name of an operator of the caller's.
type Registration struct {
	opType string
	once   sync.Once
}

// Register gives an operator a name for the whole process, until the registration is closed. With ignoresHeadGrads it is a loss.
func Register(opType string, op CustomOp, ignoresHeadGrads bool) (*Registration, error) {
	if op == nil {
		return nil, newError(ErrorClassInvalidArgument, opType, "Register: expected an operator, found nil")
	}
	var c scratch
	defer c.end()
	name := c.text(opType, "op_type")
	if c.err != nil {
		return nil, c.err
	}
	table := (*C.cohort_custom_op)(c.bytes(C.sizeof_cohort_custom_op))
	C.cohort_custom_op_init(table, C.sizeof_cohort_custom_op)
	customTable(table)
	table.ignores_head_grads = truth(ignoresHeadGrads)
	kept := newCallback(op)
	table.user_data = kept.cell
	if err := call(func() *C.cohort_error { return C.cohort_custom_register(name, table) }); err != nil {
		kept.letGo()
		return nil, err
	}
	return &Registration{opType: opType}, nil
}

// Close ends the name. Nodes that there are stay what they are.
func (r *Registration) Close() error {
	var err error
	r.once.Do(func() {
		var c scratch
		defer c.end()
		name := c.text(r.opType, "op_type")
		err = call(func() *C.cohort_error { return C.cohort_custom_unregister(name) })
	})
	return err
}
