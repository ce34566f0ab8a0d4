// SPDX-License-Identifier: Apache-2.0
// Converts numbers to bytes and back. Bounds are computed and kept on the device.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "op/quantization.hpp"

namespace cohort {
namespace {

constexpr int64_t kParts = 512;  // of an array whose bounds are computed, one warp each

// The scaling of data to bytes.
struct Scaling {
  double low, high;  // the range of the data, then the range that the bytes represent
  double factor, shift;
};

struct SearchRoom {
  Scaling scaling;
  double low[kParts], high[kParts];
};

// Like std::min and std::max: NaN is kept only if it comes first.
__device__ void widen_range(double value, double *low, double *high) {
  if (value < *low) *low = value;
  if (*high < value) *high = value;
}

__device__ void join_lanes(double *low, double *high) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const double below = __shfl_xor_sync(0xffffffffu, *low, offset),
                 above = __shfl_xor_sync(0xffffffffu, *high, offset);
    if (below < *low) *low = below;
    if (*high < above) *high = above;
  }
}

// Writes the bounds of an array to room->scaling.
void find_bounds(const Lane &lane, const Elements &data, int64_t count, SearchRoom *room) {
  for_each_row(lane, kParts, [=] __device__(int64_t part) {
    double low = count > 0 ? load<double>(data, 0) : 0, high = low;
    for (int64_t i = part * 32 + threadIdx.x; i < count; i += kParts * 32) {
      widen_range(load<double>(data, i), &low, &high);
    }
    join_lanes(&low, &high);
    if (threadIdx.x != 0) return;
    room->low[part] = low;
    room->high[part] = high;
  });
  for_each_row(lane, 1, [=] __device__(int64_t) {
    double low = room->low[0], high = room->high[0];
    for (int64_t part = threadIdx.x; part < kParts; part += 32) {
      widen_range(room->low[part], &low, &high);
      widen_range(room->high[part], &low, &high);
    }
    join_lanes(&low, &high);
    if (threadIdx.x != 0) return;
    room->scaling.low = low;
    room->scaling.high = high;
  });
}

// The nearest byte, ties to even; saturates. NaN becomes 0.
__device__ void store_byte(const Elements &to, int64_t i, double x) {
  const bool positive = Dtype(to.dtype) == Dtype::kUint8;
  const double low = positive ? 0 : -128, high = positive ? 255 : 127;
  store(to, i, x != x ? 0.0 : rint(x < low ? low : x > high ? high : x));
}

// _contrib_quantize, _quantize_v2 and _requantize.
class QuantizeCuda final : public Kernel {
 public:
  explicit QuantizeCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizeAttrs>()),
        from_(spec.inputs[0].dtype),
        to_(spec.outputs[0].dtype),
        count_(spec.inputs[0].shape.size()),
        given_(spec.op == "_contrib_quantize"),
        whole_steps_(spec.op != "_contrib_quantize_v2") {
    spec.scratch_bytes = sizeof(SearchRoom);
  }
  void run(const Args &args, const Lane &lane) const override {
    auto *const room = static_cast<SearchRoom *>(args.scratch);
    const Elements data = elements_of(args.inputs[0], from_), to = elements_of(args.outputs[0], to_);
    const float *const low = from_ == Dtype::kInt32 || given_ ? args.in<float>(1) : nullptr, *const high =
                                                                                                 low ? args.in<float>(2)
                                                                                                     : nullptr;
    float *const low_out = args.out<float>(1), *const high_out = args.out<float>(2);
    const bool calibrated = attrs_.calibrated(), given = given_, whole_steps = whole_steps_;
    const bool whole = from_ == Dtype::kInt32, positive = to_ == Dtype::kUint8, as_it_is = from_ == to_;
    const float set_low = calibrated ? *attrs_.min_calib_range : positive ? 0.0f : -127.5f;
    const float set_high = calibrated ? *attrs_.max_calib_range : positive ? 255.5f : 127.5f;
    if (as_it_is) copy_bytes(lane, args.outputs[0], args.inputs[0], size_t(count_));
    const bool searches = !as_it_is && !given && !calibrated;
    if (searches) find_bounds(lane, data, count_, room);
    const int64_t type = int64_t(to_);
    const bool in_float = !whole && !whole_steps;
    for_each(lane, 1, [=] __device__(int64_t) {
      const double unit = whole ? quantum(Dtype::kInt32, larger_bound(*low, *high)) : 1;
      float from = set_low, until = set_high;
      if (given) {
        from = *low, until = *high;
      } else if (searches) {
        from = float(room->scaling.low * unit), until = float(room->scaling.high * unit);
        if (whole) until = larger_bound(from, until), from = positive ? 0 : -until;
      }
      const float bound = larger_bound(from, until);
      const double step = whole_steps ? double(bound) / (positive ? 255 : 127) : quantum(Dtype(type), bound);
      room->scaling.factor = in_float ? double(byte_factor(Dtype(type), bound)) : step > 0 ? unit / step : 0;
      const bool even = !positive && !as_it_is;
      if (low_out) *low_out = even ? -bound : from;
      if (high_out) *high_out = even ? bound : until;
    });
    if (as_it_is) return;
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double factor = room->scaling.factor;
      store_byte(to, i, in_float ? double(load<float>(data, i) * float(factor)) : load<double>(data, i) * factor);
    });
  }

 private:
  const QuantizeAttrs attrs_;
  const Dtype from_, to_;
  const int64_t count_;
  const bool given_;        // the bounds are inputs
  const bool whole_steps_;  // 127 and 255 in place of 127.5 and 255.5: all forms but the second
};

class QuantizeAsymCuda final : public Kernel {
 public:
  explicit QuantizeAsymCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizeAttrs>()), count_(spec.inputs[0].shape.size()) {
    spec.scratch_bytes = sizeof(SearchRoom);
  }
  void run(const Args &args, const Lane &lane) const override {
    auto *const room = static_cast<SearchRoom *>(args.scratch);
    const float *const x = args.in<float>(0);
    float *const scale_out = args.out<float>(1), *const shift_out = args.out<float>(2);
    uint8_t *const to = args.out<uint8_t>(0);
    const bool calibrated = attrs_.calibrated();
    const float set_low = calibrated ? *attrs_.min_calib_range : 0, set_high = calibrated ? *attrs_.max_calib_range : 0;
    if (!calibrated) find_bounds(lane, elements_of(args.inputs[0], Dtype::kFloat32), count_, room);
    for_each(lane, 1, [=] __device__(int64_t) {
      const float low = calibrated ? set_low : float(room->scaling.low);
      const float high = calibrated ? set_high : float(room->scaling.high);
      const float scale = high > low ? 255 / (high - low) : 1, shift = 255 - high * scale;
      room->scaling.factor = double(scale);
      room->scaling.shift = double(shift);
      if (scale_out) *scale_out = scale;
      if (shift_out) *shift_out = shift;
    });
    for_each(lane, count_, [=] __device__(int64_t i) {
      const float value = x[i] * float(room->scaling.factor) + float(room->scaling.shift) + 0.5f;
      to[i] = value > 0 ? uint8_t(value < 255.0f ? value : 255.0f) : uint8_t(0);
    });
  }

 private:
  const QuantizeAttrs attrs_;
  const int64_t count_;
};

class DequantizeCuda final : public Kernel {
 public:
  explicit DequantizeCuda(const StepSpec &spec) : dtype_(spec.inputs[0].dtype), count_(spec.inputs[0].shape.size()) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = elements_of(args.inputs[0], dtype_);
    const float *const low = args.in<float>(1), *const high = args.in<float>(2);
    float *const to = args.out<float>(0);
    const int64_t type = int64_t(dtype_);
    for_each(lane, count_, [=] __device__(int64_t i) {
      to[i] = float(load<double>(data, i) * quantum(Dtype(type), larger_bound(*low, *high)));
    });
  }

 private:
  const Dtype dtype_;
  const int64_t count_;
};

COHORT_KERNEL(cuda, _contrib_quantize, QuantizeCuda);
COHORT_KERNEL(cuda, _contrib_quantize_v2, QuantizeCuda);
COHORT_KERNEL(cuda, _contrib_requantize, QuantizeCuda);
COHORT_KERNEL(cuda, _contrib_quantize_asym, QuantizeAsymCuda);
COHORT_KERNEL(cuda, _contrib_dequantize, DequantizeCuda);

}  // namespace
}  // namespace cohort
