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

// A Tape records operators as they are applied, and computes gradients backwards along them.
type Tape struct{ handle }

// NewTape makes a tape that records, in training mode.
func NewTape() (*Tape, error) {
	var raw *C.cohort_tape
	if err := call(func() *C.cohort_error { return C.cohort_tape_create(&raw) }); err != nil {
		return nil, err
	}
	made := &Tape{}
	made.init("tape", unsafe.Pointer(raw), freeTape, nil)
	runtime.SetFinalizer(made, func(t *Tape) { finalizer(&t.handle) })
	return made, nil
}

func (t *Tape) on(f func(raw *C.cohort_tape) *C.cohort_error) error {
	return t.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_tape)(ptr)) })
}

// SetRecording pauses or resumes recording; it returns the previous value.
func (t *Tape) SetRecording(recording bool) (bool, error) {
	var previous C.cohort_bool
	err := t.on(func(raw *C.cohort_tape) *C.cohort_error {
		return C.cohort_tape_set_recording(raw, truth(recording), &previous)
	})
	return previous != 0, err
}

// SetTraining sets whether operators are applied as in training; it returns the previous value.
func (t *Tape) SetTraining(training bool) (bool, error) {
	var previous C.cohort_bool
	err := t.on(func(raw *C.cohort_tape) *C.cohort_error {
		return C.cohort_tape_set_training(raw, truth(training), &previous)
	})
	return previous != 0, err
}

// Mark marks an array as a variable, with the array for its gradient; nil: for Grad only. GradReqNull removes the mark.
func (t *Tape) Mark(array, gradient *NDArray, req GradReq) error {
	var c scratch
	defer c.end()
	list, _ := c.listNDArray([]*NDArray{array}, false, "array")
	gradients, _ := c.listNDArray([]*NDArray{gradient}, true, "gradient")
	code := C.cohort_grad_req(req)
	if c.err != nil {
		return c.err
	}
	return t.on(func(raw *C.cohort_tape) *C.cohort_error { return C.cohort_tape_mark(raw, list, gradients, &code, 1) })
}

// Invoke applies an operator to arrays and records it.
func (t *Tape) Invoke(op string, attrs Attrs, inputs ...*NDArray) ([]*NDArray, error) {
	return t.InvokeWith(op, attrs, inputs)
}

// InvokeWith applies an operator to arrays and records it, with settings: WithSeed (for random operators, Dropout among them: the same seed
// gives the same numbers), OnContext, Into.
func (t *Tape) InvokeWith(op string, attrs Attrs, inputs []*NDArray, options ...Option) ([]*NDArray, error) {
	chosen, err := settingsOf("InvokeWith", options, "WithSeed", "OnContext", "Into")
	if err != nil {
		return nil, err
	}
	var s scratch
	defer s.end()
	what := s.application(op, attrs, inputs, chosen)
	if s.err != nil {
		return nil, s.err
	}
	var made *C.cohort_arrays
	if err := withRoom(func() error {
		return t.on(func(raw *C.cohort_tape) *C.cohort_error {
			return C.cohort_tape_invoke(raw, what.op, what.keys, what.values, what.num, what.inputs, what.numInputs, what.outputs, what.numOutputs,
				what.options, &made)
		})
	}); err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(made)
	return onlyArrays(readArrays(made))
}

// Backwards are settings of a backward pass.
type Backwards struct {
	HeadGrads   []*NDArray // one for each head, or none: ones
	RetainGraph bool       // keep the graph for another pass
	CreateGraph bool       // record the pass itself
}

func (b Backwards) in(c *scratch, heads []*NDArray) (list, grads **C.cohort_ndarray, num C.size_t, options *C.cohort_backward_options) {
	if len(b.HeadGrads) > 0 {
		c.fail(checkLengths(len(heads), len(b.HeadGrads), "head gradients"))
		grads, _ = c.listNDArray(b.HeadGrads, true, "head gradients")
	}
	list, num = c.listNDArray(heads, false, "heads")
	options = (*C.cohort_backward_options)(c.bytes(C.sizeof_cohort_backward_options))
	C.cohort_backward_options_init(options, C.sizeof_cohort_backward_options)
	options.retain_graph, options.create_graph = truth(b.RetainGraph), truth(b.CreateGraph)
	return list, grads, num, options
}

// Backward computes the gradients of the sum of the heads with respect to the marked arrays that they depend on.
func (t *Tape) Backward(heads []*NDArray, with Backwards) error {
	var c scratch
	defer c.end()
	list, grads, num, options := with.in(&c, heads)
	if c.err != nil {
		return c.err
	}
	return t.on(func(raw *C.cohort_tape) *C.cohort_error {
		return C.cohort_tape_backward(raw, list, grads, num, options)
	})
}

// Grad computes gradients of some arrays only, as new arrays.
func (t *Tape) Grad(heads, variables []*NDArray, with Backwards) ([]*NDArray, error) {
	var c scratch
	defer c.end()
	list, grads, num, options := with.in(&c, heads)
	wanted, numWanted := c.listNDArray(variables, false, "variables")
	if c.err != nil {
		return nil, c.err
	}
	var made *C.cohort_arrays
	if err := t.on(func(raw *C.cohort_tape) *C.cohort_error {
		return C.cohort_tape_grad(raw, list, grads, num, wanted, numWanted, options, &made)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(made)
	return onlyArrays(readArrays(made))
}

// Function records a computation of the caller's, with a function from the gradients of the outputs to those of the inputs; nil: none.
// Its errors and panics come out of the backward pass.
func (t *Tape) Function(inputs, outputs []*NDArray, gradients func(headGrads []*NDArray) ([]*NDArray, error)) error {
	if gradients == nil {
		return newError(ErrorClassInvalidArgument, "Function", "Function: expected a function, found nil")
	}
	var c scratch
	defer c.end()
	from, num := c.listNDArray(inputs, false, "inputs")
	to, numOutputs := c.listNDArray(outputs, false, "outputs")
	if c.err != nil {
		return c.err
	}
	var made *callback
	taken := false
	err := t.on(func(raw *C.cohort_tape) *C.cohort_error {
		made = newCallback(gradientFunc(gradients))
		failed := C.cohort_tape_function(raw, from, num, to, numOutputs, gradientCallback(), releaseCallback(), made.cell)
		taken = failed == nil
		return failed
	})
	if made != nil && !taken {
		made.letGo()
	}
	return err
}

// Symbol returns the recorded graph of an array.
func (t *Tape) Symbol(array *NDArray) (*Symbol, error) {
	var c scratch
	defer c.end()
	list, _ := c.listNDArray([]*NDArray{array}, false, "array")
	if c.err != nil {
		return nil, c.err
	}
	var made *C.cohort_symbol
	if err := t.on(func(raw *C.cohort_tape) *C.cohort_error { return C.cohort_tape_symbol(raw, *list, &made) }); err != nil {
		return nil, err
	}
	return newSymbol(made), nil
}

// NumRecorded returns the number of recorded operators and functions through which a gradient could flow.
func (t *Tape) NumRecorded() (int, error) {
	var num C.size_t
	err := t.on(func(raw *C.cohort_tape) *C.cohort_error { return C.cohort_tape_num_recorded(raw, &num) })
	return int(num), err
}

// IsRecording reports whether the tape records.
func (t *Tape) IsRecording() (bool, error) {
	var found C.cohort_bool
	err := t.on(func(raw *C.cohort_tape) *C.cohort_error { return C.cohort_tape_is_recording(raw, &found) })
	return found != 0, err
}

// IsTraining reports whether operators are applied as in training.
func (t *Tape) IsTraining() (bool, error) {
	var found C.cohort_bool
	err := t.on(func(raw *C.cohort_tape) *C.cohort_error { return C.cohort_tape_is_training(raw, &found) })
	return found != 0, err
}
