// SPDX-License-Identifier: Apache-2.0
// Sample by sample: builds a matrix whose columns are the elements that the filters read, and multiplies it by the
// filters.
#include <algorithm>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/gemm.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/deformable_sampling.hpp"

namespace cohort {
namespace {

template <typename C, bool kModulated>
class DeformableBody {
 protected:
  static constexpr size_t kWeight = kModulated ? 3 : 2;

  // number of inputs of the operator
  DeformableBody(const StepSpec &spec, const TensorSpec *inputs, const Shape &output)
      : a_(spec.attrs_as<DeformableConvolutionAttrs>()),
        batch_(output[0]),
        channels_(inputs[0].shape[1]),
        height_(inputs[0].shape[2]),
        width_(inputs[0].shape[3]),
        groups_(a_.num_deformable_group),
        elements_(a_.kernel[0] * a_.kernel[1]),
        places_(output[2] * output[3]),
        windows_(a_, inputs[0].shape, output) {
    if (height_ * width_ > INT32_MAX) {
      throw Error(Code::kUnsupported, text("data: expected images of fewer elements, found ", inputs[0].shape), "data");
    }
  }

  int64_t plane() const { return height_ * width_; }
  int64_t image() const { return channels_ * plane(); }
  int64_t output() const { return a_.num_filter * places_; }
  int64_t offsets() const { return 2 * masks(); }
  int64_t masks() const { return groups_ * elements_ * places_; }
  int64_t matrix() const { return channels_ * elements_ * places_; }
  int64_t per_group() const { return channels_ / groups_; }

  // For each place of the output, the four elements that an element of a filter reads, and their weights: `masks()`
  // of each, grouped by corner. Both have the same size, whatever C is.
  struct Corners {
    C *weights;
    int32_t *elements;
  };
  Corners corners_at(C *memory) const {
    return {memory, reinterpret_cast<int32_t *>(memory + whole_lines(4 * masks()))};
  }
  int64_t corner_elements() const { return 2 * whole_lines(4 * masks()); }

  DeformableSample<C> read_at(const C *offset, int64_t row, int64_t place) const {
    const C *const moves = offset + 2 * row * places_ + place;
    return windows_.find(row % elements_, place, moves[0], moves[places_]);
  }

  // Builds the matrix of one sample. Its rows are the elements of the filters, one group of channels after the other.
  void find_corners(const C *offset, const C *mask, const Corners &to, const Lane &lane) const {
    parallel_for(lane, groups_ * elements_, 1 + kExpensiveGrain / (places_ + 1), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * places_; at < end * places_; ++at) {
        const DeformableSample<C> found = read_at(offset, at / places_, at % places_);
        const C by = mask ? mask[at] : C(1);
        for (int k = 0; k < 4; ++k) {
          to.elements[at + k * masks()] = int32_t(found.element(k, width_));
          to.weights[at + k * masks()] = found.weight(k) * by;
        }
      }
    });
  }

  // The offset of the corners of row `row` of the matrix.
  int64_t corner_row(int64_t row) const {
    return (row / elements_ / per_group() * elements_ + row % elements_) * places_;
  }

  void fill_matrix(const C *image, const Corners &from, C *matrix, const Lane &lane) const {
    const int64_t count = masks();
    parallel_for(lane, channels_ * elements_, 1 + kCheapGrain / (4 * places_ + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const C *const plane = image + row / elements_ * this->plane(), *const by = from.weights + corner_row(row);
        const int32_t *const at = from.elements + corner_row(row);
        C *const to = matrix + row * places_;
        for (int64_t p = 0; p < places_; ++p) {
          to[p] = weighted(by[p], plane[at[p]]) + weighted(by[p + count], plane[at[p + count]]) +
                  weighted(by[p + 2 * count], plane[at[p + 2 * count]]) +
                  weighted(by[p + 3 * count], plane[at[p + 3 * count]]);
        }
      }
    });
  }

  const DeformableConvolutionAttrs a_;
  const int64_t batch_, channels_, height_, width_, groups_, elements_, places_;
  const DeformableSampling<C, kModulated> windows_;
};

template <typename C, bool kModulated>
class DeformableForward : DeformableBody<C, kModulated> {
  using Base = DeformableBody<C, kModulated>;

 public:
  explicit DeformableForward(const StepSpec &spec) : Base(spec, spec.inputs.data(), spec.outputs[0].shape) {}
  size_t extra() const { return size_t(this->corner_elements() + this->matrix()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const auto corners = this->corners_at(extra);
    C *const matrix = extra + this->corner_elements();
    const int64_t groups = this->a_.num_group, filters = this->a_.num_filter / groups;
    const int64_t depth = this->channels_ / groups * this->elements_;
    for (int64_t n = 0; n < this->batch_; ++n) {
      const C *const mask = kModulated ? in[2] + n * this->masks() : nullptr;
      this->find_corners(in[1] + n * this->offsets(), mask, corners, lane);
      this->fill_matrix(in[0] + n * this->image(), corners, matrix, lane);
      C *const to = out[0] + n * this->output();
      if (!this->a_.no_bias) {
        for (int64_t f = 0; f < this->a_.num_filter; ++f) {
          std::fill_n(to + f * this->places_, this->places_, in[Base::kWeight + 1][f]);
        }
      }
      for (int64_t g = 0; g < groups; ++g) {
        gemm(false, false, filters, this->places_, depth, in[Base::kWeight] + g * filters * depth,
             matrix + g * depth * this->places_, this->a_.no_bias ? C(0) : C(1), to + g * filters * this->places_);
      }
    }
  }
};

template <typename C, bool kModulated>
class DeformableBackward : DeformableBody<C, kModulated> {
  using Base = DeformableBody<C, kModulated>;

 public:
  explicit DeformableBackward(const StepSpec &spec) : Base(spec, spec.inputs.data() + 1, spec.inputs[0].shape) {}
  size_t extra() const { return size_t(this->corner_elements() + this->matrix()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const auto corners = this->corners_at(extra);
    C *const matrix = extra + this->corner_elements();
    const C *const data = in[1], *const offset = in[2], *const weight = in[1 + Base::kWeight];
    C *const d_data = out[0], *const d_offset = out[1], *const d_mask = kModulated ? out[2] : nullptr;
    C *const d_weight = out[Base::kWeight], *const d_bias = this->a_.no_bias ? nullptr : out[Base::kWeight + 1];
    const int64_t groups = this->a_.num_group, filters = this->a_.num_filter / groups;
    const int64_t depth = this->channels_ / groups * this->elements_;
    if (d_data) std::fill_n(d_data, this->batch_ * this->image(), C(0));
    if (d_weight) std::fill_n(d_weight, this->a_.num_filter * depth, C(0));
    if (d_bias) add_up(in[0], d_bias);
    for (int64_t n = 0; n < this->batch_; ++n) {
      const C *const head = in[0] + n * this->output(), *const image = data + n * this->image();
      const C *const moves = offset + n * this->offsets();
      const C *const mask = kModulated ? in[3] + n * this->masks() : nullptr;
      this->find_corners(moves, mask, corners, lane);
      if (d_data || d_offset || d_mask) {
        for (int64_t g = 0; g < groups; ++g) {
          gemm(true, false, depth, this->places_, filters, weight + g * filters * depth,
               head + g * filters * this->places_, C(0), matrix + g * depth * this->places_);
        }
      }
      if (d_data) spread(matrix, corners, d_data + n * this->image(), lane);
      if (d_offset || d_mask) {
        move(matrix, image, moves, mask, d_offset ? d_offset + n * this->offsets() : nullptr,
             d_mask ? d_mask + n * this->masks() : nullptr, lane);
      }
      if (!d_weight) continue;
      this->fill_matrix(image, corners, matrix, lane);
      for (int64_t g = 0; g < groups; ++g) {
        gemm(false, true, filters, depth, this->places_, head + g * filters * this->places_,
             matrix + g * depth * this->places_, C(1), d_weight + g * filters * depth);
      }
    }
  }

 private:
  void add_up(const C *head, C *d_bias) const {
    for (int64_t f = 0; f < this->a_.num_filter; ++f) {
      C sum = 0;
      for (int64_t n = 0; n < this->batch_; ++n) {
        const C *const from = head + (n * this->a_.num_filter + f) * this->places_;
        for (int64_t p = 0; p < this->places_; ++p) sum += from[p];
      }
      d_bias[f] = sum;
    }
  }

  // Adds gradients of a matrix to the elements that it was read from; threads share out the channels.
  void spread(const C *matrix, const typename Base::Corners &corners, C *image, const Lane &lane) const {
    const int64_t count = this->masks();
    parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * this->elements_; row < end * this->elements_; ++row) {
        C *const plane = image + row / this->elements_ * this->plane();
        const C *const d = matrix + row * this->places_, *const by = corners.weights + this->corner_row(row);
        const int32_t *const at = corners.elements + this->corner_row(row);
        for (int64_t p = 0; p < this->places_; ++p) {
          for (int64_t k = 0; k < 4 * count; k += count) plane[at[p + k]] += by[p + k] * d[p];
        }
      }
    });
  }

  // Computes the gradients of offsets and masks, either of which may be null, from those of a matrix.
  void move(const C *matrix, const C *image, const C *offset, const C *mask, C *d_offset, C *d_mask,
            const Lane &lane) const {
    const int64_t places = this->places_, elements = this->elements_;
    parallel_for(lane, this->groups_ * elements, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * places; at < end * places; ++at) {
        const int64_t row = at / places, p = at % places, first = row / elements * this->per_group();
        const DeformableSample<C> found = this->read_at(offset, row, p);
        C by_y = 0, by_x = 0, value = 0;
        for (int64_t c = first; c < first + this->per_group(); ++c) {
          const C *const plane = image + c * this->plane(), d = matrix[(c * elements + row % elements) * places + p];
          found.add_slopes([&](int64_t i) { return plane[i]; }, this->width_, d, &by_y, &by_x, &value);
        }
        const C by = mask ? mask[at] : C(1);
        if (d_offset) d_offset[2 * row * places + p] = by_y * by;
        if (d_offset) d_offset[(2 * row + 1) * places + p] = by_x * by;
        if (d_mask) d_mask[at] = value;
      }
    });
  }
};

template <typename C>
using PlainForward = DeformableForward<C, false>;
template <typename C>
using PlainBackward = DeformableBackward<C, false>;
template <typename C>
using ModulatedForward = DeformableForward<C, true>;
template <typename C>
using ModulatedBackward = DeformableBackward<C, true>;

COHORT_KERNEL_BY(cpu, _contrib_DeformableConvolution, make_compute<PlainForward>);
COHORT_KERNEL_BY(cpu, _backward__contrib_DeformableConvolution, make_compute<PlainBackward>);
COHORT_KERNEL_BY(cpu, _contrib_ModulatedDeformableConvolution, make_compute<ModulatedForward>);
COHORT_KERNEL_BY(cpu, _backward__contrib_ModulatedDeformableConvolution, make_compute<ModulatedBackward>);

}  // namespace
}  // namespace cohort
