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

// A Symbol is a graph of operators over variables.
type Symbol struct{ handle }

func maybeSymbol(make func(out **C.cohort_symbol) *C.cohort_error) (*Symbol, error) {
	var raw *C.cohort_symbol
	if err := call(func() *C.cohort_error { return make(&raw) }); err != nil {
		return nil, err
	}
	return newSymbol(raw), nil
}

func newSymbol(raw *C.cohort_symbol) *Symbol {
	made := &Symbol{}
	made.init("symbol", unsafe.Pointer(raw), freeSymbol, nil)
	runtime.SetFinalizer(made, func(s *Symbol) { finalizer(&s.handle) })
	return made
}

func (s *Symbol) on(f func(raw *C.cohort_symbol) *C.cohort_error) error {
	return s.do(func(ptr unsafe.Pointer) *C.cohort_error { return f((*C.cohort_symbol)(ptr)) })
}

func (s *Symbol) from(make func(raw *C.cohort_symbol, out **C.cohort_symbol) *C.cohort_error) (*Symbol, error) {
	var made *C.cohort_symbol
	if err := s.on(func(raw *C.cohort_symbol) *C.cohort_error { return make(raw, &made) }); err != nil {
		return nil, err
	}
	return newSymbol(made), nil
}

// Variable makes a variable.
func Variable(name string) (*Symbol, error) {
	var s scratch
	defer s.end()
	from := s.text(name, "variable")
	if s.err != nil {
		return nil, s.err
	}
	return maybeSymbol(func(out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_variable(from, nil, nil, 0, out)
	})
}

// A NodeOption is a part of a node's description: Attrs, Named, Inputs or NamedInputs.
type NodeOption interface{ applyTo(n *node) }

type node struct {
	name       string
	attrs      Attrs
	inputs     []*Symbol
	inputNames []string
}

func (a Attrs) applyTo(n *node) {
	for key, value := range a {
		n.attrs[key] = value
	}
}

type nodeOption func(n *node)

func (o nodeOption) applyTo(n *node) { o(n) }

// Named sets the node's name; the default is derived from the operator's.
func Named(name string) NodeOption { return nodeOption(func(n *node) { n.name = name }) }

// Inputs sets the inputs in order. Missing ones become variables.
func Inputs(symbols ...*Symbol) NodeOption {
	return nodeOption(func(n *node) { n.inputs = append(n.inputs, symbols...) })
}

// NamedInputs sets inputs by name, for operators with a fixed number of them.
func NamedInputs(symbols map[string]*Symbol) NodeOption {
	return nodeOption(func(n *node) {
		for _, name := range sortedKeys(symbols) {
			n.inputs, n.inputNames = append(n.inputs, symbols[name]), append(n.inputNames, name)
		}
	})
}

// Node is the symbol of an operator's outputs, by MXNet's name of the operator:
//
//	fc, err := cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 10}, cohort.Inputs(data), cohort.Named("fc"))
func Node(op string, options ...NodeOption) (*Symbol, error) {
	made := node{attrs: Attrs{}}
	for _, option := range options {
		if option != nil {
			option.applyTo(&made)
		}
	}
	if len(made.inputNames) > 0 && len(made.inputNames) != len(made.inputs) {
		return nil, newError(ErrorClassInvalidArgument, op, "inputs: expected all in order or all by name, found both")
	}
	var s scratch
	defer s.end()
	from, name := s.text(op, "operator"), s.textOrNull(made.name, "name")
	keys, values, num := s.attrs(made.attrs, op)
	inputs, numInputs := s.listSymbol(made.inputs, false, "inputs")
	var inputNames **C.char
	if len(made.inputNames) > 0 {
		inputNames = s.texts(made.inputNames, "inputs")
	}
	if s.err != nil {
		return nil, s.err
	}
	return maybeSymbol(func(out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_create(from, name, keys, values, num, inputs, inputNames, numInputs, out)
	})
}

// GroupSymbols makes a symbol with all outputs of the given ones.
func GroupSymbols(symbols ...*Symbol) (*Symbol, error) {
	var s scratch
	defer s.end()
	list, num := s.listSymbol(symbols, false, "symbols")
	if s.err != nil {
		return nil, s.err
	}
	return maybeSymbol(func(out **C.cohort_symbol) *C.cohort_error { return C.cohort_symbol_group(list, num, out) })
}

// SymbolFromJSON reads the JSON of any MXNet version.
func SymbolFromJSON(json string) (*Symbol, error) {
	var s scratch
	defer s.end()
	memory := s.bytes(len(json))
	copy(unsafe.Slice((*byte)(memory), len(json)+1), json)
	return maybeSymbol(func(out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_from_json((*C.char)(memory), C.size_t(len(json)), out)
	})
}

// LoadSymbol reads a file of JSON of any MXNet version.
func LoadSymbol(path string) (*Symbol, error) {
	var s scratch
	defer s.end()
	from := s.text(path, "path")
	if s.err != nil {
		return nil, s.err
	}
	return maybeSymbol(func(out **C.cohort_symbol) *C.cohort_error { return C.cohort_symbol_load(from, out) })
}

// JSON returns JSON in the form of MXNet 1.9.
func (s *Symbol) JSON() (string, error) {
	var found string
	err := s.on(func(raw *C.cohort_symbol) *C.cohort_error {
		var json *C.char
		failed := C.cohort_symbol_to_json(raw, &json)
		if failed == nil {
			found = goText(json)
		}
		return failed
	})
	return found, err
}

// Save writes JSON to a file.
func (s *Symbol) Save(path string) error {
	var c scratch
	defer c.end()
	to := c.text(path, "path")
	if c.err != nil {
		return c.err
	}
	return s.on(func(raw *C.cohort_symbol) *C.cohort_error { return C.cohort_symbol_save(raw, to) })
}

// Copy makes another symbol of the same graph.
func (s *Symbol) Copy() (*Symbol, error) {
	return s.from(func(raw *C.cohort_symbol, out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_copy(raw, out)
	})
}

// Output is one output, by name.
func (s *Symbol) Output(name string) (*Symbol, error) {
	var c scratch
	defer c.end()
	wanted := c.text(name, "output")
	if c.err != nil {
		return nil, c.err
	}
	return s.from(func(raw *C.cohort_symbol, out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_output_named(raw, wanted, out)
	})
}

// Internals is a symbol of all outputs of all nodes.
func (s *Symbol) Internals() (*Symbol, error) {
	return s.from(func(raw *C.cohort_symbol, out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_internals(raw, out)
	})
}

func (s *Symbol) list(list SymbolList) ([]string, error) {
	ptr, err := s.pin()
	if err != nil {
		return nil, err
	}
	defer s.unpin()
	raw := (*C.cohort_symbol)(ptr)
	var num C.size_t
	if err := s.on(func(*C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_num_names(raw, C.cohort_symbol_list(list), &num)
	}); err != nil {
		return nil, err
	}
	return names(int(num), func(i C.size_t, out **C.char) *C.cohort_error {
		return C.cohort_symbol_name_at(raw, C.cohort_symbol_list(list), i, out)
	})
}

// Arguments returns the names of the arguments.
func (s *Symbol) Arguments() ([]string, error) { return s.list(SymbolListArguments) }

// AuxiliaryStates returns the names of the auxiliary states.
func (s *Symbol) AuxiliaryStates() ([]string, error) { return s.list(SymbolListAux) }

// Labels returns the names of the arguments whose values inference does not need: they affect the outputs only as the label of a loss.
func (s *Symbol) Labels() ([]string, error) { return s.list(SymbolListLabels) }

// Outputs returns the names of the outputs.
func (s *Symbol) Outputs() ([]string, error) { return s.list(SymbolListOutputs) }

// NumNodes returns the number of nodes in MXNet's JSON form.
func (s *Symbol) NumNodes() (int, error) {
	var num C.size_t
	err := s.on(func(raw *C.cohort_symbol) *C.cohort_error { return C.cohort_symbol_num_nodes(raw, &num) })
	return int(num), err
}

// Attr returns an attribute of the node, and whether it has one of that name.
func (s *Symbol) Attr(key string) (value string, found bool, err error) {
	var c scratch
	defer c.end()
	wanted := c.text(key, "key")
	if c.err != nil {
		return "", false, c.err
	}
	err = s.on(func(raw *C.cohort_symbol) *C.cohort_error {
		var text *C.char
		failed := C.cohort_symbol_attr(raw, wanted, &text)
		value, found = goText(text), text != nil
		return failed
	})
	return value, found, err
}

// Name returns the name of the head's node; "" if there are several heads.
func (s *Symbol) Name() (name string, err error) {
	err = s.on(func(raw *C.cohort_symbol) *C.cohort_error {
		var text *C.char
		failed := C.cohort_symbol_name(raw, &text)
		name = goText(text)
		return failed
	})
	return name, err
}

// Children returns a symbol with the inputs of the head nodes as its heads; nil if these have none.
func (s *Symbol) Children() (*Symbol, error) {
	var made *C.cohort_symbol
	err := s.on(func(raw *C.cohort_symbol) *C.cohort_error { return C.cohort_symbol_children(raw, &made) })
	if err != nil || made == nil {
		return nil, err
	}
	return newSymbol(made), nil
}

// AttrDict returns the attributes of all nodes that have any, by node name.
func (s *Symbol) AttrDict() (map[string]map[string]string, error) {
	found := map[string]map[string]string{}
	err := s.on(func(raw *C.cohort_symbol) *C.cohort_error {
		var num C.size_t
		if failed := C.cohort_symbol_num_attrs(raw, 1, &num); failed != nil {
			return failed
		}
		for i := C.size_t(0); i < num; i++ {
			var node, key, value *C.char
			if failed := C.cohort_symbol_attr_at(raw, 1, i, &node, &key, &value); failed != nil {
				return failed
			}
			if found[goText(node)] == nil {
				found[goText(node)] = map[string]string{}
			}
			found[goText(node)][goText(key)] = goText(value)
		}
		return nil
	})
	return found, err
}

// SetAttrs sets attributes of the node, such as "__lr_mult__".
func (s *Symbol) SetAttrs(attrs Attrs) error {
	var c scratch
	defer c.end()
	keys, values, num := c.attrs(attrs, "attributes")
	if c.err != nil {
		return c.err
	}
	if !symbols.TryLock() {
		if inCallback() {
			return newError(ErrorClassState, "symbol", "symbol: symbols are in use, and a callback does not wait for them")
		}
		symbols.Lock()
	}
	defer symbols.Unlock()
	return s.on(func(raw *C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_set_attrs(raw, keys, values, num)
	})
}

// InferShape returns names and shapes of arguments, outputs and auxiliary states from known shapes by name. Shapes that cannot be
// inferred are missing, or have lengths of 0.
func (s *Symbol) InferShape(known map[string][]int) (args, outputs, aux []Desc, err error) {
	var c scratch
	defer c.end()
	given := c.known(known, nil)
	if c.err != nil {
		return nil, nil, nil, c.err
	}
	return s.infer(func(raw *C.cohort_symbol, complete *C.cohort_bool, args, outputs, aux **C.cohort_descs) *C.cohort_error {
		return C.cohort_symbol_infer_shape(raw, given, 1, complete, args, outputs, aux)
	})
}

// OutputAt is one output, by index.
func (s *Symbol) OutputAt(index int) (*Symbol, error) {
	return s.from(func(raw *C.cohort_symbol, out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_output(raw, C.size_t(index), out)
	})
}

// Compose replaces variables of this symbol by other symbols, by name.
func (s *Symbol) Compose(inputs map[string]*Symbol) (*Symbol, error) {
	var c scratch
	defer c.end()
	keys := sortedKeys(inputs)
	names := c.texts(keys, "inputs")
	list, num := c.listSymbol(inOrder(inputs, keys), false, "inputs")
	if c.err != nil {
		return nil, c.err
	}
	return s.from(func(raw *C.cohort_symbol, out **C.cohort_symbol) *C.cohort_error {
		return C.cohort_symbol_compose(raw, names, list, num, nil, out)
	})
}

// InferDtype returns names and types of arguments, outputs and auxiliary states from known types by name; DtypeNone: not inferred.
func (s *Symbol) InferDtype(known map[string]Dtype) (args, outputs, aux []Desc, err error) {
	var c scratch
	defer c.end()
	given := c.known(nil, known)
	if c.err != nil {
		return nil, nil, nil, c.err
	}
	return s.infer(func(raw *C.cohort_symbol, complete *C.cohort_bool, args, outputs, aux **C.cohort_descs) *C.cohort_error {
		return C.cohort_symbol_infer_dtype(raw, given, 1, complete, args, outputs, aux)
	})
}

func (s *Symbol) infer(call func(raw *C.cohort_symbol, complete *C.cohort_bool, args, outputs, aux **C.cohort_descs) *C.cohort_error) (args, outputs, aux []Desc, err error) {
	var complete C.cohort_bool
	var ofArgs, ofOutputs, ofAux *C.cohort_descs
	err = s.on(func(raw *C.cohort_symbol) *C.cohort_error { return call(raw, &complete, &ofArgs, &ofOutputs, &ofAux) })
	if err != nil {
		return nil, nil, nil, err
	}
	var found [3][]Desc
	for i, list := range []*C.cohort_descs{ofArgs, ofOutputs, ofAux} {
		descs, failed := readDescs(list)
		if failed != nil {
			err = failed
		}
		found[i] = descs
		C.cohort_descs_free(list)
	}
	return found[0], found[1], found[2], err
}
