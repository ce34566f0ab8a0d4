// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
)

// LoadCheckpoint reads symbol, parameters and auxiliary states of PREFIX-symbol.json and PREFIX-0007.params, MXNet's two files.
func LoadCheckpoint(prefix string, epoch int) (symbol *Symbol, args, aux Params, err error) {
	return checkpoint(prefix, epoch, false)
}

// MapCheckpoint reads a checkpoint like [LoadCheckpoint], with large arrays in a mapping of the file, read when they are used. As long as
// they exist, the file must not be changed or truncated in place.
func MapCheckpoint(prefix string, epoch int) (symbol *Symbol, args, aux Params, err error) {
	return checkpoint(prefix, epoch, true)
}

func checkpoint(prefix string, epoch int, mapped bool) (symbol *Symbol, args, aux Params, err error) {
	var c scratch
	defer c.end()
	from := c.text(prefix, "prefix")
	if c.err != nil {
		return nil, nil, nil, c.err
	}
	var raw *C.cohort_symbol
	var lists [2]*C.cohort_arrays
	if err := withRoom(func() error {
		return call(func() *C.cohort_error {
			if mapped {
				return C.cohort_checkpoint_map(from, C.int32_t(clamp(epoch)), &raw, &lists[0], &lists[1])
			}
			return C.cohort_checkpoint_load(from, C.int32_t(clamp(epoch)), &raw, &lists[0], &lists[1])
		})
	}); err != nil {
		return nil, nil, nil, err
	}
	defer C.cohort_arrays_free(lists[0])
	defer C.cohort_arrays_free(lists[1])
	symbol = newSymbol(raw)
	if args, err = byName(readArrays(lists[0])); err == nil {
		aux, err = byName(readArrays(lists[1]))
	}
	return symbol, args, aux, err
}

// SaveCheckpoint writes symbol, parameters and auxiliary states to PREFIX-symbol.json and PREFIX-0007.params, MXNet's two files.
func SaveCheckpoint(prefix string, epoch int, symbol *Symbol, args, aux Params) error {
	var c scratch
	defer c.end()
	to := c.text(prefix, "prefix")
	network, _ := c.listSymbol([]*Symbol{symbol}, false, "symbol")
	given, states := c.arrays(args, "args"), c.arrays(aux, "aux")
	if c.err != nil {
		return c.err
	}
	return call(func() *C.cohort_error {
		return C.cohort_checkpoint_save(to, C.int32_t(clamp(epoch)), *network, given, states)
	})
}

// A Predictor runs a network for inference. Any number of goroutines may use it at the same time: each call gets an executor of its own,
// all on the same parameters, and executors of the shapes used last are kept for later calls.
type Predictor struct {
	symbol  *Symbol
	context Context
	args    Params
	aux     Params
	inputs  []string
	options []Option

	mutex  sync.Mutex             // guards the fields below
	idle   map[string][]*Executor // by shapes
	recent []string               // shapes, the most recently used last
	closed bool
}

const maxShapes = 16

func indexOf(list []string, text string) int {
	for i, one := range list {
		if one == text {
			return i
		}
	}
	return -1
}

// LoadPredictor makes a predictor from a checkpoint. Inputs are the names of the data; batches may have any length.
func LoadPredictor(prefix string, epoch int, context Context, inputs ...string) (*Predictor, error) {
	symbol, args, aux, err := LoadCheckpoint(prefix, epoch)
	if err != nil {
		return nil, err
	}
	defer symbol.Close()
	defer args.Close()
	defer aux.Close()
	return NewPredictor(symbol, args, aux, context, inputs...)
}

// NewPredictor makes a predictor from a network and its parameters, which it shares if they are on its context.
func NewPredictor(symbol *Symbol, args, aux Params, context Context, inputs ...string) (*Predictor, error) {
	if symbol == nil {
		return nil, newError(ErrorClassInvalidArgument, "symbol", "symbol: expected an object, found nil")
	}
	kept, err := symbol.Copy()
	if err != nil {
		return nil, err
	}
	made := &Predictor{symbol: kept, context: context, args: Params{}, aux: Params{}, inputs: inputs, idle: map[string][]*Executor{}}
	if err = here(made.args, args, context); err == nil {
		err = here(made.aux, aux, context)
	}
	if err != nil {
		made.Close()
		return nil, err
	}
	return made, nil
}

// With makes another predictor on the same parameters, with other settings: WithCompute, WithThreads. Its executors are bound when it is
// first used.
func (p *Predictor) With(options ...Option) (*Predictor, error) {
	if _, err := settingsOf("With", options, "WithCompute", "WithThreads"); err != nil {
		return nil, err
	}
	if p.isClosed() {
		return nil, closedError("predictor")
	}
	made, err := NewPredictor(p.symbol, p.args, p.aux, p.context, p.inputs...)
	if err == nil {
		made.options = append(append([]Option{}, p.options...), options...)
	}
	return made, err
}

// isClosed reports whether it is closed; the zero Predictor is.
func (p *Predictor) isClosed() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.closed || p.symbol == nil
}

// here copies arrays to a context, or takes second handles on those that are there, into a map.
func here(to, from Params, context Context) error {
	for name, array := range from {
		if array == nil {
			return newError(ErrorClassInvalidArgument, name, "params: '%s': expected an array, found nil", name)
		}
		place, err := array.Context()
		if err != nil {
			return err
		}
		if place == context {
			to[name], err = array.Share()
		} else {
			to[name], err = array.Copy(context)
		}
		if err != nil {
			delete(to, name)
			return err
		}
	}
	return nil
}

// Close frees the predictor. A call that is running completes.
func (p *Predictor) Close() error {
	p.mutex.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mutex.Unlock()
	for _, executors := range idle {
		for _, executor := range executors {
			executor.Close()
		}
	}
	p.args.Close()
	p.aux.Close()
	if p.symbol == nil {
		return nil
	}
	return p.symbol.Close()
}

// Predict returns the outputs for inputs by name; they belong to the caller.
func (p *Predictor) Predict(inputs Params) (outputs []*NDArray, err error) {
	err = p.loaded(inputs, func(executor *Executor) error {
		outputs, err = ask(executor)
		return err
	})
	return outputs, err
}

// Observe lets a calibration observe the network on these inputs. It has to compute in float32.
func (p *Predictor) Observe(calibration *Calibration, inputs Params) error {
	return p.loaded(inputs, func(executor *Executor) error { return calibration.Observe(executor) })
}

// loaded calls a function with an executor that has these inputs.
func (p *Predictor) loaded(inputs Params, use func(executor *Executor) error) error {
	if p.isClosed() {
		return closedError("predictor")
	}
	shapes := map[string][]int{}
	var key strings.Builder
	for _, name := range p.inputs {
		if inputs[name] == nil {
			return newError(ErrorClassInvalidArgument, name, "inputs: '%s' is missing", name)
		}
		shape, err := inputs[name].Shape()
		if err != nil {
			return err
		}
		shapes[name] = shape
		fmt.Fprint(&key, name, shape)
	}
	executor, err := p.take(key.String(), shapes)
	if err != nil {
		return err
	}
	defer p.giveBack(key.String(), executor)
	if err := executor.SetInputs(inputs); err != nil {
		return err
	}
	return use(executor)
}

func ask(executor *Executor) ([]*NDArray, error) {
	if err := executor.Forward(false); err != nil {
		return nil, err
	}
	live, err := executor.Outputs()
	defer closeAll(live)
	if err != nil {
		return nil, err
	}
	var found []*NDArray
	for _, output := range live {
		one, err := output.Copy(CPU(0))
		if err == nil {
			err = one.Wait()
		}
		if err != nil {
			closeAll(found)
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func (p *Predictor) take(key string, shapes map[string][]int) (*Executor, error) {
	p.mutex.Lock()
	closed := p.closed
	if idle := p.idle[key]; len(idle) > 0 {
		executor := idle[len(idle)-1]
		p.idle[key] = idle[:len(idle)-1]
		p.mutex.Unlock()
		return executor, nil
	}
	p.mutex.Unlock()
	if closed {
		return nil, closedError("predictor")
	}
	return p.bind(shapes)
}

// giveBack keeps an executor for later calls. Only those of the shapes used last are kept, so that memory does not grow with the number
// of shapes.
func (p *Predictor) giveBack(key string, executor *Executor) {
	var gone []*Executor
	p.mutex.Lock()
	if p.closed {
		gone = append(gone, executor)
	} else {
		p.idle[key] = append(p.idle[key], executor)
		if at := indexOf(p.recent, key); at >= 0 {
			p.recent = append(p.recent[:at], p.recent[at+1:]...)
		}
		p.recent = append(p.recent, key)
		if len(p.recent) > maxShapes {
			gone = p.idle[p.recent[0]]
			delete(p.idle, p.recent[0])
			p.recent = append(p.recent[:0], p.recent[1:]...)
		}
	}
	p.mutex.Unlock()
	for _, executor := range gone {
		executor.Close()
	}
}

func (p *Predictor) bind(shapes map[string][]int) (*Executor, error) {
	names, err := p.symbol.Arguments()
	if err != nil {
		return nil, err
	}
	labels, err := p.symbol.Labels()
	if err != nil {
		return nil, err
	}
	states, err := p.symbol.AuxiliaryStates()
	if err != nil {
		return nil, err
	}
	known, types := map[string][]int{}, map[string]Dtype{}
	for name, shape := range shapes {
		if indexOf(names, name) < 0 {
			return nil, newError(ErrorClassName, name, "inputs: the network has no argument '%s'; it has: %s", name, strings.Join(names, ", "))
		}
		known[name] = shape
	}
	// Parameters that the network does not have are ignored: it may be a part of the one that they were saved with.
	args, aux, own := Params{}, Params{}, Params{}
	defer own.Close()
	for _, name := range names {
		array := p.args[name]
		if _, isInput := shapes[name]; isInput || array == nil {
			continue
		}
		args[name] = array
		if known[name], err = array.Shape(); err != nil {
			return nil, err
		}
		if types[name], err = array.Dtype(); err != nil {
			return nil, err
		}
	}
	for _, name := range states {
		if p.aux[name] != nil {
			aux[name] = p.aux[name]
		}
	}
	all, _, _, err := p.symbol.InferShape(known)
	if err != nil {
		return nil, err
	}
	typed, _, _, err := p.symbol.InferDtype(types)
	if err != nil {
		return nil, err
	}
	for i, desc := range all {
		if args[desc.Name] != nil {
			continue
		}
		if _, isInput := shapes[desc.Name]; !isInput && indexOf(labels, desc.Name) < 0 {
			return nil, newError(ErrorClassName, desc.Name, "params: there is none called '%s'", desc.Name)
		}
		if desc.Shape == nil {
			return nil, newError(ErrorClassShape, desc.Name, "inputs: their shapes do not give that of '%s'", desc.Name)
		}
		dtype := typed[i].Dtype
		if dtype == DtypeNone {
			dtype = DtypeFloat32
		}
		array, err := Zeros(desc.Shape, dtype, p.context)
		if err != nil {
			return nil, err
		}
		args[desc.Name], own[desc.Name] = array, array
	}
	return Bind(p.symbol, p.context, args, nil, aux, append([]Option{WithGradReq(GradReqNull)}, p.options...)...)
}
