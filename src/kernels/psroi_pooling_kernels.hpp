// SPDX-License-Identifier: Apache-2.0
// Kernels of PSROIPooling and DeformablePSROIPooling. The forward steps share out channels of regions among threads.
// The backward steps share out, for each image, channels of the output, which read different channels of data; and
// regions, for the gradient of trans.
#pragma once

#include "op/psroi_pooling.hpp"

#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/regions.hpp"
#include "op/bilinear.hpp"

namespace cohort {
namespace {

// The sizes of the step, and the windows of a region, for both operators.
template <typename Backend, typename C, typename Attrs>
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
    int64_t image;  // -1: the region belongs to no image
    C left, top, width, height;
  };
  COHORT_HOST_DEVICE Region region(const C *rois, int64_t n, C shift) const {
    const C *const roi = rois + 5 * n, scale = C(a_.spatial_scale);
    const C left = std::round(roi[1]) * scale - shift, top = std::round(roi[2]) * scale - shift;
    const C right = (std::round(roi[3]) + 1) * scale - shift, bottom = (std::round(roi[4]) + 1) * scale - shift;
    return {image_of_region<Backend>(roi[0], n, batch_), left, top, right - left > C(0.1) ? right - left : C(0.1),
            bottom - top > C(0.1) ? bottom - top : C(0.1)};
  }
  COHORT_HOST_DEVICE int64_t windows() const { return size_ * size_; }
  COHORT_HOST_DEVICE int64_t plane() const { return height_ * width_; }
  // The channel of data that a window of a channel of the output reads.
  COHORT_HOST_DEVICE int64_t plane_of(int64_t channel, int64_t row, int64_t column) const {
    const int64_t group = a_.group_size;
    return (channel * group + row * group / size_) * group + column * group / size_;
  }

  const Attrs a_;
  const int64_t batch_, planes_, height_, width_, count_, size_, channels_;
};

// ---- PSROIPooling ---------------------------------------------------------------------------------------------------

template <typename Backend, typename C>
class PsRoiWindows : protected PsRoiBody<Backend, C, PsRoiPoolingAttrs> {
 protected:
  using PsRoiBody<Backend, C, PsRoiPoolingAttrs>::PsRoiBody;

  // Calls fn(channel, window, first element in a sample of data, rows, columns) for each window that holds elements.
  template <typename Fn>
  COHORT_HOST_DEVICE void each_window(const typename PsRoiWindows::Region &r, int64_t first_channel,
                                      int64_t end_channel, Fn &&fn) const {
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

template <typename Backend, typename C>
class PsRoiPooling : PsRoiWindows<Backend, C> {
 public:
  explicit PsRoiPooling(const StepSpec &spec)
      : PsRoiWindows<Backend, C>(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, this->count_ * this->channels_, 1,
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t unit = begin; unit < end; ++unit) {
                              const int64_t n = unit / this->channels_, channel = unit % this->channels_;
                              const auto r = this->region(in[1], n, C(0));
                              C *const to = out[0] + unit * this->windows();
                              fill_elements(to, this->windows(), C(0));
                              if (r.image < 0) continue;
                              const C *const image = in[0] + r.image * this->planes_ * this->plane();
                              this->each_window(r, channel, channel + 1,
                                                [&](int64_t, int64_t w, int64_t at, int64_t rows, int64_t columns) {
                                                  C sum = 0;
                                                  for (int64_t y = 0; y < rows; ++y) {
                                                    for (int64_t x = 0; x < columns; ++x)
                                                      sum += image[at + y * this->width_ + x];
                                                  }
                                                  to[w] = sum / C(rows * columns);
                                                });
                            }
                          });
  }
};

template <typename Backend, typename C>
class PsRoiPoolingBackward : PsRoiWindows<Backend, C> {
 public:
  explicit PsRoiPoolingBackward(const StepSpec &spec)
      : PsRoiWindows<Backend, C>(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    zero_bytes(lane, out[0], size_t(this->batch_ * this->planes_ * this->plane()) * sizeof(C));
    Backend::parallel_for(lane, this->batch_ * this->channels_, 1,
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t unit = begin; unit < end; ++unit) {
                              const int64_t image = unit / this->channels_, channel = unit % this->channels_;
                              C *const to = out[0] + image * this->planes_ * this->plane();
                              for (int64_t n = 0; n < this->count_; ++n) {
                                const auto r = this->region(in[1], n, C(0));
                                if (r.image != image) continue;
                                const C *const head = in[0] + (n * this->channels_ + channel) * this->windows();
                                this->each_window(r, channel, channel + 1,
                                                  [&](int64_t, int64_t w, int64_t at, int64_t rows, int64_t columns) {
                                                    const C share = head[w] / C(rows * columns);
                                                    for (int64_t y = 0; y < rows; ++y) {
                                                      for (int64_t x = 0; x < columns; ++x)
                                                        to[at + y * this->width_ + x] += share;
                                                    }
                                                  });
                              }
                            }
                          });
  }
};

// ---- DeformablePSROIPooling -----------------------------------------------------------------------------------------

template <typename Backend, typename C>
class DeformableWindows : protected PsRoiBody<Backend, C, DeformablePsRoiPoolingAttrs> {
 protected:
  using Base = PsRoiBody<Backend, C, DeformablePsRoiPoolingAttrs>;
  DeformableWindows(const StepSpec &spec, const Shape &data, const Shape &rois, const Shape *trans)
      : Base(spec, data, rois),
        part_(this->a_.part_size),
        classes_(trans ? (*trans)[1] / 2 : 1),
        channels_each_class_(this->a_.output_dim / classes_) {}

  // The offset in a region's trans of the displacement of a window along x; that along y is part_ * part_ behind it.
  COHORT_HOST_DEVICE int64_t trans_at(int64_t channel, int64_t row, int64_t column) const {
    return (channel / channels_each_class_ * 2 * part_ + row * part_ / this->size_) * part_ +
           column * part_ / this->size_;
  }

  // Calls fn(y, x), the neighbours along each axis, for each sampling point of a window that lies on the image.
  template <typename Fn>
  COHORT_HOST_DEVICE void each_place(const typename Base::Region &r, const C *trans, int64_t channel, int64_t row,
                                     int64_t column, Fn &&fn) const {
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

template <typename Backend, typename C>
class DeformablePsRoiPooling : DeformableWindows<Backend, C> {
 public:
  explicit DeformablePsRoiPooling(const StepSpec &spec)
      : DeformableWindows<Backend, C>(spec, spec.inputs[0].shape, spec.inputs[1].shape,
                                      spec.inputs.size() > 2 ? &spec.inputs[2].shape : nullptr) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t each_trans = 2 * this->classes_ * this->part_ * this->part_, size = this->size_;
    const int64_t each = this->channels_ * this->windows();
    Backend::parallel_for(lane, this->count_ * each, 16, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t n = at / each, i = at % each, c = i / this->windows(), row = i / size % size, column = i % size;
        const auto r = this->region(in[1], n, C(0.5));
        const C *const trans = this->a_.no_trans ? nullptr : in[2] + n * each_trans;
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
        out[0][at] = places > 0 ? sum / places : C(0);
        if (out[1]) out[1][at] = places;
      }
    });
  }
};

template <typename Backend, typename C>
class DeformablePsRoiPoolingBackward : DeformableWindows<Backend, C> {
 public:
  explicit DeformablePsRoiPoolingBackward(const StepSpec &spec)
      : DeformableWindows<Backend, C>(spec, spec.inputs[1].shape, spec.inputs[2].shape,
                                      spec.outputs.size() > 1 ? &spec.inputs[3].shape : nullptr) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const bool moved = !this->a_.no_trans;
    const Operands o = {in[0], in[1], in[2], moved ? in[3] : nullptr, in[moved ? 4 : 3]};
    if (out[0]) {
      zero_bytes(lane, out[0], size_t(this->batch_ * this->planes_ * this->plane()) * sizeof(C));
      Backend::parallel_for(lane, this->batch_ * this->channels_, 1,
                            [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                              for (int64_t unit = begin; unit < end; ++unit) {
                                for (int64_t n = 0; n < this->count_; ++n) {
                                  data_of(o, n, unit / this->channels_, unit % this->channels_, out[0]);
                                }
                              }
                            });
    }
    if (!moved || !out[1]) return;
    const int64_t each_trans = 2 * this->classes_ * this->part_ * this->part_;
    zero_bytes(lane, out[1], size_t(this->count_ * each_trans) * sizeof(C));
    Backend::parallel_for(lane, this->count_, 1, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) trans_of(o, n, out[1] + n * each_trans);
    });
  }

  // Public because nvcc refuses private types in extended lambdas.
  struct Operands {
    const C *head, *data, *rois, *trans, *places;
  };

 private:
  // Calls fn(channel, row, column, gradient of one sampling point) for each window that reads something.
  template <typename Fn>
  COHORT_HOST_DEVICE void each_window(const Operands &o, int64_t n, int64_t first_channel, int64_t end_channel,
                                      Fn &&fn) const {
    const int64_t base = n * this->channels_ * this->windows();
    for (int64_t i = first_channel * this->windows(); i < end_channel * this->windows(); ++i) {
      if (!(o.places[base + i] > 0)) continue;
      fn(i / this->windows(), i / this->size_ % this->size_, i % this->size_, o.head[base + i] / o.places[base + i]);
    }
  }
  COHORT_HOST_DEVICE const C *trans_of_region(const Operands &o, int64_t n) const {
    return o.trans ? o.trans + n * 2 * this->classes_ * this->part_ * this->part_ : nullptr;
  }

  COHORT_HOST_DEVICE void data_of(const Operands &o, int64_t n, int64_t image, int64_t channel, C *d_data) const {
    const auto r = this->region(o.rois, n, C(0.5));
    if (r.image != image) return;
    each_window(o, n, channel, channel + 1, [&](int64_t c, int64_t row, int64_t column, C d) {
      C *const to = d_data + (r.image * this->planes_ + this->plane_of(c, row, column)) * this->plane();
      this->each_place(r, trans_of_region(o, n), c, row, column, [&](const Neighbours<C> &y, const Neighbours<C> &x) {
        to[y.low * this->width_ + x.low] += y.low_weight * x.low_weight * d;
        to[y.low * this->width_ + x.high] += y.low_weight * x.high_weight * d;
        to[y.high * this->width_ + x.low] += y.high_weight * x.low_weight * d;
        to[y.high * this->width_ + x.high] += y.high_weight * x.high_weight * d;
      });
    });
  }

  COHORT_HOST_DEVICE void trans_of(const Operands &o, int64_t n, C *d_trans) const {
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

template <typename Backend>
void register_psroi_pooling_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_PSROIPooling", make_compute<Backend, PsRoiPooling>);
  table.add("_backward__contrib_PSROIPooling", make_compute<Backend, PsRoiPoolingBackward>);
  table.add("_contrib_DeformablePSROIPooling", make_compute<Backend, DeformablePsRoiPooling>);
  table.add("_backward__contrib_DeformablePSROIPooling", make_compute<Backend, DeformablePsRoiPoolingBackward>);
}

}  // namespace
}  // namespace cohort
