// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import "unsafe"

// An Option is a setting of a group, a manager or an executor that few callers change. An option that does not apply is an error.
type Option func(s *settings)

// The values of options. Zero in any field means its default.
type settings struct {
	named map[string]bool

	workload       []float64
	rounding       Rounding
	slices         [][2]int
	params         []string
	fixed          []string
	states         []string
	gradReq        *GradReq
	gradReqs       map[string]GradReq
	gradReqList    []GradReq
	forInference   bool
	inputsNeedGrad bool
	sharedGroup    *Group
	sharedExecutor *Executor
	sharedArgs     []string
	types          map[string]Dtype
	ctxGroups      []ctxGroup
	compute        Compute
	backwardOnce   bool
	recompute      bool
	keepDeviceAux  bool
	strictNames    bool
	finite         bool
	threads        int
	seed           uint64
	defaultBucket  string
	buckets        map[string]*Symbol
	bucketSymbols  bucketFunc
	given          *[2]Params
	context        *Context
	training       bool
	into           []*NDArray
}

func settingsOf(what string, options []Option, allowed ...string) (*settings, error) {
	made := &settings{named: map[string]bool{}}
	for _, option := range options {
		if option != nil {
			option(made)
		}
	}
	for _, name := range allowed {
		delete(made.named, name)
	}
	for _, name := range sortedKeys(made.named) {
		return nil, newError(ErrorClassInvalidArgument, name, "%s: it takes no %s", what, name)
	}
	return made, nil
}

func option(name string, set func(s *settings)) Option {
	return func(s *settings) {
		s.named[name] = true
		set(s)
	}
}

// WithWorkload sets the share of each device; the default is equal shares.
func WithWorkload(shares ...float64) Option {
	return option("WithWorkload", func(s *settings) { s.workload = shares })
}

// WithRounding sets how shares of a batch are rounded to whole samples.
func WithRounding(rounding Rounding) Option {
	return option("WithRounding", func(s *settings) { s.rounding = rounding })
}

// WithSlices sets the rows of each device, begin and end, instead of shares.
func WithSlices(rows ...[2]int) Option {
	return option("WithSlices", func(s *settings) { s.slices = rows })
}

// WithParams names the parameters; the default is all arguments but data, labels and states.
func WithParams(names ...string) Option {
	return option("WithParams", func(s *settings) { s.params = append([]string{}, names...) })
}

// WithFixedParams names parameters without gradient.
func WithFixedParams(names ...string) Option {
	return option("WithFixedParams", func(s *settings) { s.fixed = names })
}

// WithStates names arguments that are states.
func WithStates(names ...string) Option {
	return option("WithStates", func(s *settings) { s.states = names })
}

// WithGradReq sets the request for all gradients; by default they are written.
func WithGradReq(req GradReq) Option {
	return option("WithGradReq", func(s *settings) { s.gradReq = &req })
}

// WithGradReqs sets the gradient requests of some arguments by name; the others have no gradient.
func WithGradReqs(reqs map[string]GradReq) Option {
	return option("WithGradReqs", func(s *settings) { s.gradReqs = reqs })
}

// WithGradReqList sets the gradient request of each argument in order.
func WithGradReqList(reqs ...GradReq) Option {
	return option("WithGradReqList", func(s *settings) { s.gradReqList = append([]GradReq{}, reqs...) })
}

// ForInference makes a group without gradients.
func ForInference() Option {
	return option("ForInference", func(s *settings) { s.forInference = true })
}

// StrictNames makes names of parameters, gradient requests and input types errors that a group would ignore with a warning.
func StrictNames() Option {
	return option("StrictNames", func(s *settings) { s.strictNames = true })
}

// StopIfNotFinite lets a pass of a group fail at the first output or gradient with an infinity or a NaN; the error names it.
func StopIfNotFinite() Option {
	return option("StopIfNotFinite", func(s *settings) { s.finite = true })
}

// InputsNeedGrad adds gradients of the data.
func InputsNeedGrad() Option {
	return option("InputsNeedGrad", func(s *settings) { s.inputsNeedGrad = true })
}

// WithSharedGroup names a group of another bucket to share memory with: parameters of the same name are the same arrays. From then on
// goroutines that use them wait for each other.
func WithSharedGroup(group *Group) Option {
	return option("WithSharedGroup", func(s *settings) { s.sharedGroup = group })
}

// WithSharedExecutor names an executor to share memory with, and the arguments whose arrays are shared.
func WithSharedExecutor(executor *Executor, arguments ...string) Option {
	return option("WithSharedExecutor", func(s *settings) { s.sharedExecutor, s.sharedArgs = executor, arguments })
}

// WithTypes sets types of arguments by name.
func WithTypes(types map[string]Dtype) Option {
	return option("WithTypes", func(s *settings) { s.types = types })
}

// WithCtxGroup sets the context of the nodes whose attribute __ctx_group__ is this name: one context, or in a group one per device. If
// there is any such option, every name that occurs needs one.
func WithCtxGroup(name string, contexts ...Context) Option {
	return option("WithCtxGroup", func(s *settings) { s.ctxGroups = append(s.ctxGroups, ctxGroup{name, contexts}) })
}

type ctxGroup struct {
	name     string
	contexts []Context
}

// WithThreads sets the number of threads of each CPU context.
func WithThreads(num int) Option { return option("WithThreads", func(s *settings) { s.threads = num }) }

// WithSeed sets the seed of random operators.
func WithSeed(seed uint64) Option { return option("WithSeed", func(s *settings) { s.seed = seed }) }

// WithBuckets sets the key of a manager's main symbol, and a function that is called for the symbols of new keys.
func WithBuckets(defaultKey string, symbols func(key string) (*Symbol, error)) Option {
	return option("WithBuckets", func(s *settings) { s.defaultBucket, s.bucketSymbols = defaultKey, symbols })
}

// WithBucketSymbols sets the key of a manager's main symbol, and the symbols of other keys.
func WithBucketSymbols(defaultKey string, symbols map[string]*Symbol) Option {
	return option("WithBucketSymbols", func(s *settings) { s.defaultBucket, s.buckets = defaultKey, symbols })
}

// WithGivenParams lets a group that is created ForInference use these parameters and auxiliary states directly, without a copy, on all
// its devices together. Those on other devices or of other types are copied, and those that are not named are zeros.
func WithGivenParams(args, aux Params) Option {
	return option("WithGivenParams", func(s *settings) { s.given = &[2]Params{args, aux} })
}

// OnContext sets the context of an operator without inputs.
func OnContext(context Context) Option {
	return option("OnContext", func(s *settings) { s.context = &context })
}

// Training applies an operator in training mode, which affects Dropout and BatchNorm.
func Training() Option {
	return option("Training", func(s *settings) { s.training = true })
}

// Into sets the arrays that an operator writes its outputs to.
func Into(outputs ...*NDArray) Option {
	return option("Into", func(s *settings) { s.into = append([]*NDArray{}, outputs...) })
}

// ParseGradReq reads "null", "write" or "add".
func ParseGradReq(word string) (GradReq, error) {
	for _, req := range []GradReq{GradReqNull, GradReqWrite, GradReqAdd} {
		if req.String() == word {
			return req, nil
		}
	}
	return GradReqNull, newError(ErrorClassInvalidArgument, "grad_req", "grad_req: expected null, write or add, found %q", word)
}

func (s *settings) threadsIn(c *scratch) C.int32_t {
	if s.threads < 0 || s.threads > 1<<15 {
		c.fail(newError(ErrorClassInvalidArgument, "threads", "threads: expected 0 to %d, found %d", 1<<15, s.threads))
	}
	return C.int32_t(clamp(s.threads))
}

// requests returns the three forms of grad_req: one word, or a list with the names that it is for.
func (s *settings) requests(c *scratch) (word *C.char, list, names **C.char, num C.size_t) {
	switch {
	case s.gradReqList != nil:
		words := make([]string, len(s.gradReqList))
		for i, req := range s.gradReqList {
			words[i] = req.String()
		}
		return nil, c.texts(words, "grad_req"), nil, C.size_t(len(words))
	case s.gradReqs != nil:
		keys := sortedKeys(s.gradReqs)
		words := make([]string, len(keys))
		for i, key := range keys {
			words[i] = s.gradReqs[key].String()
		}
		return nil, c.texts(words, "grad_req"), c.texts(keys, "grad_req"), C.size_t(len(words))
	case s.gradReq != nil:
		return c.text(s.gradReq.String(), "grad_req"), nil, nil, 0
	}
	return c.text(GradReqWrite.String(), "grad_req"), nil, nil, 0
}

func (s *settings) group(c *scratch, numContexts int) *C.cohort_group_options {
	made := (*C.cohort_group_options)(c.bytes(C.sizeof_cohort_group_options))
	C.cohort_group_options_init(made, C.sizeof_cohort_group_options)
	made.workload, made.num_workloads = c.reals(s.workload), C.size_t(len(s.workload))
	made.rounding = C.cohort_rounding(s.rounding)
	made.slices = listIn(c, flatRows(s.slices), func(row int) C.int64_t { return C.int64_t(row) })
	made.num_slices = C.size_t(len(s.slices))
	made.inputs_need_grad = truth(s.inputsNeedGrad)
	made.fixed_param_names, made.num_fixed_param_names = c.texts(s.fixed, "fixed params"), C.size_t(len(s.fixed))
	made.grad_req, made.grad_req_list, made.grad_req_names, made.num_grad_reqs = s.requests(c)
	made.state_names, made.num_state_names = c.texts(s.states, "states"), C.size_t(len(s.states))
	made.ctx_group_names, made.ctx_group_contexts, made.num_ctx_groups, made.contexts_per_ctx_group = s.placed(c, numContexts)
	if s.sharedGroup != nil {
		made.shared_group = (*C.cohort_group)(c.pin(&s.sharedGroup.handle, "shared group"))
	}
	made.num_threads, made.seed = s.threadsIn(c), C.uint64_t(s.seed)
	made.compute_dtype, made.tf32, made.backward_once = C.cohort_dtype(s.compute.Dtype), truth(s.compute.TF32), truth(s.backwardOnce)
	made.recompute = truth(s.recompute)
	made.keep_device_aux = truth(s.keepDeviceAux)
	made.float32_names, made.num_float32_names = c.texts(s.compute.Float32Names, "float32 names"), C.size_t(len(s.compute.Float32Names))
	made.narrow_names, made.num_narrow_names = c.texts(s.compute.NarrowNames, "narrow names"), C.size_t(len(s.compute.NarrowNames))
	made.calibration = s.calibration(c)
	made.gradient_sum_dtype = C.cohort_dtype(s.compute.GradientSum)
	made.loss_scale, made.loss_scale_window = C.double(s.compute.LossScale), s.lossScaleWindow(c)
	made.strict_names, made.stop_if_not_finite = truth(s.strictNames), truth(s.finite)
	if s.given != nil {
		made.arg_params, made.aux_params = c.arrays(s.given[0], "args"), c.arrays(s.given[1], "aux")
	}
	return made
}

// placed returns names and contexts of the context groups; all have as many contexts as the first, at most num.
func (s *settings) placed(c *scratch, num int) (names **C.char, contexts *C.cohort_context, groups, each C.size_t) {
	var words []string
	var flat []Context
	for _, one := range s.ctxGroups {
		if first := len(s.ctxGroups[0].contexts); len(one.contexts) != first || first == 0 || first > 1 && first != num {
			c.fail(newError(ErrorClassInvalidArgument, one.name, "ctx group '%s': expected 1 context or %d, as many for each group, found %d",
				one.name, num, len(one.contexts)))
		}
		words, flat = append(words, one.name), append(flat, one.contexts...)
	}
	if len(words) > 0 {
		each = C.size_t(len(s.ctxGroups[0].contexts))
	}
	return c.texts(words, "ctx group"), c.contexts(flat), C.size_t(len(words)), each
}

func flatRows(rows [][2]int) []int {
	var flat []int
	for _, row := range rows {
		flat = append(flat, row[0], row[1])
	}
	return flat
}

func (s *settings) manager(c *scratch, symbols unsafe.Pointer) *C.cohort_manager_options {
	made := (*C.cohort_manager_options)(c.bytes(C.sizeof_cohort_manager_options))
	C.cohort_manager_options_init(made, C.sizeof_cohort_manager_options)
	made.workload, made.num_workloads = c.reals(s.workload), C.size_t(len(s.workload))
	made.default_bucket_key = c.textOrNull(s.defaultBucket, "default bucket")
	keys := sortedKeys(s.buckets)
	made.bucket_keys = c.texts(keys, "bucket")
	made.bucket_symbols, made.num_buckets = c.listSymbol(inOrder(s.buckets, keys), false, "bucket")
	if symbols != nil {
		made.bucket_symbol, made.bucket_symbol_user_data = bucketCallback(), symbols
	}
	if s.compute.Calibration != nil {
		c.fail(newError(ErrorClassInvalidArgument, "calibration", "compute: a manager takes no Calibration"))
	}
	made.num_threads, made.seed = s.threadsIn(c), C.uint64_t(s.seed)
	made.state_names, made.num_state_names = c.texts(s.states, "states"), C.size_t(len(s.states))
	made.compute_dtype, made.tf32, made.backward_once = C.cohort_dtype(s.compute.Dtype), truth(s.compute.TF32), truth(s.backwardOnce)
	made.recompute = truth(s.recompute)
	made.keep_device_aux = truth(s.keepDeviceAux)
	made.float32_names, made.num_float32_names = c.texts(s.compute.Float32Names, "float32 names"), C.size_t(len(s.compute.Float32Names))
	made.narrow_names, made.num_narrow_names = c.texts(s.compute.NarrowNames, "narrow names"), C.size_t(len(s.compute.NarrowNames))
	made.gradient_sum_dtype = C.cohort_dtype(s.compute.GradientSum)
	made.loss_scale, made.loss_scale_window = C.double(s.compute.LossScale), s.lossScaleWindow(c)
	return made
}

func inOrder[T any](from map[string]T, keys []string) []T {
	var found []T
	for _, key := range keys {
		found = append(found, from[key])
	}
	return found
}

func (s *settings) executor(c *scratch) *C.cohort_executor_options {
	made := (*C.cohort_executor_options)(c.bytes(C.sizeof_cohort_executor_options))
	C.cohort_executor_options_init(made, C.sizeof_cohort_executor_options)
	made.ctx_group_names, made.ctx_group_contexts, made.num_ctx_groups, _ = s.placed(c, 1)
	if s.sharedExecutor != nil {
		made.shared_executor = (*C.cohort_executor)(c.pin(&s.sharedExecutor.handle, "shared executor"))
	}
	made.num_threads, made.seed = s.threadsIn(c), C.uint64_t(s.seed)
	if p := s.compute; p.GradientSum != DtypeFloat32 || p.LossScale != 0 || p.LossScaleWindow != 0 {
		c.fail(newError(ErrorClassInvalidArgument, "compute", "compute: an executor takes no GradientSum, LossScale and LossScaleWindow"))
	}
	made.calibration = s.calibration(c)
	made.compute_dtype, made.tf32, made.backward_once = C.cohort_dtype(s.compute.Dtype), truth(s.compute.TF32), truth(s.backwardOnce)
	made.recompute = truth(s.recompute)
	made.float32_names, made.num_float32_names = c.texts(s.compute.Float32Names, "float32 names"), C.size_t(len(s.compute.Float32Names))
	made.narrow_names, made.num_narrow_names = c.texts(s.compute.NarrowNames, "narrow names"), C.size_t(len(s.compute.NarrowNames))
	return made
}
