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

// A Compute sets the types in which a network computes. Its zero value is float32 everywhere.
type Compute struct {
	Dtype        Dtype        // DtypeBfloat16: for matrix products of float32 arrays, and operators that follow them; DtypeFloat16 on GPUs; DtypeInt8: inference in int8
	Float32Names []string     // nodes and operators that stay in the network's types
	NarrowNames  []string     // those that compute in the narrower type although by default they would not
	TF32         bool         // on GPUs, float32 products may round their factors
	Calibration  *Calibration // of executors, groups and predictors, for DtypeInt8: the ranges of the network's values

	GradientSum     Dtype   // for groups and managers: the type in which devices' gradients are summed; DtypeBfloat16 moves less data
	LossScale       float64 // for groups and managers: a factor on the loss, for float16; 0: none
	LossScaleWindow int     // the number of good updates after which it doubles; 0: 2000
}

// WithCompute sets the types in which to compute.
func WithCompute(compute Compute) Option {
	return option("WithCompute", func(s *settings) { s.compute = compute })
}

// BackwardOnce lets a backward pass reuse the memory of the forward pass: less memory, and only one backward after each forward.
func BackwardOnce() Option {
	return option("BackwardOnce", func(s *settings) { s.backwardOnce = true })
}

// Recompute lets a backward pass recompute cheap results of the forward pass instead of keeping them: less memory, a little more time,
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

// locks returns the locks of the objects that a new one is bound with.
func (s *settings) locks(shared *callLock) (found []*callLock) {
	if shared != nil {
		found = append(found, shared)
	}
	if s.compute.Calibration != nil {
		found = append(found, s.compute.Calibration.lock)
	}
	return found
}

// A Calibration observes a float32 network on batches and records the range of each of its values. Objects that are then bound
// WithCompute(Compute{Dtype: DtypeInt8, Calibration: ranges}) compute in int8; a Predictor needs it open as long as new shapes occur.
type Calibration struct{ handle }

// NewCalibration makes one without observations. CalibrationMethodMinMax takes the least and the largest number, CalibrationMethodEntropy
// cuts off the range so that int8 preserves most of the distribution.
func NewCalibration(method CalibrationMethod) (*Calibration, error) {
	return newCalibration(func(out **C.cohort_calibration) *C.cohort_error {
		return C.cohort_calibration_create(C.cohort_calibration_method(method), out)
	})
}

// CalibrationFrom makes one with these ranges, from Ranges of another one; it observes no more.
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

// Observe runs a forward pass on the values in the executor's arguments, and records the range of each value. A batch or some hundred
// samples are usually enough.
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
	return withLocks([]*callLock{c.lock, executor.lock}, "calibration", func() error {
		return call(func() *C.cohort_error {
			return C.cohort_calibration_observe((*C.cohort_calibration)(ranges), (*C.cohort_executor)(watched))
		})
	})
}

// Range returns the least and the largest number of a value, under its name in monitors, "conv0_output", or that of an argument.
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

// Ranges returns all ranges, for Save: by name an array of the least and the largest number.
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

// A LossScaleState is the state of a loss scale.
type LossScaleState struct {
	Scale      float64 // the factor of the next backward pass; 1: none
	NumGood    int     // the number of updates since it changed
	NumSkipped uint64  // the number of updates skipped because a gradient was infinite or NaN
}

type lossScaleOut struct {
	scale   C.double
	good    C.int32_t
	skipped C.uint64_t
}

func (o lossScaleOut) state() LossScaleState {
	return LossScaleState{float64(o.scale), int(o.good), uint64(o.skipped)}
}

// LossScale returns the present loss scale.
func (g *Group) LossScale() (LossScaleState, error) {
	var found lossScaleOut
	err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_loss_scale(raw, &found.scale, &found.good, &found.skipped)
	})
	return found.state(), err
}

// SetLossScale sets the loss scale.
func (g *Group) SetLossScale(scale float64, numGood int) error {
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_set_loss_scale(raw, C.double(scale), C.int32_t(clamp(numGood)))
	})
}

// LossScale returns the present loss scale.
func (m *Manager) LossScale() (LossScaleState, error) {
	var found lossScaleOut
	err := m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_loss_scale(raw, &found.scale, &found.good, &found.skipped)
	})
	return found.state(), err
}

// SetLossScale sets the loss scale.
func (m *Manager) SetLossScale(scale float64, numGood int) error {
	return m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_set_loss_scale(raw, C.double(scale), C.int32_t(clamp(numGood)))
	})
}

// LossScale returns the loss scale of the group or manager that it updated last; it is saved with the states.
func (o *Optimizer) LossScale() (LossScaleState, error) {
	var found lossScaleOut
	err := o.on(func(raw *C.cohort_optimizer) *C.cohort_error {
		return C.cohort_optimizer_loss_scale(raw, &found.scale, &found.good, &found.skipped)
	})
	return found.state(), err
}
