/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_arrays.hpp
 * Arrays, lists of arrays and of descriptions. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_ARRAYS_HPP
#define COHORT_CPP_ARRAYS_HPP

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/cpp_library.hpp"

namespace cohort {
inline namespace abi0 {

/** A dense array on a context, or a view of one. A copy of this object is another handle on the same array. */
class NDArray : public Handle<cohort_ndarray, cohort_ndarray_free> {
 public:
  using Handle::Handle;
  NDArray() noexcept = default;
  /** cohort_ndarray_share(); of an empty object an empty one. */
  NDArray(const NDArray &other) : Handle(other ? share(other.get()).release() : nullptr) {}
  NDArray(NDArray &&other) noexcept = default;
  NDArray &operator=(const NDArray &other) {
    if (this != &other) *this = NDArray(other);
    return *this;
  }
  NDArray &operator=(NDArray &&other) noexcept = default;

  /** A second handle on an array that a callback was lent: cohort_ndarray_share(). */
  static NDArray share(const cohort_ndarray *array) { return make<NDArray>(cohort_ndarray_share, array); }
  /** cohort_ndarray_zeros(). */
  static NDArray zeros(Span<int64_t> shape, cohort_dtype dtype = COHORT_DTYPE_FLOAT32, const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_zeros, shape.data(), num_axes(shape), dtype, &context);
  }
  /** Contents are unspecified until written: cohort_ndarray_empty(). */
  static NDArray empty(Span<int64_t> shape, cohort_dtype dtype = COHORT_DTYPE_FLOAT32, const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_empty, shape.data(), num_axes(shape), dtype, &context);
  }
  /** cohort_ndarray_full(). */
  static NDArray full(Span<int64_t> shape, double value, cohort_dtype dtype = COHORT_DTYPE_FLOAT32,
                      const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_full, shape.data(), num_axes(shape), dtype, &context, value);
  }
  /** A copy of host memory: cohort_ndarray_from_host(). */
  static NDArray from_host(const void *data, size_t bytes, Span<int64_t> shape, cohort_dtype dtype,
                           const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_from_host, data, bytes, shape.data(), num_axes(shape), dtype, &context);
  }
  /** The same from a vector, row-major, of the vector's element type. */
  template <typename T>
  static NDArray from_host(const std::vector<T> &values, Span<int64_t> shape, const Context &context = {}) {
    return from_host(values.data(), values.size() * sizeof(T), shape, dtype_of<T>(), context);
  }
  /** The same from a list in braces. */
  template <typename T>
  static NDArray from_host(std::initializer_list<T> values, Span<int64_t> shape, const Context &context = {}) {
    return from_host(values.begin(), values.size() * sizeof(T), shape, dtype_of<T>(), context);
  }
  /** An array of the caller's memory, without a copy: cohort_ndarray_wrap(). The deleter runs once and must not throw. */
  static NDArray wrap(void *data, Span<int64_t> shape, cohort_dtype dtype, const Context &context = {},
                      std::function<void()> deleter = {}) {
    auto closure = deleter ? std::make_unique<std::function<void()>>(std::move(deleter)) : nullptr;
    const auto call = [](void *, void *user_data) noexcept {
      const std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()> *>(user_data));
      (*function)();
    };
    auto array = make<NDArray>(cohort_ndarray_wrap, data, shape.data(), num_axes(shape), dtype, &context,
                               closure ? static_cast<cohort_deleter_fn>(call) : nullptr, closure.get());
    closure.release();  // the library's
    return array;
  }
  /** Joins arrays along an axis: cohort_ndarray_concat(). */
  static NDArray concat(Span<NDArray> arrays, int32_t axis) {
    return make<NDArray>(cohort_ndarray_concat, detail::raw(arrays).data(), arrays.size(), axis);
  }
  /** Takes over a `DLManagedTensorVersioned *`: cohort_ndarray_from_dlpack(). */
  static NDArray from_dlpack(void *managed) { return make<NDArray>(cohort_ndarray_from_dlpack, managed); }
  /** Takes over a `DLManagedTensor *`: cohort_ndarray_from_dlpack_unversioned(). */
  static NDArray from_dlpack_unversioned(void *managed) {
    return make<NDArray>(cohort_ndarray_from_dlpack_unversioned, managed);
  }

  /** cohort_ndarray_shape(). */
  Shape shape() const {
    std::array<int64_t, COHORT_MAX_AXES> lengths;
    int32_t num = 0;
    check(cohort_ndarray_shape(get(), lengths.data(), lengths.size(), &num));
    return {lengths.begin(), lengths.begin() + num};
  }
  /** cohort_ndarray_dtype(). */
  cohort_dtype dtype() const { return query<cohort_dtype>(cohort_ndarray_dtype, get()); }
  /** cohort_ndarray_context(). */
  Context context() const { return query<cohort_context>(cohort_ndarray_context, get()); }
  /** The number of elements: cohort_ndarray_size(). */
  int64_t size() const { return query<int64_t>(cohort_ndarray_size, get()); }
  /** The bytes of the elements: cohort_ndarray_bytes(). */
  size_t bytes() const { return query<size_t>(cohort_ndarray_bytes, get()); }
  /** The address of the elements on a CPU context: cohort_ndarray_data(). */
  void *data() const { return query<void *>(cohort_ndarray_data, get()); }

  /** Copies all elements to host memory: cohort_ndarray_read(). */
  void read(void *out_data, size_t bytes) const { check(cohort_ndarray_read(get(), out_data, bytes)); }
  /** All elements in a vector, converted to T if they are of another type. */
  template <typename T>
  std::vector<T> read() const {
    if (dtype() != dtype_of<T>()) return cast(dtype_of<T>()).template read<T>();
    std::vector<T> values(static_cast<size_t>(size()));
    read(values.data(), values.size() * sizeof(T));
    return values;
  }
  /** Copies host memory to all elements: cohort_ndarray_write(). */
  void write(const void *data, size_t bytes) { check(cohort_ndarray_write(get(), data, bytes)); }
  /** The same from a vector, converted to the array's type if that is another one. */
  template <typename T>
  void write(const std::vector<T> &values) {
    if (dtype() == dtype_of<T>()) return write(values.data(), values.size() * sizeof(T));
    from_host(values, shape()).copy_to(*this);
  }
  /** Waits for the work that writes the array: cohort_ndarray_wait(). */
  void wait() const { check(cohort_ndarray_wait(get())); }
  /** cohort_ndarray_fill(). */
  void fill(double value) { check(cohort_ndarray_fill(get(), value)); }
  /** cohort_ndarray_fill_uniform(). */
  void fill_uniform(double low, double high, uint64_t seed) {
    check(cohort_ndarray_fill_uniform(get(), low, high, seed));
  }
  /** cohort_ndarray_fill_normal(). */
  void fill_normal(double mean, double deviation, uint64_t seed) {
    check(cohort_ndarray_fill_normal(get(), mean, deviation, seed));
  }

  /** Copies into another array, converting: cohort_ndarray_copy_to(). */
  void copy_to(NDArray &target) const { check(cohort_ndarray_copy_to(get(), target.get())); }
  /** A copy on a context: cohort_ndarray_copy(). */
  NDArray copy(const Context &context) const { return make<NDArray>(cohort_ndarray_copy, get(), &context); }
  /** A copy of another dtype: cohort_ndarray_cast(). */
  NDArray cast(cohort_dtype dtype) const { return make<NDArray>(cohort_ndarray_cast, get(), dtype); }
  /** A view of rows: cohort_ndarray_slice(). */
  NDArray slice(int64_t begin, int64_t end) const { return make<NDArray>(cohort_ndarray_slice, get(), begin, end); }
  /** A view of one row, without that axis: cohort_ndarray_at(). */
  NDArray at(int64_t index) const { return make<NDArray>(cohort_ndarray_at, get(), index); }
  /** A range along any axis: cohort_ndarray_slice_axis(). */
  NDArray slice_axis(int32_t axis, int64_t begin, int64_t end = INT64_MAX) const {
    return make<NDArray>(cohort_ndarray_slice_axis, get(), axis, begin, end);
  }
  /** A view in another shape: cohort_ndarray_reshape(). */
  NDArray reshape(Span<int64_t> shape) const {
    return make<NDArray>(cohort_ndarray_reshape, get(), shape.data(), num_axes(shape));
  }
  /** A view of the first elements in another shape: cohort_ndarray_reshape_prefix(). */
  NDArray reshape_prefix(Span<int64_t> shape) const {
    return make<NDArray>(cohort_ndarray_reshape_prefix, get(), shape.data(), num_axes(shape));
  }
  /** A `DLManagedTensorVersioned *`, the caller's: cohort_ndarray_to_dlpack(). */
  void *to_dlpack() const { return query<void *>(cohort_ndarray_to_dlpack, get()); }
  /** A `DLManagedTensor *`, the caller's: cohort_ndarray_to_dlpack_unversioned(). */
  void *to_dlpack_unversioned() const { return query<void *>(cohort_ndarray_to_dlpack_unversioned, get()); }

 private:
  static int32_t num_axes(Span<int64_t> shape) { return static_cast<int32_t>(shape.size()); }
};

/** An array and its name. */
struct NamedArray {
  std::string name;
  NDArray array;
};

/** An ordered list of arrays, with or without names: Arrays{{"weight", w}, {"bias", b}}. */
class Arrays : public Handle<cohort_arrays, cohort_arrays_free> {
 public:
  using Handle::Handle;
  /** Without entries: cohort_arrays_create(). */
  Arrays() : Handle(make<Handle>(cohort_arrays_create)) {}
  Arrays(Span<NamedArray> entries) : Arrays() {
    for (const NamedArray &entry : entries) add(entry.name, entry.array);
  }
  Arrays(std::initializer_list<NamedArray> entries) : Arrays(Span<NamedArray>(entries)) {}
  /** As many entries as arrays, without names. */
  static Arrays of(Span<NDArray> arrays) {
    Arrays list;
    for (const NDArray &array : arrays) list.add("", array);
    return list;
  }

  /** cohort_arrays_load(). */
  static Arrays load(const std::string &path, const Context &context = {}) {
    return make<Arrays>(cohort_arrays_load, path.c_str(), &context);
  }
  /** Arrays in a mapping of the file: cohort_arrays_map(). */
  static Arrays map(const std::string &path) { return make<Arrays>(cohort_arrays_map, path.c_str()); }
  /** cohort_arrays_load_memory(). */
  static Arrays load_memory(const void *data, size_t bytes, const Context &context = {}) {
    return make<Arrays>(cohort_arrays_load_memory, data, bytes, &context);
  }

  /** Appends an entry; an empty array makes an entry without one: cohort_arrays_add(). */
  void add(const std::string &name, const NDArray &array) {
    check(cohort_arrays_add(get(), name.c_str(), array.get()));
  }
  /** Replaces or appends the entry of a name: cohort_arrays_set(). */
  void set(const std::string &name, const NDArray &array) {
    check(cohort_arrays_set(get(), name.c_str(), array.get()));
  }
  /** How many entries there are: cohort_arrays_num(). */
  size_t num() const { return query<size_t>(cohort_arrays_num, get()); }
  /** The name of an entry, "" if none: cohort_arrays_name(). */
  std::string name(size_t index) const { return query<const char *>(cohort_arrays_name, get(), index); }
  /** The array of an entry, empty if it has none: cohort_arrays_get(). */
  NDArray array(size_t index) const { return make<NDArray>(cohort_arrays_get, get(), index); }
  /** The array of a name: cohort_arrays_find(), cohort_arrays_get(). */
  NDArray array(const std::string &name) const { return array(find(name)); }
  /** The place of a name; none, or several: Error, COHORT_ERROR_NAME. cohort_arrays_find(). */
  size_t find(const std::string &name) const { return query<size_t>(cohort_arrays_find, get(), name.c_str()); }
  /** Whether exactly one entry has the name. */
  bool has(const std::string &name) const {
    size_t index = 0;
    cohort_error *const error = cohort_arrays_find(get(), name.c_str(), &index);
    const bool is_absent = cohort_error_code(error) == COHORT_ERROR_NAME;
    if (is_absent) cohort_error_free(error);
    if (!is_absent) check(error);
    return !is_absent;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all(num());
    for (size_t i = 0; i < all.size(); ++i) all[i] = name(i);
    return all;
  }
  /** The arrays in order. */
  std::vector<NDArray> list() const {
    std::vector<NDArray> all(num());
    for (size_t i = 0; i < all.size(); ++i) all[i] = array(i);
    return all;
  }
  /** The entries that have an array, by name; of a repeated name the first. */
  std::unordered_map<std::string, NDArray> by_name() const {
    std::unordered_map<std::string, NDArray> all;
    for (size_t i = 0; i < num(); ++i)
      if (NDArray entry = array(i)) all.emplace(name(i), std::move(entry));
    return all;
  }

  /** Writes a .params file: cohort_arrays_save(). */
  void save(const std::string &path) const { check(cohort_arrays_save(get(), path.c_str())); }
  /** The bytes of a .params file: cohort_arrays_save_memory(). */
  std::string save_memory() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_arrays_save_memory(get(), out, capacity, bytes);
    });
  }
  /** Writes a .npy file: cohort_arrays_save_npy(). */
  void save_npy(const std::string &path) const { check(cohort_arrays_save_npy(get(), path.c_str())); }
  /** Writes a .npz file: cohort_arrays_save_npz(). */
  void save_npz(const std::string &path) const { check(cohort_arrays_save_npz(get(), path.c_str())); }
};

/** A name with shape, dtype and layout. */
struct Desc {
  std::string name;
  std::optional<Shape> shape;  // nullopt: not known; a length of 0 is not known either
  cohort_dtype dtype = COHORT_DTYPE_NONE;
  std::string layout = "NCHW";  // one letter for each axis; N is the batch axis

  Desc(std::string desc_name, Shape desc_shape, cohort_dtype desc_dtype = COHORT_DTYPE_NONE,
       std::string desc_layout = "NCHW")
      : name(std::move(desc_name)), shape(std::move(desc_shape)), dtype(desc_dtype), layout(std::move(desc_layout)) {}
  /** One whose shape is not known. */
  static Desc of_dtype(std::string desc_name, cohort_dtype desc_dtype) {
    Desc desc(std::move(desc_name), Shape(), desc_dtype);
    desc.shape.reset();
    return desc;
  }
};

/** An ordered list of descriptors: Descs{{"data", {32, 1, 28, 28}}, {"mask", {32}, COHORT_DTYPE_BOOL}}. */
class Descs : public Handle<cohort_descs, cohort_descs_free> {
 public:
  using Handle::Handle;
  /** Without entries: cohort_descs_create(). */
  Descs() : Handle(make<Handle>(cohort_descs_create)) {}
  Descs(Span<Desc> descs) : Descs() {
    for (const Desc &desc : descs) add(desc);
  }
  Descs(std::initializer_list<Desc> descs) : Descs(Span<Desc>(descs)) {}

  /** Appends a descriptor: cohort_descs_add(). */
  void add(const Desc &desc) {
    check(cohort_descs_add(get(), desc.name.c_str(), desc.shape ? desc.shape->data() : nullptr,
                           desc.shape ? static_cast<int32_t>(desc.shape->size()) : COHORT_UNKNOWN_SHAPE, desc.dtype,
                           desc.layout.c_str()));
  }
  /** How many there are: cohort_descs_num(). */
  size_t num() const { return query<size_t>(cohort_descs_num, get()); }
  /** cohort_descs_get(). */
  Desc at(size_t index) const {
    const char *name = nullptr, *layout = nullptr;
    std::array<int64_t, COHORT_MAX_AXES> lengths;
    int32_t num_axes = 0;
    cohort_dtype dtype = COHORT_DTYPE_NONE;
    check(cohort_descs_get(get(), index, &name, lengths.data(), lengths.size(), &num_axes, &dtype, &layout));
    if (num_axes < 0) {
      Desc unknown = Desc::of_dtype(name, dtype);
      unknown.layout = layout;
      return unknown;
    }
    return Desc(name, Shape(lengths.begin(), lengths.begin() + num_axes), dtype, layout);
  }
  /** The place of a name: cohort_descs_find(). */
  size_t find(const std::string &name) const { return query<size_t>(cohort_descs_find, get(), name.c_str()); }
  /** The descriptor of a name. */
  Desc at(const std::string &name) const { return at(find(name)); }
  /** All in order. */
  std::vector<Desc> list() const {
    std::vector<Desc> all;
    for (size_t i = 0; i < num(); ++i) all.push_back(at(i));
    return all;
  }
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_ARRAYS_HPP */
