// SPDX-License-Identifier: Apache-2.0
// The forward steps share out regions among threads, the backward steps channels, because regions may overlap.
#include "op/roi_align.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/regions.hpp"
#include "kernels/rotated_regions.hpp"
#include "op/bilinear.hpp"

namespace cohort {
namespace {

// The windows of a region along one axis: which elements each reads, with which weights. The value of a window is a
// product of sums over the axes.
template <typename C>
class WindowWeights {
 public:
  // The samples of one window follow those of the window before: two windows share at most two elements.
  static int64_t elements(int64_t windows, int64_t length) { return length + 5 * windows; }

  WindowWeights(C *memory, int64_t windows, int64_t length)
      : weights_(memory),
        first_(reinterpret_cast<int32_t *>(memory + length + 3 * windows)),
        count_(first_ + windows),
        windows_(windows),
        length_(length) {}

  void fill(C start, C size, C places) {
    constexpr C kFar = C(int64_t(1) << 40);  // no image reaches there, and numbers of samples cannot overflow
    C *to = weights_;
    const C distance = size / places;
    for (int64_t w = 0; w < windows_; ++w) {
      const C base = start + C(w) * size;
      first_[w] = count_[w] = 0;
      if (!(std::fabs(base) < kFar && size < kFar && distance > 0)) continue;
      // Only samples that may lie on the axis, so that a region may have any size.
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

  // The elements that a window reads, from `first` on, and their weights.
  struct Window {
    int64_t first, count;
    const C *weights;
  };
  // Calls fn(window, its elements) for each window.
  template <typename Fn>
  void each(Fn &&fn) const {
    const C *from = weights_;
    for (int64_t w = 0; w < windows_; ++w) {
      fn(w, Window{first_[w], count_[w], from});
      from += count_[w];
    }
  }
  // All elements that are read lie in [begin, end).
  int64_t begin() const {
    int64_t least = length_;
    for (int64_t w = 0; w < windows_; ++w) least = count_[w] > 0 ? std::min<int64_t>(least, first_[w]) : least;
    return least;
  }
  int64_t end() const {
    int64_t most = 0;
    for (int64_t w = 0; w < windows_; ++w) most = count_[w] > 0 ? std::max<int64_t>(most, first_[w] + count_[w]) : most;
    return most;
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
  using Window = typename WindowWeights<C>::Window;

  // The windows of a region along both axes, and memory for a line of an image.
  struct Reading {
    WindowWeights<C> along_y, along_x;
    C share;
    int64_t begin, end;  // range of elements along x
    C *line;
  };

  int64_t weights_y() const { return whole_lines(WindowWeights<C>::elements(this->rows_, this->height_)); }
  int64_t weights_x() const { return whole_lines(WindowWeights<C>::elements(this->columns_, this->width_)); }
  int64_t per_thread() const { return weights_y() + weights_x() + whole_lines(this->width_); }

  Reading reading_of(const C *roi, int64_t index, C *memory) const {
    Reading r = {{memory, this->rows_, this->height_}, {memory + weights_y(), this->columns_, this->width_}, 0, 0, 0,
                 memory + weights_y() + weights_x()};
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
    r.along_y.fill(top, height / C(this->rows_), places_y);
    r.along_x.fill(left, width / C(this->columns_), places_x);
    r.share = 1 / (places_y * places_x);
    r.begin = r.along_x.begin();
    r.end = r.along_x.end();
    return r;
  }

  // Sums the lines of an image that a window reads along y, over [begin, end).
  void add_lines(const C *plane, const Window &y, int64_t begin, int64_t end, C *line) const {
    if (begin < end) std::fill(line + begin, line + end, C(0));
    const C *from = plane + y.first * this->width_, *by = y.weights;
    int64_t left = y.count;
    for (; left >= 4; left -= 4, from += 4 * this->width_, by += 4) add_some<4>(from, by, begin, end, line);
    if (left == 3) add_some<3>(from, by, begin, end, line);
    if (left == 2) add_some<2>(from, by, begin, end, line);
    if (left == 1) add_some<1>(from, by, begin, end, line);
  }
  template <int kLines>
  void add_some(const C *from, const C *by, int64_t begin, int64_t end, C *__restrict line) const {
    for (int64_t x = begin; x < end; ++x) {
      C sum = line[x];
      for (int i = 0; i < kLines; ++i) sum += by[i] * from[i * this->width_ + x];
      line[x] = sum;
    }
  }
  // The value of a window of that line. Most windows read a few elements.
  static C read(const C *line, const Window &x) {
    const C *const at = line + x.first, *const by = x.weights;
    if (x.count == 3) return by[0] * at[0] + by[1] * at[1] + by[2] * at[2];
    if (x.count == 4) return by[0] * at[0] + by[1] * at[1] + (by[2] * at[2] + by[3] * at[3]);
    C sum = 0;
    for (int64_t i = 0; i < x.count; ++i) sum += by[i] * at[i];
    return sum;
  }
  // Adds the gradient of a window to the line.
  void spread_line(const C *line, const Window &y, int64_t begin, int64_t end, C *plane) const {
    for (int64_t i = 0; i < y.count; ++i) {
      C *const to = plane + (y.first + i) * this->width_;
      for (int64_t x = begin; x < end; ++x) to[x] += y.weights[i] * line[x];
    }
  }
};

template <typename C>
class RoiAlign : StraightBody<C> {
  using Window = typename StraightBody<C>::Window;

 public:
  explicit RoiAlign(const StepSpec &spec) : StraightBody<C>(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return size_t(this->threads_ * this->per_thread()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    parallel_ranges(lane, this->count_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * this->per_thread();
      for (int64_t n = begin; n < end; ++n) {
        const C *const roi = in[1] + n * this->numbers_;
        C *const to = out[0] + n * this->channels_ * windows;
        const int64_t image = image_of_region<CpuBackend>(roi[0], n, this->batch_);
        if (image < 0) {
          std::fill_n(to, this->channels_ * windows, C(0));
        } else {
          one_region(in[0] + image * this->planes_ * plane, this->reading_of(roi, n, memory), to);
        }
      }
    });
  }

 private:
  void one_region(const C *planes, const typename StraightBody<C>::Reading &r, C *to) const {
    const int64_t plane = this->height_ * this->width_;
    for (int64_t c = 0; c < this->channels_; ++c) {
      r.along_y.each([&](int64_t row, const Window &y) {
        if (!this->a_.position_sensitive) this->add_lines(planes + c * plane, y, r.begin, r.end, r.line);
        r.along_x.each([&](int64_t column, const Window &x) {
          if (this->a_.position_sensitive) {
            this->add_lines(planes + this->plane_of(c, row, column) * plane, y, x.first, x.first + x.count, r.line);
          }
          const C sum = this->read(r.line, x);
          *to++ = sum == 0 || y.count == 0 ? C(0) : sum * r.share;
        });
      });
    }
  }
};

template <typename C>
class RoiAlignBackward : StraightBody<C> {
  using Window = typename StraightBody<C>::Window;

 public:
  explicit RoiAlignBackward(const StepSpec &spec)
      : StraightBody<C>(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return size_t(this->threads_ * this->per_thread()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    std::fill_n(out[0], this->batch_ * this->planes_ * plane, C(0));
    parallel_ranges(lane, this->channels_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * this->per_thread();
      for (int64_t n = 0; n < this->count_; ++n) {
        const C *const roi = in[1] + n * this->numbers_;
        const int64_t image = image_of_region<CpuBackend>(roi[0], n, this->batch_);
        if (image < 0) continue;
        const auto r = this->reading_of(roi, n, memory);
        for (int64_t c = begin; c < end; ++c) {
          one_channel(in[0] + (n * this->channels_ + c) * windows, c, r, out[0] + image * this->planes_ * plane);
        }
      }
    });
  }

 private:
  void one_channel(const C *head, int64_t c, const typename StraightBody<C>::Reading &r, C *planes) const {
    const int64_t plane = this->height_ * this->width_;
    r.along_y.each([&](int64_t row, const Window &y) {
      if (r.begin < r.end) std::fill(r.line + r.begin, r.line + r.end, C(0));
      r.along_x.each([&](int64_t column, const Window &x) {
        const C d = *head++ * r.share;
        for (int64_t i = 0; i < x.count; ++i) r.line[x.first + i] += d * x.weights[i];
        if (!this->a_.position_sensitive) return;
        this->spread_line(r.line, y, x.first, x.first + x.count, planes + this->plane_of(c, row, column) * plane);
        std::fill_n(r.line + x.first, x.count, C(0));
      });
      if (!this->a_.position_sensitive) this->spread_line(r.line, y, r.begin, r.end, planes + c * plane);
    });
  }
};

// ---- RROIAlign ------------------------------------------------------------------------------------------------------

template <typename C>
class RotatedBody : protected AlignBody<C> {
 protected:
  RotatedBody(const StepSpec &spec, const Shape &data, const Shape &rois)
      : AlignBody<C>(spec, data, rois), grid_(this->a_, data) {}

  // Calls fn(window, sample) for each sample of a region that lies on the image.
  template <typename Fn>
  void each_place(const C *roi, int64_t index, Fn &&fn) const {
    const RotatedRegion<C> region = grid_.region(roi);
    if (!region.is_readable()) {
      throw Error(Code::kExecution, text("rois[", index, "]: expected at most ", region.kMostPlaces,
                                         " places along a side of a window, found ", region.most_places()));
    }
    for (int64_t w = 0; w < this->rows_ * this->columns_; ++w) {
      grid_.each_place(region, w, [&](const RotatedSample<C> &place) { fn(w, place); });
    }
  }

 private:
  const RotatedGrid<C> grid_;
};

template <typename C>
class RotatedRoiAlign : RotatedBody<C> {
 public:
  explicit RotatedRoiAlign(const StepSpec &spec) : RotatedBody<C>(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const C *const roi = in[1] + n * this->numbers_;
        C *const to = out[0] + n * this->channels_ * windows;
        std::fill_n(to, this->channels_ * windows, C(0));
        const int64_t image = image_of_region<CpuBackend>(roi[0], n, this->batch_);
        if (image < 0) continue;
        const C *const planes = in[0] + image * this->planes_ * plane;
        this->each_place(roi, n, [&](int64_t w, const RotatedSample<C> &place) {
          const int64_t *const e = place.elements;
          const C *const by = place.weights;
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
class RotatedRoiAlignBackward : RotatedBody<C> {
 public:
  explicit RotatedRoiAlignBackward(const StepSpec &spec)
      : RotatedBody<C>(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t windows = this->rows_ * this->columns_, plane = this->height_ * this->width_;
    std::fill_n(out[0], this->batch_ * this->planes_ * plane, C(0));
    parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = 0; n < this->count_; ++n) {
        const C *const roi = in[1] + n * this->numbers_, *const head = in[0] + n * this->channels_ * windows;
        const int64_t image = image_of_region<CpuBackend>(roi[0], n, this->batch_);
        if (image < 0) continue;
        C *const planes = out[0] + image * this->planes_ * plane;
        this->each_place(roi, n, [&](int64_t w, const RotatedSample<C> &place) {
          for (int64_t c = begin; c < end; ++c) {
            for (int k = 0; k < 4; ++k) {
              planes[c * plane + place.elements[k]] += place.weights[k] * head[c * windows + w];
            }
          }
        });
      }
    });
  }
};

COHORT_KERNEL_BY(cpu, _contrib_ROIAlign, make_compute<RoiAlign>);
COHORT_KERNEL_BY(cpu, _backward__contrib_ROIAlign, make_compute<RoiAlignBackward>);
COHORT_KERNEL_BY(cpu, _contrib_RROIAlign, make_compute<RotatedRoiAlign>);
COHORT_KERNEL_BY(cpu, _backward__contrib_RROIAlign, make_compute<RotatedRoiAlignBackward>);

}  // namespace
}  // namespace cohort
