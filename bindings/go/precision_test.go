// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"cohort.example/cohort"
)

// wide is two layers of 16, each large enough for the processor's units for narrow types.
func wide() *cohort.Symbol {
	layer := func(input *cohort.Symbol, name string) *cohort.Symbol {
		return ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 16, "no_bias": true}, cohort.Inputs(input), cohort.Named(name)))
	}
	return layer(layer(ok(cohort.Variable("data")), "first"), "second")
}

func noise(seed int64, shape ...int) *cohort.NDArray {
	random, num := rand.New(rand.NewSource(seed)), 1
	for _, length := range shape {
		num *= length
	}
	values := make([]float32, num)
	for i := range values {
		values[i] = 2*random.Float32() - 1
	}
	return floats(values, shape...)
}

func wideParams() cohort.Params {
	return cohort.Params{"first_weight": noise(1, 16, 16), "second_weight": noise(2, 16, 16)}
}

// apart returns the largest difference from the expected numbers, relative to the largest number.
func apart(found *cohort.NDArray, expected []float32) float64 {
	difference, largest := 0.0, 0.0
	for i, value := range ok(found.Float32s()) {
		difference = math.Max(difference, math.Abs(float64(value-expected[i])))
		largest = math.Max(largest, math.Abs(float64(expected[i])))
	}
	return difference / largest
}

func ask(p *cohort.Predictor, batch *cohort.NDArray) *cohort.NDArray {
	return ok(p.Predict(cohort.Params{"data": batch}))[0]
}

func TestACalibratedPredictorAnswersInBytes(t *testing.T) {
	alone(t)
	batch, params := noise(3, 8, 16), wideParams()
	for _, method := range []cohort.CalibrationMethod{cohort.CalibrationMethodMinMax, cohort.CalibrationMethodEntropy} {
		plain := ok(cohort.NewPredictor(wide(), params, nil, cohort.CPU(0), "data"))
		expected := ok(ask(plain, batch).Float32s())
		ranges := ok(cohort.NewCalibration(method))
		_, _, err := ranges.Range("data")
		refused(t, err, cohort.ErrState, "observed")
		done(plain.Observe(ranges, cohort.Params{"data": batch}))
		low, high, err := ranges.Range("data")
		if done(err); low < -1 || low >= 0 || high <= 0 || high > 1 {
			t.Errorf("data: %v to %v", low, high)
		}
		_, _, err = ranges.Range("third")
		refused(t, err, cohort.ErrName, "third")
		kept := ok(ranges.Ranges())
		if ends := ok(kept["data"].Float32s()); float64(ends[0]) != low || float64(ends[1]) != high {
			t.Errorf("kept %v, found %v to %v", ends, low, high)
		}
		done(ranges.Close())
		ranges = ok(cohort.CalibrationFrom(kept))
		refused(t, plain.Observe(ranges, cohort.Params{"data": batch}), cohort.ErrState, "made from ranges")
		narrow := cohort.WithCompute(cohort.Compute{Dtype: cohort.DtypeInt8, Calibration: ranges})
		bytes := ok(plain.With(narrow, cohort.WithThreads(1)))
		var all sync.WaitGroup
		for i := 0; i < 3; i++ { // each binds an executor of its own
			all.Add(1)
			go func() {
				defer all.Done()
				if off := apart(ask(bytes, batch), expected); off > 0.1 {
					t.Errorf("%v: off by %v", method, off)
				}
			}()
		}
		all.Wait()
		if off := apart(ask(bytes, ok(batch.Slice(0, 4))), expected[:64]); off > 0.1 {
			t.Errorf("%v: another shape: off by %v", method, off)
		}
		executor := ok(cohort.SimpleBind(wide(), cohort.CPU(0), map[string][]int{"data": {8, 16}}, cohort.WithGradReq(cohort.GradReqNull), narrow))
		if num := strings.Count(ok(executor.DebugText()), "Computes in int8"); num != 0 && num != 2 {
			t.Errorf("%d layers in bytes", num)
		}
		group := ok(cohort.NewGroup(wide(), twoDevices, []cohort.Desc{desc("data", 8, 16)}, nil, cohort.ForInference(), narrow,
			cohort.WithGivenParams(params, nil)))
		done(group.Forward([]*cohort.NDArray{batch}, nil, false))
		if off := apart(ok(group.Outputs())[0], expected); off > 0.1 {
			t.Errorf("%v: a group is off by %v", method, off)
		}
		done(ranges.Close())
		refused(t, ranges.Observe(executor), cohort.ErrState, "closed")
		done(bytes.Close())
		_, err = bytes.With()
		refused(t, err, cohort.ErrState, "closed")
	}
	plain := ok(cohort.NewPredictor(wide(), params, nil, cohort.CPU(0), "data"))
	refused(t, plain.Observe(nil, cohort.Params{"data": batch}), cohort.ErrInvalidArgument, "found nil")
	_, err := plain.With(cohort.ForInference())
	refused(t, err, cohort.ErrInvalidArgument, "With: it takes no ForInference")
	unknown := ok(plain.With(cohort.WithCompute(cohort.Compute{Dtype: cohort.DtypeInt8})))
	_, err = unknown.Predict(cohort.Params{"data": batch})
	refused(t, err, cohort.ErrInvalidArgument, "expected a calibration")
	_, err = cohort.NewManager(wide(), twoDevices, 8, []cohort.Desc{desc("data", 8, 16)}, nil,
		cohort.WithCompute(cohort.Compute{Calibration: ok(cohort.NewCalibration(cohort.CalibrationMethodMinMax))}))
	refused(t, err, cohort.ErrInvalidArgument, "takes no Calibration")
}

func TestAPredictorComputesInTheTypesThatItIsTold(t *testing.T) {
	alone(t)
	prefix := filepath.Join(t.TempDir(), "net")
	done(cohort.SaveCheckpoint(prefix, 1, wide(), wideParams(), nil))
	symbol, args, aux, err := cohort.MapCheckpoint(prefix, 1)
	done(err)
	batch := noise(3, 8, 16)
	plain := ok(cohort.NewPredictor(symbol, args, aux, cohort.CPU(0), "data"))
	expected := ok(ask(plain, batch).Float32s())
	with := func(compute cohort.Compute) *cohort.Predictor { return ok(plain.With(cohort.WithCompute(compute))) }
	rounded := with(cohort.Compute{Dtype: cohort.DtypeBfloat16})
	if off := apart(ask(rounded, batch), expected); off > 0.05 {
		t.Errorf("bfloat16 is off by %v", off)
	}
	near(t, ask(with(cohort.Compute{Dtype: cohort.DtypeBfloat16, Float32Names: []string{"FullyConnected"}, TF32: true}), batch), expected...)
	_, err = with(cohort.Compute{Dtype: cohort.DtypeBfloat16, NarrowNames: []string{"third"}}).Predict(cohort.Params{"data": batch})
	refused(t, err, cohort.ErrName, "narrow_names: 'third'")
	_, err = with(cohort.Compute{Dtype: cohort.DtypeFloat16}).Predict(cohort.Params{"data": batch})
	refused(t, err, cohort.ErrUnsupported, "")
}

func TestALossScaleTellsWhereItIs(t *testing.T) {
	alone(t)
	data, label := []cohort.Desc{desc("data", 4, 4)}, []cohort.Desc{desc("softmax_label", 4)}
	scaled := func(scale float64, window int) cohort.Option {
		return cohort.WithCompute(cohort.Compute{LossScale: scale, LossScaleWindow: window})
	}
	group := ok(cohort.NewGroup(mlp(), twoDevices, data, label, scaled(1024, 2)))
	rule := ok(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.1}))
	is := func(expected cohort.LossScaleState, found cohort.LossScaleState) {
		if t.Helper(); found != expected {
			t.Errorf("expected %v, found %v", expected, found)
		}
	}
	is(cohort.LossScaleState{1024, 0, 0}, ok(group.LossScale()))
	is(cohort.LossScaleState{1, 0, 0}, ok(rule.LossScale()))
	for _, one := range []struct {
		value float64
		state cohort.LossScaleState
	}{{1, cohort.LossScaleState{1024, 1, 0}}, {math.Inf(1), cohort.LossScaleState{512, 0, 1}}, {1, cohort.LossScaleState{512, 1, 1}},
		{1, cohort.LossScaleState{1024, 0, 1}}} {
		done(group.Forward([]*cohort.NDArray{full(float32(one.value), 4, 4)}, []*cohort.NDArray{full(0, 4)}, true))
		done(group.Backward())
		done(group.Update(rule, cohort.UpdateModeOnStore))
		is(one.state, ok(group.LossScale()))
		is(one.state, ok(rule.LossScale()))
	}
	done(group.SetLossScale(64, 1))
	is(cohort.LossScaleState{64, 1, 1}, ok(group.LossScale()))
	refused(t, group.SetLossScale(-1, 0), cohort.ErrInvalidArgument, "")
	manager := ok(cohort.NewManager(mlp(), twoDevices, 4, data, label, scaled(256, 0)))
	is(cohort.LossScaleState{256, 0, 0}, ok(manager.LossScale()))
	done(manager.SetLossScale(8, 3))
	is(cohort.LossScaleState{8, 3, 0}, ok(manager.LossScale()))
}

func TestAStepCanBeSeenAndWhatItTook(t *testing.T) {
	alone(t)
	executor := ok(cohort.SimpleBind(linear(), cohort.CPU(0), map[string][]int{"data": {2, 2}}))
	trace := ok(cohort.NewTrace(cohort.TraceOptions{FlopPerS: 1e9, BytePerS: 1e9}))
	done(trace.Running(func() error {
		done(trace.Begin("training", "step 1"))
		done(trace.Counter("loss", 0.5))
		defer trace.End("training")
		return executor.Forward(false)
	}))
	done(executor.Forward(false)) // not recorded
	done(executor.Wait())
	var seen, own bool
	for _, total := range ok(trace.Totals(cohort.TotalsByName)) {
		if total.Name == "fc" {
			seen = total.Kind == cohort.SpanKindOperator && total.Op == "FullyConnected" && total.Count == 1 && total.Flops > 0 &&
				total.Bytes > 0 && total.Total >= total.Most && total.Most >= total.Least && total.Bound > 0
		}
		own = own || total.Kind == cohort.SpanKindUser && total.Name == "step 1"
	}
	if !seen || !own {
		t.Errorf("totals: %+v", ok(trace.Totals(cohort.TotalsByName)))
	}
	for _, total := range ok(trace.Totals(cohort.TotalsByOperator)) {
		if total.Kind == cohort.SpanKindOperator && (total.Name != "" || total.Op != "FullyConnected") {
			t.Errorf("by operator: %+v", total)
		}
	}
	if table := ok(trace.Table(cohort.TotalsByOperator)); !strings.Contains(table, "of bound") || !strings.Contains(table, "FullyConnected") {
		t.Error(table)
	}
	path := filepath.Join(t.TempDir(), "step.json")
	done(trace.Write(path))
	if json := ok(trace.JSON()); !strings.Contains(json, `"traceEvents"`) || json != string(ok(os.ReadFile(path))) {
		t.Error(json)
	}
	plan := ok(executor.DebugText())
	_, step, found := strings.Cut(plan, "forward FullyConnected 'fc'")
	if step, _, _ = strings.Cut(step, "\n"); !found || !strings.Contains(step, "us by ") || strings.HasSuffix(step, "- us") {
		t.Error(plan)
	}
	done(trace.Clear())
	if info := ok(trace.Info()); info != (cohort.TraceInfo{}) {
		t.Errorf("%+v", info)
	}
}

func TestATraceRefusesWhatCannotBe(t *testing.T) {
	alone(t)
	trace := ok(cohort.NewTrace(cohort.TraceOptions{MaxEvents: 1}))
	refused(t, trace.Stop(), cohort.ErrState, "not running")
	refused(t, trace.Running(func() error { return os.ErrNotExist }), os.ErrNotExist, "")
	refused(t, trace.Running(nil), cohort.ErrInvalidArgument, "nil")
	done(trace.Clear())
	done(trace.Start())
	refused(t, trace.Start(), cohort.ErrState, "running already")
	done(trace.Mark("host", "a"))
	done(trace.Mark("host", "b"))
	if info := ok(trace.Info()); info != (cohort.TraceInfo{1, 1, true}) {
		t.Errorf("%+v", info)
	}
	refused(t, trace.End("host"), cohort.ErrState, "host")
	refused(t, trace.Write("/nowhere/x.json"), cohort.ErrIO, "/nowhere/x.json")
	_, err := cohort.NewTrace(cohort.TraceOptions{FlopPerS: -1})
	refused(t, err, cohort.ErrInvalidArgument, "flop_per_s")
	_, err = cohort.NewTrace(cohort.TraceOptions{MaxEvents: -1})
	refused(t, err, cohort.ErrInvalidArgument, "MaxEvents")
}

func TestAnOperatorIsAppliedWithSettings(t *testing.T) {
	alone(t)
	draw := func(seed uint64) float32 {
		made := ok(cohort.InvokeWith("_random_uniform", cohort.Attrs{"shape": []int{8}}, nil, cohort.WithSeed(seed)))
		return ok(made[0].Float32s())[0]
	}
	if draw(1) != draw(1) || draw(1) == draw(2) {
		t.Error("seeds")
	}
	there := ok(cohort.InvokeWith("_zeros", cohort.Attrs{"shape": []int{2}}, nil, cohort.OnContext(cohort.CPU(3))))
	if place := ok(there[0].Context()); place != cohort.CPU(3) {
		t.Error(place)
	}
	x, into := full(1, 1000), full(0, 1000)
	dropped := ok(cohort.InvokeWith("Dropout", nil, []*cohort.NDArray{x}, cohort.Training()))
	zeros := 0
	for _, value := range ok(dropped[0].Float32s()) {
		if value == 0 {
			zeros++
		}
	}
	if zeros < 100 {
		t.Errorf("Dropout drops %d of 1000", zeros)
	}
	ok(cohort.InvokeWith("_plus_scalar", cohort.Attrs{"scalar": 2}, []*cohort.NDArray{x}, cohort.Into(into)))
	near(t, into, ok(full(3, 1000).Float32s())...)
	_, err := cohort.InvokeWith("_plus_scalar", nil, []*cohort.NDArray{x}, cohort.ForInference())
	refused(t, err, cohort.ErrInvalidArgument, "takes no ForInference")
}

func TestTheMemoryOfADeviceIsToldAndLimited(t *testing.T) {
	alone(t)
	here := cohort.CPU(9)
	before := ok(here.Memory())
	array := ok(cohort.Zeros([]int{1000}, cohort.DtypeFloat32, here))
	done(array.Wait())
	found := ok(here.Memory())
	if found.Used < before.Used+4000 || found.Peak < found.Used || found.Limit != 0 {
		t.Errorf("%+v, before %+v", found, before)
	}
	done(here.LimitMemory(found.Used + 100))
	_, err := cohort.Zeros([]int{1000}, cohort.DtypeFloat32, here)
	refused(t, err, cohort.ErrOutOfMemory, "cpu(9)")
	done(here.LimitMemory(0))
	refused(t, here.LimitMemory(-1), cohort.ErrInvalidArgument, "-1")
	done(array.Close())
	done(here.ResetPeakMemory())
	if peak := ok(here.Memory()).Peak; peak >= found.Peak {
		t.Errorf("peak %d", peak)
	}
	if !cohort.HasFeature("cpu") || cohort.HasFeature("steam") {
		t.Error("features")
	}
}

func TestASymbolTellsItsPartsAndAMetricWhatItCounted(t *testing.T) {
	alone(t)
	net := mlp()
	if name := ok(net.Name()); name != "softmax" {
		t.Error(name)
	}
	children := ok(net.Children())
	if outputs := ok(children.Outputs()); len(outputs) != 2 || outputs[0] != "fc_output" || outputs[1] != "softmax_label" {
		t.Error(outputs)
	}
	if none := ok(ok(cohort.Variable("x")).Children()); none != nil {
		t.Error("a variable has children")
	}
	if found := ok(net.AttrDict()); found["fc"]["num_hidden"] != "3" {
		t.Error(found)
	}
	metric := ok(cohort.NewMetric("accuracy", nil))
	done(metric.Update([]*cohort.NDArray{floats([]float32{0, 1}, 2)}, []*cohort.NDArray{floats([]float32{1, 0, 1, 0}, 2, 2)}))
	if found := ok(metric.Counters(false)); len(found) != 1 || found[0] != (cohort.Counter{Sum: 1, Num: 2}) {
		t.Error(found)
	}
}

func TestTrainingThatIsSavedGoesOnWithTheSameBits(t *testing.T) {
	alone(t)
	data, label := []cohort.Desc{desc("data", 4, 4)}, []cohort.Desc{desc("softmax_label", 4)}
	fc := ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 8}, cohort.Inputs(ok(cohort.Variable("data"))), cohort.Named("fc")))
	drop := ok(cohort.Node("Dropout", cohort.Attrs{"p": 0.5}, cohort.Inputs(fc), cohort.Named("drop")))
	net := ok(cohort.Node("SoftmaxOutput", cohort.Inputs(drop), cohort.Named("softmax")))
	bind := func(seed uint64) *cohort.Group {
		return ok(cohort.NewGroup(net, twoDevices, data, label, cohort.KeepDeviceAux(), cohort.WithSeed(seed)))
	}
	steps := func(group *cohort.Group, rule *cohort.Optimizer, num int) {
		for i := 0; i < num; i++ {
			done(group.Forward([]*cohort.NDArray{full(0.5, 4, 4)}, []*cohort.NDArray{full(1, 4)}, true))
			done(group.Backward())
			done(group.Update(rule, cohort.UpdateModeOnStore))
		}
	}
	adam := func() *cohort.Optimizer { return ok(cohort.NewOptimizer("adam", cohort.Attrs{"learning_rate": 0.1})) }
	whole, part, rest := bind(1), bind(1), bind(2)
	for _, group := range []*cohort.Group{whole, part} {
		done(group.InitParams(ok(cohort.NewInitializer("xavier", nil, 3))))
	}
	one, two, three := adam(), adam(), adam()
	steps(whole, one, 5)
	steps(part, two, 2)
	done(three.SetStates(ok(two.States())))
	args, aux, err := part.Params()
	done(err)
	done(rest.SetParams(args, aux))
	done(rest.Resume(three))
	steps(rest, three, 3)
	expected, _, err := whole.Params()
	done(err)
	found, _, err := rest.Params()
	done(err)
	for name, array := range expected {
		if a, b := ok(array.Float32s()), ok(found[name].Float32s()); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: expected %v, found %v", name, a, b)
		}
	}
}
