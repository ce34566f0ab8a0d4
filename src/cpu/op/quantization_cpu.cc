// SPDX-License-Identifier: Apache-2.0
#include "op/quantization.hpp"

#include <algorithm>
#include <limits>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/quantized_numbers.hpp"

namespace cohort {
namespace {

using quantized::Bounds;
using quantized::bytes_of;

// The bounds of an array of floats, or of int32 that represent floats.
template <typename T>
Bounds bounds_of(const T *x, int64_t count, double unit) {
  T low = count > 0 ? x[0] : T(0), high = low;
  for (int64_t i = 1; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return {float(double(low) * unit), float(double(high) * unit)};
}

// The bounds of the output: as given for uint8, whose negative numbers are cut off; symmetric for int8.
Bounds output_bounds(Dtype dtype, Bounds b) {
  if (dtype == Dtype::kUint8) return b;
  const float bound = larger_bound(b.low, b.high);
  return {-bound, bound};
}

// _contrib_quantize, _quantize_v2 and _requantize.
class Quantize final : public Kernel {
 public:
  explicit Quantize(const StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizeAttrs>()),
        from_(spec.inputs[0].dtype),
        to_(spec.outputs[0].dtype),
        count_(spec.inputs[0].shape.size()),
        given_(spec.op == "_contrib_quantize"),
        whole_steps_(spec.op != "_contrib_quantize_v2") {}
  void run(const Args &args, const Lane &lane) const override {
    if (from_ == to_) {  // already bytes
      std::copy_n(args.in<char>(0), count_, args.out<char>(0));
      if (attrs_.calibrated()) return write(args, {*attrs_.min_calib_range, *attrs_.max_calib_range});
      const float bound = to_ == Dtype::kUint8 ? 255.5f : 127.5f;
      return write(args, {to_ == Dtype::kUint8 ? 0 : -bound, bound});
    }
    double unit = 1;  // the value of 1 in the data
    if (from_ == Dtype::kInt32) unit = quantum(from_, larger_bound(args.in<float>(1)[0], args.in<float>(2)[0]));
    Bounds bounds;
    if (given_) {
      bounds = {args.in<float>(1)[0], args.in<float>(2)[0]};
    } else if (attrs_.calibrated()) {
      bounds = {*attrs_.min_calib_range, *attrs_.max_calib_range};
    } else {
      bounds = from_ == Dtype::kInt32 ? bounds_of(args.in<int32_t>(0), count_, unit)
                                      : bounds_of(args.in<float>(0), count_, 1);
      if (from_ == Dtype::kInt32) {
        bounds.high = larger_bound(bounds.low, bounds.high);
        bounds.low = to_ == Dtype::kUint8 ? 0 : -bounds.high;
      }
    }
    const float bound = larger_bound(bounds.low, bounds.high);
    const double step = whole_steps_ ? double(bound) / (to_ == Dtype::kUint8 ? 255 : 127) : quantum(to_, bound);
    const double factor = step > 0 ? unit / step : 0;
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      if (from_ == Dtype::kInt32) {
        bytes_of(args.in<int32_t>(0), factor, to_, args.outputs[0], begin, end);
      } else if (!whole_steps_) {
        bytes_of(args.in<float>(0), byte_factor(to_, bound), to_, args.outputs[0], begin, end);
      } else {
        bytes_of(args.in<float>(0), factor, to_, args.outputs[0], begin, end);
      }
    });
    write(args, output_bounds(to_, bounds));
  }

 private:
  static void write(const Args &args, Bounds b) {
    if (args.outputs[1]) args.out<float>(1)[0] = b.low;
    if (args.outputs[2]) args.out<float>(2)[0] = b.high;
  }

  const QuantizeAttrs attrs_;
  const Dtype from_, to_;
  const int64_t count_;
  const bool given_;        // the bounds are inputs
  const bool whole_steps_;  // 127 and 255 in place of 127.5 and 255.5: in all operators but the second
};

class QuantizeAsym final : public Kernel {
 public:
  explicit QuantizeAsym(const StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizeAttrs>()), count_(spec.inputs[0].shape.size()) {}
  void run(const Args &args, const Lane &) const override {
    const float *const x = args.in<float>(0);
    const Bounds b =
        attrs_.calibrated() ? Bounds{*attrs_.min_calib_range, *attrs_.max_calib_range} : bounds_of(x, count_, 1);
    const float scale = b.high > b.low ? 255 / (b.high - b.low) : 1, shift = 255 - b.high * scale;
    for (int64_t i = 0; i < count_; ++i) {
      const float value = x[i] * scale + shift + 0.5f;
      args.out<uint8_t>(0)[i] = value > 0 ? uint8_t(std::min(value, 255.0f)) : uint8_t(0);
    }
    if (args.outputs[1]) args.out<float>(1)[0] = scale;
    if (args.outputs[2]) args.out<float>(2)[0] = shift;
  }

 private:
  const QuantizeAttrs attrs_;
  const int64_t count_;
};

class Dequantize final : public Kernel {
 public:
  explicit Dequantize(const StepSpec &spec)
      : dtype_(spec.inputs[0].dtype),
        count_(spec.inputs[0].shape.size()),
        load_(load_block(dtype_, Dtype::kFloat64)),
        store_(store_block(Dtype::kFloat64, Dtype::kFloat32)) {}
  void run(const Args &args, const Lane &lane) const override {
    const double unit = quantum(dtype_, larger_bound(args.in<float>(1)[0], args.in<float>(2)[0]));
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      double block[kPointwiseBlock];
      for (int64_t i = begin; i < end; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - i);
        load_(args.inputs[0], i, block, count);
        for (int64_t k = 0; k < count; ++k) block[k] *= unit;
        store_(block, args.outputs[0], i, count);
      }
    });
  }

 private:
  const Dtype dtype_;
  const int64_t count_;
  const LoadBlock load_;
  const StoreBlock store_;
};

COHORT_KERNEL(cpu, _contrib_quantize, Quantize);
COHORT_KERNEL(cpu, _contrib_quantize_v2, Quantize);
COHORT_KERNEL(cpu, _contrib_requantize, Quantize);
COHORT_KERNEL(cpu, _contrib_quantize_asym, QuantizeAsym);
COHORT_KERNEL(cpu, _contrib_dequantize, Dequantize);

}  // namespace
}  // namespace cohort
