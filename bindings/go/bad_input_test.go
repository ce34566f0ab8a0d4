// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cohort.example/cohort"
)

// With any arguments a method works or returns an error of one line: no panic, no crash. (internal/nulls tests how the C interface treats
// NULL, for each function of its description.)

var hostileTexts = []string{"", "data", "no_such", "\xff\xfe", "a\nb", "a\x00b", "(", "-1", "9999999999999999999999", "fc_weight"}

// hostile makes a value of a type, often a wrong one, sometimes a valid one.
func hostile(random *rand.Rand, kind reflect.Type, depth int) reflect.Value {
	array := func() *cohort.NDArray {
		switch random.Intn(6) {
		case 0:
			return nil
		case 1:
			closed := full(1, 2)
			closed.Close()
			return closed
		case 2:
			return ok(cohort.FromSlice([]int64{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2))
		case 3:
			return &cohort.NDArray{}
		case 4:
			return full(1, 8)
		}
		return full(1, 4, 2)
	}
	symbol := func() *cohort.Symbol {
		if random.Intn(3) == 0 {
			return nil
		}
		return mlp()
	}
	switch kind {
	case reflect.TypeOf((*cohort.NDArray)(nil)):
		return reflect.ValueOf(array())
	case reflect.TypeOf((*cohort.Symbol)(nil)):
		return reflect.ValueOf(symbol())
	case reflect.TypeOf((*cohort.Optimizer)(nil)):
		return reflect.ValueOf([]*cohort.Optimizer{nil, {}, ok(cohort.NewOptimizer("sgd", nil))}[random.Intn(3)])
	case reflect.TypeOf((*cohort.Metric)(nil)):
		return reflect.ValueOf([]*cohort.Metric{nil, {}, ok(cohort.NewMetric("mse", nil))}[random.Intn(3)])
	case reflect.TypeOf((*cohort.Initializer)(nil)):
		return reflect.ValueOf([]*cohort.Initializer{nil, {}, ok(cohort.NewInitializer("xavier", nil, 1))}[random.Intn(3)])
	case reflect.TypeOf((*context.Context)(nil)).Elem():
		return reflect.ValueOf(context.Background())
	case reflect.TypeOf((*any)(nil)).Elem():
		return reflect.ValueOf([]any{"text", 1, math.NaN(), []int{1}, struct{}{}, linearGroup()}[random.Intn(6)])
	}
	switch kind.Kind() {
	case reflect.String:
		return reflect.ValueOf(hostileTexts[random.Intn(len(hostileTexts))]).Convert(kind)
	case reflect.Int, reflect.Int32, reflect.Uint64:
		numbers := []int64{-1, 0, 1, 2, 3, 4, 5, 100, math.MinInt64, math.MaxInt64, 1 << 62}
		return reflect.ValueOf(numbers[random.Intn(len(numbers))]).Convert(kind)
	case reflect.Float64:
		return reflect.ValueOf([]float64{0, -1, math.NaN(), math.Inf(1), 1e308}[random.Intn(5)])
	case reflect.Bool:
		return reflect.ValueOf(random.Intn(2) == 0)
	case reflect.Uint8:
		return reflect.ValueOf(uint8(random.Intn(256)))
	case reflect.Slice:
		made := reflect.Zero(kind)
		for i := random.Intn(3); i > 0 && depth < 4; i-- {
			made = reflect.Append(made, hostile(random, kind.Elem(), depth+1))
		}
		return made
	case reflect.Map:
		made := reflect.MakeMap(kind)
		for i := random.Intn(3); i > 0; i-- {
			made.SetMapIndex(hostile(random, kind.Key(), depth+1), hostile(random, kind.Elem(), depth+1))
		}
		return made
	case reflect.Struct:
		made := reflect.New(kind).Elem()
		for i := 0; i < kind.NumField(); i++ {
			if kind.Field(i).IsExported() {
				made.Field(i).Set(hostile(random, kind.Field(i).Type, depth+1))
			}
		}
		return made
	case reflect.Pointer:
		if random.Intn(3) > 0 && kind.Elem().Name() == "Batch" {
			made := reflect.New(kind.Elem())
			made.Elem().Set(hostile(random, kind.Elem(), depth+1))
			return made
		}
	}
	return reflect.Zero(kind) // functions and interfaces: nil
}

type sweep struct {
	t              *testing.T
	calls, refused int
}

// see checks the results of a call.
func (s *sweep) see(name string, results []reflect.Value) {
	s.calls++
	for _, result := range results {
		err, _ := result.Interface().(error)
		if err == nil {
			continue
		}
		s.refused++
		if err.Error() == "" || strings.Contains(err.Error(), "\n") || errors.Is(err, cohort.ErrInternal) {
			s.t.Errorf("%s: %q", name, err)
		}
	}
}

// call calls a function with hostile values.
func (s *sweep) call(random *rand.Rand, name string, function reflect.Value) {
	var given []reflect.Value
	for i := 0; i < function.Type().NumIn(); i++ {
		given = append(given, hostile(random, function.Type().In(i), 0))
	}
	defer func() {
		if value := recover(); value != nil {
			s.t.Errorf("%s(%v) panics: %v", name, given, value)
		}
	}()
	if function.Type().IsVariadic() {
		s.see(name, function.CallSlice(given))
	} else {
		s.see(name, function.Call(given))
	}
}

// methods calls all methods of an object, except Close, those that would share memory with nobody, and those that are meant to block
// forever.
func (s *sweep) methods(random *rand.Rand, object any) {
	of := reflect.ValueOf(object)
	for i := 0; i < of.NumMethod(); i++ {
		if name := of.Type().Method(i).Name; name != "Close" && name != "ToDLPack" {
			s.call(random, fmt.Sprintf("%T.%s", object, name), of.Method(i))
		}
	}
}

// objects creates one object of each type.
func objects(t *testing.T) []interface{ Close() error } {
	data, label := []cohort.Desc{desc("data", 4, 4)}, []cohort.Desc{desc("softmax_label", 4)}
	return []interface{ Close() error }{
		full(1, 4, 2), mlp(), ok(cohort.SimpleBind(mlp(), cohort.CPU(0), map[string][]int{"data": {4, 4}})),
		linearGroup(cohort.InputsNeedGrad()), ok(cohort.NewManager(mlp(), twoDevices, 4, data, label)),
		ok(cohort.NewOptimizer("sgd", nil)), ok(cohort.NewMetric("mse", nil)), ok(cohort.NewMetric("composite", nil)),
		ok(cohort.NewInitializer("normal", nil, 1)), ok(cohort.NewMonitor(1)), ok(cohort.NewTape()),
		ok(cohort.NewPredictor(linear(), cohort.Params{"fc_weight": full(1, 1, 2)}, nil, cohort.CPU(0), "data")),
	}
}

// aside runs a test in a folder of its own, because some methods write files.
func aside(t *testing.T) {
	before := ok(os.Getwd())
	done(os.Chdir(t.TempDir()))
	t.Cleanup(func() { done(os.Chdir(before)) })
}

func TestMethodsTakeAnything(t *testing.T) {
	alone(t)
	aside(t)
	s := &sweep{t: t}
	for seed := int64(0); seed < 40; seed++ {
		for _, object := range objects(t) {
			random := rand.New(rand.NewSource(seed))
			s.methods(random, object)
			object.Close()
			if seed%10 == 0 {
				s.methods(random, object)
			}
		}
	}
	if s.calls < 4000 || s.refused < s.calls/3 || s.refused == s.calls {
		t.Errorf("%d of %d refused", s.refused, s.calls)
	}
}

func TestZeroValuesAreClosed(t *testing.T) {
	alone(t)
	s := &sweep{t: t}
	for _, object := range []any{
		&cohort.NDArray{}, &cohort.Symbol{}, &cohort.Executor{}, &cohort.Group{}, &cohort.Manager{}, &cohort.Optimizer{}, &cohort.Metric{},
		&cohort.Initializer{}, &cohort.Monitor{}, &cohort.Tape{}, &cohort.LogReceiver{}, &cohort.Predictor{}, &cohort.Calibration{},
		&cohort.Trace{}, &cohort.Registration{},
	} {
		for seed := int64(0); seed < 10; seed++ {
			s.methods(rand.New(rand.NewSource(seed)), object)
		}
		done(object.(interface{ Close() error }).Close())
	}
}

func TestFunctionsTakeAnything(t *testing.T) {
	alone(t)
	aside(t)
	s, functions := &sweep{t: t}, map[string]any{
		"Zeros": func(dtype cohort.Dtype, context cohort.Context, a, b int) error {
			if a > 100 && b > 0 && b < 1<<40 { // large but valid
				a = 3
			}
			_, err := cohort.Zeros([]int{a, b, b}, dtype, context)
			return err
		},
		"FromSlice":    func(values []float64, shape []int) error { _, err := cohort.FromSlice(values, shape...); return err },
		"Concat":       cohort.Concat,
		"Invoke":       cohort.Invoke,
		"Variable":     cohort.Variable,
		"GroupSymbols": cohort.GroupSymbols,
		"FromJSON":     cohort.SymbolFromJSON,
		"LoadSymbol":   cohort.LoadSymbol,
		"Load":         cohort.Load,
		"Save":         func(arrays cohort.Params) error { return cohort.Save(filepath.Join(".", "some.params"), arrays) },
		"ParseContext": cohort.ParseContext,
		"ParseGradReq": cohort.ParseGradReq,
		"NumDevices":   cohort.NumDevices,
		"Operator":     cohort.Operator,
		"SplitSlices":  cohort.SplitSlices,
		"NewOptimizer": cohort.NewOptimizer,
		"NewMetric":    cohort.NewMetric,
		"NewInit":      cohort.NewInitializer,
		"NewMonitor": func(interval int, pattern string) error {
			_, err := cohort.NewMonitor(interval, cohort.WithPattern(pattern))
			return err
		},
		"LoadCheck":    cohort.LoadCheckpoint,
		"LoadPredict":  cohort.LoadPredictor,
		"NewPredictor": cohort.NewPredictor,
		"NewGroup":     cohort.NewGroup,
		"Node": func(op, name string, attrs cohort.Attrs, inputs []*cohort.Symbol, more map[string]*cohort.Symbol) error {
			_, err := cohort.Node(op, attrs, cohort.Named(name), cohort.Inputs(inputs...), cohort.NamedInputs(more), nil)
			return err
		},
		"options": func(workload []float64, slices [][2]int, names []string, req cohort.GradReq, threads int, rounding cohort.Rounding) error {
			_, err := cohort.NewGroup(linear(), twoDevices, []cohort.Desc{desc("data", 4, 2)}, nil, cohort.WithWorkload(workload...),
				cohort.WithFixedParams(names...), cohort.WithStates(names...), cohort.WithGradReq(req), cohort.WithThreads(min(threads, 4)),
				cohort.WithRounding(rounding), nil)
			return err
		},
		"NewManager": func(batch int, data, label []cohort.Desc, key string, symbols map[string]*cohort.Symbol) error {
			_, err := cohort.NewManager(mlp(), twoDevices, batch, data, label, cohort.WithBucketSymbols(key, symbols))
			return err
		},
		"SimpleBind": func(symbol *cohort.Symbol, context cohort.Context, shapes map[string][]int, types map[string]cohort.Dtype) error {
			_, err := cohort.SimpleBind(symbol, context, shapes, cohort.WithTypes(types))
			return err
		},
		"Bind": func(symbol *cohort.Symbol, args, grads, aux cohort.Params) error {
			_, err := cohort.Bind(symbol, cohort.CPU(0), args, grads, aux)
			return err
		},
	}
	for seed := int64(0); seed < 100; seed++ {
		for name, function := range functions {
			s.call(rand.New(rand.NewSource(seed)), name, reflect.ValueOf(function))
		}
	}
	if s.refused < s.calls/3 || s.refused == s.calls {
		t.Errorf("%d of %d refused", s.refused, s.calls)
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}
