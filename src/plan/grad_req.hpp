// SPDX-License-Identifier: Apache-2.0
// What happens to a gradient array at each backward (contract GRQ-01).
#pragma once

#include <cstdint>
#include <string>

namespace cohort {

enum class GradReq : int32_t { kNull = 0, kWrite = 1, kAdd = 3 };

GradReq parse_grad_req(const std::string &text);  // kInvalidArgument
GradReq make_grad_req(int32_t code);
const char *grad_req_name(GradReq req);

}  // namespace cohort
