// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of one operator on the CPU without a plan, for tests of kernels. Every array has guard bytes on both
// sides, which are checked after each run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/dtype_cast.hpp"
#include "op/op.hpp"
#include "support/lone_kernel.hpp"
#include "support/unit.hpp"

namespace unit {

using cohort::Dtype;
using cohort::Shape;

// An array of any type, read and written as doubles.
class Array {
 public:
  Array() = default;
  Array(Shape shape, Dtype dtype) : shape_(std::move(shape)), dtype_(dtype), bytes_(data_bytes() + 2 * kGuard, kMark) {
    std::fill(bytes_.begin() + kGuard, bytes_.end() - kGuard, char(0x7e));  // not a value that a kernel would leave
  }
  Array(Shape shape, Dtype dtype, const std::vector<double> &values) : Array(std::move(shape), dtype) {
    CHECK_EQ(int64_t(values.size()), size());
    for (int64_t i = 0; i < size(); ++i) set(i, values[size_t(i)]);
  }
  const Shape &shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  int64_t size() const { return shape_.size(); }
  size_t data_bytes() const { return size_t(shape_.size()) * cohort::dtype_size(dtype_); }
  void *data() { return bytes_.data() + kGuard; }
  const void *data() const { return bytes_.data() + kGuard; }
  double at(int64_t i) const {
    return cohort::dispatch(dtype_, [&](auto t) {
      using T = decltype(t);
      return cohort::cast_element<double>(static_cast<const T *>(data())[i]);
    });
  }
  void set(int64_t i, double value) {
    cohort::dispatch(dtype_, [&](auto t) {
      using T = decltype(t);
      static_cast<T *>(data())[i] = cohort::cast_element<T>(value);
    });
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (int64_t i = 0; i < size(); ++i) all.push_back(at(i));
    return all;
  }
  Array as(Dtype dtype) const { return Array(shape_, dtype, values()); }
  bool guards_hold() const {
    const auto marked = [](char c) { return c == kMark; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, marked) &&
           std::all_of(bytes_.end() - kGuard, bytes_.end(), marked);
  }
  bool same_bits(const Array &other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr char kMark = char(0xa5);
  Shape shape_;
  Dtype dtype_ = Dtype::kFloat32;
  std::vector<char> bytes_;
};

struct RunOptions {
  bool is_train = true;
  int num_threads = 1;
  uint64_t seed = 1;
  bool in_place = false;  // outputs use the memory of inputs wherever the operator allows it
};

// One kernel: a StepSpec in, outputs out. Inputs may be changed (states of updates).
class KernelRun {
 public:
  KernelRun(const std::string &kernel, cohort::Attrs attrs, std::vector<Array> &inputs,
            const std::vector<std::pair<Shape, Dtype>> &outputs, const RunOptions &options,
            const cohort::Kernel *forward = nullptr, std::vector<char> *saved = nullptr,
            const std::vector<std::pair<int, int>> &inplace = {}, const std::vector<bool> &wanted = {})
      : attrs_(std::move(attrs)) {
    cohort::StepSpec spec;
    spec.op = kernel;
    spec.attrs = attrs_.pointer();
    spec.is_train = options.is_train;
    spec.keep_for_backward = true;
    for (const Array &in : inputs) spec.inputs.push_back({in.shape(), in.dtype(), nullptr});
    spec.constant.assign(inputs.size(), false);
    for (const auto &out : outputs) spec.outputs.push_back({out.first, out.second, nullptr});
    spec.wanted = wanted.empty() ? std::vector<bool>(outputs.size(), true) : wanted;
    spec.forward = forward;
    random_.seed = options.seed;
    spec.num_threads = options.num_threads;
    kernel_ = make_kernel(spec);
    num_threads_ = spec.num_threads;
    if (!forward) saved_.assign(spec.saved_bytes + 1, 0);
    scratch_.assign(spec.scratch_bytes + 1, 0);
    std::vector<void *> in, out;
    for (Array &a : inputs) in.push_back(a.data());
    for (size_t i = 0; i < outputs.size(); ++i) {
      this->outputs.emplace_back(outputs[i].first, outputs[i].second);
    }
    for (size_t i = 0; i < outputs.size(); ++i) out.push_back(spec.wanted[i] ? this->outputs[i].data() : nullptr);
    std::vector<int> shared(outputs.size(), -1);
    if (options.in_place) {
      for (const auto &[input, output] : inplace) {
        if (size_t(input) >= inputs.size() || size_t(output) >= outputs.size() || shared[size_t(output)] >= 0) continue;
        if (inputs[size_t(input)].data_bytes() != this->outputs[size_t(output)].data_bytes()) continue;
        if (std::count(shared.begin(), shared.end(), input) > 0) continue;
        shared[size_t(output)] = input;
        out[size_t(output)] = in[size_t(input)];
      }
    }
    run(in, out, saved ? saved : &saved_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (shared[i] >= 0) {
        std::memcpy(this->outputs[i].data(), inputs[size_t(shared[i])].data(), this->outputs[i].data_bytes());
      }
    }
    for (const Array &a : inputs) CHECK(a.guards_hold());
    for (const Array &a : this->outputs) CHECK(a.guards_hold());
  }

  void run(const std::vector<void *> &in, const std::vector<void *> &out, std::vector<char> *saved) const {
    cohort::Args args;
    args.inputs = in.data();
    args.outputs = out.data();
    args.scratch = const_cast<char *>(scratch_.data());
    args.saved = saved->data();
    args.random = &random_;
    run_kernel(*kernel_, args, num_threads_);
  }

  std::vector<Array> outputs;
  const cohort::Kernel *kernel() const { return kernel_.get(); }
  std::vector<char> &saved() { return saved_; }

 private:
  cohort::Attrs attrs_;
  int num_threads_;
  std::unique_ptr<cohort::Kernel> kernel_;
  std::vector<char> saved_, scratch_;
  mutable cohort::RandomStream random_;
};

// An operator's forward step, and then its backward step.
class OpRun {
 public:
  OpRun(const std::string &name, const cohort::AttrMap &attrs, std::vector<Array> arrays, RunOptions how = {})
      : op(cohort::get_op(name)), parsed(op.parse(attrs)), inputs(std::move(arrays)), options(how) {
    cohort::Shapes in, out(size_t(op.num_outputs(parsed)));
    cohort::Dtypes in_types, out_types(out.size(), Dtype::kNone);
    for (const Array &a : inputs) {
      in.push_back(a.shape());
      in_types.push_back(a.dtype());
    }
    op.infer_shape(parsed, in, out);
    op.infer_dtype(parsed, in_types, out_types);
    std::vector<std::pair<Shape, Dtype>> wanted;
    for (size_t i = 0; i < out.size(); ++i) {
      CHECK(out[i].known());
      wanted.emplace_back(out[i], out_types[i]);
    }
    originals = inputs;
    forward = std::make_unique<KernelRun>(op.view ? "_copy" : op.name, parsed, inputs, wanted, options, nullptr,
                                          nullptr, op.inplace);
  }

  const std::vector<Array> &outputs() const { return forward->outputs; }

  // One gradient per entry of Gradient::of (all inputs of a variadic operator).
  std::vector<Array> backward(const std::vector<Array> &heads) {
    const cohort::Gradient g = gradient();
    std::vector<Array> in;
    if (g.head_grads) in = heads;
    for (int i : g.inputs) in.push_back(originals[size_t(i)]);
    for (int i : g.outputs) in.push_back(forward->outputs[size_t(i)]);
    std::vector<std::pair<Shape, Dtype>> out;
    for (int i : g.of) out.emplace_back(originals[size_t(i)].shape(), originals[size_t(i)].dtype());
    KernelRun run("_backward_" + op.name, parsed, in, out, options, forward->kernel(), &forward->saved(),
                  op.backward_inplace);
    return std::move(run.outputs);
  }

  cohort::Gradient gradient() const {
    cohort::Gradient g = op.gradient_of(parsed);
    if (g.of.empty() && !op.variadic.empty()) {
      for (size_t i = 0; i < originals.size(); ++i) g.of.push_back(int(i));
    }
    return g;
  }

  const cohort::Op &op;
  cohort::Attrs parsed;
  std::vector<Array> inputs, originals;
  RunOptions options;
  std::unique_ptr<KernelRun> forward;
};

// Evenly spread over [low, high], in an order that looks random; the same at each call.
inline std::vector<double> spread(int64_t count, double low, double high, int salt = 0) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t z = (uint64_t(i) + (uint64_t(salt) << 32) + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    values.push_back(low + (high - low) * double(z >> 11) * 1.1102230246251565e-16);
  }
  return values;
}

inline void check_close(const std::string &what, double found, double expected, double rtol, double atol) {
  if (std::isnan(expected) && std::isnan(found)) return;
  if (found == expected || std::fabs(found - expected) <= atol + rtol * std::fabs(expected)) return;
  fail(__FILE__, __LINE__, difference(what.c_str(), found, expected));
}

inline void check_close(const std::string &what, const Array &found, const std::vector<double> &expected, double rtol,
                        double atol) {
  CHECK_EQ(found.size(), int64_t(expected.size()));
  for (int64_t i = 0; i < found.size(); ++i) {
    check_close(what + "[" + std::to_string(i) + "]", found.at(i), expected[size_t(i)], rtol, atol);
  }
}

// Compares the gradient of a backward kernel in float64 with central differences of the forward kernel.
inline void check_gradient(const std::string &name, const cohort::AttrMap &attrs, const std::vector<Array> &inputs,
                           double step = 1e-5, double rtol = 1e-5, double atol = 1e-7) {
  OpRun run(name, attrs, inputs);
  const cohort::Gradient g = run.gradient();
  CHECK(g.kind == cohort::Gradient::Kind::kKernel);
  std::vector<Array> heads;
  for (int i = 0; i < run.op.num_visible(run.parsed); ++i) {
    const Array &out = run.outputs()[size_t(i)];
    heads.emplace_back(out.shape(), out.dtype(), spread(out.size(), -1, 1, 17 + i));
  }
  const std::vector<Array> grads = run.backward(heads);
  const auto loss = [&](const std::vector<Array> &at) {
    OpRun once(name, attrs, at);
    double sum = 0;
    for (size_t i = 0; i < heads.size(); ++i) {
      for (int64_t k = 0; k < heads[i].size(); ++k) sum += heads[i].at(k) * once.outputs()[i].at(k);
    }
    return sum;
  };
  for (size_t i = 0; i < g.of.size(); ++i) {
    const size_t input = size_t(g.of[i]);
    for (int64_t k = 0; k < inputs[input].size(); ++k) {
      std::vector<Array> moved = inputs;
      const double x = moved[input].at(k), h = step * std::max(1.0, std::fabs(x));
      moved[input].set(k, x + h);
      const double above = loss(moved);
      moved[input].set(k, x - h);
      const double below = loss(moved);
      check_close(name + ": gradient of input " + std::to_string(input) + "[" + std::to_string(k) + "]", grads[i].at(k),
                  (above - below) / (2 * h), rtol, atol);
    }
  }
  // The same in place, on more threads, and with single gradients left out.
  RunOptions other;
  other.in_place = true;
  other.num_threads = 3;
  OpRun again(name, attrs, inputs, other);
  const std::vector<Array> others = again.backward(heads);
  for (size_t i = 0; i < g.of.size(); ++i) CHECK(others[i].same_bits(grads[i]));
}

}  // namespace unit
