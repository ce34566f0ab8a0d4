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
  return make<NDArray>(cohort_ndarray_from_host, host.bytes.data(), host.bytes.size(), host.shape.data(),
                       static_cast<int32_t>(host.shape.size()), host.dtype, nullptr);
}

void OperatorFamily::read_arrays() {
  if (has_read_arrays_) return;
  std::unordered_map<std::string, HostArray> read;
  const Arrays arrays = make<Arrays>(cohort_arrays_load, params_path_.c_str(), nullptr);
  const size_t num = query<size_t>(cohort_arrays_num, arrays.get());
  for (size_t i = 0; i < num; ++i)
    read.emplace(query<const char *>(cohort_arrays_name, arrays.get(), i),
                 read_array(make<NDArray>(cohort_arrays_get, arrays.get(), i).get()));
  arrays_ = std::move(read);
  has_read_arrays_ = true;
}

bool is_family(const std::string &path) {
  const std::filesystem::path file = path;
  return file.extension() == ".json" && std::filesystem::exists(params_path_of(path));
}

}  // namespace golden
