// SPDX-License-Identifier: Apache-2.0
#include "base/context.hpp"

#include "base/error.hpp"

namespace cohort {
namespace {

struct TypeName {
  DeviceType type;
  const char *name;
};
constexpr TypeName kTypes[] = {{DeviceType::kCpu, "cpu"},
                               {DeviceType::kGpu, "gpu"},
                               {DeviceType::kCpuPinned, "cpu_pinned"},
                               {DeviceType::kCpuShared, "cpu_shared"}};

}  // namespace

Context make_context(int32_t type, int32_t id) {
  bool known = false;
  for (const TypeName &entry : kTypes) known = known || int32_t(entry.type) == type;
  if (!known) throw Error(Code::kInvalidArgument, text("no device type has the code ", type), "context");
  if (id < 0) throw Error(Code::kInvalidArgument, text("a device id must not be negative, found ", id), "context");
  return Context{DeviceType(type), id};
}

Context parse_context(const std::string &source) {
  const size_t open = source.find('(');
  if (open != std::string::npos && source.size() >= open + 3 && source.back() == ')') {
    const std::string name = source.substr(0, open), digits = source.substr(open + 1, source.size() - open - 2);
    const bool number = digits.find_first_not_of("0123456789") == std::string::npos && digits.size() <= 10;
    const long long id = number ? std::stoll(digits) : -1;
    // Rejects leading zeros, so that each context has exactly one text.
    if (number && id <= INT32_MAX && std::to_string(id) == digits) {
      for (const TypeName &entry : kTypes) {
        if (name == entry.name) return Context{entry.type, int32_t(id)};
      }
    }
  }
  throw Error(Code::kInvalidArgument, text("'", source, "' is not a context; expected for example cpu(0) or gpu(1)"),
              "context");
}

std::ostream &operator<<(std::ostream &out, const Context &context) {
  for (const TypeName &entry : kTypes) {
    if (entry.type == context.type) out << entry.name;
  }
  return out << '(' << context.id << ')';
}

}  // namespace cohort
