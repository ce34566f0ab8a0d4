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

// A Manager is a group for each bucket of a bucketing network, all with the parameters of the main group. A bucket is bound when its key
// first occurs with a batch; that of the latest batch is current.
type Manager struct {
	handle
	symbol      *Symbol
	numContexts int
}

// NewManager binds the main group: symbol is that of the default bucket, the largest, and descriptors are batched along the first axis,
// whose length is ignored. Options: WithBuckets, WithBucketSymbols, WithWorkload, WithParams, WithStates, WithCompute, BackwardOnce,
// Recompute, KeepDeviceAux, WithThreads, WithSeed.
func NewManager(symbol *Symbol, contexts []Context, batchSize int, data, label []Desc, options ...Option) (*Manager, error) {
	s, err := settingsOf("NewManager", options, "WithBuckets", "WithBucketSymbols", "WithWorkload", "WithParams", "WithStates",
		"WithCompute", "BackwardOnce", "Recompute", "KeepDeviceAux", "WithThreads", "WithSeed")
	if err != nil {
		return nil, err
	}
	var symbols *callback
	var cell unsafe.Pointer
	if s.bucketSymbols != nil {
		symbols = newCallback(s.bucketSymbols)
		cell = symbols.cell
	}
	made, err := s.newManager(symbol, contexts, batchSize, data, label, cell)
	if symbols != nil {
		if err != nil {
			symbols.letGo()
		} else {
			made.keep(symbols)
		}
	}
	return made, err
}

func (s *settings) newManager(symbol *Symbol, contexts []Context, batchSize int, data, label []Desc, symbols unsafe.Pointer) (*Manager, error) {
	var c scratch
	defer c.end()
	options, places, given, labels := s.manager(&c, symbols), c.contexts(contexts), c.descs(data), c.descs(label)
	params, num := s.paramNames(&c)
	kept, err := keptSymbol(&c, symbol)
	if err != nil {
		return nil, err
	}
	var raw *C.cohort_manager
	err = withRoom(func() error {
		return kept.on(func(of *C.cohort_symbol) *C.cohort_error {
			return C.cohort_manager_create(of, places, C.size_t(len(contexts)), C.int64_t(batchSize), given, labels, params, num,
				options, &raw)
		})
	})
	if err != nil {
		kept.Close()
		return nil, err
	}
	made := &Manager{symbol: kept, numContexts: len(contexts)}
	made.init("manager", unsafe.Pointer(raw), freeManager, nil)
	runtime.SetFinalizer(made, func(m *Manager) { finalizer(&m.handle) })
	collectOn(contexts...)
	return made, nil
}

// Close frees the manager, after waiting for the queued work of its groups.
func (m *Manager) Close() error {
	err := m.handle.Close()
	if m.symbol != nil {
		m.symbol.Close()
	}
	return err
}

func (m *Manager) on(f func(raw *C.cohort_manager) *C.cohort_error) error {
	return m.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_manager)(ptr)) })
}

// Slices returns the rows of each device, the same in all buckets.
func (m *Manager) Slices() ([][2]int, error) {
	found := make([][2]int, m.numContexts)
	for device := range found {
		var begin, end C.int64_t
		if err := m.on(func(raw *C.cohort_manager) *C.cohort_error {
			return C.cohort_manager_slice(raw, C.size_t(device), &begin, &end)
		}); err != nil {
			return nil, err
		}
		found[device] = [2]int{int(begin), int(end)}
	}
	return found, nil
}

// Buckets returns the keys of the buckets made so far, sorted.
func (m *Manager) Buckets() ([]string, error) {
	var found []string
	for {
		var num C.size_t
		var key string
		err := m.on(func(raw *C.cohort_manager) *C.cohort_error {
			if failed := C.cohort_manager_num_buckets(raw, &num); failed != nil || len(found) >= int(num) {
				return failed
			}
			var text *C.char
			failed := C.cohort_manager_bucket(raw, C.size_t(len(found)), &text, nil)
			key = goText(text)
			return failed
		})
		if err != nil || len(found) >= int(num) {
			return found, err
		}
		found = append(found, key)
	}
}

func (m *Manager) group(give func(raw *C.cohort_manager, out **C.cohort_group) *C.cohort_error) (*Group, error) {
	var made *C.cohort_group
	if err := m.on(func(raw *C.cohort_manager) *C.cohort_error { return give(raw, &made) }); err != nil {
		return nil, err
	}
	return adoptGroup(made, nil, m.numContexts, m.lock), nil
}

// MainGroup returns the group of the default bucket, for reading and running. It is locked together with the manager.
func (m *Manager) MainGroup() (*Group, error) {
	return m.group(func(raw *C.cohort_manager, out **C.cohort_group) *C.cohort_error {
		return C.cohort_manager_main_group(raw, out)
	})
}

// CurrentGroup returns the group of the batch loaded last.
func (m *Manager) CurrentGroup() (*Group, error) {
	return m.group(func(raw *C.cohort_manager, out **C.cohort_group) *C.cohort_error {
		return C.cohort_manager_current_group(raw, out)
	})
}

// A Batch is the input of one pass. BucketKey and the descriptors are for managers with buckets; the latter are read if the bucket is
// new.
type Batch struct {
	Data, Label           []*NDArray
	BucketKey             string
	DataDescs, LabelDescs []Desc
}

// Load makes the bucket of a batch current, and splits the batch over the devices.
func (m *Manager) Load(batch *Batch) error {
	if batch == nil {
		return newError(ErrorClassInvalidArgument, "batch", "batch: expected one, found nil")
	}
	var c scratch
	defer c.end()
	data, num := c.listNDArray(batch.Data, false, "data")
	label, numLabels := c.listNDArray(batch.Label, false, "label")
	key := c.textOrNull(batch.BucketKey, "bucket key")
	dataDescs, labelDescs := c.descs(batch.DataDescs), c.descs(batch.LabelDescs)
	if c.err != nil {
		return c.err
	}
	return m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_load_data_batch(raw, data, num, label, numLabels, key, dataDescs, labelDescs)
	})
}

// Forward runs a forward pass of the current group.
func (m *Manager) Forward(isTrain bool) error {
	return m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_forward(raw, C.int32_t(truth(isTrain)))
	})
}

// Backward runs a backward pass of the current group.
func (m *Manager) Backward() error {
	return m.on(func(raw *C.cohort_manager) *C.cohort_error { return C.cohort_manager_backward(raw) })
}

// Update updates the parameters, which all buckets share, from the gradients of the current group.
func (m *Manager) Update(optimizer *Optimizer, mode UpdateMode) error {
	return optimizer.use(func(rule *C.cohort_optimizer) error {
		return m.on(func(raw *C.cohort_manager) *C.cohort_error {
			return C.cohort_manager_update(raw, rule, C.cohort_update_mode(mode))
		})
	})
}

// UpdateMetric updates a metric once per device.
func (m *Manager) UpdateMetric(metric *Metric, labels ...*NDArray) error {
	var c scratch
	defer c.end()
	list, num := c.listNDArray(labels, false, "labels")
	return metric.with(&c, func(figure *C.cohort_metric) error {
		return m.on(func(raw *C.cohort_manager) *C.cohort_error {
			return C.cohort_manager_update_metric(raw, figure, list, num)
		})
	})
}

// UpdateMetricPresliced updates a metric once per device with labels that are sliced already: those of each device.
func (m *Manager) UpdateMetricPresliced(metric *Metric, labels [][]*NDArray) error {
	all, each, err := flat(labels, "labels")
	if err != nil {
		return err
	}
	var c scratch
	defer c.end()
	list, _ := c.listNDArray(all, false, "labels")
	return metric.with(&c, func(figure *C.cohort_metric) error {
		return m.on(func(raw *C.cohort_manager) *C.cohort_error {
			return C.cohort_manager_update_metric_presliced(raw, figure, C.size_t(len(labels)), list, C.size_t(each))
		})
	})
}

func (m *Manager) withParams(args, aux Params, f func(raw *C.cohort_manager, args, aux *C.cohort_arrays) *C.cohort_error) error {
	var c scratch
	defer c.end()
	given, states := c.arrays(args, "args"), c.arrays(aux, "aux")
	if c.err != nil {
		return c.err
	}
	return m.on(func(raw *C.cohort_manager) *C.cohort_error { return f(raw, given, states) })
}

// SetParams copies parameters and auxiliary states to every device. All are required.
func (m *Manager) SetParams(args, aux Params) error {
	return m.withParams(args, aux, func(raw *C.cohort_manager, args, aux *C.cohort_arrays) *C.cohort_error {
		return C.cohort_manager_set_params(raw, args, aux)
	})
}

// CopyTo writes the means over the devices into arrays of the caller's.
func (m *Manager) CopyTo(args, aux Params) error {
	return m.withParams(args, aux, func(raw *C.cohort_manager, args, aux *C.cohort_arrays) *C.cohort_error {
		return C.cohort_manager_copy_to(raw, args, aux)
	})
}

// Params returns parameters and auxiliary states, as means over the devices.
func (m *Manager) Params() (args, aux Params, err error) {
	group, err := m.MainGroup()
	if err != nil {
		return nil, nil, err
	}
	defer group.Close()
	return group.Params()
}

// InitParams fills all parameters with an initializer, equally on every device.
func (m *Manager) InitParams(initializer *Initializer) error {
	args, aux, err := m.Params()
	if err != nil {
		return err
	}
	defer args.Close()
	defer aux.Close()
	if err := initializer.Apply(m.symbol, args); err != nil {
		return err
	}
	if err := initializer.Apply(m.symbol, aux); err != nil {
		return err
	}
	return m.SetParams(args, aux)
}

// Outputs returns the outputs of the current group, joined over the devices; valid until the next pass.
func (m *Manager) Outputs() ([]*NDArray, error) {
	group, err := m.CurrentGroup()
	if err != nil {
		return nil, err
	}
	defer group.Close()
	return group.Outputs()
}

// SetStates sets the states of every device: for each state an array per device. They apply to any bucket that runs next.
func (m *Manager) SetStates(states [][]*NDArray) error {
	all, devices, err := flat(states, "states")
	if err != nil {
		return err
	}
	var c scratch
	defer c.end()
	list, _ := c.listNDArray(all, false, "states")
	if c.err != nil {
		return c.err
	}
	return m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_set_states(raw, list, C.size_t(len(states)), C.size_t(devices), nil)
	})
}

// FillStates sets all states to one number.
func (m *Manager) FillStates(value float64) error {
	number := C.double(value)
	return m.on(func(raw *C.cohort_manager) *C.cohort_error {
		return C.cohort_manager_set_states(raw, nil, 0, 0, &number)
	})
}

// SetMonitor calls a function with name and array of each output of each operator, in all buckets; nil removes it.
func (m *Manager) SetMonitor(function func(name string, array *NDArray) error, all bool) error {
	return m.setMonitor(function, func(ptr unsafe.Pointer, call C.cohort_monitor_fn, user unsafe.Pointer) *C.cohort_error {
		return C.cohort_manager_set_monitor((*C.cohort_manager)(ptr), call, user, truth(all))
	})
}

// Memory returns the memory of all buckets together in bytes.
func (m *Manager) Memory() (MemoryInfo, error) {
	info := newMemoryInfo()
	err := m.on(func(raw *C.cohort_manager) *C.cohort_error { return C.cohort_manager_memory(raw, info) })
	return memoryInfoOf(info), err
}
