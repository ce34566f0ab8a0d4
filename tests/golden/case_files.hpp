// SPDX-License-Identifier: Apache-2.0
// The files of a case: finding cases, their arrays and their symbols.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator_family.hpp"
#include "value.hpp"

namespace golden {

enum class CaseKind { kScenario, kOperator, kModel, kOptimizer };  // scenario.json, case.json, model.json, ...

// Where a case is stored: in a folder of its own or, an operator case, with others in the files of a family.
struct GoldenCase {
  std::string path;  // of its folder; in a family: where its folder would be, beside the family's files
  std::string name;  // the last two parts of the path: "group/mlp_2dev"
  CaseKind kind = CaseKind::kScenario;
  std::shared_ptr<OperatorFamily> family;  // NULL: it has a folder

  std::string name_in_family() const { return name.substr(name.find('/') + 1); }
};

// The cases at a path, sorted by path: a case, a family's JSON file, a folder of cases and families, or a folder of
// such folders. Throws BadCase if there is no such path, or if a case is there twice.
std::vector<GoldenCase> find_cases(const std::string &path);

// The arrays of a case by file and name. The library reads a file when it is first needed.
class CaseFiles {
 public:
  // files: key to file name; "@data/digits.params" is looked for in the folder and those above it. For a case in a
  // family, whose arrays are all in one file, only the keys count.
  CaseFiles(const GoldenCase &golden_case, std::map<std::string, std::string> files);

  bool has(const std::string &file, const std::string &name);
  NDArray array(const std::string &file, const std::string &name);  // shared with the file: do not write to it
  NDArray array(const Value &reference);                            // {"array": "FILE/NAME", "rows": [b, e]}
  std::vector<NDArray> arrays(const Value &list);                   // null entries are empty; none for null
  Arrays named(const Value &map);                                   // name to reference; empty for null
  HostArray host(const Value &reference) { return read_array(array(reference)); }

  std::string path_of(const std::string &file_name) const;

 private:
  const Arrays &file(const std::string &key);

  std::string folder_;
  std::shared_ptr<OperatorFamily> family_;
  std::string family_prefix_;  // of the names of this case's arrays
  std::map<std::string, std::string> names_;
  std::map<std::string, Arrays> loaded_;
};

}  // namespace golden
