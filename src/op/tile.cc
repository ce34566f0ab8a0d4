// SPDX-License-Identifier: Apache-2.0
#include "op/tile.hpp"

#include <algorithm>

#include "op/checked_length.hpp"

namespace cohort {

Repetition repetition_of(const TileAttrs &a, const Shape &data) {
  Repetition r;
  const int rank = std::max(data.rank(), int(a.reps.size()));
  for (int axis = 0; axis < rank; ++axis) {  // the shorter list is padded with ones at the front
    const int in_data = axis - (rank - data.rank()), in_reps = axis - (rank - int(a.reps.size()));
    const int64_t length = in_data < 0 ? 1 : data[in_data], reps = in_reps < 0 ? 1 : a.reps[size_t(in_reps)];
    r.lengths.insert(r.lengths.end(), {reps, length});
    r.repeated.insert(r.repeated.end(), {true, false});
    r.shape.push_back(checked_times(length, reps));
  }
  return r;
}

Repetition repetition_of(const RepeatAttrs &a, const Shape &data) {
  Repetition r;
  const int axis = a.axis ? normalize_axis(*a.axis, data.rank(), "axis") : -1;
  if (axis < 0) {
    r.shape = {checked_times(data.size(), a.repeats)};
    r.lengths = {data.size(), a.repeats};
    r.repeated = {false, true};
    return r;
  }
  r.shape.assign(data.begin(), data.end());
  if (data[axis] != Shape::kUnknown) r.shape[size_t(axis)] = checked_times(data[axis], a.repeats);
  r.lengths.assign(data.begin(), data.end());
  r.lengths.insert(r.lengths.begin() + axis + 1, a.repeats);
  r.repeated.assign(r.lengths.size(), false);
  r.repeated[size_t(axis) + 1] = true;
  return r;
}

namespace {

Gradient of_data() { return Gradient::by_kernel({0}); }

COHORT_OPERATOR(tile, TileAttrs)
    .alias("_npi_tile")
    .doc("Repeats data along its axes.")
    .required(&TileAttrs::reps, "reps",
              "Number of repetitions along each axis, aligned from the last; missing ones are 1.")
    .check([](TileAttrs &a) {
      if (std::any_of(a.reps.begin(), a.reps.end(), [](int64_t n) { return n < 0; })) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'reps': expected at least 0 for each axis, found ", print_tuple(a.reps)), "reps");
      }
    })
    .input("data", "Any shape.")
    .names_only_input()
    .infer_shape([](const TileAttrs &a, Shapes &in, Shapes &out) {
      if (in[0].known()) unify(out[0], Shape(repetition_of(a, in[0]).shape), "output");
    })
    .gradient(of_data());

COHORT_OPERATOR(repeat, RepeatAttrs)
    .alias("_np_repeat")
    .doc("Repeats each element of data.")
    .required(&RepeatAttrs::repeats, "repeats", "The number of repetitions.")
    .range(0)
    .attr(&RepeatAttrs::axis, "axis", std::nullopt,
          "The axis; negative counts from the last; None: the flattened array.")
    .input("data", "Any shape.")
    .names_only_input()
    .infer_shape([](const RepeatAttrs &a, Shapes &in, Shapes &out) {
      if (in[0].known() || (a.axis && in[0].rank_known()))
        unify(out[0], Shape(repetition_of(a, in[0]).shape), "output");
    })
    .gradient(of_data());

}  // namespace
}  // namespace cohort
