// SPDX-License-Identifier: Apache-2.0
// The treatment of each gradient array by backward (contract GRQ-01).
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

// Grad_req as a caller gives it for the arguments of a symbol (GRQ-01..07): at most one of the three forms.
struct GradReqs {
  std::string all;                                         // empty: not given
  std::vector<std::string> list;                           // one per argument
  std::vector<std::pair<std::string, std::string>> named;  // names that are not arguments are ignored
  bool as_list = false, as_named = false;                  // that form was given, possibly empty

  GradReq all_or(GradReq otherwise) const { return all.empty() ? otherwise : parse_grad_req(all); }
};
// `otherwise` applies to arguments that neither the list nor a name covers. Throws kInvalidArgument.
std::vector<GradReq> resolve_grad_reqs(const GradReqs &given, const std::vector<std::string> &arguments,
                                       std::vector<GradReq> otherwise);

}  // namespace cohort
