// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cohort.example/cohort"
)

func TestArraysGoInAndOut(t *testing.T) {
	alone(t)
	array := floats([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	row := ok(array.Slice(1, 2))
	done(row.Fill(9))
	flat := ok(array.Reshape(6))
	array.Close()
	near(t, flat, 1, 2, 9, 9, 5, 6)
	whole := ok(cohort.ReadAll[int32](ok(flat.Cast(cohort.DtypeInt32))))
	if whole[2] != 9 {
		t.Error(whole)
	}
	near(t, ok(cohort.Invoke("exp", nil, floats([]float32{0})))[0], 1)
	done(cohort.Write(ok(flat.Share()), make([]float32, 6)))
	near(t, ok(flat.Copy(cohort.CPU(1))), 0, 0, 0, 0, 0, 0)
	near(t, ok(cohort.Concat(0, flat, flat, floats([]float32{7}))), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7)
	near(t, ok(cohort.FromDLPack(ok(floats([]float32{1, 2}).ToDLPack()))), 1, 2)
	into := []float32{5, 5, 5}
	refused(t, cohort.Read(flat, into), cohort.ErrShape, "")
	refused(t, cohort.Read(flat, make([]float64, 6)), cohort.ErrDtype, "expected elements of float64, found float32")
}

func TestErrorsHaveClassSubjectAndMessage(t *testing.T) {
	alone(t)
	_, err := cohort.Node("FullyConected")
	refused(t, err, cohort.ErrName, "FullyConnected")
	var failed *cohort.Error
	if !errors.As(err, &failed) || failed.Class != cohort.ErrorClassName || failed.Subject != "FullyConected" {
		t.Errorf("%+v", failed)
	}
	if errors.Is(err, cohort.ErrShape) || errors.Is(err, os.ErrClosed) {
		t.Error("it is of one class")
	}
	_, err = cohort.FromSlice([]float32{1, 2, 3}, 2, 2)
	refused(t, err, cohort.ErrShape, "12")
	_, err = cohort.ParseContext("tpu(0)")
	refused(t, err, cohort.ErrInvalidArgument, "tpu")
	_, err = cohort.Load("/no/such/file")
	refused(t, err, cohort.ErrIO, "/no/such/file")
	if found := cohort.ErrShape.Error(); found != "cohort: shape" {
		t.Error(found)
	}
	if found := err.Error(); !strings.HasPrefix(found, "cohort: '/no/such/file' ") {
		t.Error(found)
	}
	if cohort.GPU(3).String() != "gpu(3)" || (cohort.Context{Type: cohort.DeviceTypeCPUPinned}).String() != "cpu_pinned(0)" {
		t.Error("names of contexts")
	}
}

func TestClosedObjectsSayThatTheyAre(t *testing.T) {
	alone(t)
	array, symbol, group := floats([]float32{1}), mlp(), linearGroup()
	sgd, metric := ok(cohort.NewOptimizer("sgd", nil)), ok(cohort.NewMetric("accuracy", nil))
	executor := ok(group.Executor(0))
	for _, one := range []io.Closer{array, symbol, group, sgd, metric, executor} {
		done(one.Close())
		done(one.Close())
	}
	_, shapeErr := array.Shape()
	_, jsonErr := symbol.JSON()
	_, groupErr := cohort.NewGroup(symbol, twoDevices, nil, nil)
	open := linearGroup()
	_, zeroErr := new(cohort.NDArray).Shape()
	for i, err := range []error{
		shapeErr, jsonErr, groupErr, group.Backward(), group.Update(sgd, 0), executor.Forward(true), open.Update(sgd, 0),
		open.UpdateMetric(metric, array), open.Forward([]*cohort.NDArray{array}, nil, true), metric.Reset(), zeroErr, array.CopyTo(array),
	} {
		refused(t, err, cohort.ErrState, "it is closed")
		if !errors.Is(err, os.ErrClosed) {
			t.Error(i, err)
		}
	}
	refused(t, open.Forward([]*cohort.NDArray{nil}, nil, true), cohort.ErrInvalidArgument, "found nil")
	refused(t, open.Update(nil, 0), cohort.ErrInvalidArgument, "found nil")
	refused(t, open.UpdateMetric(nil), cohort.ErrInvalidArgument, "found nil")
	_, err := cohort.NewGroup(nil, twoDevices, nil, nil)
	refused(t, err, cohort.ErrInvalidArgument, "found nil")
}

func TestOptionsThatDoNotFitAreErrors(t *testing.T) {
	alone(t)
	_, err := cohort.SimpleBind(mlp(), cohort.CPU(0), nil, cohort.WithWorkload(1))
	refused(t, err, cohort.ErrInvalidArgument, "SimpleBind: it takes no WithWorkload")
	_, err = cohort.NewManager(mlp(), twoDevices, 4, nil, nil, cohort.InputsNeedGrad())
	refused(t, err, cohort.ErrInvalidArgument, "InputsNeedGrad")
	_, err = cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": struct{}{}})
	refused(t, err, cohort.ErrInvalidArgument, "learning_rate")
	_, err = cohort.NewOptimizer("sgd", cohort.Attrs{"no_such": 1})
	refused(t, err, cohort.ErrName, "no_such")
}

func TestGroupsSplitRunAndUpdate(t *testing.T) {
	alone(t)
	group := linearGroup(cohort.WithWorkload(1, 3), cohort.InputsNeedGrad())
	if slices := ok(group.Slices()); slices[0] != [2]int{0, 1} || slices[1] != [2]int{1, 4} {
		t.Error(slices)
	}
	done(group.SetParams(cohort.Params{"fc_weight": floats([]float32{1, 10}, 1, 2)}, nil))
	done(group.Forward([]*cohort.NDArray{floats([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2)}, nil, true))
	near(t, ok(group.Outputs())[0], 21, 43, 65, 87)
	done(group.Backward(full(1, 4, 1)))
	near(t, ok(group.InputGrads())[0], 1, 10, 1, 10, 1, 10, 1, 10)
	near(t, ok(group.DeviceGrads(1))["fc_weight"], 15, 18)
	done(group.Update(ok(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.5})), cohort.UpdateModeOnStore))
	args, _, err := group.Params()
	done(err)
	near(t, args["fc_weight"], -7, 0)
	refused(t, group.SetParams(nil, nil), cohort.ErrName, "'fc_weight'")
	if missing := ok(group.AssignParams(nil, nil, true, false)); len(missing) != 1 || missing[0] != "fc_weight" {
		t.Error(missing)
	}
	done(group.Load([]*cohort.NDArray{full(1, 4, 2)}, nil))
	done(group.Run(false))
	near(t, ok(group.Outputs())[0], -7, -7, -7, -7)
	if of := ok(group.Descs(cohort.GroupListData)); of[0].Name != "data" || of[0].Shape[0] != 4 || ok(group.Contexts())[1] != cohort.CPU(1) {
		t.Error(of)
	}
	executor := ok(group.Executor(1))
	if info := ok(group.Memory(1)); info.Arguments == 0 || info != ok(executor.Memory()) {
		t.Error(info)
	}
	if ok(executor.Context()) != cohort.CPU(1) || ok(executor.DebugText()) == "" {
		t.Error("what an executor is")
	}
	params := ok(group.DeviceParams(0))
	group.Close()
	near(t, params["fc_weight"], -7, 0)
}

func TestLayersArePlacedByTheirGroup(t *testing.T) {
	alone(t)
	data := ok(cohort.Variable("data"))
	fc := ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 2, "no_bias": true}, cohort.Inputs(data), cohort.Named("fc")))
	done(fc.SetAttrs(cohort.Attrs{"__ctx_group__": "first"}))
	net := ok(cohort.Node("tanh", cohort.Inputs(fc), cohort.Named("out")))
	done(net.SetAttrs(cohort.Attrs{"__ctx_group__": "second"}))
	at := func(executor *cohort.Executor, name string) cohort.Context {
		return ok(ok(executor.Args())[name].Context())
	}
	first, second := cohort.WithCtxGroup("first", cohort.CPU(2)), cohort.WithCtxGroup("second", cohort.CPU(3))
	executor := ok(cohort.SimpleBind(net, cohort.CPU(0), map[string][]int{"data": {1, 3}}, first, second))
	if found := at(executor, "fc_weight"); found != cohort.CPU(2) {
		t.Error(found)
	}
	done(executor.Forward(false))
	if found := ok(ok(executor.Outputs())[0].Context()); found != cohort.CPU(3) {
		t.Error(found)
	}
	weight := ok(cohort.Zeros([]int{2, 3}, cohort.DtypeFloat32, cohort.CPU(2)))
	given := cohort.Params{"data": ok(cohort.Zeros([]int{1, 3}, cohort.DtypeFloat32, cohort.CPU(2))), "fc_weight": weight}
	done(ok(cohort.Bind(net, cohort.CPU(0), given, nil, nil, first, second)).Forward(false))

	descs := []cohort.Desc{{Name: "data", Shape: []int{4, 3}}}
	group := ok(cohort.NewGroup(net, twoDevices, descs, nil, cohort.WithCtxGroup("first", cohort.CPU(2), cohort.CPU(3)),
		cohort.WithCtxGroup("second", cohort.CPU(0), cohort.CPU(1))))
	for device := 0; device < 2; device++ {
		if found := at(ok(group.Executor(device)), "fc_weight"); found != cohort.CPU(2+device) {
			t.Error(found)
		}
	}
	_, err := cohort.NewGroup(net, twoDevices, descs, nil, cohort.WithCtxGroup("first", cohort.CPU(2)), cohort.WithCtxGroup("second"))
	refused(t, err, cohort.ErrInvalidArgument, "ctx group 'second': expected 1 context or 2, as many for each group, found 0")
	_, err = cohort.SimpleBind(net, cohort.CPU(0), nil, cohort.WithCtxGroup("first", twoDevices...))
	refused(t, err, cohort.ErrInvalidArgument, "ctx group 'first'")
	_, err = cohort.NewGroup(net, twoDevices, descs, nil, first)
	refused(t, err, cohort.ErrDevice, "second")
	_, err = group.Executor(-1)
	refused(t, err, cohort.ErrInvalidArgument, "expected an index below 2, found -1")
}

func TestPrecisionIsWhatTheLibraryTakes(t *testing.T) {
	alone(t)
	shapes := map[string][]int{"data": {1, 4}}
	bind := func(compute cohort.Compute) error {
		executor, err := cohort.SimpleBind(mlp(), cohort.CPU(0), shapes, cohort.WithCompute(compute))
		if err == nil {
			err = executor.Forward(false)
		}
		return err
	}
	refused(t, bind(cohort.Compute{Dtype: cohort.DtypeInt32}), cohort.ErrInvalidArgument, "found 4")
	refused(t, bind(cohort.Compute{Dtype: cohort.DtypeFloat16}), cohort.ErrUnsupported, "float16")
	refused(t, bind(cohort.Compute{Dtype: cohort.DtypeBfloat16, Float32Names: []string{"nobody"}}), cohort.ErrName, "nobody")
	refused(t, bind(cohort.Compute{LossScale: 2}), cohort.ErrInvalidArgument, "an executor takes no GradientSum, LossScale")
	done(bind(cohort.Compute{Dtype: cohort.DtypeBfloat16, Float32Names: []string{"fc"}, TF32: true}))

	compute := cohort.Compute{Dtype: cohort.DtypeBfloat16, Float32Names: []string{"FullyConnected"}, LossScale: 1024,
		LossScaleWindow: 10, GradientSum: cohort.DtypeBfloat16}
	group := linearGroup(cohort.WithCompute(compute), cohort.BackwardOnce())
	done(group.Forward([]*cohort.NDArray{full(1, 4, 2)}, nil, true))
	done(group.Backward(full(1, 4, 1)))
	near(t, ok(group.DeviceGrads(0))["fc_weight"], 2048, 2048)
	refused(t, group.Backward(full(1, 4, 1)), cohort.ErrState, "")
	done(group.Update(ok(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 1})), cohort.UpdateModeOnStore))
	args, _, err := group.Params()
	done(err)
	near(t, args["fc_weight"], -4, -4)
}

func TestCheapValuesAreMadeAgain(t *testing.T) {
	alone(t)
	net := ok(cohort.Variable("data"))
	for _, name := range []string{"a", "b", "c"} {
		attrs := cohort.Attrs{"num_hidden": 8, "no_bias": true}
		layer := ok(cohort.Node("FullyConnected", attrs, cohort.Inputs(net), cohort.Named(name)))
		net = ok(cohort.Node("LeakyReLU", cohort.Attrs{"act_type": "gelu"}, cohort.Inputs(layer)))
	}
	bind := func(options ...cohort.Option) int {
		executor := ok(cohort.SimpleBind(net, cohort.CPU(0), map[string][]int{"data": {512, 8}}, options...))
		done(executor.Forward(true))
		return ok(executor.Memory()).Planned
	}
	if kept, again := bind(), bind(cohort.Recompute()); again >= kept {
		t.Errorf("%d bytes in the place of %d", again, kept)
	}
}

func TestOptimizersKeepTheirStates(t *testing.T) {
	alone(t)
	adam := ok(cohort.NewOptimizer("adam", cohort.Attrs{"learning_rate": 0.1}))
	weight := floats([]float32{1})
	done(adam.Update("w", weight, floats([]float32{0.5})))
	near(t, weight, 0.9)
	again := ok(cohort.NewOptimizer("adam", nil))
	done(again.SetStates(ok(adam.States())))
	if num := ok(again.Get("num_update")); num != 1 {
		t.Error(num)
	}
	refused(t, again.SetStates([]byte("nonsense")), cohort.ErrFormat, "")
	path := filepath.Join(t.TempDir(), "states")
	done(adam.SaveStates(path))
	done(again.LoadStates(path))
	done(ok(cohort.NewInitializer("one", nil, 1)).Fill("w_weight", weight))
	near(t, weight, 1)
	metric := ok(cohort.NewMetric("mae", nil))
	done(metric.SetNames([]string{"y"}, []string{"p"}))
	done(metric.UpdateNamed(cohort.Params{"y": floats([]float32{1}), "z": weight}, cohort.Params{"p": floats([]float32{3})}))
	if figures := ok(metric.Values()); figures[0].Value != 2 {
		t.Error(figures)
	}
}

// source returns a batch a number of times.
func source(num int, seen *int) cohort.Source {
	data, label, at := full(1, 4, 4), floats([]float32{0, 1, 2, 0}), 0
	return cohort.SourceFunc(func(context.Context) (*cohort.Batch, error) {
		*seen++
		if at++; at > num {
			at = 0
			return nil, io.EOF
		}
		return &cohort.Batch{Data: []*cohort.NDArray{data}, Label: []*cohort.NDArray{label}}, nil
	})
}

func TestAFitEndsWithItsContext(t *testing.T) {
	alone(t)
	data, label := []cohort.Desc{desc("data", 4, 4)}, []cohort.Desc{desc("softmax_label", 4)}
	group := ok(cohort.NewGroup(mlp(), twoDevices, data, label))
	sgd, metric, seen := ok(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.1})), ok(cohort.NewMetric("ce", nil)), 0
	done(group.Fit(context.Background(), source(3, &seen), sgd, cohort.Epochs(2), cohort.Measuring(metric)))
	if num := ok(sgd.Get("num_update")); num != 6 || seen != 8 {
		t.Error(num, seen)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := group.Fit(ctx, source(1000, &seen), sgd, cohort.Epochs(1000), cohort.Watching(func(p cohort.Progress) error {
		if p.Batch == 4 {
			cancel()
		}
		return nil
	}))
	if num := ok(sgd.Get("num_update")); !errors.Is(err, context.Canceled) || num != 11 {
		t.Error(err, num)
	}
	enough := errors.New("enough")
	err = group.Fit(context.Background(), source(9, &seen), sgd, cohort.Watching(func(cohort.Progress) error { return enough }))
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	manager := ok(cohort.NewManager(mlp(), twoDevices, 4, data, label))
	done(manager.Fit(context.Background(), source(2, &seen), sgd, cohort.Measuring(metric)))
	refused(t, manager.Fit(context.Background(), nil, sgd), cohort.ErrInvalidArgument, "found nil")
}

func TestACheckpointOfMXNetsIsAskedByManyGoroutinesAtOnce(t *testing.T) {
	alone(t)
	prefix := checkpoint(t, "0007")
	predictor := ok(cohort.LoadPredictor(prefix, 7, cohort.CPU(0), "data"))
	image := func(seed, rows int) *cohort.NDArray {
		pixels := make([]float32, 64*rows)
		for i := range pixels {
			pixels[i] = float32((i*7+seed*13)%17) / 16
		}
		return floats(pixels, rows, 1, 8, 8)
	}
	ask := func(seed, rows int) []float32 {
		return ok(ok(predictor.Predict(cohort.Params{"data": image(seed, rows)}))[0].Float32s())
	}
	var expected [20][]float32
	for i := range expected {
		expected[i] = ask(i, 1+i%2)
	}
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i, wanted := range expected {
				for j, score := range ask(i, 1+i%2) {
					if score != wanted[j] {
						t.Error(i, j, score, wanted[j])
					}
				}
			}
		}()
	}
	group.Wait()
	_, err := predictor.Predict(nil)
	refused(t, err, cohort.ErrInvalidArgument, "'data' is missing")
	_, err = cohort.LoadPredictor(prefix, 8, cohort.CPU(0), "data")
	refused(t, err, cohort.ErrIO, "0008.params")
	predictor.Close()
	_, err = predictor.Predict(cohort.Params{"data": image(0, 1)})
	refused(t, err, cohort.ErrState, "closed")
	lacking := ok(cohort.NewPredictor(linear(), nil, nil, cohort.CPU(0), "data"))
	_, err = lacking.Predict(cohort.Params{"data": full(1, 1, 2)})
	refused(t, err, cohort.ErrName, "'fc_weight'")
}

func TestAPredictorTakesWhatNetworkAndParametersSay(t *testing.T) {
	alone(t)
	data, target := ok(cohort.Variable("data")), ok(cohort.Variable("target"))
	fc := ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 1, "no_bias": true}, cohort.Inputs(data), cohort.Named("fc")))
	loss := ok(cohort.Node("LinearRegressionOutput", cohort.Inputs(fc, target), cohort.Named("near")))
	if labels := ok(loss.Labels()); len(labels) != 1 || labels[0] != "target" {
		t.Error(labels)
	}
	weight := floats([]float32{1, 10}, 1, 2)
	// Any name for the label, a parameter that the network does not have, and a type that follows from the parameters.
	for _, dtype := range []cohort.Dtype{cohort.DtypeFloat32, cohort.DtypeFloat64} {
		params := cohort.Params{"fc_weight": ok(weight.Cast(dtype)), "of_another_head": full(1, 3)}
		predictor := ok(cohort.NewPredictor(loss, params, cohort.Params{"gone": full(1, 3)}, cohort.CPU(0), "data"))
		for rows := 1; rows <= 20; rows++ { // more lengths than executors are kept for
			found := ok(predictor.Predict(cohort.Params{"data": full(1, rows, 2)}))[0]
			if values := ok(ok(found.Cast(cohort.DtypeFloat32)).Float32s()); len(values) != rows || values[rows-1] != 11 {
				t.Error(rows, values)
			}
			if of := ok(found.Dtype()); of != dtype {
				t.Error(of)
			}
		}
		if kept := predictor.Kept(); kept != 16 {
			t.Error(kept)
		}
		predictor.Close()
	}
	predictor := ok(cohort.NewPredictor(loss, cohort.Params{"fc_weight": weight}, nil, cohort.CPU(0), "dat"))
	_, err := predictor.Predict(cohort.Params{"dat": full(1, 1, 2)})
	refused(t, err, cohort.ErrName, "no argument 'dat'; it has: data, fc_weight, target")
	predictor.Close()
}

func TestTheGarbageCollectorMayComeAtAnyTime(t *testing.T) {
	alone(t)
	stop, ended := make(chan bool), make(chan bool)
	go func() {
		defer func() { ended <- true }()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 20; i++ {
				one := linearGroup(cohort.WithGradReq(cohort.GradReqAdd))
				done(one.Forward([]*cohort.NDArray{full(1, 4, 2)}, nil, true))
				done(one.Backward(full(1, 4, 1)))
				near(t, ok(one.DeviceGrads(0))["fc_weight"], 2, 2)
				if i%2 == 0 {
					one.Close()
				}
				ok(ok(linear().Internals()).JSON())
			}
		}()
	}
	group.Wait()
	stop <- true
	<-ended
}

func TestObjectsAreUsedByManyGoroutinesAndClosedMeanwhile(t *testing.T) {
	alone(t)
	first := linearGroup()
	second := linearGroup(cohort.WithSharedGroup(first))
	monitor := ok(cohort.NewMonitor(1))
	done(monitor.Install(second))
	array := full(1, 100, 100)
	network, sgd := mlp(), ok(cohort.NewOptimizer("sgd", nil))
	var group sync.WaitGroup
	for i := 0; i < 6; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			own := linearGroup()
			defer own.Close()
			batch := []*cohort.NDArray{full(1, 4, 2)}
			for j := 0; j < 30; j++ {
				for _, err := range []error{
					first.Forward(batch, nil, true), second.Forward(batch, nil, true), monitor.Tic(), second.Wait(), array.Fill(1),
					own.Forward(batch, nil, true), own.Backward(full(1, 4, 1)), own.Update(sgd, cohort.UpdateModeOnStore), sgd.Set("wd", 0),
					network.SetAttrs(cohort.Attrs{"__mark__": j}),
				} {
					if err != nil && !errors.Is(err, os.ErrClosed) {
						t.Error(err)
					}
				}
				ok(cohort.GroupSymbols(network, network)).Close()
				if i == 0 && j == 15 {
					array.Close()
					second.Close()
					monitor.Close()
				}
			}
		}(i)
	}
	group.Wait()
}

func TestFilesAreReadAndWritten(t *testing.T) {
	alone(t)
	here := t.TempDir()
	done(cohort.Save(filepath.Join(here, "a.params"), cohort.Params{"a": floats([]float32{1}), "b": floats([]float32{2})}))
	near(t, ok(cohort.LoadParams(filepath.Join(here, "a.params")))["b"], 2)
	done(mlp().Save(filepath.Join(here, "a.json")))
	symbol := ok(cohort.LoadSymbol(filepath.Join(here, "a.json")))
	if names := strings.Join(ok(symbol.Arguments()), " "); names != "data fc_weight fc_bias softmax_label" {
		t.Error(names)
	}
	args, outputs, _, err := symbol.InferShape(map[string][]int{"data": {5, 4}})
	done(err)
	if args[1].Shape[1] != 4 || outputs[0].Shape[1] != 3 {
		t.Error(args, outputs)
	}
	args, _, _, err = symbol.InferDtype(map[string]cohort.Dtype{"data": cohort.DtypeFloat64})
	if done(err); args[1].Dtype != cohort.DtypeFloat64 {
		t.Error(args)
	}
	file := ok(cohort.SaveBytes(cohort.Params{"a": floats([]float32{3})}))
	near(t, ok(cohort.LoadBytes(file))[0].Array, 3)
	_, err = cohort.LoadBytes(file[:5])
	refused(t, err, cohort.ErrFormat, "")
	done(cohort.SaveNPZ(filepath.Join(here, "a.npz"), cohort.Params{"a": floats([]float32{4})}))
	near(t, ok(cohort.LoadParams(filepath.Join(here, "a.npz")))["a"], 4)
	done(cohort.SaveNPY(filepath.Join(here, "a.npy"), floats([]float32{5})))
	near(t, ok(cohort.Load(filepath.Join(here, "a.npy")))[0].Array, 5)
	double := ok(cohort.Node("exp", cohort.Inputs(ok(cohort.Variable("x"))), cohort.Named("e")))
	both := ok(double.Compose(map[string]*cohort.Symbol{"x": symbol}))
	if names := ok(ok(both.OutputAt(0)).Outputs()); names[0] != "e_output" || len(ok(both.Arguments())) != 4 {
		t.Error(names)
	}
	done(symbol.SetAttrs(cohort.Attrs{"__lr_mult__": 2}))
	if value, found, err := symbol.Attr("__lr_mult__"); value != "2" || !found || err != nil {
		t.Error(value, found, err)
	}
}

func TestOperatorsSayWhatTheyAre(t *testing.T) {
	alone(t)
	all := ok(cohort.Operators())
	if len(all) < 300 {
		t.Error(len(all))
	}
	for _, name := range all {
		if ok(cohort.Operator(name)).Name == "" {
			t.Error(name)
		}
	}
	if inputs := ok(cohort.Operator("FullyConnected")).Inputs; len(inputs) != 3 {
		t.Error(inputs)
	}
	dropout, embedding := ok(cohort.Operator("Dropout")), ok(cohort.Operator("Embedding"))
	for _, attr := range dropout.Attrs {
		if attr.Name == "p" && (attr.Low != 0 || attr.High != 1) {
			t.Error(attr)
		}
	}
	if dropout.Precision != cohort.PrecisionFollows || dropout.Outputs[0] != "output" {
		t.Error(dropout)
	}
	if flows := embedding.Gradients; len(flows) != 2 || flows[0] || !flows[1] {
		t.Error(flows)
	}
}

func TestObjectsDescribeThemselves(t *testing.T) {
	alone(t)
	array, net, group := full(1, 2, 3), mlp(), linearGroup()
	sgd, metric := ok(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.5})), ok(cohort.NewMetric("mse", nil))
	done(metric.Update([]*cohort.NDArray{floats([]float32{1}, 1)}, []*cohort.NDArray{floats([]float32{3}, 1)}))
	executor := ok(cohort.SimpleBind(net, cohort.CPU(1), map[string][]int{"data": {2, 4}}))
	predictor := ok(cohort.NewPredictor(linear(), cohort.Params{"fc_weight": full(1, 1, 2)}, nil, cohort.CPU(0), "data"))
	for _, one := range []struct {
		object interface {
			fmt.Stringer
			Close() error
		}
		expected string
	}{
		{array, "NDArray([2 3] float32 on cpu(0))"},
		{net, "Symbol(softmax_output)"},
		{group, "Group([cpu(0) cpu(1)], batches of 4)"},
		{ok(cohort.NewManager(net, twoDevices, 4, []cohort.Desc{desc("data", 4, 4)}, []cohort.Desc{desc("softmax_label", 4)})), "Manager(buckets: )"},
		{executor, "Executor(cpu(1))"},
		{sgd, "Optimizer(learning rate 0.5, 0 updates)"},
		{metric, "Metric(mse: 4)"},
		{predictor, "Predictor(data on cpu(0))"},
		{ok(cohort.NewInitializer("xavier", nil, 1)), "Initializer"},
		{ok(cohort.NewMonitor(1)), "Monitor"},
		{ok(cohort.NewTape()), "Tape(recording)"},
		{ok(cohort.NewTrace(cohort.TraceOptions{})), "Trace(stopped, 0 events)"},
		{ok(cohort.NewCalibration(cohort.CalibrationMethodMinMax)), "Calibration"},
	} {
		if found := fmt.Sprint(one.object); found != one.expected {
			t.Errorf("expected %s, found %s", one.expected, found)
		}
		done(one.object.Close())
		if found := one.object.String(); !strings.HasSuffix(found, "(closed)") {
			t.Error(found)
		}
	}
	var none *cohort.NDArray
	if found := fmt.Sprint(none, &cohort.Group{}); found != "NDArray(nil) Group(closed)" {
		t.Error(found)
	}
}

func TestAGroupTakesNoWrongNamesAndStopsAtNumbersThatAreNotFinite(t *testing.T) {
	alone(t)
	data := []cohort.Desc{desc("data", 4, 2)}
	_, err := cohort.NewGroup(linear(), twoDevices, data, nil, cohort.WithFixedParams("fc_wieght"), cohort.StrictNames())
	refused(t, err, cohort.ErrName, "'fc_weight'")
	wrong := []*cohort.NDArray{floats([]float32{1, float32(math.Inf(1)), 1, 1, 1, 1, 1, 1}, 4, 2)}
	weights := cohort.Params{"fc_weight": full(1, 1, 2)}
	run := func(group *cohort.Group) error {
		if err := group.Forward(wrong, nil, false); err != nil {
			return err
		}
		return group.Wait()
	}
	stops, watched := linearGroup(cohort.StopIfNotFinite()), linearGroup()
	done(stops.SetParams(weights, nil))
	refused(t, run(stops), cohort.ErrExecution, "fc_output")
	done(watched.SetParams(weights, nil))
	done(run(watched))
	monitor := ok(cohort.NewMonitor(1, cohort.WithPattern("nothing"), cohort.MonitorStopIfNotFinite()))
	done(monitor.Install(watched))
	done(monitor.Tic())
	refused(t, run(watched), cohort.ErrExecution, "fc_output")
	done(monitor.Close())
}

func TestARandomStateIsReadAndSet(t *testing.T) {
	alone(t)
	drop := ok(cohort.Node("Dropout", cohort.Inputs(ok(cohort.Variable("data"))), cohort.Named("drop")))
	group := ok(cohort.NewGroup(drop, twoDevices, []cohort.Desc{desc("data", 4, 2)}, nil))
	state := ok(group.RandomState())
	draw := func() []float32 {
		done(group.SetRandomState(state))
		done(group.Forward([]*cohort.NDArray{full(1, 4, 2)}, nil, true))
		return ok(ok(group.Outputs())[0].Float32s())
	}
	if one, other := draw(), draw(); !reflect.DeepEqual(one, other) {
		t.Error(one, other)
	}
	refused(t, group.SetRandomState(state[1:]), cohort.ErrFormat, "")

	executor := ok(cohort.SimpleBind(drop, cohort.CPU(0), map[string][]int{"data": {8, 8}}, cohort.WithGradReq(cohort.GradReqNull)))
	done(executor.SetInputs(cohort.Params{"data": full(1, 8, 8)}))
	state = ok(executor.RandomState())
	var drawn [2][]float32
	for i := range drawn {
		done(executor.SetRandomState(state))
		done(executor.Forward(true))
		drawn[i] = ok(ok(executor.Outputs())[0].Float32s())
	}
	if !reflect.DeepEqual(drawn[0], drawn[1]) {
		t.Error(drawn)
	}
}

func TestACustomMetricMayHaveMoreOutputsThanLabels(t *testing.T) {
	alone(t)
	count := func(labels, preds []*cohort.NDArray) (float64, float64, error) {
		return float64(len(labels) + 10*len(preds)), 1, nil
	}
	label, preds := []*cohort.NDArray{full(1, 1)}, []*cohort.NDArray{full(2, 1), full(3, 1)}
	refused(t, ok(cohort.CustomMetric("count", count)).Update(label, preds), cohort.ErrInvalidArgument, "")
	metric := ok(cohort.CustomMetricAllowExtra("count", count))
	done(metric.Update(label, preds))
	if found := ok(metric.Values()); found[0].Value != 21 {
		t.Error(found)
	}
}
