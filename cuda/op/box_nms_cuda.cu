// SPDX-License-Identifier: Apache-2.0
// Sorts rows by their scores, all samples at once; then finds the rows that remain, or that find row and column free.
#include "cuda/op/block_reduce.cuh"
#include "cuda/op/box_suppression.cuh"
#include "cuda/op/sorting.cuh"
#include "kernels/box_nms_kernels.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

template <typename C>
class BoxNmsCuda {
 public:
  explicit BoxNmsCuda(const StepSpec &spec)
      : a_(spec.attrs_as<BoxNmsAttrs>()),
        e_(spec.inputs[0].shape),
        most_(a_.topk < 0 ? e_.boxes : std::min<int64_t>(a_.topk, e_.boxes)),
        batch_(most_ > 0 ? e_.batch : 0) {
    expect_countable<C>(e_);
  }
  size_t extra() const { return (bytes_ + sizeof(C) - 1) / sizeof(C); }

  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const BoxRows<C> rows{a_};
    const int64_t batch = e_.batch, boxes = e_.boxes, width = e_.width, most = most_;
    const C *const data = in[0];
    C *const to = out[0], *const record = out[1];
    if (most == 0) {  // data as it is
      for_each(lane, batch * boxes * width, [=] __device__(int64_t i) { to[i] = data[i]; });
      if (record) for_each(lane, batch * boxes, [=] __device__(int64_t i) { record[i] = C(i % boxes); });
      return;
    }
    Ranked<C> *const pairs = pairs_.in(extra);
    CudaBackend::parallel_for_2d(lane, batch, boxes, [=] __device__(int64_t n, int64_t i) {
      const C *const row = data + (n * boxes + i) * width;
      pairs[n * boxes + i] = {rows.counts(row) ? row[rows.a.score_index] : C(NAN), i};
    });
    const Ranked<C> *const order = sort_rows<false>(lane, pairs, pairs + batch * boxes, batch, boxes);
    int64_t *const counts = counts_.in(extra), *const found = found_.in(extra), *const from = from_.in(extra);
    const SortedBoxes<C> sorted(sorted_.in(extra), batch * most);
    for_each(lane, batch, [=] __device__(int64_t n) {
      const int64_t count = count_numbers(order + n * boxes, boxes);
      counts[n] = count < most ? count : most;
    });
    CudaBackend::parallel_for_2d(lane, batch, most, [=] __device__(int64_t n, int64_t i) {
      if (i < counts[n]) rows.sort_in(data + (n * boxes + order[n * boxes + i].index) * width, sorted, n * most + i);
    });
    suppress(lane, sorted, batch, most, counts, most, C(0),
             std::nextafter(C(a_.overlap_thresh), std::numeric_limits<C>::infinity()), found);
    CudaBackend::for_each_block(lane, batch, 32 * most, [=] __device__(int64_t n) {
      const C *const remains = sorted.remains + n * most;
      const int64_t all = number_those(
          counts[n], most, [=](int64_t i) { return remains[i] != C(0); },
          [=](int64_t k, int64_t i) { from[n * most + k] = order[n * boxes + i].index; });
      CudaBackend::block_for(1, [=](int64_t, int64_t) { found[n] = all; });
    });
    CudaBackend::parallel_for_2d(lane, batch, boxes, [=] __device__(int64_t n, int64_t i) {
      const bool is_box = i < found[n];
      const int64_t at = n * boxes + i, index = is_box ? from[n * most + i] : -1;
      if (is_box) {
        rows.write(data + (n * boxes + index) * width, width, to + at * width);
      } else {
        fill_elements(to + at * width, width, C(-1));
      }
      if (record) record[at] = C(index);
    });
  }

 private:
  const BoxNmsAttrs a_;
  const BoxNmsExtent e_;
  const int64_t most_, batch_;  // that are brought into order
  size_t bytes_ = 0;
  const ScratchArray<Ranked<C>> pairs_{bytes_, {2, batch_, e_.boxes}};
  const ScratchArray<C> sorted_{bytes_, {SortedBoxes<C>::kArrays, batch_, most_}};
  const ScratchArray<int64_t> from_{bytes_, {batch_, most_}}, counts_{bytes_, {batch_}}, found_{bytes_, {batch_}};
};

template <typename C>
class BipartiteMatchingCuda {
 public:
  explicit BipartiteMatchingCuda(const StepSpec &spec)
      : a_(spec.attrs_as<BipartiteMatchingAttrs>()),
        batch_(spec.inputs[0].shape.size(0, spec.inputs[0].shape.rank() - 2)),
        rows_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 2]),
        columns_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 1]) {}
  size_t extra() const { return (bytes_ + sizeof(C) - 1) / sizeof(C); }

  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const C threshold = C(a_.threshold);
    const bool is_ascend = a_.is_ascend;
    const int64_t batch = batch_, rows = rows_, columns = columns_, count = rows * columns;
    const int64_t limit = a_.topk > 0 ? int64_t(a_.topk) + 1 : std::numeric_limits<int64_t>::max();
    const int64_t most = std::min({limit, rows, columns});
    const C *const scores = in[0];
    C *const column_of = out[0] ? out[0] : columns_of_.in(extra), *const row_of = out[1] ? out[1] : rows_of_.in(extra);
    for_each(lane, batch * rows, [=] __device__(int64_t i) { column_of[i] = -1; });
    for_each(lane, batch * columns, [=] __device__(int64_t i) { row_of[i] = -1; });
    if (count == 0) return;
    Ranked<C> *const pairs = pairs_.in(extra);
    CudaBackend::parallel_for_2d(lane, batch, count, [=] __device__(int64_t n, int64_t i) {
      const C score = scores[n * count + i];
      pairs[n * count + i] = {(is_ascend ? score < threshold : score > threshold) ? score : C(NAN), i};
    });
    const Ranked<C> *const order = is_ascend ? sort_rows<true>(lane, pairs, pairs + batch * count, batch, count)
                                             : sort_rows<false>(lane, pairs, pairs + batch * count, batch, count);
    CudaBackend::for_each_block(lane, batch, 32 * count, [=] __device__(int64_t n) {
      const Ranked<C> *const best = order + n * count;
      C *const own_column = column_of + n * rows, *const own_row = row_of + n * columns;
      const int64_t good = count_numbers(best, count);
      for (int64_t at = 0, found = 0; found < most; ++at, ++found) {
        at = first_where(at, good, [=](int64_t i) {
          return own_column[best[i].index / columns] == C(-1) && own_row[best[i].index % columns] == C(-1);
        });
        if (at == good) break;
        CudaBackend::block_for(1, [=](int64_t, int64_t) {
          const int64_t row = best[at].index / columns, column = best[at].index % columns;
          own_column[row] = C(column);
          own_row[column] = C(row);
        });
      }
    });
  }

 private:
  const BipartiteMatchingAttrs a_;
  const int64_t batch_, rows_, columns_;
  size_t bytes_ = 0;
  const ScratchArray<Ranked<C>> pairs_{bytes_, {2, batch_, rows_, columns_}};
  const ScratchArray<C> columns_of_{bytes_, {batch_, rows_}}, rows_of_{bytes_, {batch_, columns_}};
};

COHORT_KERNEL_BY(cuda, _contrib_box_nms, make_compute<BoxNmsCuda>);
COHORT_KERNEL_BY(cuda, _contrib_bipartite_matching, make_compute<BipartiteMatchingCuda>);

const bool registered = [] {
  register_box_nms_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
