// SPDX-License-Identifier: Apache-2.0
#include "device/output_check.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/error.hpp"

namespace cohort {
namespace {

constexpr unsigned char kPattern[] = {0xf5, 0x7f};  // NaN for floats of any size

void fill(void *data, size_t bytes, unsigned char flip) {
  auto *const to = static_cast<unsigned char *>(data);
  for (size_t i = 0; i < bytes; ++i) to[i] = kPattern[i % 2] ^ flip;
}

class OutputCheckingKernel final : public Kernel {
 public:
  OutputCheckingKernel(std::unique_ptr<Kernel> kernel, const StepSpec &spec)
      : kernel_(std::move(kernel)), scratch_bytes_(spec.scratch_bytes) {
    for (const TensorSpec &input : spec.inputs) input_bytes_.push_back(input.bytes());
    for (const TensorSpec &output : spec.outputs) {
      output_bytes_.push_back(output.bytes());
      element_bytes_.push_back(dtype_size(output.dtype));
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    const std::vector<bool> checked = apart(args);
    // An element of one byte may equal the pattern by chance, so the step is repeated over another pattern.
    bool may_repeat = false;
    for (size_t j = 0; j < checked.size(); ++j) may_repeat = may_repeat || (checked[j] && element_bytes_[j] == 1);
    std::vector<std::vector<char>> inputs;
    for (size_t i = 0; may_repeat && i < input_bytes_.size(); ++i) {
      const char *const data = args.in<char>(int(i));
      inputs.emplace_back(data, data + (data ? input_bytes_[i] : 0));
    }
    std::vector<std::vector<size_t>> untouched = untouched_by(args, lane, checked, 0);
    if (may_repeat && any(untouched)) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].empty()) std::memcpy(args.inputs[i], inputs[i].data(), inputs[i].size());
      }
      const std::vector<std::vector<size_t>> again = untouched_by(args, lane, checked, 0xff);
      for (size_t j = 0; j < again.size(); ++j) {
        std::vector<size_t> both;
        std::set_intersection(untouched[j].begin(), untouched[j].end(), again[j].begin(), again[j].end(),
                              std::back_inserter(both));
        untouched[j] = std::move(both);
      }
    }
    for (size_t j = 0; j < untouched.size(); ++j) {
      if (untouched[j].empty()) continue;
      throw Error(Code::kInternal,
                  text("output ", j, ": ", untouched[j].size(), " of ", output_bytes_[j] / element_bytes_[j],
                       " elements were not written, first element ", untouched[j][0]));
    }
  }

 private:
  static bool any(const std::vector<std::vector<size_t>> &lists) {
    return std::any_of(lists.begin(), lists.end(), [](const auto &list) { return !list.empty(); });
  }

  // Whether each output is wanted and shares no memory with an input.
  std::vector<bool> apart(const Args &args) const {
    std::vector<bool> result;
    for (size_t j = 0; j < output_bytes_.size(); ++j) {
      const char *const begin = args.out<char>(int(j)), *const end = begin + output_bytes_[j];
      bool is_apart = begin != nullptr;
      for (size_t i = 0; i < input_bytes_.size(); ++i) {
        const char *const input = args.in<char>(int(i));
        is_apart = is_apart && !(input && input < end && begin < input + input_bytes_[i]);
      }
      result.push_back(is_apart);
    }
    return result;
  }

  // Runs the kernel. For each output: the elements that still hold the pattern.
  std::vector<std::vector<size_t>> untouched_by(const Args &args, const Lane &lane, const std::vector<bool> &checked,
                                                unsigned char flip) const {
    if (args.scratch) fill(args.scratch, scratch_bytes_, flip);
    for (size_t j = 0; j < checked.size(); ++j) {
      if (checked[j]) fill(args.outputs[j], output_bytes_[j], flip);
    }
    kernel_->run(args, lane);
    std::vector<std::vector<size_t>> untouched(checked.size());
    unsigned char before[16];
    fill(before, sizeof before, flip);
    for (size_t j = 0; j < checked.size(); ++j) {
      const size_t size = element_bytes_[j];
      for (size_t at = 0; checked[j] && at + size <= output_bytes_[j]; at += size) {
        if (std::memcmp(args.out<char>(int(j)) + at, before + at % 2, size) == 0) untouched[j].push_back(at / size);
      }
    }
    return untouched;
  }

  const std::unique_ptr<Kernel> kernel_;
  const size_t scratch_bytes_;
  std::vector<size_t> input_bytes_, output_bytes_, element_bytes_;
};

}  // namespace

std::unique_ptr<Kernel> with_checked_outputs(std::unique_ptr<Kernel> kernel, const StepSpec &spec) {
  return std::make_unique<OutputCheckingKernel>(std::move(kernel), spec);
}

}  // namespace cohort
