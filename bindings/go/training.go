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

// An Optimizer is a rule that updates parameters from gradients, with a state per parameter.
type Optimizer struct{ handle }

// NewOptimizer makes an optimizer by MXNet's name: "sgd", Attrs{"learning_rate": 0.1}.
func NewOptimizer(name string, with Attrs) (*Optimizer, error) {
	var c scratch
	defer c.end()
	kind := c.text(name, "optimizer")
	keys, values, num := c.attrs(with, name)
	if c.err != nil {
		return nil, c.err
	}
	var raw *C.cohort_optimizer
	if err := call(func() *C.cohort_error { return C.cohort_optimizer_create(kind, keys, values, num, &raw) }); err != nil {
		return nil, err
	}
	made := &Optimizer{}
	made.init("optimizer", unsafe.Pointer(raw), freeOptimizer, nil)
	runtime.SetFinalizer(made, func(o *Optimizer) { finalizer(&o.handle) })
	return made, nil
}

// use makes a call with the optimizer, which nobody else uses meanwhile.
func (o *Optimizer) use(f func(raw *C.cohort_optimizer) error) error {
	var c scratch
	defer c.end()
	if o == nil {
		c.pin(nil, "optimizer")
		return c.err
	}
	ptr := (*C.cohort_optimizer)(c.pin(&o.handle, "optimizer"))
	if c.err != nil {
		return c.err
	}
	return withLocks([]*callLock{o.lock}, "optimizer", func() error { return f(ptr) })
}

func (o *Optimizer) on(f func(raw *C.cohort_optimizer) *C.cohort_error) error {
	return o.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_optimizer)(ptr)) })
}

// with makes a call with text.
func (o *Optimizer) with(text, what string, f func(raw *C.cohort_optimizer, text *C.char) *C.cohort_error) error {
	var c scratch
	defer c.end()
	from := c.text(text, what)
	if c.err != nil {
		return c.err
	}
	return o.on(func(raw *C.cohort_optimizer) *C.cohort_error { return f(raw, from) })
}

// Get returns a setting, or num_update.
func (o *Optimizer) Get(key string) (float64, error) {
	var value C.double
	err := o.with(key, "key", func(raw *C.cohort_optimizer, key *C.char) *C.cohort_error {
		return C.cohort_optimizer_get(raw, key, &value)
	})
	return float64(value), err
}

// Set changes a setting from the next update on.
func (o *Optimizer) Set(key string, value float64) error {
	return o.with(key, "key", func(raw *C.cohort_optimizer, key *C.char) *C.cohort_error {
		return C.cohort_optimizer_set(raw, key, C.double(value))
	})
}

// SetLRSchedule sets a schedule for the learning rate: "factor", "multifactor", "poly", "cosine".
func (o *Optimizer) SetLRSchedule(name string, with Attrs) error {
	var c scratch
	defer c.end()
	keys, values, num := c.attrs(with, name)
	if c.err != nil {
		return c.err
	}
	return o.with(name, "schedule", func(raw *C.cohort_optimizer, name *C.char) *C.cohort_error {
		return C.cohort_optimizer_set_lr_schedule(raw, name, keys, values, num)
	})
}

// UseSymbol uses the multipliers of a symbol's variables.
func (o *Optimizer) UseSymbol(symbol *Symbol) error {
	var c scratch
	defer c.end()
	list, _ := c.listSymbol([]*Symbol{symbol}, false, "symbol")
	if c.err != nil {
		return c.err
	}
	return o.on(func(raw *C.cohort_optimizer) *C.cohort_error { return C.cohort_optimizer_use_symbol(raw, *list) })
}

// Mult returns the multipliers of learning rate and weight decay that apply to a parameter.
func (o *Optimizer) Mult(param string) (lr, wd float64, err error) {
	var lrMult, wdMult C.double
	err = o.with(param, "param", func(raw *C.cohort_optimizer, param *C.char) *C.cohort_error {
		return C.cohort_optimizer_mult(raw, param, &lrMult, &wdMult)
	})
	return float64(lrMult), float64(wdMult), err
}

// SetMult sets the multipliers of learning rate and weight decay of a parameter.
func (o *Optimizer) SetMult(param string, lr, wd float64) error {
	return o.with(param, "param", func(raw *C.cohort_optimizer, param *C.char) *C.cohort_error {
		return C.cohort_optimizer_set_mult(raw, param, C.double(lr), C.double(wd))
	})
}

// Update updates one parameter from its gradient.
func (o *Optimizer) Update(param string, weight, grad *NDArray) error {
	var c scratch
	defer c.end()
	list, _ := c.listNDArray([]*NDArray{weight, grad}, false, "update")
	if c.err != nil {
		return c.err
	}
	arrays := unsafe.Slice(list, 2)
	return o.with(param, "param", func(raw *C.cohort_optimizer, param *C.char) *C.cohort_error {
		return C.cohort_optimizer_update(raw, param, 0, arrays[0], arrays[1])
	})
}

// States returns states and counts, from which training can be resumed.
func (o *Optimizer) States() ([]byte, error) {
	return bytesOf(func(data unsafe.Pointer, capacity C.size_t, size *C.size_t) error {
		return o.on(func(raw *C.cohort_optimizer) *C.cohort_error {
			return C.cohort_optimizer_save_states_memory(raw, data, capacity, size)
		})
	})
}

// bytesOf returns the bytes that a call writes, which is asked for their number first.
func bytesOf(write func(data unsafe.Pointer, capacity C.size_t, size *C.size_t) error) ([]byte, error) {
	var size C.size_t
	if err := write(nil, 0, &size); err != nil {
		return nil, err
	}
	found := make([]byte, int(size)+1)
	err := write(unsafe.Pointer(&found[0]), size, &size)
	return found[:int(size)], err
}

// SetStates restores the result of States.
func (o *Optimizer) SetStates(states []byte) error {
	data, size := memoryOf(states)
	return o.on(func(raw *C.cohort_optimizer) *C.cohort_error {
		return C.cohort_optimizer_load_states_memory(raw, data, C.size_t(size))
	})
}

// A Metric is a figure accumulated from labels and predictions.
type Metric struct {
	handle
	children []*Metric
}

func newMetric(make func(out **C.cohort_metric) *C.cohort_error) (*Metric, error) {
	var raw *C.cohort_metric
	if err := call(func() *C.cohort_error { return make(&raw) }); err != nil {
		return nil, err
	}
	made := &Metric{}
	made.init("metric", unsafe.Pointer(raw), freeMetric, nil)
	runtime.SetFinalizer(made, func(m *Metric) { finalizer(&m.handle) })
	return made, nil
}

// NewMetric makes a metric by MXNet's name.
func NewMetric(kind string, with Attrs) (*Metric, error) {
	var c scratch
	defer c.end()
	name := c.text(kind, "metric")
	keys, values, num := c.attrs(with, kind)
	if c.err != nil {
		return nil, c.err
	}
	return newMetric(func(out **C.cohort_metric) *C.cohort_error {
		return C.cohort_metric_create(name, keys, values, num, out)
	})
}

// CustomMetric makes a metric from a function that returns sum and count. The arrays are closed after it; its errors and panics come out
// of the call that updates the metric. There must be as many labels as predictions.
func CustomMetric(name string, function func(labels, preds []*NDArray) (sum, num float64, err error)) (*Metric, error) {
	return customMetric(name, function, false)
}

// CustomMetricAllowExtra makes a metric like [CustomMetric], for any numbers of labels and predictions.
func CustomMetricAllowExtra(name string, function func(labels, preds []*NDArray) (sum, num float64, err error)) (*Metric, error) {
	return customMetric(name, function, true)
}

func customMetric(name string, function metricFunc, allowExtra bool) (*Metric, error) {
	if function == nil {
		return nil, newError(ErrorClassInvalidArgument, name, "CustomMetric: expected a function, found nil")
	}
	var c scratch
	defer c.end()
	text, measure := c.text(name, "metric"), newCallback(function)
	if c.err != nil {
		measure.letGo()
		return nil, c.err
	}
	made, err := newMetric(func(out **C.cohort_metric) *C.cohort_error {
		return C.cohort_metric_create_custom(text, metricCallback(), measure.cell, truth(allowExtra), out)
	})
	if err != nil {
		measure.letGo()
		return nil, err
	}
	made.keep(measure)
	return made, nil
}

// with makes a call with the metric, which nobody else uses meanwhile.
func (m *Metric) with(c *scratch, f func(raw *C.cohort_metric) error) error {
	if m == nil {
		c.pin(nil, "metric")
		return c.err
	}
	ptr := (*C.cohort_metric)(c.pin(&m.handle, "metric"))
	if c.err != nil {
		return c.err
	}
	return withLocks(m.locks(), "metric", func() error { return f(ptr) })
}

func (m *Metric) locks() []*callLock {
	m.mutex.Lock()
	children := m.children
	m.mutex.Unlock()
	found := []*callLock{m.lock}
	for _, child := range children {
		found = append(found, child.locks()...)
	}
	return found
}

func (m *Metric) on(f func(raw *C.cohort_metric) *C.cohort_error) error {
	var c scratch
	defer c.end()
	return m.with(&c, func(raw *C.cohort_metric) error { return call(func() *C.cohort_error { return f(raw) }) })
}

// Update adds labels and predictions, pair by pair.
func (m *Metric) Update(labels, preds []*NDArray) error {
	var c scratch
	defer c.end()
	list, num := c.listNDArray(labels, false, "labels")
	predicted, numPreds := c.listNDArray(preds, false, "preds")
	if c.err != nil {
		return c.err
	}
	return m.on(func(raw *C.cohort_metric) *C.cohort_error {
		return C.cohort_metric_update(raw, list, num, predicted, numPreds)
	})
}

// Add appends a metric to a composite one, which keeps it.
func (m *Metric) Add(child *Metric) error {
	var c scratch
	defer c.end()
	return child.with(&c, func(of *C.cohort_metric) error {
		err := m.do(func(ptr unsafe.Pointer) *C.cohort_error { return C.cohort_metric_add((*C.cohort_metric)(ptr), of) })
		if err == nil {
			child.mutex.Lock()
			held := child.held
			child.mutex.Unlock()
			for _, one := range held {
				m.keep(one.hold())
			}
			m.mutex.Lock()
			m.children = append(m.children, child)
			m.mutex.Unlock()
		}
		return err
	})
}

// SetNames selects labels and outputs by name, if they are given with names; none: all.
func (m *Metric) SetNames(labels, outputs []string) error {
	var c scratch
	defer c.end()
	labelNames, outputNames := c.texts(labels, "label names"), c.texts(outputs, "output names")
	if c.err != nil {
		return c.err
	}
	return m.on(func(raw *C.cohort_metric) *C.cohort_error {
		return C.cohort_metric_set_names(raw, labelNames, C.size_t(len(labels)), outputNames, C.size_t(len(outputs)))
	})
}

// Reset resets everything.
func (m *Metric) Reset() error {
	return m.on(func(raw *C.cohort_metric) *C.cohort_error { return C.cohort_metric_reset(raw) })
}

// ResetLocal resets the local values, and keeps the global ones.
func (m *Metric) ResetLocal() error {
	return m.on(func(raw *C.cohort_metric) *C.cohort_error { return C.cohort_metric_reset_local(raw) })
}

// A Figure is a name and a value; NaN if nothing was counted.
type Figure struct {
	Name  string
	Value float64
}

// Values returns the figures since the last reset.
func (m *Metric) Values() ([]Figure, error) { return m.figures(false) }

// GlobalValues returns the figures since the last global reset.
func (m *Metric) GlobalValues() ([]Figure, error) { return m.figures(true) }

// A Counter is the sum and the count behind a figure.
type Counter struct{ Sum, Num float64 }

// Counters returns sums and counts behind the figures since the last reset, or with global since the last global one.
func (m *Metric) Counters(global bool) (found []Counter, err error) {
	err = m.on(func(raw *C.cohort_metric) *C.cohort_error {
		var num C.size_t
		if failed := C.cohort_metric_num_values(raw, &num); failed != nil {
			return failed
		}
		for i := C.size_t(0); i < num; i++ {
			var sum, instances C.double
			if failed := C.cohort_metric_counters(raw, i, truth(global), &sum, &instances); failed != nil {
				return failed
			}
			found = append(found, Counter{float64(sum), float64(instances)})
		}
		return nil
	})
	return found, err
}

func (m *Metric) figures(global bool) ([]Figure, error) {
	var num C.size_t
	if err := m.on(func(raw *C.cohort_metric) *C.cohort_error { return C.cohort_metric_num_values(raw, &num) }); err != nil {
		return nil, err
	}
	found := make([]Figure, int(num))
	for i := range found {
		err := m.on(func(raw *C.cohort_metric) *C.cohort_error {
			var name *C.char
			var value C.double
			failed := C.cohort_metric_value(raw, C.size_t(i), truth(global), &name, &value)
			found[i] = Figure{goText(name), float64(value)}
			return failed
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// An Initializer is a rule that fills parameters before training. The same seed and names give the same numbers.
type Initializer struct{ handle }

// NewInitializer makes an initializer by MXNet's name.
func NewInitializer(name string, with Attrs, seed uint64) (*Initializer, error) {
	var c scratch
	defer c.end()
	kind := c.text(name, "initializer")
	keys, values, num := c.attrs(with, name)
	if c.err != nil {
		return nil, c.err
	}
	var raw *C.cohort_initializer
	if err := call(func() *C.cohort_error {
		return C.cohort_initializer_create(kind, keys, values, num, C.uint64_t(seed), &raw)
	}); err != nil {
		return nil, err
	}
	made := &Initializer{}
	made.init("initializer", unsafe.Pointer(raw), freeInitializer, nil)
	runtime.SetFinalizer(made, func(i *Initializer) { finalizer(&i.handle) })
	return made, nil
}

// Apply fills arrays by name: weights by this rule, biases with 0, and so on; `__init__` of the symbol's variables takes precedence. The
// symbol may be nil.
func (i *Initializer) Apply(symbol *Symbol, arrays Params) error {
	if i == nil {
		return newError(ErrorClassInvalidArgument, "initializer", "initializer: expected an object, found nil")
	}
	var c scratch
	defer c.end()
	list := c.arrays(arrays, "arrays")
	var of unsafe.Pointer
	if symbol != nil {
		c.readSymbols()
		of = c.pin(&symbol.handle, "symbol")
	}
	if c.err != nil {
		return c.err
	}
	return i.do(func(ptr unsafe.Pointer) *C.cohort_error {
		return C.cohort_initializer_apply((*C.cohort_initializer)(ptr), (*C.cohort_symbol)(of), list)
	})
}

// Fill fills one array by its name.
func (i *Initializer) Fill(name string, array *NDArray) error {
	var c scratch
	defer c.end()
	from := c.text(name, "name")
	list, _ := c.listNDArray([]*NDArray{array}, false, "array")
	if c.err != nil {
		return c.err
	}
	return i.do(func(ptr unsafe.Pointer) *C.cohort_error {
		return C.cohort_initializer_fill((*C.cohort_initializer)(ptr), from, *list)
	})
}

// SaveStates writes states and counts to a file, from which training can be resumed.
func (o *Optimizer) SaveStates(path string) error {
	return o.with(path, "path", func(raw *C.cohort_optimizer, path *C.char) *C.cohort_error {
		return C.cohort_optimizer_save_states(raw, path)
	})
}

// LoadStates reads a file that SaveStates wrote.
func (o *Optimizer) LoadStates(path string) error {
	return o.with(path, "path", func(raw *C.cohort_optimizer, path *C.char) *C.cohort_error {
		return C.cohort_optimizer_load_states(raw, path)
	})
}

// UpdateNamed adds labels and predictions by name, of which SetNames selects some.
func (m *Metric) UpdateNamed(labels, preds Params) error {
	var c scratch
	defer c.end()
	given, predicted := c.arrays(labels, "labels"), c.arrays(preds, "preds")
	if c.err != nil {
		return c.err
	}
	return m.on(func(raw *C.cohort_metric) *C.cohort_error { return C.cohort_metric_update_named(raw, given, predicted) })
}

// KeepDeviceAux lets the optimizer save the moving statistics of each device, which Resume sets.
func KeepDeviceAux() Option {
	return option("KeepDeviceAux", func(s *settings) { s.keepDeviceAux = true })
}

// Resume is called once after Optimizer.LoadStates and SetParams: random operators and the loss scale go on from where they were when
// the states were saved, with KeepDeviceAux the moving statistics of each device, too. Training then gives the same bits as if it had not
// been interrupted.
func (g *Group) Resume(optimizer *Optimizer) error {
	return optimizer.use(func(rule *C.cohort_optimizer) error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_resume(raw, rule) })
	})
}

// RandomState returns the state of the random operators of all devices: which numbers they draw next.
func (g *Group) RandomState() ([]byte, error) {
	return bytesOf(func(data unsafe.Pointer, capacity C.size_t, size *C.size_t) error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_random_state(raw, data, capacity, size)
		})
	})
}

// SetRandomState restores the result of RandomState: random operators draw the same numbers again.
func (g *Group) SetRandomState(state []byte) error {
	data, size := memoryOf(state)
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_set_random_state(raw, data, C.size_t(size))
	})
}

// RandomState returns the state of the random operators: which numbers they draw next.
func (e *Executor) RandomState() ([]byte, error) {
	return bytesOf(func(data unsafe.Pointer, capacity C.size_t, size *C.size_t) error {
		return e.on(func(raw *C.cohort_executor) *C.cohort_error {
			return C.cohort_executor_random_state(raw, data, capacity, size)
		})
	})
}

// SetRandomState restores the result of RandomState: random operators draw the same numbers again.
func (e *Executor) SetRandomState(state []byte) error {
	data, size := memoryOf(state)
	return e.on(func(raw *C.cohort_executor) *C.cohort_error {
		return C.cohort_executor_set_random_state(raw, data, C.size_t(size))
	})
}

// Resume is called once after Optimizer.LoadStates and SetParams: see [Group.Resume]. It resumes all buckets, those too that are made
// later.
func (m *Manager) Resume(optimizer *Optimizer) error {
	return optimizer.use(func(rule *C.cohort_optimizer) error {
		return m.on(func(raw *C.cohort_manager) *C.cohort_error { return C.cohort_manager_resume(raw, rule) })
	})
}
