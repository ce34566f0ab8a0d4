// SPDX-License-Identifier: Apache-2.0
#include "executor/name_pattern.hpp"

#include <re2/re2.h>

#include "base/error.hpp"

namespace cohort {
namespace {

constexpr size_t kMostPatternBytes = 64 << 10;
constexpr int64_t kMemoryBytes = 8 << 20;  // for the compiled pattern and the cache of the matcher

[[noreturn]] void refuse(const std::string &found) {
  throw Error(Code::kInvalidArgument, text("pattern: expected a regular expression, found ", found), "pattern");
}

RE2::Options how() {
  RE2::Options options;
  options.set_log_errors(false);  // nothing to the host's stderr
  options.set_never_capture(true);
  options.set_max_mem(kMemoryBytes);
  return options;
}

}  // namespace

struct NamePattern::Impl {
  Impl(const std::string &pattern, bool is_anchored)
      : expression(pattern, how()), anchor(is_anchored ? RE2::ANCHOR_START : RE2::UNANCHORED), all(pattern.empty()) {}

  const RE2 expression;
  const RE2::Anchor anchor;
  const bool all;
};

NamePattern::NamePattern(const std::string &pattern, bool anchored) {
  if (pattern.size() > kMostPatternBytes) {
    refuse(text("one of ", pattern.size(), " bytes, more than ", kMostPatternBytes));
  }
  impl_ = std::make_unique<const Impl>(pattern, anchored);
  if (!impl_->expression.ok()) refuse(text("'", pattern, "': ", impl_->expression.error()));
}

NamePattern::~NamePattern() = default;

bool NamePattern::matches(const std::string &name) const {
  return impl_->all || impl_->expression.Match(name, 0, name.size(), impl_->anchor, nullptr, 0);
}

}  // namespace cohort
