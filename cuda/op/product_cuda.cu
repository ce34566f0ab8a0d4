// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a kernel of our own, for what cuBLASLt is not asked for yet: dot and batch_dot of all types,
// and FullyConnected of 16-bit floats. Tiles in shared memory; sums run over the depth in order.
#include <algorithm>

#include "cuda/op/compute.cuh"
#include "device/kernel_table.hpp"
#include "op/dot.hpp"
#include "op/fully_connected.hpp"

namespace cohort {
namespace {

constexpr int kTile = 16;

// c[i] (m, n) = op(a[i]) op(b[i]) for i < batch: row-major and dense, op transposes if asked to; a bias of n elements
// is added to each row.
struct ProductExtent {
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
};

// A block owns a tile of the result.
template <typename C>
__global__ void multiply_tiles(ProductExtent e, Elements a, Elements b, Elements bias, Elements c, int64_t blocks) {
  COHORT_SHARED(C, tile_a, [kTile][kTile]);
  COHORT_SHARED(C, tile_b, [kTile][kTile]);
  const int64_t wide = (e.n + kTile - 1) / kTile, high = (e.m + kTile - 1) / kTile;
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t i = block / (wide * high), row = block / wide % high * kTile + y, column = block % wide * kTile + x;
    C sum = bias.data && column < e.n ? load<C>(bias, column) : C(0);
    for (int64_t first = 0; first < e.k; first += kTile) {
      const int64_t along = first + x, down = first + y;
      tile_a[y][x] = row < e.m && along < e.k
                         ? load<C>(a, i * e.m * e.k + (e.transpose_a ? along * e.m + row : row * e.k + along))
                         : C(0);
      tile_b[y][x] = down < e.k && column < e.n
                         ? load<C>(b, i * e.k * e.n + (e.transpose_b ? column * e.k + down : down * e.n + column))
                         : C(0);
      __syncthreads();
      for (int k = 0; k < kTile; ++k) sum += tile_a[y][k] * tile_b[k][x];
      __syncthreads();
    }
    if (row < e.m && column < e.n) store(c, (i * e.m + row) * e.n + column, sum);
  }
}

template <typename C>
void multiply(const Lane &lane, const ProductExtent &e, const Elements &a, const Elements &b, const Elements &bias,
              const Elements &c) {
  const int64_t blocks = e.batch * ((e.m + kTile - 1) / kTile) * ((e.n + kTile - 1) / kTile);
  if (blocks == 0) return;
  const Grid grid{dim3(unsigned(std::min<int64_t>(blocks, 132 * 64))), dim3(kTile, kTile)};
  launch(multiply_tiles<C>, grid, lane.stream, e, a, b, bias, c, blocks);
}

constexpr Elements kNothing{nullptr, int64_t(Dtype::kFloat32)};

template <typename C>
void multiply_dense(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a,
                    const C *b, C *c) {
  const auto elements = [](const C *data) { return elements_of(const_cast<C *>(data), dtype_of<C>()); };
  multiply<C>(lane, {count, m, n, k, ta, tb}, elements(a), elements(b), kNothing, elements(c));
}

}  // namespace

void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c) {
  multiply_dense(lane, count, ta, tb, m, n, k, a, b, c);
}
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a,
                   const double *b, double *c) {
  multiply_dense(lane, count, ta, tb, m, n, k, a, b, c);
}

namespace {

// 16-bit floats in float, integers in double.
template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) return std::make_unique<K<decltype(c)>>(spec);
    return nullptr;
  });
}

template <typename C, bool kBatched>
class DotCuda final : public Kernel {
 public:
  explicit DotCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<DotAttrs>()),
        e_(dot_extent(attrs_, spec.inputs[0].shape, spec.inputs[1].shape, kBatched)),
        dtypes_{spec.inputs[0].dtype, spec.inputs[1].dtype, spec.outputs[0].dtype} {}
  void run(const Args &args, const Lane &lane) const override {
    multiply<C>(lane, {e_.batch, e_.m, e_.n, e_.k, attrs_.transpose_a, attrs_.transpose_b},
                elements_of(args.inputs[0], dtypes_[0]), elements_of(args.inputs[1], dtypes_[1]), kNothing,
                elements_of(args.outputs[0], dtypes_[2]));
  }

 private:
  const DotAttrs attrs_;
  const DotExtent e_;
  const Dtype dtypes_[3];
};

// Inputs: head gradient, lhs, rhs.
template <typename C, bool kBatched>
class DotBackwardCuda final : public Kernel {
 public:
  explicit DotBackwardCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<DotAttrs>()),
        e_(dot_extent(attrs_, spec.inputs[1].shape, spec.inputs[2].shape, kBatched)),
        dtypes_{spec.inputs[0].dtype, spec.inputs[1].dtype, spec.inputs[2].dtype, spec.outputs[0].dtype,
                spec.outputs[1].dtype} {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtypes_[0]), a = elements_of(args.inputs[1], dtypes_[1]);
    const Elements b = elements_of(args.inputs[2], dtypes_[2]), da = elements_of(args.outputs[0], dtypes_[3]);
    const Elements db = elements_of(args.outputs[1], dtypes_[4]);
    const bool ta = attrs_.transpose_a, tb = attrs_.transpose_b;
    const auto product = [&](int64_t m, int64_t n, int64_t k, bool left, bool right, const Elements &x,
                             const Elements &y, const Elements &to) {
      multiply<C>(lane, {e_.batch, m, n, k, left, right}, x, y, kNothing, to);
    };
    if (da.data && ta) product(e_.k, e_.m, e_.n, tb, true, b, head, da);
    if (da.data && !ta) product(e_.m, e_.k, e_.n, false, !tb, head, b, da);
    if (db.data && tb) product(e_.n, e_.k, e_.m, true, ta, head, a, db);
    if (db.data && !tb) product(e_.k, e_.n, e_.m, !ta, false, a, head, db);
  }

 private:
  const DotAttrs attrs_;
  const DotExtent e_;
  const Dtype dtypes_[5];
};

template <typename C>
using Dot = DotCuda<C, false>;
template <typename C>
using BatchDot = DotCuda<C, true>;
template <typename C>
using DotBackward = DotBackwardCuda<C, false>;
template <typename C>
using BatchDotBackward = DotBackwardCuda<C, true>;

COHORT_KERNEL_BY(cuda, dot, make<Dot>);
COHORT_KERNEL_BY(cuda, _backward_dot, make<DotBackward>);
COHORT_KERNEL_BY(cuda, batch_dot, make<BatchDot>);
COHORT_KERNEL_BY(cuda, _backward_batch_dot, make<BatchDotBackward>);

// ---- FullyConnected: y (rows, units) = x (rows, depth) w^T + bias

struct LayerSizes {
  int64_t rows, depth, units;
  LayerSizes(const FullyConnectedAttrs &attrs, const Shape &data)
      : rows(attrs.flatten ? data[0] : data.size(0, data.rank() - 1)),
        depth(attrs.flatten ? data.size(1, data.rank()) : data[data.rank() - 1]),
        units(attrs.num_hidden) {}
};

template <typename C>
class FullyConnectedTiles final : public Kernel {
 public:
  explicit FullyConnectedTiles(const StepSpec &spec)
      : has_bias_(!spec.attrs_as<FullyConnectedAttrs>().no_bias),
        e_(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[0].shape),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    multiply<C>(lane, {1, e_.rows, e_.units, e_.depth, false, true}, elements_of(args.inputs[0], dtype_),
                elements_of(args.inputs[1], dtype_), has_bias_ ? elements_of(args.inputs[2], dtype_) : kNothing,
                elements_of(args.outputs[0], dtype_));
  }

 private:
  const bool has_bias_;
  const LayerSizes e_;
  const Dtype dtype_;
};

// Inputs: head gradient, data, weight. Outputs: gradients of data, weight, bias.
template <typename C>
class FullyConnectedBackwardTiles final : public Kernel {
 public:
  explicit FullyConnectedBackwardTiles(const StepSpec &spec)
      : e_(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[1].shape),
        dtype_(spec.inputs[0].dtype),
        num_outputs_(spec.outputs.size()) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_), x = elements_of(args.inputs[1], dtype_);
    const Elements w = elements_of(args.inputs[2], dtype_);
    const int64_t rows = e_.rows, units = e_.units;
    if (args.outputs[0]) {
      multiply<C>(lane, {1, rows, e_.depth, units, false, false}, head, w, kNothing,
                  elements_of(args.outputs[0], dtype_));
    }
    if (args.outputs[1]) {
      multiply<C>(lane, {1, units, e_.depth, rows, true, false}, head, x, kNothing,
                  elements_of(args.outputs[1], dtype_));
    }
    if (num_outputs_ < 3 || !args.outputs[2]) return;
    const Elements db = elements_of(args.outputs[2], dtype_);
    for_each(lane, units, [=] __device__(int64_t unit) {
      C sum = 0;
      for (int64_t row = 0; row < rows; ++row) sum += load<C>(head, row * units + unit);
      store(db, unit, sum);
    });
  }

 private:
  const LayerSizes e_;
  const Dtype dtype_;
  const size_t num_outputs_;
};

constexpr DtypeSet kHalfTypes{Dtype::kFloat16, Dtype::kBfloat16};
COHORT_KERNEL_BY(cuda, FullyConnected, make<FullyConnectedTiles>).named("tiles").one_dtype(kHalfTypes);
COHORT_KERNEL_BY(cuda, _backward_FullyConnected, make<FullyConnectedBackwardTiles>)
    .named("tiles")
    .one_dtype(kHalfTypes);

}  // namespace
}  // namespace cohort
