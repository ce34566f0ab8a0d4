// SPDX-License-Identifier: Apache-2.0
// _fused_pointwise, interpreted if it cannot be compiled (fused_compiled_cuda.cu): one thread runs the whole program
// for its element, with all values in local memory. The choice of the functor is the same for all threads. Arrays
// are read and written once, independent of the length of the program.
#include <algorithm>
#include <cstring>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/fused_pointwise.hpp"

namespace cohort {
namespace {

constexpr int kMostInputs = 16, kMostInstructions = 128, kMostOutputs = 48;

template <typename C>
struct Instruction {
  int16_t code, operands[3];
  C s, t;
};

template <typename C>
struct FusedProgram {
  int16_t num_inputs, num_instructions, num_outputs;
  int16_t output_values[kMostOutputs];
  void *inputs[kMostInputs], *outputs[kMostOutputs];
  Instruction<C> instructions[kMostInstructions];
};

template <typename C>
__device__ C functor_of(PointwiseCode code, C a, C b, C c, C s, C t) {
  switch (code) {
#define COHORT_CASE(name, operands, integer, vector) \
  case PointwiseCode::k##name:                       \
    return pointwise::name::of<C>(a, b, c, s, t);
    COHORT_POINTWISE_LIST(COHORT_CASE)
#undef COHORT_CASE
  }
  return C(0);
}

// All inputs of an element are read before its outputs are written, as these may be the same arrays.
template <typename C>
__global__ void run_program(FusedProgram<C> p, int64_t dtype, int64_t count) {
  C values[kMostInputs + kMostInstructions];
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    for (int k = 0; k < p.num_inputs; ++k) values[k] = load<C>(Elements{p.inputs[k], dtype}, i);
    for (int k = 0; k < p.num_instructions; ++k) {
      const Instruction<C> &step = p.instructions[k];
      const auto operand = [&](int n) { return step.operands[n] < 0 ? C(0) : values[step.operands[n]]; };
      values[p.num_inputs + k] =
          functor_of(PointwiseCode(step.code), operand(0), operand(1), operand(2), step.s, step.t);
    }
    for (int k = 0; k < p.num_outputs; ++k) {
      if (p.outputs[k]) store(Elements{p.outputs[k], dtype}, i, values[p.output_values[k]]);
    }
  }
}

template <typename C>
class FusedPointwiseCuda final : public Kernel {
 public:
  explicit FusedPointwiseCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), dtype_(spec.outputs[0].dtype), program_() {
    const auto &attrs = spec.attrs_as<FusedPointwiseAttrs>();
    if (attrs.num_inputs > kMostInputs || attrs.instructions.size() > size_t(kMostInstructions) ||
        attrs.outputs.size() > size_t(kMostOutputs)) {
      throw Error(Code::kUnsupported, text(spec.op, ": expected at most ", kMostInputs, " inputs, ", kMostInstructions,
                                           " instructions and ", kMostOutputs, " outputs, found ", attrs.num_inputs,
                                           ", ", attrs.instructions.size(), " and ", attrs.outputs.size()));
    }
    program_.num_inputs = int16_t(attrs.num_inputs);
    for (const PointwiseCall &call : attrs.instructions) {
      const int operands = pointwise_operands(call.code);
      program_.instructions[program_.num_instructions++] = {
          int16_t(call.code),
          {int16_t(call.a), int16_t(operands > 1 ? call.b : -1), int16_t(operands > 2 ? call.c : -1)},
          C(call.s),
          C(call.t)};
    }
    for (int value : attrs.outputs) program_.output_values[program_.num_outputs++] = int16_t(value);
  }

  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    FusedProgram<C> program = program_;
    std::copy_n(args.inputs, program.num_inputs, program.inputs);
    std::copy_n(args.outputs, program.num_outputs, program.outputs);
    launch(run_program<C>, flat_grid(count_), lane.stream, program, int64_t(dtype_), count_);
  }

 private:
  const int64_t count_;
  const Dtype dtype_;
  FusedProgram<C> program_;
};

std::unique_ptr<Kernel> make_fused_pointwise(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<FusedPointwiseCuda<double>>(spec);
  return std::make_unique<FusedPointwiseCuda<float>>(spec);
}

COHORT_KERNEL_BY(cuda, _fused_pointwise, flat<make_fused_pointwise>).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
