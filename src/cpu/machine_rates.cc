// SPDX-License-Identifier: Apache-2.0
#include "cpu/machine_rates.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "base/signals.hpp"
#include "cpu/dnnl_kernel.hpp"
#include "device/trace.hpp"

namespace cohort {
namespace {

constexpr int64_t kSide = 768;                     // of the matrices: three fit into a core's cache
constexpr size_t kCopiedBytes = size_t(32) << 20;  // more than a core's share of any cache
constexpr int kTries = 6;                          // the best of these counts, as other programs may be running

template <typename Fn>
double least_ns(int tries, Fn &&fn) {
  fn();
  int64_t least = INT64_MAX;
  for (int i = 0; i < tries; ++i) {
    const int64_t begin = trace_now_ns();
    fn();
    least = std::min(least, trace_now_ns() - begin);
  }
  return double(std::max<int64_t>(least, 1));
}

double product_rate(Dtype dtype) {
  const dnn::Desc desc = dnn::row_major({kSide, kSide}, dtype);
  const auto made = dnn::forward_desc<dnnl::matmul>(dnn::engine(), dnn::primitive_attr(), desc, desc, desc);
  const dnnl::matmul product(made);
  dnnl::stream stream(dnn::engine());
  dnnl::memory a(desc, dnn::engine()), b(desc, dnn::engine()), c(desc, dnn::engine());
  std::memset(a.get_data_handle(), 0, desc.get_size());
  std::memset(b.get_data_handle(), 0, desc.get_size());
  const double ns = least_ns(kTries, [&] {
    product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  });
  return 2.0 * double(kSide) * double(kSide) * double(kSide) / ns * 1e9;
}

double copy_rate(const Lane &lane) {
  const std::unique_ptr<char[]> from(new char[kCopiedBytes]()), to(new char[kCopiedBytes]);
  const double ns = least_ns(kTries / 2, [&] {
    parallel_for(lane, int64_t(kCopiedBytes), 1 << 20, [&](int64_t begin, int64_t end) {
      std::memcpy(to.get() + begin, from.get() + begin, size_t(end - begin));
    });
  });
  return 2.0 * double(kCopiedBytes) / ns * 1e9;
}

}  // namespace

MachineRates cpu_rates(int num_threads) {
  static std::mutex mutex;  // guards the rates
  static auto *const known = new std::map<int, MachineRates>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, fresh] = known->try_emplace(num_threads);
  if (!fresh) return entry->second;
  // Measures on a thread of its own, which ends together with its OpenMP team.
  std::exception_ptr failure;
  const auto measure = [&, rates = &entry->second] {
    try {
      const ThreadsScope threads(num_threads);
      rates->flops_per_s = product_rate(Dtype::kFloat32);
      if (dnn::has_bfloat16_units()) rates->narrow_flops_per_s = product_rate(Dtype::kBfloat16);
      rates->bytes_per_s = copy_rate({num_threads, nullptr});
    } catch (const dnnl::error &error) {
      const bool no_memory = error.status == dnnl_out_of_memory;
      failure = no_memory ? std::make_exception_ptr(std::bad_alloc())
                          : std::make_exception_ptr(Error(Code::kInternal, text("oneDNN: ", error.what())));
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const auto begin = [&] {
    const SignalsBlocked there;
    return std::thread(measure);
  };
  try {
    begin().join();
    if (failure) std::rethrow_exception(failure);
  } catch (const std::system_error &) {  // no thread can be started
    known->erase(entry);
    throw std::bad_alloc();
  } catch (...) {
    known->erase(entry);
    throw;
  }
  return entry->second;
}

}  // namespace cohort
