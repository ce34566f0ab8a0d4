// SPDX-License-Identifier: Apache-2.0
// Deformable convolution, one chunk of places at a time: the values that windows read form the columns of a matrix,
// with one row per channel and element of a window, which is multiplied with the filters. Columns have the type of the
// arrays; sums are rounded once, at the end.
//
// Any window may read any element of the data. For the gradient of the data, the readings are sorted in a total order
// by the gap between elements in which they lie; each element then sums the readings in the four gaps around it.
#include "cuda/op/batch_chunks.hpp"
#include "cuda/op/channel_sums.cuh"
#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/sorting.cuh"
#include "kernels/deformable_sampling.hpp"

namespace cohort {
namespace {

constexpr int kTogether = 8;                         // channels of a thread: they have the same places
constexpr int64_t kLeastPlaces = 8;                  // at a time, however much memory they want
constexpr int64_t kBackwardBytes = 4 * kChunkBytes;  // so much that sorting takes less than products do

// ---- sizes and chunks

// The places of the output in one chunk: all of some samples, or some of one.
struct BatchChunk {
  int64_t sample, samples, place;  // the first ones
  int64_t count, length;           // of places; length: made up to whole vectors
  int64_t units;                   // by which products know it
};

template <typename C, bool kModulated>
struct DeformableSizes {
  DeformableSampling<C, kModulated> windows;
  int64_t batch, channels, filters, groups, moved;  // moved: groups of channels that are moved apart
  int64_t elements, places, plane;                  // of a window, of a sample of the output, of a channel of the data

  DeformableSizes(const DeformableConvolutionAttrs &a, const Shape &data, const Shape &output)
      : windows(a, data, output),
        batch(data[0]),
        channels(data[1]),
        filters(a.num_filter),
        groups(a.num_group),
        moved(a.num_deformable_group),
        elements(a.kernel[0] * a.kernel[1]),
        places(output[2] * output[3]),
        plane(data[2] * data[3]) {}

  int64_t depth() const { return channels * elements; }
  COHORT_HOST_DEVICE int64_t parts_each() const { return (channels / moved + kTogether - 1) / kTogether; }
  int64_t parts() const { return moved * parts_each(); }

  // Channels of one moved group, for a thread.
  struct ChannelRange {
    int64_t group, begin, count;
  };
  __device__ ChannelRange part(int64_t i) const {
    const int64_t group = i / parts_each(), first = i % parts_each() * kTogether, rest = channels / moved - first;
    return {group, group * (channels / moved) + first, rest < kTogether ? rest : kTogether};
  }
};

// Where windows read, and the weights of the readings.
template <typename C, bool kModulated>
struct Moves {
  DeformableSizes<C, kModulated> s;
  BatchChunk t;
  Elements offset, mask;

  struct Reading {
    DeformableSample<C> at;
    C by;
    int64_t sample;
  };
  __device__ int64_t sample(int64_t along) const { return t.sample + (t.place + along) / s.places; }
  __device__ int64_t place(int64_t along) const { return (t.place + along) % s.places; }
  // The row of masks; each has two rows of offsets.
  __device__ int64_t row(int64_t group, int64_t element, int64_t along) const {
    return (sample(along) * s.moved + group) * s.elements + element;
  }
  __device__ Reading reading(int64_t group, int64_t element, int64_t along) const {
    const int64_t first = row(group, element, along), at = place(along);
    return {s.windows.find(element, at, load<C>(offset, 2 * first * s.places + at),
                           load<C>(offset, (2 * first + 1) * s.places + at)),
            kModulated ? load<C>(mask, first * s.places + at) : C(1), sample(along)};
  }
};

// Cuts a batch into chunks of samples or, if one sample is too large, of places.
class Cutting {
 public:
  // bytes: that a place takes.
  Cutting(int64_t batch, int64_t places, int64_t bytes, int64_t most_bytes, int64_t vector)
      : by_samples_(places <= most(bytes, most_bytes)),
        unit_(by_samples_ ? places : 1),
        vector_(vector),
        units_(by_samples_ ? BatchChunks(std::max<int64_t>(batch, 1), most(bytes, most_bytes) / places, 1)
                           : BatchChunks(places, most(bytes, most_bytes), vector)) {
    for (int64_t sample = 0; sample < batch; sample += most_samples()) {
      const int64_t samples = std::min(most_samples(), batch - sample), all = by_samples_ ? samples : places;
      for (int64_t first = 0; first < all; first += units_.each) {
        const int64_t units = std::min(units_.each, all - first);
        stretches_.push_back({sample, samples, by_samples_ ? 0 : first, units * unit_, length(units), units});
      }
    }
  }

  const std::vector<BatchChunk> &stretches() const { return stretches_; }
  bool cuts_samples() const { return !by_samples_; }
  int64_t most_samples() const { return by_samples_ ? units_.each : 1; }
  int64_t most_places() const { return units_.each * unit_; }
  int64_t most_length() const { return length(units_.each); }
  // make(length) for each length that there is.
  template <typename Make>
  void make(ChunkProducts *products, Booking *booking, const Make &make) const {
    products->make(units_, booking, [&](int64_t units) { return make(length(units)); });
  }

 private:
  static int64_t most(int64_t bytes, int64_t most_bytes) { return std::max(most_bytes / bytes, kLeastPlaces); }
  int64_t length(int64_t units) const { return round_up(units * unit_, vector_); }

  bool by_samples_;
  int64_t unit_, vector_;  // unit: places
  BatchChunks units_;
  std::vector<BatchChunk> stretches_;
};

int64_t vector_of(Dtype dtype) { return 16 / int64_t(dtype_size(dtype)); }

// ---- kernels

template <typename C, bool kModulated>
struct FillColumns {
  Moves<C, kModulated> moves;
  Elements data, columns;

  __device__ void operator()(int64_t unit) const {
    const auto &s = moves.s;
    const int64_t length = moves.t.length, along = unit % length, element = unit / length % s.elements;
    const auto part = s.part(unit / length / s.elements);
    typename Moves<C, kModulated>::Reading r = {{}, C(0), moves.t.sample};
    if (along < moves.t.count) r = moves.reading(part.group, element, along);
    int64_t from[4];
    C by[4];
    for (int k = 0; k < 4; ++k) {
      from[k] = (r.sample * s.channels + part.begin) * s.plane + r.at.element(k, s.windows.width);
      by[k] = r.at.weight(k) * r.by;
    }
    for (int64_t c = 0; c < part.count; ++c) {
      C sum = 0;
      for (int k = 0; k < 4; ++k) sum += weighted(by[k], load<C>(data, from[k] + c * s.plane));
      store(columns, ((part.begin + c) * s.elements + element) * length + along, sum);
    }
  }
};

// The gradients of offsets and masks from those of columns.
template <typename C, bool kModulated>
struct MoveGradients {
  Moves<C, kModulated> moves;
  Elements data;
  const C *columns;
  Elements d_offset, d_mask;

  __device__ void operator()(int64_t unit) const {
    const auto &s = moves.s;
    const int64_t along = unit % moves.t.count, element = unit / moves.t.count % s.elements;
    const int64_t group = unit / moves.t.count / s.elements, each = s.channels / s.moved;
    const auto r = moves.reading(group, element, along);
    C by_y = 0, by_x = 0, value = 0;
    for (int64_t c = group * each; c < (group + 1) * each; ++c) {
      const int64_t first = (r.sample * s.channels + c) * s.plane;
      r.at.add_slopes([&](int64_t i) { return load<C>(data, first + i); }, s.windows.width,
                      columns[(c * s.elements + element) * moves.t.length + along], &by_y, &by_x, &value);
    }
    const int64_t row = moves.row(group, element, along), at = moves.place(along);
    if (d_offset.data) store(d_offset, 2 * row * s.places + at, by_y * r.by);
    if (d_offset.data) store(d_offset, (2 * row + 1) * s.places + at, by_x * r.by);
    if (d_mask.data) store(d_mask, row * s.places + at, value);
  }
};

// The gaps between elements of the samples in a chunk, counted from those before the first line and the first element.
template <typename C>
struct ElementGaps {
  int64_t high, wide, count;  // of a sample; of all

  ElementGaps(int64_t samples, int64_t height, int64_t width)
      : high(height + 1), wide(width + 1), count(samples * high * wide) {}
  __device__ static int64_t along(const Neighbours<C> &n) { return n.low_weight > 0 ? n.low + 1 : n.high; }
  __device__ int64_t of(int64_t sample, int64_t y, int64_t x) const { return (sample * high + y) * wide + x; }
  // Readings outside the image come behind all others.
  __device__ int64_t of(int64_t sample, const DeformableSample<C> &at) const {
    return at.is_inside() ? of(sample, along(at.y), along(at.x)) : count;
  }
};

// Gradients of columns to the elements that these were read from. `partial` holds sums for the places before of a
// sample that is cut.
template <typename C, bool kModulated>
struct SumReadings {
  Moves<C, kModulated> moves;
  ElementGaps<C> gaps;
  const Ranked<int64_t> *sorted;
  const int64_t *starts;
  const C *columns;
  C *partial;
  Elements grad;

  __device__ void operator()(int64_t unit) const {
    const auto &s = moves.s;
    const BatchChunk &t = moves.t;
    const int64_t own = unit % s.plane, sample = unit / s.plane / (s.moved * s.parts_each());
    const auto part = s.part(unit / s.plane % (s.moved * s.parts_each()));
    C sums[kTogether] = {};
    for (int c = 0; c < kTogether; ++c) {
      if (t.place > 0 && c < part.count) sums[c] = partial[(part.begin + c) * s.plane + own];
    }
    const int64_t x = own % s.windows.width, y = own / s.windows.width, row = s.elements * t.length;
    for (int64_t line = y; line <= y + 1; ++line) {
      const int64_t *const start = starts + part.group * (gaps.count + 1) + gaps.of(sample, line, x);
      for (int64_t i = start[0]; i < start[2]; ++i) {
        const int64_t index = sorted[part.group * s.elements * t.count + i].index;
        const int64_t element = index / t.count, along = index % t.count;
        const auto r = moves.reading(part.group, element, along);
        C by = 0;
        for (int k = 0; k < 4; ++k) by += r.at.element(k, s.windows.width) == own ? r.at.weight(k) : C(0);
        const C *const d = columns + part.begin * row + element * t.length + along;
        for (int c = 0; c < kTogether; ++c) {
          if (c < part.count) sums[c] += by * r.by * d[c * row];
        }
      }
    }
    const bool is_last = t.place + t.count >= s.places;
    for (int c = 0; c < kTogether; ++c) {
      if (c >= part.count) break;
      const int64_t at = (part.begin + c) * s.plane + own;
      if (is_last) {
        store(grad, (t.sample + sample) * s.channels * s.plane + at, sums[c]);
      } else {
        partial[at] = sums[c];
      }
    }
  }
};

// ---- the kernels of the operators

template <typename C, bool kModulated>
class DeformableCuda final : public Kernel {
 public:
  explicit DeformableCuda(StepSpec &spec)
      : s_(spec.attrs_as<DeformableConvolutionAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape),
        dtype_(spec.inputs[0].dtype),
        has_bias_(!spec.attrs_as<DeformableConvolutionAttrs>().no_bias),
        cutting_(s_.batch, s_.places, s_.depth() * element() + s_.filters * int64_t(sizeof(C)), kChunkBytes,
                 vector_of(dtype_)) {
    Booking booking;
    columns_ = booking.take(s_.depth() * cutting_.most_length() * element());
    flat_ = booking.take(s_.filters * cutting_.most_length() * int64_t(sizeof(C)));
    const ProductTypes types(dtype_, dtype_of<C>(), spec.tf32);
    cutting_.make(&products_, &booking, [&](int64_t length) {
      return MatrixProduct(types, {s_.groups, s_.filters / s_.groups, length, s_.depth() / s_.groups, false, false});
    });
    spec.scratch_bytes = booking.bytes();
  }

  void run(const Args &args, const Lane &lane) const override {
    constexpr int kWeight = kModulated ? 3 : 2;
    const auto of = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const Elements data = of(0), offset = of(1), mask = of(kModulated ? 2 : 1);
    const Elements bias = has_bias_ ? of(kWeight + 1) : elements_of(nullptr, dtype_);
    const Elements columns = elements_of(place_in(args.scratch, columns_), dtype_);
    C *const flat = reinterpret_cast<C *>(place_in(args.scratch, flat_));
    for (const BatchChunk &t : cutting_.stretches()) {
      const Moves<C, kModulated> moves{s_, t, offset, mask};
      for_each(lane, s_.parts() * s_.elements * t.length, FillColumns<C, kModulated>{moves, data, columns});
      products_.run(lane, t.units, args.inputs[kWeight], columns.data, flat, nullptr, args.scratch);
      spread(lane, moves, flat, bias, elements_of(args.outputs[0], dtype_));
    }
  }

  // Public for its body: nvcc takes none of private functions.
  void spread(const Lane &lane, const Moves<C, kModulated> &moves, const C *flat, const Elements &bias,
              const Elements &result) const {
    const int64_t filters = s_.filters;
    for_each(lane, filters * moves.t.count, [=] __device__(int64_t i) {
      const int64_t f = i / moves.t.count, along = i % moves.t.count;
      const C added = bias.data ? load<C>(bias, f) : C(0);
      store(result, (moves.sample(along) * filters + f) * moves.s.places + moves.place(along),
            flat[f * moves.t.length + along] + added);
    });
  }

 private:
  int64_t element() const { return int64_t(dtype_size(dtype_)); }
  const DeformableSizes<C, kModulated> s_;
  const Dtype dtype_;
  const bool has_bias_;
  const Cutting cutting_;
  ChunkProducts products_;
  int64_t columns_ = 0, flat_ = 0;
};

// Inputs: head gradient, data, offset, mask of the modulated one, weight.
template <typename C, bool kModulated>
class DeformableBackwardCuda final : public Kernel {
  static constexpr int kWeight = kModulated ? 3 : 2;  // among the outputs

 public:
  explicit DeformableBackwardCuda(StepSpec &spec)
      : s_(spec.attrs_as<DeformableConvolutionAttrs>(), spec.inputs[1].shape, spec.inputs[0].shape),
        dtype_(spec.inputs[0].dtype),
        wants_data_(is_wanted(spec, 0)),
        wants_moves_(is_wanted(spec, 1) || (kModulated && is_wanted(spec, 2))),
        wants_weight_(is_wanted(spec, kWeight)),
        cutting_(s_.batch, s_.places, bytes(), kBackwardBytes, vector_of(dtype_)) {
    const int64_t length = cutting_.most_length(), size = int64_t(sizeof(C));
    Booking booking;
    heads_ = booking.take(s_.filters * length * element());
    columns_ = booking.take(s_.depth() * length * size);
    const int64_t m = s_.filters / s_.groups, depth = s_.depth() / s_.groups;
    const ProductTypes types(dtype_, dtype_of<C>(), spec.tf32);
    if (wants_data_ || wants_moves_) {
      cutting_.make(&of_columns_, &booking, [&](int64_t n) {
        return MatrixProduct(types, {s_.groups, depth, n, m, true, false});
      });
    }
    if (wants_data_) {
      const int64_t pairs = s_.moved * s_.elements * cutting_.most_places() * int64_t(sizeof(Ranked<int64_t>));
      const ElementGaps<C> gaps(cutting_.most_samples(), s_.windows.height, s_.windows.width);
      pairs_ = booking.take(pairs);
      spare_ = booking.take(pairs);
      starts_ = booking.take(s_.moved * (gaps.count + 1) * int64_t(sizeof(int64_t)));
      if (cutting_.cuts_samples()) partial_ = booking.take(s_.channels * s_.plane * size);
    }
    if (wants_weight_) {
      cutting_.make(&of_weight_, &booking, [&](int64_t k) {
        return MatrixProduct(types, {s_.groups, m, depth, k, false, true}, false, MatrixProduct::kAdding);
      });
      if (dtype_ != dtype_of<C>()) weight_ = booking.take(s_.filters * depth * size);
    }
    if (is_wanted(spec, kWeight + 1)) {
      const auto &a = spec.attrs_as<DeformableConvolutionAttrs>();
      bias_ = std::make_unique<ChannelSums>(
          convolution_sizes(spec.inputs[1].shape, spec.inputs[kWeight + 1].shape, spec.inputs[0].shape, a.stride,
                            a.dilate, a.pad, a.num_group, /* last */ false),
          /* of_data */ false);
      sums_ = booking.take(int64_t(bias_->scratch_bytes(sizeof(C))));
    }
    spec.scratch_bytes = booking.bytes();
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const auto out = [&](int i) { return elements_of(args.outputs[i], dtype_); };
    const Elements data = in(1), offset = in(2), mask = in(kModulated ? 3 : 2);
    const Elements d_offset = out(1), d_mask = kModulated ? out(2) : elements_of(nullptr, dtype_);
    const bool is_apart = dtype_ != dtype_of<C>();  // filters' gradients are added up in another type
    void *const heads = place_in(args.scratch, heads_), *const columns = place_in(args.scratch, columns_);
    void *const d_weight = is_apart ? place_in(args.scratch, weight_) : args.outputs[kWeight];
    const int64_t weights = s_.filters * (s_.depth() / s_.groups);
    if (wants_weight_) zero_bytes(lane, d_weight, size_t(weights) * sizeof(C));
    for (const BatchChunk &t : cutting_.stretches()) {
      const Moves<C, kModulated> moves{s_, t, offset, mask};
      gather_heads(lane, moves, args.inputs[0], heads);
      C *const d_columns = static_cast<C *>(columns);
      if (wants_data_ || wants_moves_) {
        of_columns_.run(lane, t.units, args.inputs[kWeight + 1], heads, d_columns, nullptr, args.scratch);
      }
      if (wants_moves_) {
        for_each(lane, s_.moved * s_.elements * t.count,
                 MoveGradients<C, kModulated>{moves, data, d_columns, d_offset, d_mask});
      }
      if (wants_data_) sum_readings(lane, moves, d_columns, out(0), args.scratch);
      if (!wants_weight_) continue;
      const Elements filled = elements_of(columns, dtype_);
      for_each(lane, s_.parts() * s_.elements * t.length, FillColumns<C, kModulated>{moves, data, filled});
      of_weight_.run(lane, t.units, heads, columns, d_weight, nullptr, args.scratch);
    }
    if (wants_weight_ && is_apart) {
      narrow(lane, static_cast<const C *>(d_weight), args.outputs[kWeight], dtype_, weights);
    }
    if (bias_) bias_->run<C>(lane, in(0), out(kWeight + 1), place_in(args.scratch, sums_));
  }

  // Gradients of the result, a row for each filter; 0 where there is no place.
  void gather_heads(const Lane &lane, const Moves<C, kModulated> &moves, void *head, void *heads) const {
    const int64_t count = moves.t.count, length = moves.t.length, filters = s_.filters;
    const RawElements from = raw_elements(head, dtype_), to = raw_elements(heads, dtype_);
    for_each(lane, filters * length, [=] __device__(int64_t i) {
      const int64_t f = i / length, along = i % length;
      if (along < count) {
        copy_element(to, i, from, (moves.sample(along) * filters + f) * moves.s.places + moves.place(along));
      } else {
        copy_element(to, i, {nullptr, to.bytes}, 0);
      }
    });
  }

  void sum_readings(const Lane &lane, const Moves<C, kModulated> &moves, const C *columns, const Elements &d_data,
                    void *scratch) const {
    using Pair = Ranked<int64_t>;
    const BatchChunk t = moves.t;
    const ElementGaps<C> gaps(t.samples, s_.windows.height, s_.windows.width);
    const int64_t elements = s_.elements, row = elements * t.count;
    Pair *const pairs = reinterpret_cast<Pair *>(place_in(scratch, pairs_));
    for_each(lane, s_.moved * row, [=] __device__(int64_t i) {
      const int64_t element = i % row / t.count, along = i % t.count;
      const auto r = moves.reading(i / row, element, along);
      pairs[i] = {gaps.of(r.sample - t.sample, r.at), i % row};
    });
    const Pair *const sorted =
        sort_rows<true>(lane, pairs, reinterpret_cast<Pair *>(place_in(scratch, spare_)), s_.moved, row);
    int64_t *const starts = reinterpret_cast<int64_t *>(place_in(scratch, starts_));
    for_each(lane, s_.moved * (gaps.count + 1), [=] __device__(int64_t i) {
      const Pair *const own = sorted + i / (gaps.count + 1) * row;
      int64_t low = 0, high = row;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (own[middle].key < i % (gaps.count + 1)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      starts[i] = low;
    });
    for_each(lane, t.samples * s_.parts() * s_.plane,
             SumReadings<C, kModulated>{moves, gaps, sorted, starts, columns,
                                        reinterpret_cast<C *>(place_in(scratch, partial_)), d_data});
  }

 private:
  static bool is_wanted(const StepSpec &spec, size_t i) { return i < spec.wanted.size() && spec.wanted[i]; }
  int64_t element() const { return int64_t(dtype_size(dtype_)); }
  int64_t bytes() const {
    const int64_t pairs = wants_data_ ? 2 * s_.moved * s_.elements * int64_t(sizeof(Ranked<int64_t>)) : 0;
    return s_.depth() * int64_t(sizeof(C)) + s_.filters * element() + pairs;
  }

  const DeformableSizes<C, kModulated> s_;
  const Dtype dtype_;
  const bool wants_data_, wants_moves_, wants_weight_;
  const Cutting cutting_;
  ChunkProducts of_columns_, of_weight_;
  std::unique_ptr<ChannelSums> bias_;
  int64_t heads_ = 0, columns_ = 0, pairs_ = 0, spare_ = 0, starts_ = 0, partial_ = 0, weight_ = 0, sums_ = 0;
};

template <template <typename, bool> class K, bool kModulated>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double, kModulated>>(spec);
  return std::make_unique<K<float, kModulated>>(spec);
}
std::unique_ptr<Kernel> make_plain(StepSpec &spec) { return make<DeformableCuda, false>(spec); }
std::unique_ptr<Kernel> make_plain_backward(StepSpec &spec) { return make<DeformableBackwardCuda, false>(spec); }
std::unique_ptr<Kernel> make_modulated(StepSpec &spec) { return make<DeformableCuda, true>(spec); }
std::unique_ptr<Kernel> make_modulated_backward(StepSpec &spec) { return make<DeformableBackwardCuda, true>(spec); }

COHORT_KERNEL_BY(cuda, _contrib_DeformableConvolution, make_plain);
COHORT_KERNEL_BY(cuda, _backward__contrib_DeformableConvolution, make_plain_backward);
COHORT_KERNEL_BY(cuda, _contrib_ModulatedDeformableConvolution, make_modulated);
COHORT_KERNEL_BY(cuda, _backward__contrib_ModulatedDeformableConvolution, make_modulated_backward);

}  // namespace
}  // namespace cohort
