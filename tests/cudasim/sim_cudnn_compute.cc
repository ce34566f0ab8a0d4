// SPDX-License-Identifier: Apache-2.0
// cuDNN's graphs in plain loops: a convolution or one of its gradients, then an addend, a bias and relu. Engines
// overwrite their whole workspace.
#include "sim_cudnn_compute.hpp"

#include <array>
#include <cstring>
#include <string>

#include "cuda/cuda_cudnn.hpp"
#include "cudasim.h"
#include "sim.hpp"
#include "sim_numbers.hpp"

namespace cudasim::cudnn {

using cohort::Cudnn;

namespace {

uint64_t num_convolutions = 0;  // under the simulator's lock

bool reach(const void *data, size_t bytes, const char *what) {
  if (bytes == 0) return true;
  std::string why;
  Block *const block = sim().find_live(data, bytes, sim().running_device, &why);
  if (!block) {
    sim().fault(sim().running_device, cudaErrorIllegalAddress, std::string("cudnn: ") + what + " is " + why);
    return false;
  }
  sim().open(*block);
  return true;
}

std::vector<double> read_all(const Engine &engine, const Tensor &t, const void *from) {
  std::vector<double> values(static_cast<size_t>(t.span()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = read(from, cuda_type(t.type), int64_t(i));
    if (engine.rounds) values[i] = rounded_to_tf32(values[i]);
  }
  return values;
}

// An axis of length 1 is read at its only place.
int64_t offset_of(const Tensor &t, const Numbers &at) {
  int64_t offset = 0;
  for (size_t a = 0; a < at.size(); ++a) offset += t.lengths[a] == 1 ? 0 : at[a] * t.strides[a];
  return offset;
}

template <typename Fn>
void for_each_place(const Tensor &t, const Fn &fn) {
  Numbers at(t.lengths.size(), 0);
  while (true) {
    fn(at);
    size_t a = at.size();
    while (a > 0 && ++at[a - 1] == t.lengths[a - 1]) at[--a] = 0;
    if (a == 0) return;
  }
}

// All three arrays are sums over the same products.
void add_all(const Problem &p, std::vector<double> *x, std::vector<double> *w, std::vector<double> *y) {
  const Numbers &xs = p.data.strides, &ws = p.filters.strides, &ys = p.result.strides;
  const Numbers &in = p.data.lengths, &kernel = p.filters.lengths, &out = p.result.lengths;
  const int64_t depth = kernel[1], outputs = kernel[0] / (in[1] / depth);
  const size_t n = p.stride.size();
  // For each axis: the positions in data, filter and result of each term of the sum that lies inside the data.
  struct AxisTerm {
    int64_t x, w, y;
  };
  std::array<std::vector<AxisTerm>, 3> axes{{{{0, 0, 0}}, {{0, 0, 0}}, {{0, 0, 0}}}};
  for (size_t a = 0; a < n; ++a) {
    axes[a].clear();
    for (int64_t o = 0; o < out[a + 2]; ++o) {
      for (int64_t k = 0; k < kernel[a + 2]; ++k) {
        const int64_t i = o * p.stride[a] - p.pad[a] + k * p.dilate[a];
        if (i >= 0 && i < in[a + 2]) axes[a].push_back({i * xs[a + 2], k * ws[a + 2], o * ys[a + 2]});
      }
    }
  }
  for (int64_t b = 0; b < in[0]; ++b) {
    for (int64_t o = 0; o < kernel[0]; ++o) {
      for (int64_t c = 0; c < depth; ++c) {
        double *const x0 = x->data() + b * xs[0] + (o / outputs * depth + c) * xs[1];
        double *const w0 = w->data() + o * ws[0] + c * ws[1];
        double *const y0 = y->data() + b * ys[0] + o * ys[1];
        for (const AxisTerm &i : axes[0]) {
          for (const AxisTerm &j : axes[1]) {
            for (const AxisTerm &k : axes[2]) {
              double &xe = x0[i.x + j.x + k.x], &we = w0[i.w + j.w + k.w], &ye = y0[i.y + j.y + k.y];
              if (p.of == Cudnn::kForward) {
                ye += xe * we;
              } else if (p.of == Cudnn::kBackwardData) {
                xe += ye * we;
              } else {
                we += xe * ye;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

cudaDataType_t cuda_type(int type) {
  return type == Cudnn::kHalf ? CUDA_R_16F : type == Cudnn::kBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

std::vector<std::pair<const Tensor *, const void **>> Run::arrays() {
  seconds.resize(p.then.size());
  std::vector<std::pair<const Tensor *, const void **>> all;
  const void **const made = p.of == Cudnn::kForward ? &result : p.of == Cudnn::kBackwardData ? &data : &filters;
  all.emplace_back(&p.output, made);
  if (made != &data) all.emplace_back(&p.data, &data);
  if (made != &filters) all.emplace_back(&p.filters, &filters);
  if (made != &result) all.emplace_back(&p.result, &result);
  for (size_t i = 0; i < p.then.size(); ++i) {
    if (p.then[i].mode == Cudnn::kAdd) all.emplace_back(&p.then[i].second, &seconds[i]);
  }
  return all;
}

void Run::operator()() const {
  if (!*plan) sim().report("cudnn: a plan is let go of before it has run");
  const size_t bytes = size_of(cuda_type(p.output.type));
  if (!reach(data, size_t(p.data.span()) * bytes, "the data") ||
      !reach(filters, size_t(p.filters.span()) * bytes, "the filters") ||
      !reach(result, size_t(p.result.span()) * bytes, "the result") ||
      !reach(workspace, size_t(engine.workspace), "the workspace")) {
    return;
  }
  for (size_t i = 0; i < p.then.size(); ++i) {
    if (seconds[i] && !reach(seconds[i], size_t(p.then[i].second.span()) * bytes, "an addend")) return;
  }
  if (engine.workspace) std::memset(workspace, 0xee, size_t(engine.workspace));
  std::vector<double> x, w, y;
  if (p.of != Cudnn::kBackwardData) x = read_all(engine, p.data, data);
  if (p.of != Cudnn::kBackwardFilter) w = read_all(engine, p.filters, filters);
  if (p.of != Cudnn::kForward) y = read_all(engine, p.result, result);
  const Tensor &to = p.of == Cudnn::kForward ? p.result : p.of == Cudnn::kBackwardData ? p.data : p.filters;
  const void *const place = p.of == Cudnn::kForward ? result : p.of == Cudnn::kBackwardData ? data : filters;
  std::vector<double> &sums = p.of == Cudnn::kForward ? y : p.of == Cudnn::kBackwardData ? x : w;
  sums.assign(size_t(to.span()), 0);
  add_all(p, &x, &w, &y);
  for_each_place(to, [&](const Numbers &at) {
    double value = sums[size_t(offset_of(to, at))];
    if (engine.perturbs) value *= 1 + 0.01 * double(1 + sim().draw(8));
    value = double(float(value));
    for (size_t i = 0; i < p.then.size(); ++i) {
      const Pointwise &then = p.then[i];
      if (then.mode == Cudnn::kAdd) {
        const double second = read(seconds[i], cuda_type(then.second.type), offset_of(then.second, at));
        value = double(float(value + second));
      } else if (!(value > 0) && (!then.keeps_nan || value == value)) {
        value = 0;
      }
    }
    write(const_cast<void *>(place), cuda_type(p.output.type), offset_of(p.output, at), value);
  });
  ++num_convolutions;
}

}  // namespace cudasim::cudnn

extern "C" uint64_t cudasim_num_convolutions(void) {
  const std::lock_guard<std::mutex> lock(cudasim::sim().mutex);
  return cudasim::cudnn::num_convolutions;
}
