// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"errors"
	"fmt"
	"strings"

	"cohort.example/cohort"
)

func errorsIs(err, class error) bool { return errors.Is(err, class) }

// found is the result of a step.
type found = map[string]any

func (s *scenario) step(step value) (any, error) {
	op := step.text("op")
	switch {
	case strings.HasPrefix(op, "exec_"):
		return s.executorStep(step)
	case strings.Contains(op, "monitor"):
		return s.monitorStep(step)
	case strings.Contains(op, "manager"):
		return s.managerStep(step)
	case strings.Contains(op, "module"):
		return s.moduleStep(step)
	case strings.Contains(op, "metric"):
		return s.metricStep(step)
	}
	switch op {
	case "symbol_info":
		symbol := s.symbol(step)
		return found{
			"arguments": ok(symbol.Arguments()), "aux": ok(symbol.AuxiliaryStates()), "outputs": ok(symbol.Outputs()),
			"num_nodes": ok(symbol.NumNodes()),
		}, nil
	case "split_slices":
		slices, err := cohort.SplitSlices(int(step.number("batch_size", 0)), reals(step.list("workload")), roundingOf(step))
		return found{"slices": slices}, err
	case "create_group":
		return s.createGroup(step)
	case "create_sgd":
		return s.createSGD(step)
	case "sgd_update":
		rule := s.rules[step.text("optimizer")]
		if step.has("learning_rate") {
			done(rule.Set("learning_rate", step.number("learning_rate", 0)))
		}
		if step.has("manager") {
			return nil, s.managers[step.text("manager")].Update(rule.Optimizer, rule.mode)
		}
		return nil, s.group(step).Update(rule.Optimizer, rule.mode)
	}
	return s.groupStep(step, s.group(step))
}

func roundingOf(step value) cohort.Rounding {
	if step.text("rounding") == "half_up" {
		return cohort.RoundingHalfUp
	}
	return cohort.RoundingHalfEven
}

func (s *scenario) createGroup(step value) (any, error) {
	options, err := requests(step)
	if err != nil {
		return nil, err
	}
	options = append(options, cohort.WithWorkload(reals(step.list("workload"))...), cohort.WithRounding(roundingOf(step)),
		cohort.WithParams(texts(step.list("param_names"))...), cohort.WithFixedParams(texts(step.list("fixed_param_names"))...),
		cohort.WithStates(texts(step.list("state_names"))...))
	forTraining := step.truth("for_training", true)
	if !forTraining {
		options = append(options, cohort.ForInference())
	}
	if step.truth("inputs_need_grad", false) {
		options = append(options, cohort.InputsNeedGrad())
	}
	if step.has("shared_group") {
		options = append(options, cohort.WithSharedGroup(s.groups[step.text("shared_group")].Group))
	}
	group, err := cohort.NewGroup(s.symbol(step), contexts(step), descs(step.list("data_shapes")), descs(step.list("label_shapes")), options...)
	if err != nil {
		return nil, err
	}
	s.groups[step.text("group")] = &bound{group, forTraining}
	var shapes []map[string][]int
	types, reqs := map[string]string{}, map[string]string{}
	for device := 0; device < group.NumContexts(); device++ {
		executor := ok(group.Executor(device))
		of := map[string][]int{}
		for name, array := range ok(executor.Args()) {
			of[name], types[name] = ok(array.Shape()), ok(array.Dtype()).String()
		}
		shapes = append(shapes, of)
		for name, req := range ok(executor.GradReqs()) {
			reqs[name] = req.String()
		}
	}
	made := found{
		"batch_size": ok(group.BatchSize()), "data_axes": ok(group.Axes(cohort.GroupListData)), "label_axes": nil,
		"output_axes": ok(group.Axes(cohort.GroupListOutputs)), "grad_req": reqs, "arg_shapes": shapes, "arg_types": types,
	}
	if ok(group.BatchSize()) > 0 {
		made["slices"] = ok(group.Slices())
	}
	if axes := ok(group.Axes(cohort.GroupListLabels)); len(axes) > 0 {
		made["label_axes"] = axes
	}
	return made, nil
}

func (s *scenario) createSGD(step value) (any, error) {
	with := cohort.Attrs{}
	for _, key := range []string{"learning_rate", "momentum", "wd", "rescale_grad", "clip_gradient"} {
		if step.has(key) {
			with[key] = step[key]
		}
	}
	sgd := ok(cohort.NewOptimizer("sgd", with))
	done(sgd.UseSymbol(s.symbol(step)))
	mode := map[string]cohort.UpdateMode{
		"on_store": cohort.UpdateModeOnStore, "per_device": cohort.UpdateModePerDevice, "no_store": cohort.UpdateModeNoStore,
	}[step.text("mode")]
	group := s.group(step)
	if mode == cohort.UpdateModeOnStore { // starts from device 0's parameters, and copies them to all
		ok(group.AssignParams(ok(group.DeviceParams(0)), nil, true, false))
	}
	s.rules[step.text("optimizer")] = rule{sgd, mode}
	lrs, wds := map[string]any{}, map[string]any{}
	for _, name := range ok(group.Names(cohort.GroupListParams)) {
		lr, wd, err := sgd.Mult(name)
		done(err)
		lrs[name], wds[name] = lr, nil
		if step.number("wd", 0) != 0 {
			wds[name] = wd
		}
	}
	return found{"lr_mult": lrs, "wd_mult": wds}, nil
}

func (s *scenario) groupStep(step value, group *bound) (any, error) {
	data, label := descs(step.list("data_shapes")), descs(step.list("label_shapes"))
	switch op := step.text("op"); op {
	case "bind":
		return nil, group.Bind(data, label, false)
	case "reshape":
		if err := group.Reshape(data, label); err != nil {
			return nil, err
		}
		made := found{"batch_size": ok(group.BatchSize())}
		if ok(group.BatchSize()) > 0 {
			made["slices"] = ok(group.Slices())
		}
		return made, nil
	case "forward":
		isTrain := step.truth("is_train", group.forTraining)
		return nil, group.Forward(s.arrays(step.list("data")), s.arrays(step.list("label")), isTrain)
	case "forward_presliced":
		isTrain := step.truth("is_train", group.forTraining)
		return nil, group.ForwardPresliced(s.lists(step.list("device_data")), s.lists(step.list("device_label")), isTrain)
	case "backward":
		return nil, group.Backward(s.arrays(step.list("head_grads"))...)
	case "output_shapes":
		var shapes [][]any
		descs, err := group.OutputShapes()
		for _, desc := range descs {
			shapes = append(shapes, []any{desc.Name, desc.Shape})
		}
		return found{"shapes": shapes}, err
	case "get_outputs":
		return s.outputs(step, group)
	case "get_input_grads":
		grads, err := group.InputGrads()
		if err != nil || step.truth("merge", true) {
			return found{"values": grads}, err
		}
		return perDevice(group, cohort.GroupListInputGrads)
	case "get_states":
		if step.truth("merge", true) {
			states, err := group.Merged(cohort.GroupListStates)
			return found{"values": states}, err
		}
		return perDevice(group, cohort.GroupListStates)
	case "set_states":
		return nil, s.setStates(step, group)
	case "set_params":
		_, err := group.AssignParams(s.named(step.at("arg")), s.named(step.at("aux")), true, step.truth("allow_extra", false))
		return nil, err
	case "set_device_params":
		executor := ok(group.Executor(int(step.number("device", 0))))
		return nil, executor.CopyParamsFrom(s.named(step.at("arg")), s.named(step.at("aux")), false)
	case "get_params":
		args, aux := targets(step, group)
		return found{"arg": args, "aux": aux}, group.ParamsInto(args, aux)
	case "param_arrays":
		return byNames(step, group, cohort.GroupListParams)
	case "param_grads":
		return byNames(step, group, cohort.GroupListGrads)
	case "aux_arrays":
		return byNames(step, group, cohort.GroupListAux)
	case "fill_grads":
		lists := []cohort.GroupList{cohort.GroupListGrads}
		if step.truth("inputs", false) {
			lists = append(lists, cohort.GroupListInputGrads)
		}
		for _, list := range lists {
			for device := 0; device < group.NumContexts(); device++ {
				for _, entry := range ok(group.OfDevice(list, device)) {
					if entry.Array != nil {
						done(entry.Array.Fill(step.number("value", 0)))
					}
				}
			}
		}
		return nil, nil
	default:
		panic("there is no step " + op)
	}
}

func perDevice(group *bound, list cohort.GroupList) (any, error) {
	var devices [][]cohort.NamedArray
	for device := 0; device < group.NumContexts(); device++ {
		of, err := group.OfDevice(list, device)
		if err != nil {
			return nil, err
		}
		devices = append(devices, of)
	}
	return found{"values": byEntry(devices)}, nil
}

func (s *scenario) outputs(step value, group *bound) (any, error) {
	var all []any
	if step.truth("merge", true) {
		for _, output := range ok(group.Outputs()) {
			all = append(all, output)
		}
	} else {
		for _, entry := range ok(perDevice(group, cohort.GroupListOutputs)).(found)["values"].([][]*cohort.NDArray) {
			all = append(all, entry)
		}
	}
	begin, end := int(step.number("begin", 0)), int(step.number("end", float64(len(all))))
	if end > len(all) {
		_, err := group.MergedAt(cohort.GroupListOutputs, end-1)
		return nil, err
	}
	return found{"values": all[begin:end]}, nil
}

func (s *scenario) setStates(step value, group *bound) error {
	states := s.lists(step.list("states"))
	for _, index := range step.list("from_outputs") {
		var entry []*cohort.NDArray
		for device := 0; device < group.NumContexts(); device++ {
			entry = append(entry, ok(group.OfDevice(cohort.GroupListOutputs, device))[int(index.(float64))].Array)
		}
		states = append(states, entry)
	}
	if !step.has("value") {
		return group.SetStates(states)
	}
	if states != nil { // both at once cannot be expressed here: they are two methods
		return cohort.ErrInvalidArgument
	}
	return group.FillStates(step.number("value", 0))
}

// targets are zeros as targets for the means, of the type that the step asks for; only of the names it gives.
func targets(step value, group *bound) (args, aux cohort.Params) {
	zeros := func(list cohort.GroupList) cohort.Params {
		made := cohort.Params{}
		for _, entry := range ok(group.OfDevice(list, 0)) {
			wanted := !step.has("targets")
			for _, name := range texts(step.list("targets")) {
				wanted = wanted || name == entry.Name
			}
			if wanted {
				dtype := ok(entry.Array.Dtype())
				if name := step.at("target_types").text(entry.Name); name != "" {
					dtype = dtypeNamed(name)
				}
				made[entry.Name] = ok(cohort.Zeros(ok(entry.Array.Shape()), dtype, cohort.CPU(0)))
			}
		}
		return made
	}
	return zeros(cohort.GroupListParams), zeros(cohort.GroupListAux)
}

func byNames(step value, group *bound, list cohort.GroupList) (any, error) {
	entries := map[string][]*cohort.NDArray{}
	for device := 0; device < group.NumContexts(); device++ {
		of, err := group.OfDevice(list, device)
		if err != nil {
			return nil, err
		}
		for _, entry := range of {
			entries[entry.Name] = append(entries[entry.Name], entry.Array)
		}
	}
	if !step.has("names") {
		return found{"values": entries}, nil
	}
	some := map[string][]*cohort.NDArray{}
	for _, name := range texts(step.list("names")) {
		some[name] = entries[name]
	}
	return found{"values": some}, nil
}

// ---- metrics

func metricOf(step value) *cohort.Metric {
	with, names := cohort.Attrs{}, map[string][]string{}
	for key, given := range step.at("args") {
		switch one := given.(type) {
		case nil:
		case string:
			if strings.HasSuffix(key, "_names") {
				names[key] = []string{one}
			} else {
				with[key] = one
			}
		case []any:
			if strings.HasSuffix(key, "_names") {
				names[key] = texts(one)
			} else {
				with[key] = one
			}
		default:
			with[key] = one
		}
	}
	metric := ok(cohort.NewMetric(step.text("kind"), with))
	if len(names) > 0 {
		done(metric.SetNames(names["label_names"], names["output_names"]))
	}
	for _, child := range step.list("children") {
		done(metric.Add(metricOf(child.(map[string]any))))
	}
	return metric
}

func figures(metric *cohort.Metric, global bool) any {
	values, err := metric.Values()
	if global {
		values, err = metric.GlobalValues()
	}
	pairs := [][]any{}
	for _, figure := range ok(values, err) {
		pairs = append(pairs, []any{figure.Name, figure.Value})
	}
	return found{"metric": pairs}
}

func (s *scenario) metricStep(step value) (any, error) {
	metric := s.metrics[step.text("metric")]
	var err error
	switch op := step.text("op"); {
	case op == "create_metric":
		s.metrics[step.text("metric")] = metricOf(step)
		return nil, nil
	case op == "reset_metric" && step.truth("local", false):
		return nil, metric.ResetLocal()
	case op == "reset_metric":
		return nil, metric.Reset()
	case op == "metric_update":
		err = metric.Update(s.arrays(step.list("labels")), s.arrays(step.list("preds")))
	case op == "update_metric" && step.truth("pre_sliced", false):
		err = s.group(step).UpdateMetricPresliced(metric, s.lists(step.list("labels")))
	case op == "update_metric":
		err = s.group(step).UpdateMetric(metric, s.arrays(step.list("labels"))...)
	}
	if err != nil {
		return nil, err
	}
	return figures(metric, step.truth("global", false)), nil
}

// ---- executors

// A watched executor has the names that its monitor saw.
type watched struct {
	*cohort.Executor
	names []string
}

func (s *scenario) keepExecutor(name string, executor *cohort.Executor, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	s.executors[name] = &watched{Executor: executor, names: []string{}}
	shapes := func(arrays cohort.Params) map[string][]int {
		found := map[string][]int{}
		for name, array := range arrays {
			found[name] = ok(array.Shape())
		}
		return found
	}
	args, grads, types, hasGrad := ok(executor.Args()), ok(executor.Grads()), map[string]string{}, []string{}
	for _, name := range ok(ok(executor.Symbol()).Arguments()) {
		types[name] = ok(args[name].Dtype()).String()
		if grads[name] != nil {
			hasGrad = append(hasGrad, name)
		}
	}
	outputs := [][]int{}
	for _, output := range ok(executor.Outputs()) {
		outputs = append(outputs, ok(output.Shape()))
	}
	return found{
		"arg_shapes": shapes(args), "arg_types": types, "has_grad": hasGrad, "aux_shapes": shapes(ok(executor.Aux())),
		"output_shapes": outputs,
	}, nil
}

func shapesOf(step value) map[string][]int {
	found := map[string][]int{}
	for name, shape := range step.at("shapes") {
		found[name] = ints(shape)
	}
	return found
}

func (s *scenario) copies(references value) cohort.Params {
	made := cohort.Params{}
	for name, array := range s.named(references) {
		made[name] = ok(array.Copy(cohort.CPU(0)))
	}
	return made
}

func (s *scenario) executorStep(step value) (any, error) {
	executor := s.executors[step.text("exec")]
	some := func(arrays cohort.Params, err error) (any, error) {
		names := texts(step.list("names"))
		if !step.has("names") {
			names = ok(ok(executor.Symbol()).Arguments())
			if step.text("op") == "exec_aux" {
				names = ok(ok(executor.Symbol()).AuxiliaryStates())
			}
		}
		chosen := cohort.Params{}
		for _, name := range names {
			chosen[name] = arrays[name]
		}
		return found{"values": chosen}, err
	}
	switch op := step.text("op"); op {
	case "exec_simple_bind":
		options, err := requests(step)
		if err != nil {
			return nil, err
		}
		types := map[string]cohort.Dtype{}
		for name := range step.at("types") {
			types[name] = dtypeNamed(step.at("types").text(name))
		}
		options = append(options, cohort.WithTypes(types))
		if step.has("shared_exec") {
			other := s.executors[step.text("shared_exec")].Executor
			options = append(options, cohort.WithSharedExecutor(other, texts(step.list("shared_arg_names"))...))
		}
		made, err := cohort.SimpleBind(s.symbol(step), cohort.CPU(0), shapesOf(step), options...)
		return s.keepExecutor(step.text("exec"), made, err)
	case "exec_bind":
		options, err := requests(step)
		if err != nil {
			return nil, err
		}
		args, grads, aux := s.copies(step.at("args")), s.copies(step.at("args_grad")), s.copies(step.at("aux"))
		made, err := cohort.Bind(s.symbol(step), cohort.CPU(0), args, grads, aux, options...)
		return s.keepExecutor(step.text("exec"), made, err)
	case "exec_reshape":
		made, err := executor.Reshape(shapesOf(step), step.truth("partial_shaping", false), step.truth("allow_up_sizing", false))
		return s.keepExecutor(step.text("as"), made, err)
	case "exec_set":
		for key, arrays := range map[string]cohort.Params{
			"arg": ok(executor.Args()), "grad": ok(executor.Grads()), "aux": ok(executor.Aux()),
		} {
			for name, array := range s.named(step.at(key)) {
				done(array.CopyTo(arrays[name]))
			}
		}
		return nil, nil
	case "exec_copy_params":
		return nil, executor.CopyParamsFrom(s.named(step.at("arg")), s.named(step.at("aux")), step.truth("allow_extra", false))
	case "exec_forward":
		if step.has("inputs") {
			if err := executor.SetInputs(s.named(step.at("inputs"))); err != nil {
				return nil, err
			}
		}
		if err := executor.Forward(step.truth("is_train", false)); err != nil {
			return nil, err
		}
		return found{"values": ok(executor.Outputs())}, nil
	case "exec_outputs":
		return found{"values": ok(executor.Outputs())}, nil
	case "exec_partial_forward":
		left, err := executor.PartialForward(step.truth("is_train", false), int(step.number("step", 0)))
		return found{"step_left": left}, err
	case "exec_backward":
		if given := step.at("head_grads"); given != nil {
			return nil, executor.BackwardNamed(s.named(given))
		}
		return nil, executor.Backward(s.arrays(step.list("head_grads"))...)
	case "exec_args":
		return some(executor.Args())
	case "exec_grads":
		return some(executor.Grads())
	case "exec_aux":
		return some(executor.Aux())
	case "exec_set_monitor":
		return nil, executor.SetMonitor(func(name string, _ *cohort.NDArray) error {
			executor.names = append(executor.names, name)
			return nil
		}, step.truth("monitor_all", false))
	case "exec_monitor_names":
		names := executor.names
		executor.names = []string{}
		return found{"names": names}, nil
	default:
		panic("there is no step " + op)
	}
}

// ---- monitors

func (s *scenario) monitorStep(step value) (any, error) {
	name := step.text("monitor")
	switch step.text("op") {
	case "install_monitor":
		options := []cohort.MonitorOption{cohort.WithPattern(step.text("pattern"))}
		if step.truth("sort", false) {
			options = append(options, cohort.Sorted())
		}
		s.monitors[name] = ok(cohort.NewMonitor(int(step.number("interval", 1)), options...))
		if step.has("exec") {
			return nil, s.monitors[name].Install(s.executors[step.text("exec")].Executor)
		}
		if step.has("manager") {
			return nil, s.monitors[name].Install(s.managers[step.text("manager")])
		}
		return nil, s.monitors[name].Install(s.group(step).Group)
	case "monitor_tic":
		return nil, s.monitors[name].Tic()
	}
	report, err := s.monitors[name].Toc()
	names, entries := [][]any{}, [][]any{}
	for _, entry := range report {
		text, _, _ := strings.Cut(entry.Text, "\t")
		names = append(names, []any{entry.Step, entry.Name})
		entries = append(entries, []any{entry.Step, entry.Name, text})
	}
	return found{"names": names, "entries": entries}, err
}

// ---- managers

// keyOf is a key in a scenario: text or a number.
func keyOf(key any) string {
	if key == nil {
		return ""
	}
	return fmt.Sprint(key)
}

func (s *scenario) createManager(step value) (any, error) {
	symbol := s.symbol(step)
	options := []cohort.Option{
		cohort.WithWorkload(reals(step.list("workload"))...), cohort.WithParams(texts(step.list("param_names"))...),
	}
	if buckets := step.at("buckets"); buckets != nil {
		options = append(options, cohort.WithBuckets(keyOf(step["default_bucket_key"]), func(key string) (*cohort.Symbol, error) {
			if !buckets.has(key) {
				return nil, &cohort.Error{Class: cohort.ErrorClassName, Message: "there is no bucket " + key, Subject: key}
			}
			return s.symbolOf(buckets.text(key)), nil
		}))
	}
	data, label := descs(step.list("data_shapes")), descs(step.list("label_shapes"))
	manager, err := cohort.NewManager(symbol, contexts(step), int(step.number("batch_size", 0)), data, label, options...)
	if err != nil {
		return nil, err
	}
	s.managers[step.text("manager")] = manager
	return found{"slices": ok(manager.Slices())}, nil
}

func (s *scenario) managerStep(step value) (any, error) {
	manager := s.managers[step.text("manager")]
	switch op := step.text("op"); op {
	case "create_manager":
		return s.createManager(step)
	case "manager_set_params":
		return nil, manager.SetParams(s.named(step.at("arg")), s.named(step.at("aux")))
	case "manager_load_data_batch":
		return nil, manager.Load(&cohort.Batch{
			Data: s.arrays(step.list("data")), Label: s.arrays(step.list("label")), BucketKey: keyOf(step["bucket_key"]),
			DataDescs: descs(step.list("data_shapes")), LabelDescs: descs(step.list("label_shapes")),
		})
	case "manager_forward":
		return nil, manager.Forward(step.truth("is_train", false))
	case "manager_backward":
		return nil, manager.Backward()
	case "manager_outputs":
		return perDevice(&bound{ok(manager.CurrentGroup()), true}, cohort.GroupListOutputs)
	case "manager_update_metric":
		metric := s.metrics[step.text("metric")]
		var err error
		if step.truth("pre_sliced", false) {
			err = manager.UpdateMetricPresliced(metric, s.lists(step.list("labels")))
		} else {
			err = manager.UpdateMetric(metric, s.arrays(step.list("labels"))...)
		}
		if err != nil {
			return nil, err
		}
		return figures(metric, false), nil
	case "manager_copy_to":
		args, aux := targets(step, s.group(step))
		return found{"arg": args, "aux": aux}, manager.CopyTo(args, aux)
	default:
		panic("there is no step " + op)
	}
}

// ---- modules: a network with one group, which follows the shapes of its batches

type module struct {
	symbol      *cohort.Symbol
	contexts    []cohort.Context
	workload    []float64
	params      []string
	data, label []cohort.Desc
	bound       *bound
	sgd         *cohort.Optimizer
	isSet       bool
}

func (m *module) bind(step value) error {
	if m.bound != nil && !step.truth("force_rebind", false) {
		return nil
	}
	options := []cohort.Option{
		cohort.WithWorkload(m.workload...), cohort.WithParams(m.params...), cohort.WithRounding(cohort.RoundingHalfEven),
	}
	forTraining := step.truth("for_training", true)
	if !forTraining {
		options = append(options, cohort.ForInference())
	}
	data, label := descs(step.list("data_shapes")), descs(step.list("label_shapes"))
	group, err := cohort.NewGroup(m.symbol, m.contexts, data, label, options...)
	if err != nil {
		return err
	}
	if m.isSet {
		args, aux, err := m.bound.Params()
		done(err)
		done(group.SetParams(args, aux))
	}
	m.bound, m.data, m.label = &bound{group, forTraining}, data, label
	return nil
}

// follow reshapes the group to the shapes of the given arrays.
func (m *module) follow(data, label []*cohort.NDArray) error {
	like := func(descs []cohort.Desc, arrays []*cohort.NDArray) (made []cohort.Desc, same bool) {
		same = true
		for i, array := range arrays {
			desc := descs[i]
			desc.Shape = ok(array.Shape())
			same = same && fmt.Sprint(desc.Shape) == fmt.Sprint(descs[i].Shape)
			made = append(made, desc)
		}
		return made, same
	}
	newData, sameData := like(m.data, data)
	newLabel, sameLabel := like(m.label, label)
	if sameData && sameLabel {
		return nil
	}
	m.data, m.label = newData, newLabel
	return m.bound.Reshape(newData, newLabel)
}

func (s *scenario) moduleStep(step value) (any, error) {
	m := s.modules[step.text("module")]
	switch op := step.text("op"); op {
	case "create_module":
		inputs := map[string]bool{}
		for _, name := range append(texts(step.list("data_names")), texts(step.list("label_names"))...) {
			inputs[name] = true
		}
		m = &module{symbol: s.symbol(step), contexts: contexts(step), workload: reals(step.list("workload"))}
		for _, name := range ok(m.symbol.Arguments()) {
			if !inputs[name] {
				m.params = append(m.params, name)
			}
		}
		s.modules[step.text("module")] = m
		return found{"param_names": m.params}, nil
	case "module_bind":
		if err := m.bind(step); err != nil {
			return nil, err
		}
		return found{"slices": ok(m.bound.Slices())}, nil
	case "module_set_params":
		missing, extra := step.truth("allow_missing", false), step.truth("allow_extra", false)
		_, err := m.bound.AssignParams(s.named(step.at("arg")), s.named(step.at("aux")), missing, extra)
		m.isSet = m.isSet || err == nil
		return nil, err
	case "module_get_params":
		args, aux, err := m.bound.Params()
		return found{"arg": args, "aux": aux}, err
	case "module_init_sgd":
		rescale := 1 / float64(ok(m.bound.BatchSize()))
		m.sgd = ok(cohort.NewOptimizer("sgd", cohort.Attrs{
			"learning_rate": step["learning_rate"], "momentum": step["momentum"], "wd": step["wd"], "rescale_grad": rescale,
		}))
		return found{"rescale_grad": rescale, "update_on_kvstore": len(m.contexts) > 1}, m.sgd.UseSymbol(m.symbol)
	case "module_forward":
		data, label := s.arrays(step.list("data")), s.arrays(step.list("label"))
		if err := m.follow(data, label); err != nil {
			return nil, err
		}
		if err := m.bound.Forward(data, label, step.truth("is_train", m.bound.forTraining)); err != nil {
			return nil, err
		}
		return found{"slices": ok(m.bound.Slices())}, nil
	case "module_backward":
		return nil, m.bound.Backward()
	case "module_update":
		return nil, m.bound.Update(m.sgd, cohort.UpdateModeOnStore)
	case "module_get_outputs":
		return s.outputs(step, m.bound)
	case "module_update_metric":
		metric := s.metrics[step.text("metric")]
		if err := m.bound.UpdateMetric(metric, s.arrays(step.list("labels"))...); err != nil {
			return nil, err
		}
		return figures(metric, false), nil
	default:
		panic("there is no step " + op)
	}
}
