// SPDX-License-Identifier: Apache-2.0
// _fused_pointwise: compiled at bind into a list of loops over blocks of elements. Intermediate values live in
// registers: blocks on the stack that stay in the L1 cache.
#include "op/fused_pointwise.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr int64_t kRegisterBytes = 32768;  // of all registers together
constexpr int64_t kMinBlock = 64, kMaxBlock = 1024;
constexpr int kMaxPlaces = 256;  // inputs, outputs and registers

template <typename C>
class FusedPointwise final : public Kernel {
 public:
  explicit FusedPointwise(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        num_inputs_(int(spec.inputs.size())),
        num_outputs_(int(spec.outputs.size())),
        direct_(spec.outputs[0].dtype == dtype_of<C>()),
        element_bytes_(int64_t(dtype_size(spec.outputs[0].dtype))),
        load_(load_block(spec.outputs[0].dtype, dtype_of<C>())),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {
    const auto &attrs = spec.attrs_as<FusedPointwiseAttrs>();
    for (const TensorSpec &t : spec.inputs) check(t, spec);
    for (const TensorSpec &t : spec.outputs) check(t, spec);
    if (attrs.num_inputs != num_inputs_ || int(attrs.outputs.size()) != num_outputs_) {
      throw Error(Code::kInternal, text(spec.op, ": expected ", attrs.num_inputs, " inputs and ", attrs.outputs.size(),
                                        " outputs, found ", num_inputs_, " and ", num_outputs_));
    }
    const std::vector<bool> wanted = spec.wanted.empty() ? std::vector<bool>(spec.outputs.size(), true) : spec.wanted;
    apart_ = compile(attrs, wanted, false);
    if (direct_) in_place_ = compile(attrs, wanted, true);
    const int num_registers = std::max({apart_.num_registers, in_place_.num_registers, 1});
    const int64_t fitting = kRegisterBytes / (num_registers * int64_t(sizeof(C)));
    if (num_inputs_ + num_outputs_ + num_registers > kMaxPlaces || fitting < kMinBlock) {
      throw Error(Code::kUnsupported,
                  text(spec.op, ": expected at most ", kRegisterBytes / (kMinBlock * int64_t(sizeof(C))),
                       " values at a time, found ", num_registers, ", with ", num_inputs_, " inputs and ", num_outputs_,
                       " outputs"));
    }
    block_ = std::min(fitting / 64 * 64, kMaxBlock);
    int64_t cost = 1;
    for (const PointwiseCall &call : attrs.instructions) cost += pointwise_in_integers(call.code) ? 1 : 8;
    grain_ = std::max<int64_t>(kCheapGrain / cost, 512);
  }

  void run(const Args &args, const Lane &lane) const override {
    const Program &program = direct_ && shares_memory(args) ? in_place_ : apart_;
    parallel_for(lane, count_, grain_, [&](int64_t begin, int64_t end) { run_range(program, args, begin, end); });
  }

 private:
  enum class Kind : uint8_t { kLoop, kLoad, kStore, kCopy };
  // Places are numbered: inputs, outputs, registers.
  struct Step {
    Kind kind;
    int16_t from[3];
    int16_t to;
    PointwiseLoop<C> loop;
    C s, t;
  };
  struct Program {
    std::vector<Step> steps;
    int num_registers = 0;
  };

  void check(const TensorSpec &tensor, const StepSpec &spec) const {
    if (tensor.dtype == spec.outputs[0].dtype && tensor.shape.size() == count_) return;
    throw Error(Code::kInternal, text(spec.op, ": expected ", count_, " elements of ", spec.outputs[0].dtype,
                                      ", found ", tensor.shape, " of ", tensor.dtype));
  }

  // The uses of each value (inputs, then results of instructions), for compile().
  struct Uses {
    std::vector<int> last;                    // the last instruction that reads it; -1: none
    std::vector<int> output;                  // the output that its instruction writes directly; -1: none
    std::vector<std::pair<int, int>> copies;  // value, output: copied at the end of a block
  };

  // With in_place, an output may share memory with an input: a result that would overwrite an input which a later
  // instruction reads stays in a register until all inputs of its block have been read.
  Uses uses_of(const FusedPointwiseAttrs &attrs, const std::vector<bool> &wanted, bool in_place) const {
    const int num_instructions = int(attrs.instructions.size()), num_values = num_inputs_ + num_instructions;
    Uses uses{std::vector<int>(size_t(num_values), -1), std::vector<int>(size_t(num_values), -1), {}};
    int last_input_read = -1;
    for (int k = 0; k < num_instructions; ++k) {
      const PointwiseCall &call = attrs.instructions[size_t(k)];
      const int operands[3] = {call.a, call.b, call.c};
      for (int i = 0; i < pointwise_operands(call.code); ++i) {
        if (operands[i] < 0 || operands[i] >= num_inputs_ + k) {
          throw Error(Code::kInternal, text("_fused_pointwise: instruction ", k, " (", pointwise_name(call.code),
                                            ") reads value ", operands[i], ", expected 0 to ", num_inputs_ + k - 1));
        }
        uses.last[size_t(operands[i])] = k;
        if (operands[i] < num_inputs_) last_input_read = k;
      }
    }
    for (int o = 0; o < num_outputs_; ++o) {
      const int value = attrs.outputs[size_t(o)];
      if (value < num_inputs_ || value >= num_values) {
        throw Error(Code::kInternal, text("_fused_pointwise: output ", o, " is value ", value, ", expected ",
                                          num_inputs_, " to ", num_values - 1));
      }
      if (!wanted[size_t(o)]) continue;
      const bool early = in_place && value - num_inputs_ < last_input_read;
      if (direct_ && uses.output[size_t(value)] < 0 && !early) {
        uses.output[size_t(value)] = o;
      } else {
        uses.copies.emplace_back(value, o);
        uses.last[size_t(value)] = num_instructions;
      }
    }
    return uses;
  }

  Program compile(const FusedPointwiseAttrs &attrs, const std::vector<bool> &wanted, bool in_place) const {
    const Uses uses = uses_of(attrs, wanted, in_place);
    Program program;
    std::vector<int16_t> free_registers;
    const auto allocate = [&]() -> int16_t {
      if (free_registers.empty()) return int16_t(num_inputs_ + num_outputs_ + program.num_registers++);
      const int16_t place = free_registers.back();
      free_registers.pop_back();
      return place;
    };
    std::vector<int16_t> place(uses.last.size(), -1);
    for (int k = 0; k < int(attrs.instructions.size()); ++k) {
      const PointwiseCall &call = attrs.instructions[size_t(k)];
      const size_t value = size_t(num_inputs_ + k);
      if (uses.last[value] < 0 && uses.output[value] < 0) continue;  // it is not used
      Step step = {Kind::kLoop, {-1, -1, -1}, -1, pointwise_loop<C>(call.code), C(call.s), C(call.t)};
      const int operands[3] = {call.a, call.b, call.c}, num_operands = pointwise_operands(call.code);
      for (int i = 0; i < num_operands; ++i) {
        int16_t &at = place[size_t(operands[i])];
        if (at < 0) {  // an input that is read for the first time
          at = int16_t(operands[i]);
          if (!direct_) {
            const int16_t to = allocate();
            program.steps.push_back({Kind::kLoad, {at, -1, -1}, to, nullptr, C(0), C(0)});
            at = to;
          }
        }
        step.from[i] = at;
      }
      for (int i = 0; i < num_operands; ++i) {  // the result may replace an operand that is last read here
        const int16_t at = place[size_t(operands[i])];
        const bool again = (i > 0 && operands[i] == operands[0]) || (i > 1 && operands[i] == operands[1]);
        if (uses.last[size_t(operands[i])] == k && at >= num_inputs_ + num_outputs_ && !again)
          free_registers.push_back(at);
      }
      const int output = uses.output[value];
      step.to = place[value] = output >= 0 ? int16_t(num_inputs_ + output) : allocate();
      program.steps.push_back(step);
    }
    for (const auto &copy : uses.copies) {
      const int16_t from = place[size_t(copy.first)], to = int16_t(num_inputs_ + copy.second);
      program.steps.push_back({direct_ ? Kind::kCopy : Kind::kStore, {from, -1, -1}, to, nullptr, C(0), C(0)});
    }
    return program;
  }

  bool shares_memory(const Args &args) const {
    for (int o = 0; o < num_outputs_; ++o) {
      for (int i = 0; i < num_inputs_; ++i) {
        if (args.outputs[o] == args.inputs[i]) return true;
      }
    }
    return false;
  }

  void run_range(const Program &program, const Args &args, int64_t begin, int64_t end) const {
    alignas(64) char registers[kRegisterBytes];
    void *places[kMaxPlaces];
    const int num_outside = num_inputs_ + num_outputs_;
    for (int i = 0; i < num_inputs_; ++i) places[i] = static_cast<char *>(args.inputs[i]) + begin * element_bytes_;
    for (int o = 0; o < num_outputs_; ++o) {
      char *const output = static_cast<char *>(args.outputs[o]);
      places[num_inputs_ + o] = output ? output + begin * element_bytes_ : nullptr;
    }
    for (int r = 0; r < program.num_registers; ++r) {
      places[num_outside + r] = registers + r * block_ * int64_t(sizeof(C));
    }
    for (int64_t at = begin;;) {
      const int64_t count = std::min(block_, end - at);
      for (const Step &step : program.steps) run_step(step, places, count);
      at += count;
      if (at >= end) return;
      for (int i = 0; i < num_outside; ++i) {
        if (places[i]) places[i] = static_cast<char *>(places[i]) + count * element_bytes_;
      }
    }
  }

  void run_step(const Step &step, void *const *places, int64_t count) const {
    switch (step.kind) {
      case Kind::kLoop: {
        const auto operand = [&](int i) {
          return step.from[i] < 0 ? nullptr : static_cast<const C *>(places[step.from[i]]);
        };
        step.loop(operand(0), operand(1), operand(2), step.s, step.t, static_cast<C *>(places[step.to]), count);
        break;
      }
      case Kind::kLoad:
        load_(places[step.from[0]], 0, places[step.to], count);
        break;
      case Kind::kStore:
        store_(places[step.from[0]], places[step.to], 0, count);
        break;
      case Kind::kCopy:
        std::memcpy(places[step.to], places[step.from[0]], size_t(count) * sizeof(C));
        break;
    }
  }

  const int64_t count_;
  const int num_inputs_, num_outputs_;
  const bool direct_;  // arrays have the type of computation
  const int64_t element_bytes_;
  const LoadBlock load_;
  const StoreBlock store_;
  Program apart_, in_place_;  // in_place_ is for outputs that share memory with an input
  int64_t block_ = 0, grain_ = 0;
};

std::unique_ptr<Kernel> make_fused_pointwise(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<FusedPointwise<double>>(spec);
  return std::make_unique<FusedPointwise<float>>(spec);
}

// Refuses integers: each operator wraps its result to the type, which the instructions here do not do between each
// other.
COHORT_KERNEL_BY(cpu, _fused_pointwise, make_fused_pointwise).dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
