// SPDX-License-Identifier: Apache-2.0
// The functions of arrays: making, reading, writing, waiting.
#include <algorithm>
#include <limits>
#include <memory>

#include "mxnet/c_api.h"
#include "ndarray_handle.hpp"
#include "ndarray_views.hpp"

namespace cohort_mxnet {

namespace {

// The value that MXSetIsNumpyShape() sets: 0 off, 1 on this thread, 2 on all threads.
std::atomic<bool> numpy_shape_of_all{false};
int &numpy_shape_of_thread() {
  static thread_local int value = 0;
  return value;
}

int numpy_shape() { return numpy_shape_of_all ? 2 : numpy_shape_of_thread(); }

template <typename Length>
void create(const Length *shape, size_t num_axes, int device_type, int device_id, int delay_alloc, int dtype,
            void **out) {
  require(out, "out");
  if (num_axes > COHORT_MAX_AXES) fail("an array of " + std::to_string(num_axes) + " axes; at most 32 are possible");
  if (num_axes > 0) require(shape, "shape");
  const cohort::Shape lengths(shape, shape + num_axes);
  for (const int64_t length : lengths)
    if (length < 0) fail("an array with an axis of length " + std::to_string(length));
  const cohort_context context{device_type, device_id};
  if (num_axes == 0 && !is_numpy_shape()) {
    *out = publish(std::make_shared<NDArray>());
    return;
  }
  auto array = std::make_shared<NDArray>(lengths, dtype, context);
  cohort::query<size_t>(cohort_dtype_bytes, dtype);  // throws for an unknown one
  if (!delay_alloc) array->array();
  *out = publish(std::move(array));
}

size_t bytes_for(NDArray &array, size_t num_elements) {
  const auto size = static_cast<size_t>(array.array().size());
  if (size != num_elements)
    fail("expected " + std::to_string(size) + " elements, as many as the array has, found " +
         std::to_string(num_elements));
  return array.array().bytes();
}

// Gives arrays and their names to the host.
void give_arrays(const cohort::Arrays &arrays, uint32_t *out_size, void ***out_arrays, uint32_t *out_name_size,
                 const char ***out_names) {
  static thread_local std::vector<void *> handles;
  static thread_local Texts names;
  const std::vector<std::string> all = arrays.names();
  const bool has_names = std::any_of(all.begin(), all.end(), [](const std::string &name) { return !name.empty(); });
  const char **const name_pointers = names.assign(has_names ? all : std::vector<std::string>());
  NewHandles made;
  for (cohort::NDArray &array : arrays.list())
    made.add(array ? std::make_shared<NDArray>(std::move(array)) : std::make_shared<NDArray>());
  handles = made.release();
  *out_size = static_cast<uint32_t>(handles.size());
  *out_arrays = handles.data();
  *out_name_size = static_cast<uint32_t>(names.size());
  *out_names = name_pointers;
}

// A .params file of one array, without a name, around the array's own bytes: magic, 0, 1 array; 0 names.
constexpr uint64_t kListHead[3] = {0x112, 0, 1};
constexpr uint64_t kListTail = 0;

template <typename Length>
const Length *narrow_shape(const cohort::Shape &shape) {
  static thread_local std::vector<Length> lengths;
  lengths.assign(1, 0);  // data() is not null for a scalar
  lengths.clear();
  for (const int64_t length : shape) {
    if (static_cast<uint64_t>(length) > static_cast<uint64_t>(std::numeric_limits<Length>::max()))
      fail("an axis of length " + std::to_string(length) + " does not fit into 32 bits");
    lengths.push_back(static_cast<Length>(length));
  }
  return lengths.data();
}

template <typename Length, typename Count>
void give_shape(const void *handle, Count *out_num_axes, const Length **out_shape) {
  const std::shared_ptr<NDArray> array = ndarray(handle);
  require(out_num_axes, "out_dim");
  require(out_shape, "out_pdata");
  const cohort::Shape shape = array->shape();
  *out_shape = narrow_shape<Length>(shape);
  *out_num_axes = array->is_none() && is_numpy_shape() ? static_cast<Count>(-1) : static_cast<Count>(shape.size());
}

// ---- DLPack
// --------------------------------------------------------------------------------------------------------------

// As DLPack before its version 1 lays it out.
struct ManagedTensor {
  void *data;
  int32_t device_type, device_id;
  int32_t num_axes;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void *manager;
  void (*deleter)(ManagedTensor *);
};

// A copy of a tensor's head, for hosts that free theirs when the call returns.
struct TensorCopy {
  ManagedTensor copy;
  ManagedTensor original;
};

void delete_copy(ManagedTensor *tensor) {
  const std::unique_ptr<TensorCopy> owner(static_cast<TensorCopy *>(tensor->manager));
  if (owner->original.deleter) owner->original.deleter(&owner->original);
}

void from_dlpack(void *managed, bool is_transient, void **out) {
  require(managed, "dlpack");
  require(out, "out_handle");
  if (!is_transient) {
    *out = new_ndarray(cohort::NDArray::from_dlpack_unversioned(managed));
    return;
  }
  auto owner = std::make_unique<TensorCopy>();
  owner->original = *static_cast<ManagedTensor *>(managed);
  owner->copy = owner->original;
  owner->copy.manager = owner.get();
  owner->copy.deleter = delete_copy;
  cohort::NDArray array = cohort::NDArray::from_dlpack_unversioned(&owner->copy);
  owner.release();  // freed by delete_copy
  *out = new_ndarray(std::move(array));
}

}  // namespace

bool is_numpy_shape() { return numpy_shape() != 0; }

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXIsNumpyShape(int *curr) {
  return guarded([&] { required(curr, "curr") = numpy_shape(); });
}

int MXSetIsNumpyShape(int is_np_shape, int *prev) {
  return guarded([&] {
    if (is_np_shape < 0 || is_np_shape > 2)
      fail("expected 0, 1 or 2 for is_np_shape, found " + std::to_string(is_np_shape));
    if (prev) *prev = numpy_shape();
    // Off is off for all, but a thread that turns it on leaves the others as they are.
    if (is_np_shape != 1) numpy_shape_of_all = is_np_shape == 2;
    numpy_shape_of_thread() = is_np_shape == 0 ? 0 : 1;
  });
}

// ---- making and freeing
// --------------------------------------------------------------------------------------------------

int MXNDArrayCreateNone(NDArrayHandle *out) {
  return guarded([&] { required(out, "out") = publish(std::make_shared<NDArray>()); });
}

int MXNDArrayCreate(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc,
                    NDArrayHandle *out) {
  return guarded([&] { create(shape, ndim, dev_type, dev_id, delay_alloc, COHORT_DTYPE_FLOAT32, out); });
}

int MXNDArrayCreateEx(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc, int dtype,
                      NDArrayHandle *out) {
  return guarded([&] { create(shape, ndim, dev_type, dev_id, delay_alloc, dtype, out); });
}

int MXNDArrayCreateEx64(const int64_t *shape, int ndim, int dev_type, int dev_id, int delay_alloc, int dtype,
                        NDArrayHandle *out) {
  return guarded([&] {
    if (ndim < 0) fail("expected 0 axes or more, found " + std::to_string(ndim));
    create(shape, static_cast<size_t>(ndim), dev_type, dev_id, delay_alloc, dtype, out);
  });
}

int MXNDArrayFree(NDArrayHandle handle) {
  return guarded([&] { free_handle<NDArray>(handle); });
}

int MXShallowCopyNDArray(NDArrayHandle src, NDArrayHandle *out) {
  return guarded([&] {
    require(out, "out");
    const std::shared_ptr<NDArray> source = ndarray(src);
    *out = publish(source->is_none() ? std::make_shared<NDArray>() : view_of(*source, source->share()));
  });
}

// ---- files
// ---------------------------------------------------------------------------------------------------------------

int MXNDArraySave(const char *fname, uint32_t num_args, NDArrayHandle *args, const char **keys) {
  return guarded([&] {
    require(fname, "fname");
    cohort::Arrays list;
    const auto arrays = ndarrays(args, num_args);
    for (size_t i = 0; i < arrays.size(); ++i) list.add(keys ? &required(keys[i], "a name") : "", arrays[i]->array());
    list.save(fname);
  });
}

int MXNDArrayLoad(const char *fname, uint32_t *out_size, NDArrayHandle **out_arr, uint32_t *out_name_size,
                  const char ***out_names) {
  return guarded([&] {
    require(fname, "fname");
    require(out_size, "out_size"), require(out_arr, "out_arr"), require(out_name_size, "out_name_size"),
        require(out_names, "out_names");
    give_arrays(cohort::Arrays::load(fname), out_size, out_arr, out_name_size, out_names);
  });
}

int MXNDArrayLoadFromBuffer(const void *ndarray_buffer, size_t size, uint32_t *out_size, NDArrayHandle **out_arr,
                            uint32_t *out_name_size, const char ***out_names) {
  return guarded([&] {
    require(ndarray_buffer, "ndarray_buffer");
    require(out_size, "out_size"), require(out_arr, "out_arr"), require(out_name_size, "out_name_size"),
        require(out_names, "out_names");
    give_arrays(cohort::Arrays::load_memory(ndarray_buffer, size), out_size, out_arr, out_name_size, out_names);
  });
}

int MXNDArraySaveRawBytes(NDArrayHandle handle, size_t *out_size, const char **out_buf) {
  return guarded([&] {
    require(out_size, "out_size"), require(out_buf, "out_buf");
    static thread_local std::string bytes;
    cohort::Arrays list;
    list.add("", ndarray(handle)->array());
    bytes = list.save_memory();
    *out_buf = bytes.data() + sizeof kListHead;
    *out_size = bytes.size() - sizeof kListHead - sizeof kListTail;
  });
}

int MXNDArrayLoadFromRawBytes(const void *buf, size_t size, NDArrayHandle *out) {
  return guarded([&] {
    require(buf, "buf");
    require(out, "out");
    std::string bytes(reinterpret_cast<const char *>(kListHead), sizeof kListHead);
    bytes.append(static_cast<const char *>(buf), size);
    bytes.append(reinterpret_cast<const char *>(&kListTail), sizeof kListTail);
    const std::vector<cohort::NDArray> list = cohort::Arrays::load_memory(bytes.data(), bytes.size()).list();
    *out = list.size() == 1 && list[0] ? new_ndarray(NDArray::make_shared_handle(list[0]))
                                       : publish(std::make_shared<NDArray>());
  });
}

// ---- contents
// ------------------------------------------------------------------------------------------------------------

int MXNDArraySyncCopyFromCPU(NDArrayHandle handle, const void *data, size_t size) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    if (size > 0) require(data, "data");
    array->array().write(data, bytes_for(*array, size));
  });
}

int MXNDArraySyncCopyToCPU(NDArrayHandle handle, void *data, size_t size) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    if (size > 0) require(data, "data");
    array->array().read(data, bytes_for(*array, size));
  });
}

int MXNDArraySyncCopyFromNDArray(NDArrayHandle handle_dst, const NDArrayHandle handle_src, const int i) {
  return guarded([&] {
    if (i != -1) fail("copy of auxiliary array " + std::to_string(i) + ": Cohort's arrays are dense and have none");
    const std::shared_ptr<NDArray> target = ndarray(handle_dst), source = ndarray(handle_src);
    if (target->is_none())
      target->set_array(source->array().copy(source->context()));
    else
      source->array().copy_to(target->array());
    target->array().wait();
  });
}

int MXNDArraySyncCheckFormat(NDArrayHandle handle, const bool) {
  return guarded([&] { ndarray(handle); });  // a dense array cannot be malformed
}

int MXNDArrayGetData(NDArrayHandle handle, void **out_pdata) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    required(out_pdata, "out_pdata") = array->is_none() ? nullptr : array->array().data();
  });
}

int MXNDArrayGetDataNDArray(NDArrayHandle handle, NDArrayHandle *out) {
  return guarded([&] { required(out, "out") = new_ndarray(ndarray(handle)->share()); });
}

int MXNDArrayWaitToRead(NDArrayHandle handle) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    if (array->has_memory()) array->array().wait();
  });
}

int MXNDArrayWaitToWrite(NDArrayHandle handle) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    if (!array->has_memory()) return;
    cohort_error_free(cohort_wait_all());  // for work that reads it, too; errors of other work are reported elsewhere
    array->array().wait();
  });
}

int MXNDArrayWaitAll() {
  return guarded([&] { cohort::check(cohort_wait_all()); });
}

// ---- properties
// ----------------------------------------------------------------------------------------------------------

int MXNDArrayGetShape(NDArrayHandle handle, uint32_t *out_dim, const uint32_t **out_pdata) {
  return guarded([&] { give_shape(handle, out_dim, out_pdata); });
}

int MXNDArrayGetShapeEx(NDArrayHandle handle, int *out_dim, const int **out_pdata) {
  return guarded([&] { give_shape(handle, out_dim, out_pdata); });
}

int MXNDArrayGetShapeEx64(NDArrayHandle handle, int *out_dim, const int64_t **out_pdata) {
  return guarded([&] { give_shape(handle, out_dim, out_pdata); });
}

int MXNDArrayGetDType(NDArrayHandle handle, int *out_dtype) {
  return guarded([&] { required(out_dtype, "out_dtype") = ndarray(handle)->dtype(); });
}

int MXNDArrayGetStorageType(NDArrayHandle handle, int *out_storage_type) {
  return guarded([&] {
    required(out_storage_type, "out_storage_type") =
        ndarray(handle)->is_none() ? COHORT_STORAGE_UNDEFINED : COHORT_STORAGE_DEFAULT;
  });
}

int MXNDArrayGetContext(NDArrayHandle handle, int *out_dev_type, int *out_dev_id) {
  return guarded([&] {
    const cohort_context context = ndarray(handle)->context();
    required(out_dev_type, "out_dev_type") = context.device_type;
    required(out_dev_id, "out_dev_id") = context.device_id;
  });
}

// ---- views
// ---------------------------------------------------------------------------------------------------------------

int MXNDArraySlice64(NDArrayHandle handle, int64_t slice_begin, int64_t slice_end, NDArrayHandle *out) {
  return guarded([&] {
    require(out, "out");
    const std::shared_ptr<NDArray> array = ndarray(handle);
    *out = publish(part_of(*array, array->array().slice(slice_begin, slice_end)));
  });
}

int MXNDArraySlice(NDArrayHandle handle, uint32_t slice_begin, uint32_t slice_end, NDArrayHandle *out) {
  return MXNDArraySlice64(handle, slice_begin, slice_end, out);
}

int MXNDArrayAt64(NDArrayHandle handle, int64_t idx, NDArrayHandle *out) {
  return guarded([&] {
    require(out, "out");
    const std::shared_ptr<NDArray> array = ndarray(handle);
    cohort::NDArray row = array->array().at(idx);
    if (is_numpy_shape() && array->shape().size() == 1) row = row.reshape(cohort::Shape());
    *out = publish(part_of(*array, std::move(row)));
  });
}

int MXNDArrayAt(NDArrayHandle handle, uint32_t idx, NDArrayHandle *out) { return MXNDArrayAt64(handle, idx, out); }

int MXNDArrayReshape64(NDArrayHandle handle, int ndim, dim_t *dims, bool reverse, NDArrayHandle *out) {
  return guarded([&] {
    require(out, "out");
    const std::shared_ptr<NDArray> array = ndarray(handle);
    if (ndim < 0) fail("expected 0 axes or more, found " + std::to_string(ndim));
    if (ndim > 0) require(dims, "dims");
    const cohort::Shape target = resolve_shape(array->shape(), {dims, dims + ndim}, reverse);
    // As in MXNet, fewer elements are the first of the array.
    cohort::NDArray view = array->array().reshape_prefix(target);
    const bool is_whole = view.size() == array->array().size();
    *out = publish(is_whole ? view_of(*array, std::move(view)) : part_of(*array, std::move(view)));
  });
}

int MXNDArrayReshape(NDArrayHandle handle, int ndim, int *dims, NDArrayHandle *out) {
  if (ndim > 0 && !dims) return guarded([] { fail("dims is NULL"); });
  std::vector<dim_t> lengths;
  const int copied = guarded([&] { lengths.assign(dims, dims + (ndim > 0 ? ndim : 0)); });
  return copied == 0 ? MXNDArrayReshape64(handle, ndim, lengths.data(), false, out) : copied;
}

// ---- DLPack
// --------------------------------------------------------------------------------------------------------------

int MXNDArrayToDLPack(NDArrayHandle handle, DLManagedTensorHandle *out_dlpack) {
  return guarded([&] { required(out_dlpack, "out_dlpack") = ndarray(handle)->array().to_dlpack_unversioned(); });
}

int MXNDArrayFromDLPack(DLManagedTensorHandle dlpack, NDArrayHandle *out_handle) {
  return guarded([&] { from_dlpack(dlpack, false, out_handle); });
}

int MXNDArrayFromDLPackEx(DLManagedTensorHandle dlpack, const bool transient_handle, NDArrayHandle *out_handle) {
  return guarded([&] { from_dlpack(dlpack, transient_handle, out_handle); });
}

int MXNDArrayCallDLPackDeleter(DLManagedTensorHandle dlpack) {
  return guarded([&] {
    auto *const tensor = static_cast<ManagedTensor *>(dlpack);
    if (tensor && tensor->deleter) tensor->deleter(tensor);
  });
}

}  // extern "C"
