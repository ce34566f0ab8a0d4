// SPDX-License-Identifier: Apache-2.0
// Arrays on the host: sizes, views, casts, copies, and errors of failed work that waiting reports.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <thread>

#include "base/error.hpp"
#include "base/random.hpp"
#include "device/device.hpp"
#include "ndarray/ndarray.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Dtype kAll[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kUint8,
                      Dtype::kInt8,    Dtype::kInt32,   Dtype::kInt64,   Dtype::kBool};

NDArray counting(const Shape &shape, Dtype dtype = Dtype::kFloat32) {
  const NDArray floats = NDArray::create(shape, Dtype::kFloat32, Context());
  std::iota(floats.data_as<float>(), floats.data_as<float>() + floats.size(), 0.0f);
  return floats.cast(dtype);
}

std::vector<double> values(const NDArray &array) {
  std::vector<double> result(size_t(array.size()));
  const NDArray doubles = array.cast(Dtype::kFloat64);
  doubles.read(result.data(), result.size() * sizeof(double));
  return result;
}

template <typename Fn>
Code code_of(Fn &&fn) {
  try {
    fn();
  } catch (const Error &error) {
    return error.code();
  }
  return Code(0);
}

std::shared_ptr<Timeline> new_timeline() {
  QueueOptions options;
  options.num_threads = 1;
  return std::make_shared<Timeline>(get_device(Context())->create_queue(options));
}

}  // namespace

TEST(a_new_array_is_zero_and_knows_its_size) {
  for (Dtype dtype : kAll) {
    const NDArray array = NDArray::create({3, 5}, dtype, {DeviceType::kCpu, 2});
    CHECK_EQ(array.bytes(), 15 * dtype_size(dtype));
    CHECK(array.context() == (Context{DeviceType::kCpu, 2}));
    for (double value : values(array)) CHECK_EQ(value, 0.0);
  }
  CHECK_EQ(NDArray::create({2, 0, 3}, Dtype::kFloat32, Context()).size(), 0);
  CHECK_EQ(NDArray::create(Shape(std::vector<int64_t>()), Dtype::kFloat32, Context()).size(), 1);
  CHECK(NDArray::create({1}, Dtype::kFloat32, {DeviceType::kCpuPinned, 0}).context().type == DeviceType::kCpuPinned);
}

TEST(impossible_arrays_are_refused_by_their_class) {
  const auto create = [](const Shape &shape, Dtype dtype = Dtype::kFloat32) {
    return code_of([&] { NDArray::create(shape, dtype, Context()); });
  };
  CHECK(create({2, -3}) == Code::kShape);
  CHECK(create({2, Shape::kUnknown}) == Code::kShape);
  CHECK(create(Shape()) == Code::kShape);
  CHECK(create({INT64_MAX, INT64_MAX}) == Code::kShape);
  CHECK(create({INT64_MAX, 2, 0}) == Code::kShape);
  CHECK(create({int64_t(1) << 62}) == Code::kShape);
  CHECK(create({int64_t(1) << 58}) == Code::kOutOfMemory);
  CHECK(create({2}, Dtype::kNone) == Code::kDtype);
  CHECK(code_of([] { NDArray::create({1}, Dtype::kFloat32, {DeviceType::kCpu, -1}); }) == Code::kInvalidArgument);
  const auto memory = get_device(Context())->allocate(8);
  CHECK(code_of([&] { NDArray::wrap(memory, {3}, Dtype::kFloat32); }) == Code::kInvalidArgument);
}

TEST(views_share_memory) {
  const NDArray array = counting({4, 3});
  const NDArray rows = array.slice(1, 3);
  CHECK(rows.shape() == Shape({2, 3}));
  CHECK_EQ(rows.data_as<float>()[0], 3.0f);
  rows.data_as<float>()[0] = -1;
  CHECK_EQ(array.data_as<float>()[3], -1.0f);
  CHECK(array.at(2).shape() == Shape({3}));
  CHECK_EQ(array.at(2).data_as<float>()[1], 7.0f);
  CHECK(array.at(2).at(1).shape() == Shape({1}));  // one axis stays
  CHECK(array.slice(4, 4).shape() == Shape({0, 3}));
  CHECK(array.reshape({2, -1}).shape() == Shape({2, 6}));
  CHECK(array.reshape({2, 6}).same_memory(array));
  CHECK(array.window({5, 2}).shape() == Shape({5, 2}));
  const NDArray columns = array.slice_axis(-1, 1, 3);
  CHECK(columns.shape() == Shape({4, 2}));
  CHECK(!columns.same_memory(array));
  CHECK(values(columns) == (std::vector<double>{1, 2, 4, 5, 7, 8, 10, 11}));
}

TEST(views_outside_an_array_are_refused) {
  const NDArray array = counting({4, 3});
  CHECK(code_of([&] { array.slice(2, 1); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.slice(0, 5); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.slice(-1, 2); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.at(4); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.at(-1); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.slice_axis(1, 2, 2); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.slice_axis(2, 0, 1); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.slice_axis(1, 0, 4); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.reshape({5, 2}); }) == Code::kShape);
  CHECK(code_of([&] { array.reshape({-1, 5}); }) == Code::kShape);
  CHECK(code_of([&] { array.reshape({-1, -1}); }) == Code::kShape);
  CHECK(code_of([&] { array.reshape({-1, INT64_MAX, 2}); }) == Code::kShape);
  CHECK(code_of([&] { array.window({13}); }) == Code::kShape);
  CHECK(code_of([&] { counting(Shape(std::vector<int64_t>())).slice(0, 1); }) == Code::kInvalidArgument);
  CHECK_THROWS(array.slice(0, 5), Error, "slice [0, 5) is outside axis 0 of shape (4, 3)");
}

TEST(casts_follow_the_contract_for_every_pair_of_types) {
  // Values that every type represents, so that each pair of types must preserve them; enough for the vector loops and
  // their remainders.
  const NDArray source = counting({103});
  for (int i = 0; i < 103; ++i) source.data_as<float>()[i] = float(i % 101);
  for (Dtype from : kAll) {
    const NDArray a = source.cast(from);
    for (Dtype to : kAll) {
      const std::vector<double> found = values(a.cast(to));
      for (int i = 0; i < 103; ++i) {
        const bool flag = from == Dtype::kBool || to == Dtype::kBool;
        CHECK_EQ(found[size_t(i)], flag ? double(i % 101 != 0) : double(i % 101));
      }
    }
  }
}

TEST(casts_truncate_overflow_and_round_as_they_should) {
  const float numbers[] = {2.5f, -1.5f, 1e6f, -1e6f, 0.3f, -0.0f, 65519.0f, 65520.0f, NAN};
  const NDArray floats = NDArray::create({9}, Dtype::kFloat32, Context());
  floats.write(numbers, sizeof numbers);
  const auto ints = values(floats.cast(Dtype::kInt32));
  CHECK_EQ(ints[0], 2.0);
  CHECK_EQ(ints[1], -1.0);
  CHECK_EQ(ints[2], 1e6);
  const auto longs = values(floats.cast(Dtype::kInt64));
  CHECK_EQ(longs[1], -1.0);
  CHECK_EQ(longs[3], -1e6);
  const auto bytes = values(floats.cast(Dtype::kUint8));
  CHECK_EQ(bytes[1], 255.0);  // as on x86
  const auto flags = values(floats.cast(Dtype::kBool));
  CHECK_EQ(flags[4], 1.0);
  CHECK_EQ(flags[5], 0.0);
  CHECK_EQ(flags[8], 1.0);
  const auto halves = values(floats.cast(Dtype::kFloat16));
  CHECK(std::isinf(halves[2]) && halves[2] > 0);
  CHECK(std::isinf(halves[3]) && halves[3] < 0);
  CHECK_EQ(halves[6], 65504.0);
  CHECK(std::isinf(halves[7]));
  CHECK(std::isnan(halves[8]));
}

TEST(the_vector_form_of_half_precision_is_the_scalar_one) {
  // Every half value there and back, and floats around every rounding boundary.
  std::vector<Float16> halves(65536);
  std::vector<float> floats(65536), near(3 * 65536);
  for (uint32_t bits = 0; bits < 65536; ++bits) halves[bits].bits = uint16_t(bits);
  cast_elements(halves.data(), Dtype::kFloat16, floats.data(), Dtype::kFloat32, 65536);
  for (size_t i = 0; i < 65536; ++i) {
    const float expected(halves[i]);
    if (std::isnan(expected)) {  // a quiet one with the same payload; the processor makes signalling ones quiet
      CHECK(std::isnan(floats[i]));
    } else {
      CHECK(std::memcmp(&floats[i], &expected, 4) == 0);
    }
    const float next = i + 1 < 65536 ? float(halves[i + 1]) : expected;
    const float middle = std::isfinite(next) && std::isfinite(expected) ? expected / 2 + next / 2 : expected;
    near[3 * i] = middle;
    near[3 * i + 1] = std::nextafterf(middle, INFINITY);
    near[3 * i + 2] = std::nextafterf(middle, -INFINITY);
  }
  std::vector<Float16> found(near.size());
  cast_elements(near.data(), Dtype::kFloat32, found.data(), Dtype::kFloat16, int64_t(near.size()));
  for (size_t i = 0; i < near.size(); ++i) {
    if (std::isnan(near[i])) {
      CHECK((found[i].bits & 0x7c00) == 0x7c00 && (found[i].bits & 0x3ff) != 0);
    } else {
      CHECK_EQ(found[i].bits, Float16(near[i]).bits);
    }
  }
}

TEST(copies_need_one_shape_and_cast) {
  const NDArray from = counting({2, 3}, Dtype::kUint8), to = NDArray::create({2, 3}, Dtype::kFloat32, Context());
  const uint64_t before = to.version();
  to.copy_from(from);
  CHECK(to.version() > before);
  CHECK(values(to) == (std::vector<double>{0, 1, 2, 3, 4, 5}));
  to.copy_from(to);
  CHECK(code_of([&] { to.copy_from(counting({3, 2})); }) == Code::kShape);
  CHECK_THROWS(to.copy_from(counting({3, 2})), Error, "the target has shape (2, 3), the source (3, 2)");
  const NDArray other = to.copy_to({DeviceType::kCpu, 7});
  CHECK(!other.same_memory(to));
  CHECK(values(other) == values(to));
  CHECK(to.on_host().same_memory(to));
  // Overlapping views of one array.
  const NDArray array = counting({6});
  array.slice(1, 6).copy_from(array.slice(0, 5));
  CHECK(values(array) == (std::vector<double>{0, 0, 1, 2, 3, 4}));
  float two[2];
  CHECK(code_of([&] { array.read(two, sizeof two); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { array.write(two, sizeof two); }) == Code::kInvalidArgument);
}

TEST(fill_sets_every_element_of_every_type) {
  for (Dtype dtype : kAll) {
    const NDArray array = counting({17}, dtype);
    array.slice(3, 9).fill(1);
    const auto found = values(array);
    for (size_t i = 3; i < 9; ++i) CHECK_EQ(found[i], 1.0);
    CHECK_EQ(found[9], dtype == Dtype::kBool ? 1.0 : 9.0);
  }
}

TEST(slices_of_any_axis_are_copied_and_pasted) {
  const Shape shape{3, 4, 2};
  const NDArray array = counting(shape);
  for (int axis = 0; axis < 3; ++axis) {
    for (int64_t begin = 0; begin < shape[axis]; ++begin) {
      for (int64_t end = begin + 1; end <= shape[axis]; ++end) {
        const NDArray part = array.slice_axis(axis, begin, end);
        const NDArray target = NDArray::create(shape, Dtype::kInt32, Context());
        paste_slice(part.data(), part.dtype(), target.data(), shape, Dtype::kInt32, axis, begin, end);
        const auto found = values(target);
        for (int64_t i = 0; i < array.size(); ++i) {
          const int64_t at[] = {i / 8, i / 2 % 4, i % 2};
          const bool inside = at[axis] >= begin && at[axis] < end;
          CHECK_EQ(found[size_t(i)], inside ? double(i) : 0.0);
        }
      }
    }
  }
}

TEST(concatenation_is_the_inverse_of_slicing) {
  const NDArray array = counting({3, 4, 2}, Dtype::kInt64);
  for (int axis = -3; axis < 3; ++axis) {
    const int64_t length = array.shape()[axis < 0 ? axis + 3 : axis];
    const NDArray whole = concatenate({array.slice_axis(axis, 0, 1), array.slice_axis(axis, 1, length)}, axis);
    CHECK(whole.shape() == array.shape());
    CHECK(values(whole) == values(array));
  }
  CHECK(code_of([&] { concatenate({array, counting({3, 4, 2})}, 0); }) == Code::kDtype);
  CHECK(code_of([&] { concatenate({array, counting({3, 4, 3}, Dtype::kInt64)}, 0); }) == Code::kShape);
  CHECK(code_of([&] { concatenate({array, counting({3, 4}, Dtype::kInt64)}, 0); }) == Code::kShape);
  CHECK(code_of([&] { concatenate({}, 0); }) == Code::kInvalidArgument);
}

TEST(reading_waits_for_the_queues_that_write) {
  const auto timeline = new_timeline();
  const NDArray array = NDArray::create({1}, Dtype::kFloat32, Context());
  array.begin_write(timeline);
  timeline->queues()[0]->call(
      [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        array.data_as<float>()[0] = 42;
      },
      "slow");
  CHECK(values(array.reshape({1, 1}))[0] == 42.0);
}

TEST(failed_work_is_reported_once_to_who_waits_for_it_and_its_arrays_stay_failed_until_written) {
  const auto timeline = new_timeline();
  const NDArray good = NDArray::create({1}, Dtype::kFloat32, Context());
  const NDArray bad = NDArray::create({1}, Dtype::kFloat32, Context());
  for (const NDArray *array : {&good, &bad}) array->begin_write(timeline);
  timeline->queues()[0]->call(
      [&] {
        bad.fail("Convolution 'conv0': no luck");
        throw Error(Code::kInternal, "no luck");
      },
      "Convolution 'conv0'");
  float value = 0;
  good.read(&value, 4);
  good.fill(2);
  CHECK_EQ(values(good)[0], 2.0);
  CHECK(!timeline->idle());
  CHECK_THROWS(bad.read(&value, 4), Error, "Convolution 'conv0': no luck");
  CHECK(timeline->idle());
  CHECK_THROWS(bad.read(&value, 4), Error, "the array was not written: Convolution 'conv0': no luck");
  CHECK(code_of([&] { good.copy_from(bad); }) == Code::kExecution);
  bad.fill(3);
  CHECK(values(bad)[0] == 3.0);
}

TEST(an_array_outlives_the_timelines_that_used_it) {
  const NDArray array = NDArray::create({1}, Dtype::kFloat32, Context());
  for (int i = 0; i < 3; ++i) array.begin_write(new_timeline());
  array.wait();
}

TEST(philox_gives_the_published_numbers) {
  // Known answers from the paper's reference implementation of philox4x32-10.
  const Philox zero = Philox::at(0, 0);
  CHECK_EQ(zero.word[0], 0x6627e8d5u);
  CHECK_EQ(zero.word[1], 0xe169c58du);
  CHECK_EQ(zero.word[2], 0xbc57ac4cu);
  CHECK_EQ(zero.word[3], 0x9b00dbd8u);
  const Philox ones = Philox::at(UINT64_MAX, UINT64_MAX, UINT64_MAX);
  CHECK_EQ(ones.word[0], 0x408f276du);
  CHECK_EQ(ones.word[1], 0x41c83b0eu);
  CHECK_EQ(ones.word[2], 0xa20bc7c6u);
  CHECK_EQ(ones.word[3], 0x6d5451fdu);
}

TEST(random_numbers_have_their_moments_and_depend_on_the_seed_alone) {
  const NDArray a = NDArray::create({100001}, Dtype::kFloat32, Context());
  a.fill_uniform(-1, 3, 7);
  double sum = 0, squares = 0;
  for (double value : values(a)) {
    CHECK(value >= -1 && value <= 3);
    sum += value;
    squares += value * value;
  }
  CHECK_NEAR(sum / 100001, 1.0, 0.02);
  CHECK_NEAR(squares / 100001 - 1.0, 16.0 / 12, 0.03);
  CHECK_EQ(a.data_as<float>()[6], -1 + 4 * uniform_at(7, 6));
  a.fill_normal(2, 0.5, 7);
  sum = squares = 0;
  for (double value : values(a)) {
    sum += value;
    squares += (value - 2) * (value - 2);
  }
  CHECK_NEAR(sum / 100001, 2.0, 0.01);
  CHECK_NEAR(squares / 100001, 0.25, 0.01);
  CHECK_EQ(a.data_as<float>()[3], float(2 + 0.5 * double(normal_at(7, 3))));
  const NDArray b = NDArray::create({100001}, Dtype::kFloat32, Context());
  b.fill_normal(2, 0.5, 7);
  CHECK(values(a) == values(b));
  b.fill_normal(2, 0.5, 8);
  CHECK(values(a) != values(b));
  CHECK(code_of([] { counting({3}, Dtype::kInt32).fill_uniform(0, 1, 1); }) == Code::kDtype);
}

UNIT_MAIN()
