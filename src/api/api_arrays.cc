// SPDX-License-Identifier: Apache-2.0
#include "cohort/arrays.h"

#include "api/api.hpp"
#include "ndarray/npy.hpp"
#include "ndarray/params.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

// The index of the entry with this name, or the number of entries.
size_t look_up(ArraysObject &list, const std::string &name) {
  return list.index.look_up(
      list.size(), [&](size_t i) -> const std::string & { return list[i].first; }, name, "the list of arrays");
}

}  // namespace

cohort_error *cohort_arrays_create(cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    *out_arrays = make_handle<cohort_arrays>({});
  });
}

void cohort_arrays_free(cohort_arrays *arrays) {
  const CallScope inside;
  free_handle(arrays);
}

cohort_error *cohort_arrays_add(cohort_arrays *arrays, const char *name, cohort_ndarray *array) {
  return guard([&] {
    NamedArrays &list = deref(arrays, "arrays");
    list.emplace_back(to_text_or_empty(name), array ? deref(array, "array") : NDArray());
  });
}

cohort_error *cohort_arrays_set(cohort_arrays *arrays, const char *name, cohort_ndarray *array) {
  return guard([&] {
    ArraysObject &list = deref(arrays, "arrays");
    const std::string key = to_text(name, "name");
    const NDArray value = array ? deref(array, "array") : NDArray();
    const size_t index = look_up(list, key);
    if (index < list.size()) {
      list[index].second = value;
    } else {
      list.emplace_back(key, value);
    }
  });
}

cohort_error *cohort_arrays_num(const cohort_arrays *arrays, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = deref(arrays, "arrays").size();
  });
}

cohort_error *cohort_arrays_name(const cohort_arrays *arrays, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const NamedArrays &list = deref(arrays, "arrays");
    check_index(index, list.size(), "index");
    *out_name = list[index].first.c_str();
  });
}

cohort_error *cohort_arrays_get(const cohort_arrays *arrays, size_t index, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    const NamedArrays &list = deref(arrays, "arrays");
    check_index(index, list.size(), "index");
    *out_array = array_handle(list[index].second);
  });
}

cohort_error *cohort_arrays_find(const cohort_arrays *arrays, const char *name, size_t *out_index) {
  return guard([&] {
    require(out_index, "out_index");
    ArraysObject &list = deref(arrays, "arrays");
    *out_index = list.index.find(
        list.size(), [&](size_t i) -> const std::string & { return list[i].first; }, to_text(name, "name"),
        "the list of arrays");
  });
}

cohort_error *cohort_arrays_save(const cohort_arrays *arrays, const char *path) {
  return guard([&] {
    const NamedArrays &list = deref(arrays, "arrays");
    check_whole(list);
    save_params(to_text(path, "path"), list);
  });
}

cohort_error *cohort_arrays_save_memory(const cohort_arrays *arrays, void *out_data, size_t capacity,
                                        size_t *out_bytes) {
  return guard([&] {
    const NamedArrays &list = deref(arrays, "arrays");
    check_whole(list);
    const std::string bytes = params_bytes(list);
    write_bytes(bytes.data(), bytes.size(), out_data, capacity, out_bytes);
  });
}

cohort_error *cohort_arrays_save_npy(const cohort_arrays *arrays, const char *path) {
  return guard([&] {
    const NamedArrays &list = deref(arrays, "arrays");
    check_whole(list);
    if (list.size() != 1) {
      throw Error(Code::kInvalidArgument, text("arrays: expected one, found ", list.size()), "arrays");
    }
    const std::string bytes = npy_bytes(list[0].second);
    write_file(to_text(path, "path"), bytes.data(), bytes.size());
  });
}

cohort_error *cohort_arrays_save_npz(const cohort_arrays *arrays, const char *path) {
  return guard([&] {
    const NamedArrays &list = deref(arrays, "arrays");
    check_whole(list);
    const std::string bytes = npz_bytes(list);
    write_file(to_text(path, "path"), bytes.data(), bytes.size());
  });
}

cohort_error *cohort_arrays_load(const char *path, const cohort_context *context, cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    const Context target = to_context(context);
    *out_arrays = make_handle<cohort_arrays>(on_context(load_arrays(to_text(path, "path")), target));
  });
}

cohort_error *cohort_arrays_map(const char *path, cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    *out_arrays = make_handle<cohort_arrays>(map_arrays(to_text(path, "path")));
  });
}

cohort_error *cohort_arrays_load_memory(const void *data, size_t bytes, const cohort_context *context,
                                        cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    require(data, bytes, "data");
    const Context target = to_context(context);
    *out_arrays = make_handle<cohort_arrays>(on_context(parse_arrays(data, bytes, "data"), target));
  });
}
