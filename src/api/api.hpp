// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the API layer: the object behind each kind of handle, and conversions between plain values of
// the C ABI and those of the library. Nothing is decided here.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/guard.hpp"
#include "api/handle.hpp"
#include "api/name_index.hpp"
#include "base/attributes.hpp"
#include "base/context.hpp"
#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "cohort/cohort.h"
#include "ndarray/ndarray.hpp"

namespace cohort::api {

// ---- objects behind handles ------------------------------------------------------------------------------

struct ErrorObject {
  Code code;
  std::string message;
  std::string subject;
};

struct Desc {
  std::string name;
  Shape shape;  // of unknown rank if it is not known; a length of 0 stays 0
  Dtype dtype = Dtype::kNone;
  std::string layout;
};

using DescList = std::vector<Desc>;

// Lists in which the host looks up names.
struct ArraysObject : NamedArrays {
  ArraysObject() = default;
  ArraysObject(NamedArrays arrays) : NamedArrays(std::move(arrays)) {}
  NameIndex index;
};
struct DescsObject : DescList {
  DescsObject() = default;
  DescsObject(DescList descs) : DescList(std::move(descs)) {}
  NameIndex index;
};

struct SymbolObject;
struct ExecutorObject;
struct GroupObject;
struct OptimizerObject;
struct MetricObject;
struct InitializerObject;
struct MonitorObject;
struct ManagerObject;
struct TapeObject;
struct LogObject;
struct CalibrationObject;
struct TraceObject;

#define COHORT_HANDLE_TRAITS(c_type, object, kind)        \
  template <>                                             \
  struct HandleTraits<c_type> {                           \
    using Object = object;                                \
    static constexpr HandleKind kKind = HandleKind::kind; \
  }
COHORT_HANDLE_TRAITS(cohort_error, ErrorObject, kError);
COHORT_HANDLE_TRAITS(cohort_ndarray, NDArray, kNDArray);
COHORT_HANDLE_TRAITS(cohort_arrays, ArraysObject, kArrays);
COHORT_HANDLE_TRAITS(cohort_descs, DescsObject, kDescs);
COHORT_HANDLE_TRAITS(cohort_symbol, SymbolObject, kSymbol);
COHORT_HANDLE_TRAITS(cohort_executor, ExecutorObject, kExecutor);
COHORT_HANDLE_TRAITS(cohort_group, GroupObject, kGroup);
COHORT_HANDLE_TRAITS(cohort_optimizer, OptimizerObject, kOptimizer);
COHORT_HANDLE_TRAITS(cohort_metric, MetricObject, kMetric);
COHORT_HANDLE_TRAITS(cohort_initializer, InitializerObject, kInitializer);
COHORT_HANDLE_TRAITS(cohort_monitor, MonitorObject, kMonitor);
COHORT_HANDLE_TRAITS(cohort_manager, ManagerObject, kManager);
COHORT_HANDLE_TRAITS(cohort_tape, TapeObject, kTape);
COHORT_HANDLE_TRAITS(cohort_log, LogObject, kLog);
COHORT_HANDLE_TRAITS(cohort_calibration, CalibrationObject, kCalibration);
COHORT_HANDLE_TRAITS(cohort_trace, TraceObject, kTrace);
#undef COHORT_HANDLE_TRAITS

// ---- arguments in ----------------------------------------------------------------------------------------

// These throw kInvalidArgument that names `what`.
void require(const void *pointer, const char *what);
void require(const void *pointer, size_t count, const char *what);  // NULL only with count 0
bool to_bool(int32_t value, const char *what);                      // 0 or 1
void check_index(size_t index, size_t count, const char *what);
std::string to_text(const char *source, const char *what);
std::string to_text_or_empty(const char *source);  // NULL: ""
std::vector<std::string> to_texts(const char *const *source, size_t count, const char *what);
AttrMap to_attrs(const char *const *keys, const char *const *values, size_t count);

Context to_context(const cohort_context *context);  // NULL: cpu(0)
std::vector<Context> to_contexts(const cohort_context *contexts, size_t count, const char *what);
Dtype to_dtype(int32_t dtype);          // throws kDtype
Dtype to_dtype_or_none(int32_t dtype);  // -1: kNone
Dtype to_compute_dtype(int32_t dtype);  // throws kInvalidArgument, kUnsupported
// The shape of an array: each length from 0, else kShape.
Shape to_shape(const int64_t *shape, int32_t num_axes);
// The same, but one length may be -1, which becomes kUnknown.
Shape to_shape_with_rest(const int64_t *shape, int32_t num_axes);
size_t array_bytes(const Shape &shape, Dtype dtype);              // throws kShape if that is too large for any array
void check_bytes(const Shape &shape, Dtype dtype, size_t bytes);  // throws kShape unless bytes is array_bytes()
// Replaces lengths of 0 by unknown ones, which is what 0 means in inference.
Shape unknown_from_zero(Shape shape);

std::vector<NDArray> deref_all(cohort_ndarray *const *arrays, size_t count, const char *what);
std::vector<NDArray> deref_all_or_null(cohort_ndarray *const *arrays, size_t count, const char *what);

// ---- results out -----------------------------------------------------------------------------------------

cohort_context from_context(const Context &context);
// A new handle on the array; NULL for a null array.
cohort_ndarray *array_handle(const NDArray &array);
void write_shape(const Shape &shape, int64_t *out_shape, size_t capacity, int32_t *out_num_axes);
void write_bytes(const void *data, size_t bytes, void *out, size_t capacity, size_t *out_bytes);
template <typename T, typename V>
void write_if(T *out, const V &value) {
  if (out) *out = T(value);
}

// Sends one message to a callback of the host, inside a call. Drops it if there is no memory for it.
void send_inside_call(cohort_log_fn log, int level, const std::string &message, void *user_data) noexcept;

// ---- option structs --------------------------------------------------------------------------------------

// Copies the caller's struct into `ours`, which has `size` bytes and is all zeros; both start with struct_size. NULL
// means all defaults. kInvalidArgument if struct_size is impossible, or if bytes that this version does not know are
// not zero.
void read_struct(const void *theirs, void *ours, size_t size, const char *what);
template <typename T>
T read_options(const T *options, const char *what) {
  T ours{};
  read_struct(options, &ours, sizeof(T), what);
  return ours;
}
// For the _init functions: fills the struct with zeros and sets its size.
void init_struct(void *theirs, size_t struct_size);
// Copies `ours` to the caller's struct, as much as its struct_size allows.
void write_struct(const void *ours, size_t size, void *theirs, const char *what);

}  // namespace cohort::api
