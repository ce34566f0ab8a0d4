// SPDX-License-Identifier: Apache-2.0
#include "ndarray/ndarray.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "device/trace.hpp"
#include "ndarray/queue_copy.hpp"

namespace cohort {
namespace {

constexpr size_t kMostBytes = size_t(INT64_MAX);

NDArray new_on_host(const Shape &shape, Dtype dtype) { return NDArray::create(shape, dtype, Context(), false); }

// Copies host memory on this thread.
void host_copy(void *to, const void *from, size_t bytes) {
  const WorkSpan span(copy_info(), 2.0 * double(bytes));
  std::memmove(to, from, bytes);
}

// Copies between an array's memory, which no work is using, and host memory. Blocks until it is done.
void device_copy(Storage &storage, void *to, const void *from, size_t bytes) {
  const std::shared_ptr<Timeline> by = storage.immediate();
  const auto enqueue_lock = by->lock_to_enqueue();
  const std::shared_ptr<Queue> queue = by->queues()[0];
  queue->copy(to, from, bytes, nullptr);
  queue->sync();
}

void check_same_shape(const NDArray &source, const NDArray &target) {
  if (source.shape() == target.shape()) return;
  throw Error(Code::kShape, text("copy: the target has shape ", target.shape(), ", the source ", source.shape()));
}

void check_bytes(const char *what, const NDArray &array, size_t bytes) {
  if (bytes == array.bytes()) return;
  throw Error(Code::kInvalidArgument, text(what, ": an array of shape ", array.shape(), " and type ", array.dtype(),
                                           " has ", array.bytes(), " bytes, found ", bytes));
}

void check_axis_range(const Shape &shape, int axis, int64_t begin, int64_t end) {
  if (begin >= 0 && begin <= end && end <= shape[axis]) return;
  throw Error(Code::kInvalidArgument,
              text("slice [", begin, ", ", end, ") is outside axis ", axis, " of shape ", shape));
}

void check_has_axis(const char *what, const Shape &shape) {
  if (shape.rank() == 0) throw Error(Code::kInvalidArgument, text(what, ": an array of shape () has no axis 0"));
}

Shape with_length(const Shape &shape, int axis, int64_t length) {
  Shape result = shape;
  result[axis] = length;
  return result;
}

// Fills an array with the bytes that `fill` writes to a host buffer of its size.
template <typename Fill>
void fill_through_host(const NDArray &array, Fill &&fill) {
  const NDArray host = array.context().on_host() ? array : new_on_host(array.shape(), array.dtype());
  array.wait_to_write();
  fill(host.data());
  if (!array.same_memory(host)) return array.write(host.data(), host.bytes());
  array.written();
}

// Four numbers per block: calls number(i) for the stream's blocks of four.
template <typename Block>
void fill_random(const NDArray &array, const char *what, Block &&block_of) {
  fill_through_host(array, [&](void *data) {
    dispatch_float(array.dtype(), what, [&](auto tag) {
      using T = decltype(tag);
      T *const to = static_cast<T *>(data);
      const int64_t count = array.size();
      for (int64_t begin = 0; begin < count; begin += 4) {
        float numbers[4];
        block_of(uint64_t(begin / 4), numbers);
        for (int64_t i = begin; i < std::min(begin + 4, count); ++i) to[i] = cast_element<T>(numbers[i - begin]);
      }
    });
  });
}

}  // namespace

size_t dense_bytes(const Shape &shape, Dtype dtype) {
  const size_t element = dtype_size(dtype);
  if (element == 0) throw Error(Code::kDtype, text("an array needs an element type, found ", dtype));
  if (!shape.known()) throw Error(Code::kShape, text("an array needs a known shape, found ", shape));
  if (shape.rank() > kMaxAxes) {
    throw Error(Code::kShape, text("an array has at most ", kMaxAxes, " axes, found ", shape.rank()));
  }
  // The product of the lengths other than 0 must fit, too, so that no later product overflows.
  size_t bytes = element;
  bool empty = false;
  for (const int64_t length : shape) {
    if (length < 0) throw Error(Code::kShape, text("shape ", shape, " has a negative length"));
    empty = empty || length == 0;
    if (length > 0 && bytes > kMostBytes / size_t(length)) {
      throw Error(Code::kShape, text("shape ", shape, " has too many elements"));
    }
    bytes *= size_t(std::max<int64_t>(length, 1));
  }
  return empty ? 0 : bytes;
}

NDArray NDArray::create(const Shape &shape, Dtype dtype, const Context &context, bool zero) {
  const size_t bytes = dense_bytes(shape, dtype);
  std::shared_ptr<Memory> memory = get_device(context)->allocate(bytes);
  if (memory->context() !=
      context) {  // pinned or shared host memory: the device is cpu, the array keeps the requested context
    memory = std::make_shared<Memory>(context, memory->data(), bytes, [memory](void *) {});
  }
  NDArray array = wrap(std::move(memory), shape, dtype);
  if (!zero || bytes == 0) return array;
  if (context.on_host()) {
    std::memset(array.data(), 0, bytes);
    return array;
  }
  fill_at_once(array, 0);
  return array;
}

NDArray NDArray::wrap(std::shared_ptr<Memory> memory, const Shape &shape, Dtype dtype) {
  const size_t bytes = dense_bytes(shape, dtype);
  if (bytes > memory->bytes()) {
    throw Error(Code::kInvalidArgument, text("shape ", shape, " of type ", dtype, " needs ", bytes,
                                             " bytes of memory, found ", memory->bytes()));
  }
  return NDArray(std::make_shared<Storage>(std::move(memory)), 0, shape, dtype);
}

NDArray NDArray::wrap_host(void *data, size_t bytes, const Shape &shape, Dtype dtype, const Context &context,
                           std::shared_ptr<const void> owner) {
  if (!context.on_host()) {
    throw Error(Code::kUnsupported, text("context: expected a CPU context for host memory, found ", context),
                "context");
  }
  if (reinterpret_cast<uintptr_t>(data) % dtype_size(dtype)) {
    throw Error(Code::kInvalidArgument,
                text("data: expected an address that is a multiple of ", dtype_size(dtype), " bytes"), "data");
  }
  const NDArray array =
      wrap(std::make_shared<Memory>(context, data, bytes, [owner = std::move(owner)](void *) {}), shape, dtype);
  array.expose();
  return array;
}

void *NDArray::host_data() const {
  if (!context().on_host()) {
    throw Error(Code::kUnsupported, text("array: expected a CPU context, found ", context()), "array");
  }
  wait();
  expose();
  return data();
}

bool NDArray::begin_read_among_others(const std::shared_ptr<Timeline> &by) const {
  if (hazards().begin_read(range(), by) == Hazards::Before::kNothing) {
    hazards().check_known(range(), by.get());
    return false;
  }
  by->check_first([storage = storage_, range = range()] { storage->hazards().check_written(range); }, "input");
  return true;
}

bool NDArray::begin_write_among_others(const std::shared_ptr<Timeline> &by) const {
  const Hazards::Before before = hazards().begin_write(range(), by);
  if (before == Hazards::Before::kWriters || (before == Hazards::Before::kReaders && hazards().any_failed()))
    by->check_first([storage = storage_, range = range()] { storage->hazards().clear_failure(range); }, "output");
  return before != Hazards::Before::kNothing;
}

// ---- views --------------------------------------------------------------------------------------------------------

NDArray NDArray::slice(int64_t begin, int64_t end) const {
  check_has_axis("slice", shape_);
  check_axis_range(shape_, 0, begin, end);
  const size_t row_bytes = size_t(shape_.size(1, shape_.rank())) * dtype_size(dtype_);
  return NDArray(storage_, offset_ + size_t(begin) * row_bytes, with_length(shape_, 0, end - begin), dtype_);
}

NDArray NDArray::at(int64_t index) const {
  check_has_axis("at", shape_);
  if (index < 0 || index >= shape_[0]) {
    throw Error(Code::kInvalidArgument, text("index ", index, " is outside axis 0 of shape ", shape_));
  }
  NDArray row = slice(index, index + 1);
  if (shape_.rank() > 1) row.shape_ = Shape(shape_.begin() + 1, shape_.end());
  return row;
}

NDArray NDArray::reshape(const Shape &shape) const {
  Shape whole = shape;
  int inferred = -1;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    if (whole[axis] != Shape::kUnknown) continue;
    if (inferred >= 0) throw Error(Code::kShape, text("reshape to ", shape, ": only one length can be inferred"));
    inferred = axis;
  }
  if (inferred >= 0) {
    whole[inferred] = 1;
    const int64_t rest = int64_t(dense_bytes(whole, dtype_) / dtype_size(dtype_));
    if (rest == 0 || size() % rest != 0) {
      throw Error(Code::kShape, text("reshape: the ", size(), " elements of shape ", shape_, " do not fit ", shape));
    }
    whole[inferred] = size() / rest;
  }
  if (dense_bytes(whole, dtype_) != bytes()) {
    throw Error(Code::kShape,
                text("reshape: shape ", shape_, " has ", size(), " elements, ", shape, " has another number"));
  }
  return NDArray(storage_, offset_, whole, dtype_);
}

NDArray NDArray::window(const Shape &shape) const {
  if (dense_bytes(shape, dtype_) > bytes()) {
    throw Error(Code::kShape, text("shape ", shape, " is larger than the original ", shape_));
  }
  return NDArray(storage_, offset_, shape, dtype_);
}

NDArray NDArray::slice_axis(int given_axis, int64_t begin, int64_t given_end) const {
  const int axis = normalize_axis(given_axis, shape_.rank(), "axis");
  const int64_t end = given_end == INT64_MAX ? shape_[axis] : given_end;
  if (axis == 0) return slice(begin, end);
  check_axis_range(shape_, axis, begin, end);
  if (begin == end)
    throw Error(Code::kInvalidArgument, text("slice [", begin, ", ", end, ") of axis ", axis, " is empty"));
  const NDArray result = create(with_length(shape_, axis, end - begin), dtype_, context(), false);
  if (!context().on_host()) {
    copy_at_once(ArraySlice(*this, axis, begin, end), result);
    return result;
  }
  wait();
  const WorkSpan span(copy_info(), 2.0 * double(result.bytes()));
  copy_slice(data(), shape_, dtype_, axis, begin, end, result.data(), dtype_);
  return result;
}

// ---- copies -------------------------------------------------------------------------------------------------------

void NDArray::read(void *to, size_t bytes) const {
  check_bytes("read", *this, bytes);
  wait();
  if (bytes == 0) return;
  if (context().on_host()) {
    host_copy(to, data(), bytes);
  } else {
    device_copy(*storage_, to, data(), bytes);
  }
}

void NDArray::write(const void *from, size_t bytes) const {
  check_bytes("write", *this, bytes);
  wait_to_write();
  if (bytes != 0) {
    if (context().on_host()) {
      host_copy(data(), from, bytes);
    } else {
      device_copy(*storage_, data(), from, bytes);
    }
  }
  written();
}

void NDArray::copy_from(const NDArray &source) const {
  check_same_shape(source, *this);
  if (same_memory(source) && dtype_ == source.dtype_) return;
  if (bytes() == 0) return;
  const bool on_host = context().on_host() && source.context().on_host();
  if (!on_host || source.hazards().written_by_others(source.range()) || hazards().used_by_others(range())) {
    copy_at_once(source, *this);
    return;
  }
  source.wait();
  wait_to_write();
  if (dtype_ != source.dtype_ && overlaps(source)) {
    const NDArray whole = source.cast(dtype_);
    host_copy(data(), whole.data(), bytes());
  } else {
    const WorkSpan span(copy_info(), double(source.bytes() + bytes()));
    cast_elements(source.data(), source.dtype_, data(), dtype_, size());
  }
  written();
}

void NDArray::fill(double value) const {
  dispatch(dtype_, [&](auto tag) {
    using T = decltype(tag);
    const T element = cast_element<T>(value);
    wait_to_write();
    if (!context().on_host()) {
      uint64_t bytes = 0;
      std::memcpy(&bytes, &element, sizeof element);
      fill_at_once(*this, bytes);
      return wait();
    }
    std::fill_n(data_as<T>(), size(), element);
    written();
  });
}

void NDArray::fill_uniform(double low, double high, uint64_t seed) const {
  if (!(low <= high) || !std::isfinite(high - low)) {
    throw Error(Code::kInvalidArgument, text("low: expected finite bounds in order, found ", low, " and ", high),
                "low");
  }
  fill_random(*this, "uniform", [=](uint64_t block, float *numbers) {
    const Philox words = Philox::at(seed, block);
    for (int i = 0; i < 4; ++i) numbers[i] = float(low + (high - low) * double(uniform_of(words.word[i])));
  });
}

void NDArray::fill_normal(double mean, double deviation, uint64_t seed) const {
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation < 0) {
    throw Error(Code::kInvalidArgument,
                text("deviation: expected a finite mean and a deviation from 0, found ", mean, " and ", deviation),
                "deviation");
  }
  fill_random(*this, "normal", [=](uint64_t block, float *numbers) {
    const Philox words = Philox::at(seed, block);
    for (int i = 0; i < 4; i += 2) {
      normal_of(words.word[i], words.word[i + 1], &numbers[i], &numbers[i + 1]);
      numbers[i] = float(mean + deviation * double(numbers[i]));
      numbers[i + 1] = float(mean + deviation * double(numbers[i + 1]));
    }
  });
}

NDArray NDArray::copy_to(const Context &context) const {
  const NDArray result = create(shape_, dtype_, context, false);
  result.copy_from(*this);
  result.wait();
  return result;
}

NDArray NDArray::cast(Dtype dtype) const {
  const NDArray result = create(shape_, dtype, context(), false);
  result.copy_from(*this);
  result.wait();
  return result;
}

NDArray NDArray::on_host() const { return context().on_host() ? *this : copy_to(Context()); }

NDArray concatenate(const std::vector<NDArray> &arrays, int given_axis) {
  if (arrays.empty()) throw Error(Code::kInvalidArgument, "arrays: expected at least one, found none", "arrays");
  const NDArray &first = arrays[0];
  const int axis = normalize_axis(given_axis, first.shape().rank(), "axis");
  int64_t length = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const NDArray &array = arrays[i];
    if (array.dtype() != first.dtype()) {
      throw Error(Code::kDtype,
                  text("concatenate: array ", i, " has type ", array.dtype(), ", array 0 ", first.dtype()));
    }
    if (array.shape().rank() != first.shape().rank() ||
        with_length(array.shape(), axis, 0) != with_length(first.shape(), axis, 0)) {
      throw Error(Code::kShape, text("concatenate on axis ", axis, ": array ", i, " has shape ", array.shape(),
                                     ", array 0 ", first.shape()));
    }
    if (__builtin_add_overflow(length, array.shape()[axis], &length))
      throw Error(Code::kShape, text("concatenate on axis ", axis, ": the total length does not fit in 64 bits"));
  }
  const Shape shape = with_length(first.shape(), axis, length);
  const NDArray result = NDArray::create(shape, first.dtype(), first.context(), false);
  int64_t begin = 0;
  for (const NDArray &array : arrays) {
    const int64_t end = begin + array.shape()[axis];
    if (first.context().on_host()) {
      const NDArray host = array.on_host();
      host.wait();
      const WorkSpan span(copy_info(), 2.0 * double(host.bytes()));
      paste_slice(host.data(), host.dtype(), result.data(), shape, result.dtype(), axis, begin, end);
    } else {
      const bool is_there = array.context() == first.context();
      paste_at_once(is_there ? array : array.copy_to(first.context()), ArraySlice(result, axis, begin, end));
    }
    begin = end;
  }
  return result;
}

}  // namespace cohort
