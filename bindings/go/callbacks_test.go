// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"cohort.example/cohort"
)

var errToday = errors.New("not today")

// panics returns the value that a function panics with.
func panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func TestAReshapedExecutorKeepsWhatWatchesIt(t *testing.T) {
	alone(t)
	first := ok(cohort.SimpleBind(mlp(), cohort.CPU(0), map[string][]int{"data": {2, 4}}))
	seen := 0
	done(first.SetMonitor(func(string, *cohort.NDArray) error { seen++; return nil }, false))
	second := ok(first.Reshape(map[string][]int{"data": {1, 4}}, true, false))
	first.Close()
	done(second.Forward(false))
	each := seen
	third := ok(second.Reshape(map[string][]int{"data": {2, 4}}, true, true))
	done(third.SetMonitor(nil, false))
	done(third.Forward(false))
	if each == 0 || seen != each {
		t.Error(each, seen)
	}
	done(second.Forward(false))
	_, err := second.Reshape(map[string][]int{"data": {2, 5}}, false, false)
	refused(t, err, cohort.ErrShape, "")
	if seen != 2*each {
		t.Error(each, seen)
	}
}

func TestWhatMonitorsFailOrPanicWithComesOutOfThePass(t *testing.T) {
	alone(t)
	executor := ok(cohort.SimpleBind(mlp(), cohort.CPU(0), map[string][]int{"data": {1, 4}}))
	defer executor.Close()
	var seen []string
	var kept *cohort.NDArray
	done(executor.SetMonitor(func(name string, array *cohort.NDArray) error {
		seen, kept = append(seen, name), array
		return nil
	}, false))
	done(executor.Forward(false))
	if strings.Join(seen, " ") != "fc_output softmax_output" {
		t.Error(seen)
	}
	_, err := kept.Shape()
	refused(t, err, cohort.ErrState, "closed")
	done(executor.SetMonitor(func(string, *cohort.NDArray) error { return errToday }, true))
	if err := executor.Forward(false); !errors.Is(err, errToday) {
		t.Error(err)
	}
	done(executor.SetMonitor(func(name string, _ *cohort.NDArray) error { panic("no more of " + name) }, false))
	if value := panics(func() { done(executor.Forward(false)) }); value != "no more of fc_output" {
		t.Error(value)
	}
	done(executor.SetMonitor(func(string, *cohort.NDArray) error { return executor.Forward(false) }, false))
	refused(t, executor.Forward(false), cohort.ErrState, "in use")
	done(executor.SetMonitor(func(string, *cohort.NDArray) error { return executor.Close() }, false))
	done(executor.Forward(false))
	refused(t, executor.Forward(false), cohort.ErrState, "closed")

	// The error of a callback inside a callback is returned by the inner call.
	inner := ok(cohort.SimpleBind(linear(), cohort.CPU(0), map[string][]int{"data": {1, 2}}))
	outer := ok(cohort.SimpleBind(linear(), cohort.CPU(0), map[string][]int{"data": {1, 2}}))
	defer inner.Close()
	defer outer.Close()
	done(inner.SetMonitor(func(string, *cohort.NDArray) error { return errToday }, false))
	var between error
	done(outer.SetMonitor(func(string, *cohort.NDArray) error {
		between = inner.Forward(false)
		return nil
	}, false))
	done(outer.Forward(false))
	if !errors.Is(between, errToday) {
		t.Error(between)
	}

	group := linearGroup()
	done(group.SetMonitor(func(string, *cohort.NDArray) error { return errToday }, false))
	batch := []*cohort.NDArray{full(1, 4, 2)}
	if err := group.Forward(batch, nil, false); !errors.Is(err, errToday) {
		t.Error(err)
	}
	part := ok(group.Executor(0))
	group.Close()
	done(part.Forward(false)) // the library keeps it, but no longer its function
	part.Close()
}

func TestMetricsOfTheCallers(t *testing.T) {
	alone(t)
	metric := ok(cohort.CustomMetric("own", func(labels, preds []*cohort.NDArray) (float64, float64, error) {
		label, err := labels[0].Float32s()
		switch {
		case err != nil:
			return 0, 0, err
		case label[0] == 5:
			panic("a large label")
		}
		return float64(label[0] + ok(preds[0].Float32s())[0]), 2, nil
	}))
	one, five := []*cohort.NDArray{floats([]float32{1})}, []*cohort.NDArray{floats([]float32{5})}
	done(metric.Update(one, five))
	if figures := ok(metric.Values()); figures[0] != (cohort.Figure{Name: "own", Value: 3}) {
		t.Error(figures)
	}
	if value := panics(func() { done(metric.Update(five, one)) }); value != "a large label" {
		t.Error(value)
	}
	whole := []*cohort.NDArray{ok(cohort.FromSlice([]int32{1}))}
	refused(t, metric.Update(whole, one), cohort.ErrDtype, "expected elements of float32")
	both := ok(cohort.NewMetric("composite", nil))
	done(both.Add(metric))
	metric.Close() // the composite keeps it and its function
	done(both.Update(one, one))
	if figures := ok(both.Values()); len(figures) != 1 || figures[0].Value != 2 {
		t.Error(figures)
	}
	both.Close()
	_, err := cohort.CustomMetric("none", nil)
	refused(t, err, cohort.ErrInvalidArgument, "found nil")
}

// anyLength is the mean over any number of columns, then a layer.
func anyLength() *cohort.Symbol {
	mean := ok(cohort.Node("mean", cohort.Attrs{"axis": 1, "keepdims": true}, cohort.Inputs(ok(cohort.Variable("data")))))
	fc := ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 3}, cohort.Inputs(mean), cohort.Named("fc")))
	return ok(cohort.Node("SoftmaxOutput", cohort.Inputs(fc), cohort.Named("softmax")))
}

func TestABucketWithoutASymbolIsTheCallersError(t *testing.T) {
	alone(t)
	label := []cohort.Desc{desc("softmax_label", 4)}
	manager := ok(cohort.NewManager(anyLength(), twoDevices, 4, []cohort.Desc{desc("data", 4, 9)}, label,
		cohort.WithBuckets("9", func(key string) (*cohort.Symbol, error) {
			switch key {
			case "5":
				return anyLength(), nil
			case "6":
				return nil, fmt.Errorf("bucket 6: %w", errToday)
			case "8":
				return nil, nil
			}
			panic("no bucket " + key)
		})))
	defer manager.Close()
	refused(t, manager.Forward(true), cohort.ErrState, "")
	load := func(length int) error {
		return manager.Load(&cohort.Batch{
			Data: []*cohort.NDArray{full(1, 4, length)}, Label: []*cohort.NDArray{full(1, 4)}, BucketKey: strconv.Itoa(length),
			DataDescs: []cohort.Desc{desc("data", 4, length)}, LabelDescs: label,
		})
	}
	done(load(5))
	if err := load(6); !errors.Is(err, errToday) {
		t.Error(err)
	}
	if value := panics(func() { done(load(7)) }); value != "no bucket 7" {
		t.Error(value)
	}
	refused(t, load(8), cohort.ErrInvalidArgument, "found nil")
	done(manager.Forward(true))
	done(manager.Backward())
	done(manager.Update(ok(cohort.NewOptimizer("sgd", nil)), cohort.UpdateModeOnStore))
	if keys := ok(manager.Buckets()); strings.Join(keys, " ") != "5 9" {
		t.Error(keys)
	}
	if info := ok(manager.Memory()); info.Arguments == 0 {
		t.Error(info)
	}
	if shape := ok(ok(manager.Outputs())[0].Shape()); shape[0] != 4 {
		t.Error(shape)
	}
	refused(t, manager.Load(nil), cohort.ErrInvalidArgument, "found nil")
}

func TestMonitorsComputeWhatTheCallerWants(t *testing.T) {
	alone(t)
	executor, calls := ok(cohort.SimpleBind(mlp(), cohort.CPU(0), map[string][]int{"data": {2, 4}})), 0
	monitor := ok(cohort.NewMonitor(1, cohort.WithFilter(func(name string) (bool, error) {
		return strings.Contains(name, "output"), nil
	}), cohort.WithStatistic(func(array *cohort.NDArray) ([]*cohort.NDArray, error) {
		if calls++; calls == 3 {
			return nil, errToday
		} else if calls > 3 {
			panic("too often")
		}
		return []*cohort.NDArray{floats([]float32{float32(ok(array.Size()))})}, nil
	})))
	done(monitor.Install(executor))
	done(monitor.Tic())
	done(executor.Forward(false))
	report := ok(monitor.Toc())
	if len(report) != 2 || report[0] != (cohort.Entry{Step: 1, Name: "fc_output", Text: "6\t"}) {
		t.Errorf("%q", report)
	}
	near(t, ok(monitor.Values(1))[0], 6)
	done(monitor.Tic())
	if err := executor.Forward(false); !errors.Is(err, errToday) {
		t.Error(err)
	}
	if value := panics(func() { done(executor.Forward(false)) }); value != "too often" {
		t.Error(value)
	}
	monitor.Close()
	done(executor.Forward(false))
	_, err := cohort.NewMonitor(1, cohort.WithPattern("("))
	refused(t, err, cohort.ErrInvalidArgument, "")
	_, err = cohort.NewMonitor(0)
	refused(t, err, cohort.ErrInvalidArgument, "interval")
	refused(t, ok(cohort.NewMonitor(1)).Install("network"), cohort.ErrInvalidArgument, "found string")
	refused(t, ok(cohort.NewMonitor(1)).Install((*cohort.Group)(nil)), cohort.ErrInvalidArgument, "found nil")
}

func TestTapesRecordAndGoBack(t *testing.T) {
	alone(t)
	x, gradient, tape := floats([]float32{1, 2}), floats([]float32{0, 0}), ok(cohort.NewTape())
	done(tape.Mark(x, gradient, cohort.GradReqWrite))
	y := ok(tape.Invoke("square", nil, x))
	if num := ok(tape.NumRecorded()); num != 1 {
		t.Error(num)
	}
	many := floats(make([]float32, 64))
	done(many.Fill(1))
	drop := func(seed uint64) []float32 {
		into := floats(make([]float32, 64))
		ok(tape.InvokeWith("Dropout", nil, []*cohort.NDArray{many}, cohort.WithSeed(seed), cohort.Into(into)))
		return ok(into.Float32s())
	}
	if reflect.DeepEqual(drop(1), drop(2)) || !reflect.DeepEqual(drop(1), drop(1)) {
		t.Error("a seed is that of the call")
	}
	_, err := tape.InvokeWith("square", nil, []*cohort.NDArray{x}, cohort.Training())
	refused(t, err, cohort.ErrInvalidArgument, "Training")
	done(tape.Backward(y, cohort.Backwards{HeadGrads: []*cohort.NDArray{floats([]float32{1, 10})}, RetainGraph: true}))
	near(t, gradient, 2, 40)
	first := ok(tape.Grad(y, []*cohort.NDArray{x}, cohort.Backwards{CreateGraph: true}))
	near(t, ok(tape.Grad(first, []*cohort.NDArray{x}, cohort.Backwards{}))[0], 2, 2)
	refused(t, tape.Backward(y, cohort.Backwards{HeadGrads: []*cohort.NDArray{x, x}}), cohort.ErrInvalidArgument, "expected 1, found 2")
	refused(t, tape.Backward([]*cohort.NDArray{floats([]float32{1})}, cohort.Backwards{}), cohort.ErrState, "")
	record := func(f func(heads []*cohort.NDArray) ([]*cohort.NDArray, error)) error {
		y := floats([]float32{1, 4})
		done(tape.Function([]*cohort.NDArray{x}, []*cohort.NDArray{y}, f))
		return tape.Backward([]*cohort.NDArray{y}, cohort.Backwards{})
	}
	done(record(func(heads []*cohort.NDArray) ([]*cohort.NDArray, error) {
		return cohort.Invoke("_mul_scalar", cohort.Attrs{"scalar": 3}, heads[0])
	}))
	near(t, gradient, 3, 3)
	if err := record(func([]*cohort.NDArray) ([]*cohort.NDArray, error) { return nil, errToday }); !errors.Is(err, errToday) {
		t.Error(err)
	}
	if value := panics(func() {
		done(record(func([]*cohort.NDArray) ([]*cohort.NDArray, error) { panic("no way back") }))
	}); value != "no way back" {
		t.Error(value)
	}
	refused(t, tape.Function([]*cohort.NDArray{x}, []*cohort.NDArray{x}, func([]*cohort.NDArray) ([]*cohort.NDArray, error) {
		return nil, nil
	}), cohort.ErrInvalidArgument, "")
	if before := ok(tape.SetRecording(false)); !before || ok(tape.IsRecording()) || !ok(tape.IsTraining()) {
		t.Error("it recorded")
	}
	tape.Close()
}

// scale is y = factor * x, which refuses a factor of 13 and panics at a negative one.
type scale struct{}

type scaled float32

func (scale) Declare(map[string]string) (cohort.Declaration, error) {
	return cohort.Declaration{Inputs: []string{"data"}, Outputs: []string{"output"}}, nil
}

func (scale) InferShape(_ map[string]string, known [][]int) (cohort.CustomShapes, error) {
	return cohort.CustomShapes{Inputs: known, Outputs: known[:1]}, nil
}

func (scale) Create(attrs map[string]string, _ cohort.Context) (cohort.CustomNode, error) {
	factor, err := strconv.ParseFloat(attrs["factor"], 32)
	return scaled(factor), err
}

func (s scaled) apply(from, to *cohort.NDArray) error {
	if s < 0 {
		panic("a negative factor")
	}
	if s == 13 {
		return errToday
	}
	values, err := from.Float32s()
	for i := range values {
		values[i] *= float32(s)
	}
	if err != nil {
		return err
	}
	return cohort.Write(to, values)
}

func (s scaled) Forward(inputs, _, outputs []*cohort.NDArray, _ bool) error {
	return s.apply(inputs[0], outputs[0])
}

func (s scaled) Backward(headGrads, _, _, _, gradients []*cohort.NDArray) error {
	if gradients[0] == nil {
		return nil
	}
	return s.apply(headGrads[0], gradients[0])
}

func TestOperatorsOfTheCallersAreNodesLikeOthers(t *testing.T) {
	alone(t)
	registration := ok(cohort.Register("go_scale", scale{}, false))
	_, err := cohort.Register("go_scale", scale{}, false)
	refused(t, err, cohort.ErrName, "go_scale")
	_, err = cohort.Register("go_none", nil, false)
	refused(t, err, cohort.ErrInvalidArgument, "found nil")
	runtime.GC() // must not remove the registration
	bind := func(factor any) (*cohort.Executor, error) {
		x := ok(cohort.Variable("x"))
		net := ok(cohort.Node("Custom", cohort.Attrs{"op_type": "go_scale", "factor": factor}, cohort.Inputs(x), cohort.Named("s")))
		return cohort.SimpleBind(net, cohort.CPU(0), map[string][]int{"x": {2}})
	}
	executor := ok(bind(4))
	done(executor.SetInputs(cohort.Params{"x": floats([]float32{1, 2})}))
	done(executor.Forward(true))
	near(t, ok(executor.Outputs())[0], 4, 8)
	done(executor.Backward(floats([]float32{1, 1})))
	near(t, ok(executor.Grads())["x"], 4, 4)
	if _, err := bind("four"); !errors.Is(err, strconv.ErrSyntax) {
		t.Error(err)
	}
	if err := ok(bind(13)).Forward(true); !errors.Is(err, errToday) {
		t.Error(err)
	}
	if value := panics(func() { done(ok(bind(-1)).Forward(true)) }); value != "a negative factor" {
		t.Error(value)
	}
	done(registration.Close())
	done(registration.Close())
	_, err = cohort.Invoke("Custom", cohort.Attrs{"op_type": "go_scale"}, floats([]float32{1}))
	refused(t, err, cohort.ErrName, "go_scale")
}

func TestMessagesAreReceived(t *testing.T) {
	alone(t)
	var seen []cohort.LogLevel
	receiver := ok(cohort.ReceiveLog(cohort.LogLevelWarning, func(level cohort.LogLevel, _ string) { seen = append(seen, level) }))
	group := ok(cohort.NewGroup(mlp(), twoDevices, []cohort.Desc{desc("data", 4, 4)}, nil))
	receiver.Close()
	group.Close()
	if len(seen) == 0 || seen[0] != cohort.LogLevelWarning {
		t.Error(seen)
	}
	_, err := cohort.ReceiveLog(cohort.LogLevelWarning, nil)
	refused(t, err, cohort.ErrInvalidArgument, "found nil")
}
