// SPDX-License-Identifier: Apache-2.0
// README.md agrees with the code.
#include <fstream>
#include <iterator>
#include <string>

#include "base/settings.hpp"
#include "support/unit.hpp"

namespace {

std::string readme() {
  std::ifstream file("README.md");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST(readme_lists_every_environment_variable_with_its_meaning) {
  const std::string text = readme();
  CHECK(!cohort::all_settings().empty());
  for (const cohort::EnvironmentSetting *setting : cohort::all_settings()) {
    const std::string row = std::string("| `") + setting->name + "` | " + setting->meaning + " |\n";
    if (text.find(row) == std::string::npos) unit::fail(__FILE__, __LINE__, "README.md has no row: " + row);
  }
}

UNIT_MAIN()
