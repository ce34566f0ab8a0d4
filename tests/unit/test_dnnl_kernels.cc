// SPDX-License-Identifier: Apache-2.0
// The neural-network kernels of the cpu backend, run without a plan. Float64 passes are held to naive references and,
// backward, to central differences; all other types, layouts and numbers of threads are held to float64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cpu/dnnl_kernel.hpp"
#include "device/kernel_table.hpp"
#include "op/activation.hpp"
#include "op/op.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

using Values = std::vector<double>;
using Layouts = std::vector<std::string>;

// Numbers in (-1, 1) that depend on the seed only. Steps of 1 / 1024, all different while there are fewer than 2048, so
// that float16 represents them and maxima have no ties.
Values noise(int64_t count, unsigned seed) {
  Values values(static_cast<size_t>(count), 0);
  uint64_t at = seed * 2654435761u % 2047;
  for (double &v : values) {
    at = (at * 1103 + 331) % 2047;
    v = double(int64_t(at) - 1023) / 1024;
  }
  return values;
}

// Memory with guard bytes on both sides, filled with rubbish.
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
      if (data_[-ptrdiff_t(i)] != 0xa5) unit::fail(__FILE__, __LINE__, what + ": wrote before its memory");
    }
    for (const unsigned char *p = data_ + bytes_; p < memory_.data() + memory_.size(); ++p) {
      if (*p != 0xa5) unit::fail(__FILE__, __LINE__, what + ": wrote behind its memory");
    }
  }

 private:
  static constexpr size_t kGuard = 64;
  size_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char *data_;
};

template <typename Fn>
void as_type(Dtype dtype, Fn &&fn) {
  dispatch(dtype, fn);
}

void store(const Values &values, Dtype dtype, void *to) {
  as_type(dtype, [&](auto type) {
    using T = decltype(type);
    for (size_t i = 0; i < values.size(); ++i) static_cast<T *>(to)[i] = cast_element<T>(values[i]);
  });
}

Values load(const void *from, Dtype dtype, int64_t count) {
  Values values(static_cast<size_t>(count));
  as_type(dtype, [&](auto type) {
    using T = decltype(type);
    for (size_t i = 0; i < values.size(); ++i) values[i] = cast_element<double>(static_cast<const T *>(from)[i]);
  });
  return values;
}

std::shared_ptr<const Layout> layout_named(const std::string &name, const Shape &shape) {
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

void reorder(const TensorSpec &from, const TensorSpec &to, void *source, void *target, int num_threads) {
  StepSpec spec;
  spec.op = "_reorder";
  spec.inputs = {from};
  spec.outputs = {to};
  spec.num_threads = num_threads;
  cpu_kernels().find("_reorder")->make(spec)->run({&source, &target, nullptr, nullptr}, {num_threads, nullptr});
}

struct Settings {
  Dtype dtype = Dtype::kFloat64;
  std::string layout;  // of the inputs as they come: "", "last", "block"
  int num_threads = 1;
  bool is_train = true;
  bool constant = false;
  std::vector<PostOp> post;
  std::vector<bool> wanted;  // gradients; empty: all
};

struct Results {
  std::vector<Values> outputs, grads, inputs_after;
};

// Runs one kernel on row-major values; changes of layout go through "_reorder", as in a plan.
struct Step {
  StepSpec spec;
  std::unique_ptr<Kernel> kernel;
};

std::vector<Values> run_step(Step &step, const std::vector<Values> &inputs, const std::string &layout, Buffer *saved,
                             std::vector<Values> *inputs_after) {
  StepSpec &spec = step.spec;
  if (!step.kernel) {
    if (!layout.empty() && spec.inputs[0].dtype == Dtype::kFloat32) {
      for (TensorSpec &t : spec.inputs) t.layout = layout_named(layout, t.shape);
    }
    const KernelEntry *entry = cpu_kernels().find(spec.op);
    if (!entry) unit::fail(__FILE__, __LINE__, "no kernel for " + spec.op);
    if (!entry->any_layout) {
      for (TensorSpec &t : spec.inputs) t.layout = nullptr;
    }
    step.kernel = entry->make(spec);
  }
  const Lane lane{spec.num_threads, nullptr};
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
  step.kernel->run({in_pointers.data(), out_pointers.data(), scratch.data(), saved ? saved->data() : nullptr}, lane);
  scratch.check(spec.op + " scratch");
  if (saved) saved->check(spec.op + " saved");

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
    // What a kernel writes it takes row-major; some layouts of weights cannot be read back.
    if (inputs_after) inputs_after->push_back(spec.inputs[i].layout ? before[i] : read(spec.inputs[i], in[i]));
  }
  for (const auto &[i, o] : spec.inplace) {  // the same where the two share memory
    out_pointers[size_t(o)] = in_pointers[size_t(i)];
    step.kernel->run({in_pointers.data(), out_pointers.data(), scratch.data(), saved ? saved->data() : nullptr}, lane);
    CHECK(read(spec.outputs[size_t(o)], in[size_t(i)]) == results[size_t(o)]);
  }
  return results;
}

// Forward, and backward with head gradients, of one operator.
Results run_op(const std::string &name, const AttrMap &attributes, const std::vector<Tensor> &inputs,
               const Settings &s) {
  const Op &op = get_op(name);
  const Attrs attrs = op.parse(attributes);
  const int num_own = op.num_inputs(attrs, int(inputs.size()));
  Shapes in_shapes, out_shapes(size_t(op.num_outputs(attrs)));
  Dtypes in_dtypes(size_t(num_own), Dtype::kNone), out_dtypes(out_shapes.size(), Dtype::kNone);
  for (int i = 0; i < num_own; ++i) in_shapes.push_back(inputs[size_t(i)].shape);
  in_dtypes[0] = s.dtype;
  op.infer_shape(attrs, in_shapes, out_shapes);
  op.infer_dtype(attrs, in_dtypes, out_dtypes);
  for (Dtype &dtype : in_dtypes) {
    if (dtype == Dtype::kNone) dtype = s.dtype;  // lengths: any type
  }

  Step forward;
  forward.spec.op = op.name;
  forward.spec.attrs = attrs.pointer();
  forward.spec.is_train = s.is_train;
  const Gradient gradient = op.gradient_of(attrs);
  forward.spec.keep_for_backward = s.is_train;
  forward.spec.num_threads = s.num_threads;
  forward.spec.post = s.post;
  std::vector<Values> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    forward.spec.inputs.push_back({inputs[i].shape, i < size_t(num_own) ? in_dtypes[i] : s.dtype, nullptr});
    forward.spec.constant.push_back(s.constant && i > 0);
    values.push_back(inputs[i].values);
  }
  for (size_t i = 0; i < out_shapes.size(); ++i) {
    forward.spec.outputs.push_back({out_shapes[i], out_dtypes[i], nullptr});
    forward.spec.wanted.push_back(true);
  }
  Results results;
  Buffer none(0);
  // The kernel says how much it saves when it is made, so it is made by a first run; the second must repeat it.
  Buffer big(1 << 22);
  std::vector<Values> after;
  results.outputs = run_step(forward, values, s.layout, &big, &after);
  results.inputs_after = after;
  CHECK(forward.spec.saved_bytes <= big.bytes());
  Buffer saved(forward.spec.saved_bytes);
  const std::vector<Values> again = run_step(forward, values, s.layout, &saved, nullptr);
  CHECK(again == results.outputs);
  if (!s.is_train || gradient.kind != Gradient::Kind::kKernel) return results;

  Step backward;
  StepSpec &spec = backward.spec;
  spec.op = "_backward_" + op.name;
  spec.attrs = attrs.pointer();
  spec.is_train = true;
  spec.num_threads = s.num_threads;
  spec.forward = forward.kernel.get();
  spec.post = s.post;
  std::vector<Values> heads;
  if (gradient.head_grads) {
    for (int i = 0; i < op.num_visible(attrs); ++i) {
      spec.inputs.push_back({out_shapes[size_t(i)], out_dtypes[size_t(i)], nullptr});
      heads.push_back(noise(out_shapes[size_t(i)].size(), unsigned(77 + i)));
    }
  }
  for (int i : gradient.inputs) {
    spec.inputs.push_back({inputs[size_t(i)].shape, in_dtypes[size_t(i)], nullptr});
    heads.push_back(after[size_t(i)]);
  }
  for (int i : gradient.outputs) {
    spec.inputs.push_back({out_shapes[size_t(i)], out_dtypes[size_t(i)], nullptr});
    heads.push_back(results.outputs[size_t(i)]);
  }
  for (size_t i = 0; i < gradient.of.size(); ++i) {
    spec.outputs.push_back({inputs[size_t(gradient.of[i])].shape, in_dtypes[size_t(gradient.of[i])], nullptr});
    spec.wanted.push_back(s.wanted.empty() || s.wanted[i]);
  }
  spec.constant.assign(spec.inputs.size(), false);
  results.grads = run_step(backward, heads, s.layout, &saved, nullptr);
  CHECK(run_step(backward, heads, s.layout, &saved, nullptr) == results.grads);  // from run to run, bit by bit
  return results;
}

std::string settings_text(const Settings &s) {
  return text(dtype_name(s.dtype), " layout '", s.layout, "' threads ", s.num_threads, s.is_train ? " train" : " eval");
}

void compare(const std::string &what, const Values &found, const Values &expected, double rtol, double atol) {
  if (found.size() != expected.size()) {
    unit::fail(__FILE__, __LINE__, text(what, ": expected ", expected.size(), " elements, found ", found.size()));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= atol + rtol * std::abs(expected[i]))) {
      unit::fail(__FILE__, __LINE__, text(what, "[", i, "]: expected ", expected[i], ", found ", found[i]));
    }
  }
}

struct Case {
  std::string op;
  AttrMap attrs;
  std::vector<Shape> shapes;
  std::function<Values(const std::vector<Tensor> &)> reference = nullptr;  // of output 0
  std::vector<int> differentiable = {};                                    // inputs held to central differences
  int visible = 1;
  std::function<void(std::vector<Tensor> &)> prepare = nullptr;
};

std::vector<Tensor> tensors_of(const Case &c) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < c.shapes.size(); ++i)
    tensors.push_back({c.shapes[i], noise(c.shapes[i].size(), unsigned(i) + 1)});
  if (c.prepare) c.prepare(tensors);
  return tensors;
}

// sum over visible outputs of <output, head gradient>
long double loss_of(const Case &c, const std::vector<Tensor> &inputs) {
  Settings s;
  const Op &op = get_op(c.op);
  const Attrs attrs = op.parse(c.attrs);
  const Results r = run_op(c.op, c.attrs, inputs, s);
  long double loss = 0;  // double would round away more than the differences allow
  for (int i = 0; i < c.visible; ++i) {
    const Values head = noise(int64_t(r.outputs[size_t(i)].size()), unsigned(77 + i));
    for (size_t j = 0; j < head.size(); ++j) loss += (long double)(head[j]) * r.outputs[size_t(i)][j];
  }
  return loss;
}

void check_case(const Case &c) {
  const std::vector<Tensor> inputs = tensors_of(c);
  const Results truth = run_op(c.op, c.attrs, inputs, Settings());
  if (c.reference) compare(c.op + " float64", truth.outputs[0], c.reference(inputs), 1e-12, 1e-12);
  const Gradient gradient = get_op(c.op).gradient_of(get_op(c.op).parse(c.attrs));
  for (int input : c.differentiable) {
    const size_t at = size_t(std::find(gradient.of.begin(), gradient.of.end(), input) - gradient.of.begin());
    CHECK(at < truth.grads.size());
    const int64_t count = int64_t(inputs[size_t(input)].values.size()), step = std::max<int64_t>(1, count / 40);
    for (int64_t i = 0; i < count; i += step) {  // every one of small inputs, some of large ones
      constexpr double kEpsilon = 1e-5;
      std::vector<Tensor> moved = inputs;
      moved[size_t(input)].values[size_t(i)] += kEpsilon;
      const long double up = loss_of(c, moved);
      moved[size_t(input)].values[size_t(i)] -= 2 * kEpsilon;
      const double slope = double(up - loss_of(c, moved)) / (2 * kEpsilon), found = truth.grads[at][size_t(i)];
      if (std::abs(found - slope) > 1e-6 + 1e-5 * std::abs(slope)) {
        unit::fail(__FILE__, __LINE__,
                   text(c.op, " gradient of input ", input, "[", i, "]: expected ", slope, ", found ", found));
      }
    }
  }
  struct Kind {
    Dtype dtype;
    double rtol, atol;
  };
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
        const Results found = run_op(c.op, c.attrs, inputs, s);
        const std::string what = c.op + " " + settings_text(s);
        for (int i = 0; i < c.visible; ++i) {
          compare(what + " output " + std::to_string(i), found.outputs[size_t(i)], truth.outputs[size_t(i)], kind.rtol,
                  kind.atol);
        }
        for (size_t i = 0; i < found.grads.size(); ++i) {
          double largest = 1;
          for (double v : truth.grads[i]) largest = std::max(largest, std::abs(v));
          compare(what + " gradient " + std::to_string(i), found.grads[i], truth.grads[i], kind.rtol,
                  kind.atol * largest);
        }
        if (kind.dtype != Dtype::kFloat32) continue;
        for (size_t skipped = 0; found.grads.size() > 1 && skipped < found.grads.size();
             ++skipped) {  // one gradient fewer changes no other
          s.wanted.assign(found.grads.size(), true);
          s.wanted[skipped] = false;
          const Results fewer = run_op(c.op, c.attrs, inputs, s);
          for (size_t i = 0; i < found.grads.size(); ++i) {
            if (i != skipped) compare(what + " fewer gradients", fewer.grads[i], found.grads[i], 1e-5, 1e-6);
          }
        }
        s.is_train = false;
        s.constant = true;
        Settings exact;
        exact.is_train = false;
        compare(what + " inference", run_op(c.op, c.attrs, inputs, s).outputs[0],
                run_op(c.op, c.attrs, inputs, exact).outputs[0], kind.rtol, kind.atol);
      }
    }
  }
}

Values convolution_reference(const std::vector<Tensor> &in, int64_t stride, int64_t pad, int64_t dilate,
                             int64_t groups) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t oh = (x[2] + 2 * pad - dilate * (w[2] - 1) - 1) / stride + 1;
  const int64_t ow = (x[3] + 2 * pad - dilate * (w[3] - 1) - 1) / stride + 1;
  Values y;
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t o = 0; o < w[0]; ++o) {
      for (int64_t i = 0; i < oh; ++i) {
        for (int64_t j = 0; j < ow; ++j) {
          double sum = in.size() > 2 ? in[2].values[size_t(o)] : 0;
          for (int64_t c = 0; c < w[1]; ++c) {
            for (int64_t a = 0; a < w[2]; ++a) {
              for (int64_t b = 0; b < w[3]; ++b) {
                const int64_t u = i * stride - pad + a * dilate, v = j * stride - pad + b * dilate;
                if (u < 0 || v < 0 || u >= x[2] || v >= x[3]) continue;
                const int64_t channel = o / (w[0] / groups) * w[1] + c;
                sum += in[0].values[size_t(((n * x[1] + channel) * x[2] + u) * x[3] + v)] *
                       in[1].values[size_t(((o * w[1] + c) * w[2] + a) * w[3] + b)];
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

}  // namespace

TEST(convolution_of_odd_channels) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "5"}, {"pad", "(1,1)"}, {"stride", "(2,2)"}},
         {{2, 3, 7, 6}, {5, 3, 3, 3}, {5}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 2, 1, 1, 1); };
  check_case(c);
}

TEST(convolution_of_full_blocks) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "32"}, {"pad", "(1,1)"}, {"no_bias", "True"}},
         {{2, 16, 6, 5}, {32, 16, 3, 3}},
         nullptr,
         {0, 1}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 1, 1); };
  check_case(c);
}

TEST(convolution_in_the_way_of_winograd) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "32"}, {"pad", "(1,1)"}},
         {{3, 32, 15, 14}, {32, 32, 3, 3}, {32}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 1, 1); };
  check_case(c);
  c.shapes.push_back({3, 32, 15, 14});  // with an addend and relu
  const std::vector<Tensor> inputs = tensors_of(c);
  Values expected = convolution_reference({inputs[0], inputs[1], inputs[2]}, 1, 1, 1, 1);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + inputs[3].values[i], 0.0);
  Settings s;
  s.dtype = Dtype::kFloat32;
  s.is_train = false;
  s.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, ActivationAttrs::kRelu}};
  for (bool constant : {false, true}) {
    s.constant = constant;
    compare("Convolution after Winograd with post-operations", run_op(c.op, c.attrs, inputs, s).outputs[0], expected,
            1e-4, 1e-4);
  }
}

TEST(convolution_of_an_image) {
  Case c{"Convolution",
         {{"kernel", "(5,5)"}, {"num_filter", "16"}},
         {{2, 1, 9, 8}, {16, 1, 5, 5}, {16}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 0, 1, 1); };
  check_case(c);
}

TEST(convolution_from_many_to_odd_channels) {
  Case c{"Convolution",
         {{"kernel", "(1,1)"}, {"num_filter", "10"}},
         {{2, 16, 4, 4}, {10, 16, 1, 1}, {10}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 0, 1, 1); };
  check_case(c);
}

TEST(convolution_in_groups_and_dilated) {
  Case c{"Convolution",
         {{"kernel", "(2,2)"}, {"num_filter", "6"}, {"num_group", "2"}, {"dilate", "(2,2)"}, {"pad", "(1,1)"}},
         {{2, 4, 6, 5}, {6, 2, 2, 2}, {6}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 2, 2); };
  check_case(c);
}

TEST(convolution_of_each_channel_alone) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "32"}, {"num_group", "32"}, {"pad", "(1,1)"}},
         {{2, 32, 5, 5}, {32, 1, 3, 3}, {32}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 1, 32); };
  check_case(c);
}

TEST(convolution_over_one_and_three_axes) {
  check_case({"Convolution",
              {{"kernel", "(3,)"}, {"num_filter", "4"}, {"stride", "(2,)"}, {"pad", "(1,)"}},
              {{2, 3, 8}, {4, 3, 3}, {4}},
              nullptr,
              {0, 1, 2}});
  check_case({"Convolution",
              {{"kernel", "(2,2,2)"}, {"num_filter", "3"}, {"no_bias", "1"}},
              {{1, 2, 4, 3, 4}, {3, 2, 2, 2, 2}},
              nullptr,
              {0, 1}});
}

TEST(convolution_channels_last_by_attribute) {
  check_case({"Convolution",
              {{"kernel", "(3,3)"}, {"num_filter", "4"}, {"num_group", "2"}, {"layout", "NHWC"}},
              {{2, 5, 6, 6}, {4, 3, 3, 3}, {4}},
              nullptr,
              {0, 1, 2}});
}

TEST(convolution_fuses_activation_and_sum) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "16"}, {"pad", "(1,1)"}},
         {{2, 16, 5, 5}, {16, 16, 3, 3}, {16}}};
  for (int filters : {16, 5}) {
    c.attrs["num_filter"] = std::to_string(filters);
    c.shapes = {{2, 16, 5, 5}, {filters, 16, 3, 3}, {filters}, {2, filters, 5, 5}};
    const std::vector<Tensor> inputs = tensors_of(c);
    for (int type :
         {ActivationAttrs::kRelu, ActivationAttrs::kTanh, ActivationAttrs::kSigmoid, ActivationAttrs::kSoftrelu}) {
      Settings s;
      s.is_train = false;
      s.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, type}};
      Values expected = convolution_reference({inputs[0], inputs[1], inputs[2]}, 1, 1, 1, 1);
      for (size_t i = 0; i < expected.size(); ++i) {
        const double x = expected[i] + inputs[3].values[i];
        expected[i] = type == ActivationAttrs::kRelu      ? std::max(x, 0.0)
                      : type == ActivationAttrs::kTanh    ? std::tanh(x)
                      : type == ActivationAttrs::kSigmoid ? 1 / (1 + std::exp(-x))
                                                          : std::log1p(std::exp(x));
      }
      for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
        for (const char *layout : {"", "last", "block"}) {
          s.dtype = dtype;
          s.layout = layout;
          compare("Convolution with post-operations " + settings_text(s),
                  run_op("Convolution", c.attrs, inputs, s).outputs[0], expected, 1e-4, 1e-5);
        }
      }
    }
  }
}

TEST(fully_connected) {
  for (int64_t rows : {1, 2, 5, 64}) {
    Case c{"FullyConnected", {{"num_hidden", "7"}}, {{rows, 3, 4}, {7, 12}, {7}}, nullptr, {0, 1, 2}};
    c.reference = [](const std::vector<Tensor> &in) {
      Values y;
      for (int64_t i = 0; i < in[0].shape[0]; ++i) {
        for (int64_t j = 0; j < 7; ++j) {
          double sum = in[2].values[size_t(j)];
          for (int64_t k = 0; k < 12; ++k) sum += in[0].values[size_t(i * 12 + k)] * in[1].values[size_t(j * 12 + k)];
          y.push_back(sum);
        }
      }
      return y;
    };
    check_case(c);
  }
  check_case({"FullyConnected",
              {{"num_hidden", "9"}, {"flatten", "False"}, {"no_bias", "True"}},
              {{2, 3, 33}, {9, 33}},
              nullptr,
              {0, 1}});
  check_case({"FullyConnected", {{"num_hidden", "128"}}, {{32, 100}, {128, 100}, {128}}, nullptr, {}});
}

TEST(fully_connected_fuses_activation_and_sum) {
  for (int64_t rows : {1, 3, 40}) {
    Case c{"FullyConnected", {{"num_hidden", "6"}}, {{rows, 50}, {6, 50}, {6}, {rows, 6}}};
    const std::vector<Tensor> inputs = tensors_of(c);
    const std::vector<Tensor> own(inputs.begin(), inputs.begin() + 3);
    Settings s;
    s.is_train = false;
    Values expected = run_op(c.op, c.attrs, own, s).outputs[0];
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + inputs[3].values[i], 0.0);
    s.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, ActivationAttrs::kRelu}};
    for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
      for (bool constant : {false, true}) {
        s.dtype = dtype;
        s.constant = constant;
        compare("FullyConnected with post-operations", run_op(c.op, c.attrs, inputs, s).outputs[0], expected, 1e-4,
                1e-5);
      }
    }
  }
}

TEST(fully_connected_of_an_empty_batch) {
  Settings s;
  s.dtype = Dtype::kFloat32;
  const Results r =
      run_op("FullyConnected", {{"num_hidden", "2"}}, {{{0, 3}, {}}, {{2, 3}, noise(6, 1)}, {{2}, {1, 2}}}, s);
  CHECK(r.outputs[0].empty());
  CHECK(r.grads[1] == Values(6, 0));
  CHECK(r.grads[2] == Values(2, 0));
}

TEST(activations) {
  for (const char *type : {"relu", "sigmoid", "tanh", "softrelu", "softsign"}) {
    check_case({"Activation", {{"act_type", type}}, {{2, 16, 3, 4}}, nullptr, {0}});
    check_case({"Activation", {{"act_type", type}}, {{5, 1001}}, nullptr, {0}});
  }
}

TEST(pooling_of_all_kinds) {
  for (const char *convention : {"valid", "full"}) {
    for (const char *type : {"max", "avg", "sum", "lp"}) {
      for (int64_t channels : {3, 16}) {
        AttrMap attrs = {{"kernel", "(3,2)"},
                         {"stride", "(2,2)"},
                         {"pad", "(1,1)"},
                         {"pool_type", type},
                         {"pooling_convention", convention}};
        if (std::string(type) == "lp") attrs["p_value"] = "2";
        check_case({"Pooling", attrs, {{2, channels, 6, 6}}, nullptr, {0}});
        if (std::string(type) != "avg") continue;
        attrs["count_include_pad"] = "False";
        check_case({"Pooling", attrs, {{2, channels, 6, 6}}, nullptr, {0}});
      }
    }
  }
  for (const char *type : {"max", "avg", "sum"}) {
    check_case({"Pooling", {{"global_pool", "True"}, {"pool_type", type}}, {{2, 16, 3, 5}}, nullptr, {0}});
    check_case({"Pooling", {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pool_type", type}}, {{2, 3, 8}}, nullptr, {0}});
    check_case({"Pooling",
                {{"kernel", "(2,2,2)"}, {"stride", "(2,1,2)"}, {"pad", "(1,0,1)"}, {"pool_type", type}},
                {{1, 2, 4, 4, 3}},
                nullptr,
                {0}});
    check_case({"Pooling",
                {{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pool_type", type}, {"layout", "NHWC"}},
                {{2, 5, 6, 3}},
                nullptr,
                {0}});
    check_case({"Pooling",
                {{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pool_type", type}, {"pooling_convention", "same"}},
                {{2, 3, 7, 8}},
                nullptr,
                {0}});
    check_case({"Pooling_v1",
                {{"kernel", "(3,3)"},
                 {"stride", "(2,2)"},
                 {"pad", "(1,1)"},
                 {"pool_type", type},
                 {"pooling_convention", "full"}},
                {{2, 3, 6, 6}},
                nullptr,
                {0}});
  }
}

TEST(the_first_of_equal_maxima_gets_the_gradient) {
  for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    for (const char *layout : {"", "last", "block"}) {
      Settings s;
      s.dtype = dtype;
      s.layout = layout;
      const Results r = run_op("Pooling", {{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pool_type", "max"}},
                               {{{1, 16, 2, 4}, Values(16 * 8, 0.5)}}, s);
      const Values head = noise(32, 77);
      Values expected;
      for (size_t c = 0; c < 16; ++c) {
        for (double v : {head[2 * c], 0.0, head[2 * c + 1], 0.0, 0.0, 0.0, 0.0, 0.0}) expected.push_back(v);
      }
      compare("ties " + settings_text(s), r.grads[0], expected, 0, 1e-6);
    }
  }
}

namespace {
Case batch_norm(AttrMap attrs, Shape data, int64_t channels) {
  const Shape vector{channels};
  Case c{"BatchNorm", attrs, {data, vector, vector, vector, vector}, nullptr, {0, 2}};
  if (attrs.count("fix_gamma")) c.differentiable = {0, 1, 2};
  c.prepare = [](std::vector<Tensor> &t) {
    for (double &v : t[4].values) v = 1.5 + v;
  };
  return c;
}
}  // namespace

TEST(batch_norm_in_training) {
  for (const char *global : {"False", "True"}) {
    check_case(batch_norm({{"fix_gamma", "False"}, {"use_global_stats", global}}, {3, 5, 4, 3}, 5));
    check_case(batch_norm({{"fix_gamma", "False"}, {"use_global_stats", global}}, {2, 16, 4, 3}, 16));
    check_case(batch_norm({{"use_global_stats", global}}, {2, 16, 4, 3}, 16));
    check_case(batch_norm({{"fix_gamma", "False"}, {"use_global_stats", global}}, {6, 4}, 4));
    check_case(batch_norm({{"fix_gamma", "False"}, {"axis", "-1"}}, {3, 4, 5, 6}, 6));
    check_case(batch_norm({{"fix_gamma", "False"}, {"axis", "2"}}, {3, 4, 5, 6}, 5));
    check_case(batch_norm({{"fix_gamma", "False"}}, {2, 3, 2, 3, 2}, 3));
  }
}

TEST(batch_norm_moves_its_statistics_and_overwrites_a_fixed_gamma) {
  const Case c = batch_norm({{"momentum", "0.75"}, {"eps", "0.01"}, {"output_mean_var", "True"}}, {3, 2, 2}, 2);
  const std::vector<Tensor> inputs = tensors_of(c);
  for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16}) {
    Settings s;
    s.dtype = dtype;
    const Results r = run_op(c.op, c.attrs, inputs, s);
    for (size_t channel = 0; channel < 2; ++channel) {
      double mean = 0, variance = 0;
      const auto at = [&](size_t n, size_t i) { return inputs[0].values[(n * 2 + channel) * 2 + i]; };
      for (size_t n = 0; n < 3; ++n) mean += (at(n, 0) + at(n, 1)) / 6;
      for (size_t n = 0; n < 3; ++n) {
        for (size_t i = 0; i < 2; ++i) variance += (at(n, i) - mean) * (at(n, i) - mean) / 6;
      }
      CHECK_EQ(r.inputs_after[1][channel], 1.0);
      CHECK_NEAR(r.inputs_after[3][channel], 0.75 * inputs[3].values[channel] + 0.25 * mean, 1e-6);
      CHECK_NEAR(r.inputs_after[4][channel], 0.75 * inputs[4].values[channel] + 0.25 * variance, 1e-6);
      CHECK_NEAR(r.outputs[1][channel], mean, 1e-6);
      CHECK_NEAR(r.outputs[2][channel], 1 / std::sqrt(variance + 0.01), 1e-5);
      CHECK_EQ(r.grads[1][channel], 0.0);
    }
  }
}

TEST(batch_norm_fuses_relu_in_training) {
  for (int64_t channels : {5, 16}) {
    Case c = batch_norm({{"fix_gamma", "False"}}, {3, channels, 4, 3}, channels);
    const std::vector<Tensor> inputs = tensors_of(c);
    const Results bare = run_op(c.op, c.attrs, inputs, Settings());
    Values expected = bare.outputs[0];
    Values head = noise(int64_t(expected.size()), 77), masked = head;
    for (size_t i = 0; i < expected.size(); ++i) {
      masked[i] = expected[i] > 0 ? head[i] : 0;
      expected[i] = std::max(expected[i], 0.0);
    }
    Settings s;
    s.post = {{PostOp::Kind::kActivation, ActivationAttrs::kRelu}};
    const Results truth = run_op(c.op, c.attrs, inputs, s);
    compare("BatchNorm with relu float64", truth.outputs[0], expected, 1e-12, 1e-12);
    for (size_t ch = 0; ch < size_t(channels); ++ch) {
      double sum = 0;
      for (size_t n = 0; n < 3; ++n) {
        for (size_t i = 0; i < 12; ++i) sum += masked[(n * size_t(channels) + ch) * 12 + i];
      }
      CHECK_NEAR(truth.grads[2][ch], sum, 1e-9);
    }
    for (const char *layout : {"", "last", "block"}) {
      for (int num_threads : {1, 2}) {
        s.dtype = Dtype::kFloat32;
        s.layout = layout;
        s.num_threads = num_threads;
        const Results r = run_op(c.op, c.attrs, inputs, s);
        compare("BatchNorm with relu " + settings_text(s), r.outputs[0], truth.outputs[0], 1e-4, 1e-5);
        for (size_t i = 0; i < 3; ++i) {
          compare("BatchNorm with relu, gradient " + settings_text(s), r.grads[i], truth.grads[i], 1e-4, 1e-4);
        }
      }
    }
  }
}

TEST(deconvolution_is_the_transposed_convolution) {
  Case c{"Deconvolution",
         {{"kernel", "(3,3)"},
          {"num_filter", "4"},
          {"stride", "(2,2)"},
          {"pad", "(1,1)"},
          {"adj", "(1,1)"},
          {"no_bias", "False"}},
         {{2, 3, 4, 3}, {3, 4, 3, 3}, {4}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) {
    const int64_t oh = 8, ow = 6;
    Values y(size_t(2 * 4 * oh * ow));
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t f = 0; f < 4; ++f) {
        for (int64_t i = 0; i < oh * ow; ++i) y[size_t((n * 4 + f) * oh * ow + i)] = in[2].values[size_t(f)];
        for (int64_t ch = 0; ch < 3; ++ch) {
          for (int64_t i = 0; i < 4 * 3 * 9; ++i) {
            const int64_t a = i / 27, b = i / 9 % 3, u = i / 3 % 3, v = i % 3;
            const int64_t row = a * 2 - 1 + u, column = b * 2 - 1 + v;
            if (row < 0 || row >= oh || column < 0 || column >= ow) continue;
            y[size_t(((n * 4 + f) * oh + row) * ow + column)] += in[0].values[size_t(((n * 3 + ch) * 4 + a) * 3 + b)] *
                                                                 in[1].values[size_t(((ch * 4 + f) * 3 + u) * 3 + v)];
          }
        }
      }
    }
    return y;
  };
  check_case(c);
  check_case({"Deconvolution",
              {{"kernel", "(2,2)"}, {"num_filter", "32"}, {"num_group", "2"}, {"stride", "(2,2)"}},
              {{2, 32, 3, 4}, {32, 16, 2, 2}},
              nullptr,
              {0, 1}});
  check_case({"Deconvolution",
              {{"kernel", "(3,3)"}, {"num_filter", "2"}, {"dilate", "(2,2)"}, {"target_shape", "(7,6)"}},
              {{1, 3, 4, 3}, {3, 2, 3, 3}},
              nullptr,
              {0, 1}});
  check_case({"Deconvolution",
              {{"kernel", "(4,)"}, {"num_filter", "3"}, {"stride", "(3,)"}, {"adj", "(2,)"}},
              {{2, 2, 3}, {2, 3, 4}},
              nullptr,
              {0, 1}});
  check_case({"Deconvolution",
              {{"kernel", "(2,3)"}, {"num_filter", "4"}, {"num_group", "2"}, {"layout", "NHWC"}},
              {{2, 3, 4, 6}, {6, 2, 3, 2}},
              nullptr,
              {0, 1}});
}

TEST(softmax_and_its_relatives) {
  for (const char *op : {"softmax", "log_softmax", "softmin"}) {
    for (const char *axis : {"0", "1", "-1"}) {
      Case c{op, {{"axis", axis}, {"temperature", "0.5"}}, {{3, 5, 7}}, nullptr, {0}};
      c.reference = [op = std::string(op), axis = std::string(axis)](const std::vector<Tensor> &in) {
        const Shape &s = in[0].shape;
        const int a = axis == "0" ? 0 : axis == "1" ? 1 : 2;
        const int64_t inner = s.size(a + 1, 3), cols = s[a];
        Values y(in[0].values.size());
        for (size_t i = 0; i < y.size(); ++i) {
          const int64_t first = int64_t(i) / (inner * cols) * inner * cols + int64_t(i) % inner;
          const double sign = op == "softmin" ? -2 : 2;
          double sum = 0;
          for (int64_t k = 0; k < cols; ++k) sum += std::exp(sign * in[0].values[size_t(first + k * inner)]);
          y[i] = std::exp(sign * in[0].values[i]) / sum;
          if (op == "log_softmax") y[i] = std::log(y[i]);
        }
        return y;
      };
      check_case(c);
    }
    check_case({op, {}, {{4, 1100}}, nullptr, {0}});
    check_case({op, {{"axis", "0"}}, {{6, 300}}, nullptr, {0}});
  }
  check_case({"SoftmaxActivation", {}, {{3, 4, 5}}, nullptr, {0}});
  check_case({"SoftmaxActivation", {{"mode", "channel"}}, {{3, 4, 5}}, nullptr, {0}});
}

TEST(softmax_stops_at_the_length) {
  Case c{"softmax", {{"use_length", "True"}, {"axis", "1"}}, {{2, 4, 2}, {2, 2}}, nullptr, {0}};
  c.prepare = [](std::vector<Tensor> &t) { t[1].values = {4, 1, 0, 2}; };
  c.reference = [](const std::vector<Tensor> &in) {
    Values y(16, 0);
    for (size_t n = 0; n < 2; ++n) {
      for (size_t j = 0; j < 2; ++j) {
        const size_t length = size_t(in[1].values[n * 2 + j]);
        double sum = 0;
        for (size_t k = 0; k < length; ++k) sum += std::exp(in[0].values[(n * 4 + k) * 2 + j]);
        for (size_t k = 0; k < length; ++k) y[(n * 4 + k) * 2 + j] = std::exp(in[0].values[(n * 4 + k) * 2 + j]) / sum;
      }
    }
    return y;
  };
  check_case(c);
}

TEST(leaky_relu_of_all_kinds) {
  for (const char *type : {"leaky", "elu", "selu", "gelu"}) {
    check_case({"LeakyReLU", {{"act_type", type}, {"slope", "0.3"}}, {{2, 16, 3, 4}}, nullptr, {0}});
  }
  check_case({"LeakyReLU", {{"slope", "-0.3"}}, {{2, 16, 3, 4}}, nullptr, {0}});
  for (const Shape &gamma : {Shape{16}, Shape{1}, Shape{2, 16, 3}}) {
    check_case({"LeakyReLU", {{"act_type", "prelu"}}, {{2, 16, 3}, gamma}, nullptr, {0, 1}});
  }
}

TEST(random_slopes_of_leaky_relu_keep_to_their_bounds) {
  Settings s;
  s.dtype = Dtype::kFloat32;
  s.is_train = false;
  const AttrMap attrs = {{"act_type", "rrelu"}, {"lower_bound", "0.2"}, {"upper_bound", "0.4"}};
  compare("rrelu out of training", run_op("LeakyReLU", attrs, {{{2}, {-1, 2}}}, s).outputs[0], {-0.3, 2}, 1e-6, 0);

  // In training: two runs of one kernel draw anew, so run_op, which asks for repetition, does not do.
  StepSpec spec;
  spec.op = "LeakyReLU";
  spec.attrs = get_op("LeakyReLU").parse(attrs).pointer();
  spec.is_train = spec.keep_for_backward = true;
  spec.seed = 5;
  spec.inputs = spec.outputs = {{{1000}, Dtype::kFloat32, nullptr}};
  const auto forward = cpu_kernels().find("LeakyReLU")->make(spec);
  std::vector<float> x(1000, -1), y(1000), dx(1000);
  std::vector<char> saved(spec.saved_bytes);
  void *in = x.data(), *out = y.data(), *grad = dx.data();
  forward->run({&in, &out, nullptr, saved.data()}, {1, nullptr});
  spec.op = "_backward_LeakyReLU";
  spec.forward = forward.get();
  cpu_kernels().find("_backward_LeakyReLU")->make(spec)->run({&in, &grad, nullptr, saved.data()}, {1, nullptr});
  double mean = 0;
  for (size_t i = 0; i < 1000; ++i) {
    CHECK(y[i] <= -0.2f && y[i] >= -0.4f);
    CHECK_EQ(dx[i], y[i]);  // head -1 times the slope, as the output is
    mean += double(y[i]) / 1000;
  }
  CHECK_NEAR(mean, -0.3, 0.01);
}

TEST(layer_norm) {
  for (const char *axis : {"-1", "0", "1"}) {
    const Shape data{4, 6, 37};
    const int64_t length = data[normalize_axis(std::stoi(axis), 3, "axis")];
    check_case({"LayerNorm", {{"axis", axis}, {"eps", "0.01"}}, {data, {length}, {length}}, nullptr, {0, 1, 2}});
  }
  Case c{"LayerNorm", {{"output_mean_var", "True"}}, {{3, 20}, {20}, {20}}};
  const std::vector<Tensor> inputs = tensors_of(c);
  const Results r = run_op(c.op, c.attrs, inputs, Settings());
  for (size_t row = 0; row < 3; ++row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < 20; ++i) mean += inputs[0].values[row * 20 + i] / 20;
    for (size_t i = 0; i < 20; ++i) variance += std::pow(inputs[0].values[row * 20 + i] - mean, 2) / 20;
    CHECK_NEAR(r.outputs[1][row], mean, 1e-12);
    CHECK_NEAR(r.outputs[2][row], std::sqrt(variance + 1e-5), 1e-8);
    CHECK_NEAR(r.outputs[0][row * 20 + 3],
               (inputs[0].values[row * 20 + 3] - mean) / std::sqrt(variance + 1e-5) * inputs[1].values[3] +
                   inputs[2].values[3],
               1e-7);
  }
}

namespace {
Values slice_of(const Values &v, size_t begin, size_t count) {
  return Values(v.begin() + ptrdiff_t(begin), v.begin() + ptrdiff_t(begin + count));
}

// One direction of one layer, from its packed parameters.
Values rnn_reference(const std::string &mode, const std::vector<Tensor> &in, size_t hidden) {
  const size_t time = size_t(in[0].shape[0]), batch = size_t(in[0].shape[1]), inputs = size_t(in[0].shape[2]);
  const size_t gates = (mode == "lstm" ? 4 : mode == "gru" ? 3 : 1) * hidden;
  const Values wx = slice_of(in[1].values, 0, gates * inputs),
               wh = slice_of(in[1].values, gates * inputs, gates * hidden);
  const Values bx = slice_of(in[1].values, gates * (inputs + hidden), gates);
  const Values bh = slice_of(in[1].values, gates * (inputs + hidden) + gates, gates);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  Values y(time * batch * hidden);
  for (size_t n = 0; n < batch; ++n) {
    Values h = slice_of(in[2].values, n * hidden, hidden), c(hidden);
    if (mode == "lstm") c = slice_of(in[3].values, n * hidden, hidden);
    for (size_t t = 0; t < time; ++t) {
      Values x = bx, u = bh, next(hidden);
      for (size_t g = 0; g < gates; ++g) {
        for (size_t i = 0; i < inputs; ++i) x[g] += wx[g * inputs + i] * in[0].values[(t * batch + n) * inputs + i];
        for (size_t i = 0; i < hidden; ++i) u[g] += wh[g * hidden + i] * h[i];
      }
      for (size_t k = 0; k < hidden; ++k) {
        const auto sum = [&](size_t gate) { return x[gate * hidden + k] + u[gate * hidden + k]; };
        if (mode == "lstm") {
          c[k] = sigmoid(sum(1)) * c[k] + sigmoid(sum(0)) * std::tanh(sum(2));
          next[k] = sigmoid(sum(3)) * std::tanh(c[k]);
        } else if (mode == "gru") {
          const double r = sigmoid(sum(0)), z = sigmoid(sum(1));
          next[k] = (1 - z) * std::tanh(x[2 * hidden + k] + r * u[2 * hidden + k]) + z * h[k];
        } else {
          next[k] = mode == "rnn_relu" ? std::max(sum(0), 0.0) : std::tanh(sum(0));
        }
        y[(t * batch + n) * hidden + k] = next[k];
      }
      h = next;
    }
  }
  return y;
}

Case rnn(const std::string &mode, AttrMap attrs, int64_t layers, int64_t directions, int64_t hidden, int64_t out,
         Shape data) {
  attrs.insert({{"mode", mode}, {"num_layers", std::to_string(layers)}, {"state_size", std::to_string(hidden)}});
  if (directions == 2) attrs["bidirectional"] = "True";
  const int64_t gates = (mode == "lstm" ? 4 : mode == "gru" ? 3 : 1) * hidden;
  int64_t count = 0;
  for (int64_t l = 0; l < layers; ++l) {
    count +=
        directions * (gates * ((l == 0 ? data[2] : out * directions) + out + 2) + (out == hidden ? 0 : out * hidden));
  }
  Case c{"RNN", attrs, {data, {count}, {layers * directions, data[1], out}}, nullptr, {0, 1, 2}};
  if (mode == "lstm") c.shapes.push_back({layers * directions, data[1], hidden}), c.differentiable.push_back(3);
  c.visible = attrs.count("state_outputs") ? (mode == "lstm" ? 3 : 2) : 1;
  return c;
}
}  // namespace

TEST(rnn_of_all_cells) {
  for (const char *mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    Case c = rnn(mode, {}, 1, 1, 5, 5, {4, 3, 6});
    c.reference = [mode](const std::vector<Tensor> &in) { return rnn_reference(mode, in, 5); };
    check_case(c);
    check_case(rnn(mode, {{"state_outputs", "True"}}, 2, 2, 4, 4, {3, 2, 5}));
    check_case(rnn(mode, {{"state_outputs", "True"}}, 3, 1, 33, 33, {2, 3, 17}));
  }
}

TEST(rnn_with_projection_and_clipping) {
  check_case(rnn("lstm", {{"state_outputs", "True"}, {"projection_size", "3"}}, 2, 2, 4, 3, {3, 2, 5}));
  check_case(rnn("lstm", {{"lstm_state_clip_min", "-0.2"}, {"lstm_state_clip_max", "0.2"}}, 1, 1, 4, 4, {3, 2, 5}));
}

TEST(rnn_stops_at_the_length_of_each_sequence) {
  for (const char *mode : {"lstm", "gru", "rnn_tanh"}) {
    Case c = rnn(mode, {{"state_outputs", "True"}, {"use_sequence_length", "True"}}, 2, 2, 3, 3, {4, 3, 5});
    c.shapes.push_back({3});
    c.prepare = [](std::vector<Tensor> &t) { t.back().values = {4, 1, 3}; };
    check_case(c);
    // A sequence alone, cut to its length, gives the same.
    const std::vector<Tensor> inputs = tensors_of(c);
    const Results whole = run_op("RNN", c.attrs, inputs, Settings());
    std::vector<Tensor> one = inputs;
    one.pop_back();
    one[0] = {{3, 1, 5}, {}};
    for (size_t t = 0; t < 3; ++t) {
      for (size_t i = 0; i < 5; ++i) one[0].values.push_back(inputs[0].values[(t * 3 + 2) * 5 + i]);
    }
    for (size_t s = 2; s < one.size(); ++s) {
      one[s] = {{4, 1, 3}, {}};
      for (size_t l = 0; l < 4; ++l) {
        for (size_t i = 0; i < 3; ++i) one[s].values.push_back(inputs[s].values[(l * 3 + 2) * 3 + i]);
      }
    }
    AttrMap attrs = c.attrs;
    attrs.erase("use_sequence_length");
    const Results cut = run_op("RNN", attrs, one, Settings());
    for (size_t t = 0; t < 4; ++t) {
      for (size_t i = 0; i < 6; ++i) {
        CHECK_NEAR(whole.outputs[0][(t * 3 + 2) * 6 + i], t < 3 ? cut.outputs[0][t * 6 + i] : 0.0, 1e-12);
      }
    }
    for (size_t l = 0; l < 4; ++l) {
      for (size_t i = 0; i < 3; ++i)
        CHECK_NEAR(whole.outputs[1][(l * 3 + 2) * 3 + i], cut.outputs[1][l * 3 + i], 1e-12);
    }
  }
}

UNIT_MAIN()
