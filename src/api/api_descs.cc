// SPDX-License-Identifier: Apache-2.0
#include "cohort/descs.h"

#include "api/api.hpp"

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_descs_create(cohort_descs **out_descs) {
  return guard([&] {
    require(out_descs, "out_descs");
    *out_descs = make_handle<cohort_descs>({});
  });
}

void cohort_descs_free(cohort_descs *descs) {
  const CallScope inside;
  free_handle(descs);
}

cohort_error *cohort_descs_add(cohort_descs *descs, const char *name, const int64_t *shape, int32_t num_axes,
                               int32_t dtype, const char *layout) {
  return guard([&] {
    DescList &list = deref(descs, "descs");
    if (num_axes == COHORT_UNKNOWN_SHAPE && shape) {
      throw Error(Code::kInvalidArgument, "shape: expected NULL with num_axes COHORT_UNKNOWN_SHAPE, found a pointer",
                  "shape");
    }
    list.push_back({to_text_or_empty(name), num_axes == COHORT_UNKNOWN_SHAPE ? Shape() : to_shape(shape, num_axes),
                    to_dtype_or_none(dtype), layout ? layout : "NCHW"});
  });
}

cohort_error *cohort_descs_num(const cohort_descs *descs, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = deref(descs, "descs").size();
  });
}

cohort_error *cohort_descs_get(const cohort_descs *descs, size_t index, const char **out_name, int64_t *out_shape,
                               size_t capacity, int32_t *out_num_axes, int32_t *out_dtype, const char **out_layout) {
  return guard([&] {
    const DescList &list = deref(descs, "descs");
    check_index(index, list.size(), "index");
    const Desc &desc = list[index];
    write_shape(desc.shape, out_shape, capacity, out_num_axes);
    write_if(out_name, desc.name.c_str());
    write_if(out_dtype, desc.dtype);
    write_if(out_layout, desc.layout.c_str());
  });
}

cohort_error *cohort_descs_find(const cohort_descs *descs, const char *name, size_t *out_index) {
  return guard([&] {
    require(out_index, "out_index");
    DescsObject &list = deref(descs, "descs");
    *out_index = list.index.find(
        list.size(), [&](size_t i) -> const std::string & { return list[i].name; }, to_text(name, "name"),
        "the list of descriptors");
  });
}
