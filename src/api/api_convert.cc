// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "api/api.hpp"

namespace cohort::api {

void require(const void *pointer, const char *what) {
  if (!pointer) throw Error(Code::kInvalidArgument, text(what, ": expected a pointer, found NULL"), what);
}

void require(const void *pointer, size_t count, const char *what) {
  if (!pointer && count) {
    throw Error(Code::kInvalidArgument, text(what, ": expected a pointer to ", count, " entries, found NULL"), what);
  }
}

bool to_bool(int32_t value, const char *what) {
  if (value != 0 && value != 1) {
    throw Error(Code::kInvalidArgument, text(what, ": expected 0 or 1, found ", value), what);
  }
  return value == 1;
}

void check_index(size_t index, size_t count, const char *what) {
  if (index < count) return;
  throw Error(Code::kInvalidArgument, text(what, ": expected an index below ", count, ", found ", int64_t(index)),
              what);
}

std::string to_text(const char *source, const char *what) {
  require(source, what);
  return source;
}

std::string to_text_or_empty(const char *source) { return source ? source : ""; }

std::vector<std::string> to_texts(const char *const *source, size_t count, const char *what) {
  require(source, count, what);
  std::vector<std::string> texts;
  texts.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!source[i]) throw Error(Code::kInvalidArgument, text(what, "[", i, "]: expected text, found NULL"), what);
    texts.emplace_back(source[i]);
  }
  return texts;
}

AttrMap to_attrs(const char *const *keys, const char *const *values, size_t count) {
  const std::vector<std::string> names = to_texts(keys, count, "keys"), texts = to_texts(values, count, "values");
  AttrMap attrs;
  for (size_t i = 0; i < count; ++i) {
    if (!attrs.emplace(names[i], texts[i]).second) {
      throw Error(Code::kName, text("keys: '", names[i], "' is given twice"), names[i]);
    }
  }
  return attrs;
}

Context to_context(const cohort_context *context) {
  return context ? make_context(context->device_type, context->device_id) : Context();
}

std::vector<Context> to_contexts(const cohort_context *contexts, size_t count, const char *what) {
  require(contexts, count, what);
  std::vector<Context> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) result.push_back(make_context(contexts[i].device_type, contexts[i].device_id));
  return result;
}

Dtype to_dtype(int32_t dtype) {
  if (!dtype_valid(dtype)) throw Error(Code::kDtype, text("dtype: no element type has the code ", dtype), "dtype");
  return Dtype(dtype);
}

Dtype to_compute_dtype(int32_t dtype) {
  if (dtype == COHORT_DTYPE_FLOAT32 || dtype == COHORT_DTYPE_BFLOAT16 || dtype == COHORT_DTYPE_FLOAT16 ||
      dtype == COHORT_DTYPE_INT8) {
    return Dtype(dtype);
  }
  throw Error(Code::kInvalidArgument,
              text("compute_dtype: expected COHORT_DTYPE_FLOAT32, COHORT_DTYPE_BFLOAT16, COHORT_DTYPE_FLOAT16 or "
                   "COHORT_DTYPE_INT8, found ",
                   dtype),
              "compute_dtype");
}

Dtype to_dtype_or_none(int32_t dtype) { return dtype == COHORT_DTYPE_NONE ? Dtype::kNone : to_dtype(dtype); }

static_assert(COHORT_MAX_AXES == kMaxAxes, "the boundary and the arrays have one bound");

namespace {

Shape checked_shape(const int64_t *shape, int32_t num_axes, int64_t lowest) {
  if (num_axes < 0 || num_axes > COHORT_MAX_AXES) {
    throw Error(Code::kInvalidArgument, text("num_axes: expected 0 to ", COHORT_MAX_AXES, ", found ", num_axes),
                "num_axes");
  }
  require(shape, size_t(num_axes), "shape");
  for (int32_t axis = 0; axis < num_axes; ++axis) {
    if (shape[axis] < lowest) {
      throw Error(Code::kShape,
                  text("shape: expected lengths from ", lowest, ", found ", shape[axis], " for axis ", axis), "shape");
    }
  }
  return Shape(shape, shape + num_axes);
}

}  // namespace

Shape to_shape(const int64_t *shape, int32_t num_axes) { return checked_shape(shape, num_axes, 0); }

Shape to_shape_with_rest(const int64_t *shape, int32_t num_axes) {
  const Shape result = checked_shape(shape, num_axes, -1);
  if (std::count(result.begin(), result.end(), Shape::kUnknown) > 1) {
    throw Error(Code::kInvalidArgument, text("shape: expected at most one -1, found ", result), "shape");
  }
  return result;
}

size_t array_bytes(const Shape &shape, Dtype dtype) {
  int64_t bytes = int64_t(dtype_size(dtype));
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(length, 1), &bytes)) {
      throw Error(Code::kShape, text("shape: ", shape, " of ", dtype, " is too large for any array"), "shape");
    }
  }
  return shape.size() ? size_t(bytes) : 0;
}

void check_bytes(const Shape &shape, Dtype dtype, size_t bytes) {
  const size_t expected = array_bytes(shape, dtype);
  if (bytes == expected) return;
  throw Error(Code::kShape, text("bytes: expected ", expected, " for shape ", shape, " of ", dtype, ", found ", bytes),
              "bytes");
}

Shape unknown_from_zero(Shape shape) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 0) shape[axis] = Shape::kUnknown;
  }
  return shape;
}

std::vector<NDArray> deref_all(cohort_ndarray *const *arrays, size_t count, const char *what) {
  require(arrays, count, what);
  std::vector<NDArray> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!arrays[i]) throw Error(Code::kInvalidArgument, text(what, "[", i, "]: expected an array, found NULL"), what);
    result.push_back(deref_to_copy(arrays[i], what));
  }
  return result;
}

std::vector<NDArray> deref_all_or_null(cohort_ndarray *const *arrays, size_t count, const char *what) {
  require(arrays, count, what);
  std::vector<NDArray> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) result.push_back(arrays[i] ? deref_to_copy(arrays[i], what) : NDArray());
  return result;
}

cohort_context from_context(const Context &context) { return {int32_t(context.type), context.id}; }

cohort_ndarray *array_handle(const NDArray &array) { return array ? make_handle<cohort_ndarray>(array) : nullptr; }

void write_shape(const Shape &shape, int64_t *out_shape, size_t capacity, int32_t *out_num_axes) {
  if (!shape.rank_known()) return write_if(out_num_axes, COHORT_UNKNOWN_SHAPE);
  if (out_shape) {
    if (capacity < size_t(shape.rank())) {
      throw Error(Code::kInvalidArgument, text("capacity: expected at least ", shape.rank(), ", found ", capacity),
                  "capacity");
    }
    for (int axis = 0; axis < shape.rank(); ++axis) out_shape[axis] = std::max<int64_t>(shape[axis], 0);
  }
  write_if(out_num_axes, shape.rank());
}

void write_bytes(const void *data, size_t bytes, void *out, size_t capacity, size_t *out_bytes) {
  if (out) {
    if (capacity < bytes) {
      throw Error(Code::kInvalidArgument, text("capacity: expected at least ", bytes, " bytes, found ", capacity),
                  "capacity");
    }
    std::memcpy(out, data, bytes);
  } else {
    require(out_bytes, "out_bytes");
  }
  write_if(out_bytes, bytes);
}

namespace {

// A larger size belongs to no version of any struct: the memory was not initialised.
constexpr size_t kLargestStruct = 1 << 16;

size_t struct_size_of(const void *theirs, const char *what) {
  size_t size;
  std::memcpy(&size, theirs, sizeof(size));
  if (size < sizeof(size_t) || size > kLargestStruct) {
    throw Error(Code::kInvalidArgument, text(what, ": struct_size is ", size, ", so it was not initialised"), what);
  }
  return size;
}

}  // namespace

void read_struct(const void *theirs, void *ours, size_t size, const char *what) {
  if (!theirs) return;
  const size_t theirs_size = struct_size_of(theirs, what);
  const auto *bytes = static_cast<const unsigned char *>(theirs);
  for (size_t i = size; i < theirs_size; ++i) {
    if (bytes[i]) {
      throw Error(Code::kInvalidArgument,
                  text(what, ": sets a field at byte ", i, ", which this version (", COHORT_VERSION, ") does not know"),
                  what);
    }
  }
  std::memcpy(ours, theirs, std::min(size, theirs_size));
}

void init_struct(void *theirs, size_t struct_size) {
  if (!theirs || struct_size < sizeof(size_t) || struct_size > kLargestStruct) return;
  std::memset(theirs, 0, struct_size);
  std::memcpy(theirs, &struct_size, sizeof(struct_size));
}

void write_struct(const void *ours, size_t size, void *theirs, const char *what) {
  require(theirs, what);
  const size_t theirs_size = std::min(size, struct_size_of(theirs, what));
  std::memcpy(static_cast<char *>(theirs) + sizeof(size_t), static_cast<const char *>(ours) + sizeof(size_t),
              theirs_size - sizeof(size_t));
}

}  // namespace cohort::api
