// SPDX-License-Identifier: Apache-2.0
// How a backend in a separate shared object is found, loaded and refused, and how arrays are moved to and from devices
// whose memory the host cannot see: with the fake backend of support/fake_backend.cc.
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "device/device.hpp"
#include "ndarray/ndarray.hpp"
#include "ndarray/params.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kHost, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1};

// The folder of a test backend, beside this program's.
std::string folder_of(const char *backend) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  CHECK(length > 0);
  const std::string program(path, size_t(length));
  return program.substr(0, program.rfind('/') + 1) + backend;
}

void use_fake(const char *gpus) {
  setenv(kBackendPath.name, ("relative:" + folder_of("fake")).c_str(), 1);
  setenv("COHORT_FAKE_GPU", gpus, 1);
}

std::string message_of(const Context &context) {
  try {
    get_device(context);
  } catch (const Error &error) {
    CHECK(error.code() == Code::kDevice);
    CHECK_EQ(error.subject(), text(context));
    return error.what();
  }
  return "";
}

NDArray counting(const Shape &shape, const Context &context = kHost) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, kHost);
  std::iota(array.data_as<float>(), array.data_as<float>() + array.size(), 0.0f);
  return context == kHost ? array : array.copy_to(context);
}

std::vector<float> values(const NDArray &array) {
  std::vector<float> result(size_t(array.size()));
  const NDArray floats = array.cast(Dtype::kFloat32);
  floats.read(result.data(), result.size() * sizeof(float));
  return result;
}

}  // namespace

// These two tests come first, because a backend stays loaded once it was.
TEST(a_backend_whose_library_is_missing_names_it_and_all_else_works) {
  setenv(kBackendPath.name, folder_of("lacking").c_str(), 1);
  for (int i = 0; i < 2; ++i) {
    const std::string message = message_of(kGpu0);
    CHECK_EQ(message.substr(0, message.find(": cannot")),
             "gpu(0): libcohort_cuda.so could not be loaded: libcublasLt.so.0");
    CHECK_EQ(count_devices(DeviceType::kGpu), 0);
    CHECK(values(counting({3}))[2] == 2);
  }
}

TEST(a_stale_backend_is_refused_and_one_that_fits_is_loaded) {
  use_fake("stale");
  CHECK_EQ(message_of(kGpu0), "gpu(0): the fake backend is stale");
  CHECK_EQ(count_devices(DeviceType::kGpu), 0);
  use_fake("0");
  CHECK_EQ(message_of(kGpu0), "gpu(0): the CUDA driver finds no GPU");
  std::string reason;
  CHECK(!backend_available(DeviceType::kGpu, &reason));
  CHECK_EQ(reason, "the CUDA driver finds no GPU");
  use_fake("1");
  CHECK_EQ(message_of(kGpu1), "gpu(1): there is one GPU, gpu(0)");
  use_fake("2");
  CHECK_EQ(message_of({DeviceType::kGpu, 2}), "gpu(2): there are 2 GPUs, gpu(0) to gpu(1)");
  CHECK_EQ(count_devices(DeviceType::kGpu), 2);
  CHECK(backend_available(DeviceType::kGpu, &reason));
  const auto device = get_device(kGpu0);
  CHECK(device == get_device(kGpu0));
  CHECK(device != get_device(kGpu1));
}

TEST(arrays_go_between_all_contexts_with_casts) {
  use_fake("2");
  const Context contexts[] = {kHost, {DeviceType::kCpu, 1}, kGpu0, kGpu1};
  for (const Context &from : contexts) {
    const NDArray source = counting({3, 4}, from);
    for (const Context &to : contexts) {
      CHECK(source.copy_to(to).context() == to);
      CHECK(values(source.copy_to(to)) == values(counting({3, 4})));
      for (const Dtype dtype : {Dtype::kFloat16, Dtype::kInt64, Dtype::kFloat32}) {
        const NDArray target = NDArray::create({3, 4}, dtype, to);
        target.copy_from(source);
        CHECK(values(target) == values(counting({3, 4})));
      }
    }
  }
}

TEST(arrays_on_a_device_are_made_filled_viewed_and_joined) {
  use_fake("2");
  const NDArray large = NDArray::create({3 << 20}, Dtype::kFloat32, kGpu0);  // more than one piece of zeros
  for (const float value : values(large)) {
    if (value != 0) CHECK_EQ(value, 0.0f);
  }
  const NDArray array = counting({4, 3}, kGpu0);
  array.slice(1, 2).fill(7);
  CHECK(values(array) == (std::vector<float>{0, 1, 2, 7, 7, 7, 6, 7, 8, 9, 10, 11}));
  const NDArray columns = array.slice_axis(1, 1, 2);
  CHECK(columns.context() == kGpu0);
  CHECK(values(columns) == (std::vector<float>{1, 7, 7, 10}));
  const NDArray joined = concatenate({columns, counting({4, 1})}, 1);
  CHECK(joined.context() == kGpu0);
  CHECK(values(joined) == (std::vector<float>{1, 0, 7, 1, 7, 2, 10, 3}));
  array.fill_uniform(0, 1, 3);
  const NDArray same = NDArray::create({4, 3}, Dtype::kFloat32, kHost);
  same.fill_uniform(0, 1, 3);
  CHECK(values(array) == values(same));
  CHECK(NDArray::create({0, 3}, Dtype::kFloat32, kGpu0).copy_to(kHost).shape() == Shape({0, 3}));
  const std::vector<float> host(12, 5);
  array.write(host.data(), 48);
  CHECK(values(array) == host);
  CHECK(array.on_host().context() == kHost);
}

TEST(arrays_on_a_device_are_saved_and_load_to_the_host) {
  use_fake("2");
  const std::string bytes = params_bytes({{"w", counting({2, 3}, kGpu1)}});
  CHECK(bytes == params_bytes({{"w", counting({2, 3})}}));
}

UNIT_MAIN()
