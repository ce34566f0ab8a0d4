// SPDX-License-Identifier: Apache-2.0
// Loops and branches (_foreach, _while_loop, _cond). The sub-graphs run on the thread of the step, one iteration
// after the other. Each iteration keeps what its backward step needs in an arena of its own, so a loop that is
// trained has as many arenas as its largest number of iterations.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/dtype_cast.hpp"
#include "base/random.hpp"
#include "base/small_array.hpp"
#include "device/subprogram.hpp"
#include "kernels/backend.hpp"
#include "op/checked_length.hpp"
#include "op/control_flow.hpp"

namespace cohort {
namespace {

using Gradient = Subprogram::Gradient;
using Pointers = SmallArray<void *, 24>;

// Assigns offsets in one block of memory.
class ScratchLayout {
 public:
  size_t book(size_t bytes, size_t times = 1) {
    constexpr size_t kAlignment = 64;
    const size_t offset = bytes_;
    const int64_t stride = checked_times(int64_t((bytes + kAlignment - 1) / kAlignment), kAlignment);
    const int64_t all = checked_times(stride, int64_t(times));
    if (__builtin_add_overflow(bytes_, size_t(all), &bytes_))
      throw Error(Code::kOutOfMemory, "too many passes to keep");
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

void *at(void *memory, size_t offset) { return static_cast<char *>(memory) + offset; }

void copy(const Lane &lane, void *to, const void *from, size_t bytes) {
  if (to) copy_bytes(lane, to, from, bytes);
}

void clear(const Lane &lane, void *to, size_t bytes) {
  if (to) zero_bytes(lane, to, bytes);
}

bool is_set(const Lane &lane, const void *scalar, Dtype dtype) {
  return dispatch(dtype, [&](auto zero) {
    auto value = zero;
    read_back(lane, &value, scalar, sizeof value);
    return cast_element<bool>(value);
  });
}

// Stores in memory of the device how many iterations a loop ran, or which branch was taken, for the backward step.
// Memory that no forward step has written may hold anything.
void note_number(const Lane &lane, void *to, int64_t number) { write_through(lane, to, &number, sizeof number); }
int64_t noted_number(const Lane &lane, const void *from) {
  int64_t number = 0;
  read_back(lane, &number, from, sizeof number);
  return number;
}

TensorSpec row_of(const TensorSpec &spec) {
  TensorSpec row = spec;
  row.shape = Shape(spec.shape.begin() + 1, spec.shape.end());
  return row;
}

// Random streams of a sub-graph, derived from that of the node: each has a seed of its own, and the node's number of
// draws. When this is destroyed, the node's stream has advanced as far as the furthest of them.
class SubgraphStreams {
 public:
  SubgraphStreams(const Subprogram &program, size_t subgraph, RandomStream *outside)
      : outside_(outside), streams_(program.num_streams()) {
    for (size_t n = 0; n < streams_.size(); ++n) {
      streams_[n] = {stream_seed(outside->seed, n, subgraph + 1), outside->draws};
    }
  }
  ~SubgraphStreams() {
    for (const RandomStream &stream : streams_) outside_->draws = std::max(outside_->draws, stream.draws);
  }
  SubgraphStreams(const SubgraphStreams &) = delete;
  SubgraphStreams &operator=(const SubgraphStreams &) = delete;
  RandomStream *data() { return streams_.size() ? streams_.data() : nullptr; }

 private:
  RandomStream *const outside_;
  SmallArray<RandomStream, 16> streams_;
};

// A compiled sub-graph, and the offset of its constants in the step's scratch memory.
struct SubgraphPart {
  size_t index = 0;
  std::unique_ptr<Subprogram> program;
  size_t constants_at = 0;

  SubgraphPart() = default;
  SubgraphPart(const StepSpec &spec, size_t subgraph, const std::vector<TensorSpec> &inputs,
               const std::vector<bool> &constant, const std::vector<Gradient> &gradients, ScratchLayout *scratch)
      : index(subgraph) {
    const ControlFlowAttrs &attrs = spec.attrs_as<ControlFlowAttrs>();
    SubgraphCompiler::Request request;
    const PassKind pass = spec.is_train ? PassKind::kTraining : PassKind::kInference;
    for (const int source : attrs.sources[subgraph]) {
      const std::vector<int> &changed = attrs.changed[size_t(pass)];
      request.inputs.push_back(inputs[size_t(source)]);
      request.constant.push_back(constant[size_t(source)] &&
                                 !std::binary_search(changed.begin(), changed.end(), source));
      if (!gradients.empty()) request.gradients.push_back(gradients[size_t(source)]);
    }
    request.is_train = spec.is_train;
    request.num_threads = spec.num_threads;
    program = spec.subgraphs->compile(subgraph, request);
    constants_at = scratch->book(program->constant_bytes());
  }
};

// A sub-graph during one run of the step.
struct RunningSubgraph {
  RunningSubgraph(const SubgraphPart &which, const ControlFlowAttrs &attrs, size_t num_outputs, const Args &args)
      : part(which),
        sources(attrs.sources[which.index]),
        streams(*which.program, which.index, args.random),
        inputs(sources.size()),
        outputs(num_outputs) {
    arrays.inputs = inputs.data();
    arrays.outputs = outputs.data();
    arrays.random = streams.data();
    arrays.constants = at(args.scratch, which.constants_at);
  }
  // Runs the forward pass on the inputs of the node as this iteration sees them.
  void forward(const Pointers &current, const Lane &lane) {
    for (size_t i = 0; i < sources.size(); ++i) inputs[i] = current[size_t(sources[i])];
    if (!prepared) part.program->prepare(arrays, lane);
    prepared = true;
    part.program->forward(arrays, lane);
  }

  const SubgraphPart &part;
  const std::vector<int> &sources;
  SubgraphStreams streams;
  Pointers inputs, outputs;
  Subprogram::Arrays arrays;
  bool prepared = false;
};

// The sub-graph that decides whether to go on, or which branch to take: its output is one element.
struct Condition : SubgraphPart {
  size_t arena_at = 0, output_at = 0;

  Condition() = default;
  Condition(const StepSpec &spec, const std::vector<bool> &constant, ScratchLayout *scratch)
      : SubgraphPart(spec, 0, spec.inputs, constant, {}, scratch),
        arena_at(scratch->book(program->arena_bytes())),
        output_at(scratch->book(program->output(0).bytes())) {}

  static bool holds(RunningSubgraph *running, const Pointers &current, const Args &args, const Lane &lane) {
    const Condition &self = static_cast<const Condition &>(running->part);
    running->arrays.arena = at(args.scratch, self.arena_at);
    running->outputs[0] = at(args.scratch, self.output_at);
    running->forward(current, lane);
    return is_set(lane, running->outputs[0], self.program->output(0).dtype);
  }
};

class ControlFlow : public Kernel {
 public:
  bool on_caller() const override { return on_caller_; }
  bool replays() const override { return replays_; }
  const ControlFlowAttrs &attrs() const { return *attrs_; }
  void run(const Args &args, const Lane &lane) const final {
    own_lane_->run(lane, [&](const Lane &own) { run_on(args, own); });
  }

 protected:
  explicit ControlFlow(const StepSpec &spec)
      : attrs_(std::static_pointer_cast<const ControlFlowAttrs>(spec.attrs)), keeps_(spec.keep_for_backward) {
    for (const TensorSpec &output : spec.outputs) out_bytes_.push_back(output.bytes());
    wanted_.assign(attrs_->num_inputs(), false);
    const std::vector<int> of = attrs_->with_gradient();
    for (size_t o = 0; o < spec.gradients_wanted.size(); ++o) wanted_[size_t(of[o])] = spec.gradients_wanted[o];
  }
  virtual void run_on(const Args &args, const Lane &lane) const = 0;
  // Random streams inside are set up by the host in each run, so such a step cannot be replayed.
  void note(const SubgraphPart &part) {
    on_caller_ = on_caller_ || part.program->on_caller();
    replays_ = replays_ && part.program->replays() && part.program->num_streams() == 0;
  }
  void note_condition(const SubgraphPart &part) {
    note(part);
    replays_ = false;  // the host reads the condition
  }
  void noted_all(const StepSpec &spec) { own_lane_ = std::make_unique<CallerLane>(spec.context, on_caller_); }

  const std::shared_ptr<const ControlFlowAttrs> attrs_;
  const bool keeps_;               // whether the backward step's needs are kept
  std::vector<size_t> out_bytes_;  // of each output
  std::vector<bool> wanted_;       // whether the gradient of each input is wanted
  bool on_caller_ = false, replays_ = true;
  std::unique_ptr<CallerLane> own_lane_;
};

// ---- loops ---------------------------------------------------------------------------------------------------------

class LoopForward final : public ControlFlow {
 public:
  explicit LoopForward(StepSpec &spec) : ControlFlow(spec), states_(attrs().states()) {
    const ControlFlowAttrs &a = attrs();
    const bool decides = a.inside.size() > 1;
    most_passes_ = decides ? a.max_iterations : spec.inputs[0].shape[0];
    state_of_.assign(a.num_inputs(), -1);
    for (size_t k = 0; k < states_.size(); ++k) state_of_[size_t(states_[k])] = int(k);

    std::vector<TensorSpec> inputs = spec.inputs;  // of one iteration
    std::vector<bool> constant;
    std::vector<Gradient> gradients;
    for (size_t i = 0; i < a.num_inputs(); ++i) {
      if (i < a.num_data()) inputs[i] = row_of(spec.inputs[i]);
      in_bytes_.push_back(inputs[i].bytes());
      constant.push_back(i >= a.num_data() && state_of_[i] < 0);
      const Gradient asked = constant[i] ? Gradient::kAdd : Gradient::kWrite;
      if (keeps_) gradients.push_back(wanted_[i] || state_of_[i] >= 0 ? asked : Gradient::kNone);
    }
    ScratchLayout scratch, saved, pass;
    const PassKind kind = spec.is_train ? PassKind::kTraining : PassKind::kInference;
    for (const int state : states_) {
      bool changes = false;
      for (size_t g = 0; g < a.inside.size(); ++g) {
        for (size_t i = 0; i < a.sources[g].size(); ++i)
          changes = changes || (a.sources[g][i] == state && a.inside[g]->is_written(i, kind));
      }
      if (changes) own_starts_.emplace_back(size_t(state), scratch.book(in_bytes_[size_t(state)]));
    }
    if (decides) {
      condition_ = Condition(spec, constant, &scratch);
      note_condition(condition_);
    }
    body_ = SubgraphPart(spec, decides ? 1 : 0, inputs, constant, gradients, &scratch);
    note(body_);
    for (size_t j = 0; j < num_data(); ++j) {
      row_bytes_.push_back(row_of(spec.outputs[j]).bytes());
      unwanted_at_.push_back(spec.wanted[j] ? 0 : scratch.book(row_bytes_[j]));
    }
    // Memory for what an iteration computes: arrays that backward needs get a place per iteration, the others share
    // two by turns.
    if (keeps_) passes_at_ = saved.book(sizeof(int64_t));
    pass.book(body_.program->arena_bytes());
    for (const int state : states_) states_at_.push_back(pass.book(in_bytes_[size_t(state)]));
    pass_bytes_ = pass.bytes();
    pass_at_ = (keeps_ ? saved : scratch).book(pass_bytes_, keeps_ ? size_t(most_passes_) : 2);
    spec.scratch_bytes = scratch.bytes();
    spec.saved_bytes = saved.bytes();
    noted_all(spec);
  }

  void run_on(const Args &args, const Lane &lane) const override {
    Pointers current(attrs().num_inputs());
    std::copy_n(args.inputs, current.size(), current.begin());
    for (const auto &[state, start] : own_starts_) {
      current[state] = at(args.scratch, start);
      copy(lane, current[state], args.inputs[state], in_bytes_[state]);
    }
    std::optional<RunningSubgraph> condition;
    if (condition_.program) condition.emplace(condition_, attrs(), 1, args);
    RunningSubgraph body(body_, attrs(), num_data() + states_.size(), args);
    int64_t pass = 0;
    for (; pass < most_passes_; ++pass) {
      if (condition && !Condition::holds(&*condition, current, args, lane)) break;
      take_rows(args.inputs, pass, &current);
      void *const memory =
          keeps_ ? arena(args.saved, pass) : at(args.scratch, pass_at_ + size_t(pass % 2) * pass_bytes_);
      for (size_t j = 0; j < num_data(); ++j) {
        void *const output = args.outputs[j];
        body.outputs[j] = output ? at(output, size_t(pass) * row_bytes_[j]) : at(args.scratch, unwanted_at_[j]);
      }
      for (size_t k = 0; k < states_.size(); ++k) body.outputs[num_data() + k] = at(memory, states_at_[k]);
      body.arrays.arena = memory;
      body.forward(current, lane);
      for (size_t k = 0; k < states_.size(); ++k) current[size_t(states_[k])] = at(memory, states_at_[k]);
    }
    for (size_t j = 0; j < num_data(); ++j) {
      const size_t done = size_t(pass) * row_bytes_[j];
      if (args.outputs[j]) clear(lane, at(args.outputs[j], done), out_bytes_[j] - done);
    }
    for (size_t k = 0; k < states_.size(); ++k) {
      copy(lane, args.outputs[num_data() + k], current[size_t(states_[k])], in_bytes_[size_t(states_[k])]);
    }
    if (keeps_ && condition) note_number(lane, at(args.saved, passes_at_), pass);
  }

  // ---- for backward
  const SubgraphPart &body() const { return body_; }
  size_t num_data() const { return size_t(attrs().num_out_data); }
  const std::vector<int> &states() const { return states_; }
  int state_of(size_t input) const { return state_of_[input]; }  // -1: the input is no state
  bool wants(size_t input) const { return wanted_[input]; }
  size_t in_bytes(size_t input) const { return in_bytes_[input]; }  // of one iteration
  size_t row_bytes(size_t output) const { return row_bytes_[output]; }
  int64_t num_passes(void *saved, const Lane &lane) const {
    if (!condition_.program) return most_passes_;
    const int64_t passes = noted_number(lane, at(saved, passes_at_));
    if (passes >= 0 && passes <= most_passes_) return passes;
    throw Error(Code::kState, "backward: no forward pass of the loop has been completed");
  }
  void *arena(void *saved, int64_t pass) const { return at(saved, pass_at_ + size_t(pass) * pass_bytes_); }
  void *state(void *saved, int64_t pass, size_t k) const { return at(arena(saved, pass), states_at_[k]); }
  void take_rows(void *const *outside, int64_t pass, Pointers *current) const {
    for (size_t i = 0; i < attrs().num_data(); ++i) (*current)[i] = at(outside[i], size_t(pass) * in_bytes_[i]);
  }

 private:
  int64_t most_passes_ = 0;
  Condition condition_;  // of _while_loop only
  SubgraphPart body_;
  const std::vector<int> states_;  // which inputs are states
  std::vector<std::pair<size_t, size_t>>
      own_starts_;  // states that an iteration writes in place, and where each starts
  std::vector<int> state_of_;
  std::vector<size_t> in_bytes_, row_bytes_, unwanted_at_, states_at_;
  size_t passes_at_ = 0, pass_at_ = 0, pass_bytes_ = 0;
};

// The gradients of an iteration's states are passed on to the iteration before it. Gradients of inputs that all
// iterations read are summed.
class LoopBackward final : public ControlFlow {
 public:
  explicit LoopBackward(StepSpec &spec) : ControlFlow(spec), forward_(static_cast<const LoopForward &>(*spec.forward)) {
    note(forward_.body());
    replays_ = forward_.replays();
    ScratchLayout scratch;
    for (const int state : forward_.states()) {
      for (auto &offset : gradients_at_) offset.push_back(scratch.book(forward_.in_bytes(size_t(state))));
    }
    spec.scratch_bytes = scratch.bytes();
    noted_all(spec);
  }

  void run_on(const Args &args, const Lane &lane) const override {
    const ControlFlowAttrs &a = attrs();
    const size_t num_data = forward_.num_data(), num_states = forward_.states().size();
    void *const *const heads = args.inputs, *const *const inputs = heads + a.num_outputs,
                       *const *const outputs = inputs + a.num_inputs();
    const Subprogram &body = *forward_.body().program;
    const std::vector<int> &sources = a.sources[forward_.body().index], of = a.with_gradient();
    Pointers given(a.num_inputs()), current(a.num_inputs()), states(num_states);
    for (size_t o = 0; o < of.size(); ++o) given[size_t(of[o])] = args.outputs[o];
    for (size_t k = 0; k < num_states; ++k) states[k] = heads[num_data + k];  // gradients of the states, so far
    for (size_t i = a.num_data(); i < a.num_inputs(); ++i) clear(lane, given[i], forward_.in_bytes(i));

    Pointers body_inputs(sources.size()), body_outputs(num_data + num_states), gradients(sources.size());
    Subprogram::Arrays arrays;
    arrays.inputs = body_inputs.data();
    arrays.outputs = body_outputs.data();
    arrays.gradients = gradients.data();
    std::copy_n(inputs, current.size(), current.begin());
    for (int64_t pass = forward_.num_passes(args.saved, lane) - 1; pass >= 0; --pass) {
      forward_.take_rows(inputs, pass, &current);
      for (size_t k = 0; k < num_states; ++k) {
        const size_t input = size_t(forward_.states()[k]);
        current[input] = pass > 0 ? forward_.state(args.saved, pass - 1, k) : inputs[input];
        body_outputs[num_data + k] = forward_.state(args.saved, pass, k);
      }
      arrays.arena = forward_.arena(args.saved, pass);
      for (size_t j = 0; j < num_data; ++j) {
        const size_t bytes = forward_.row_bytes(j), row = size_t(pass) * bytes;
        body_outputs[j] = at(outputs[j], row);
        copy(lane, body.head_gradient(j, arrays.arena), at(heads[j], row), bytes);
      }
      for (size_t k = 0; k < num_states; ++k) {
        copy(lane, body.head_gradient(num_data + k, arrays.arena), states[k],
             forward_.in_bytes(size_t(forward_.states()[k])));
        states[k] = at(args.scratch, gradients_at_[pass % 2][k]);
      }
      for (size_t i = 0; i < sources.size(); ++i) {
        const size_t source = size_t(sources[i]);
        const int state = forward_.state_of(source);
        body_inputs[i] = current[source];
        gradients[i] = state >= 0 ? states[size_t(state)] : given[source];
        if (source < a.num_data() && given[source])
          gradients[i] = at(given[source], size_t(pass) * forward_.in_bytes(source));
      }
      body.backward(arrays, lane);
    }
    for (size_t k = 0; k < num_states; ++k) {
      const size_t input = size_t(forward_.states()[k]);
      copy(lane, given[input], states[k], forward_.in_bytes(input));
    }
  }

 private:
  const LoopForward &forward_;
  std::vector<size_t> gradients_at_[2];  // of each state; iterations alternate between the two
};

// ---- branches ------------------------------------------------------------------------------------------------------

class BranchForward final : public ControlFlow {
 public:
  explicit BranchForward(StepSpec &spec) : ControlFlow(spec) {
    const ControlFlowAttrs &a = attrs();
    const std::vector<bool> constant(a.num_inputs(), true);
    std::vector<Gradient> gradients;
    for (size_t i = 0; keeps_ && i < a.num_inputs(); ++i) {
      gradients.push_back(wanted_[i] ? Gradient::kWrite : Gradient::kNone);
    }
    ScratchLayout scratch, saved;
    const bool decides = a.inside.size() > 1;
    if (decides) {
      condition_ = Condition(spec, constant, &scratch);
      note_condition(condition_);
    }
    size_t arena_bytes = 0;
    for (size_t g = decides ? 1 : 0; g < a.inside.size(); ++g) {
      branches_.emplace_back(spec, g, spec.inputs, constant, gradients, &scratch);
      note(branches_.back());
      arena_bytes = std::max(arena_bytes, branches_.back().program->arena_bytes());
    }
    for (size_t j = 0; j < spec.outputs.size(); ++j) {
      unwanted_at_.push_back(spec.wanted[j] ? 0 : scratch.book(spec.outputs[j].bytes()));
    }
    if (keeps_) branch_at_ = saved.book(sizeof(int64_t));
    arena_at_ = (keeps_ ? saved : scratch).book(arena_bytes);
    spec.scratch_bytes = scratch.bytes();
    spec.saved_bytes = saved.bytes();
    noted_all(spec);
  }

  void run_on(const Args &args, const Lane &lane) const override {
    Pointers current(attrs().num_inputs());
    std::copy_n(args.inputs, current.size(), current.begin());
    int64_t branch = 0;
    if (condition_.program) {
      RunningSubgraph condition(condition_, attrs(), 1, args);
      branch = Condition::holds(&condition, current, args, lane) ? 0 : 1;
    }
    RunningSubgraph taken(branches_[size_t(branch)], attrs(), out_bytes_.size(), args);
    for (size_t j = 0; j < out_bytes_.size(); ++j) {
      taken.outputs[j] = args.outputs[j] ? args.outputs[j] : at(args.scratch, unwanted_at_[j]);
    }
    taken.arrays.arena = at(keeps_ ? args.saved : args.scratch, arena_at_);
    taken.forward(current, lane);
    if (keeps_ && condition_.program) note_number(lane, at(args.saved, branch_at_), branch);
  }

  // ---- for backward
  const std::vector<SubgraphPart> &branches() const { return branches_; }
  const SubgraphPart &taken(void *saved, const Lane &lane) const {
    if (!condition_.program) return branches_[0];
    const int64_t branch = noted_number(lane, at(saved, branch_at_));
    if (branch >= 0 && branch < int64_t(branches_.size())) return branches_[size_t(branch)];
    throw Error(Code::kState, "backward: no forward pass of the branches has been completed");
  }
  void *arena(void *saved) const { return at(saved, arena_at_); }

 private:
  Condition condition_;  // of _cond only
  std::vector<SubgraphPart> branches_;
  std::vector<size_t> unwanted_at_;
  size_t branch_at_ = 0, arena_at_ = 0;
};

class BranchBackward final : public ControlFlow {
 public:
  explicit BranchBackward(StepSpec &spec)
      : ControlFlow(spec), forward_(static_cast<const BranchForward &>(*spec.forward)) {
    for (const SubgraphPart &branch : forward_.branches()) note(branch);
    replays_ = forward_.replays();
    noted_all(spec);
    for (int j = 0; j < attrs().num_outputs; ++j) head_bytes_.push_back(spec.inputs[size_t(j)].bytes());
  }

  void run_on(const Args &args, const Lane &lane) const override {
    const ControlFlowAttrs &a = attrs();
    const SubgraphPart &branch = forward_.taken(args.saved, lane);
    const std::vector<int> &sources = a.sources[branch.index], of = a.with_gradient();
    Pointers given(a.num_inputs()), inputs(sources.size()), gradients(sources.size());
    for (size_t o = 0; o < of.size(); ++o) given[size_t(of[o])] = args.outputs[o];
    for (size_t o = 0; o < of.size(); ++o) {
      if (std::find(sources.begin(), sources.end(), of[o]) == sources.end())
        clear(lane, args.outputs[o], out_bytes_[o]);
    }
    void *const *const outside = args.inputs + a.num_outputs;
    for (size_t i = 0; i < sources.size(); ++i) {
      inputs[i] = outside[size_t(sources[i])];
      gradients[i] = given[size_t(sources[i])];
    }
    Subprogram::Arrays arrays;
    arrays.inputs = inputs.data();
    arrays.outputs = outside + a.num_inputs();
    arrays.gradients = gradients.data();
    arrays.arena = forward_.arena(args.saved);
    for (size_t j = 0; j < head_bytes_.size(); ++j) {
      copy(lane, branch.program->head_gradient(j, arrays.arena), args.inputs[j], head_bytes_[j]);
    }
    branch.program->backward(arrays, lane);
  }

 private:
  const BranchForward &forward_;
  std::vector<size_t> head_bytes_;
};

COHORT_KERNEL(backend, _foreach, LoopForward);
COHORT_KERNEL(backend, _backward__foreach, LoopBackward);
COHORT_KERNEL(backend, _while_loop, LoopForward);
COHORT_KERNEL(backend, _backward__while_loop, LoopBackward);
COHORT_KERNEL(backend, _cond, BranchForward);
COHORT_KERNEL(backend, _backward__cond, BranchBackward);
COHORT_KERNEL(backend, _CachedOp, BranchForward);
COHORT_KERNEL(backend, _sg_mkldnn_conv, BranchForward);
COHORT_KERNEL(backend, _sg_mkldnn_fully_connected, BranchForward);
COHORT_KERNEL(backend, _sg_mkldnn_selfatt_qk, BranchForward);
COHORT_KERNEL(backend, _sg_mkldnn_selfatt_valatt, BranchForward);
COHORT_KERNEL(backend, _backward__CachedOp, BranchBackward);

}  // namespace
}  // namespace cohort
