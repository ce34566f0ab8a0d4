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

// An Executor is a network bound to its own or the caller's arrays. Passes are queued; reading an array waits for them.
type Executor struct{ handle }

func newExecutor(raw *C.cohort_executor, lock *callLock) *Executor {
	made := &Executor{}
	made.init("executor", unsafe.Pointer(raw), freeExecutor, lock)
	runtime.SetFinalizer(made, func(e *Executor) { finalizer(&e.handle) })
	return made
}

func (e *Executor) collect() {
	if context, err := e.Context(); err == nil {
		collectOn(context)
	}
}

func (e *Executor) on(f func(raw *C.cohort_executor) *C.cohort_error) error {
	return e.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_executor)(ptr)) })
}

// SimpleBind binds a network to arrays of zeros, for shapes given by name. Options: WithGradReq, WithGradReqs, WithGradReqList,
// WithTypes, WithSharedExecutor, WithCtxGroup, WithCompute, BackwardOnce, Recompute, WithThreads, WithSeed.
func SimpleBind(symbol *Symbol, context Context, shapes map[string][]int, options ...Option) (*Executor, error) {
	s, err := settingsOf("SimpleBind", options, "WithGradReq", "WithGradReqs", "WithGradReqList", "WithTypes",
		"WithSharedExecutor", "WithCtxGroup", "WithCompute", "BackwardOnce", "Recompute", "WithThreads", "WithSeed")
	if err != nil {
		return nil, err
	}
	var c scratch
	defer c.end()
	made, known := s.executor(&c), c.known(shapes, s.types)
	made.grad_req, made.grad_req_list, made.grad_req_names, made.num_grad_reqs = s.requests(&c)
	if s.sharedExecutor != nil {
		made.shared_arg_names, made.num_shared_arg_names = c.texts(s.sharedArgs, "shared"), C.size_t(len(s.sharedArgs))
		made.shared_data = c.arrays(nil, "shared")
	}
	return s.bind(&c, symbol, func(raw *C.cohort_symbol, out **C.cohort_executor) *C.cohort_error {
		place := context.raw()
		return C.cohort_executor_simple_bind(raw, &place, known, made, out)
	})
}

// Bind binds a network to arrays by name, without copying them. An argument has a gradient if there is an array for it in grads. Options:
// WithGradReq, WithGradReqs, WithGradReqList, WithSharedExecutor, WithCtxGroup, WithCompute, BackwardOnce, Recompute, WithThreads,
// WithSeed.
func Bind(symbol *Symbol, context Context, args, grads, aux Params, options ...Option) (*Executor, error) {
	s, err := settingsOf("Bind", options, "WithGradReq", "WithGradReqs", "WithGradReqList", "WithSharedExecutor",
		"WithCtxGroup", "WithCompute", "BackwardOnce", "Recompute", "WithThreads", "WithSeed")
	if err != nil {
		return nil, err
	}
	if symbol == nil {
		return nil, newError(ErrorClassInvalidArgument, "symbol", "symbol: expected an object, found nil")
	}
	argNames, err := symbol.Arguments()
	if err != nil {
		return nil, err
	}
	auxNames, err := symbol.AuxiliaryStates()
	if err != nil {
		return nil, err
	}
	for _, one := range []struct {
		names []string
		given Params
	}{{argNames, args}, {auxNames, aux}} {
		for _, name := range one.names {
			if one.given[name] == nil {
				return nil, newError(ErrorClassName, name, "Bind: there is no array for '%s'", name)
			}
		}
	}
	if s.gradReqList != nil {
		if err := checkLengths(len(argNames), len(s.gradReqList), "grad_req"); err != nil {
			return nil, err
		}
	}
	codes := make([]GradReq, len(argNames))
	for i, name := range argNames {
		switch {
		case s.gradReqList != nil:
			codes[i] = s.gradReqList[i]
		case s.gradReqs != nil:
			codes[i] = s.gradReqs[name]
		case s.gradReq != nil:
			codes[i] = *s.gradReq
		default:
			codes[i] = GradReqWrite
		}
	}
	var c scratch
	defer c.end()
	made := s.executor(&c)
	given, num := c.listNDArray(inOrder(args, argNames), false, "args")
	gradients, _ := c.listNDArray(inOrder(grads, argNames), true, "grads")
	states, numStates := c.listNDArray(inOrder(aux, auxNames), false, "aux")
	requests := listIn(&c, codes, func(req GradReq) C.cohort_grad_req { return C.cohort_grad_req(req) })
	return s.bind(&c, symbol, func(raw *C.cohort_symbol, out **C.cohort_executor) *C.cohort_error {
		place := context.raw()
		return C.cohort_executor_bind(raw, &place, given, num, gradients, requests, states, numStates, made, out)
	})
}

func (s *settings) bind(c *scratch, symbol *Symbol, make func(raw *C.cohort_symbol, out **C.cohort_executor) *C.cohort_error) (*Executor, error) {
	if symbol == nil {
		c.pin(nil, "symbol")
	}
	if c.err != nil {
		return nil, c.err
	}
	var raw *C.cohort_executor
	run := func() error {
		return symbol.on(func(of *C.cohort_symbol) *C.cohort_error { return make(of, &raw) })
	}
	var shared *callLock
	if s.sharedExecutor != nil {
		shared = s.sharedExecutor.lock
	}
	if err := withRoom(func() error { return withLocks(s.locks(shared), "executor", run) }); err != nil {
		return nil, err
	}
	made := newExecutor(raw, shared)
	made.collect()
	return made, nil
}

// Reshape makes an executor for other shapes, besides this one, with which it shares memory. partialShaping: arguments that are not
// named, and auxiliary states, may change shape, too. allowUpSizing: arguments may grow; they are then new arrays of zeros.
func (e *Executor) Reshape(shapes map[string][]int, partialShaping, allowUpSizing bool) (*Executor, error) {
	var c scratch
	defer c.end()
	known := c.known(shapes, nil)
	options := (*C.cohort_reshape_options)(c.bytes(C.sizeof_cohort_reshape_options))
	C.cohort_reshape_options_init(options, C.sizeof_cohort_reshape_options)
	options.partial_shaping, options.allow_up_sizing = truth(partialShaping), truth(allowUpSizing)
	if c.err != nil {
		return nil, c.err
	}
	var raw *C.cohort_executor
	var monitor *callback // the library passes it on to the new executor
	var unset func(ptr unsafe.Pointer)
	err := withRoom(func() error {
		return e.on(func(old *C.cohort_executor) *C.cohort_error {
			failed := C.cohort_executor_reshape(old, known, options, &raw)
			if failed == nil {
				e.mutex.Lock()
				if e.monitor != nil {
					monitor = e.monitor.hold()
				}
				unset = e.unset
				e.mutex.Unlock()
			}
			return failed
		})
	})
	if err != nil {
		return nil, err
	}
	made := newExecutor(raw, e.lock)
	made.monitor, made.unset = monitor, unset
	made.collect()
	return made, nil
}

// SetInputs copies arrays into arguments by name.
func (e *Executor) SetInputs(inputs Params) error {
	var c scratch
	defer c.end()
	list := c.arrays(inputs, "inputs")
	if c.err != nil {
		return c.err
	}
	return e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_set_inputs(raw, list) })
}

// Forward runs a forward pass over the arguments' values.
func (e *Executor) Forward(isTrain bool) error {
	return e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_forward(raw, truth(isTrain)) })
}

// PartialForward runs one node of the network, beginning with step 0; it returns how many are left.
func (e *Executor) PartialForward(isTrain bool, step int) (int, error) {
	var left C.int32_t
	err := e.on(func(raw *C.cohort_executor) *C.cohort_error {
		return C.cohort_executor_partial_forward(raw, truth(isTrain), C.int32_t(clamp(step)), &left)
	})
	return int(left), err
}

// Backward runs a backward pass. Losses need no head gradients.
func (e *Executor) Backward(headGrads ...*NDArray) error {
	var c scratch
	defer c.end()
	list, num := c.listNDArray(headGrads, true, "head gradients")
	if c.err != nil {
		return c.err
	}
	return e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_backward(raw, list, num, 1) })
}

// BackwardNamed takes head gradients by the names of the outputs.
func (e *Executor) BackwardNamed(headGrads Params) error {
	names, err := e.names(ExecutorListOutputs)
	if err != nil {
		return err
	}
	for _, name := range names {
		if headGrads[name] == nil {
			return newError(ErrorClassName, name, "head gradients: there is none for '%s'", name)
		}
	}
	return e.Backward(inOrder(headGrads, names)...)
}

func (e *Executor) names(list ExecutorList) ([]string, error) {
	ptr, err := e.pin()
	if err != nil {
		return nil, err
	}
	defer e.unpin()
	raw := (*C.cohort_executor)(ptr)
	var num C.size_t
	if err := e.on(func(*C.cohort_executor) *C.cohort_error {
		return C.cohort_executor_num_arrays(raw, C.cohort_executor_list(list), &num)
	}); err != nil {
		return nil, err
	}
	return names(int(num), func(i C.size_t, out **C.char) *C.cohort_error {
		return C.cohort_executor_name(raw, C.cohort_executor_list(list), i, out)
	})
}

func (e *Executor) list(list ExecutorList) ([]NamedArray, error) {
	var found *C.cohort_arrays
	if err := e.on(func(raw *C.cohort_executor) *C.cohort_error {
		return C.cohort_executor_arrays(raw, C.cohort_executor_list(list), &found)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(found)
	return readArrays(found)
}

// Outputs returns the outputs, live.
func (e *Executor) Outputs() ([]*NDArray, error) { return onlyArrays(e.list(ExecutorListOutputs)) }

// Args returns the arguments by name, live.
func (e *Executor) Args() (Params, error) { return byName(e.list(ExecutorListArgs)) }

// Grads returns the existing gradients by the names of their arguments, live.
func (e *Executor) Grads() (Params, error) { return byName(e.list(ExecutorListGrads)) }

// Aux returns the auxiliary states by name, live.
func (e *Executor) Aux() (Params, error) { return byName(e.list(ExecutorListAux)) }

// GradReqs returns the gradient request of each argument.
func (e *Executor) GradReqs() (map[string]GradReq, error) {
	names, err := e.names(ExecutorListArgs)
	found := map[string]GradReq{}
	for i, name := range names {
		var req C.cohort_grad_req
		if err := e.on(func(raw *C.cohort_executor) *C.cohort_error {
			return C.cohort_executor_grad_req(raw, C.size_t(i), &req)
		}); err != nil {
			return nil, err
		}
		found[name] = GradReq(req)
	}
	return found, err
}

// CopyParamsFrom copies parameters in by name. Unknown names are errors, unless allowExtra.
func (e *Executor) CopyParamsFrom(args, aux Params, allowExtra bool) error {
	var c scratch
	defer c.end()
	given, states := c.arrays(args, "args"), c.arrays(aux, "aux")
	if c.err != nil {
		return c.err
	}
	return e.on(func(raw *C.cohort_executor) *C.cohort_error {
		return C.cohort_executor_copy_params_from(raw, given, states, truth(allowExtra))
	})
}

// Symbol returns the network.
func (e *Executor) Symbol() (*Symbol, error) {
	var made *C.cohort_symbol
	if err := e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_symbol(raw, &made) }); err != nil {
		return nil, err
	}
	return newSymbol(made), nil
}

// SetMonitor calls a function with name and array of each output of each operator during a pass, and of its inputs with all; nil removes
// it. The arrays are closed after it. Errors and panics of the function come out of that pass.
func (e *Executor) SetMonitor(function func(name string, array *NDArray) error, all bool) error {
	return e.setMonitor(function, func(ptr unsafe.Pointer, call C.cohort_monitor_fn, user unsafe.Pointer) *C.cohort_error {
		return C.cohort_executor_set_monitor((*C.cohort_executor)(ptr), call, user, truth(all))
	})
}

// setMonitor passes a function to an object, which the library keeps no longer than the object exists. The function that removes it must
// not refer to the object, or the garbage collector would never free the object.
func (h *handle) setMonitor(function monitorFunc,
	set func(ptr unsafe.Pointer, call C.cohort_monitor_fn, user unsafe.Pointer) *C.cohort_error) error {
	var gone *callback
	err := h.do(func(ptr unsafe.Pointer) *C.cohort_error {
		var made *callback
		var failed *C.cohort_error
		if function == nil {
			failed = set(ptr, nil, nil)
		} else {
			made = newCallback(function)
			failed = set(ptr, monitorCallback(), made.cell)
		}
		if gone = made; failed == nil {
			h.mutex.Lock()
			gone, h.monitor = h.monitor, made
			h.unset = func(ptr unsafe.Pointer) { C.cohort_error_free(set(ptr, nil, nil)) }
			h.mutex.Unlock()
		}
		return failed
	})
	if gone != nil {
		gone.letGo()
	}
	return err
}

// Wait waits for all queued work.
func (e *Executor) Wait() error {
	return e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_wait(raw) })
}

// Memory returns its memory in bytes.
func (e *Executor) Memory() (MemoryInfo, error) {
	info := newMemoryInfo()
	err := e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_memory(raw, info) })
	return memoryInfoOf(info), err
}

// DebugText is the plan as text: the nodes, then the steps of the latest pass, each with its operations and bytes, the least time that
// the machine needs for them, and the mean time it took while a Trace was running.
func (e *Executor) DebugText() (found string, err error) {
	err = e.on(func(raw *C.cohort_executor) *C.cohort_error {
		var text *C.char
		failed := C.cohort_executor_debug_text(raw, &text)
		found = goText(text)
		return failed
	})
	return found, err
}

// Context returns the context it runs on.
func (e *Executor) Context() (Context, error) {
	var found C.cohort_context
	err := e.on(func(raw *C.cohort_executor) *C.cohort_error { return C.cohort_executor_context(raw, &found) })
	return contextOf(found), err
}
