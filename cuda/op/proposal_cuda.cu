// SPDX-License-Identifier: Apache-2.0
// Proposal and MultiProposal: the boxes of all images at once, in the order of their scores; then those that remain.
#include "cuda/op/block_reduce.cuh"
#include "cuda/op/box_suppression.cuh"
#include "cuda/op/expected.cuh"
#include "cuda/op/sorting.cuh"
#include "kernels/proposal_anchors.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

// Checks that images have no more places than there are scores.
class ImagesCheck {
 public:
  explicit ImagesCheck(const StepSpec &spec)
      : images_(spec.inputs[0].shape[0]),
        stride_(spec.attrs_as<ProposalAttrs>().feature_stride),
        dtype_(spec.inputs[2].dtype),
        wide_(spec.attrs_as<ProposalAttrs>(), spec.inputs[0].shape),
        narrow_(spec.attrs_as<ProposalAttrs>(), spec.inputs[0].shape) {}
  struct ElementCheck {
    Elements info;
    Proposals<double> wide;
    Proposals<float> narrow;
    template <typename C>
    __device__ bool fits(const Proposals<C> &proposals, int64_t n) const {
      const C own[3] = {load<C>(info, 3 * n), load<C>(info, 3 * n + 1), load<C>(info, 3 * n + 2)};
      return proposals.has(proposals.image(own));
    }
    __device__ Finding operator()(int64_t n) const {  // in the compute type
      const bool good = Dtype(info.dtype) == Dtype::kFloat64 ? fits(wide, n) : fits(narrow, n);
      return {!good, bits_of(load<double>(info, 3 * n)), bits_of(load<double>(info, 3 * n + 1)), 0};
    }
  };
  int64_t count() const { return images_; }
  ElementCheck element_check(const Args &args) const { return {elements_of(args.inputs[2], dtype_), wide_, narrow_}; }
  std::string in_words(const InputError &c) const {
    return text("im_info[", c.place, "]: expected an image of at most ", wide_.height * stride_, " by ",
                wide_.width * stride_, ", found ", number_of(c.found), " by ", number_of(c.least));
  }

 private:
  const int64_t images_, stride_;
  const Dtype dtype_;
  const Proposals<double> wide_;
  const Proposals<float> narrow_;
};

template <typename C>
class ProposalCuda {
 public:
  explicit ProposalCuda(const StepSpec &spec)
      : a_(spec.attrs_as<ProposalAttrs>()),
        p_(a_, spec.inputs[0].shape),
        images_(spec.inputs[0].shape[0]),
        most_(a_.rpn_pre_nms_top_n > 0 ? std::min<int64_t>(a_.rpn_pre_nms_top_n, p_.count()) : p_.count()),
        base_(base_anchors<C>(a_)) {}
  size_t extra() const { return (bytes_ + sizeof(C) - 1) / sizeof(C); }

  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t images = images_, count = p_.count(), most = most_, rows = a_.rpn_post_nms_top_n;
    Ranked<C> *const pairs = pairs_.in(extra);
    C *const corners = corners_.in(extra), *const to = out[0], *const scores = out[1];
    predict(in, pairs, corners, lane);
    const Ranked<C> *const order = sort_rows<false>(lane, pairs, pairs + images * count, images, count);
    int64_t *const counts = counts_.in(extra), *const found = found_.in(extra), *const from = from_.in(extra);
    const SortedBoxes<C> sorted(sorted_.in(extra), images * most);
    for_each(lane, images, [=] __device__(int64_t n) { counts[n] = most; });
    CudaBackend::parallel_for_2d(lane, images, most, [=] __device__(int64_t n, int64_t i) {
      const C *const box = corners + 4 * (n * count + order[n * count + i].index);
      sorted.set(n * most + i, box_of(box, false), proposal_area(box), C(0));
    });
    suppress(lane, sorted, images, most, counts, rows, C(1),
             std::nextafter(C(a_.threshold), std::numeric_limits<C>::infinity()), found);
    CudaBackend::for_each_block(lane, images, 32 * most, [=] __device__(int64_t n) {
      const C *const remains = sorted.remains + n * most;
      const int64_t all = number_those(
          most, rows, [=](int64_t i) { return remains[i] != C(0); },
          [=](int64_t k, int64_t i) { from[n * rows + k] = i; });
      CudaBackend::block_for(1, [=](int64_t, int64_t) { found[n] = all; });
    });
    CudaBackend::parallel_for_2d(lane, images, rows, [=] __device__(int64_t n, int64_t row) {
      const Ranked<C> box = order[n * count + from[n * rows + row % found[n]]];
      C *const own = to + 5 * (n * rows + row);
      own[0] = C(n);
      copy_elements(corners + 4 * (n * count + box.index), 4, own + 1);
      if (scores) scores[n * rows + row] = box.key;
    });
  }

  static constexpr int64_t kSome = 32;
  struct SomeAnchors {
    Box<C> at[kSome];
  };

  // The most anchors per launch: more would exceed the size of a kernel's parameters. Public because nvcc refuses
  // device lambdas in private functions.
  void predict(const BodyInputs<C> &in, Ranked<C> *pairs, C *corners, const Lane &lane) const {
    const Proposals<C> p = p_;
    const C *const scores = in[0], *const moves = in[1], *const info = in[2];
    for (int64_t first = 0; first < p.anchors; first += kSome) {
      const int64_t some = std::min(kSome, p.anchors - first);
      SomeAnchors base;
      std::copy_n(base_.begin() + first, some, base.at);
      CudaBackend::parallel_for_2d(lane, images_, some * p.plane(), [=] __device__(int64_t n, int64_t place) {
        const int64_t k = place / p.plane(), i = place % p.plane() * p.anchors + first + k, at = n * p.count() + i;
        const C score = p.predict(p.image(info + 3 * n), base.at[k], scores + (2 * n + 1) * p.count(),
                                  moves + 4 * n * p.count(), i, corners + 4 * at);
        pairs[at] = {score, i};
      });
    }
  }

 private:
  const ProposalAttrs a_;
  const Proposals<C> p_;
  const int64_t images_, most_;
  const std::vector<Box<C>> base_;
  size_t bytes_ = 0;
  const ScratchArray<Ranked<C>> pairs_{bytes_, {2, images_, p_.count()}};
  const ScratchArray<C> corners_{bytes_, {4, images_, p_.count()}};
  const ScratchArray<C> sorted_{bytes_, {SortedBoxes<C>::kArrays, images_, most_}};
  const ScratchArray<int64_t> from_{bytes_, {images_, a_.rpn_post_nms_top_n}}, counts_{bytes_, {images_}},
      found_{bytes_, {images_}};
};

COHORT_KERNEL_BY(cuda, _contrib_Proposal, make_checked<ImagesCheck, make_compute<ProposalCuda>>);
COHORT_KERNEL_BY(cuda, _contrib_MultiProposal, make_checked<ImagesCheck, make_compute<ProposalCuda>>);

}  // namespace
}  // namespace cohort
