// SPDX-License-Identifier: Apache-2.0
// Kernels of BilinearSampler, SpatialTransformer and GridGenerator. Threads share out the samples of a batch; each
// computes a sample in the order of its output.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/partial_sums.hpp"
#include "op/spatial_sampler.hpp"

namespace cohort {
namespace {

// Reads an image at the points of a grid, between the four elements around each point; elements outside the image
// count as 0.
template <typename C>
class Sampler {
 public:
  Sampler(const Shape &data, int64_t points) : channels_(data[1]), height_(data[2]), width_(data[3]), points_(points) {}

  COHORT_HOST_DEVICE int64_t image() const { return channels_ * height_ * width_; }
  COHORT_HOST_DEVICE int64_t result() const { return channels_ * points_; }
  COHORT_HOST_DEVICE int64_t grid() const { return 2 * points_; }

  COHORT_HOST_DEVICE void forward(const C *data, const C *grid, C *out) const {
    for (int64_t p = 0; p < points_; ++p) {
      const SamplePoint place(*this, grid[p], grid[points_ + p]);
      for (int64_t c = 0; c < channels_; ++c) {
        const C *const plane = data + c * height_ * width_;
        out[c * points_ + p] =
            place.wy * (place.wx * place.at(plane, 0, 0) + (1 - place.wx) * place.at(plane, 0, 1)) +
            (1 - place.wy) * (place.wx * place.at(plane, 1, 0) + (1 - place.wx) * place.at(plane, 1, 1));
      }
    }
  }
  // Computes the gradients of the image and of the grid, where they are not null.
  COHORT_HOST_DEVICE void backward(const C *head, const C *data, const C *grid, C *d_data, C *d_grid) const {
    if (d_data) fill_elements(d_data, image(), C(0));
    for (int64_t p = 0; p < points_; ++p) {
      const SamplePoint place(*this, grid[p], grid[points_ + p]);
      C by_x = 0, by_y = 0;
      for (int64_t c = 0; c < channels_; ++c) {
        const C *const plane = data + c * height_ * width_;
        const C dy = head[c * points_ + p];
        const C top = place.at(plane, 0, 1) - place.at(plane, 0, 0),
                low = place.at(plane, 1, 1) - place.at(plane, 1, 0);
        const C left = place.at(plane, 1, 0) - place.at(plane, 0, 0);
        const C right = place.at(plane, 1, 1) - place.at(plane, 0, 1);
        by_x += dy * (place.wy * top + (1 - place.wy) * low);
        by_y += dy * (place.wx * left + (1 - place.wx) * right);
        if (!d_data) continue;
        C *const to = d_data + c * height_ * width_;
        place.add(to, 0, 0, dy * place.wy * place.wx);
        place.add(to, 0, 1, dy * place.wy * (1 - place.wx));
        place.add(to, 1, 0, dy * (1 - place.wy) * place.wx);
        place.add(to, 1, 1, dy * (1 - place.wy) * (1 - place.wx));
      }
      if (!d_grid) continue;
      d_grid[p] = by_x * (C(width_ - 1) / 2);
      d_grid[points_ + p] = by_y * (C(height_ - 1) / 2);
    }
  }

 private:
  struct SamplePoint {
    COHORT_HOST_DEVICE SamplePoint(const Sampler &s, C grid_x, C grid_y) : height(s.height_), width(s.width_) {
      const C real_x = (grid_x + 1) * (C(width - 1) / 2), real_y = (grid_y + 1) * (C(height - 1) / 2);
      inside = real_x > -1 && real_x < C(width) && real_y > -1 && real_y < C(height);  // NaN is outside
      if (!inside) return;
      x = int64_t(std::floor(real_x)), y = int64_t(std::floor(real_y));
      wx = 1 - (real_x - C(x)), wy = 1 - (real_y - C(y));
    }
    COHORT_HOST_DEVICE bool has(int64_t v, int64_t u) const {
      return inside && y + v >= 0 && y + v < height && x + u >= 0 && x + u < width;
    }
    COHORT_HOST_DEVICE C at(const C *plane, int64_t v, int64_t u) const {
      return has(v, u) ? plane[(y + v) * width + x + u] : C(0);
    }
    COHORT_HOST_DEVICE void add(C *plane, int64_t v, int64_t u, C value) const {
      if (has(v, u)) plane[(y + v) * width + x + u] += value;
    }
    const int64_t height, width;
    bool inside;
    int64_t x = 0, y = 0;  // the element at or before the point
    C wx = 0, wy = 0;      // its weight
  };
  const int64_t channels_, height_, width_, points_;
};

// The grid of an affine matrix: (x, y) = matrix (x', y', 1), with x' and y' from -1 to 1 across the grid.
template <typename C>
class AffineGrid {
 public:
  AffineGrid(int64_t height, int64_t width) : height_(height), width_(width) {}
  COHORT_HOST_DEVICE int64_t points() const { return height_ * width_; }
  COHORT_HOST_DEVICE void forward(const C *matrix, C *grid) const {
    const C right = 2 / C(width_ - 1);
    for (int k = 0; k < 2; ++k, matrix += 3) {
      for (int64_t i = 0; i < height_; ++i, grid += width_) {
        const C by_y = matrix[1] * y(i);
        for (int j = 0; j < int(width_); ++j) grid[j] = matrix[0] * (-1 + C(j) * right) + by_y + matrix[2];
      }
    }
  }
  COHORT_HOST_DEVICE void backward(const C *head, C *d_matrix) const {
    const C right = 2 / C(width_ - 1);
    for (int k = 0; k < 2; ++k, d_matrix += 3) {
      C by_x[kLanes] = {}, by_y[kLanes] = {}, all[kLanes] = {};
      for (int64_t i = 0; i < height_; ++i, head += width_) {
        const C down = y(i);
        const auto add = [&](int first, int count) {
          for (int j = 0; j < count; ++j) {
            const C value = head[first + j];
            by_x[j] += value * (-1 + C(first + j) * right);
            by_y[j] += value * down;
            all[j] += value;
          }
        };
        int first = 0;
        for (; first + kLanes <= int(width_); first += kLanes) add(first, kLanes);
        add(first, int(width_) - first);
      }
      d_matrix[0] = join_lanes(by_x);
      d_matrix[1] = join_lanes(by_y);
      d_matrix[2] = join_lanes(all);
    }
  }

 private:
  COHORT_HOST_DEVICE C y(int64_t i) const { return -1 + C(i) * (2 / C(height_ - 1)); }
  const int64_t height_, width_;
};

template <typename Backend, typename C, bool kBackward>
class BilinearSamplerBody {
 public:
  explicit BilinearSamplerBody(const StepSpec &spec)
      : batch_(spec.inputs[0].shape[0]),
        sampler_(spec.inputs[kBackward ? 1 : 0].shape, spec.inputs[kBackward ? 2 : 1].shape.size(2, 4)) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const Sampler<C> s = sampler_;
    Backend::parallel_for(
        lane, batch_, 1 + Backend::kCheapGrain / (s.result() + 1), [=] COHORT_DEVICE(int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            if (kBackward) {
              s.backward(in[0] + n * s.result(), in[1] + n * s.image(), in[2] + n * s.grid(),
                         out[0] ? out[0] + n * s.image() : nullptr, out[1] ? out[1] + n * s.grid() : nullptr);
            } else {
              s.forward(in[0] + n * s.image(), in[1] + n * s.grid(), out[0] + n * s.result());
            }
          }
        });
  }

 private:
  const int64_t batch_;
  const Sampler<C> sampler_;
};

// Scratch memory: the grids, then their gradients.
template <typename Backend, typename C, bool kBackward>
class TransformerBody {
 public:
  explicit TransformerBody(const StepSpec &spec)
      : batch_(spec.inputs[0].shape[0]),
        grid_(spec.attrs_as<SpatialTransformerAttrs>().target_shape[0],
              spec.attrs_as<SpatialTransformerAttrs>().target_shape[1]),
        sampler_(spec.inputs[kBackward ? 1 : 0].shape, grid_.points()) {}
  size_t extra() const { return size_t(batch_ * sampler_.grid() * (kBackward ? 2 : 1)); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const Sampler<C> s = sampler_;
    const AffineGrid<C> affine = grid_;
    const int64_t batch = batch_;
    Backend::parallel_for(lane, batch, 1 + Backend::kCheapGrain / (s.result() + 1),
                          [=] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t n = begin; n < end; ++n) {
                              C *const grid = extra + n * s.grid();
                              affine.forward(in[kBackward ? 2 : 1] + 6 * n, grid);
                              if (kBackward) {
                                C *const d_grid = grid + batch * s.grid();
                                s.backward(in[0] + n * s.result(), in[1] + n * s.image(), grid,
                                           out[0] ? out[0] + n * s.image() : nullptr, d_grid);
                                if (out[1]) affine.backward(d_grid, out[1] + 6 * n);
                              } else {
                                s.forward(in[0] + n * s.image(), grid, out[0] + n * s.result());
                              }
                            }
                          });
  }

 private:
  const int64_t batch_;
  const AffineGrid<C> grid_;
  const Sampler<C> sampler_;
};

template <typename Backend, typename C, bool kBackward>
class GridGeneratorBody {
 public:
  explicit GridGeneratorBody(const StepSpec &spec)
      : warp_(spec.attrs_as<GridGeneratorAttrs>().warp),
        batch_((kBackward ? spec.inputs : spec.outputs)[0].shape[0]),
        height_((kBackward ? spec.inputs : spec.outputs)[0].shape[2]),
        width_((kBackward ? spec.inputs : spec.outputs)[0].shape[3]),
        grid_(height_, width_) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t points = grid_.points();
    Backend::parallel_for(lane, batch_, 1 + Backend::kCheapGrain / (2 * points + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t n = begin; n < end; ++n) {
                              const C *const from = in[0] + n * (warp_ || kBackward ? 2 * points : 6);
                              C *const to = out[0] + n * (warp_ || !kBackward ? 2 * points : 6);
                              if (warp_) {
                                warp(from, to, points);
                              } else if (kBackward) {
                                grid_.backward(from, to);
                              } else {
                                grid_.forward(from, to);
                              }
                            }
                          });
  }

 private:
  // A flow is given in elements.
  COHORT_HOST_DEVICE void warp(const C *from, C *to, int64_t points) const {
    const C half_width = C(width_ - 1) / 2, half_height = C(height_ - 1) / 2;
    for (int64_t p = 0; p < points; ++p) {
      if constexpr (kBackward) {
        to[p] = from[p] / half_width;
        to[points + p] = from[points + p] / half_height;
      } else {
        to[p] = (from[p] + C(p % width_)) / half_width - 1;
        to[points + p] = (from[points + p] + C(p / width_)) / half_height - 1;
      }
    }
  }
  const bool warp_;
  const int64_t batch_, height_, width_;
  const AffineGrid<C> grid_;
};

template <typename Backend, typename C>
using SamplerForward = BilinearSamplerBody<Backend, C, false>;
template <typename Backend, typename C>
using SamplerBackward = BilinearSamplerBody<Backend, C, true>;
template <typename Backend, typename C>
using TransformerForward = TransformerBody<Backend, C, false>;
template <typename Backend, typename C>
using TransformerBackward = TransformerBody<Backend, C, true>;
template <typename Backend, typename C>
using GridForward = GridGeneratorBody<Backend, C, false>;
template <typename Backend, typename C>
using GridBackward = GridGeneratorBody<Backend, C, true>;

template <typename Backend>
void register_spatial_sampler_kernels() {
  KernelTable &table = backend_kernels();
  table.add("BilinearSampler", make_compute<Backend, SamplerForward>);
  table.add("_backward_BilinearSampler", make_compute<Backend, SamplerBackward>);
  table.add("SpatialTransformer", make_compute<Backend, TransformerForward>);
  table.add("_backward_SpatialTransformer", make_compute<Backend, TransformerBackward>);
  table.add("GridGenerator", make_compute<Backend, GridForward>);
  table.add("_backward_GridGenerator", make_compute<Backend, GridBackward>);
}

}  // namespace
}  // namespace cohort
