// SPDX-License-Identifier: Apache-2.0
#include "cohort/ndarray.h"

#include "api/api.hpp"
#include "ndarray/dlpack.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

NDArray create(const int64_t *shape, int32_t num_axes, int32_t dtype, const cohort_context *context, bool zero) {
  const Shape lengths = to_shape(shape, num_axes);
  return NDArray::create(lengths, to_dtype(dtype), to_context(context), zero);
}

}  // namespace

cohort_error *cohort_ndarray_zeros(const int64_t *shape, int32_t num_axes, int32_t dtype, const cohort_context *context,
                                   cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(create(shape, num_axes, dtype, context, true));
  });
}

cohort_error *cohort_ndarray_empty(const int64_t *shape, int32_t num_axes, int32_t dtype, const cohort_context *context,
                                   cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(create(shape, num_axes, dtype, context, false));
  });
}

cohort_error *cohort_ndarray_full(const int64_t *shape, int32_t num_axes, int32_t dtype, const cohort_context *context,
                                  double value, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    const NDArray array = create(shape, num_axes, dtype, context, false);
    array.fill(value);
    *out_array = array_handle(array);
  });
}

cohort_error *cohort_ndarray_from_host(const void *data, size_t bytes, const int64_t *shape, int32_t num_axes,
                                       int32_t dtype, const cohort_context *context, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    require(data, bytes, "data");
    const Shape lengths = to_shape(shape, num_axes);
    check_bytes(lengths, to_dtype(dtype), bytes);
    const NDArray array = NDArray::create(lengths, to_dtype(dtype), to_context(context), false);
    array.write(data, bytes);
    *out_array = array_handle(array);
  });
}

cohort_error *cohort_ndarray_wrap(void *data, const int64_t *shape, int32_t num_axes, int32_t dtype,
                                  const cohort_context *context, cohort_deleter_fn deleter, void *user_data,
                                  cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    const Shape lengths = to_shape(shape, num_axes);
    const size_t bytes = array_bytes(lengths, to_dtype(dtype));
    require(data, bytes, "data");
    const Context where = to_context(context);
    auto owner = std::make_shared<HostRelease>([=] {
      if (deleter) deleter(data, user_data);
    });
    const NDArray array = NDArray::wrap_host(data, bytes, lengths, to_dtype(dtype), where, owner);
    *out_array = array_handle(array);
    owner->take();
  });
}

void cohort_ndarray_free(cohort_ndarray *array) {
  const CallScope inside;
  free_handle(array);
}

cohort_error *cohort_ndarray_share(const cohort_ndarray *array, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array"));
  });
}

cohort_error *cohort_ndarray_shape(const cohort_ndarray *array, int64_t *out_shape, size_t capacity,
                                   int32_t *out_num_axes) {
  return guard([&] { write_shape(deref(array, "array").shape(), out_shape, capacity, out_num_axes); });
}

cohort_error *cohort_ndarray_dtype(const cohort_ndarray *array, int32_t *out_dtype) {
  return guard([&] {
    require(out_dtype, "out_dtype");
    *out_dtype = int32_t(deref(array, "array").dtype());
  });
}

cohort_error *cohort_ndarray_context(const cohort_ndarray *array, cohort_context *out_context) {
  return guard([&] {
    require(out_context, "out_context");
    *out_context = from_context(deref(array, "array").context());
  });
}

cohort_error *cohort_ndarray_size(const cohort_ndarray *array, int64_t *out_size) {
  return guard([&] {
    require(out_size, "out_size");
    *out_size = deref(array, "array").size();
  });
}

cohort_error *cohort_ndarray_bytes(const cohort_ndarray *array, size_t *out_bytes) {
  return guard([&] {
    require(out_bytes, "out_bytes");
    *out_bytes = deref(array, "array").bytes();
  });
}

cohort_error *cohort_ndarray_data(const cohort_ndarray *array, void **out_data) {
  return guard([&] {
    require(out_data, "out_data");
    *out_data = deref(array, "array").host_data();
  });
}

cohort_error *cohort_ndarray_read(const cohort_ndarray *array, void *out_data, size_t bytes) {
  return guard([&] {
    require(out_data, bytes, "out_data");
    const NDArray &source = deref(array, "array");
    check_bytes(source.shape(), source.dtype(), bytes);
    source.read(out_data, bytes);
  });
}

cohort_error *cohort_ndarray_write(cohort_ndarray *array, const void *data, size_t bytes) {
  return guard([&] {
    require(data, bytes, "data");
    const NDArray &target = deref(array, "array");
    check_bytes(target.shape(), target.dtype(), bytes);
    target.write(data, bytes);
  });
}

cohort_error *cohort_ndarray_wait(const cohort_ndarray *array) {
  return guard([&] { deref(array, "array").wait(); });
}

cohort_error *cohort_ndarray_fill(cohort_ndarray *array, double value) {
  return guard([&] { deref(array, "array").fill(value); });
}

cohort_error *cohort_ndarray_fill_uniform(cohort_ndarray *array, double low, double high, uint64_t seed) {
  return guard([&] { deref(array, "array").fill_uniform(low, high, seed); });
}

cohort_error *cohort_ndarray_fill_normal(cohort_ndarray *array, double mean, double deviation, uint64_t seed) {
  return guard([&] { deref(array, "array").fill_normal(mean, deviation, seed); });
}

cohort_error *cohort_ndarray_copy_to(const cohort_ndarray *source, cohort_ndarray *target) {
  return guard([&] { deref(target, "target").copy_from(deref(source, "source")); });
}

cohort_error *cohort_ndarray_copy(const cohort_ndarray *array, const cohort_context *context,
                                  cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").copy_to(to_context(context)));
  });
}

cohort_error *cohort_ndarray_cast(const cohort_ndarray *array, int32_t dtype, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").cast(to_dtype(dtype)));
  });
}

cohort_error *cohort_ndarray_slice(const cohort_ndarray *array, int64_t begin, int64_t end,
                                   cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").slice(begin, end));
  });
}

cohort_error *cohort_ndarray_at(const cohort_ndarray *array, int64_t index, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").at(index));
  });
}

cohort_error *cohort_ndarray_slice_axis(const cohort_ndarray *array, int32_t axis, int64_t begin, int64_t end,
                                        cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").slice_axis(axis, begin, end));
  });
}

cohort_error *cohort_ndarray_reshape(const cohort_ndarray *array, const int64_t *shape, int32_t num_axes,
                                     cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").reshape(to_shape_with_rest(shape, num_axes)));
  });
}

cohort_error *cohort_ndarray_reshape_prefix(const cohort_ndarray *array, const int64_t *shape, int32_t num_axes,
                                            cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(deref(array, "array").window(to_shape(shape, num_axes)));
  });
}

cohort_error *cohort_ndarray_concat(cohort_ndarray *const *arrays, size_t num_arrays, int32_t axis,
                                    cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(concatenate(deref_all(arrays, num_arrays, "arrays"), axis));
  });
}

cohort_error *cohort_ndarray_to_dlpack(const cohort_ndarray *array, void **out_managed) {
  return guard([&] {
    require(out_managed, "out_managed");
    *out_managed = to_dlpack(deref(array, "array"));
  });
}

cohort_error *cohort_ndarray_from_dlpack(void *managed, cohort_ndarray **out_array) {
  return guard([&] {
    require(managed, "managed");
    require(out_array, "out_array");
    auto owner = std::make_shared<HostRelease>([managed] { delete_dlpack(managed); });
    *out_array = array_handle(from_dlpack(managed, owner));
    owner->take();
  });
}

cohort_error *cohort_ndarray_to_dlpack_unversioned(const cohort_ndarray *array, void **out_managed) {
  return guard([&] {
    require(out_managed, "out_managed");
    *out_managed = to_dlpack_unversioned(deref(array, "array"));
  });
}

cohort_error *cohort_ndarray_from_dlpack_unversioned(void *managed, cohort_ndarray **out_array) {
  return guard([&] {
    require(managed, "managed");
    require(out_array, "out_array");
    auto owner = std::make_shared<HostRelease>([managed] { delete_dlpack_unversioned(managed); });
    *out_array = array_handle(from_dlpack_unversioned(managed, owner));
    owner->take();
  });
}
