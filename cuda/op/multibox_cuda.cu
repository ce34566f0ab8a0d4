// SPDX-License-Identifier: Apache-2.0
// MultiBoxTarget and MultiBoxDetection: anchors of all samples in parallel, except where one choice depends on another.
#include "cuda/op/block_reduce.cuh"
#include "cuda/op/box_suppression.cuh"
#include "cuda/op/expected.cuh"
#include "cuda/op/sorting.cuh"
#include "kernels/anchor_coding.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

// Checks that the corners of the first object of class -1, which ends the list, are -1 as well.
class LabelsCheck {
 public:
  explicit LabelsCheck(const StepSpec &spec)
      : objects_(spec.inputs[1].shape[1]),
        width_(spec.inputs[1].shape[2]),
        rows_(spec.inputs[1].shape[0] * objects_),
        dtype_(spec.inputs[1].dtype) {}
  struct ElementCheck {
    Elements label;
    int64_t objects, width;
    __device__ bool ends(int64_t row) const { return load<double>(label, row * width) == -1; }
    __device__ Finding operator()(int64_t place) const {
      const int64_t row = place / 4;
      const double corner = load<double>(label, row * width + 1 + place % 4);
      bool wrong = corner != -1 && ends(row);
      for (int64_t before = row / objects * objects; wrong && before < row; ++before) wrong = !ends(before);
      return {wrong, bits_of(corner), 0, 0};
    }
  };
  int64_t count() const { return 4 * rows_; }
  ElementCheck element_check(const Args &args) const { return {elements_of(args.inputs[1], dtype_), objects_, width_}; }
  std::string in_words(const InputError &c) const {
    const int64_t row = c.place / 4;
    return text("label[", row / objects_, ", ", row % objects_, ", ", 1 + c.place % 4,
                "]: expected -1 behind class -1, found ", number_of(c.found));
  }

 private:
  const int64_t objects_, width_, rows_;
  const Dtype dtype_;
};

// The anchors and objects of all samples: an object takes the anchor that overlaps it most, as on the CPU.
template <typename C>
struct Matches {
  const C *anchors, *labels;
  int64_t num_anchors, num_objects, width;
  // Per sample: the number of objects. Per anchor: the largest overlap, the object that has it, and the anchor's state.
  // Per object: the anchor that it may take, and their overlap.
  int64_t *objects;
  C *overlap;
  int64_t *object;
  AnchorState *state;
  Ranked<C> *best;

  __device__ Box<C> anchor(int64_t j) const { return box_of(anchors + 4 * j, false); }
  __device__ const C *label(int64_t n, int64_t k) const { return labels + (n * num_objects + k) * width; }
  __device__ C overlap_of(const Box<C> &anchor, const Box<C> &object) const {
    return anchor_overlap(anchor, area_of(anchor), object, area_of(object));
  }

  __device__ void count_objects(int64_t n) const {
    int64_t k = 0;
    while (k < num_objects && label(n, k)[0] != C(-1)) ++k;
    objects[n] = k;
  }
  __device__ void meet_objects(int64_t n, int64_t j) const {
    const Box<C> own = anchor(j);
    const int64_t at = n * num_anchors + j;
    C most = -1;
    int64_t with = -1;
    for (int64_t k = 0; k < objects[n]; ++k) {
      const C now = overlap_of(own, box_of(label(n, k) + 1, false));
      if (!(now > most)) continue;
      most = now;
      with = k;
    }
    overlap[at] = most;
    object[at] = with;
    state[at] = AnchorState::kIgnored;
  }

  // Finds the best of the anchors that no object has taken yet. Called by all threads of the block.
  __device__ void find_best(int64_t n, int64_t k) const {
    const Box<C> own = box_of(label(n, k) + 1, false);
    const AnchorState *const states = state + n * num_anchors;
    Ranked<C> found = {C(0), num_anchors};
    for (int64_t j = threadIdx.x; j < num_anchors; j += blockDim.x) {
      if (states[j] == AnchorState::kObject) continue;
      const C now = overlap_of(anchor(j), own);
      if (now > found.key) found = {now, j};
    }
    found = combined(found, [](const Ranked<C> &a, const Ranked<C> &b) { return ranks_before<false>(a, b) ? a : b; });
    CudaBackend::block_for(1, [&](int64_t, int64_t) { best[n * num_objects + k] = found; });
  }

  // An object and the anchor that it may take. Those that overlap most come first, then the first anchor and object.
  struct Pair {
    Ranked<C> anchor;
    int64_t object;
    __device__ bool comes_before(const Pair &other) const {
      const bool same = anchor.key == other.anchor.key && anchor.index == other.anchor.index;
      return same ? object < other.object : ranks_before<false>(anchor, other.anchor);
    }
  };
  __device__ void take_best(int64_t n) const {
    Ranked<C> *const own = best + n * num_objects;
    for (;;) {
      Pair next{{C(1e-6f), num_anchors}, num_objects};
      for (int64_t k = threadIdx.x; k < objects[n]; k += blockDim.x) {
        const Pair pair{own[k], k};
        if (own[k].key > C(1e-6f) && pair.comes_before(next)) next = pair;
      }
      next = combined(next, [](const Pair &a, const Pair &b) { return a.comes_before(b) ? a : b; });
      if (next.object == num_objects) return;
      const int64_t j = next.anchor.index, at = n * num_anchors + j;
      CudaBackend::block_for(1, [&](int64_t, int64_t) {
        state[at] = AnchorState::kObject;
        overlap[at] = next.anchor.key;
        object[at] = next.object;
        own[next.object] = {C(-1), num_anchors};
      });
      for (int64_t k = 0; k < objects[n]; ++k) {
        if (own[k].index == j) find_best(n, k);
      }
    }
  }
};

template <typename C>
class MultiBoxTargetCuda {
 public:
  explicit MultiBoxTargetCuda(const StepSpec &spec)
      : a_(spec.attrs_as<MultiBoxTargetAttrs>()),
        targets_{Variances<C>(a_.variances), C(a_.ignore_label)},
        anchors_(spec.inputs[0].shape[1]),
        batch_(anchors_ > 0 ? spec.inputs[1].shape[0] : 0),  // else there is nothing to do
        objects_(spec.inputs[1].shape[1]),
        width_(spec.inputs[1].shape[2]),
        classes_(spec.inputs[2].shape[1]) {}
  size_t extra() const { return (bytes_ + sizeof(C) - 1) / sizeof(C); }

  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t batch = batch_, anchors = anchors_, objects = objects_;
    const Matches<C> all{in[0],
                         in[1],
                         anchors,
                         objects,
                         width_,
                         counts_.in(extra),
                         overlap_.in(extra),
                         object_.in(extra),
                         state_.in(extra),
                         best_.in(extra)};
    int64_t *const taken = taken_.in(extra);
    const C threshold = C(a_.overlap_threshold);
    const bool mines = a_.negative_mining_ratio > 0;
    for_each(lane, batch, [=] __device__(int64_t n) { all.count_objects(n); });
    CudaBackend::parallel_for_2d(lane, batch, anchors,
                                 [=] __device__(int64_t n, int64_t j) { all.meet_objects(n, j); });
    CudaBackend::for_each_block(lane, batch * objects, 32 * anchors, [=] __device__(int64_t i) {
      const int64_t n = i / objects, k = i % objects;
      if (k < all.objects[n]) all.find_best(n, k);  // or all threads leave
    });
    CudaBackend::for_each_block(lane, batch, 32 * anchors, [=] __device__(int64_t n) {
      all.take_best(n);
      int64_t own = 0;
      for (int64_t at = n * anchors + threadIdx.x; at < (n + 1) * anchors; at += blockDim.x) {
        AnchorState &state = all.state[at];
        if (threshold > 0 && all.overlap[at] > threshold) state = AnchorState::kObject;
        if (state == AnchorState::kObject) {
          ++own;
        } else if (!mines && all.objects[n] > 0) {
          state = AnchorState::kBackground;
        }
      }
      const int64_t sum = combined(own, [](int64_t a, int64_t b) { return a + b; });
      CudaBackend::block_for(1, [=](int64_t, int64_t) { taken[n] = sum; });
    });
    if (mines) mine(all, taken, in[2], pairs_.in(extra), lane);
    C *const location = out[0], *const mask = out[1], *const label = out[2];
    const AnchorTargets<C> targets = targets_;
    CudaBackend::parallel_for_2d(lane, batch, anchors, [=] __device__(int64_t n, int64_t j) {
      const int64_t at = n * anchors + j;
      const C *const object = all.state[at] == AnchorState::kObject ? all.label(n, all.object[at]) : nullptr;
      targets.write(all.state[at], all.anchors + 4 * j, object, location ? location + 4 * at : nullptr,
                    mask ? mask + 4 * at : nullptr, label ? label + at : nullptr);
    });
  }

  // Selects negative samples: among the anchors that overlap no object, those that look least like background. All
  // other anchors come last, by their index. Public because nvcc refuses device lambdas in private functions.
  void mine(const Matches<C> &all, const int64_t *taken, const C *scores, Ranked<C> *pairs, const Lane &lane) const {
    const int64_t anchors = anchors_, classes = classes_;
    const C most_overlap = C(a_.negative_mining_thresh);
    const float ratio = a_.negative_mining_ratio;
    CudaBackend::parallel_for_2d(lane, batch_, anchors, [=] __device__(int64_t n, int64_t j) {
      const int64_t at = n * anchors + j;
      const bool may_be = all.objects[n] > 0 && all.state[at] != AnchorState::kObject && all.overlap[at] < most_overlap;
      pairs[at] = {C(NAN), anchors + j};
      if (may_be) pairs[at] = {background_share(scores + n * classes * anchors + j, classes, anchors), j};
    });
    const Ranked<C> *const order = sort_rows<true>(lane, pairs, pairs + batch_ * anchors, batch_, anchors);
    CudaBackend::parallel_for_2d(lane, batch_, anchors, [=] __device__(int64_t n, int64_t i) {
      const int64_t j = order[n * anchors + i].index;
      const double wanted = double(float(taken[n]) * ratio);
      if (j < anchors && !(wanted < double(i + 1))) all.state[n * anchors + j] = AnchorState::kBackground;
    });
  }

 private:
  const MultiBoxTargetAttrs a_;
  const AnchorTargets<C> targets_;
  const int64_t anchors_, batch_, objects_, width_, classes_;
  size_t bytes_ = 0;
  const ScratchArray<Ranked<C>> pairs_{bytes_, {a_.negative_mining_ratio > 0 ? 2 : 0, batch_, anchors_}};
  const ScratchArray<Ranked<C>> best_{bytes_, {batch_, objects_}};
  const ScratchArray<int64_t> counts_{bytes_, {batch_}}, taken_{bytes_, {batch_}}, object_{bytes_, {batch_, anchors_}};
  const ScratchArray<C> overlap_{bytes_, {batch_, anchors_}};
  const ScratchArray<AnchorState> state_{bytes_, {batch_, anchors_}};
};

// Rows of class, score and corners: the rows of objects first, in order.
template <typename C>
class MultiBoxDetectionCuda {
 public:
  explicit MultiBoxDetectionCuda(const StepSpec &spec)
      : a_(spec.attrs_as<MultiBoxDetectionAttrs>()),
        anchor_{Variances<C>(a_.variances), C(a_.threshold), a_.clip},
        anchors_(spec.inputs[0].shape[2]),
        batch_(anchors_ > 0 ? spec.inputs[0].shape[0] : 0),  // else there is nothing to do
        classes_(spec.inputs[0].shape[1]),
        suppresses_(a_.nms_threshold > 0 && a_.nms_threshold <= 1),
        most_(!suppresses_      ? 0
              : a_.nms_topk > 0 ? std::min<int64_t>(a_.nms_topk, anchors_)
                                : anchors_) {}
  size_t extra() const { return (bytes_ + sizeof(C) - 1) / sizeof(C); }

  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t batch = batch_, classes = classes_, anchors = anchors_, most = most_;
    const AnchorDetections<C> each = anchor_;
    const C *const prob = in[0], *const moves = in[1], *const corners = in[2];
    C *const found = classes_of_.in(extra), *const scores = scores_.in(extra), *const rows = out[0];
    CudaBackend::parallel_for_2d(lane, batch, anchors, [=] __device__(int64_t n, int64_t j) {
      C score = -1, best = 0;
      for (int64_t k = 1; k < classes; ++k) {
        const C p = prob[(n * classes + k) * anchors + j];
        best = p > score ? C(k) : best;
        score = p > score ? p : score;
      }
      found[n * anchors + j] = each.class_of(best, score);
      scores[n * anchors + j] = score;
    });
    // Where the k-th object is, and how many there are.
    int64_t *const objects = objects_.in(extra), *const counts = counts_.in(extra), *const kept = kept_.in(extra);
    CudaBackend::for_each_block(lane, batch, 32 * anchors, [=] __device__(int64_t n) {
      const C *const own = found + n * anchors;
      const int64_t all = number_those(
          anchors, anchors, [=](int64_t j) { return !(own[j] < 0); },
          [=](int64_t k, int64_t j) { objects[n * anchors + k] = j; });
      CudaBackend::block_for(1, [=](int64_t, int64_t) {
        counts[n] = all;
        kept[n] = all < most ? all : most;
      });
    });
    const Ranked<C> *const order = suppresses_ ? sort(objects, counts, scores, pairs_.in(extra), lane) : nullptr;
    const bool by_class = !a_.force_suppress, suppresses = suppresses_;
    const SortedBoxes<C> sorted(sorted_.in(extra), batch * most);
    CudaBackend::parallel_for_2d(lane, batch, anchors, [=] __device__(int64_t n, int64_t i) {
      C *const row = rows + 6 * (n * anchors + i);
      if (i >= counts[n]) return fill_elements(row, 6, C(-1));
      const bool is_sorted = i < kept[n];
      const int64_t j = objects[n * anchors + (is_sorted ? order[n * anchors + i].index : i)], at = n * anchors + j;
      const Box<C> box = each.box(corners + 4 * j, moves + 4 * at);
      if (is_sorted) sorted.set(n * most + i, box, area_of(box), by_class ? found[at] : C(0));
      const C own[6] = {
          suppresses && !is_sorted ? C(-1) : found[at], scores[at], box.left, box.top, box.right, box.bottom};
      copy_elements(own, 6, row);
    });
    if (!suppresses_) return;
    suppress(lane, sorted, batch, most, kept, most, C(0), C(a_.nms_threshold), remaining_.in(extra));
    CudaBackend::parallel_for_2d(lane, batch, most, [=] __device__(int64_t n, int64_t i) {
      if (i < kept[n] && sorted.remains[n * most + i] == C(0)) rows[6 * (n * anchors + i)] = -1;
    });
  }

  // Public, too.
  const Ranked<C> *sort(const int64_t *objects, const int64_t *counts, const C *scores, Ranked<C> *pairs,
                        const Lane &lane) const {
    const int64_t anchors = anchors_;
    CudaBackend::parallel_for_2d(lane, batch_, anchors, [=] __device__(int64_t n, int64_t k) {
      const int64_t at = n * anchors + k;
      pairs[at] = {k < counts[n] ? scores[n * anchors + objects[at]] : C(NAN), k};
    });
    return sort_rows<false>(lane, pairs, pairs + batch_ * anchors, batch_, anchors);
  }

 private:
  const MultiBoxDetectionAttrs a_;
  const AnchorDetections<C> anchor_;
  const int64_t anchors_, batch_, classes_;
  const bool suppresses_;
  const int64_t most_;  // that suppress each other
  size_t bytes_ = 0;
  const ScratchArray<Ranked<C>> pairs_{bytes_, {suppresses_ ? 2 : 0, batch_, anchors_}};
  const ScratchArray<C> sorted_{bytes_, {SortedBoxes<C>::kArrays, batch_, most_}};
  const ScratchArray<C> classes_of_{bytes_, {batch_, anchors_}}, scores_{bytes_, {batch_, anchors_}};
  const ScratchArray<int64_t> objects_{bytes_, {batch_, anchors_}}, counts_{bytes_, {batch_}};
  const ScratchArray<int64_t> kept_{bytes_, {batch_}}, remaining_{bytes_, {batch_}};
};

COHORT_KERNEL_BY(cuda, _contrib_MultiBoxTarget, make_checked<LabelsCheck, make_compute<MultiBoxTargetCuda>>);
COHORT_KERNEL_BY(cuda, _contrib_MultiBoxDetection, make_compute<MultiBoxDetectionCuda>);

}  // namespace
}  // namespace cohort
