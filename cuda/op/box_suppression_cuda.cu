// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/box_suppression.cuh"

#include "cuda/op/cuda_backend.cuh"

namespace cohort {
namespace {

constexpr int kWord = 64, kWords = 8, kPanel = kWord * kWords;

template <typename C>
struct Suppression {
  SortedBoxes<C> boxes;
  C extra, least;

  // Decides which of `count` boxes from `first` on remain, among those not suppressed so far: first sets a bit for each
  // pair in which one would suppress the other. Returns how many remain.
  __device__ int64_t resolve(int64_t first, int count) const {
    COHORT_SHARED(uint64_t, suppressed, [kWords][kPanel]);  // of a word of boxes, by each box
    COHORT_SHARED(uint64_t, gone, [kWords]);
    const int words = (count + kWord - 1) / kWord;
    CudaBackend::block_for(words, [&](int64_t w, int64_t) {
      uint64_t bits = 0;
      for (int j = 0; j < kWord; ++j) {
        const int64_t at = w * kWord + j;
        if (at >= count || boxes.remains[first + at] == C(0)) bits |= uint64_t(1) << j;
      }
      gone[w] = bits;
    });
    CudaBackend::block_for(int64_t(words) * count, [&](int64_t place, int64_t) {
      const int64_t w = place / count, i = place % count, begin = w * kWord;
      uint64_t bits = 0;
      if (i < begin + kWord && (gone[i / kWord] >> (i % kWord) & 1) == 0) {
        const Suppressor<C> one(boxes, first + i);
        const int64_t end = begin + kWord < count ? begin + kWord : count;
        for (int64_t j = i < begin ? begin : i + 1; j < end; ++j) {
          bits |= uint64_t(one.suppresses(boxes, first + j, extra, least)) << (j - begin);
        }
      }
      suppressed[w][i] = bits;
    });
    for (int w = 0; w < words; ++w) {
      const int begin = w * kWord, end = begin + kWord < count ? begin + kWord : count;
      CudaBackend::block_for(1, [&](int64_t, int64_t) {  // one after the other
        uint64_t bits = gone[w];
        for (int i = begin; i < end; ++i) bits |= (bits >> (i - begin) & 1) == 0 ? suppressed[w][i] : uint64_t(0);
        gone[w] = bits;
      });
      CudaBackend::block_for(words - w - 1, [&](int64_t behind, int64_t) {
        const int64_t other = w + 1 + behind;
        uint64_t bits = gone[other];
        for (int i = begin; i < end; ++i) {
          bits |= (gone[w] >> (i - begin) & 1) == 0 ? suppressed[other][i] : uint64_t(0);
        }
        gone[other] = bits;
      });
    }
    CudaBackend::block_for(count, [&](int64_t i, int64_t) {
      boxes.remains[first + i] = (gone[i / kWord] >> (i % kWord) & 1) == 0 ? C(1) : C(0);
    });
    int64_t remaining = 0;
    for (int w = 0; w < words; ++w) {
      for (uint64_t bits = ~gone[w]; bits != 0; bits &= bits - 1) ++remaining;
    }
    CudaBackend::block_sync();
    return remaining;
  }

  // Box j, by those of the `count` boxes from `first` on that remain.
  __device__ void apply(int64_t first, int64_t count, int64_t j) const {
    for (int64_t i = first; i < first + count; ++i) {
      if (boxes.remains[i] == C(0) || !Suppressor<C>(boxes, i).suppresses(boxes, j, extra, least)) continue;
      boxes.remains[j] = 0;
      return;
    }
  }
};

template <typename C>
void suppress_in(const Lane &lane, const SortedBoxes<C> &boxes, int64_t samples, int64_t most, const int64_t *counts,
                 int64_t wanted, C extra, C least, int64_t *found) {
  const Suppression<C> all{boxes, extra, least};
  C *const remains = boxes.remains;
  for_each(lane, samples * most, [=] __device__(int64_t i) { remains[i] = 1; });
  for_each(lane, samples, [=] __device__(int64_t n) { found[n] = 0; });
  for (int64_t begin = 0; begin < most; begin += kPanel) {
    const int64_t end = std::min<int64_t>(begin + kPanel, most), behind = most - end;
    CudaBackend::for_each_block(lane, samples, (end - begin) * (end - begin), [=] __device__(int64_t n) {
      const int64_t until = counts[n] < end ? counts[n] : end;
      if (until <= begin || found[n] >= wanted) return;  // all threads leave
      const int64_t more = all.resolve(n * most + begin, int(until - begin));
      CudaBackend::block_for(1, [&](int64_t, int64_t) { found[n] += more; });
    });
    for_each(lane, samples * behind, [=] __device__(int64_t place) {
      const int64_t n = place / behind, j = end + place % behind, at = n * most + j;
      if (j < counts[n] && found[n] < wanted && remains[at] != C(0)) all.apply(n * most + begin, end - begin, at);
    });
  }
}

}  // namespace

void suppress(const Lane &lane, const SortedBoxes<float> &boxes, int64_t samples, int64_t most, const int64_t *counts,
              int64_t wanted, float extra, float least, int64_t *found) {
  suppress_in(lane, boxes, samples, most, counts, wanted, extra, least, found);
}
void suppress(const Lane &lane, const SortedBoxes<double> &boxes, int64_t samples, int64_t most, const int64_t *counts,
              int64_t wanted, double extra, double least, int64_t *found) {
  suppress_in(lane, boxes, samples, most, counts, wanted, extra, least, found);
}

}  // namespace cohort
