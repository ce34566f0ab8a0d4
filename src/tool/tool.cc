// SPDX-License-Identifier: Apache-2.0
#include "tool/tool.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cohort/version.h"
#include "tool/printing.hpp"

namespace cohort::tool {
namespace {

std::vector<Command> commands() {
  return {inspect_command(), plot_command(), run_command(), bench_command(), convert_command()};
}

std::string overview() {
  std::string text = "usage: cohort COMMAND FILE [OPTION...]\n\nInspects, draws, runs and converts MXNet networks.\n\n";
  for (const Command &command : commands()) {
    std::string name = command.name;
    name.resize(9, ' ');
    text += "  " + name + command.summary + "\n";
  }
  return text +
         "\ncohort COMMAND --help shows the options of a command, cohort --version the version.\n"
         "Exit status: 0, success; 1, failure; 2, the command line is wrong.\n";
}

// Returns the exit status.
int run(const std::vector<std::string> &words) {
  if (words.empty()) throw UsageError("no command is given");
  if (words[0] == "--help" || words[0] == "-h" || (words[0] == "help" && words.size() == 1))
    return print(overview()), 0;
  if (words[0] == "--version") return print(std::string("cohort ") + cohort_version() + "\n"), 0;
  const bool asks_help = words[0] == "help";
  const std::string &name = words[asks_help];
  for (const Command &command : commands()) {
    if (name != command.name) continue;
    const std::vector<std::string> rest(words.begin() + 1 + asks_help, words.end());
    bool wants_help = asks_help;
    for (const std::string &word : rest) wants_help = wants_help || word == "--help" || word == "-h";
    if (wants_help) return print(help(command)), 0;
    command.run(Arguments(command, rest));
    return 0;
  }
  throw UsageError("unknown command '" + printable(name) + "'");
}

}  // namespace
}  // namespace cohort::tool

int main(int argc, char **argv) {
  using namespace cohort::tool;
  const std::vector<std::string> words(argv + (argc > 0), argv + argc);
  const std::string who = words.empty() || words[0][0] == '-' ? "cohort" : "cohort " + printable(words[0]);
  std::string help = "cohort";
  for (const Command &command : commands())
    if (!words.empty() && words[0] == command.name) help = who;
  try {
    const int status = run(words);
    finish_output();
    return status;
  } catch (const UsageError &error) {
    std::fprintf(stderr, "%s: %s (see %s --help)\n", who.c_str(), printable(error.what()).c_str(), help.c_str());
    return 2;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "%s: out of memory\n", who.c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), printable(error.what()).c_str());
  }
  return 1;
}
