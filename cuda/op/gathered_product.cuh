// SPDX-License-Identifier: Apache-2.0
// Products of matrices whose elements are gathered: a block computes a tile of the result, gathers tiles of both
// factors into shared memory, and sums along the depth in order. A problem P has
//   int64_t batch, m, n;                                     the number and the size of the results
//   DepthRange depth_of(int64_t i) const;                    the range of the depth that result i sums over
//   P::Column column(int64_t i, int64_t j) const;            data about one column, computed once per tile
//   P::DepthPoint place(int64_t i, int64_t k) const;         data about one point of the depth
//   C a(int64_t i, int64_t row, const DepthPoint &) const;   elements of the factors
//   C b(int64_t i, const DepthPoint &, const Column &) const;
//   void put(int64_t i, int64_t row, int64_t column, C sum) const;
//   kColumnsApart   true: neighbouring columns of b are neighbours in memory; false: neighbouring points of the depth
#pragma once

#include "cuda/op/add_product.cuh"
#include "cuda/op/elements.cuh"

namespace cohort {

struct DepthRange {
  int64_t begin, end;
};

constexpr int kGatherSide = 64, kGatherDepth = 16, kGatherThreads = 256, kGatherEach = 4;

template <typename C, typename P>
__global__ void gather_and_multiply(P p, int64_t blocks) {
  // One more element per row, so that a column lies in different banks.
  COHORT_SHARED(C, tile_a, [kGatherDepth][kGatherSide + 1]);
  COHORT_SHARED(C, tile_b, [kGatherDepth][kGatherSide + 1]);
  const int t = int(threadIdx.x), x = t % 16, y = t / 16;
  const int64_t wide = (p.n + kGatherSide - 1) / kGatherSide, high = (p.m + kGatherSide - 1) / kGatherSide;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t i = block / (wide * high), row = block / wide % high * kGatherSide, left = block % wide * kGatherSide;
    const DepthRange depth = p.depth_of(i);
    // From b this thread loads one column, or one point of the depth in several columns.
    typename P::Column columns[kGatherEach];
    for (int r = 0; r < kGatherEach; ++r) {
      const int64_t column = left + (P::kColumnsApart ? t % kGatherSide : y + 16 * r);
      if (column < p.n) columns[r] = p.column(i, column);
    }
    C sums[kGatherEach][kGatherEach] = {};
    for (int64_t first = depth.begin; first < depth.end; first += kGatherDepth) {
      const bool deep = first + x < depth.end;
      typename P::DepthPoint place{};
      if (deep) place = p.place(i, first + x);
      for (int r = 0; r < kGatherEach; ++r) {
        const int at = y + 16 * r;
        tile_a[x][at] = deep && row + at < p.m ? p.a(i, row + at, place) : C(0);
        if (P::kColumnsApart) {
          const int k = t / kGatherSide + kGatherThreads / kGatherSide * r, column = t % kGatherSide;
          const bool inside = first + k < depth.end && left + column < p.n;
          tile_b[k][column] = inside ? p.b(i, p.place(i, first + k), columns[0]) : C(0);
        } else {
          tile_b[x][at] = deep && left + at < p.n ? p.b(i, place, columns[r]) : C(0);
        }
      }
      __syncthreads();
      for (int k = 0; k < kGatherDepth; ++k) {
        for (int r = 0; r < kGatherEach; ++r) {
          for (int c = 0; c < kGatherEach; ++c) {
            sums[r][c] = add_product(sums[r][c], tile_a[k][y + 16 * r], tile_b[k][x + 16 * c]);
          }
        }
      }
      __syncthreads();
    }
    for (int r = 0; r < kGatherEach; ++r) {
      for (int c = 0; c < kGatherEach; ++c) {
        const int64_t down = row + y + 16 * r, across = left + x + 16 * c;
        if (down < p.m && across < p.n) p.put(i, down, across, sums[r][c]);
      }
    }
  }
}

inline int64_t gathered_blocks(int64_t batch, int64_t m, int64_t n) {
  return batch * ((m + kGatherSide - 1) / kGatherSide) * ((n + kGatherSide - 1) / kGatherSide);
}

template <typename C, typename P>
void multiply_gathered(const Lane &lane, const P &problem) {
  const int64_t blocks = gathered_blocks(problem.batch, problem.m, problem.n);
  if (blocks == 0) return;
  const Grid grid{dim3(unsigned(std::min<int64_t>(blocks, 132 * 64))), dim3(kGatherThreads)};
  launch(gather_and_multiply<C, P>, grid, lane.stream, problem, blocks);
}

}  // namespace cohort
