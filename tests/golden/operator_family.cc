// SPDX-License-Identifier: Apache-2.0
#include "operator_family.hpp"

#include <filesystem>
#include <utility>

namespace golden {
namespace {

constexpr char kFormat[] = "cohort-golden-operators-1";

std::string params_path_of(const std::string &json_path) {
  return std::filesystem::path(json_path).replace_extension(".params").string();
}

}  // namespace

OperatorFamily::OperatorFamily(const std::string &json_path) : params_path_(params_path_of(json_path)) {
  const Value family = read_json(json_path);
  const std::string format = family.word("format", "");
  if (format != kFormat) throw BadCase(json_path + ": format '" + format + "', not '" + kFormat + "'");
  cases_ = family.at("cases");
}

bool OperatorFamily::has_array(const std::string &key) {
  read_arrays();
  return arrays_.count(key) > 0;
}

NDArray OperatorFamily::array(const std::string &key) {
  read_arrays();
  const auto found = arrays_.find(key);
  if (found == arrays_.end()) throw BadCase(params_path_ + " has no array '" + key + "'");
  const HostArray &host = found->second;
  return NDArray::from_host(host.bytes.data(), host.bytes.size(), host.shape, host.dtype);
}

void OperatorFamily::read_arrays() {
  if (has_read_arrays_) return;
  std::unordered_map<std::string, HostArray> read;
  const Arrays arrays = Arrays::load(params_path_);
  for (size_t i = 0; i < arrays.num(); ++i) read.emplace(arrays.name(i), read_array(arrays.array(i)));
  arrays_ = std::move(read);
  has_read_arrays_ = true;
}

bool is_family(const std::string &path) {
  const std::filesystem::path file = path;
  return file.extension() == ".json" && std::filesystem::exists(params_path_of(path));
}

}  // namespace golden
