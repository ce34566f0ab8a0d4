// SPDX-License-Identifier: Apache-2.0
// Cases for the neural-network kernels of the cpu backend, run without a plan: in all types, layouts and numbers of
// threads, with guard bytes around all memory. Float64 results are compared with naive references and, backward, with
// central differences; everything else is compared with float64. (run_kernel.hpp does the same for kernels without
// layouts.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cpu/dnnl_kernel.hpp"
#include "op/activation.hpp"
#include "op/op.hpp"
#include "support/lone_kernel.hpp"
#include "support/unit.hpp"

namespace unit {

using namespace cohort;

using Values = std::vector<double>;

// Numbers in (-1, 1) that depend on the seed only. They are multiples of 1 / 1024, all different up to 2047 of them, so
// that float16 represents them and maxima have no ties.
inline Values noise(int64_t count, unsigned seed) {
  Values values(static_cast<size_t>(count), 0);
  uint64_t at = seed * 2654435761u % 2047;
  for (double &v : values) {
    at = (at * 1103 + 331) % 2047;
    v = double(int64_t(at) - 1023) / 1024;
  }
  return values;
}

// Memory with guard bytes on both sides, filled with garbage.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes), memory_(bytes + 2 * kGuard + 64, 0xa5) {
    const auto start = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    data_ = reinterpret_cast<unsigned char *>((start + 63) / 64 * 64);
    std::memset(data_, 0x7f, bytes);  // as float: huge
  }
  void *data() { return data_; }
  size_t bytes() const { return bytes_; }
  void check(const std::string &what) const {
    for (size_t i = 1; i <= kGuard; ++i) {
      if (data_[-ptrdiff_t(i)] != 0xa5) fail(__FILE__, __LINE__, what + ": wrote before its memory");
    }
    for (const unsigned char *p = data_ + bytes_; p < memory_.data() + memory_.size(); ++p) {
      if (*p != 0xa5) fail(__FILE__, __LINE__, what + ": wrote behind its memory");
    }
  }

 private:
  static constexpr size_t kGuard = 64;
  size_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char *data_;
};

template <typename Fn>
inline void as_type(Dtype dtype, Fn &&fn) {
  dispatch(dtype, fn);
}

inline void store(const Values &values, Dtype dtype, void *to) {
  as_type(dtype, [&](auto type) {
    using T = decltype(type);
    for (size_t i = 0; i < values.size(); ++i) static_cast<T *>(to)[i] = cast_element<T>(values[i]);
  });
}

inline Values load(const void *from, Dtype dtype, int64_t count) {
  Values values(static_cast<size_t>(count));
  as_type(dtype, [&](auto type) {
    using T = decltype(type);
    for (size_t i = 0; i < values.size(); ++i) values[i] = cast_element<double>(static_cast<const T *>(from)[i]);
  });
  return values;
}

inline std::shared_ptr<const Layout> layout_named(const std::string &name, const Shape &shape) {
  if (name.empty() || shape.rank() < 3) return nullptr;
  const dnn::Dims dims = dnn::dims_of(shape);
  const dnn::Desc plain = dnn::row_major(dims, Dtype::kFloat32);
  if (name == "last") return dnn::layout_of(dnn::channels_last(dims, Dtype::kFloat32), plain);
  using Tag = dnnl::memory::format_tag;
  const Tag tags[] = {Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b};
  if (shape[1] % 16 != 0) return nullptr;
  return dnn::layout_of(dnn::Desc(dims, dnnl::memory::data_type::f32, tags[shape.rank() - 3]), plain);
}

struct Tensor {
  Shape shape;
  Values values;
};

inline void reorder(const TensorSpec &from, const TensorSpec &to, void *source, void *target, int num_threads) {
  StepSpec spec;
  spec.op = "_reorder";
  spec.inputs = {from};
  spec.outputs = {to};
  spec.num_threads = num_threads;
  const std::unique_ptr<Kernel> kernel = make_kernel(spec);
  run_kernel(*kernel, {&source, &target, nullptr, nullptr}, spec.num_threads);
}

struct Settings {
  Dtype dtype = Dtype::kFloat64;
  std::string layout;  // of the inputs before the kernel's own: "", "last", "block"
  int num_threads = 1;
  bool is_train = true;
  bool constant = false;
  std::vector<PostOp> post;
  std::vector<bool> wanted;   // gradients; empty: all
  bool forward_only = false;  // and only once
};

struct Results {
  std::vector<Values> outputs, grads, inputs_after;
};

struct Step {
  StepSpec spec;
  std::unique_ptr<Kernel> kernel;
};

// With inputs in a layout, as far as the kernel accepts it.
inline void make_step(Step &step, const std::string &layout) {
  StepSpec &spec = step.spec;
  if (!layout.empty() && spec.inputs[0].dtype == Dtype::kFloat32) {
    for (TensorSpec &t : spec.inputs) t.layout = layout_named(layout, t.shape);
  }
  step.kernel = make_kernel(spec);
}

// Runs a kernel on row-major values; "_reorder" changes layouts, as in a plan.
inline std::vector<Values> run_step(const Step &step, const std::vector<Values> &inputs, Buffer &saved,
                                    std::vector<Values> *inputs_after = nullptr) {
  const StepSpec &spec = step.spec;
  std::vector<Buffer> in, out;
  std::vector<Values> before;
  std::vector<void *> in_pointers, out_pointers;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const TensorSpec &t = spec.inputs[i];
    Buffer plain(size_t(t.shape.size()) * dtype_size(t.dtype));
    store(inputs[i], t.dtype, plain.data());
    before.push_back(load(plain.data(), t.dtype, t.shape.size()));
    in.emplace_back(t.bytes());
    reorder({t.shape, t.dtype, nullptr}, t, plain.data(), in.back().data(), spec.num_threads);
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) out.emplace_back(spec.outputs[i].bytes());
  for (Buffer &b : in) in_pointers.push_back(b.data());
  for (size_t i = 0; i < out.size(); ++i) out_pointers.push_back(spec.wanted[i] ? out[i].data() : nullptr);
  Buffer scratch(spec.scratch_bytes);
  RandomStream random;
  const Args args{in_pointers.data(), out_pointers.data(), scratch.data(), saved.data(), nullptr, &random};
  run_kernel(*step.kernel, args, spec.num_threads);
  scratch.check(spec.op + " scratch");
  saved.check(spec.op + " saved");

  const auto read = [&](const TensorSpec &t, Buffer &b) {
    Buffer plain(size_t(t.shape.size()) * dtype_size(t.dtype));
    reorder(t, {t.shape, t.dtype, nullptr}, b.data(), plain.data(), spec.num_threads);
    return load(plain.data(), t.dtype, t.shape.size());
  };
  std::vector<Values> results;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].check(spec.op + " output");
    results.push_back(spec.wanted[i] ? read(spec.outputs[i], out[i]) : Values());
  }
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].check(spec.op + " input");
    // Inputs that a kernel writes are row-major; some layouts of weights cannot be read back.
    if (inputs_after) inputs_after->push_back(spec.inputs[i].layout ? before[i] : read(spec.inputs[i], in[i]));
  }
  for (const auto &[i, o] : spec.inplace) {  // the same with shared memory, possible only for equal sizes
    if (spec.inputs[size_t(i)].bytes() != spec.outputs[size_t(o)].bytes()) continue;
    out_pointers[size_t(o)] = in_pointers[size_t(i)];
    run_kernel(*step.kernel, args, spec.num_threads);
    CHECK(read(spec.outputs[size_t(o)], in[size_t(i)]) == results[size_t(o)]);
  }
  return results;
}

// The forward step of an operator on inputs of these shapes; the operator's own come first, then those of s.post.
inline Step forward_step(const Op &op, const Attrs &attrs, const std::vector<Tensor> &inputs, const Settings &s) {
  const int num_own = op.num_inputs(attrs, int(inputs.size()));
  Shapes in_shapes, out_shapes(size_t(op.num_outputs(attrs)));
  Dtypes in_dtypes(size_t(num_own), Dtype::kNone), out_dtypes(out_shapes.size(), Dtype::kNone);
  for (int i = 0; i < num_own; ++i) in_shapes.push_back(inputs[size_t(i)].shape);
  in_dtypes[0] = s.dtype;
  op.infer_shape(attrs, in_shapes, out_shapes);
  op.infer_dtype(attrs, in_dtypes, out_dtypes);
  in_dtypes.resize(inputs.size(), Dtype::kNone);

  Step step;
  step.spec.op = op.name;
  step.spec.attrs = attrs.pointer();
  step.spec.is_train = step.spec.keep_for_backward = s.is_train;
  step.spec.num_threads = s.num_threads;
  step.spec.post = s.post;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Dtype dtype = in_dtypes[i] == Dtype::kNone ? s.dtype : in_dtypes[i];  // lengths: any type
    step.spec.inputs.push_back({inputs[i].shape, dtype, nullptr});
    step.spec.constant.push_back(s.constant && i > 0);
  }
  for (size_t i = 0; i < out_shapes.size(); ++i) {
    step.spec.outputs.push_back({out_shapes[i], out_dtypes[i], nullptr});
    step.spec.wanted.push_back(true);
  }
  make_step(step, s.layout);
  return step;
}

// The backward step of a forward step that has run with `results`, and the values it reads: noise for head gradients.
inline Step backward_step(const Op &op, const Attrs &attrs, const Step &forward, const Settings &s,
                          const Results &results, std::vector<Values> &values) {
  const Gradient gradient = op.gradient_of(attrs);
  Step step;
  StepSpec &spec = step.spec;
  spec.op = "_backward_" + op.name;
  spec.attrs = attrs.pointer();
  spec.is_train = true;
  spec.num_threads = s.num_threads;
  spec.forward = forward.kernel.get();
  spec.post = s.post;
  const auto like = [](const TensorSpec &t) { return TensorSpec{t.shape, t.dtype, nullptr}; };
  for (int i = 0; gradient.head_grads && i < op.num_visible(attrs); ++i) {
    spec.inputs.push_back(like(forward.spec.outputs[size_t(i)]));
    values.push_back(noise(spec.inputs.back().shape.size(), unsigned(77 + i)));
  }
  for (int i : gradient.inputs) {
    spec.inputs.push_back(like(forward.spec.inputs[size_t(i)]));
    values.push_back(results.inputs_after[size_t(i)]);
  }
  for (int i : gradient.outputs) {
    spec.inputs.push_back(like(forward.spec.outputs[size_t(i)]));
    values.push_back(results.outputs[size_t(i)]);
  }
  for (size_t i = 0; i < gradient.of.size(); ++i) {
    spec.outputs.push_back(like(forward.spec.inputs[size_t(gradient.of[i])]));
    spec.wanted.push_back(s.wanted.empty() || s.wanted[i]);
  }
  spec.constant.assign(spec.inputs.size(), false);
  make_step(step, s.layout);
  return step;
}

// Forward, and backward with head gradients, of one operator, each twice: the second run must give the same bits.
inline Results run_op(const std::string &name, const AttrMap &attributes, const std::vector<Tensor> &inputs,
                      const Settings &s) {
  const Op &op = get_op(name);
  const Attrs attrs = op.parse(attributes);
  const Step forward = forward_step(op, attrs, inputs, s);
  std::vector<Values> values, heads;
  for (const Tensor &input : inputs) values.push_back(input.values);
  Buffer saved(forward.spec.saved_bytes);
  Results results;
  results.outputs = run_step(forward, values, saved, &results.inputs_after);
  if (s.forward_only) return results;
  CHECK(run_step(forward, values, saved) == results.outputs);
  if (!s.is_train || op.gradient_of(attrs).kind != Gradient::Kind::kKernel) return results;

  const Step backward = backward_step(op, attrs, forward, s, results, heads);
  results.grads = run_step(backward, heads, saved);
  CHECK(run_step(backward, heads, saved) == results.grads);
  return results;
}

inline std::string settings_text(const Settings &s) {
  return text(dtype_name(s.dtype), " layout '", s.layout, "' threads ", s.num_threads, s.is_train ? " train" : " eval");
}

inline void compare(const std::string &what, const Values &found, const Values &expected, double rtol, double atol) {
  if (found.size() != expected.size()) {
    fail(__FILE__, __LINE__, text(what, ": expected ", expected.size(), " elements, found ", found.size()));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= atol + rtol * std::abs(expected[i]))) {
      fail(__FILE__, __LINE__, text(what, "[", i, "]: expected ", expected[i], ", found ", found[i]));
    }
  }
}

struct Case {
  std::string op;
  AttrMap attrs;
  std::vector<Shape> shapes;
  std::function<Values(const std::vector<Tensor> &)> reference = nullptr;  // of output 0
  std::vector<int> differentiable = {};                                    // inputs checked against central differences
  int visible = 1;
  std::function<void(std::vector<Tensor> &)> prepare = nullptr;
};

inline std::vector<Tensor> tensors_of(const Case &c) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < c.shapes.size(); ++i)
    tensors.push_back({c.shapes[i], noise(c.shapes[i].size(), unsigned(i) + 1)});
  if (c.prepare) c.prepare(tensors);
  return tensors;
}

// sum over visible outputs of <output, head gradient>
inline long double loss_of(const Case &c, const std::vector<Tensor> &inputs) {
  Settings s;
  s.forward_only = true;
  const Results r = run_op(c.op, c.attrs, inputs, s);
  long double loss = 0;  // double is not precise enough for the differences
  for (int i = 0; i < c.visible; ++i) {
    const Values head = noise(int64_t(r.outputs[size_t(i)].size()), unsigned(77 + i));
    for (size_t j = 0; j < head.size(); ++j) loss += (long double)(head[j]) * r.outputs[size_t(i)][j];
  }
  return loss;
}

// Every element of small inputs, some of large ones. Formulas only: a sanitizer learns nothing new here.
inline void check_slopes(const Case &c, const std::vector<Tensor> &inputs, const Results &truth) {
  if (kSanitized) return;
  const Gradient gradient = get_op(c.op).gradient_of(get_op(c.op).parse(c.attrs));
  for (int input : c.differentiable) {
    const size_t at = size_t(std::find(gradient.of.begin(), gradient.of.end(), input) - gradient.of.begin());
    CHECK(at < truth.grads.size());
    const int64_t count = int64_t(inputs[size_t(input)].values.size()), step = std::max<int64_t>(1, count / 40);
    for (int64_t i = 0; i < count; i += step) {
      constexpr double kEpsilon = 1e-5;
      std::vector<Tensor> moved = inputs;
      moved[size_t(input)].values[size_t(i)] += kEpsilon;
      const long double up = loss_of(c, moved);
      moved[size_t(input)].values[size_t(i)] -= 2 * kEpsilon;
      const double slope = double(up - loss_of(c, moved)) / (2 * kEpsilon), found = truth.grads[at][size_t(i)];
      if (std::abs(found - slope) > 1e-6 + 1e-5 * std::abs(slope)) {
        fail(__FILE__, __LINE__,
             text(c.op, " gradient of input ", input, "[", i, "]: expected ", slope, ", found ", found));
      }
    }
  }
}

// Leaves out each gradient in turn: that must not change the others.
inline void check_fewer_gradients(const Case &c, const std::vector<Tensor> &inputs, Settings s, const Results &all) {
  for (size_t skipped = 0; all.grads.size() > 1 && skipped < all.grads.size(); ++skipped) {
    s.wanted.assign(all.grads.size(), true);
    s.wanted[skipped] = false;
    const Results fewer = run_op(c.op, c.attrs, inputs, s);
    for (size_t i = 0; i < all.grads.size(); ++i) {
      if (i != skipped) {
        compare(c.op + " " + settings_text(s) + " fewer gradients", fewer.grads[i], all.grads[i], 1e-5, 1e-6);
      }
    }
  }
}

struct Kind {
  Dtype dtype;
  double rtol, atol;
};

inline void check_settings(const Case &c, const std::vector<Tensor> &inputs, const Kind &kind, Settings s,
                           const Results &truth, const Values &inference) {
  const Results found = run_op(c.op, c.attrs, inputs, s);
  const std::string what = c.op + " " + settings_text(s);
  for (int i = 0; i < c.visible; ++i) {
    compare(what + " output " + std::to_string(i), found.outputs[size_t(i)], truth.outputs[size_t(i)], kind.rtol,
            kind.atol);
  }
  for (size_t i = 0; i < found.grads.size(); ++i) {
    double largest = 1;
    for (double v : truth.grads[i]) largest = std::max(largest, std::abs(v));
    compare(what + " gradient " + std::to_string(i), found.grads[i], truth.grads[i], kind.rtol, kind.atol * largest);
  }
  if (kind.dtype != Dtype::kFloat32) return;
  check_fewer_gradients(c, inputs, s, found);
  s.is_train = false;
  s.constant = true;
  compare(what + " inference", run_op(c.op, c.attrs, inputs, s).outputs[0], inference, kind.rtol, kind.atol);
}

inline void check_case(const Case &c) {
  const std::vector<Tensor> inputs = tensors_of(c);
  const Results truth = run_op(c.op, c.attrs, inputs, Settings());
  if (c.reference) compare(c.op + " float64", truth.outputs[0], c.reference(inputs), 1e-12, 1e-12);
  check_slopes(c, inputs, truth);
  Settings exact;
  exact.is_train = false;
  const Values inference = run_op(c.op, c.attrs, inputs, exact).outputs[0];
  const Kind kinds[] = {{Dtype::kFloat64, 1e-12, 1e-12},
                        {Dtype::kFloat32, 1e-4, 2e-5},
                        {Dtype::kFloat16, 1e-2, 2e-2},
                        {Dtype::kBfloat16, 8e-2, 1.5e-1}};
  for (const Kind &kind : kinds) {
    for (const char *layout : {"", "last", "block"}) {
      if (*layout && kind.dtype != Dtype::kFloat32) continue;
      for (int num_threads : {1, 2}) {
        Settings s;
        s.dtype = kind.dtype;
        s.layout = layout;
        s.num_threads = num_threads;
        check_settings(c, inputs, kind, s, truth, inference);
      }
    }
  }
}

}  // namespace unit
