// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

namespace cohort {
namespace {

struct DtypeInfo {
  Dtype dtype;
  size_t size;
  const char *name;
};
constexpr DtypeInfo kEntries[] = {
    {Dtype::kFloat32, 4, "float32"}, {Dtype::kFloat64, 8, "float64"}, {Dtype::kFloat16, 2, "float16"},
    {Dtype::kUint8, 1, "uint8"},     {Dtype::kInt32, 4, "int32"},     {Dtype::kInt8, 1, "int8"},
    {Dtype::kInt64, 8, "int64"},     {Dtype::kBool, 1, "bool"},       {Dtype::kBfloat16, 2, "bfloat16"},
};

const DtypeInfo *find(Dtype dtype) {
  for (const DtypeInfo &entry : kEntries) {
    if (entry.dtype == dtype) return &entry;
  }
  return nullptr;
}

}  // namespace

bool dtype_valid(int32_t code) { return find(Dtype(code)) != nullptr; }

size_t dtype_size(Dtype dtype) {
  const DtypeInfo *entry = find(dtype);
  return entry ? entry->size : 0;
}

const char *dtype_name(Dtype dtype) {
  const DtypeInfo *entry = find(dtype);
  return entry ? entry->name : "none";
}

Dtype dtype_from_name(const std::string &name) {
  for (const DtypeInfo &entry : kEntries) {
    if (name == entry.name) return entry.dtype;
  }
  std::string known;
  for (const DtypeInfo &entry : kEntries) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  throw Error(Code::kDtype, text("expected one of ", known, ", found '", name, "'"), name);
}

bool dtype_is_float(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16;
}

std::ostream &operator<<(std::ostream &out, Dtype dtype) { return out << dtype_name(dtype); }

}  // namespace cohort
