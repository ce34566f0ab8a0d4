// SPDX-License-Identifier: Apache-2.0
// Convolution and Deconvolution as products of matrices by cuBLASLt, and so by tensor cores: columns (columns.cuh) are
// gathered into scratch memory, one chunk of the batch at a time, and multiplied with the filters. If the window is one
// place, the data are such a matrix already, and are not gathered. Sums are rounded once, at the end; gradients of
// filters are added up in float32 or float64 in a fixed order.
//
// Channels last: rows of places times filters give the result in its layout. Channels first: filters times columns,
// written directly into the images if the places of a sample are many and fill whole vectors (one product per sample,
// all in one call); else flat, with all places of all samples in one row, which a last kernel distributes over the
// images.
#include <algorithm>
#include <vector>

#include "cuda/op/batch_chunks.hpp"
#include "cuda/op/channel_sums.cuh"
#include "cuda/op/columns.cuh"
#include "cuda/op/finish_sums.hpp"
#include "cuda/op/matrix_product.hpp"
#include "device/kernel_table.hpp"
#include "op/convolution.hpp"
#include "op/deconvolution.hpp"

namespace cohort {
namespace {

using namespace columns;
using convolution::volume;

// Limits for the smallest chunk: kLeastPlaces places or, with strides above 1, one sample.
constexpr int64_t kMostBytes = 1 << 30, kLeastPlaces = 8;
constexpr int64_t kMostElements = 1 << 30;  // of a sample, of the filters, of a chunk: indices have 32 bits
constexpr int64_t kNarrow = 8;              // channels of a group for which a product is mostly empty
constexpr int64_t kStraight = 256;          // places of a sample from which on it has a product of its own

template <typename Fn>
void with_cells(Dtype dtype, const Fn &fn) {  // fn(a number of the type's size): what is moved, not computed with
  const size_t bytes = dtype_size(dtype);
  if (bytes == 2) return fn(uint16_t(0));
  if (bytes == 4) return fn(uint32_t(0));
  fn(uint64_t(0));
}

template <typename C, typename Fn>
void with_elements(Dtype dtype, const Fn &fn) {  // fn(a number of the type, whose compute type is C)
  if constexpr (std::is_same_v<C, double>) {
    fn(double(0));
  } else {
    if (dtype == Dtype::kFloat16) return fn(Float16());
    if (dtype == Dtype::kBfloat16) return fn(Bfloat16());
    fn(float(0));
  }
}

// The convolution, for all classes here.
struct Geometry {
  ConvolutionSizes s;
  Dtype dtype;
  bool last;       // channels
  int64_t vector;  // elements in 16 bytes

  Geometry(const ConvolutionSizes &sizes, Dtype type) : s(sizes), dtype(type), vector(16 / int64_t(dtype_size(type))) {
    // For images of one place, with filters of one element per channel, both layouts are the same.
    last = s.in_channel_step == 1 && s.out_channel_step == 1 && s.weight_in_step == 1;
  }
  Dtype sum_dtype() const { return dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32; }
  int64_t element() const { return int64_t(dtype_size(dtype)); }
  // The most places per chunk, so that neither side has more than kMostElements.
  int64_t most_places() const { return kMostElements / (s.groups * std::max(s.in_channels, s.out_channels)); }
  int64_t depth(int64_t channels) const { return round_up(channels * volume(s.kernel), vector); }
  bool has_strides() const { return s.stride != ConvolutionSizes::Axes{1, 1, 1}; }
  // Whether the images are columns already: a window is one place, and places are whole vectors.
  bool as_it_lies(const Side &from) const {
    return volume(s.kernel) == 1 && !has_strides() && s.pad == ConvolutionSizes::Axes{0, 0, 0} &&
           from.channels % vector == 0;
  }
  // Whether each sample can have a product of its own.
  bool straight(int64_t places) const { return !last && s.groups == 1 && places % vector == 0 && places >= kStraight; }
};

// ---- columns

// Columns for the places of one side, in chunks of samples if `straight`, else of places.
class ColumnGather {
 public:
  ColumnGather(const Geometry &g, const Side &from, const Side &to, const ColumnWindow &window, int64_t depth,
               bool straight, int64_t each, Booking *booking)
      : g_(g), from_(from), to_(to), window_(window), depth_(depth), straight_(straight) {
    length_ = straight ? to.places.by : round_up(each, g.vector);
    const int64_t blocks = straight ? each : 1;
    const int64_t columns = g.last ? each : blocks * length_;
    at_ = booking->take(columns * g.s.groups * depth * g.element());
  }
  int64_t length() const { return length_; }  // of rows

  void *run(const Lane &lane, const void *images, int64_t first, int64_t count, void *scratch) const {
    void *const columns = place_in(scratch, at_);
    const int64_t sample = straight_ ? first : first / to_.places.by;
    const int64_t within = straight_ ? 0 : first % to_.places.by;
    with_cells(g_.dtype, [&](auto cell) {
      using T = decltype(cell);
      fill(lane, static_cast<const T *>(images) + sample * from_.batch_step, within, count, static_cast<T *>(columns));
    });
    return columns;
  }

 private:
  template <typename T>
  void fill(const Lane &lane, const T *image, int64_t first, int64_t count, T *columns) const {
    const Divisor groups(g_.s.groups);
    if (g_.last) {
      const int64_t vectors = depth_ / g_.vector;
      const int64_t whole = from_.channels % g_.vector == 0 && can_be_vectors({image});
      return for_each(lane, count * g_.s.groups * vectors,
                      GatherPlaces<T>{from_, to_, window_, image, columns, Divisor(vectors), groups,
                                      Divisor(from_.channels), depth_, first, whole});
    }
    // So many channels that a thread has work to do, where there are threads enough.
    const int64_t blocks = straight_ ? count : 1, places = straight_ ? to_.places.by : 1;
    const int64_t each = std::clamp<int64_t>(16 / window_.taps, 1, from_.channels), parts = cut(from_.channels, each);
    const int64_t along = straight_ ? length_ : round_up(count, g_.vector);
    for_each(lane, blocks * g_.s.groups * parts * along,
             GatherRows<T>{from_, to_, window_, image, columns, Divisor(along), Divisor(parts), groups, length_, each,
                           depth_, first, count * places});
  }

  const Geometry g_;
  const Side from_, to_;
  const ColumnWindow window_;
  const int64_t depth_;
  const bool straight_;
  int64_t length_ = 0, at_ = 0;
};

// The filters as a matrix whose rows are whole vectors: in place, or rearranged in scratch memory.
class Filters {
 public:
  // Rows are output channels or, with of_data, channels of the data.
  Filters(const Geometry &g, bool of_data, Booking *booking) : g_(g), of_data_(of_data) {
    depth_ = g.depth(channels());
    as_they_lie_ = !of_data && depth_ == channels() * volume(g.s.kernel);
    if (!as_they_lie_) at_ = booking->take(g.s.groups * rows() * depth_ * g.element());
  }
  int64_t rows() const { return of_data_ ? g_.s.in_channels : g_.s.out_channels; }
  int64_t depth() const { return depth_; }

  const void *run(const Lane &lane, const void *weight, void *scratch) const {
    if (as_they_lie_) return weight;
    with_cells(g_.dtype, [&](auto cell) {
      arrange(lane, static_cast<const decltype(cell) *>(weight),
              reinterpret_cast<decltype(cell) *>(place_in(scratch, at_)));
    });
    return place_in(scratch, at_);
  }

 private:
  int64_t channels() const { return of_data_ ? g_.s.out_channels : g_.s.in_channels; }
  template <typename T>
  void arrange(const Lane &lane, const T *from, T *to) const {
    const ConvolutionSizes &s = g_.s;
    const int64_t taps = volume(s.kernel);
    for_each(lane, s.groups * rows() * depth_,
             ArrangeFilters<T>{from, to, Divisor(depth_), Divisor(rows()), Divisor(g_.last ? channels() : taps),
                               channels() * taps, !g_.last, s.out_channels * s.weight_out_step,
                               of_data_ ? s.weight_in_step : s.weight_out_step,
                               of_data_ ? s.weight_out_step : s.weight_in_step, s.weight_step[2]});
  }

  const Geometry g_;
  const bool of_data_;
  bool as_they_lie_ = false;
  int64_t depth_ = 0, at_ = 0;
};

// ---- the result, or the gradient of the data

// Computes the arrays on one side of the convolution from those on the other.
class ConvolutionPass {
 public:
  virtual ~ConvolutionPass() = default;
  // bias: null, or one element per channel of `to`.
  virtual void run(const Lane &lane, const void *from, const void *weight, const void *bias, void *to,
                   void *scratch) const = 0;
  size_t scratch_bytes() const { return booking_.bytes(); }

 protected:
  Booking booking_;
};

// Gathers columns of the array that is read: for the result or, with of_data and strides of 1, the gradient of the
// data. C: the compute type.
template <typename C>
class ByColumns final : public ConvolutionPass {
 public:
  ByColumns(const Geometry &g, bool of_data, bool has_bias, const StepSpec &spec)
      : g_(g),
        from_(g.s, !of_data),
        to_(g.s, of_data),
        filters_(g, of_data, &booking_),
        straight_(g.straight(to_.places.by)),
        total_(g.s.batch * to_.places.by, 1, 1) {
    const int64_t depth = filters_.depth(), m = filters_.rows(), places = to_.places.by, groups = g.s.groups;
    const int64_t bytes = groups * g.element() * depth, sum_bytes = groups * m * int64_t(sizeof(C));
    const bool is_matrix = g.as_it_lies(from_);
    const bool product_adds = g.last && groups == 1;  // a bias
    int64_t most = std::min(kChunkBytes / bytes, g.most_places());
    straight_ = straight_ && (is_matrix ? !has_bias || places <= kMostBytes / sum_bytes : places <= most);
    const bool is_flat = !g.last && !straight_;
    finishes_ = is_flat || (has_bias && !product_adds);
    gathers_ = !is_matrix || is_flat;
    if (!gathers_) most = g.most_places();
    if (finishes_) most = std::min(most, kChunkBytes / (sum_bytes + (gathers_ ? bytes : 0)));
    if (straight_) {
      total_ = BatchChunks(g.s.batch, most / places, 1);
    } else {
      total_ = BatchChunks(g.s.batch * places, most, kLeastPlaces);
    }
    if (gathers_) {
      gather_.emplace_back(g, from_, to_, ColumnWindow(g.s, of_data), depth, straight_, total_.each, &booking_);
    }
    const int64_t length = round_up(total_.each, g.vector);  // of a flat row
    if (finishes_) sums_ = booking_.take(sum_bytes * (straight_ ? total_.each * places : length));
    const ProductTypes types(g.dtype, finishes_ ? g.sum_dtype() : g.dtype, spec.tf32);
    products_.make(total_, &booking_, [&](int64_t count) {
      if (g.last) {
        const ProductExtent extent{groups, count, m, depth, false, true};
        if (product_adds) return MatrixProduct(types, extent, has_bias);
        return MatrixProduct(types, extent, {{groups * depth, depth}, {}, {groups * m, m}}, 1);
      }
      if (straight_) {
        const ProductExtent extent{count, m, places, depth, false, false};
        return MatrixProduct(types, extent, {{0, MatrixPlaces::kSame}, {}, {}}, 1);
      }
      const ProductExtent extent{groups, m, round_up(count, g.vector), depth, false, false};
      return MatrixProduct(types, extent, {{}, {length, depth * length}, {length, m * length}}, 1);
    });
  }

  void run(const Lane &lane, const void *from, const void *weight, const void *bias, void *to,
           void *scratch) const override {
    const void *const filters = filters_.run(lane, weight, scratch);
    const int64_t channels = g_.s.groups * to_.channels, unit = straight_ ? to_.places.by : 1;
    for (int64_t first = 0; first < total_.total; first += total_.each) {
      const int64_t count = std::min(total_.each, total_.total - first);
      const void *const columns =
          gathers_ ? gather_[0].run(lane, from, first, count, scratch)
                   : static_cast<const char *>(from) + first * unit * g_.s.groups * from_.channels * g_.element();
      void *const chunk = place_in(to, first * unit * channels * g_.element());  // unless the product is flat
      void *const into = finishes_ ? place_in(scratch, sums_) : chunk;
      const void *const a = g_.last ? columns : filters, *const b = g_.last ? filters : columns;
      products_.run(lane, count, a, b, into, finishes_ ? nullptr : bias, scratch);
      if (!g_.last && !straight_) {
        spread(lane, static_cast<const C *>(into), bias, to, first, count);
      } else if (finishes_) {
        finish_sums(lane, {into, chunk, g_.sum_dtype(), g_.dtype, count * unit * channels, nullptr, bias, false,
                           channels, unit});
      }
    }
  }

 private:
  void spread(const Lane &lane, const C *sums, const void *bias, void *to, int64_t first, int64_t count) const {
    with_elements<C>(g_.dtype, [&](auto element) {
      using T = decltype(element);
      for_each(lane, count * g_.s.groups * to_.channels,
               SpreadRows<C, T>{to_, sums, static_cast<const T *>(bias),
                                static_cast<T *>(to) + first / to_.places.by * to_.batch_step, Divisor(count),
                                gather_[0].length(), first % to_.places.by});
    });
  }

  const Geometry g_;
  const Side from_, to_;
  const Filters filters_;
  bool straight_, gathers_ = true;
  bool finishes_ = false;  // sums go to scratch memory first; bias and rounding follow
  BatchChunks total_;
  std::vector<ColumnGather> gather_;  // none, or one
  ChunkProducts products_;
  int64_t sums_ = 0;
};

// The gradient of the data by columns of the array that is written: each place of the result contributes to some
// elements of the data, and the contributions are then added up. With strides above 1 this multiplies no zeros between
// places.
template <typename C>
class BySums final : public ConvolutionPass {
 public:
  BySums(const Geometry &g, const StepSpec &spec)
      : g_(g),
        from_(g.s, false),
        to_(g.s, true),
        filters_(g, false, &booking_),
        total_(g.s.batch,
               std::min(kChunkBytes / sample_bytes(g), kMostElements / (g.s.groups * to_.channels * to_.places.by)),
               1) {
    const int64_t depth = filters_.depth(), m = filters_.rows(), places = from_.places.by, groups = g.s.groups;
    straight_ = g.straight(places);
    const int64_t each = total_.each * (straight_ ? 1 : places);
    if (!g.last && !straight_) {
      gather_.emplace_back(g, from_, from_, ColumnWindow(), m, false, each, &booking_);
      length_ = gather_[0].length();
    } else {
      length_ = places;
    }
    const int64_t columns = straight_ || g.last ? total_.each * places : length_;
    columns_ = booking_.take(columns * groups * depth * int64_t(sizeof(C)));
    const ProductTypes types(g.dtype, g.sum_dtype(), spec.tf32);
    products_.make(total_, &booking_, [&](int64_t count) {
      if (g.last) {
        return MatrixProduct(types, {groups, count * places, depth, m, false, false},
                             {{groups * m, m}, {}, {groups * depth, depth}}, 1);
      }
      if (straight_) {
        return MatrixProduct(types, {count, depth, places, m, true, false}, {{0, MatrixPlaces::kSame}, {}, {}}, 1);
      }
      return MatrixProduct(types, {groups, depth, round_up(count * places, g.vector), m, true, false},
                           {{}, {length_, m * length_}, {length_, depth * length_}}, 1);
    });
  }
  static int64_t sample_bytes(const Geometry &g) {
    return volume(g.s.out) * g.s.groups * g.depth(g.s.in_channels) * int64_t(sizeof(C));
  }

  void run(const Lane &lane, const void *from, const void *weight, const void *bias, void *to,
           void *scratch) const override {
    const ConvolutionSizes &s = g_.s;
    const int64_t places = from_.places.by, depth = filters_.depth(), taps = volume(s.kernel);
    const void *const filters = filters_.run(lane, weight, scratch);
    void *const columns = place_in(scratch, columns_);
    SumColumns<C> sum{};
    sum.from = from_, sum.to = to_, sum.columns = static_cast<const C *>(columns), sum.last = g_.last;
    for (size_t a = 0; a < 3; ++a) {
      sum.kernel[a] = int32_t(s.kernel[a]), sum.stride[a] = Divisor(s.stride[a]);
      sum.dilate[a] = int32_t(s.dilate[a]), sum.pad[a] = int32_t(s.pad[a]);
    }
    sum.bias = elements_of(const_cast<void *>(bias), g_.dtype), sum.grad = elements_of(to, g_.dtype);
    sum.channels = Divisor(s.in_channels), sum.groups = Divisor(s.groups);
    const int64_t row = g_.last ? 1 : length_;  // how far elements of the depth are apart
    sum.place_step = g_.last ? s.groups * depth : 1;
    sum.sample_step = straight_ ? depth * places : places * sum.place_step;
    sum.group_step = depth * row;
    sum.channel_step = (g_.last ? 1 : taps) * row, sum.tap_step = (g_.last ? s.in_channels : 1) * row;
    const int64_t sample = s.groups * s.in_channels * to_.places.by;
    for (int64_t first = 0; first < total_.total; first += total_.each) {
      const int64_t count = std::min(total_.each, total_.total - first);
      const void *const heads = gather_.empty()
                                    ? static_cast<const char *>(from) + first * from_.batch_step * g_.element()
                                    : gather_[0].run(lane, from, first * places, count * places, scratch);
      products_.run(lane, count, g_.last ? heads : filters, g_.last ? filters : heads, columns, nullptr, scratch);
      sum.at = first * sample;
      for_each(lane, count * sample, sum);
    }
  }

 private:
  const Geometry g_;
  const Side from_, to_;
  const Filters filters_;
  const BatchChunks total_;  // samples
  bool straight_ = false;
  std::vector<ColumnGather> gather_;  // none, or one
  ChunkProducts products_;
  int64_t length_ = 0, columns_ = 0;
};

// The result of a convolution, or the gradient of its data.
template <typename C>
std::unique_ptr<ConvolutionPass> make_convolution_pass(const Geometry &g, bool of_data, bool has_bias,
                                                       const StepSpec &spec) {
  if (of_data && g.has_strides()) return std::make_unique<BySums<C>>(g, spec);
  return std::make_unique<ByColumns<C>>(g, of_data, has_bias, spec);
}

// ---- the gradient of the filters

// Products of the result's gradient and the columns of the data, over places: partial sums, which are added up in
// order, one per chunk or, if straight, per sample.
template <typename C>
class FilterGradient {
 public:
  FilterGradient(const Geometry &g, const StepSpec &spec)
      : g_(g), from_(g.s, true), to_(g.s, false), depth_(g.depth(g.s.in_channels)), total_(1, 1, 1) {
    const int64_t m = g.s.out_channels, places = to_.places.by, groups = g.s.groups;
    const int64_t bytes = groups * g.element(), all = g.most_places();
    const int64_t most = std::min(kChunkBytes / (bytes * depth_), all);
    const bool is_matrix = g.as_it_lies(from_);
    // The cost of writing and reading parts per sample, against the extra cost of flat arrays.
    const int64_t part_bytes = m * depth_ * int64_t(sizeof(C));
    const int64_t flat_bytes = places * (m + (is_matrix ? depth_ : 0)) * g.element();
    straight_ =
        g.straight(places) && part_bytes < flat_bytes && part_bytes <= kChunkBytes && (is_matrix || places <= most);
    gathers_ = !is_matrix || !(g.last || straight_);
    if (straight_) {
      total_ = BatchChunks(g.s.batch, std::min(kChunkBytes / part_bytes, (gathers_ ? most : all) / places), 1);
    } else {
      const int64_t most_flat = kChunkBytes / (bytes * (depth_ + m));
      total_ = BatchChunks(g.s.batch * places, !g.last ? most_flat : gathers_ ? most : all, kLeastPlaces);
    }
    if (gathers_) {
      data_.emplace_back(g, from_, to_, ColumnWindow(g.s, false), depth_, straight_, total_.each, &booking_);
    }
    if (!g.last && !straight_) head_.emplace_back(g, to_, to_, ColumnWindow(), m, false, total_.each, &booking_);
    parts_ = booking_.take((straight_ ? total_.each : groups) * part_bytes);
    sums_ = total_.each < total_.total ? booking_.take(groups * part_bytes) : 0;
    const ProductTypes types(g.dtype, g.sum_dtype(), spec.tf32);
    products_.make(total_, &booking_, [&](int64_t count) {
      if (g.last) {
        return MatrixProduct(types, {groups, m, depth_, count, true, false},
                             {{groups * m, m}, {groups * depth_, depth_}, {}}, 1);
      }
      if (straight_) return MatrixProduct(types, {count, m, depth_, places, false, true}, {}, 1);
      const int64_t length = round_up(total_.each, g.vector);
      return MatrixProduct(types, {groups, m, depth_, round_up(count, g.vector), false, true},
                           {{length, m * length}, {length, depth_ * length}, {}}, 1);
    });
  }
  size_t scratch_bytes() const { return booking_.bytes(); }

  // head, data: the arrays on the result's and on the data's side.
  void run(const Lane &lane, const void *head, const void *data, void *grad, void *scratch) const {
    JoinParts<C> join{};
    join.parts = reinterpret_cast<const C *>(place_in(scratch, parts_));
    join.sums = reinterpret_cast<C *>(place_in(scratch, sums_));
    join.depth = Divisor(depth_), join.filled = g_.s.in_channels * volume(g_.s.kernel);
    join.size = g_.s.groups * g_.s.out_channels * depth_;
    for (int64_t first = 0; first < total_.total; first += total_.each) {
      const int64_t count = std::min(total_.each, total_.total - first);
      const auto of = [&](const std::vector<ColumnGather> &gather, const void *array,
                          const Side &side) -> const void * {
        if (!gather.empty()) return gather[0].run(lane, array, first, count, scratch);
        const int64_t step = straight_ ? side.batch_step : g_.s.groups * side.channels;
        return static_cast<const char *>(array) + first * step * g_.element();
      };
      const void *const heads = of(head_, head, to_), *const columns = of(data_, data, from_);
      products_.run(lane, count, heads, columns, place_in(scratch, parts_), nullptr, scratch);
      join.num_parts = straight_ ? count : 1;
      join.is_first = first == 0;
      join.grad = elements_of(first + count == total_.total ? grad : nullptr, g_.dtype);
      for_each(lane, join.size, join);
    }
  }

 private:
  const Geometry g_;
  const Side from_, to_;
  const int64_t depth_;
  bool straight_ = false, gathers_ = true;
  BatchChunks total_;
  std::vector<ColumnGather> data_, head_;  // none, or one
  ChunkProducts products_;
  Booking booking_;
  int64_t parts_ = 0, sums_ = 0;
};

// ---- the kernels

// The inputs and outputs of a step that hold its arrays.
const TensorSpec &array(const StepSpec &spec, int i) { return i < 0 ? spec.outputs[0] : spec.inputs[size_t(i)]; }

ConvolutionSizes sizes_of(const StepSpec &spec, const ConvolutionAttrs &a, bool backward) {
  const int first = backward ? 1 : 0;
  return convolution_sizes(array(spec, first).shape, array(spec, first + 1).shape, array(spec, backward ? 0 : -1).shape,
                           a.stride, a.dilate, a.pad, a.num_group, channels_last(a.layout));
}
// A deconvolution is the backward step of a convolution: its data are the result of that convolution.
ConvolutionSizes sizes_of(const StepSpec &spec, const DeconvolutionAttrs &a, bool backward) {
  const Shape &data = array(spec, backward ? 1 : 0).shape;
  return convolution_sizes(array(spec, backward ? 0 : -1).shape, array(spec, backward ? 2 : 1).shape, data, a.stride,
                           a.dilate, deconvolution_padding(a, data).pad, a.num_group, channels_last(a.layout));
}

bool is_wanted(const StepSpec &spec, bool backward, size_t output) {
  return !backward || (output < spec.wanted.size() && spec.wanted[output]);
}

template <typename A>
constexpr bool kIsDeconvolution = std::is_same_v<A, DeconvolutionAttrs>;

template <typename C, typename A>
class ForwardColumns final : public Kernel {
 public:
  explicit ForwardColumns(StepSpec &spec) : has_bias_(!spec.attrs_as<A>().no_bias) {
    const Geometry g(sizes_of(spec, spec.attrs_as<A>(), false), spec.inputs[0].dtype);
    pass_ = make_convolution_pass<C>(g, kIsDeconvolution<A>, has_bias_, spec);
    spec.scratch_bytes = pass_->scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override {
    pass_->run(lane, args.inputs[0], args.inputs[1], has_bias_ ? args.inputs[2] : nullptr, args.outputs[0],
               args.scratch);
  }

 private:
  const bool has_bias_;
  std::unique_ptr<ConvolutionPass> pass_;
};

// Inputs: head gradient, data, weight.
template <typename C, typename A>
class BackwardColumns final : public Kernel {
 public:
  explicit BackwardColumns(StepSpec &spec) : g_(sizes_of(spec, spec.attrs_as<A>(), true), spec.inputs[0].dtype) {
    const auto wanted = [&](size_t i) { return is_wanted(spec, true, i); };
    const auto book = [&](size_t bytes) { spec.scratch_bytes = std::max(spec.scratch_bytes, bytes); };
    if (wanted(0)) book((data_ = make_convolution_pass<C>(g_, !kIsDeconvolution<A>, false, spec))->scratch_bytes());
    if (wanted(1)) book((weight_ = std::make_unique<FilterGradient<C>>(g_, spec))->scratch_bytes());
    if (!wanted(2)) return;
    bias_ = std::make_unique<ChannelSums>(g_.s, kIsDeconvolution<A>);
    book(bias_->scratch_bytes(sizeof(C)));
  }
  void run(const Args &args, const Lane &lane) const override {
    void *const head = args.inputs[0], *const data = args.inputs[1];
    if (data_) data_->run(lane, head, args.inputs[2], nullptr, args.outputs[0], args.scratch);
    if (weight_) {
      weight_->run(lane, kIsDeconvolution<A> ? data : head, kIsDeconvolution<A> ? head : data, args.outputs[1],
                   args.scratch);
    }
    if (bias_) bias_->run<C>(lane, elements_of(head, g_.dtype), elements_of(args.outputs[2], g_.dtype), args.scratch);
  }

 private:
  const Geometry g_;
  std::unique_ptr<ConvolutionPass> data_;
  std::unique_ptr<FilterGradient<C>> weight_;
  std::unique_ptr<ChannelSums> bias_;
};

template <template <typename, typename> class K, typename A>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double, A>>(spec);
  return std::make_unique<K<float, A>>(spec);
}

template <typename A, bool kBackward>
std::string refuses(const StepSpec &spec) {
  const std::string why = refuses_post(spec, !spec.attrs_as<A>().no_bias);
  if (!why.empty()) return why;
  const ConvolutionSizes s = sizes_of(spec, spec.attrs_as<A>(), kBackward);
  const Geometry g(s, spec.inputs[0].dtype);
  const int64_t data = s.groups * s.in_channels * volume(s.in), result = s.groups * s.out_channels * volume(s.out);
  const int64_t filters = s.groups * s.out_channels * g.depth(s.in_channels);
  const int64_t turned = s.groups * s.in_channels * g.depth(s.out_channels);
  if (std::min({s.batch, data, result, filters, turned}) == 0) return "no elements";
  const int64_t most = std::max({data, result, filters, turned});
  if (most > kMostElements) {
    return text("expected at most ", kMostElements, " elements in a sample and in the filters, found ", most);
  }
  // With one group, the gradient with few rows is computed together with the other one.
  const bool to_data = kIsDeconvolution<A> != kBackward && is_wanted(spec, kBackward, 0);
  const bool to_result = (kIsDeconvolution<A> == kBackward && is_wanted(spec, kBackward, 0)) ||
                         (kBackward && is_wanted(spec, kBackward, 1));
  const auto rows = std::minmax({to_data ? s.in_channels : s.out_channels, to_result ? s.out_channels : s.in_channels});
  const int64_t wide = s.groups > 1 ? rows.first : rows.second;
  if (wide < kNarrow) return text("expected at least ", kNarrow, " channels in a group, found ", wide);
  const auto places_bytes = [&](int64_t depth, int64_t rows) {
    return kLeastPlaces * s.groups * (g.depth(depth) + rows) * g.element();
  };
  int64_t bytes = to_result ? places_bytes(s.in_channels, s.out_channels) : 0;
  if (to_data && !g.has_strides()) bytes = std::max(bytes, places_bytes(s.out_channels, s.in_channels));
  if (to_data && g.has_strides()) {
    bytes =
        std::max(bytes, g.dtype == Dtype::kFloat64 ? BySums<double>::sample_bytes(g) : BySums<float>::sample_bytes(g));
  }
  if (bytes > kMostBytes) return text("expected at most ", kMostBytes, " bytes of columns at a time, found ", bytes);
  return "";
}

#define COHORT_COLUMNS(op, kernel, attrs, backward)              \
  COHORT_KERNEL_BY(cuda, op, with_post_ops<make<kernel, attrs>>) \
      .named("columns")                                          \
      .one_dtype(kFloatTypes)                                    \
      .when(refuses<attrs, backward>)                            \
      .preference(1)

COHORT_COLUMNS(Convolution, ForwardColumns, ConvolutionAttrs, false)
    .fuses({PostOp::Kind::kActivation, PostOp::Kind::kSum});
COHORT_COLUMNS(_backward_Convolution, BackwardColumns, ConvolutionAttrs, true);
COHORT_COLUMNS(Deconvolution, ForwardColumns, DeconvolutionAttrs, false);
COHORT_COLUMNS(_backward_Deconvolution, BackwardColumns, DeconvolutionAttrs, true);

}  // namespace
}  // namespace cohort
