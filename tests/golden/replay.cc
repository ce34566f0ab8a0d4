// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "model_case.hpp"
#include "operator_case.hpp"
#include "optimizer_case.hpp"

namespace golden {
namespace {

// A child writes for each case a line "-TEXT" for each failure, then a line with the verdict. A child that ends because
// a device is broken writes kBrokenDeviceLine last.
constexpr char kFailureLine = '-';
constexpr char kBrokenDeviceLine[] = "E";
constexpr char kVerdictLetters[] = "PFS";  // in the order of Verdict

void write_all(int file, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0) _exit(3);  // the parent is gone
    done += static_cast<size_t>(written);
  }
}

std::string encode(const Outcome &outcome) {
  std::string text;
  for (std::string line : outcome.failures) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += kFailureLine + line + '\n';
  }
  return text + kVerdictLetters[static_cast<int>(outcome.verdict)] + '\n';
}

struct ChildProcess {
  pid_t process = -1;
  int file = -1;       // outcomes are read from here
  std::string buffer;  // bytes that were read but not yet used
};

// Whether the GPUs among the contexts still work. After a fault a GPU stays unusable until the process ends.
bool devices_work(const Settings &settings) {
  try {
    for (const Context &context : settings.contexts) {
      if (context.device_type != COHORT_DEVICE_GPU || !exists(context)) continue;
      NDArray::zeros({1}, COHORT_DTYPE_FLOAT32, context).read<float>();
    }
  } catch (const Error &) {
    return false;
  }
  return true;
}

ChildProcess start(const std::vector<GoldenCase> &cases, size_t first, const Settings &settings) {
  int ends[2];
  std::fflush(nullptr);
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t process = fork();
  if (process < 0) throw std::runtime_error("cannot fork");
  if (process == 0) {
    close(ends[0]);
    for (size_t i = first; i < cases.size(); ++i) {
      const Outcome outcome = replay(cases[i], settings);
      std::fflush(stdout);
      write_all(ends[1], encode(outcome));
      const bool is_last = i + 1 == cases.size();  // after which nothing is read
      if (is_last || outcome.verdict != Verdict::kFailed || devices_work(settings)) continue;
      write_all(ends[1], std::string(kBrokenDeviceLine) + '\n');
      break;
    }
    std::exit(0);
  }
  close(ends[1]);
  return {process, ends[0], ""};
}

// Reads the next line of a child. Returns false if the child has ended, or sets *late if the limit has passed.
bool read_line(ChildProcess &child, int limit_s, std::string &line, bool &late) {
  for (;;) {
    const size_t end = child.buffer.find('\n');
    if (end != std::string::npos) {
      line = child.buffer.substr(0, end);
      child.buffer.erase(0, end + 1);
      return true;
    }
    pollfd readable = {child.file, POLLIN, 0};
    late = poll(&readable, 1, limit_s * 1000) == 0;
    if (late) return false;
    char bytes[4096];
    const ssize_t num = read(child.file, bytes, sizeof(bytes));
    if (num <= 0) return false;
    child.buffer.append(bytes, static_cast<size_t>(num));
  }
}

// Waits for a child to end and says how it failed; "" if it did not.
std::string wait_for_end(ChildProcess &child) {
  close(child.file);
  int status = 0;
  waitpid(child.process, &status, 0);
  if (WIFSIGNALED(status)) return std::string("the process died: ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status)) return "the process ended with exit status " + std::to_string(WEXITSTATUS(status));
  return "";
}

// Reads a case's outcome. Returns false if it is incomplete; *gave_up is set if the child ended because of a broken
// GPU.
bool read_outcome(ChildProcess &child, int limit_s, Outcome &outcome, bool *gave_up) {
  std::string line;
  bool late = false;
  while (read_line(child, limit_s, line, late)) {
    *gave_up = line == kBrokenDeviceLine;
    if (*gave_up) return false;
    if (!line.empty() && line[0] == kFailureLine) {
      outcome.failures.push_back(line.substr(1));
      continue;
    }
    const char *letter = line.size() == 1 ? std::strchr(kVerdictLetters, line[0]) : nullptr;
    outcome.verdict = letter ? static_cast<Verdict>(letter - kVerdictLetters) : Verdict::kFailed;
    return true;
  }
  if (late) {
    kill(child.process, SIGKILL);
    outcome.failures.push_back("took longer than " + std::to_string(limit_s) + " s");
  }
  return false;
}

std::vector<std::string> run_case(const GoldenCase &golden_case, const Settings &settings) {
  switch (golden_case.kind) {
    case CaseKind::kScenario:
      return run_scenario(golden_case, settings);
    case CaseKind::kOperator:
      return run_operator_case(golden_case, settings);
    case CaseKind::kModel:
      return run_model_case(golden_case, settings);
    case CaseKind::kOptimizer:
      return run_optimizer_case(golden_case, settings);
  }
  return {};
}

// The operator that has no kernel on a device, according to a failure; "" if the failure is another one.
std::string lacking_operator(const std::string &failure) {
  static const std::string kBefore = "operator ", kAfter = " has no kernel on ";
  const size_t end = failure.find(kAfter);
  const size_t begin = end == std::string::npos ? end : failure.rfind(kBefore, end);
  if (begin == std::string::npos) return "";
  return failure.substr(begin + kBefore.size(), end - begin - kBefore.size());
}

}  // namespace

Outcome replay(const GoldenCase &golden_case, const Settings &settings) {
  Outcome outcome;
  const size_t before = cohort_live_handles();
  try {
    outcome.failures = run_case(golden_case, settings);
  } catch (const NoDevice &) {
    return {Verdict::kSkipped, {"its device is not here"}};
  } catch (const Error &error) {
    outcome.failures.push_back(std::string(error.code_text()) + " '" + error.what() + "'");
  } catch (const std::exception &error) {
    outcome.failures.push_back(error.what());
  }
  const size_t after = cohort_live_handles();
  if (after != before)
    outcome.failures.push_back("live handles: expected " + std::to_string(before) + ", found " + std::to_string(after));
  outcome.verdict = outcome.failures.empty() ? Verdict::kPassed : Verdict::kFailed;
  const auto is_lacking = [&](const std::string &failure) {
    return settings.lacking.count(lacking_operator(failure)) > 0;
  };
  if (!outcome.failures.empty() && std::all_of(outcome.failures.begin(), outcome.failures.end(), is_lacking)) {
    return {Verdict::kSkipped, {"no kernel yet for " + lacking_operator(outcome.failures[0])}};
  }
  return outcome;
}

void replay_in_children(const std::vector<GoldenCase> &cases, const Settings &settings, int limit_s,
                        const Report &report) {
  for (size_t i = 0; i < cases.size();) {
    ChildProcess child = start(cases, i, settings);
    Outcome outcome;
    bool gave_up = false;
    while (i < cases.size() && read_outcome(child, limit_s, outcome, &gave_up)) {
      report(cases[i++], outcome);
      outcome = Outcome();
    }
    const std::string end = wait_for_end(child);
    if (gave_up) continue;
    if (i < cases.size()) {  // it ended during this case
      outcome.verdict = Verdict::kFailed;
      if (outcome.failures.empty()) outcome.failures.push_back(end.empty() ? "the process ended" : end);
      report(cases[i++], outcome);
    } else if (!end.empty()) {
      report({"", "after the last case", CaseKind::kScenario, nullptr}, {Verdict::kFailed, {end}});
    }
  }
}

}  // namespace golden
