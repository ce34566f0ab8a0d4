// SPDX-License-Identifier: Apache-2.0
#include "ndarray/dlpack.hpp"

#include <cstring>

namespace cohort {
namespace {

// The structs of DLPack, version 1.
struct DlDevice {
  int32_t type;  // kCpu and so on, below
  int32_t id;
};

struct DlDtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DlTensor {
  void *data;
  DlDevice device;
  int32_t num_axes;
  DlDtype dtype;
  int64_t *shape;
  int64_t *strides;  // in elements; null: row-major and dense
  uint64_t byte_offset;
};

struct DlManaged {
  uint32_t major, minor;
  void *context;
  void (*deleter)(DlManaged *self);
  uint64_t flags;
  DlTensor tensor;
};

// The form before DLPack had versions.
struct DlUnversioned {
  DlTensor tensor;
  void *context;
  void (*deleter)(DlUnversioned *self);
};

constexpr uint32_t kMajor = 1, kMinor = 0;
constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;
constexpr uint64_t kReadOnly = 1;

constexpr struct {
  Dtype dtype;
  uint8_t code, bits;
} kDtypes[] = {{Dtype::kFloat32, 2, 32}, {Dtype::kFloat64, 2, 64}, {Dtype::kFloat16, 2, 16},
               {Dtype::kUint8, 1, 8},    {Dtype::kInt32, 0, 32},   {Dtype::kInt8, 0, 8},
               {Dtype::kInt64, 0, 64},   {Dtype::kBool, 6, 8},     {Dtype::kBfloat16, 4, 16}};

// Keeps the array of an exported tensor alive.
template <typename Managed>
struct ExportedArray {
  NDArray array;
  std::vector<int64_t> shape, strides;
  Managed managed{};
};

std::vector<int64_t> dense_strides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

Dtype dtype_of(const DlDtype &dtype) {
  for (const auto &known : kDtypes) {
    if (known.code == dtype.code && known.bits == dtype.bits && dtype.lanes == 1) return known.dtype;
  }
  throw Error(Code::kUnsupported, text("DLPack tensor: no Cohort element type has code ", int(dtype.code), ", ",
                                       int(dtype.bits), " bits and ", dtype.lanes, " lanes"));
}

Context context_of(const DlDevice &device) {
  if (device.type == kCpu || device.type == kCudaHost) return Context();
  if (device.type != kCuda && device.type != kCudaManaged) {
    throw Error(Code::kDevice,
                text("DLPack tensor: expected memory of a CPU or a CUDA GPU, found a device of type ", device.type));
  }
  const Context context = make_context(int32_t(DeviceType::kGpu), device.id);
  get_device(context);
  return context;
}

bool is_dense(const DlTensor &tensor, const Shape &shape) {
  if (!tensor.strides || shape.size() == 0) return true;
  const std::vector<int64_t> dense = dense_strides(shape.dims());
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1 && tensor.strides[axis] != dense[size_t(axis)]) return false;
  }
  return true;
}

// Copies all elements in row-major order, from any strides.
void gather(const char *from, const DlTensor &tensor, int axis, const Shape &shape, size_t element_bytes, char *&to) {
  if (axis == shape.rank()) {
    std::memcpy(to, from, element_bytes);
    to += element_bytes;
    return;
  }
  for (int64_t i = 0; i < shape[axis]; ++i) {
    gather(from + i * tensor.strides[axis] * int64_t(element_bytes), tensor, axis + 1, shape, element_bytes, to);
  }
}

template <typename Managed>
Managed *export_array(const NDArray &array) {
  array.wait();
  array.expose();
  auto exported = std::make_unique<ExportedArray<Managed>>();
  exported->array = array;
  exported->shape = array.shape().dims();
  exported->strides = dense_strides(exported->shape);
  Managed &managed = exported->managed;
  managed.context = exported.get();
  managed.deleter = [](Managed *self) { delete static_cast<ExportedArray<Managed> *>(self->context); };
  DlTensor &tensor = managed.tensor;
  tensor.data = array.data();
  tensor.device = array.context().on_host() ? DlDevice{kCpu, 0} : DlDevice{kCuda, array.context().id};
  tensor.num_axes = int32_t(exported->shape.size());
  for (const auto &known : kDtypes) {
    if (known.dtype == array.dtype()) tensor.dtype = {known.code, known.bits, 1};
  }
  tensor.shape = exported->shape.data();
  tensor.strides = exported->strides.data();
  return &exported.release()->managed;
}

NDArray borrow(const DlTensor &tensor, bool read_only, std::shared_ptr<const void> owner) {
  if (tensor.num_axes < 0 || tensor.num_axes > kMaxAxes) {
    throw Error(Code::kInvalidArgument,
                text("DLPack tensor: expected 0 to ", kMaxAxes, " axes, found ", tensor.num_axes));
  }
  if (tensor.num_axes > 0 && !tensor.shape) {
    throw Error(Code::kInvalidArgument, text("DLPack tensor: ", tensor.num_axes, " axes need a shape, found none"));
  }
  const Shape shape(tensor.shape, tensor.shape + tensor.num_axes);
  const Dtype dtype = dtype_of(tensor.dtype);
  const Context context = context_of(tensor.device);
  const size_t bytes = dense_bytes(shape, dtype);  // throws before a product of lengths can overflow
  if (!tensor.data && bytes > 0) {
    throw Error(Code::kInvalidArgument, text("DLPack tensor: shape ", shape, " without data"));
  }
  char *data = static_cast<char *>(tensor.data) + tensor.byte_offset;
  const bool dense = is_dense(tensor, shape);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % dtype_size(dtype) == 0;
  if (dense && aligned && !read_only) {
    auto memory = std::make_shared<Memory>(context, data, bytes, [owner](void *) {});
    const NDArray array = NDArray::wrap(std::move(memory), shape, dtype);
    array.expose();
    return array;
  }
  if (dense && !context.on_host()) {
    auto memory = std::make_shared<Memory>(context, data, bytes, nullptr);
    return NDArray::wrap(std::move(memory), shape, dtype).copy_to(context);
  }
  if (!context.on_host()) throw Error(Code::kUnsupported, text("DLPack tensor: strided memory on ", context));
  const NDArray array = NDArray::create(shape, dtype, context, false);
  if (dense) {
    array.write(data, array.bytes());
  } else {
    char *to = static_cast<char *>(array.data());
    gather(data, tensor, 0, shape, dtype_size(dtype), to);
  }
  return array;
}

template <typename Managed>
void give_back(void *source) {
  auto *managed = static_cast<Managed *>(source);
  if (managed->deleter) managed->deleter(managed);
}

}  // namespace

void *to_dlpack(const NDArray &array) {
  DlManaged *managed = export_array<DlManaged>(array);
  managed->major = kMajor;
  managed->minor = kMinor;
  return managed;
}

void *to_dlpack_unversioned(const NDArray &array) { return export_array<DlUnversioned>(array); }

NDArray from_dlpack(const void *source, std::shared_ptr<const void> owner) {
  const auto &managed = *static_cast<const DlManaged *>(source);
  if (managed.major != kMajor) {
    throw Error(Code::kUnsupported, text("DLPack tensor: expected version ", kMajor, ", found ", managed.major));
  }
  return borrow(managed.tensor, managed.flags & kReadOnly, std::move(owner));
}

NDArray from_dlpack_unversioned(const void *source, std::shared_ptr<const void> owner) {
  return borrow(static_cast<const DlUnversioned *>(source)->tensor, false, std::move(owner));
}

void delete_dlpack(void *managed) { give_back<DlManaged>(managed); }
void delete_dlpack_unversioned(void *managed) { give_back<DlUnversioned>(managed); }

}  // namespace cohort
