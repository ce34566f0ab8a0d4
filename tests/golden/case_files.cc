// SPDX-License-Identifier: Apache-2.0
#include "case_files.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace golden {
namespace {

namespace fs = std::filesystem;

std::optional<CaseKind> kind_of(const fs::path &folder) {
  if (fs::exists(folder / "scenario.json")) return CaseKind::kScenario;
  if (fs::exists(folder / "case.json")) return CaseKind::kOperator;
  if (fs::exists(folder / "model.json")) return CaseKind::kModel;
  if (fs::exists(folder / "optimizer.json")) return CaseKind::kOptimizer;
  return std::nullopt;
}

std::string name_of(const fs::path &path) { return (path.parent_path().filename() / path.filename()).string(); }

void add_family(const fs::path &file, std::vector<GoldenCase> &cases) {
  const auto family = std::make_shared<OperatorFamily>(file.string());
  for (const std::string &name : family->case_names()) {
    const fs::path path = file.parent_path() / name;
    cases.push_back({path.string(), name_of(path), CaseKind::kOperator, family});
  }
}

void collect(const fs::path &folder, int depth, std::vector<GoldenCase> &cases) {
  if (const std::optional<CaseKind> kind = kind_of(folder)) {
    cases.push_back({folder.string(), name_of(folder), *kind, nullptr});
    return;
  }
  for (const fs::directory_entry &entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && depth > 0) collect(entry.path(), depth - 1, cases);
    if (is_family(entry.path().string())) add_family(entry.path(), cases);
  }
}

// The case of a family that lies where a folder of its own would lie.
std::vector<GoldenCase> find_in_families(fs::path path) {
  if (!path.has_filename()) path = path.parent_path();  // "ops/001-relu-f32/"
  std::vector<GoldenCase> cases;
  std::error_code error;
  const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
  if (error) return cases;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    if (is_family(entry.path().string())) add_family(entry.path(), cases);
  const auto is_other = [&](const GoldenCase &found) { return fs::path(found.path).filename() != path.filename(); };
  cases.erase(std::remove_if(cases.begin(), cases.end(), is_other), cases.end());
  return cases;
}

}  // namespace

std::vector<GoldenCase> find_cases(const std::string &path) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error);
  std::vector<GoldenCase> cases;
  if (error)
    cases = find_in_families(path);
  else if (fs::is_directory(whole))
    collect(whole, 2, cases);
  else if (is_family(whole.string()))
    add_family(whole, cases);
  if (cases.empty() && (error || !fs::is_directory(whole)))
    throw BadCase(path + " is no folder, no family of cases and no case");
  std::sort(cases.begin(), cases.end(), [](const GoldenCase &a, const GoldenCase &b) { return a.path < b.path; });
  for (size_t i = 1; i < cases.size(); ++i)
    if (cases[i].path == cases[i - 1].path) throw BadCase("there are two cases " + cases[i].path);
  return cases;
}

CaseFiles::CaseFiles(const GoldenCase &golden_case, std::map<std::string, std::string> files)
    : folder_(golden_case.path), family_(golden_case.family), names_(std::move(files)) {
  if (family_) family_prefix_ = golden_case.name_in_family() + '/';
}

std::string CaseFiles::path_of(const std::string &file_name) const {
  if (file_name.empty() || file_name[0] != '@') return (fs::path(folder_) / file_name).string();
  const std::string shared = file_name.substr(1);
  for (fs::path folder = folder_; folder != folder.root_path(); folder = folder.parent_path())
    for (const fs::path &candidate : {folder / shared, folder / "examples" / shared})
      if (fs::exists(candidate)) return candidate.string();
  throw BadCase("there is no " + shared + " in the folders above " + folder_);
}

const Arrays &CaseFiles::file(const std::string &key) {
  const auto loaded = loaded_.find(key);
  if (loaded != loaded_.end()) return loaded->second;
  const auto name = names_.find(key);
  if (name == names_.end()) throw BadCase("the case has no file '" + key + "'");
  const std::string path = path_of(name->second);
  if (!fs::exists(path)) throw BadCase("there is no " + path);
  return loaded_[key] = Arrays::load(path);
}

bool CaseFiles::has(const std::string &key, const std::string &name) {
  if (family_) return family_->has_array(family_prefix_ + key + '/' + name);
  return file(key).has(name);
}

NDArray CaseFiles::array(const std::string &key, const std::string &name) {
  if (family_) return family_->array(family_prefix_ + key + '/' + name);
  if (!has(key, name)) throw BadCase("file '" + key + "' has no array '" + name + "'");
  return file(key).array(name);
}

NDArray CaseFiles::array(const Value &reference) {
  const std::string &text = reference.at("array").as_text();
  const size_t slash = text.find('/');
  if (slash == std::string::npos) throw BadCase("'" + text + "' is not FILE/NAME");
  const NDArray whole = array(text.substr(0, slash), text.substr(slash + 1));
  const std::vector<int64_t> rows = reference.get("rows").as_integers();
  if (rows.empty()) return whole;
  if (rows.size() != 2) throw BadCase("rows of " + reference.describe() + " are not two numbers");
  return whole.slice(rows[0], rows[1]);
}

std::vector<NDArray> CaseFiles::arrays(const Value &list) {
  std::vector<NDArray> arrays;
  if (list.is_null()) return arrays;
  for (const Value &item : list.items()) arrays.push_back(item.is_null() ? NDArray() : array(item));
  return arrays;
}

Arrays CaseFiles::named(const Value &map) {
  Arrays arrays;
  if (map.is_null()) return arrays;
  for (size_t i = 0; i < map.keys().size(); ++i) arrays.add(map.keys()[i], array(map.items()[i]));
  return arrays;
}

}  // namespace golden
