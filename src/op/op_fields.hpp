// SPDX-License-Identifier: Apache-2.0
// The C++ types an attribute can have: how each is parsed from MXNet's text, printed as a default, and named in
// reflection. Included by op.hpp only.
#pragma once

#include <limits>
#include <optional>

namespace cohort {

int64_t parse_int_in(const std::string &name, const std::string &source, int64_t low, int64_t high);
std::string print_float(double value, int digits = 9);  // as MXNet prints a default: 0.899999976 for 0.9f
std::string print_tuple(const Tuple &value);            // "[5,5]", "[]" (MXNet's default notation)
Tuple parse_whole_tuple(const std::string &name, const std::string &source);  // without None elements

namespace detail {

template <>
struct FieldType<int32_t> {
  static std::string type() { return "int"; }
  static std::string print(int32_t v) { return std::to_string(v); }
  static int32_t parse(const std::string &name, const std::string &s) {
    return int32_t(parse_int_in(name, s, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  }
};
template <>
struct FieldType<int64_t> {
  static std::string type() { return "long"; }
  static std::string print(int64_t v) { return std::to_string(v); }
  static int64_t parse(const std::string &name, const std::string &s) { return parse_int(name, s); }
};
template <>
struct FieldType<float> {
  static std::string type() { return "float"; }
  static std::string print(float v) { return print_float(double(v)); }
  static float parse(const std::string &name, const std::string &s) { return float(parse_float(name, s)); }
};
template <>
struct FieldType<double> {
  static std::string type() { return "double"; }
  static std::string print(double v) { return print_float(v, 17); }
  static double parse(const std::string &name, const std::string &s) { return parse_float(name, s); }
};
template <>
struct FieldType<bool> {
  static std::string type() { return "boolean"; }
  static std::string print(bool v) { return v ? "1" : "0"; }
  static bool parse(const std::string &name, const std::string &s) { return parse_bool(name, s); }
};
template <>
struct FieldType<std::string> {
  static std::string type() { return "string"; }
  static std::string print(const std::string &v) { return "'" + v + "'"; }
  static std::string parse(const std::string &, const std::string &s) { return s; }
};
template <>
struct FieldType<Tuple> {
  static std::string type() { return "Shape(tuple)"; }
  static std::string print(const Tuple &v) { return print_tuple(v); }
  static Tuple parse(const std::string &name, const std::string &s) { return parse_whole_tuple(name, s); }
};
template <>
struct FieldType<std::vector<std::optional<int64_t>>> {  // begin=(0, None)
  static std::string type() { return "Shape(tuple)"; }
  static std::string print(const std::vector<std::optional<int64_t>> &) { return "[]"; }
  static std::vector<std::optional<int64_t>> parse(const std::string &name, const std::string &s) {
    return parse_tuple(name, s);
  }
};
template <>
struct FieldType<Dtype> {
  static std::string type() {
    return "{'bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'}";
  }
  static std::string print(Dtype v) { return std::string("'") + dtype_name(v) + "'"; }
  static Dtype parse(const std::string &, const std::string &s) {
    return is_none(s) ? Dtype::kNone : dtype_from_name(s);
  }
};
template <typename F>
struct FieldType<std::optional<F>> {
  static std::string type() { return std::is_same_v<F, Tuple> ? "Shape or None" : FieldType<F>::type() + " or None"; }
  static std::string print(const std::optional<F> &v) { return v ? FieldType<F>::print(*v) : "None"; }
  static std::optional<F> parse(const std::string &name, const std::string &s) {
    if (is_none(s)) return std::nullopt;
    return FieldType<F>::parse(name, s);
  }
};

// The numbers to which a range applies: the value or the elements of a tuple; none for None.
template <typename F>
std::vector<double> numbers_of(const F &value) {
  if constexpr (std::is_arithmetic_v<F>) {
    return {double(value)};
  } else if constexpr (std::is_same_v<F, Tuple>) {
    return {value.begin(), value.end()};
  } else {
    return {};
  }
}
template <typename F>
std::vector<double> numbers_of(const std::optional<F> &value) {
  return value ? numbers_of(*value) : std::vector<double>();
}

}  // namespace detail

template <typename A>
template <typename F, typename V>
OpBuilder<A> &OpBuilder<A>::attr(F A::*field, const char *name, V value, const char *doc) {
  using Type = detail::FieldType<F>;
  const F initial = F(value);
  auto previous = op_.new_attrs;
  op_.new_attrs = [previous, field, initial] {
    std::shared_ptr<void> fresh = previous();
    static_cast<A *>(fresh.get())->*field = initial;
    return fresh;
  };
  op_.attrs.push_back({name, Type::type(), false, Type::print(initial), doc,
                       [field, key = std::string(name)](void *target, const std::string &s) {
                         static_cast<A *>(target)->*field = Type::parse(key, s);
                       }});
  op_.attrs.back().numbers = [field](const void *target) {
    return detail::numbers_of(static_cast<const A *>(target)->*field);
  };
  return *this;
}

template <typename A>
template <typename F>
OpBuilder<A> &OpBuilder<A>::required(F A::*field, const char *name, const char *doc) {
  attr(field, name, F(), doc);
  op_.attrs.back().required = true;
  return *this;
}

template <typename A>
template <typename F>
OpBuilder<A> &OpBuilder<A>::choice(F A::*field, const char *name, std::vector<std::pair<const char *, F>> words,
                                   F value, const char *doc) {
  auto previous = op_.new_attrs;
  op_.new_attrs = [previous, field, value] {
    std::shared_ptr<void> fresh = previous();
    static_cast<A *>(fresh.get())->*field = value;
    return fresh;
  };
  std::string list, initial;
  for (const auto &word : words) {
    const std::string shown = word.first;
    list += (list.empty() ? "" : ", ") + (shown == "None" ? shown : "'" + shown + "'");
    if (word.second == value) initial = "'" + std::string(word.first) + "'";
  }
  op_.attrs.push_back({name, "{" + list + "}", false, initial, doc,
                       [field, words, list, key = std::string(name)](void *target, const std::string &s) {
                         for (const auto &word : words) {
                           if (s == word.first) {
                             static_cast<A *>(target)->*field = word.second;
                             return;
                           }
                         }
                         throw Error(Code::kInvalidArgument,
                                     text("attribute '", key, "': expected one of ", list, ", found '", s, "'"), key);
                       }});
  return *this;
}

template <typename A>
template <typename F>
OpBuilder<A> &OpBuilder<A>::required_choice(F A::*field, const char *name,
                                            std::vector<std::pair<const char *, F>> words, const char *doc) {
  const F first = words.front().second;
  choice(field, name, std::move(words), first, doc);
  op_.attrs.back().required = true;
  return *this;
}

template <typename A>
OpBuilder<A> &OpBuilder<A>::ignored(const char *name, const char *type, const char *default_text, const char *doc) {
  op_.attrs.push_back({name, type, false, default_text, doc, [](void *, const std::string &) {}});
  return *this;
}

}  // namespace cohort
