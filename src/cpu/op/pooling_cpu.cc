// SPDX-License-Identifier: Apache-2.0
// Pooling. Maxima and means of float32 by oneDNN in the layout of the data, where its windows are the same; all else
// as plain loops over row-major data.
#include "kernels/pooling_windows.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <type_traits>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using namespace dnn;
using namespace pooling;

// ---- sums and norms of a line of places at a time ------------------------------------------------------------------

// Calls fn(distance of neighbours), as a constant for common distances: those loops are vectorised.
template <typename Fn>
void with_step(int64_t step, Fn &&fn) {
  if (step == 1) return fn(std::integral_constant<int64_t, 1>());
  if (step == 2) return fn(std::integral_constant<int64_t, 2>());
  fn(step);
}

// sums[i] += x[i * step]^power
template <typename T>
struct TakeElements {
  using Sum = typename Accumulator<T>::type;
  static void run(int power, const T *x, int64_t step, int64_t count, Sum *sums) {
    with_step(step, [=](auto apart) {
      const auto each = [=](auto &&powered) {
        COHORT_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < count; ++i) sums[i] += powered(cast_element<Sum>(x[i * apart]));
      };
      if (power == 1) return each([](Sum element) { return element; });
      if (power == 2) return each([](Sum element) { return element * element; });
      each([](Sum element) { return element * element * element; });
    });
  }
};

// sums[i * step] += shares[i] (x[i * x_step] / norms[i])^power; nothing where the norm is 0.
template <typename T>
struct GiveShares {
  using Sum = typename Accumulator<T>::type;
  static void run(int power, const Sum *shares, const Sum *norms, const T *x, int64_t x_step, int64_t step,
                  int64_t count, Sum *sums) {
    with_step(step, [=](auto apart) {
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) {
        Sum given = shares[i];
        if (power > 0) {
          const Sum share = cast_element<Sum>(x[i * x_step]) / norms[i];
          given = norms[i] == 0 ? Sum(0) : given * (power == 1 ? share : share * share);
        }
        sums[i * apart] += given;
      }
    });
  }
};

// Iterates over the elements of the windows of places [begin, end) of a line, for all places together: calls fn(first
// place that has the element, behind the last one, its offset in the data for the first one). Rows of windows are
// taken in order, each of them from its end if `back`.
template <typename Fn>
void elements_of_line(const WindowGrid &w, int64_t line, int64_t begin, int64_t end, bool back, Fn &&fn) {
  const WindowExtent window = window_at(w, line * w.out[2]);
  const int64_t stride = w.stride[2], width = w.in[2];
  for (int64_t i = window.begin[0]; i < window.end[0]; ++i) {
    for (int64_t j = window.begin[1]; j < window.end[1]; ++j) {
      for (int64_t k = 0; k < w.kernel[2]; ++k) {
        const int64_t shift = (back ? w.kernel[2] - 1 - k : k) - w.pad[2];
        // Most lines need no division.
        const int64_t first = shift + begin * stride >= 0 ? begin : std::max(begin, (stride - 1 - shift) / stride);
        const int64_t beyond = (end - 1) * stride + shift - (width - 1);
        const int64_t last = beyond <= 0 ? end : end - (beyond + stride - 1) / stride;
        if (first < last) fn(first, last, (i * w.in[1] + j) * width + first * stride + shift);
      }
    }
  }
}

constexpr int64_t kPlaces = 512;  // places at once

// Whether lines are long enough for these loops.
bool goes_by_lines(const PoolRun &pool) { return pool.type != PoolingAttrs::kMax && pool.windows.out[2] >= 8; }
int power_of(const PoolRun &pool) { return pool.type == PoolingAttrs::kLp ? pool.p : 1; }

template <typename T>
struct PoolLines {
  using Sum = typename Accumulator<T>::type;
  static void run(const PoolRun &pool, const T *x, T *y) {
    const WindowGrid &w = pool.windows;
    Sum sums[kPlaces];
    for (int64_t line = 0; line < w.out[0] * w.out[1]; ++line) {
      for (int64_t begin = 0; begin < w.out[2]; begin += kPlaces) {
        const int64_t end = std::min(begin + kPlaces, w.out[2]), place = line * w.out[2] + begin;
        std::fill_n(sums, end - begin, Sum(0));
        elements_of_line(w, line, begin, end, false, [&](int64_t first, int64_t last, int64_t at) {
          TakeElements<T>::run(power_of(pool), x + at * w.in_step, w.stride[2] * w.in_step, last - first,
                               sums + first - begin);
        });
        for (int64_t i = 0; i < end - begin; ++i) {
          Sum value = sums[i];
          if (pool.type == PoolingAttrs::kAvg) value /= Sum(window_at(w, place + i).divisor);
          if (pool.type == PoolingAttrs::kLp) value = root(value, pool.p);
          y[(place + i) * w.out_step] = cast_element<T>(value);
        }
      }
    }
  }
};

// Sums the elements of the plane; sums are zeros before.
template <typename T>
struct GiveLines {
  using Sum = typename Accumulator<T>::type;
  static void run(const PoolRun &pool, const T *dy, const T *x, const T *y, Sum *sums) {
    const WindowGrid &w = pool.windows;
    Sum shares[kPlaces], norms[kPlaces];
    for (int64_t line = 0; line < w.out[0] * w.out[1]; ++line) {
      for (int64_t begin = 0; begin < w.out[2]; begin += kPlaces) {
        const int64_t end = std::min(begin + kPlaces, w.out[2]), place = line * w.out[2] + begin;
        for (int64_t i = 0; i < end - begin; ++i) {
          shares[i] = cast_element<Sum>(dy[(place + i) * w.out_step]);
          if (pool.type == PoolingAttrs::kAvg) shares[i] /= Sum(window_at(w, place + i).divisor);
          if (pool.type == PoolingAttrs::kLp) norms[i] = cast_element<Sum>(y[(place + i) * w.out_step]);
        }
        elements_of_line(w, line, begin, end, true, [&](int64_t first, int64_t last, int64_t at) {
          GiveShares<T>::run(power_of(pool) - 1, shares + first - begin, norms + first - begin, x + at * w.in_step,
                             w.stride[2] * w.in_step, w.stride[2], last - first, sums + at);
        });
      }
    }
  }
};

// ---- a place at a time ---------------------------------------------------------------------------------------------

template <typename T>
void pool_forward(const PoolRun &pool, const T *data, T *result, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const WindowGrid &w = pool.windows;
  const auto pool_lines = best_version<PoolLines<T>>();
  parallel_for(lane, w.planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const T *x = data + pool.in_plane(plane);
      T *y = result + pool.out_plane(plane);
      if (goes_by_lines(pool)) {
        pool_lines(pool, x, y);
        continue;
      }
      for (int64_t place = 0; place < pool.num_places(); ++place) {
        const WindowExtent window = window_at(w, place);
        Sum value = pool.type == PoolingAttrs::kMax && !window.has_zeros ? lowest<T>() : Sum(0);
        for_each_in(w, window, [&](int64_t at) {
          const Sum element = cast_element<Sum>(x[at]);
          if (pool.type == PoolingAttrs::kMax) {
            value = element > value || element != element ? element : value;
          } else if (pool.type == PoolingAttrs::kLp) {
            value += power(element, pool.p);
          } else {
            value += element;
          }
        });
        if (pool.type == PoolingAttrs::kAvg) value /= Sum(window.divisor);
        if (pool.type == PoolingAttrs::kLp) value = root(value, pool.p);
        y[place * w.out_step] = cast_element<T>(value);
      }
    }
  });
}

// The first of several maxima in row-major order gets the gradient; in Pooling_v1 all do. `scratch` has one Sum per
// element.
template <typename T>
void pool_backward(const PoolRun &pool, const T *head, const T *data, const T *result, T *grad,
                   typename Accumulator<T>::type *scratch, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const WindowGrid &w = pool.windows;
  const auto give_lines = best_version<GiveLines<T>>();
  parallel_for(lane, w.planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const T *dy = head + pool.out_plane(plane), *x = data + pool.in_plane(plane), *y = result + pool.out_plane(plane);
      T *dx = grad + pool.in_plane(plane);
      Sum *const sums = scratch + plane * pool.num_elements();
      std::fill_n(sums, pool.num_elements(), Sum(0));
      const auto add = [&](int64_t at, Sum value) { sums[at / w.in_step] += value; };
      const bool by_lines = goes_by_lines(pool);
      if (by_lines) give_lines(pool, dy, x, y, sums);
      for (int64_t place = 0; !by_lines && place < pool.num_places(); ++place) {
        const WindowExtent window = window_at(w, place);
        const Sum g = cast_element<Sum>(dy[place * w.out_step]);
        if (pool.type == PoolingAttrs::kMax) {
          if (w.v1) {  // all maxima get it
            const Sum top = cast_element<Sum>(y[place * w.out_step]);
            for_each_in(w, window, [&](int64_t at) {
              if (cast_element<Sum>(x[at]) == top) add(at, g);
            });
            continue;
          }
          Sum top = lowest<T>();
          int64_t best = -1;
          for_each_in(w, window, [&](int64_t at) {
            const Sum element = cast_element<Sum>(x[at]);
            if (best < 0 || element > top) top = element, best = at;
          });
          if (best >= 0) add(best, g);
        } else if (pool.type == PoolingAttrs::kLp) {
          const Sum norm = cast_element<Sum>(y[place * w.out_step]);
          if (norm == 0 && pool.p > 1) continue;
          for_each_in(w, window, [&](int64_t at) {
            const Sum share = cast_element<Sum>(x[at]) / norm;
            add(at, g * (pool.p == 1 ? Sum(1) : pool.p == 2 ? share : share * share));
          });
        } else {
          const Sum share = pool.type == PoolingAttrs::kAvg ? g / Sum(window.divisor) : g;
          for_each_in(w, window, [&](int64_t at) { add(at, share); });
        }
      }
      for (int64_t i = 0; i < pool.num_elements(); ++i) dx[i * w.in_step] = cast_element<T>(sums[i]);
    }
  });
}

class PlainPooling final : public Kernel {
 public:
  explicit PlainPooling(StepSpec &spec)
      : pool_(pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape)),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "Pooling", [&](auto type) {
      using T = decltype(type);
      pool_forward(pool_, args.in<T>(0), args.out<T>(0), lane);
    });
  }

 private:
  const PoolRun pool_;
  const Dtype dtype_;
};

class PlainPoolingBackward final : public Kernel {
 public:
  explicit PlainPoolingBackward(StepSpec &spec)
      : pool_(pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[1].shape, spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype) {
    spec.scratch_bytes = size_t(spec.inputs[1].shape.size()) * (dtype_ == Dtype::kFloat64 ? 8 : 4);
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_Pooling", [&](auto type) {
      using T = decltype(type);
      using Sum = typename Accumulator<T>::type;
      pool_backward(pool_, args.in<T>(0), args.in<T>(1), args.in<T>(2), args.out<T>(0),
                    static_cast<Sum *>(args.scratch), lane);
    });
  }

 private:
  const PoolRun pool_;
  const Dtype dtype_;
};

// ---- oneDNN -------------------------------------------------------------------------------------------------------

struct Problem {
  algorithm alg;
  Desc data, result;
  Desc plain_data, plain_result;
  PoolWindow window;
};

// Empty if oneDNN's windows are different.
std::optional<Problem> problem_of(const PoolingAttrs &a, const TensorSpec &data, const Shape &result) {
  const bool last = channels_last(a.layout);
  const PoolingWindow window = pooling_window(a, data.shape);
  const int first = spatial_axis(a.layout);
  Problem p;
  bool beyond = false;  // a window reaches beyond the padding: MXNet's mean then divides by less than the kernel
  for (size_t k = 0; k < window.kernel.size(); ++k) {
    const int64_t length = data.shape[first + int(k)], num = result[first + int(k)];
    const int64_t behind = (num - 1) * window.stride[k] + window.kernel[k] - length - window.pad[k];
    // oneDNN requires that each window overlaps the data.
    if (window.pad[k] >= window.kernel[k] || behind >= window.kernel[k]) return std::nullopt;
    if ((num - 1) * window.stride[k] - window.pad[k] >= length) return std::nullopt;
    beyond = beyond || behind > window.pad[k];
    p.window.kernel.push_back(window.kernel[k]);
    p.window.stride.push_back(window.stride[k]);
    p.window.pad_begin.push_back(window.pad[k]);
    p.window.pad_end.push_back(std::max<int64_t>(behind, 0));
  }
  p.alg = algorithm::pooling_max;
  if (a.pool_type == PoolingAttrs::kAvg) {
    const bool includes = a.count_include_pad.value_or(true) || a.v1;
    if (includes && beyond && !a.v1) return std::nullopt;
    p.alg = includes ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding;
  }
  Dims from(data.shape.begin(), data.shape.end()), to(result.begin(), result.end());
  if (last) {
    std::rotate(from.begin() + 1, from.end() - 1, from.end());
    std::rotate(to.begin() + 1, to.end() - 1, to.end());
    p.plain_data = dnn::channels_last(from, data.dtype);
    p.plain_result = dnn::channels_last(to, data.dtype);
    p.data = p.plain_data;
    p.result = p.plain_result;
    return p;
  }
  p.plain_data = row_major(from, data.dtype);
  p.plain_result = row_major(to, data.dtype);
  p.data = data.layout ? desc_of(data) : p.plain_data;
  p.result = any_of(to, data.dtype);
  return p;
}

// ---- NaN ------------------------------------------------------------------------------------------------------------

// Whether there is a NaN among numbers whose bits these are: their exponents are full, and their fractions are not 0.
template <typename Bits>
struct FindNan {
  static bool run(const Bits *x, int64_t count, Bits infinity) {
    const Bits magnitude = Bits(Bits(~Bits(0)) >> 1);
    Bits largest = 0;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, Bits(x[i] & magnitude));
    return largest > infinity;
  }
};

// Offsets of elements, by their indices, in the layout of a descriptor.
class ElementOffsets {
 public:
  explicit ElementOffsets(const Desc &desc) : blocking_(blocking_of(desc)) {}
  int64_t at(int64_t batch, int64_t channel, const Axes &place) const {
    const size_t rank = blocking_.dims.size();
    std::array<int64_t, 5> index{batch, channel};
    std::copy(place.end() - int64_t(rank - 2), place.end(), index.begin() + 2);
    int64_t offset = blocking_.offset, inner = 1;
    for (size_t i = blocking_.inner_blocks.size(); i-- > 0;) {
      int64_t &along = index[size_t(blocking_.inner_axes[i])];
      offset += along % blocking_.inner_blocks[i] * inner;
      along /= blocking_.inner_blocks[i];
      inner *= blocking_.inner_blocks[i];
    }
    for (size_t a = 0; a < rank; ++a) offset += index[a] * blocking_.strides[a];
    return offset;
  }

 private:
  const Blocking blocking_;
};

// oneDNN's maximum of a window may leave a NaN out, depending on its place in the window. This looks for a NaN in the
// data and, only if there is one, writes a NaN to the windows that have one.
class NanOfWindows {
 public:
  NanOfWindows(const StepSpec &spec, const Desc &data, const Desc &result)
      : windows_(pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape).windows),
        dtype_(spec.inputs[0].dtype),
        num_stored_(int64_t(data.get_size() / dtype_size(dtype_))),
        data_(data),
        result_(result) {}

  void write(const Args &args, const Lane &lane) const {
    if (dtype_ == Dtype::kFloat32) return write_as<uint32_t>(args, lane, 0x7f800000);
    return write_as<uint16_t>(args, lane, 0x7f80);  // bfloat16
  }

 private:
  template <typename Bits>
  void write_as(const Args &args, const Lane &lane, Bits infinity) const {
    const auto find_nan = best_version<FindNan<Bits>>();
    const Bits *const x = static_cast<const Bits *>(args.inputs[0]);
    std::atomic<bool> any{false};
    parallel_for(lane, num_stored_, 16384, [&](int64_t begin, int64_t end) {
      if (find_nan(x + begin, end - begin, infinity)) any.store(true, std::memory_order_relaxed);
    });
    if (!any) return;
    Bits *const y = static_cast<Bits *>(args.outputs[0]);
    const WindowGrid &w = windows_;
    const Bits magnitude = Bits(Bits(~Bits(0)) >> 1), nan = Bits(infinity | (infinity >> 1));
    parallel_for(lane, w.planes, 1, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        const int64_t batch = plane / w.channels, channel = plane % w.channels;
        for (int64_t place = 0; place < w.out[0] * w.out[1] * w.out[2]; ++place) {
          const WindowExtent window = window_at(w, place);
          bool has_nan = false;
          for (Axes at = window.begin; at[0] < window.end[0]; ++at[0])
            for (at[1] = window.begin[1]; at[1] < window.end[1]; ++at[1])
              for (at[2] = window.begin[2]; at[2] < window.end[2]; ++at[2])
                has_nan |= Bits(x[data_.at(batch, channel, at)] & magnitude) > infinity;
          const Axes to{place / (w.out[1] * w.out[2]), place / w.out[2] % w.out[1], place % w.out[2]};
          if (has_nan) y[result_.at(batch, channel, to)] = nan;
        }
      }
    });
  }

  const WindowGrid windows_;
  const Dtype dtype_;
  const int64_t num_stored_;  // padding included
  const ElementOffsets data_, result_;
};

class PoolingForward final : public Kernel {
 public:
  using Pd = dnnl::pooling_forward::primitive_desc;
  PoolingForward(StepSpec &spec, const Problem &p, const Pd &pd, bool is_train, int num_threads)
      : problem_(p), pd_(pd), num_threads_(num_threads) {
    if (p.alg == algorithm::pooling_max && dtype_is_float(spec.inputs[0].dtype))  // int8 has no NaN
      nan_of_windows_.emplace(spec, pd.src_desc(), pd.dst_desc());
    std::vector<DnnlArg> operands = {{DNNL_ARG_SRC, pd.src_desc(), BufferRef::input(0)},
                                     {DNNL_ARG_DST, pd.dst_desc(), BufferRef::output(0)}};
    if (is_train && !is_empty(pd.workspace_desc())) {
      operands.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(),
                          BufferRef::saved(book(spec.saved_bytes, pd.workspace_desc().get_size()))});
    }
    call_ = DnnlCall(pd, name_of(spec), std::move(operands), spec);
    spec.inputs[0].layout = layout_of(pd.src_desc(), p.plain_data);
    spec.outputs[0].layout = layout_of(pd.dst_desc(), p.plain_result);
  }
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
    if (nan_of_windows_) nan_of_windows_->write(args, {num_threads_, nullptr});
  }
  const Problem &problem() const { return problem_; }
  const Pd &desc() const { return pd_; }

 private:
  const Problem problem_;
  const Pd pd_;
  const int num_threads_;
  DnnlCall call_;
  std::optional<NanOfWindows> nan_of_windows_;
};

class PoolingBackward final : public Kernel {
 public:
  PoolingBackward(StepSpec &spec, const PoolingForward &forward, const dnnl::pooling_backward::primitive_desc &pd,
                  int num_threads)
      : num_threads_(num_threads) {
    std::vector<DnnlArg> operands = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), BufferRef::input(0)},
                                     {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), BufferRef::output(0)}};
    if (!is_empty(pd.workspace_desc())) {
      operands.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), BufferRef::saved(0)});
    }
    call_ = DnnlCall(pd, name_of(spec), std::move(operands), spec);
    spec.unread = {1, 2};  // the workspace holds the positions of the maxima
    spec.inputs[0].layout = layout_of(pd.diff_dst_desc(), forward.problem().plain_result);
    spec.outputs[0].layout = layout_of(pd.diff_src_desc(), forward.problem().plain_data);
  }
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
  }

 private:
  const int num_threads_;
  DnnlCall call_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const auto &a = spec.attrs_as<PoolingAttrs>();
  const auto p = problem_of(a, spec.inputs[0], spec.outputs[0].shape);
  if (!p) return nullptr;
  const int num_threads = threads_for_elements(spec, double(spec.inputs[0].shape.size()));
  const ThreadsScope threads(num_threads);
  const bool trains = spec.is_train || spec.keep_for_backward;
  const auto pd = attempt([&] {
    return pooling_desc(engine(), attributes(), trains ? prop_kind::forward_training : prop_kind::forward_inference,
                        p->alg, p->data, p->result, p->window);
  });
  if (!pd || is_padded(pd->dst_desc())) return nullptr;
  return std::make_unique<PoolingForward>(spec, *p, *pd, trains, num_threads);
}

std::string refuses_forward(const StepSpec &spec) {
  const auto &a = spec.attrs_as<PoolingAttrs>();
  if (a.pool_type != PoolingAttrs::kMax && a.pool_type != PoolingAttrs::kAvg) return "takes maxima and means alone";
  if (a.v1 && a.pool_type == PoolingAttrs::kMax) return "maxima of Pooling_v1 are others";
  return refuses_layer(spec);
}

std::string refuses_backward(const StepSpec &spec) {
  return dynamic_cast<const PoolingForward *>(spec.forward) ? "" : "the forward pass is not oneDNN's";
}

// Inputs: head gradient, data, output.
std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &forward = dynamic_cast<const PoolingForward &>(*spec.forward);
  const Problem &p = forward.problem();
  const int num_threads = threads_for_elements(spec, double(spec.inputs[1].shape.size()));
  const ThreadsScope threads(num_threads);
  const auto pd = attempt([&] {
    return pooling_backward_desc(engine(), attributes(), forward.desc(), p.alg, forward.desc().src_desc(),
                                 forward.desc().dst_desc(), p.window);
  });
  if (!pd) return nullptr;
  return std::make_unique<PoolingBackward>(spec, forward, *pd, num_threads);
}

#define COHORT_POOLING(op)                                                                                        \
  COHORT_KERNEL_BY(cpu, op, make_forward).named("onednn").dtypes(kLayerTypes).when(refuses_forward).any_layout(); \
  COHORT_KERNEL(cpu, op, PlainPooling).dtypes(kFloatTypes);                                                       \
  COHORT_KERNEL_BY(cpu, _backward_##op, make_backward)                                                            \
      .named("onednn")                                                                                            \
      .dtypes(kLayerTypes)                                                                                        \
      .when(refuses_backward)                                                                                     \
      .any_layout();                                                                                              \
  COHORT_KERNEL(cpu, _backward_##op, PlainPoolingBackward).dtypes(kFloatTypes)
COHORT_POOLING(Pooling);
COHORT_POOLING(Pooling_v1);
COHORT_KERNEL_BY(cpu, _int8_Pooling, make_forward)
    .named("onednn")
    .dtypes({Dtype::kInt8, Dtype::kUint8})
    .when(refuses_forward)
    .any_layout();

}  // namespace
}  // namespace cohort
