// SPDX-License-Identifier: Apache-2.0
// _contrib_BilinearResize2D, a line of an image at a time. Which elements a place reads is computed at bind.
#include <vector>

#include "cpu/op/cpu_backend.hpp"
#include "kernels/backend.hpp"
#include "kernels/resized_images.hpp"

namespace cohort {
namespace {

template <typename C>
std::vector<typename ResizeAxis<C>::Between> places_of(const ResizeAxis<C> &axis) {
  std::vector<typename ResizeAxis<C>::Between> places;
  for (int64_t i = 0; i < axis.count; ++i) places.push_back(axis.at(i));
  return places;
}

template <typename C>
class BilinearResizeLines {
 public:
  explicit BilinearResizeLines(const StepSpec &spec)
      : s_(spec, spec.inputs[0], spec.outputs[0]), rows_(places_of(s_.rows)), columns_(places_of(s_.columns)) {}
  size_t extra() const { return size_t(s_.planes * s_.wide * 2); }  // two lines of an image, of the new width
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    parallel_for(lane, s_.planes, 1 + kCheapGrain / (s_.tall * s_.wide + 1), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        resize(in[0] + p * s_.height * s_.width, out[0] + p * s_.tall * s_.wide, extra + p * s_.wide * 2);
      }
    });
  }

 private:
  void resize(const C *from, C *to, C *lines) const {
    int64_t held[2] = {-1, -1};  // the lines in `lines`; neighbouring lines use different slots
    const auto line = [&](int64_t y) {
      C *const widened = lines + y % 2 * s_.wide;
      if (held[y % 2] != y) widen_line(from + y * s_.width, widened);
      held[y % 2] = y;
      return widened;
    };
    for (const auto &y : rows_) {
      const C *const low = line(y.low), *const high = line(y.high);
      const C v = y.weight;
      for (int64_t j = 0; j < s_.wide; ++j) to[j] = (1 - v) * low[j] + v * high[j];
      to += s_.wide;
    }
  }
  void widen_line(const C *from, C *to) const {
    for (const auto &x : columns_) *to++ = (1 - x.weight) * from[x.low] + x.weight * from[x.high];
  }

  const BilinearImages<C> s_;
  const std::vector<typename ResizeAxis<C>::Between> rows_, columns_;
};

// For each element of an axis, the places that read it and their weights.
template <typename C>
class Readers {
 public:
  struct Reader {
    int64_t place;
    C share;
  };
  explicit Readers(const ResizeAxis<C> &axis) {
    for (int64_t element = 0; element < axis.length; ++element) {
      for (int64_t i = axis.first_over(element); i < axis.behind_over(element); ++i) {
        if (axis.share(i, element) != 0) readers_.push_back({i, axis.share(i, element)});
      }
      ends_.push_back(readers_.size());
    }
  }
  // Calls fn(place, weight) for each place that reads an element.
  template <typename Fn>
  void each(int64_t element, Fn &&fn) const {
    for (size_t i = element > 0 ? ends_[size_t(element) - 1] : 0; i < ends_[size_t(element)]; ++i) {
      fn(readers_[i].place, readers_[i].share);
    }
  }

 private:
  std::vector<Reader> readers_;
  std::vector<size_t> ends_;
};

template <typename C>
class BilinearResizeLinesBackward {
 public:
  explicit BilinearResizeLinesBackward(const StepSpec &spec)
      : s_(spec, spec.outputs[0], spec.inputs[0]), like_(spec), rows_(s_.rows), columns_(s_.columns) {}
  size_t extra() const { return size_t(s_.planes * s_.wide); }  // the gradient of one line, before columns are resized
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    like_.write(out[1], lane);
    if (!out[0]) return;
    parallel_for(lane, s_.planes, 1 + kCheapGrain / (s_.tall * s_.wide + 1), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        gather(in[0] + p * s_.tall * s_.wide, out[0] + p * s_.height * s_.width, extra + p * s_.wide);
      }
    });
  }

 private:
  void gather(const C *head, C *to, C *line) const {
    for (int64_t y = 0; y < s_.height; ++y) {
      std::fill_n(line, s_.wide, C(0));
      rows_.each(y, [&](int64_t i, C share) {
        const C *const from = head + i * s_.wide;
        for (int64_t j = 0; j < s_.wide; ++j) line[j] += share * from[j];
      });
      for (int64_t x = 0; x < s_.width; ++x) {
        C sum = 0;
        columns_.each(x, [&](int64_t j, C share) { sum += share * line[j]; });
        *to++ = sum;
      }
    }
  }

  const BilinearImages<C> s_;
  const LikeGradient like_;
  const Readers<C> rows_, columns_;
};

COHORT_KERNEL_BY(cpu, _contrib_BilinearResize2D, make_compute<BilinearResizeLines>);
COHORT_KERNEL_BY(cpu, _backward__contrib_BilinearResize2D, make_compute<BilinearResizeLinesBackward>);

}  // namespace
}  // namespace cohort
