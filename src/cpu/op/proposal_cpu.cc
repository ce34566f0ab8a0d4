// SPDX-License-Identifier: Apache-2.0
// Proposal and MultiProposal. Threads share out the images.
#include "kernels/proposal_anchors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/box_suppression.hpp"
#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/partial_sort.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

template <typename C>
class Proposal {
 public:
  explicit Proposal(const StepSpec &spec)
      : a_(spec.attrs_as<ProposalAttrs>()),
        p_(a_, spec.inputs[0].shape),
        images_(spec.inputs[0].shape[0]),
        count_(p_.count()),
        most_(a_.rpn_pre_nms_top_n > 0 ? std::min<int64_t>(a_.rpn_pre_nms_top_n, count_) : count_),
        threads_(spec.num_threads),
        base_(base_anchors<C>(a_)) {}
  size_t extra() const { return size_t(threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    parallel_ranges(lane, images_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * per_thread();
      for (int64_t n = begin; n < end; ++n) one_image(in, out, n, memory);
    });
  }

 private:
  int64_t per_thread() const {
    return whole_lines(ranked_elements<C>(count_) + 4 * count_ + SortedBoxes<C>::kArrays * most_);
  }

  void one_image(const C *const *in, C *const *out, int64_t n, C *memory) const {
    auto *const order = reinterpret_cast<Ranked<C> *>(memory);
    C *const corners = memory + ranked_elements<C>(count_);
    const SortedBoxes<C> sorted(corners + 4 * count_, most_);
    predict(in, n, order, corners);
    rank<false>(order, count_, most_);
    for (int64_t i = 0; i < most_; ++i) {
      const C *const box = corners + 4 * order[i].index;
      sorted.set(i, box_of(box, false), proposal_area(box), C(0));
    }
    const int64_t rows = a_.rpn_post_nms_top_n;
    suppress(sorted, most_, rows, C(1), std::nextafter(C(a_.threshold), std::numeric_limits<C>::infinity()));
    C *const to = out[0] + 5 * n * rows, *const scores = out[1] ? out[1] + n * rows : nullptr;
    int64_t row = 0;
    for (int64_t i = 0; i < most_ && row < rows; ++i) {
      if (sorted.remains[i] == 0) continue;
      to[5 * row] = C(n);
      std::copy_n(corners + 4 * order[i].index, 4, to + 5 * row + 1);
      if (scores) scores[row] = order[i].key;
      ++row;
    }
    for (const int64_t found = row; row < rows; ++row) {
      std::copy_n(to + 5 * (row - found), 5, to + 5 * row);
      if (scores) scores[row] = scores[row - found];
    }
  }

  void predict(const C *const *in, int64_t n, Ranked<C> *order, C *corners) const {
    const C *const scores = in[0] + (2 * n + 1) * count_, *const moves = in[1] + 4 * n * count_;
    const C *const info = in[2] + 3 * n;
    const auto image = p_.image(info);
    if (!p_.has(image)) {
      throw Error(Code::kExecution,
                  text("im_info[", n, "]: expected an image of at most ", p_.height * a_.feature_stride, " by ",
                       p_.width * a_.feature_stride, ", found ", info[0], " by ", info[1]));
    }
    for (int64_t i = 0; i < count_; ++i) {
      order[i] = {p_.predict(image, base_[size_t(i % p_.anchors)], scores, moves, i, corners + 4 * i), i};
    }
  }

  const ProposalAttrs a_;
  const Proposals<C> p_;
  const int64_t images_, count_, most_, threads_;
  const std::vector<Box<C>> base_;
};

COHORT_KERNEL_BY(cpu, _contrib_Proposal, make_compute<Proposal>);
COHORT_KERNEL_BY(cpu, _contrib_MultiProposal, make_compute<Proposal>);

}  // namespace
}  // namespace cohort
