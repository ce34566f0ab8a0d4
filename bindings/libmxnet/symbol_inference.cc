// SPDX-License-Identifier: Apache-2.0
// Inference of shapes and types, in all the forms that MXNet's interface has for it.
#include <limits>

#include "mxnet/c_api.h"
#include "symbol_handle.hpp"

namespace cohort_mxnet {

namespace {

// One list of shapes as the host takes it.
template <typename Length, typename NumAxes>
struct ShapeList {
  std::vector<NumAxes> num_axes;
  std::vector<std::vector<Length>> shapes;
  std::vector<const Length *> pointers;

  void assign(const cohort::Descs &descs) {
    num_axes.clear(), shapes.clear(), pointers.clear();
    const bool numpy = is_numpy_shape();
    if (descs) {
      for (const cohort::Desc &desc : descs.list()) {
        num_axes.push_back(desc.shape ? static_cast<NumAxes>(desc.shape->size())
                           : numpy    ? static_cast<NumAxes>(-1)
                                      : NumAxes{0});
        shapes.emplace_back();
        if (desc.shape) {
          for (const int64_t length : *desc.shape) {
            if (length > static_cast<int64_t>(std::numeric_limits<Length>::max()))
              fail("'" + desc.name + "': an axis of length " + std::to_string(length) + " does not fit into 32 bits");
            shapes.back().push_back(numpy && length == 0 ? static_cast<Length>(-1) : static_cast<Length>(length));
          }
        }
      }
    }
    for (std::vector<Length> &shape : shapes) {
      shape.reserve(1);  // data() is not null for a scalar
      pointers.push_back(shape.data());
    }
    pointers.push_back(nullptr);
    num_axes.reserve(1);
  }
  template <typename Count>
  void give(Count *out_size, const NumAxes **out_num_axes, const Length ***out_shapes) {
    if (out_size) *out_size = static_cast<Count>(shapes.size());
    if (out_num_axes) *out_num_axes = num_axes.data();
    if (out_shapes) *out_shapes = pointers.data();
  }
};

template <typename Length>
cohort::Shape known_shape(const Length *begin, const Length *end) {
  cohort::Shape shape;
  for (; begin != end; ++begin) {
    const auto length = static_cast<int64_t>(*begin);
    if (length < -1) fail("a known shape with an axis of length " + std::to_string(length));
    shape.push_back(length < 0 ? 0 : length);
  }
  return shape;
}

template <typename Begin>
void check_ranges(const Begin *begins, uint32_t num) {
  if (static_cast<int64_t>(begins[0]) < 0) fail("the shapes begin at " + std::to_string(begins[0]));
  for (uint32_t i = 0; i < num; ++i) {
    if (begins[i + 1] < begins[i]) fail("the beginnings of the shapes do not ascend");
    if (begins[i + 1] - begins[i] > COHORT_MAX_AXES)
      fail("a known shape of " + std::to_string(begins[i + 1] - begins[i]) + " axes; at most 32 are possible");
  }
}

template <typename Length, typename NumAxes, typename Begin, typename Count>
int infer_shape(void *handle, uint32_t num_args, const char **keys, const Begin *begins, const Length *lengths,
                bool partial, Count *in_size, const NumAxes **in_num_axes, const Length ***in_shapes, Count *out_size,
                const NumAxes **out_num_axes, const Length ***out_shapes, Count *aux_size, const NumAxes **aux_num_axes,
                const Length ***aux_shapes, int *complete) {
  return guarded([&] {
    static thread_local ShapeList<Length, NumAxes> in, out, aux;
    require(complete, "complete");
    const cohort::Symbol symbol = from_handle<Symbol>(handle)->get();
    if (!symbol) fail("a symbol without outputs has no shapes");
    cohort::Descs known;
    if (num_args > 0) {
      require(begins, "arg_ind_ptr");
      check_ranges(begins, num_args);
      if (begins[num_args] > begins[0]) require(lengths, "arg_shape_data");
    }
    for (uint32_t i = 0; i < num_args; ++i) {
      const std::string name = keys ? &required(keys[i], "the name of an argument") : "";
      const cohort::Shape shape = known_shape(lengths + begins[i], lengths + begins[i + 1]);
      if (shape.empty() && !is_numpy_shape()) {
        // By position an entry without a shape counts, too.
        if (!keys) known.add(cohort::Desc::of_dtype(name, COHORT_DTYPE_NONE));
      } else {
        known.add(cohort::Desc(name, shape));
      }
    }
    const cohort::Inferred found = symbol.infer_shape(known, partial);
    in.assign(found.args);
    out.assign(found.outputs);
    aux.assign(found.aux);
    in.give(in_size, in_num_axes, in_shapes);
    out.give(out_size, out_num_axes, out_shapes);
    aux.give(aux_size, aux_num_axes, aux_shapes);
    *complete = partial || found.complete;
  });
}

void give_types(const cohort::Descs &descs, std::vector<int> &types, uint32_t *out_size, const int **out) {
  types.clear();
  if (descs)
    for (const cohort::Desc &desc : descs.list()) types.push_back(desc.dtype);
  types.reserve(1);
  if (out_size) *out_size = static_cast<uint32_t>(types.size());
  if (out) *out = types.data();
}

int infer_type(void *handle, uint32_t num_args, const char **keys, const int *dtypes, bool partial, uint32_t *in_size,
               const int **in_types, uint32_t *out_size, const int **out_types, uint32_t *aux_size,
               const int **aux_types, int *complete) {
  return guarded([&] {
    static thread_local std::vector<int> in, out, aux;
    require(complete, "complete");
    if (num_args > 0) require(dtypes, "arg_type_data");
    const cohort::Symbol symbol = from_handle<Symbol>(handle)->get();
    if (!symbol) fail("a symbol without outputs has no types");
    cohort::Descs known;
    for (uint32_t i = 0; i < num_args; ++i) {
      const std::string name = keys ? &required(keys[i], "the name of an argument") : "";
      known.add(cohort::Desc::of_dtype(name, dtypes[i]));
    }
    const cohort::Inferred found = symbol.infer_dtype(known, partial);
    give_types(found.args, in, in_size, in_types);
    give_types(found.outputs, out, out_size, out_types);
    give_types(found.aux, aux, aux_size, aux_types);
    *complete = partial || found.complete;
  });
}

}  // namespace

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

#define SHAPE_FUNCTION(name, Length, NumAxes, Begin, Count, partial)                                                  \
  int name(SymbolHandle sym, uint32_t num_args, const char **keys, const Begin *arg_ind_ptr,                          \
           const Length *arg_shape_data, Count *in_shape_size, const NumAxes **in_shape_ndim,                         \
           const Length ***in_shape_data, Count *out_shape_size, const NumAxes **out_shape_ndim,                      \
           const Length ***out_shape_data, Count *aux_shape_size, const NumAxes **aux_shape_ndim,                     \
           const Length ***aux_shape_data, int *complete) {                                                           \
    return infer_shape(sym, num_args, keys, arg_ind_ptr, arg_shape_data, partial, in_shape_size, in_shape_ndim,       \
                       in_shape_data, out_shape_size, out_shape_ndim, out_shape_data, aux_shape_size, aux_shape_ndim, \
                       aux_shape_data, complete);                                                                     \
  }

extern "C" {

SHAPE_FUNCTION(MXSymbolInferShape, uint32_t, uint32_t, uint32_t, uint32_t, false)
SHAPE_FUNCTION(MXSymbolInferShapePartial, uint32_t, uint32_t, uint32_t, uint32_t, true)
SHAPE_FUNCTION(MXSymbolInferShapeEx, int, int, uint32_t, uint32_t, false)
SHAPE_FUNCTION(MXSymbolInferShapePartialEx, int, int, uint32_t, uint32_t, true)
SHAPE_FUNCTION(MXSymbolInferShapeEx64, int64_t, int, int64_t, size_t, false)
SHAPE_FUNCTION(MXSymbolInferShapePartialEx64, int64_t, int, int64_t, size_t, true)

int MXSymbolInferType(SymbolHandle sym, uint32_t num_args, const char **keys, const int *arg_type_data,
                      uint32_t *in_type_size, const int **in_type_data, uint32_t *out_type_size,
                      const int **out_type_data, uint32_t *aux_type_size, const int **aux_type_data, int *complete) {
  return infer_type(sym, num_args, keys, arg_type_data, false, in_type_size, in_type_data, out_type_size, out_type_data,
                    aux_type_size, aux_type_data, complete);
}

int MXSymbolInferTypePartial(SymbolHandle sym, uint32_t num_args, const char **keys, const int *arg_type_data,
                             uint32_t *in_type_size, const int **in_type_data, uint32_t *out_type_size,
                             const int **out_type_data, uint32_t *aux_type_size, const int **aux_type_data,
                             int *complete) {
  return infer_type(sym, num_args, keys, arg_type_data, true, in_type_size, in_type_data, out_type_size, out_type_data,
                    aux_type_size, aux_type_data, complete);
}

}  // extern "C"

#undef SHAPE_FUNCTION
