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

// A Group is one executor per context, each batch split over them by workload.
type Group struct {
	handle
	symbol      *Symbol
	numContexts int
}

func adoptGroup(raw *C.cohort_group, symbol *Symbol, numContexts int, lock *callLock) *Group {
	made := &Group{symbol: symbol, numContexts: numContexts}
	made.init("group", unsafe.Pointer(raw), freeGroup, lock)
	runtime.SetFinalizer(made, func(g *Group) { finalizer(&g.handle) })
	return made
}

// NewGroup binds a network on contexts. Options: WithWorkload, WithRounding, WithSlices, WithParams, WithFixedParams, WithStates,
// WithGradReq, WithGradReqs, WithGradReqList, ForInference, InputsNeedGrad, WithSharedGroup, WithCtxGroup,
// WithCompute, BackwardOnce, Recompute, KeepDeviceAux, StrictNames, StopIfNotFinite, WithThreads, WithSeed, WithGivenParams.
func NewGroup(symbol *Symbol, contexts []Context, data, label []Desc, options ...Option) (*Group, error) {
	s, err := settingsOf("NewGroup", options, "WithWorkload", "WithRounding", "WithSlices", "WithParams", "WithFixedParams",
		"WithStates", "WithGradReq", "WithGradReqs", "WithGradReqList", "ForInference", "InputsNeedGrad", "WithSharedGroup",
		"WithCtxGroup", "WithCompute", "BackwardOnce", "Recompute", "KeepDeviceAux", "StrictNames", "StopIfNotFinite", "WithThreads",
		"WithSeed", "WithGivenParams")
	if err != nil {
		return nil, err
	}
	var c scratch
	defer c.end()
	made, places, given, labels := s.group(&c, len(contexts)), c.contexts(contexts), c.descs(data), c.descs(label)
	params, num := s.paramNames(&c)
	kept, err := keptSymbol(&c, symbol)
	if err != nil {
		return nil, err
	}
	var raw *C.cohort_group
	run := func() error {
		return kept.on(func(of *C.cohort_symbol) *C.cohort_error {
			return C.cohort_group_create(of, places, C.size_t(len(contexts)), given, labels, params, num,
				truth(!s.forInference), made, &raw)
		})
	}
	var shared *callLock
	if s.sharedGroup != nil {
		shared = s.sharedGroup.lock
	}
	if err := withRoom(func() error { return withLocks(s.locks(shared), "group", run) }); err != nil {
		kept.Close()
		return nil, err
	}
	collectOn(contexts...)
	return adoptGroup(raw, kept, len(contexts), shared), nil
}

// keptSymbol is a copy of the symbol that an object is made from, which lives as long as the object.
func keptSymbol(c *scratch, symbol *Symbol) (*Symbol, error) {
	if symbol == nil {
		c.pin(nil, "symbol")
	}
	if c.err != nil {
		return nil, c.err
	}
	return symbol.Copy()
}

// paramNames are NULL if they are not given: all arguments but data, labels and states.
func (s *settings) paramNames(c *scratch) (**C.char, C.size_t) {
	if s.params == nil {
		return nil, 0
	}
	return c.texts(s.params, "params"), C.size_t(len(s.params))
}

// Close frees the group, after waiting for its queued work. Its arrays live on.
func (g *Group) Close() error {
	err := g.handle.Close()
	if g.symbol != nil {
		g.symbol.Close()
	}
	return err
}

func (g *Group) on(f func(raw *C.cohort_group) *C.cohort_error) error {
	return g.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_group)(ptr)) })
}

// NumContexts returns the number of devices.
func (g *Group) NumContexts() int { return g.numContexts }

// Slices returns the rows of each device, begin and end.
func (g *Group) Slices() ([][2]int, error) {
	found := make([][2]int, g.numContexts)
	for device := range found {
		var begin, end C.int64_t
		if err := g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_slice(raw, C.size_t(device), &begin, &end)
		}); err != nil {
			return nil, err
		}
		found[device] = [2]int{int(begin), int(end)}
	}
	return found, nil
}

// BatchSize returns the number of samples in a batch; 0 if nothing has a batch axis.
func (g *Group) BatchSize() (int, error) {
	var size C.int64_t
	err := g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_batch_size(raw, &size) })
	return int(size), err
}

// Axes returns the batch axis of each entry of a list: GroupListData, GroupListLabels or GroupListOutputs; -1 if it has none.
func (g *Group) Axes(list GroupList) ([]int, error) {
	num, err := g.num(list)
	found := make([]int, num)
	for i := range found {
		var axis C.int32_t
		if err := g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_axis(raw, C.cohort_group_list(list), C.size_t(i), &axis)
		}); err != nil {
			return nil, err
		}
		found[i] = int(axis)
	}
	return found, err
}

func (g *Group) num(list GroupList) (int, error) {
	var num C.size_t
	err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_num_arrays(raw, C.cohort_group_list(list), &num)
	})
	return int(num), err
}

// Names returns the names of a list, such as GroupListParams.
func (g *Group) Names(list GroupList) ([]string, error) {
	num, err := g.num(list)
	if err != nil {
		return nil, err
	}
	ptr, err := g.pin()
	if err != nil {
		return nil, err
	}
	defer g.unpin()
	return names(num, func(i C.size_t, out **C.char) *C.cohort_error {
		return C.cohort_group_name((*C.cohort_group)(ptr), C.cohort_group_list(list), i, out)
	})
}

// OutputShapes returns names and shapes of the joined outputs, known before any pass.
func (g *Group) OutputShapes() ([]Desc, error) {
	var list *C.cohort_descs
	if err := g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_output_shapes(raw, &list) }); err != nil {
		return nil, err
	}
	defer C.cohort_descs_free(list)
	return readDescs(list)
}

// Executor returns one device's executor. It is locked together with the group.
func (g *Group) Executor(device int) (*Executor, error) {
	var made *C.cohort_executor
	err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_executor(raw, C.size_t(device), &made)
	})
	if err != nil {
		return nil, err
	}
	return newExecutor(made, g.lock), nil
}

func (g *Group) withDescs(data, label []Desc, f func(raw *C.cohort_group, data, label *C.cohort_descs) *C.cohort_error) error {
	var c scratch
	defer c.end()
	given, labels := c.descs(data), c.descs(label)
	if c.err != nil {
		return c.err
	}
	return withRoom(func() error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error { return f(raw, given, labels) })
	})
}

// Bind binds again: new arrays of zeros. Without rebind it is refused, for callers that expect a group that is not bound yet.
func (g *Group) Bind(data, label []Desc, rebind bool) error {
	return g.withDescs(data, label, func(raw *C.cohort_group, data, label *C.cohort_descs) *C.cohort_error {
		return C.cohort_group_bind(raw, data, label, nil, truth(rebind))
	})
}

// Reshape changes the shapes of the batch; parameters stay.
func (g *Group) Reshape(data, label []Desc) error {
	return g.withDescs(data, label, func(raw *C.cohort_group, data, label *C.cohort_descs) *C.cohort_error {
		return C.cohort_group_reshape(raw, data, label)
	})
}

// Forward splits a batch over the devices and runs a forward pass.
func (g *Group) Forward(data, label []*NDArray, isTrain bool) error {
	var c scratch
	defer c.end()
	given, num := c.listNDArray(data, false, "data")
	labels, numLabels := c.listNDArray(label, false, "label")
	if len(label) == 0 {
		labels = nil
	}
	if c.err != nil {
		return c.err
	}
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_forward(raw, given, num, labels, numLabels, C.int32_t(truth(isTrain)))
	})
}

// flat puts the arrays of all devices into one list.
func flat(devices [][]*NDArray, what string) (all []*NDArray, each int, err error) {
	for i, device := range devices {
		if i == 0 {
			each = len(device)
		}
		if err := checkLengths(each, len(device), what+": arrays of each device"); err != nil {
			return nil, 0, err
		}
		all = append(all, device...)
	}
	return all, each, nil
}

// ForwardPresliced runs a forward pass over a batch that is sliced already: the arrays of each device.
func (g *Group) ForwardPresliced(data, label [][]*NDArray, isTrain bool) error {
	all, num, err := flat(data, "data")
	if err != nil {
		return err
	}
	allLabels, numLabels, err := flat(label, "label")
	if err != nil {
		return err
	}
	if len(label) > 0 {
		if err := checkLengths(len(data), len(label), "label: devices"); err != nil {
			return err
		}
	}
	var c scratch
	defer c.end()
	given, _ := c.listNDArray(all, false, "data")
	labels, _ := c.listNDArray(allLabels, false, "label")
	if numLabels == 0 {
		labels = nil
	}
	if c.err != nil {
		return c.err
	}
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_forward_presliced(raw, C.size_t(len(data)), given, C.size_t(num), labels, C.size_t(numLabels),
			C.int32_t(truth(isTrain)))
	})
}

// Backward runs a backward pass. Losses need no head gradients.
func (g *Group) Backward(headGrads ...*NDArray) error {
	var c scratch
	defer c.end()
	list, num := c.listNDArray(headGrads, true, "head gradients")
	if c.err != nil {
		return c.err
	}
	return g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_backward(raw, list, num) })
}

// Update updates every parameter that has a gradient.
func (g *Group) Update(optimizer *Optimizer, mode UpdateMode) error {
	return optimizer.use(func(rule *C.cohort_optimizer) error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_update(raw, rule, C.cohort_update_mode(mode))
		})
	})
}

// UpdateMetric updates a metric once per device.
func (g *Group) UpdateMetric(metric *Metric, labels ...*NDArray) error {
	var c scratch
	defer c.end()
	list, num := c.listNDArray(labels, false, "labels")
	return metric.with(&c, func(figure *C.cohort_metric) error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_update_metric(raw, figure, list, num)
		})
	})
}

// UpdateMetricPresliced updates a metric once per device with labels that are sliced already: those of each device.
func (g *Group) UpdateMetricPresliced(metric *Metric, labels [][]*NDArray) error {
	all, each, err := flat(labels, "labels")
	if err != nil {
		return err
	}
	var c scratch
	defer c.end()
	list, _ := c.listNDArray(all, false, "labels")
	return metric.with(&c, func(figure *C.cohort_metric) error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_update_metric_presliced(raw, figure, C.size_t(len(labels)), list, C.size_t(each))
		})
	})
}

// Merged returns the arrays of a list joined over the devices: GroupListOutputs, GroupListInputGrads or GroupListStates; valid until the
// next pass.
func (g *Group) Merged(list GroupList) ([]*NDArray, error) {
	num, err := g.num(list)
	if err != nil {
		return nil, err
	}
	var found []*NDArray
	for i := 0; i < num; i++ {
		array, err := g.MergedAt(list, i)
		if err != nil {
			closeAll(found)
			return nil, err
		}
		if array != nil {
			found = append(found, array)
		}
	}
	return found, nil
}

// MergedAt returns one entry of a list, joined over the devices: see [Group.Merged]. nil if the entry does not exist.
func (g *Group) MergedAt(list GroupList, index int) (*NDArray, error) {
	var array *C.cohort_ndarray
	err := withRoom(func() error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_merged(raw, C.cohort_group_list(list), C.size_t(index), &array)
		})
	})
	if err != nil || array == nil {
		return nil, err
	}
	return newNDArray(array), nil
}

// Outputs returns the outputs, joined over the devices; valid until the next pass.
func (g *Group) Outputs() ([]*NDArray, error) { return g.Merged(GroupListOutputs) }

// InputGrads returns the existing gradients of the data, joined over the devices.
func (g *Group) InputGrads() ([]*NDArray, error) {
	var first *C.cohort_ndarray // reports an error if there are none
	if err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_array(raw, C.cohort_group_list(GroupListInputGrads), 0, 0, &first)
	}); err != nil {
		return nil, err
	}
	C.cohort_ndarray_free(first)
	return g.Merged(GroupListInputGrads)
}

// OfDevice returns the arrays of a list on one device, live, in order and with their names.
func (g *Group) OfDevice(list GroupList, device int) ([]NamedArray, error) {
	var made *C.cohort_arrays
	if err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_arrays(raw, C.cohort_group_list(list), C.size_t(device), &made)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(made)
	return readArrays(made)
}

// DeviceParams returns the parameters of one device by name, live.
func (g *Group) DeviceParams(device int) (Params, error) {
	return byName(g.OfDevice(GroupListParams, device))
}

// DeviceGrads returns the gradients of the parameters of one device by name, live.
func (g *Group) DeviceGrads(device int) (Params, error) {
	return byName(g.OfDevice(GroupListGrads, device))
}

// DeviceAux returns the auxiliary states of one device, live.
func (g *Group) DeviceAux(device int) (Params, error) {
	return byName(g.OfDevice(GroupListAux, device))
}

// SetParams copies parameters and auxiliary states to every device. All are required.
func (g *Group) SetParams(args, aux Params) error {
	_, err := g.AssignParams(args, aux, false, false)
	return err
}

// AssignParams copies parameters and auxiliary states to every device. With allowMissing some may be missing, whose names are returned;
// with allowExtra those that the network does not have are ignored.
func (g *Group) AssignParams(args, aux Params, allowMissing, allowExtra bool) ([]string, error) {
	var c scratch
	defer c.end()
	given, states := c.arrays(args, "args"), c.arrays(aux, "aux")
	if c.err != nil {
		return nil, c.err
	}
	var missing *C.cohort_descs
	if err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_assign_params(raw, given, states, truth(allowMissing), truth(allowExtra), &missing)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_descs_free(missing)
	descs, err := readDescs(missing)
	var names []string
	for _, one := range descs {
		names = append(names, one.Name)
	}
	return names, err
}

// Params returns parameters and auxiliary states, as means over the devices.
func (g *Group) Params() (args, aux Params, err error) {
	var lists [2]*C.cohort_arrays
	if err := withRoom(func() error {
		return g.on(func(raw *C.cohort_group) *C.cohort_error {
			return C.cohort_group_copy_params(raw, &lists[0], &lists[1])
		})
	}); err != nil {
		return nil, nil, err
	}
	defer C.cohort_arrays_free(lists[0])
	defer C.cohort_arrays_free(lists[1])
	if args, err = byName(readArrays(lists[0])); err != nil {
		return nil, nil, err
	}
	aux, err = byName(readArrays(lists[1]))
	return args, aux, err
}

// ParamsInto writes the means over the devices into arrays of the caller's, of which there must be one for each.
func (g *Group) ParamsInto(args, aux Params) error {
	var c scratch
	defer c.end()
	given, states := c.arrays(args, "args"), c.arrays(aux, "aux")
	if c.err != nil {
		return c.err
	}
	return g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_get_params(raw, given, states) })
}

// InitParams fills all parameters with an initializer, equally on every device.
func (g *Group) InitParams(initializer *Initializer) error {
	args, aux, err := g.Params()
	if err != nil {
		return err
	}
	defer args.Close()
	defer aux.Close()
	if err := initializer.Apply(g.symbol, args); err != nil {
		return err
	}
	if err := initializer.Apply(g.symbol, aux); err != nil {
		return err
	}
	return g.SetParams(args, aux)
}

// SetStates sets the states of every device: for each state an array per device. They stay until they are set again.
func (g *Group) SetStates(states [][]*NDArray) error {
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
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_set_states(raw, list, C.size_t(len(states)), C.size_t(devices), nil)
	})
}

// FillStates sets all states to one number.
func (g *Group) FillStates(value float64) error {
	number := C.double(value)
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_set_states(raw, nil, 0, 0, &number)
	})
}

// SetMonitor calls a function with name and array of each output of each operator, device after device; nil removes it.
func (g *Group) SetMonitor(function func(name string, array *NDArray) error, all bool) error {
	return g.setMonitor(function, func(ptr unsafe.Pointer, call C.cohort_monitor_fn, user unsafe.Pointer) *C.cohort_error {
		return C.cohort_group_set_monitor((*C.cohort_group)(ptr), call, user, truth(all))
	})
}

// Wait waits for all queued work.
func (g *Group) Wait() error {
	return g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_wait(raw) })
}

// SplitSlices returns the rows of each device, for a batch size and shares.
func SplitSlices(batchSize int, workload []float64, rounding Rounding) ([][2]int, error) {
	begin, end := make([]C.int64_t, len(workload)+1), make([]C.int64_t, len(workload)+1)
	var c scratch
	defer c.end()
	shares := c.reals(workload)
	err := call(func() *C.cohort_error {
		return C.cohort_split_slices(C.int64_t(batchSize), shares, C.size_t(len(workload)), C.cohort_rounding(rounding),
			&begin[0], &end[0])
	})
	if err != nil {
		return nil, err
	}
	found := make([][2]int, len(workload))
	for i := range found {
		found[i] = [2]int{int(begin[i]), int(end[i])}
	}
	return found, nil
}

// Memory returns the memory of a device in bytes.
func (g *Group) Memory(device int) (MemoryInfo, error) {
	info := newMemoryInfo()
	err := g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_memory(raw, C.size_t(device), info) })
	return memoryInfoOf(info), err
}

// Descs returns the descriptors that the group is bound to: GroupListData or GroupListLabels.
func (g *Group) Descs(list GroupList) ([]Desc, error) {
	var made *C.cohort_descs
	if err := g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_descs(raw, C.cohort_group_list(list), &made)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_descs_free(made)
	return readDescs(made)
}

// Contexts returns the devices.
func (g *Group) Contexts() ([]Context, error) {
	found := make([]Context, g.numContexts)
	for i := range found {
		var one C.cohort_context
		if err := g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_context(raw, C.size_t(i), &one) }); err != nil {
			return nil, err
		}
		found[i] = contextOf(one)
	}
	return found, nil
}

// Load splits a batch over the devices and copies it there; Run computes.
func (g *Group) Load(data, label []*NDArray) error {
	var c scratch
	defer c.end()
	given, num := c.listNDArray(data, false, "data")
	labels, numLabels := c.listNDArray(label, false, "label")
	if c.err != nil {
		return c.err
	}
	return g.on(func(raw *C.cohort_group) *C.cohort_error {
		return C.cohort_group_load(raw, given, num, labels, numLabels)
	})
}

// Run runs a forward pass over the loaded batch.
func (g *Group) Run(isTrain bool) error {
	return g.on(func(raw *C.cohort_group) *C.cohort_error { return C.cohort_group_run(raw, C.int32_t(truth(isTrain))) })
}
