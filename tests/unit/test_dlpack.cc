// SPDX-License-Identifier: Apache-2.0
// DLPack out and in. The structs are declared here a second time, from DLPack's specification and not from our source.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "ndarray/dlpack.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

extern "C" {
typedef struct {
  void *data;
  struct {
    int32_t device_type, device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Tensor;
typedef struct Managed {
  struct {
    uint32_t major, minor;
  } version;
  void *manager_ctx;
  void (*deleter)(struct Managed *self);
  uint64_t flags;
  Tensor tensor;
} Managed;
}

// A tensor of another library.
struct Foreign {
  std::vector<float> data = std::vector<float>(24);
  std::vector<int64_t> shape{2, 3}, strides{3, 1};
  Managed managed{};
  int num_deleted = 0;
  Foreign() {
    for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
    managed.version.major = 1;
    managed.manager_ctx = this;
    managed.deleter = [](Managed *self) { ++static_cast<Foreign *>(self->manager_ctx)->num_deleted; };
    managed.tensor.data = data.data();
    managed.tensor.device.device_type = 1;
    managed.tensor.dtype = {2, 32, 1};
    update();
  }
  void update() {
    managed.tensor.ndim = int32_t(shape.size());
    managed.tensor.shape = shape.data();
    managed.tensor.strides = strides.empty() ? nullptr : strides.data();
  }
};

// Takes over a tensor as the API does: it is given back when the last array on its memory is gone, and stays with its
// owner if it is refused.
NDArray take(Managed *managed) {
  const auto taken = std::make_shared<bool>(false);
  const std::shared_ptr<void> owner(managed, [taken](void *tensor) {
    if (*taken) delete_dlpack(tensor);
  });
  const NDArray array = from_dlpack(managed, owner);
  *taken = true;
  return array;
}
NDArray take(void *managed) { return take(static_cast<Managed *>(managed)); }

std::vector<float> values(const NDArray &array) {
  std::vector<float> result(size_t(array.size()));
  array.cast(Dtype::kFloat32).read(result.data(), result.size() * sizeof(float));
  return result;
}

template <typename Change>
Code code_after(Change &&change) {
  Foreign foreign;
  change(foreign);
  Code code = Code(0);
  try {
    take(&foreign.managed);
  } catch (const Error &error) {
    code = error.code();
    CHECK_EQ(foreign.num_deleted, 0);  // still its owner's
  }
  return code;
}

}  // namespace

TEST(an_array_is_lent_without_a_copy_and_lives_as_long_as_the_loan) {
  std::weak_ptr<Storage> storage;
  Managed *managed = nullptr;
  {
    const NDArray array = NDArray::create({4, 3, 2}, Dtype::kFloat32, Context());
    array.fill(2);
    const NDArray view = array.slice(1, 3);
    storage = array.storage();
    managed = static_cast<Managed *>(to_dlpack(view));
    CHECK(managed->tensor.data == view.data());
    CHECK(array.exposed());
  }
  CHECK(!storage.expired());
  CHECK_EQ(managed->version.major, 1u);
  CHECK_EQ(managed->flags, 0u);
  const Tensor &tensor = managed->tensor;
  CHECK_EQ(tensor.device.device_type, 1);
  CHECK_EQ(tensor.device.device_id, 0);
  CHECK_EQ(tensor.ndim, 3);
  CHECK(std::vector<int64_t>(tensor.shape, tensor.shape + 3) == (std::vector<int64_t>{2, 3, 2}));
  CHECK(std::vector<int64_t>(tensor.strides, tensor.strides + 3) == (std::vector<int64_t>{6, 2, 1}));
  CHECK_EQ(int(tensor.dtype.code), 2);
  CHECK_EQ(int(tensor.dtype.bits), 32);
  CHECK_EQ(tensor.dtype.lanes, 1);
  CHECK_EQ(tensor.byte_offset, 0u);
  CHECK_EQ(static_cast<float *>(tensor.data)[11], 2.0f);
  managed->deleter(managed);
  CHECK(storage.expired());
}

TEST(every_type_goes_out_and_comes_back) {
  for (int32_t code : {0, 1, 2, 3, 4, 5, 6, 7, 12}) {
    const NDArray array = NDArray::create({5}, Dtype(code), Context());
    array.fill(1);
    void *const address = array.data();
    const NDArray back = take(to_dlpack(array));
    CHECK(back.dtype() == Dtype(code));
    CHECK(back.data() == address);
    CHECK(values(back) == std::vector<float>(5, 1.0f));
  }
  const NDArray scalar = take(to_dlpack(NDArray::create(Shape(std::vector<int64_t>()), Dtype::kInt64, Context())));
  CHECK_EQ(scalar.shape().rank(), 0);
  CHECK(take(to_dlpack(NDArray::create({0, 2}, Dtype::kInt64, Context()))).shape() == Shape({0, 2}));
}

TEST(dense_memory_comes_in_without_a_copy_and_is_given_back_once) {
  Foreign foreign;
  foreign.managed.tensor.byte_offset = 8;
  {
    const NDArray array = take(&foreign.managed);
    CHECK(array.data() == &foreign.data[2]);
    CHECK(array.exposed());
    const NDArray view = array.slice(1, 2);
    CHECK(values(view) == (std::vector<float>{5, 6, 7}));
    CHECK_EQ(foreign.num_deleted, 0);
    view.fill(-1);
  }
  CHECK_EQ(foreign.num_deleted, 1);
  CHECK_EQ(foreign.data[5], -1.0f);
  Foreign without_strides;
  without_strides.strides.clear();
  without_strides.update();
  CHECK(take(&without_strides.managed).data() == without_strides.data.data());
  Foreign row;  // the stride of an axis of length 1 means nothing
  row.shape = {1, 3};
  row.strides = {77, 1};
  row.update();
  CHECK(take(&row.managed).data() == row.data.data());
  Foreign no_deleter;
  no_deleter.managed.deleter = nullptr;
  take(&no_deleter.managed);
}

TEST(memory_that_cannot_be_used_as_it_lies_is_copied_and_given_back_at_once) {
  Foreign turned;
  turned.shape = {3, 2};
  turned.strides = {1, 3};
  turned.update();
  CHECK(values(take(&turned.managed)) == (std::vector<float>{0, 3, 1, 4, 2, 5}));
  CHECK_EQ(turned.num_deleted, 1);

  Foreign backwards;
  backwards.shape = {3};
  backwards.strides = {-2};
  backwards.managed.tensor.byte_offset = 4 * 4;
  backwards.update();
  CHECK(values(take(&backwards.managed)) == (std::vector<float>{4, 2, 0}));

  Foreign repeated;
  repeated.strides = {0, 1};
  repeated.update();
  CHECK(values(take(&repeated.managed)) == (std::vector<float>{0, 1, 2, 0, 1, 2}));

  Foreign read_only;
  read_only.managed.flags = 1;
  const NDArray array = take(&read_only.managed);
  CHECK(array.data() != read_only.data.data());
  CHECK_EQ(read_only.num_deleted, 1);
  CHECK(values(array) == (std::vector<float>{0, 1, 2, 3, 4, 5}));

  Foreign crooked;  // elements across alignment
  std::memmove(reinterpret_cast<char *>(crooked.data.data()) + 1, crooked.data.data(), 24);
  crooked.managed.tensor.byte_offset = 1;
  CHECK(values(take(&crooked.managed)) == (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(what_is_not_understood_is_refused_and_stays_its_owners) {
  CHECK(code_after([](Foreign &) {}) == Code(0));
  CHECK(code_after([](Foreign &f) { f.managed.version.major = 2; }) == Code::kUnsupported);
  CHECK(code_after([](Foreign &f) { f.managed.version.minor = 9; }) == Code(0));
  CHECK(code_after([](Foreign &f) { f.managed.tensor.dtype = {5, 64, 1}; }) == Code::kUnsupported);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.dtype = {1, 32, 1}; }) == Code::kUnsupported);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.dtype = {2, 32, 4}; }) == Code::kUnsupported);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.device.device_type = 7; }) == Code::kDevice);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.device = {2, -1}; }) == Code::kInvalidArgument);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.data = nullptr; }) == Code::kInvalidArgument);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.shape = nullptr; }) == Code::kInvalidArgument);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.ndim = -1; }) == Code::kInvalidArgument);
  CHECK(code_after([](Foreign &f) { f.managed.tensor.ndim = 1 << 30; }) == Code::kInvalidArgument);
  CHECK(code_after([](Foreign &f) { f.shape[0] = -1; }) == Code::kShape);
  CHECK(code_after([](Foreign &f) { f.shape[0] = INT64_MAX; }) == Code::kShape);
}

UNIT_MAIN()
