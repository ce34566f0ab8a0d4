// SPDX-License-Identifier: Apache-2.0
// Kernels of op/box_coding.hpp.
#pragma once

#include "op/box_coding.hpp"

#include <limits>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "op/box_math.hpp"

namespace cohort {
namespace {

template <typename Backend, typename C>
class BoxEncode {
 public:
  explicit BoxEncode(const StepSpec &spec)
      : batch_(spec.inputs[2].shape[0]), anchors_(spec.inputs[2].shape[1]), objects_(spec.inputs[3].shape[1]) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const C *const means = in[4], *const stds = in[5];
    Backend::parallel_for(lane, batch_ * anchors_, Backend::kExpensiveGrain / 4,
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const bool counts = in[0][i] > C(0.5);
                              C code[4] = {0, 0, 0, 0};
                              const int64_t matched = counts ? object(in[1][i], i) : -1;
                              if (matched >= 0) {
                                encode_box(in[2] + 4 * i, in[3] + 4 * (i / anchors_ * objects_ + matched), code);
                                for (int k = 0; k < 4; ++k) code[k] = (code[k] - means[k]) / stds[k];
                              }
                              if (out[0]) copy_elements(code, 4, out[0] + 4 * i);
                              if (out[1]) fill_elements(out[1] + 4 * i, 4, counts ? C(1) : C(0));
                            }
                          });
  }

 private:
  COHORT_HOST_DEVICE int64_t object(C match, int64_t i) const {
    if (match > -1 && match < C(objects_)) return int64_t(match);
    Backend::fail("matches[", i / anchors_, ", ", i % anchors_, "]: expected 0 to ", objects_ - 1,
                  " where samples is 1, found ", match);
    return objects_ > 0 ? 0 : -1;  // on CUDA, where fail() returns
  }

  const int64_t batch_, anchors_, objects_;
};

template <typename Backend, typename C>
class BoxDecode {
 public:
  explicit BoxDecode(const StepSpec &spec)
      : a_(spec.attrs_as<BoxDecodeAttrs>()), batch_(spec.inputs[0].shape[0]), anchors_(spec.inputs[0].shape[1]) {}
  size_t extra() const { return a_.center ? size_t(4 * anchors_) : 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const C *corners = in[1];
    if (a_.center) {
      corners = extra;
      Backend::parallel_for(lane, anchors_, Backend::kCheapGrain, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) write(box_of(in[1] + 4 * i, true), extra + 4 * i);
      });
    }
    const C std0 = C(a_.std0), std1 = C(a_.std1), std2 = C(a_.std2), std3 = C(a_.std3);
    const int64_t anchors = anchors_;
    const C most = a_.clip > 0 ? C(a_.clip) : std::numeric_limits<C>::infinity();
    Backend::parallel_for_2d(lane, batch_, anchors_, [=] COHORT_DEVICE(int64_t sample, int64_t anchor) {
      const int64_t at = 4 * (sample * anchors + anchor);
      const C *const d = in[0] + at;
      const C dw = d[2] * std2, dh = d[3] * std3;
      write(decode_box(box_of(corners + 4 * anchor, false), d[0] * std0, d[1] * std1, dw > most ? most : dw,
                       dh > most ? most : dh),
            out[0] + at);
    });
  }

 private:
  COHORT_HOST_DEVICE static void write(const Box<C> &box, C *to) {
    to[0] = box.left;
    to[1] = box.top;
    to[2] = box.right;
    to[3] = box.bottom;
  }

  const BoxDecodeAttrs a_;
  const int64_t batch_, anchors_;
};

template <typename Backend>
void register_box_coding_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_box_encode", make_compute<Backend, BoxEncode>);
  table.add("_contrib_box_decode", make_compute<Backend, BoxDecode>);
}

}  // namespace
}  // namespace cohort
