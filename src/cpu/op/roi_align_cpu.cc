// SPDX-License-Identifier: Apache-2.0
// Forward, regions are shared out, backward channels: regions may share elements.
#include "op/roi_align.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/regions.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/bilinear.hpp"

namespace cohort {
namespace {

// The windows of a region along one axis: which elements each reads, by which weights. What a window reads at all its
// places is a product of sums over the axes.
template <typename C>
class WindowWeights {
 public:
  // Places of one window follow those of the window before: two windows share two elements at most.
  static int64_t elements(int64_t windows, int64_t length) { return length + 5 * windows; }

  WindowWeights(C *memory, int64_t windows, int64_t length)
      : weights_(memory),
        first_(reinterpret_cast<int32_t *>(memory + length + 3 * windows)),
        count_(first_ + windows),
        windows_(windows),
        length_(length) {}

  void fill(C start, C size, C places) {
    constexpr C kFar = C(int64_t(1) << 40);  // no image reaches there, and numbers of places stay in range
    C *to = weights_;
    const C distance = size / places;
    for (int64_t w = 0; w < windows_; ++w) {
      const C base = start + C(w) * size;
      first_[w] = count_[w] = 0;
      if (!(std::fabs(base) < kFar && size < kFar && distance > 0)) continue;
      // Only what may lie on the axis, so that a region may be of any size.
      const C low = std::floor((-1 - base) / distance) - 2, high = std::ceil((C(length_) - base) / distance) + 2;
      const int64_t begin = low > 0 ? (low < places ? int64_t(low) : 0) : 0;
      const int64_t end = low < places && high > 0 ? int64_t(std::min(high, places)) : 0;
      for (int64_t i = begin; i < end; ++i) {
        Neighbours<C> n;
        if (!wide_neighbours(base + (C(i) + C(0.5)) * size / places, length_, &n)) continue;
        if (count_[w] == 0) first_[w] = int32_t(n.low);
        for (; count_[w] <= n.high - first_[w]; ++count_[w]) to[count_[w]] = 0;
        to[n.low - first_[w]] += n.low_weight;
        to[n.high - first_[w]] += n.high_weight;
      }
      to += count_[w];
    }
  }

  // fn(first element, number of elements, their weights) for each window.
  template <typename Fn>
  void each(Fn &&fn) const {
    const C *from = weights_;
    for (int64_t w = 0; w < windows_; ++w) {
      fn(w, int64_t(first_[w]), int64_t(count_[w]), from);
      from += count_[w];
    }
  }

 private:
  C *weights_;
  int32_t *first_, *count_;
  int64_t windows_, length_;
};

template <typename C>
class AlignBody {
 protected:
  AlignBody(const StepSpec &spec, const Shape &data, const Shape &rois)
      : a_(spec.attrs_as<RoiAlignAttrs>()),
        rows_(a_.pooled_size[0]),
        columns_(a_.pooled_size[1]),
        batch_(data[0]),
        planes_(data[1]),
        height_(data[2]),
        width_(data[3]),
        count_(rois[0]),
        numbers_(rois[1]),
        channels_(a_.position_sensitive ? planes_ / (rows_ * columns_) : planes_),
        threads_(spec.num_threads) {}

  int64_t plane_of(int64_t channel, int64_t row, int64_t column) const {
    return a_.position_sensitive ? (channel * rows_ + row) * columns_ + column : channel;
  }
  C places(C length, int64_t windows) const {
    return a_.sample_ratio > 0 ? C(a_.sample_ratio) : std::ceil(length / C(windows));
  }

  const RoiAlignAttrs a_;
  const int64_t rows_, columns_, batch_, planes_, height_, width_, count_, numbers_, channels_, threads_;
};

// ---- ROIAlign -------------------------------------------------------------------------------------------------------

template <typename C>
class StraightBody : protected AlignBody<C> {
 protected:
  using AlignBody<C>::AlignBody;

  int64_t per_thread() const {
    return whole_lines(WindowWeights<C>::elements(this->rows_, this->height_)) +
           whole_lines(WindowWeights<C>::elements(this->columns_, this->width_));
  }

  // Calls fn(channel, row, column, plane, element, weight) for what a region reads, channel by channel.
  template <typename Fn>
  void each_element(const C *roi, int64_t index, C *memory, int64_t first_channel, int64_t end_channel, Fn &&fn) const {
    WindowWeights<C> along_y(memory, this->rows_, this->height_);
    WindowWeights<C> along_x(memory + whole_lines(WindowWeights<C>::elements(this->rows_, this->height_)),
                             this->columns_, this->width_);
    const C scale = C(this->a_.spatial_scale), shift = this->a_.aligned ? C(0.5) : C(0);
    const C left = roi[1] * scale - shift, top = roi[2] * scale - shift;
    C width = roi[3] * scale - shift - left, height = roi[4] * scale - shift - top;
    if (this->a_.aligned && !(width > 0 && height > 0)) {
      throw Error(Code::kExecution, text("rois[", index, "]: expected a width and a height above 0 for aligned, found ",
                                         width, " and ", height));
    }
    if (!this->a_.aligned) {
      width = std::max(width, C(1));
      height = std::max(height, C(1));
    }
    const C places_y = this->places(height, this->rows_), places_x = this->places(width, this->columns_);
    along_y.fill(top, height / C(this->rows_), places_y);
    along_x.fill(left, width / C(this->columns_), places_x);
    const C share = 1 / (places_y * places_x);
    for (int64_t c = first_channel; c < end_channel; ++c) {
      along_y.each([&](int64_t row, int64_t y0, int64_t num_y, const C *by_y) {
        along_x.each([&](int64_t column, int64_t x0, int64_t num_x, const C *by_x) {
          fn(c, row, column, y0 * this->width_ + x0, num_y, by_y, num_x, by_x, share);
        });
      });
    }
  }
};

template <typename C>
class RoiAlign : StraightBody<C> {
 public:
  explicit RoiAlign(const StepSpec &spec) : StraightBody<C>(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return size_t(this->threads_ * this->per_thread()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      C *const memory = extra + omp_get_thread_num() * this->per_thread();
      for (int64_t n = begin; n < end; ++n) {
        const C *const roi = in[1] + n * this->numbers_;
        C *const to = out[0] + n * this->channels_ * windows;
        const int64_t image = image_of_region(roi[0], n, this->batch_);
        if (image < 0) {
          std::fill_n(to, this->channels_ * windows, C(0));
          continue;
        }
        const C *const planes = in[0] + image * this->planes_ * plane;
        this->each_element(roi, n, memory, 0, this->channels_,
                           [&](int64_t c, int64_t row, int64_t column, int64_t at, int64_t num_y, const C *by_y,
                               int64_t num_x, const C *by_x, C share) {
                             const C *from = planes + this->plane_of(c, row, column) * plane + at;
                             C sum = 0;
                             for (int64_t y = 0; y < num_y; ++y, from += this->width_) {
                               C line = 0;
                               for (int64_t x = 0; x < num_x; ++x) line += by_x[x] * from[x];
                               sum += by_y[y] * line;
                             }
                             to[c * windows + row * this->columns_ + column] = sum == 0 ? C(0) : sum * share;
                           });
      }
    });
  }
};

template <typename C>
class RoiAlignBackward : StraightBody<C> {
 public:
  explicit RoiAlignBackward(const StepSpec &spec)
      : StraightBody<C>(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return size_t(this->threads_ * this->per_thread()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    std::fill_n(out[0], this->batch_ * this->planes_ * plane, C(0));
    parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
      C *const memory = extra + omp_get_thread_num() * this->per_thread();
      for (int64_t n = 0; n < this->count_; ++n) {
        const C *const roi = in[1] + n * this->numbers_, *const head = in[0] + n * this->channels_ * windows;
        const int64_t image = image_of_region(roi[0], n, this->batch_);
        if (image < 0) continue;
        C *const planes = out[0] + image * this->planes_ * plane;
        this->each_element(roi, n, memory, begin, end,
                           [&](int64_t c, int64_t row, int64_t column, int64_t at, int64_t num_y, const C *by_y,
                               int64_t num_x, const C *by_x, C share) {
                             const C d = head[c * windows + row * this->columns_ + column] * share;
                             C *to = planes + this->plane_of(c, row, column) * plane + at;
                             for (int64_t y = 0; y < num_y; ++y, to += this->width_) {
                               for (int64_t x = 0; x < num_x; ++x) to[x] += d * by_y[y] * by_x[x];
                             }
                           });
      }
    });
  }
};

// ---- RROIAlign ------------------------------------------------------------------------------------------------------

template <typename C>
class TurnedBody : protected AlignBody<C> {
 protected:
  using AlignBody<C>::AlignBody;

  // Calls fn(window, elements[4], weights[4]) for each place of a region that lies on the image.
  template <typename Fn>
  void each_place(const C *roi, int64_t index, Fn &&fn) const {
    constexpr C kMost = 4096;  // places along a side of a window: regions have any size
    const C scale = C(this->a_.spatial_scale), turn = roi[5] * C(3.14159265358979323846 / 180);
    const C width = std::max(roi[3] * scale, C(1)), height = std::max(roi[4] * scale, C(1));
    const C cosine = std::cos(turn), sine = std::sin(turn), x = roi[1] * scale, y = roi[2] * scale;
    const C along_y = this->places(height, this->rows_), along_x = this->places(width, this->columns_);
    if (!(along_y <= kMost && along_x <= kMost)) {
      throw Error(Code::kExecution, text("rois[", index, "]: expected at most ", kMost,
                                         " places along a side of a window, found ", std::max(along_y, along_x)));
    }
    const C window_height = height / C(this->rows_), window_width = width / C(this->columns_);
    const C share = 1 / (along_y * along_x);
    for (int64_t w = 0; w < this->rows_ * this->columns_; ++w) {
      const C top = C(w / this->columns_) * window_height - height / 2;
      const C left = C(w % this->columns_) * window_width - width / 2;
      for (C i = 0; i < along_y; ++i) {
        const C dy = top + (i + C(0.5)) * window_height / along_y;
        for (C j = 0; j < along_x; ++j) {
          const C dx = left + (j + C(0.5)) * window_width / along_x;
          Neighbours<C> row, column;
          if (!wide_neighbours(dy * cosine - dx * sine + y, this->height_, &row)) continue;
          if (!wide_neighbours(dx * cosine + dy * sine + x, this->width_, &column)) continue;
          const int64_t elements[4] = {row.low * this->width_ + column.low, row.low * this->width_ + column.high,
                                       row.high * this->width_ + column.low, row.high * this->width_ + column.high};
          const C weights[4] = {row.low_weight * column.low_weight * share, row.low_weight * column.high_weight * share,
                                row.high_weight * column.low_weight * share,
                                row.high_weight * column.high_weight * share};
          fn(w, elements, weights);
        }
      }
    }
  }
};

template <typename C>
class TurnedRoiAlign : TurnedBody<C> {
 public:
  explicit TurnedRoiAlign(const StepSpec &spec) : TurnedBody<C>(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const C *const roi = in[1] + n * this->numbers_;
        C *const to = out[0] + n * this->channels_ * windows;
        std::fill_n(to, this->channels_ * windows, C(0));
        const int64_t image = image_of_region(roi[0], n, this->batch_);
        if (image < 0) continue;
        const C *const planes = in[0] + image * this->planes_ * plane;
        this->each_place(roi, n, [&](int64_t w, const int64_t *e, const C *by) {
          for (int64_t c = 0; c < this->channels_; ++c) {
            const C *const from = planes + c * plane;
            to[c * windows + w] += by[0] * from[e[0]] + by[1] * from[e[1]] + by[2] * from[e[2]] + by[3] * from[e[3]];
          }
        });
      }
    });
  }
};

template <typename C>
class TurnedRoiAlignBackward : TurnedBody<C> {
 public:
  explicit TurnedRoiAlignBackward(const StepSpec &spec)
      : TurnedBody<C>(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    std::fill_n(out[0], this->batch_ * this->planes_ * plane, C(0));
    parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = 0; n < this->count_; ++n) {
        const C *const roi = in[1] + n * this->numbers_, *const head = in[0] + n * this->channels_ * windows;
        const int64_t image = image_of_region(roi[0], n, this->batch_);
        if (image < 0) continue;
        C *const planes = out[0] + image * this->planes_ * plane;
        this->each_place(roi, n, [&](int64_t w, const int64_t *e, const C *by) {
          for (int64_t c = begin; c < end; ++c) {
            for (int k = 0; k < 4; ++k) planes[c * plane + e[k]] += by[k] * head[c * windows + w];
          }
        });
      }
    });
  }
};

COHORT_KERNEL_BY(cpu, _contrib_ROIAlign, make_compute<RoiAlign>);
COHORT_KERNEL_BY(cpu, _backward__contrib_ROIAlign, make_compute<RoiAlignBackward>);
COHORT_KERNEL_BY(cpu, _contrib_RROIAlign, make_compute<TurnedRoiAlign>);
COHORT_KERNEL_BY(cpu, _backward__contrib_RROIAlign, make_compute<TurnedRoiAlignBackward>);

}  // namespace
}  // namespace cohort
