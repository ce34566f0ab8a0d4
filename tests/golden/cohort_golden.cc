// SPDX-License-Identifier: Apache-2.0
// cohort-golden: replays golden cases over the C ABI and compares the results with the recorded ones.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "case_summary.hpp"
#include "replay.hpp"

namespace golden {
namespace {

constexpr char kUsage[] =
    "cohort-golden [OPTION]... DIR...\n"
    "Replays each case in DIR: a case, a family of operator cases (ops/NAME.json), a folder of cases, or a folder of\n"
    "such folders. Prints a line for each failure and ends with 'N passed, N failed, N skipped'. The exit status is 1 "
    "if\n"
    "a case failed, 2 if there was none to run.\n"
    "  --filter TEXT   run only cases whose name contains TEXT\n"
    "  --list          print the names of the cases and run nothing. With --verbose also a tab and a summary: title,\n"
    "                  operator with attributes and input shapes, settings of an optimizer, or source of a model\n"
    "  --verbose       print every case and step, and all failures of a case (else the first 10)\n"
    "  --context CTXS  use these contexts, 'gpu(0)' or 'gpu(0),gpu(1),cpu(0)', in turn for cpu(0), cpu(1) and so on "
    "in\n"
    "                  the cases; cases are skipped if there is no such device\n"
    "  --lacking FILE  skip a case if an operator listed in FILE has no kernel for it. FILE has one operator per "
    "line;\n"
    "                  text after a tab is ignored\n"
    "  --parts         run operator cases with one gradient at a time, with one output at a time, fused with other\n"
    "                  operators (with backward_once), and with fusion disabled. A step that leaves elements "
    "unwritten\n"
    "                  fails (COHORT_CHECK=outputs)\n"
    "  --runs N        run each operator case N times from the same arrays and compare the last run\n"
    "  --limit SECONDS how long a case may take (120)\n"
    "  --in-process    run all cases in this process, for a debugger: a crash ends the run\n";

struct Options {
  std::vector<std::string> folders;
  std::string filter;
  Settings settings;
  bool list = false, in_process = false;
  int limit_s = 120;
};

constexpr size_t kMostLines = 10;

int fail_usage(const std::string &what) {
  std::fprintf(stderr, "cohort-golden: %s\n%s", what.c_str(), kUsage);
  return 2;
}

std::vector<Context> parse_contexts(const std::string &list) {
  std::vector<Context> contexts;
  std::istringstream texts(list);
  for (std::string text; std::getline(texts, text, ',');) contexts.emplace_back(text);
  return contexts;
}

std::set<std::string> read_lacking(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::set<std::string> operators;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') operators.insert(line.substr(0, line.find('\t')));
  return operators;
}

// Returns the exit status, or -1 to continue.
int parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value =
        word == "--filter" || word == "--context" || word == "--limit" || word == "--lacking" || word == "--runs";
    if (takes_value && i + 1 == argc) return fail_usage(word + " needs a value");
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--filter") {
      options.filter = argv[++i];
    } else if (word == "--limit") {
      options.limit_s = std::atoi(argv[++i]);
      if (options.limit_s < 1) return fail_usage("--limit takes a number of seconds from 1");
    } else if (word == "--runs") {
      options.settings.num_runs = std::atoi(argv[++i]);
      if (options.settings.num_runs < 1) return fail_usage("--runs takes a number from 1");
    } else if (word == "--context") {
      options.settings.contexts = parse_contexts(argv[++i]);
    } else if (word == "--lacking") {
      options.settings.lacking = read_lacking(argv[++i]);
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "--verbose") {
      options.settings.verbose = true;
    } else if (word == "--parts") {
      options.settings.partial_runs = true;
      setenv("COHORT_CHECK", "outputs", 1);
    } else if (word == "--in-process") {
      options.in_process = true;
    } else if (word.compare(0, 2, "--") == 0) {
      return fail_usage("there is no option " + word);
    } else {
      options.folders.push_back(word);
    }
  }
  return options.folders.empty() ? fail_usage("no folder is given") : -1;
}

std::vector<GoldenCase> chosen_cases(const Options &options) {
  std::vector<GoldenCase> chosen;
  for (const std::string &folder : options.folders)
    for (GoldenCase &found : find_cases(folder))
      if (found.name.find(options.filter) != std::string::npos) chosen.push_back(std::move(found));
  return chosen;
}

void print_list(const std::vector<GoldenCase> &cases, bool with_summaries) {
  for (const GoldenCase &golden_case : cases)
    if (with_summaries)
      std::printf("%s\t%s\n", golden_case.name.c_str(), summary_of(golden_case).c_str());
    else
      std::printf("%s\n", golden_case.name.c_str());
}

class Tally {
 public:
  explicit Tally(bool verbose) : verbose_(verbose) {}

  void add(const GoldenCase &golden_case, const Outcome &outcome) {
    const char *name = golden_case.name.c_str();
    if (outcome.verdict == Verdict::kSkipped) std::printf("%s: skipped, %s\n", name, outcome.failures[0].c_str());
    if (outcome.verdict == Verdict::kPassed && verbose_) std::printf("%s: passed\n", name);
    if (outcome.verdict == Verdict::kFailed) {
      const size_t num = outcome.failures.size(), most = verbose_ ? num : std::min(num, kMostLines);
      for (size_t i = 0; i < most; ++i) std::printf("%s: %s\n", name, outcome.failures[i].c_str());
      if (most < num) std::printf("%s: and %zu more\n", name, num - most);
    }
    std::fflush(stdout);
    ++counts_[static_cast<int>(outcome.verdict)];
  }

  int finish() const {
    std::printf("%zu passed, %zu failed, %zu skipped\n", counts_[0], counts_[1], counts_[2]);
    return counts_[1] ? 1 : 0;
  }

 private:
  bool verbose_;
  size_t counts_[3] = {0, 0, 0};  // in the order of Verdict
};

int run(int argc, char **argv) {
  Options options;
  const int status = parse(argc, argv, options);
  if (status >= 0) return status;
  const std::vector<GoldenCase> cases = chosen_cases(options);
  if (cases.empty()) return fail_usage("there is no case to run");
  if (options.list) {
    print_list(cases, options.settings.verbose);
    return 0;
  }
  Tally tally(options.settings.verbose);
  const Report report = [&](const GoldenCase &golden_case, const Outcome &outcome) { tally.add(golden_case, outcome); };
  if (options.in_process)
    for (const GoldenCase &golden_case : cases) report(golden_case, replay(golden_case, options.settings));
  else
    replay_in_children(cases, options.settings, options.limit_s, report);
  return tally.finish();
}

}  // namespace
}  // namespace golden

int main(int argc, char **argv) {
  try {
    return golden::run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cohort-golden: %s\n", error.what());
    return 2;
  }
}
