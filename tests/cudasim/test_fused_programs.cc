// SPDX-License-Identifier: Apache-2.0
// Fused point-wise operators as source text: the real NVRTC, if it is installed, accepts the source; and compiled for
// the host it gives the same bits as the interpreting kernel.
#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

#include "cuda/cuda_source.hpp"
#include "cuda/op/fused_source.hpp"
#include "cuda_control.hpp"
#include "device/device.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const auto compile_with = CONTROL(cudasim_compile_with);
const auto num_compilations = CONTROL(cudasim_num_compilations);
const Context kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1};
constexpr Dtype kFloats[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16};

constexpr char kForHost[] = "g++ -std=c++17 -O1 -w -shared -fPIC -ffp-contract=off -Isrc";

// A program of each functor in [begin, end), applied to inputs and to earlier results.
FusedPointwiseAttrs program_of(int begin, int end) {
  FusedPointwiseAttrs attrs;
  attrs.num_inputs = 3;
  for (int code = begin; code < end; ++code) {
    const int last = attrs.num_inputs + code - begin;
    attrs.instructions.push_back({PointwiseCode(code), (code % 5 == 0) ? last - 1 : 0, 1, 2, 0.3, -1.75});
    attrs.outputs.push_back(last);
  }
  return attrs;
}

struct Case {
  FusedPointwiseAttrs attrs;
  Dtype dtype;
  int64_t count, offset;  // elements; the index of the first one in its array
  std::vector<bool> wanted;
};

using Bytes = std::vector<char>;

// The outputs on a device; each array is a block of its own.
std::vector<Bytes> run(const Case &of, const std::vector<Bytes> &inputs, const Context &context, std::string *kernel) {
  const std::shared_ptr<Device> device = get_device(context);
  const size_t element = dtype_size(of.dtype), bytes = size_t(of.count) * element,
               skipped = size_t(of.offset) * element;
  StepSpec spec;
  spec.op = "_fused_pointwise";
  spec.attrs = std::make_shared<FusedPointwiseAttrs>(of.attrs);
  spec.context = context;
  spec.inputs.assign(size_t(of.attrs.num_inputs), {Shape{of.count}, of.dtype, nullptr});
  spec.outputs.assign(of.attrs.outputs.size(), {Shape{of.count}, of.dtype, nullptr});
  spec.wanted = of.wanted;
  KernelChoice choice;
  const std::shared_ptr<Kernel> made = device->make_kernel(spec, &choice);
  *kernel = choice.name;
  const std::shared_ptr<Queue> queue = device->create_queue({});
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<void *> arrays;
  for (size_t i = 0; i < inputs.size() + of.attrs.outputs.size(); ++i) {
    memory.push_back(device->allocate(skipped + bytes));
    arrays.push_back(static_cast<char *>(memory.back()->data()) + skipped);
    if (i < inputs.size()) queue->copy(arrays[i], inputs[i].data(), bytes, nullptr);
    if (i >= inputs.size() && !of.wanted[i - inputs.size()]) arrays[i] = nullptr;
  }
  Step step{};
  step.kernel = made.get();
  step.args.inputs = arrays.data();
  step.args.outputs = arrays.data() + inputs.size();
  step.label = "fused";
  queue->run({&step, 1, WorkSize::kParallel}, nullptr);
  std::vector<Bytes> found;
  for (size_t j = 0; j < of.attrs.outputs.size(); ++j) {
    found.emplace_back(of.wanted[j] ? bytes : 0);
    if (of.wanted[j]) queue->copy(found[j].data(), arrays[inputs.size() + j], bytes, nullptr);
  }
  queue->sync();
  return found;
}

template <typename T>
Bytes drawn_as(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-2, 2);
  const float odd[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e30f};
  Bytes bytes(size_t(count) * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    const float value = i % 7 == 3 ? odd[(size_t(i) + seed) % std::size(odd)] : numbers(random);
    const T element = cast_element<T>(value);
    std::memcpy(bytes.data() + size_t(i) * sizeof(T), &element, sizeof element);
  }
  return bytes;
}
std::vector<Bytes> drawn(const Case &of) {
  std::vector<Bytes> inputs;
  for (int i = 0; i < of.attrs.num_inputs; ++i) {
    inputs.push_back(dispatch_float(of.dtype, "drawn",
                                    [&](auto type) { return drawn_as<decltype(type)>(of.count, uint32_t(i) + 1); }));
  }
  return inputs;
}

// Equal bits, but any NaN equals any other.
bool same(const Bytes &a, const Bytes &b, Dtype dtype) {
  if (a.size() != b.size()) return false;
  return dispatch_float(dtype, "same", [&](auto type) {
    using T = decltype(type);
    for (size_t at = 0; at < a.size(); at += sizeof(T)) {
      T x, y;
      std::memcpy(&x, a.data() + at, sizeof x);
      std::memcpy(&y, b.data() + at, sizeof y);
      if (std::memcmp(&x, &y, sizeof x) == 0) continue;
      if (!std::isnan(cast_element<double>(x)) || !std::isnan(cast_element<double>(y))) return false;
    }
    return true;
  });
}

void same_as_interpreted(const Case &of, const char *what) {
  const std::vector<Bytes> inputs = drawn(of);
  std::string kernel;
  compile_with(nullptr);
  const std::vector<Bytes> expected = run(of, inputs, kGpu0, &kernel);
  CHECK_EQ(kernel, std::string("plain"));
  compile_with(kForHost);
  const std::vector<Bytes> found = run(of, inputs, kGpu0, &kernel);
  CHECK_EQ(kernel, std::string("nvrtc"));
  compile_with(nullptr);
  for (size_t j = 0; j < found.size(); ++j) {
    if (same(found[j], expected[j], of.dtype)) continue;
    unit::fail(__FILE__, __LINE__,
               text(what, ", output ", j, " (", pointwise_name(of.attrs.instructions[j].code), ")"));
  }
}

constexpr int kMost = 48;  // outputs of a program

TEST(compiled_programs_compute_what_interpreted_ones_do) {
  int program = 0;
  for (int begin = 0; begin < kNumPointwiseCodes; begin += kMost) {
    for (const Dtype dtype : kFloats) {
      Case of{program_of(begin, std::min(begin + kMost, kNumPointwiseCodes)), dtype, 41, 0, {}};
      of.wanted.assign(of.attrs.outputs.size(), true);
      of.wanted[size_t(program++) % of.wanted.size()] = false;
      same_as_interpreted(of, dtype_name(dtype));
    }
  }
}

// Whole vectors, partial ones, arrays that begin inside one, and empty arrays.
TEST(compiled_programs_take_arrays_of_any_length_at_any_place) {
  for (const int64_t count : {0, 1, 3, 4, 8, 1000, 1003}) {
    for (const int64_t offset : {0, 1}) {
      Case of{
          program_of(int(PointwiseCode::kTanh), int(PointwiseCode::kTanh) + 1), Dtype::kFloat32, count, offset, {true}};
      same_as_interpreted(of, "tanh");
    }
  }
}

TEST(a_program_is_compiled_once_while_it_is_in_use_and_kept_for_later_processes) {
  const std::string folder = text(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp", "/fused-", getpid());
  const std::string absolute = folder[0] == '/' ? folder : text(std::getenv("PWD"), '/', folder);
  mkdir(absolute.c_str(), 0700);
  setenv("COHORT_CUDA_CACHE", absolute.c_str(), 1);
  const Case of{program_of(0, 3), Dtype::kFloat32, 10, 0, {true, true, true}};
  const std::vector<Bytes> inputs = drawn(of);
  std::string kernel;
  compile_with(kForHost);
  const uint64_t before = num_compilations();
  const std::vector<Bytes> first = run(of, inputs, kGpu0, &kernel);
  CHECK_EQ(num_compilations(), before + 1);
  CHECK(run(of, inputs, kGpu1, &kernel) == first);  // another device: from the file
  CHECK_EQ(num_compilations(), before + 1);
  CHECK_EQ(kernel, std::string("nvrtc"));
  // A truncated file is written again.
  const std::string list = absolute + "/list";
  CHECK_EQ(std::system(("ls " + absolute + "/*.cubin >" + list).c_str()), 0);
  std::string file;
  std::getline(std::ifstream(list), file);
  CHECK_EQ(truncate(file.c_str(), 20000), 0);
  CHECK(run(of, inputs, kGpu0, &kernel) == first);
  CHECK_EQ(num_compilations(), before + 2);
  // Only regular files are read: not a pipe that nobody writes to, nor a device without end.
  for (const uint64_t made : {3, 4}) {
    CHECK_EQ(unlink(file.c_str()), 0);
    CHECK_EQ(made == 3 ? mkfifo(file.c_str(), 0600) : symlink("/dev/zero", file.c_str()), 0);
    CHECK(run(of, inputs, kGpu0, &kernel) == first);
    CHECK_EQ(num_compilations(), before + made);
  }
  unsetenv("COHORT_CUDA_CACHE");
  compile_with(nullptr);
  CHECK_EQ(std::system(("rm -r " + absolute).c_str()), 0);
}

TEST(where_a_source_is_refused_the_program_is_interpreted) {
  const Case of{program_of(0, 3), Dtype::kFloat32, 10, 0, {true, true, true}};
  std::string kernel;
  compile_with("false");
  run(of, drawn(of), kGpu0, &kernel);
  CHECK_EQ(kernel, std::string("plain"));
  compile_with(nullptr);
}

TEST(what_nvrtc_says_of_a_source_that_it_refuses_is_one_line) {
  std::string why;
  CHECK_EQ(compile_source("no program\nat all", 90, &why), std::string());
  if (why.find("could not be loaded") != std::string::npos) SKIP(why);
  CHECK(why.find("cohort.cu(1): error: ") != std::string::npos);
  CHECK_EQ(why.find_first_of(std::string("\0\n", 2)), std::string::npos);
}

// All functors in float for one kind of GPU each, and other types for another.
TEST(nvrtc_takes_each_functor_for_each_gpu) {
  std::string why;
  const int capabilities[] = {80, 90, 100};
  for (size_t k = 0; k < std::size(capabilities); ++k) {
    for (const Dtype dtype : kFloats) {
      FusedPointwiseAttrs attrs = program_of(0, kNumPointwiseCodes);
      std::vector<bool> wanted(attrs.outputs.size());
      // The source has all of them; code is made of some, which takes longest.
      for (size_t j = 0; j < wanted.size(); ++j) wanted[j] = j % 36 == k * 12 + size_t(dtype) % 12;
      const std::string code = compile_source(fused_source(attrs, wanted, dtype), capabilities[k], &why);
      if (code.empty() && why.find("could not be loaded") != std::string::npos) SKIP(why);
      if (code.empty()) unit::fail(__FILE__, __LINE__, text(dtype, " for sm_", capabilities[k], ": ", why));
    }
  }
}

}  // namespace

UNIT_MAIN()
