// SPDX-License-Identifier: Apache-2.0
// The files of a case: finding cases, their arrays and their symbols.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "value.hpp"

namespace golden {

enum class CaseKind { kScenario, kOperator, kModel, kOptimizer };  // scenario.json, case.json, model.json, ...

struct CaseFolder {
  std::string path;
  std::string name;  // the last two parts of the path: "group/mlp_2dev"
  CaseKind kind = CaseKind::kScenario;
};

// All cases below a folder, or the folder itself if it is one, sorted by path. Throws BadCase if there is no such
// folder.
std::vector<CaseFolder> find_cases(const std::string &folder);

// Arrays that a case names. A file is read when it is first needed, by the library.
class CaseFiles {
 public:
  // files: key to file name; "@data/digits.params" is looked for in the folder and those above it.
  CaseFiles(const std::string &folder, std::map<std::string, std::string> files);

  bool has(const std::string &file, const std::string &name);
  NDArray array(const std::string &file, const std::string &name);  // shared with the file; not to be written
  NDArray array(const Value &reference);                            // {"array": "FILE/NAME", "rows": [b, e]}
  std::vector<NDArray> arrays(const Value &list);                   // null entries are NULL; none for null
  Arrays named(const Value &map);                                   // name to reference; empty for null
  HostArray host(const Value &reference) { return read_array(array(reference).get()); }

  std::string path_of(const std::string &file_name) const;

 private:
  const cohort_arrays *file(const std::string &key);

  std::string folder_;
  std::map<std::string, std::string> names_;
  std::map<std::string, Arrays> loaded_;
};

}  // namespace golden
