// SPDX-License-Identifier: Apache-2.0
#include "kernels/anchor_coding.hpp"

#include <algorithm>

#include "cpu/op/box_suppression.hpp"
#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/partial_sort.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Computes each sample separately. First each object takes the anchor that overlaps it most, in the order of
// decreasing overlap; then an anchor that overlaps some object by more than the threshold is matched to the object
// that it overlaps most. Among equal overlaps, the first anchor and then the first object wins.
template <typename C>
class MultiBoxTarget {
 public:
  explicit MultiBoxTarget(const StepSpec &spec)
      : a_(spec.attrs_as<MultiBoxTargetAttrs>()),
        targets_{Variances<C>(a_.variances), C(a_.ignore_label)},
        batch_(spec.inputs[1].shape[0]),
        anchors_(spec.inputs[0].shape[1]),
        objects_(spec.inputs[1].shape[1]),
        width_(spec.inputs[1].shape[2]),
        classes_(spec.inputs[2].shape[1]),
        threads_(spec.num_threads) {}
  size_t extra() const { return size_t(whole_lines(5 * anchors_) + threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const Anchors columns(extra, anchors_);
    for (int64_t j = 0; j < anchors_; ++j) columns.set(j, in[0] + 4 * j);
    parallel_ranges(lane, batch_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      const Work work(extra + whole_lines(5 * anchors_) + range * per_thread(), anchors_, objects_);
      for (int64_t n = begin; n < end; ++n) {
        one_sample(columns, work, in[0], in[1] + n * objects_ * width_, in[2] + n * classes_ * anchors_,
                   {out[0] ? out[0] + n * 4 * anchors_ : nullptr, out[1] ? out[1] + n * 4 * anchors_ : nullptr,
                    out[2] ? out[2] + n * anchors_ : nullptr},
                   n);
      }
    });
  }

 private:
  struct Anchors {
    Anchors(C *memory, int64_t count)
        : left(memory), top(left + count), right(top + count), bottom(right + count), area(bottom + count) {}
    void set(int64_t j, const C *corners) const {
      left[j] = corners[0];
      top[j] = corners[1];
      right[j] = corners[2];
      bottom[j] = corners[3];
      area[j] = area_of(box(j));
    }
    Box<C> box(int64_t j) const { return {left[j], top[j], right[j], bottom[j]}; }
    C *left, *top, *right, *bottom, *area;
  };

  // Per anchor: the largest overlap, the object with which, and the anchor's role; and the background anchors in the
  // order of their scores. Per object: the anchor that it may take, and their overlap.
  struct Work {
    Work(C *memory, int64_t anchors, int64_t objects)
        : candidates(reinterpret_cast<Ranked<C> *>(memory)),
          overlap(memory + ranked_elements<C>(anchors)),
          object(reinterpret_cast<int32_t *>(overlap + anchors)),
          state(reinterpret_cast<AnchorState *>(object + anchors)),
          best(overlap + 3 * anchors),
          best_anchor(reinterpret_cast<int32_t *>(best + objects)) {}
    Ranked<C> *candidates;
    C *overlap;
    int32_t *object;
    AnchorState *state;
    C *best;
    int32_t *best_anchor;
  };
  int64_t per_thread() const { return whole_lines(ranked_elements<C>(anchors_) + 3 * anchors_ + 2 * objects_); }

  struct Targets {
    C *location, *mask, *label;
  };

  static C overlap_of(const Anchors &a, int64_t j, const Box<C> &box, C box_area) {
    return anchor_overlap(a.box(j), a.area[j], box, box_area);
  }

  int64_t count_objects(const C *label, int64_t n) const {
    for (int64_t k = 0; k < objects_; ++k) {
      const C *const row = label + k * width_;
      if (row[0] != -1) continue;
      for (int i = 1; i < 5; ++i) {
        if (row[i] == -1) continue;
        throw Error(Code::kExecution,
                    text("label[", n, ", ", k, ", ", i, "]: expected -1 behind class -1, found ", row[i]));
      }
      return k;
    }
    return objects_;
  }

  void one_sample(const Anchors &columns, const Work &work, const C *anchor, const C *label, const C *scores,
                  const Targets &to, int64_t n) const {
    const int64_t num = count_objects(label, n);
    std::fill_n(work.state, anchors_, AnchorState::kIgnored);
    if (num > 0) {
      std::fill_n(work.overlap, anchors_, C(-1));
      std::fill_n(work.object, anchors_, -1);
      for (int64_t k = 0; k < num; ++k) compare_with_anchors(columns, work, label + k * width_ + 1, k);
      int64_t taken = take_best(columns, work, label, num);
      if (a_.overlap_threshold > 0) taken += take_overlapping(work);
      if (a_.negative_mining_ratio > 0) {
        mine(work, scores, taken);
      } else {
        for (int64_t j = 0; j < anchors_; ++j) {
          if (work.state[j] != AnchorState::kObject) work.state[j] = AnchorState::kBackground;
        }
      }
    }
    for (int64_t j = 0; j < anchors_; ++j) {
      const C *const object = work.state[j] == AnchorState::kObject ? label + work.object[j] * width_ : nullptr;
      targets_.write(work.state[j], anchor + 4 * j, object, to.location ? to.location + 4 * j : nullptr,
                     to.mask ? to.mask + 4 * j : nullptr, to.label ? to.label + j : nullptr);
    }
  }

  void compare_with_anchors(const Anchors &columns, const Work &work, const C *corners, int64_t k) const {
    const Box<C> box = box_of(corners, false);
    const C area = area_of(box);
    C best = 0;
    int64_t at = -1;
    for (int64_t j = 0; j < anchors_; ++j) {
      const C overlap = overlap_of(columns, j, box, area);
      if (overlap > work.overlap[j]) {
        work.overlap[j] = overlap;
        work.object[j] = int32_t(k);
      }
      if (overlap > best) {
        best = overlap;
        at = j;
      }
    }
    work.best[k] = best;
    work.best_anchor[k] = int32_t(at);
  }

  // Matches objects to anchors; returns how many anchors were taken.
  int64_t take_best(const Anchors &columns, const Work &work, const C *label, int64_t num) const {
    for (int64_t taken = 0;; ++taken) {
      int64_t k = -1;
      C most = C(1e-6f);
      for (int64_t i = 0; i < num; ++i) {
        const bool earlier = k >= 0 && work.best[i] == most && work.best_anchor[i] < work.best_anchor[k];
        if (!(work.best[i] > most) && !earlier) continue;
        k = i;
        most = work.best[i];
      }
      if (k < 0) return taken;
      const int64_t j = work.best_anchor[k];
      work.state[j] = AnchorState::kObject;
      work.overlap[j] = most;
      work.object[j] = int32_t(k);
      work.best[k] = -1;
      for (int64_t i = 0; i < num; ++i) {
        if (work.best[i] >= 0 && work.best_anchor[i] == j) look_again(columns, work, label + i * width_ + 1, i);
      }
    }
  }

  void look_again(const Anchors &columns, const Work &work, const C *corners, int64_t k) const {
    const Box<C> box = box_of(corners, false);
    const C area = area_of(box);
    work.best[k] = 0;
    for (int64_t j = 0; j < anchors_; ++j) {
      if (work.state[j] == AnchorState::kObject) continue;
      const C overlap = overlap_of(columns, j, box, area);
      if (!(overlap > work.best[k])) continue;
      work.best[k] = overlap;
      work.best_anchor[k] = int32_t(j);
    }
  }

  int64_t take_overlapping(const Work &work) const {
    int64_t taken = 0;
    for (int64_t j = 0; j < anchors_; ++j) {
      if (work.state[j] == AnchorState::kObject || !(work.overlap[j] > C(a_.overlap_threshold))) continue;
      work.state[j] = AnchorState::kObject;
      ++taken;
    }
    return taken;
  }

  // Chooses the background anchors to learn from: of the anchors that overlap no object, those that look least like
  // background.
  void mine(const Work &work, const C *scores, int64_t taken) const {
    int64_t count = 0;
    for (int64_t j = 0; j < anchors_; ++j) {
      if (work.state[j] == AnchorState::kObject || !(work.overlap[j] < C(a_.negative_mining_thresh))) continue;
      work.candidates[count++] = {background_share(scores + j, classes_, anchors_), j};
    }
    const double wanted = double(float(taken) * a_.negative_mining_ratio);
    const int64_t kept = wanted < double(count) ? int64_t(wanted) : count;
    rank<true>(work.candidates, count, kept);
    for (int64_t i = 0; i < kept; ++i) work.state[work.candidates[i].index] = AnchorState::kBackground;
  }

  const MultiBoxTargetAttrs a_;
  const AnchorTargets<C> targets_;
  const int64_t batch_, anchors_, objects_, width_, classes_, threads_;
};

// Rows of class, score and corners: first for all anchors, then the objects' rows are moved to the front and sorted.
template <typename C>
class MultiBoxDetection {
 public:
  explicit MultiBoxDetection(const StepSpec &spec)
      : a_(spec.attrs_as<MultiBoxDetectionAttrs>()),
        anchor_{Variances<C>(a_.variances), C(a_.threshold), a_.clip},
        batch_(spec.inputs[0].shape[0]),
        classes_(spec.inputs[0].shape[1]),
        anchors_(spec.inputs[0].shape[2]),
        threads_(spec.num_threads) {}
  size_t extra() const { return size_t(threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t blocks = (anchors_ + kBlock - 1) / kBlock;
    parallel_for(lane, batch_ * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / blocks, first = i % blocks * kBlock;
        decode(in[0] + n * classes_ * anchors_, in[1] + n * 4 * anchors_, in[2], first,
               std::min(kBlock, anchors_ - first), out[0] + n * kRow * anchors_);
      }
    });
    parallel_ranges(lane, batch_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * per_thread();
      for (int64_t n = begin; n < end; ++n) choose(out[0] + n * kRow * anchors_, memory);
    });
  }

 private:
  static constexpr int64_t kBlock = 256, kRow = 6;

  int64_t per_thread() const { return whole_lines(ranked_elements<C>(anchors_) + SortedBoxes<C>::kArrays * anchors_); }

  void decode(const C *prob, const C *location, const C *anchor, int64_t first, int64_t count, C *rows) const {
    C score[kBlock], best[kBlock];
    std::fill_n(score, count, C(-1));
    std::fill_n(best, count, C(0));
    for (int64_t k = 1; k < classes_; ++k) {
      const C *const p = prob + k * anchors_ + first;
      for (int64_t i = 0; i < count; ++i) {
        const bool better = p[i] > score[i];
        best[i] = better ? C(k) : best[i];
        score[i] = better ? p[i] : score[i];
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      C *const row = rows + kRow * (first + i);
      row[0] = anchor_.class_of(best[i], score[i]);
      if (row[0] < 0) continue;
      const Box<C> box = anchor_.box(anchor + 4 * (first + i), location + 4 * (first + i));
      row[1] = score[i];
      row[2] = box.left;
      row[3] = box.top;
      row[4] = box.right;
      row[5] = box.bottom;
    }
  }

  void choose(C *rows, C *memory) const {
    int64_t count = 0;
    for (int64_t i = 0; i < anchors_; ++i) {
      if (rows[kRow * i] < 0) continue;
      if (count < i) std::copy_n(rows + kRow * i, kRow, rows + kRow * count);
      ++count;
    }
    std::fill(rows + kRow * count, rows + kRow * anchors_, C(-1));
    if (count == 0 || !(a_.nms_threshold > 0 && a_.nms_threshold <= 1)) return;

    auto *const order = reinterpret_cast<Ranked<C> *>(memory);
    const SortedBoxes<C> boxes(memory + ranked_elements<C>(anchors_), anchors_);
    for (int64_t i = 0; i < count; ++i) order[i] = {rows[kRow * i + 1], i};
    const int64_t kept = a_.nms_topk > 0 ? std::min<int64_t>(a_.nms_topk, count) : count;
    rank<false>(order, count, kept);
    for (int64_t i = 0; i < kept; ++i) {
      const C *const row = rows + kRow * order[i].index;
      const Box<C> box = box_of(row + 2, false);
      boxes.set(i, box, area_of(box), row[0]);
    }
    suppress_all(boxes, rows, kept, order);
    for (int64_t i = kept; i < count; ++i) rows[kRow * i] = C(-1);
  }

  void suppress_all(const SortedBoxes<C> &boxes, C *rows, int64_t kept, const Ranked<C> *order) const {
    for (int64_t i = 0; i < kept; ++i) {
      C *const row = rows + kRow * i;
      row[0] = boxes.group[i];
      row[1] = order[i].key;
      row[2] = boxes.left[i];
      row[3] = boxes.top[i];
      row[4] = boxes.right[i];
      row[5] = boxes.bottom[i];
    }
    if (a_.force_suppress) std::fill_n(boxes.group, kept, C(0));
    suppress(boxes, kept, kept, C(0), C(a_.nms_threshold));
    for (int64_t i = 0; i < kept; ++i) rows[kRow * i] = boxes.remains[i] != 0 ? rows[kRow * i] : C(-1);
  }

  const MultiBoxDetectionAttrs a_;
  const AnchorDetections<C> anchor_;
  const int64_t batch_, classes_, anchors_, threads_;
};

COHORT_KERNEL_BY(cpu, _contrib_MultiBoxTarget, make_compute<MultiBoxTarget>);
COHORT_KERNEL_BY(cpu, _contrib_MultiBoxDetection, make_compute<MultiBoxDetection>);

}  // namespace
}  // namespace cohort
