// SPDX-License-Identifier: Apache-2.0
// Forward, regions are shared out; backward, channels of the output, which read no channel of data in common, and for
// trans regions.
#include "op/psroi_pooling.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/regions.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/bilinear.hpp"

namespace cohort {
namespace {

// What a window of a region is, whichever operator.
template <typename C, typename Attrs>
class PsRoiBody {
 protected:
  PsRoiBody(const StepSpec &spec, const Shape &data, const Shape &rois)
      : a_(spec.attrs_as<Attrs>()),
        batch_(data[0]),
        planes_(data[1]),
        height_(data[2]),
        width_(data[3]),
        count_(rois[0]),
        size_(a_.pooled_size),
        channels_(a_.output_dim) {}

  struct Region {
    int64_t image;  // -1: none
    C left, top, width, height;
  };
  Region region(const C *rois, int64_t n, C shift) const {
    const C *const roi = rois + 5 * n, scale = C(a_.spatial_scale);
    const C left = std::round(roi[1]) * scale - shift, top = std::round(roi[2]) * scale - shift;
    const C right = (std::round(roi[3]) + 1) * scale - shift, bottom = (std::round(roi[4]) + 1) * scale - shift;
    return {image_of_region(roi[0], n, batch_), left, top, std::max(right - left, C(0.1)),
            std::max(bottom - top, C(0.1))};
  }
  int64_t windows() const { return size_ * size_; }
  int64_t plane() const { return height_ * width_; }
  // The channel of data that a window of a channel of the output reads.
  int64_t plane_of(int64_t channel, int64_t row, int64_t column) const {
    const int64_t group = a_.group_size;
    return (channel * group + row * group / size_) * group + column * group / size_;
  }

  const Attrs a_;
  const int64_t batch_, planes_, height_, width_, count_, size_, channels_;
};

// ---- PSROIPooling ---------------------------------------------------------------------------------------------------

template <typename C>
class PsRoiWindows : protected PsRoiBody<C, PsRoiPoolingAttrs> {
 protected:
  using PsRoiBody<C, PsRoiPoolingAttrs>::PsRoiBody;

  // Calls fn(channel, window, first element in a sample of data, rows, columns) for each window that holds elements.
  template <typename Fn>
  void each_window(const typename PsRoiWindows::Region &r, int64_t first_channel, int64_t end_channel, Fn &&fn) const {
    const C high = r.height / C(this->size_), wide = r.width / C(this->size_);
    const auto bound = [](C at, int64_t length) {
      return at > 0 ? at < C(length) ? int64_t(at) : length : int64_t(0);  // NaN: 0
    };
    for (int64_t row = 0; row < this->size_; ++row) {
      const int64_t y0 = bound(std::floor(C(row) * high + r.top), this->height_);
      const int64_t y1 = bound(std::ceil(C(row + 1) * high + r.top), this->height_);
      for (int64_t column = 0; column < this->size_; ++column) {
        const int64_t x0 = bound(std::floor(C(column) * wide + r.left), this->width_);
        const int64_t x1 = bound(std::ceil(C(column + 1) * wide + r.left), this->width_);
        if (y1 <= y0 || x1 <= x0) continue;
        for (int64_t c = first_channel; c < end_channel; ++c) {
          fn(c, row * this->size_ + column, this->plane_of(c, row, column) * this->plane() + y0 * this->width_ + x0,
             y1 - y0, x1 - x0);
        }
      }
    }
  }
};

template <typename C>
class PsRoiPooling : PsRoiWindows<C> {
 public:
  explicit PsRoiPooling(const StepSpec &spec) : PsRoiWindows<C>(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const auto r = this->region(in[1], n, C(0));
        C *const to = out[0] + n * this->channels_ * this->windows();
        std::fill_n(to, this->channels_ * this->windows(), C(0));
        if (r.image < 0) continue;
        const C *const image = in[0] + r.image * this->planes_ * this->plane();
        this->each_window(r, 0, this->channels_, [&](int64_t c, int64_t w, int64_t at, int64_t rows, int64_t columns) {
          C sum = 0;
          for (int64_t y = 0; y < rows; ++y) {
            for (int64_t x = 0; x < columns; ++x) sum += image[at + y * this->width_ + x];
          }
          to[c * this->windows() + w] = sum / C(rows * columns);
        });
      }
    });
  }
};

template <typename C>
class PsRoiPoolingBackward : PsRoiWindows<C> {
 public:
  explicit PsRoiPoolingBackward(const StepSpec &spec)
      : PsRoiWindows<C>(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    std::fill_n(out[0], this->batch_ * this->planes_ * this->plane(), C(0));
    parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = 0; n < this->count_; ++n) {
        const auto r = this->region(in[1], n, C(0));
        if (r.image < 0) continue;
        const C *const head = in[0] + n * this->channels_ * this->windows();
        C *const image = out[0] + r.image * this->planes_ * this->plane();
        this->each_window(r, begin, end, [&](int64_t c, int64_t w, int64_t at, int64_t rows, int64_t columns) {
          const C share = head[c * this->windows() + w] / C(rows * columns);
          for (int64_t y = 0; y < rows; ++y) {
            for (int64_t x = 0; x < columns; ++x) image[at + y * this->width_ + x] += share;
          }
        });
      }
    });
  }
};

// ---- DeformablePSROIPooling -----------------------------------------------------------------------------------------

template <typename C>
class DeformableWindows : protected PsRoiBody<C, DeformablePsRoiPoolingAttrs> {
 protected:
  using Base = PsRoiBody<C, DeformablePsRoiPoolingAttrs>;
  DeformableWindows(const StepSpec &spec, const Shape &data, const Shape &rois, const Shape *trans)
      : Base(spec, data, rois),
        part_(this->a_.part_size),
        classes_(trans ? (*trans)[1] / 2 : 1),
        channels_each_class_(this->a_.output_dim / classes_) {}

  // Where in trans of a region what moves a window in x is; y follows after part_ * part_.
  int64_t trans_at(int64_t channel, int64_t row, int64_t column) const {
    return (channel / channels_each_class_ * 2 * part_ + row * part_ / this->size_) * part_ +
           column * part_ / this->size_;
  }

  // Calls fn(row, column) with the neighbours of each place of a window that lies on the image.
  template <typename Fn>
  void each_place(const typename Base::Region &r, const C *trans, int64_t channel, int64_t row, int64_t column,
                  Fn &&fn) const {
    const C high = r.height / C(this->size_), wide = r.width / C(this->size_), samples = C(this->a_.sample_per_part);
    const int64_t at = trans_at(channel, row, column);
    const C std = C(this->a_.trans_std);
    const C left = C(column) * wide + r.left + (trans ? trans[at] * std : C(0)) * r.width;
    const C top = C(row) * high + r.top + (trans ? trans[at + part_ * part_] * std : C(0)) * r.height;
    for (int32_t i = 0; i < this->a_.sample_per_part; ++i) {
      Neighbours<C> y, x;
      if (!half_neighbours(top + C(i) * (high / samples), this->height_, &y)) continue;
      for (int32_t j = 0; j < this->a_.sample_per_part; ++j) {
        if (half_neighbours(left + C(j) * (wide / samples), this->width_, &x)) fn(y, x);
      }
    }
  }

  const int64_t part_, classes_, channels_each_class_;
};

template <typename C>
class DeformablePsRoiPooling : DeformableWindows<C> {
 public:
  explicit DeformablePsRoiPooling(const StepSpec &spec)
      : DeformableWindows<C>(spec, spec.inputs[0].shape, spec.inputs[1].shape,
                             spec.inputs.size() > 2 ? &spec.inputs[2].shape : nullptr) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t each_trans = 2 * this->classes_ * this->part_ * this->part_, size = this->size_;
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const auto r = this->region(in[1], n, C(0.5));
        const C *const trans = this->a_.no_trans ? nullptr : in[2] + n * each_trans;
        for (int64_t i = 0; i < this->channels_ * this->windows(); ++i) {
          const int64_t c = i / this->windows(), row = i / size % size, column = i % size;
          C sum = 0, places = 0;
          if (r.image >= 0) {
            const C *const from = in[0] + (r.image * this->planes_ + this->plane_of(c, row, column)) * this->plane();
            this->each_place(r, trans, c, row, column, [&](const Neighbours<C> &y, const Neighbours<C> &x) {
              const C *const low = from + y.low * this->width_, *const high = from + y.high * this->width_;
              sum += y.low_weight * (x.low_weight * low[x.low] + x.high_weight * low[x.high]) +
                     y.high_weight * (x.low_weight * high[x.low] + x.high_weight * high[x.high]);
              places += 1;
            });
          }
          const int64_t at = n * this->channels_ * this->windows() + i;
          out[0][at] = places > 0 ? sum / places : C(0);
          if (out[1]) out[1][at] = places;
        }
      }
    });
  }
};

template <typename C>
class DeformablePsRoiPoolingBackward : DeformableWindows<C> {
 public:
  explicit DeformablePsRoiPoolingBackward(const StepSpec &spec)
      : DeformableWindows<C>(spec, spec.inputs[1].shape, spec.inputs[2].shape,
                             spec.outputs.size() > 1 ? &spec.inputs[3].shape : nullptr) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const bool moved = !this->a_.no_trans;
    const Operands o = {in[0], in[1], in[2], moved ? in[3] : nullptr, in[moved ? 4 : 3]};
    if (out[0]) {
      std::fill_n(out[0], this->batch_ * this->planes_ * this->plane(), C(0));
      parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = 0; n < this->count_; ++n) data_of(o, n, begin, end, out[0]);
      });
    }
    if (!moved || !out[1]) return;
    const int64_t each_trans = 2 * this->classes_ * this->part_ * this->part_;
    std::fill_n(out[1], this->count_ * each_trans, C(0));
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) trans_of(o, n, out[1] + n * each_trans);
    });
  }

 private:
  struct Operands {
    const C *head, *data, *rois, *trans, *places;
  };

  // Calls fn(channel, row, column, gradient of one place) for the windows that read something.
  template <typename Fn>
  void each_window(const Operands &o, int64_t n, int64_t first_channel, int64_t end_channel, Fn &&fn) const {
    const int64_t base = n * this->channels_ * this->windows();
    for (int64_t i = first_channel * this->windows(); i < end_channel * this->windows(); ++i) {
      if (!(o.places[base + i] > 0)) continue;
      fn(i / this->windows(), i / this->size_ % this->size_, i % this->size_, o.head[base + i] / o.places[base + i]);
    }
  }
  const C *trans_of_region(const Operands &o, int64_t n) const {
    return o.trans ? o.trans + n * 2 * this->classes_ * this->part_ * this->part_ : nullptr;
  }

  void data_of(const Operands &o, int64_t n, int64_t first_channel, int64_t end_channel, C *d_data) const {
    const auto r = this->region(o.rois, n, C(0.5));
    if (r.image < 0) return;
    each_window(o, n, first_channel, end_channel, [&](int64_t c, int64_t row, int64_t column, C d) {
      C *const to = d_data + (r.image * this->planes_ + this->plane_of(c, row, column)) * this->plane();
      this->each_place(r, trans_of_region(o, n), c, row, column, [&](const Neighbours<C> &y, const Neighbours<C> &x) {
        to[y.low * this->width_ + x.low] += y.low_weight * x.low_weight * d;
        to[y.low * this->width_ + x.high] += y.low_weight * x.high_weight * d;
        to[y.high * this->width_ + x.low] += y.high_weight * x.low_weight * d;
        to[y.high * this->width_ + x.high] += y.high_weight * x.high_weight * d;
      });
    });
  }

  void trans_of(const Operands &o, int64_t n, C *d_trans) const {
    const auto r = this->region(o.rois, n, C(0.5));
    if (r.image < 0) return;
    each_window(o, n, 0, this->channels_, [&](int64_t c, int64_t row, int64_t column, C d) {
      const C *const from = o.data + (r.image * this->planes_ + this->plane_of(c, row, column)) * this->plane();
      C by_x = 0, by_y = 0;
      this->each_place(r, trans_of_region(o, n), c, row, column, [&](const Neighbours<C> &y, const Neighbours<C> &x) {
        const C *const low = from + y.low * this->width_, *const high = from + y.high * this->width_;
        by_x += y.low_weight * (x.low_slope * low[x.low] + x.high_slope * low[x.high]) +
                y.high_weight * (x.low_slope * high[x.low] + x.high_slope * high[x.high]);
        by_y += y.low_slope * (x.low_weight * low[x.low] + x.high_weight * low[x.high]) +
                y.high_slope * (x.low_weight * high[x.low] + x.high_weight * high[x.high]);
      });
      const int64_t at = this->trans_at(c, row, column);
      d_trans[at] += by_x * d * C(this->a_.trans_std) * r.width;
      d_trans[at + this->part_ * this->part_] += by_y * d * C(this->a_.trans_std) * r.height;
    });
  }
};

COHORT_KERNEL_BY(cpu, _contrib_PSROIPooling, make_compute<PsRoiPooling>);
COHORT_KERNEL_BY(cpu, _backward__contrib_PSROIPooling, make_compute<PsRoiPoolingBackward>);
COHORT_KERNEL_BY(cpu, _contrib_DeformablePSROIPooling, make_compute<DeformablePsRoiPooling>);
COHORT_KERNEL_BY(cpu, _backward__contrib_DeformablePSROIPooling, make_compute<DeformablePsRoiPoolingBackward>);

}  // namespace
}  // namespace cohort
