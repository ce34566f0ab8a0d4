// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import "sync"

// A Declaration describes a node of a custom operator: the names of inputs, of which there is at least one, auxiliary states and outputs.
type Declaration struct{ Inputs, Aux, Outputs []string }

// CustomShapes are shapes in the order of the declaration.
type CustomShapes struct{ Inputs, Aux, Outputs [][]int }

// A CustomOp is a custom operator. Register gives it a name, the op_type of nodes Custom. Errors and panics of its methods come out of
// the call that they run in.
type CustomOp interface {
	// Declare returns the names for a node with these attributes.
	Declare(attrs map[string]string) (Declaration, error)
	// InferShape returns all shapes from the known shapes of the inputs; unknown ones are nil or have lengths of 0, the first one is known.
	InferShape(attrs map[string]string, known [][]int) (CustomShapes, error)
	// Create makes the operator of one bound node.
	Create(attrs map[string]string, context Context) (CustomNode, error)
}

// A CustomNode is a bound node. The arrays are the library's working memory: they are closed after the call, and must not be kept.
type CustomNode interface {
	// Forward writes the outputs.
	Forward(inputs, aux, outputs []*NDArray, isTrain bool) error
	// Backward writes the gradients of the inputs; nil for an input whose gradient is not wanted.
	Backward(headGrads, inputs, aux, outputs, gradients []*NDArray) error
}

// A Registration is the name of a custom operator.
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

// Close removes the name. Existing nodes are not affected.
func (r *Registration) Close() error {
	var err error
	r.once.Do(func() {
		if r.opType == "" { // the zero Registration
			return
		}
		var c scratch
		defer c.end()
		name := c.text(r.opType, "op_type")
		err = call(func() *C.cohort_error { return C.cohort_custom_unregister(name) })
	})
	return err
}
