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

// A Compute says in which types a network computes. Its zero value is float32 for all.
type Compute struct {
	Dtype        Dtype        // DtypeBfloat16: products of matrices, and what follows them, of float32 arrays; DtypeFloat16 on GPUs; DtypeInt8: inference in bytes
	Float32Names []string     // nodes and operators that stay in the network's types
	NarrowNames  []string     // those that compute so though their operator would not
	TF32         bool         // on GPUs, float32 products may round their factors
	Calibration  *Calibration // of executors, groups and predictors, for DtypeInt8: the ranges of the network's values

	GradientSum     Dtype   // of groups and managers: in which type devices' gradients are summed; DtypeBfloat16 is less to move
	LossScale       float64 // of groups and managers: a factor on the loss, for float16; 0: none
	LossScaleWindow int     // updates after which it doubles; 0: 2000
}

// WithCompute says in which types to compute.
func WithCompute(compute Compute) Option {
	return option("WithCompute", func(s *settings) { s.compute = compute })
}

// BackwardOnce lets a backward pass work in the memory of the forward pass: less of it, and only one after each forward pass.
func BackwardOnce() Option {
	return option("BackwardOnce", func(s *settings) { s.backwardOnce = true })
}

// Recompute lets a backward pass make again what is cheap of the forward pass, in the place of keeping it: less memory, somewhat more time,
// the same numbers.
func Recompute() Option {
	return option("Recompute", func(s *settings) { s.recompute = true })
}

func (s *settings) lossScaleWindow(c *scratch) C.int32_t {
	if window := s.compute.LossScaleWindow; window < 0 || window > 1<<31-1 {
		c.fail(newError(ErrorClassInvalidArgument, "loss scale window", "loss scale window: expected 0 to %d, found %d", 1<<31-1, window))
	}
	return C.int32_t(clamp(s.compute.LossScaleWindow))
}

func (s *settings) calibration(c *scratch) *C.cohort_calibration {
	if s.compute.Calibration == nil {
		return nil
	}
	return (*C.cohort_calibration)(c.pin(&s.compute.Calibration.handle, "calibration"))
}

// turns are those of the objects that a new one is bound with.
func (s *settings) turns(shared *turn) (found []*turn) {
	if shared != nil {
		found = append(found, shared)
	}
	if s.compute.Calibration != nil {
		found = append(found, s.compute.Calibration.turn)
	}
	return found
}

// A Calibration watches a float32 network on batches and notes in which range each of its values lies. What is then bound
// WithCompute(Compute{Dtype: DtypeInt8, Calibration: ranges}) computes in bytes; a Predictor needs it open for as long as it meets new
// shapes.
type Calibration struct{ handle }

// NewCalibration makes one that has seen nothing. CalibrationMethodMinMax takes the least and the largest number, CalibrationMethodEntropy
// cuts that range off where bytes tell most of how the numbers are distributed.
func NewCalibration(method CalibrationMethod) (*Calibration, error) {
	return newCalibration(func(out **C.cohort_calibration) *C.cohort_error {
		return C.cohort_calibration_create(C.cohort_calibration_method(method), out)
	})
}

// CalibrationFrom makes one that has found these ranges, as Ranges of another gave them, and observes no more.
func CalibrationFrom(ranges Params) (*Calibration, error) {
	var s scratch
	defer s.end()
	given := s.arrays(ranges, "ranges")
	if s.err != nil {
		return nil, s.err
	}
	return newCalibration(func(out **C.cohort_calibration) *C.cohort_error {
		return C.cohort_calibration_create_from(given, out)
	})
}

func newCalibration(create func(out **C.cohort_calibration) *C.cohort_error) (*Calibration, error) {
	var raw *C.cohort_calibration
	if err := call(func() *C.cohort_error { return create(&raw) }); err != nil {
		return nil, err
	}
	made := &Calibration{}
	made.init("calibration", unsafe.Pointer(raw), freeCalibration, nil)
	runtime.SetFinalizer(made, func(c *Calibration) { finalizer(&c.handle) })
	return made, nil
}

// Observe runs a forward pass on what the executor's arguments hold, and notes the numbers of each value. A batch or some hundred samples
// are usually enough.
func (c *Calibration) Observe(executor *Executor) error {
	if c == nil || executor == nil {
		return newError(ErrorClassInvalidArgument, "calibration", "Observe: expected a calibration and an executor, found nil")
	}
	var s scratch
	defer s.end()
	ranges, watched := s.pin(&c.handle, "calibration"), s.pin(&executor.handle, "executor")
	if s.err != nil {
		return s.err
	}
	return taking([]*turn{c.turn, executor.turn}, "calibration", func() error {
		return call(func() *C.cohort_error {
			return C.cohort_calibration_observe((*C.cohort_calibration)(ranges), (*C.cohort_executor)(watched))
		})
	})
}

// Range gives the least and the largest number of a value, by the name that monitors have for it: "conv0_output", or an argument.
func (c *Calibration) Range(name string) (low, high float64, err error) {
	var s scratch
	defer s.end()
	key := s.text(name, "name")
	if s.err != nil {
		return 0, 0, s.err
	}
	var ends [2]C.double
	err = c.do(func(ptr unsafe.Pointer) *C.cohort_error {
		return C.cohort_calibration_range((*C.cohort_calibration)(ptr), key, &ends[0], &ends[1])
	})
	return float64(ends[0]), float64(ends[1]), err
}

// Ranges gives all that was found, to be kept by Save: by name an array of the least and the largest number.
func (c *Calibration) Ranges() (Params, error) {
	var found *C.cohort_arrays
	if err := c.do(func(ptr unsafe.Pointer) *C.cohort_error {
		return C.cohort_calibration_ranges((*C.cohort_calibration)(ptr), &found)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(found)
	return byName(readArrays(found))
}

// A LossScaleState is where the factor on a loss has come to.
type LossScaleState struct {
	Scale      float64 // what the next backward pass begins with; 1: there is none
	NumGood    int     // the updates made since it changed
	NumSkipped uint64  // the updates that were skipped because a gradient was infinite or no number
}

type lossScaleOut struct {
	scale   C.double
	good    C.int32_t
	skipped C.uint64_t
}

func (o lossScaleOut) state() LossScaleState {
	return LossScaleState{float64(o.scale), int(o.good), uint64(o.skipped)}
}

// LossScale says where the factor on the loss has come to.
func (g *Group) LossScale() (LossScaleState, error) {
	var found lossScaleOut
	err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_loss_scale(raw, &found.scale, &found.good, &found.skipped)
	})
	return found.state(), err
}

// SetLossScale goes on from there, as after Optimizer.SetStates.
func (g *Group) SetLossScale(scale float64, numGood int) error {
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_set_loss_scale(raw, C.double(scale), C.int32_t(clamp(numGood)))
	})
}

// LossScale says where the factor on the loss has come to.
func (m *Manager) LossScale() (LossScaleState, error) {
	var found lossScaleOut
	err := m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_loss_scale(raw, &found.scale, &found.good, &found.skipped)
	})
	return found.state(), err
}

// SetLossScale goes on from there, as after Optimizer.SetStates.
func (m *Manager) SetLossScale(scale float64, numGood int) error {
	return m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_set_loss_scale(raw, C.double(scale), C.int32_t(clamp(numGood)))
	})
}

// LossScale says where the factor on the loss had come to in the group or manager that it updated last; it is saved with the states.
func (o *Optimizer) LossScale() (LossScaleState, error) {
	var found lossScaleOut
	err := o.on(func(raw *C.cohort_optimizer) *C.cohort_error {
		return C.cohort_optimizer_loss_scale(raw, &found.scale, &found.good, &found.skipped)
	})
	return found.state(), err
}
