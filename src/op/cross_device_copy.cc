// SPDX-License-Identifier: Apache-2.0
#include "op/op.hpp"

namespace cohort {
namespace {

// y = x on another device. Inserted by the plan where a value crosses between contexts (EXE-10).
COHORT_OPERATOR(_CrossDeviceCopy, NoAttrs)
    .doc("Copies an array to the device of its readers.")
    .input("data", "Any array.")
    .names_only_input()
    .same_shape()
    .gradient(Gradient{Gradient::Kind::kPassThrough, {0}, true, {}, {}});

}  // namespace
}  // namespace cohort
