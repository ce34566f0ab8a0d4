// SPDX-License-Identifier: Apache-2.0
// Kernels of _contrib_AdaptiveAvgPooling2D. Gradients are gathered: each line of the data finds the windows that read
// it.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/resized_images.hpp"

namespace cohort {
namespace {

// `count` averaging windows over `length` elements.
struct MeanWindows {
  int64_t length, count;
  COHORT_HOST_DEVICE int64_t begin(int64_t i) const { return i * length / count; }
  COHORT_HOST_DEVICE int64_t end(int64_t i) const { return ((i + 1) * length + count - 1) / count; }
  // The windows that contain an element: [first_over, behind_over).
  COHORT_HOST_DEVICE int64_t first_over(int64_t at) const { return at * count / length; }
  COHORT_HOST_DEVICE int64_t behind_over(int64_t at) const { return ((at + 1) * count + length - 1) / length; }
};

template <typename Backend, typename C>
class AdaptivePool {
 public:
  explicit AdaptivePool(const StepSpec &spec) : s_(spec.inputs[0].shape, spec.outputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const ImagePair s = s_;
    const MeanWindows rows{s.height, s.tall}, columns{s.width, s.wide};
    Backend::parallel_for_2d(lane, s.planes * s.tall, s.wide, [=] COHORT_DEVICE(int64_t line, int64_t j) {
      const int64_t plane = line / s.tall, i = line % s.tall;
      const C *const from = in[0] + plane * s.height * s.width;
      C sum = 0;
      for (int64_t y = rows.begin(i); y < rows.end(i); ++y) {
        for (int64_t x = columns.begin(j); x < columns.end(j); ++x) sum += from[y * s.width + x];
      }
      const C area = C((rows.end(i) - rows.begin(i)) * (columns.end(j) - columns.begin(j)));
      out[0][line * s.wide + j] = sum / area;
    });
  }

 private:
  const ImagePair s_;
};

template <typename Backend, typename C>
class AdaptivePoolBackward {
 public:
  explicit AdaptivePoolBackward(const StepSpec &spec) : s_(spec.outputs[0].shape, spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, s_.planes * s_.height, 1 + 4096 / (s_.width + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            const ImagePair s = s_;
                            const MeanWindows rows{s.height, s.tall}, columns{s.width, s.wide};
                            for (int64_t line = begin; line < end; ++line) {
                              const int64_t y = line % s.height;
                              const C *const head = in[0] + line / s.height * s.tall * s.wide;
                              C *const to = out[0] + line * s.width;
                              fill_elements(to, s.width, C(0));
                              for (int64_t i = rows.first_over(y); i < rows.behind_over(y); ++i) {
                                const int64_t height = rows.end(i) - rows.begin(i);
                                for (int64_t j = 0; j < s.wide; ++j) {
                                  const int64_t left = columns.begin(j), right = columns.end(j);
                                  const C share = head[i * s.wide + j] / C(height * (right - left));
                                  for (int64_t x = left; x < right; ++x) to[x] += share;
                                }
                              }
                            }
                          });
  }

 private:
  const ImagePair s_;
};

template <typename Backend>
void register_adaptive_pooling_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_AdaptiveAvgPooling2D", make_compute<Backend, AdaptivePool>);
  table.add("_backward__contrib_AdaptiveAvgPooling2D", make_compute<Backend, AdaptivePoolBackward>);
}

}  // namespace
}  // namespace cohort
