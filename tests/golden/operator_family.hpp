// SPDX-License-Identifier: Apache-2.0
// A family of operator cases: NAME.json holds their descriptions and graphs, NAME.params all their arrays.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "value.hpp"

namespace golden {

class OperatorFamily {
 public:
  // Reads the descriptions. Throws BadCase if the file is of another format.
  explicit OperatorFamily(const std::string &json_path);

  const std::vector<std::string> &case_names() const { return cases_.keys(); }
  const Value &description(const std::string &case_name) const { return cases_.at(case_name); }

  // Arrays by "CASE/inputs/NAME" or "CASE/expected/NAME". The first call reads the whole file, through the library.
  bool has_array(const std::string &key);
  NDArray array(const std::string &key);  // a new one

 private:
  void read_arrays();

  std::string params_path_;
  Value cases_;
  // On the host and not as handles: no handle of the library may be alive between two cases.
  std::unordered_map<std::string, HostArray> arrays_;
  bool has_read_arrays_ = false;
};

// Whether a file is the JSON file of a family: a .params file of the same name lies beside it.
bool is_family(const std::string &path);

}  // namespace golden
