// SPDX-License-Identifier: Apache-2.0
// What happens to a gradient array at each backward (contract GRQ-01).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

enum class GradReq : int32_t { kNull = 0, kWrite = 1, kAdd = 3 };

GradReq parse_grad_req(const std::string &text);  // kInvalidArgument
GradReq make_grad_req(int32_t code);
const char *grad_req_name(GradReq req);

// Grad_req as a caller may give it for the arguments of a symbol (GRQ-01..07): at most one of the three.
struct GradReqs {
  std::string all;                                         // empty: not given
  std::vector<std::string> list;                           // one per argument
  std::vector<std::pair<std::string, std::string>> named;  // names that are none of the arguments are skipped
  bool as_list = false, as_named = false;                  // the one or the other is given, even if empty

  GradReq all_or(GradReq otherwise) const { return all.empty() ? otherwise : parse_grad_req(all); }
};
// `otherwise`: of each argument that neither the list nor a name speaks of. kInvalidArgument.
std::vector<GradReq> resolve_grad_reqs(const GradReqs &given, const std::vector<std::string> &arguments,
                                       std::vector<GradReq> otherwise);

}  // namespace cohort
