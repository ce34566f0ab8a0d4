// SPDX-License-Identifier: Apache-2.0
// MXListDataIters and MXDataIter*, and parameters of iterators.
#include "data_iter.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <random>

#include "mxnet/c_api.h"
#include "ndarray_handle.hpp"

namespace cohort_mxnet {
namespace {

// An iterator and its latest batch.
struct IterObject : Object {
  static constexpr Kind kKind = DataIter::kKind;
  static constexpr const char *kName = DataIter::kName;
  explicit IterObject(std::shared_ptr<DataIter> made) : Object(kKind), iter(std::move(made)) {}

  std::mutex mutex;  // guards all below
  const std::shared_ptr<DataIter> iter;
  Batch batch;
  bool has_batch = false;
};

// Texts of a kind as C takes them.
struct KindTexts {
  std::vector<std::string> types;
  std::vector<const char *> names, type_pointers, docs;

  explicit KindTexts(const IterKind &kind) {
    for (const IterParam &param : kind.params) {
      const bool is_enumeration = param.type[0] == '{';
      types.push_back(
          std::string(param.type) +
          (param.default_text
               ? std::string(is_enumeration ? ",optional, default=" : ", optional, default=") + param.default_text
               : ", required"));
      names.push_back(param.name);
      docs.push_back(param.doc);
    }
    for (const std::string &type : types) type_pointers.push_back(type.c_str());
  }
};

const KindTexts &texts_of(size_t kind) {
  static const std::vector<KindTexts> texts(iter_kinds().begin(), iter_kinds().end());
  return texts[kind];
}

size_t kind_of(const void *creator) {
  for (size_t i = 0; i < iter_kinds().size(); ++i)
    if (creator == &iter_kinds()[i]) return i;
  fail("expected an iterator that MXListDataIters() gave, found another address");
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '\'' && text.back() == '\'' ? text.substr(1, text.size() - 2) : text;
}

template <typename Number>
bool parse(std::string_view text, Number &number) {
  text = trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename Body>
int with(DataIterHandle handle, Body body) {
  return guarded([&] {
    const std::shared_ptr<IterObject> object = from_handle<IterObject>(handle);
    const std::lock_guard<std::mutex> lock(object->mutex);
    body(*object);
  });
}

template <typename Body>
int with_batch(DataIterHandle handle, Body body) {
  return with(handle, [&](IterObject &object) {
    if (!object.has_batch) fail("the iterator has no batch: MXDataIterNext() reads one");
    body(object.batch);
  });
}

}  // namespace

IterParams::IterParams(const IterKind &kind, uint32_t num, const char *const *keys, const char *const *values)
    : kind_(kind) {
  if (num != 0) required(keys, "keys"), required(values, "vals");
  std::unordered_map<std::string, std::string> given;
  for (uint32_t i = 0; i < num; ++i) given[&required(keys[i], "a key")] = &required(values[i], "a value");
  for (const IterParam &param : kind.params) {
    const auto found = given.find(param.name);
    if (found != given.end()) {
      values_[param.name] = found->second;
      continue;
    }
    if (!param.default_text) fail(std::string(kind.name) + ": " + param.name + " is required");
    values_[param.name] = unquoted(param.default_text);
  }
}

std::string IterParams::text(const char *name) const { return values_.at(name); }

bool IterParams::is_default(const char *name) const {
  for (const IterParam &param : kind_.params) {
    if (std::string_view(param.name) != name || !param.default_text) continue;
    const std::string &value = values_.at(name);
    const std::string_view usual = unquoted(param.default_text);
    double a = 0, b = 0;
    const bool is_flag = std::string_view(param.type) == "boolean";
    return value == usual || (is_flag ? flag(name) == (usual == "1") : parse(value, a) && parse(usual, b) && a == b);
  }
  return true;
}

void IterParams::refuse(const char *name, const std::string &expected) const {
  fail(std::string(kind_.name) + ": " + name + ": expected " + expected + ", found '" + values_.at(name) + "'");
}

int64_t IterParams::integer(const char *name, int64_t low, int64_t high) const {
  int64_t number = 0;
  if (!parse(values_.at(name), number) || number < low || number > high)
    refuse(name, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return number;
}

double IterParams::number(const char *name) const {
  double number = 0;
  if (!parse(values_.at(name), number) || !std::isfinite(number)) refuse(name, "a number");
  return number;
}

bool IterParams::flag(const char *name) const {
  const std::string &value = values_.at(name);
  if (value == "1" || value == "True" || value == "true") return true;
  if (value != "0" && value != "False" && value != "false") refuse(name, "True or False");
  return false;
}

cohort::Shape IterParams::shape(const char *name) const {
  const std::string &value = values_.at(name);
  std::string_view text = trimmed(value);
  const char open = text.empty() ? '\0' : text.front();
  if (open == '(' || open == '[') {
    if (text.size() < 2 || text.back() != (open == '(' ? ')' : ']')) refuse(name, "lengths between brackets");
    text = text.substr(1, text.size() - 2);
  }
  cohort::Shape shape;
  while (!trimmed(text).empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    int64_t length = 0;
    if (!parse(text.substr(0, comma), length) || length < 1) refuse(name, "lengths of 1 or more");
    shape.push_back(length);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (shape.size() >= COHORT_MAX_AXES) refuse(name, "less than " + std::to_string(COHORT_MAX_AXES) + " lengths");
  return shape;
}

cohort_dtype IterParams::dtype(const char *name, cohort_dtype fallback) const {
  const std::string &value = values_.at(name);
  if (value == "None") return fallback;
  return cohort::query<cohort_dtype>(cohort_dtype_parse, value.c_str());
}

size_t batch_bytes(int64_t num, const cohort::Shape &shape, cohort_dtype dtype) {
  uint64_t bytes = cohort::query<size_t>(cohort_dtype_bytes, dtype);
  const auto multiply = [&](int64_t length) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(length), &bytes) || bytes > PTRDIFF_MAX)
      fail("a batch of this shape does not fit into memory");
  };
  multiply(num);
  for (const int64_t length : shape) multiply(length);
  return bytes;
}

std::vector<uint64_t> shuffled(uint64_t begin, uint64_t end, uint64_t seed) {
  std::vector<uint64_t> order;
  order.reserve(end - begin);
  for (uint64_t i = begin; i < end; ++i) order.push_back(i);
  // std::shuffle would depend on the standard library.
  std::mt19937_64 random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXListDataIters(uint32_t *out_size, DataIterCreator **out_array) {
  return guarded([&] {
    static std::vector<DataIterCreator> creators = [] {
      std::vector<DataIterCreator> all;
      for (const IterKind &kind : iter_kinds()) all.push_back(const_cast<IterKind *>(&kind));
      return all;
    }();
    required(out_size, "out_size");
    required(out_array, "out_array");
    *out_size = static_cast<uint32_t>(creators.size());
    *out_array = creators.data();
  });
}

int MXDataIterGetIterInfo(DataIterCreator creator, const char **name, const char **description, uint32_t *num_args,
                          const char ***arg_names, const char ***arg_type_infos, const char ***arg_descriptions) {
  return guarded([&] {
    const size_t index = kind_of(creator);
    const IterKind &kind = iter_kinds()[index];
    const KindTexts &texts = texts_of(index);
    const auto list = [](const std::vector<const char *> &pointers) {
      return const_cast<const char **>(pointers.data());
    };
    required(name, "name") = kind.name;
    required(description, "description") = kind.doc;
    required(num_args, "num_args") = static_cast<uint32_t>(kind.params.size());
    required(arg_names, "arg_names") = list(texts.names);
    required(arg_type_infos, "arg_type_infos") = list(texts.type_pointers);
    required(arg_descriptions, "arg_descriptions") = list(texts.docs);
  });
}

int MXDataIterCreateIter(DataIterCreator handle, uint32_t num_param, const char **keys, const char **vals,
                         DataIterHandle *out) {
  return guarded([&] {
    const IterKind &kind = iter_kinds()[kind_of(handle)];
    required(out, "out");
    if (!kind.create) fail(std::string(kind.name) + ": not implemented in Cohort");
    *out = publish(std::make_shared<IterObject>(kind.create(IterParams(kind, num_param, keys, vals))));
  });
}

int MXDataIterFree(DataIterHandle handle) {
  return guarded([&] { free_handle<IterObject>(handle); });
}

int MXDataIterNext(DataIterHandle handle, int *out) {
  return with(handle, [&](IterObject &object) {
    required(out, "out");
    object.has_batch = false;
    object.has_batch = object.iter->next(object.batch);
    *out = object.has_batch;
  });
}

int MXDataIterBeforeFirst(DataIterHandle handle) {
  return with(handle, [](IterObject &object) {
    object.has_batch = false;
    object.iter->before_first();
  });
}

int MXDataIterGetData(DataIterHandle handle, NDArrayHandle *out) {
  return with_batch(handle, [&](Batch &batch) { required(out, "out") = new_ndarray(batch.data); });
}

int MXDataIterGetLabel(DataIterHandle handle, NDArrayHandle *out) {
  return with_batch(handle, [&](Batch &batch) { required(out, "out") = new_ndarray(batch.label); });
}

int MXDataIterGetIndex(DataIterHandle handle, uint64_t **out_index, uint64_t *out_size) {
  return with_batch(handle, [&](Batch &batch) {
    required(out_index, "out_index") = batch.index.data();
    required(out_size, "out_size") = batch.index.size();
  });
}

int MXDataIterGetPadNum(DataIterHandle handle, int *pad) {
  return with_batch(handle, [&](Batch &batch) { required(pad, "pad") = batch.num_pad; });
}

}  // extern "C"
