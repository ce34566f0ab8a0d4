// SPDX-License-Identifier: Apache-2.0
#include "plan/grad_req.hpp"

#include "base/error.hpp"

namespace cohort {

GradReq parse_grad_req(const std::string &source) {
  if (source == "null") return GradReq::kNull;
  if (source == "write") return GradReq::kWrite;
  if (source == "add") return GradReq::kAdd;
  throw Error(Code::kInvalidArgument, text("grad_req: expected 'null', 'write' or 'add', found '", source, "'"),
              source);
}

GradReq make_grad_req(int32_t code) {
  if (code == 0 || code == 1 || code == 3) return GradReq(code);
  throw Error(Code::kInvalidArgument, text("grad_req: expected 0 (null), 1 (write) or 3 (add), found ", code),
              "grad_req");
}

const char *grad_req_name(GradReq req) {
  return req == GradReq::kNull ? "null" : req == GradReq::kWrite ? "write" : "add";
}

std::vector<GradReq> resolve_grad_reqs(const GradReqs &given, const std::vector<std::string> &arguments,
                                       std::vector<GradReq> otherwise) {
  std::vector<GradReq> reqs = std::move(otherwise);
  if (given.as_list && given.list.size() != arguments.size()) {
    throw Error(Code::kInvalidArgument,
                text("grad_req: expected ", arguments.size(), " entries, one per argument, found ", given.list.size()),
                "grad_req");
  }
  for (size_t i = 0; i < given.list.size(); ++i) reqs[i] = parse_grad_req(given.list[i]);
  for (const auto &[name, word] : given.named) {
    const GradReq req = parse_grad_req(word);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i] == name) reqs[i] = req;
  }
  return reqs;
}

}  // namespace cohort
