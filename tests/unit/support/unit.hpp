// SPDX-License-Identifier: Apache-2.0
// Macros of a program in tests/unit: TEST, CHECK, CHECK_THROWS, SKIP, and UNIT_MAIN at its end. It prints the lines
// that CMocka prints, which tests/check/run_tests.sh counts. A program runs all its tests, or those whose names are
// given as arguments.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace unit {

// A sanitizer slows everything down. Under one, tests run every path of the code once and leave out repetitions that
// only try more numbers.
#if defined(UNDER_ASAN) || defined(UNDER_TSAN)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Test {
  const char *name;
  void (*body)();
};

inline std::vector<Test> &tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char *name, void (*body)()) { tests().push_back({name, body}); }
};

template <typename A, typename B>
std::string difference(const char *what, const A &found, const B &expected) {
  std::ostringstream text;
  text.precision(9);
  text << what << ": expected " << expected << ", found " << found;
  return text.str();
}

[[noreturn]] inline void fail(const char *file, int line, const std::string &text) {
  throw Failure(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

inline const char *verdict_of(const Test &test, std::string *text) {
  try {
    test.body();
    return "[       OK ]";
  } catch (const Skip &skip) {
    *text = skip.what();
    return "[  SKIPPED ]";
  } catch (const std::exception &error) {
    *text = error.what();
  } catch (...) {
    *text = "threw something that is no std::exception";
  }
  return "[  FAILED  ]";
}

inline bool wanted(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return true;
  return argc <= 1;
}

inline int run_all(int argc, char **argv) {
  int num_run = 0, num_failed = 0;
  for (const Test &test : tests()) {
    if (!wanted(test.name, argc, argv)) continue;
    ++num_run;
    std::printf("[ RUN      ] %s\n", test.name);
    std::fflush(stdout);
    std::string text;
    const char *verdict = verdict_of(test, &text);
    if (!text.empty()) std::printf("%s\n", text.c_str());
    std::printf("%s %s\n", verdict, test.name);
    std::fflush(stdout);
    num_failed += verdict[3] == 'F';
  }
  if (num_run == 0) std::printf("no test is called so\n");
  return num_failed || num_run == 0 ? 1 : 0;
}

}  // namespace unit

// The name of a test is the sentence it proves: TEST(slices_follow_the_workload) { ... }
#define TEST(name)                                                  \
  static void name();                                               \
  static const unit::Registration name##_registration(#name, name); \
  static void name()

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) unit::fail(__FILE__, __LINE__, #condition " does not hold"); \
  } while (0)

#define CHECK_EQ(found, expected)                                                          \
  do {                                                                                     \
    const auto unit_found = (found);                                                       \
    const auto unit_expected = (expected);                                                 \
    if (!(unit_found == unit_expected))                                                    \
      unit::fail(__FILE__, __LINE__, unit::difference(#found, unit_found, unit_expected)); \
  } while (0)

#define CHECK_NEAR(found, expected, tolerance)                                                     \
  do {                                                                                             \
    const double unit_found = (found), unit_expected = (expected);                                 \
    if (!(unit_found - unit_expected <= (tolerance) && unit_expected - unit_found <= (tolerance))) \
      unit::fail(__FILE__, __LINE__, unit::difference(#found, unit_found, unit_expected));         \
  } while (0)

// The statement throws an error of this type whose text contains the given words.
#define CHECK_THROWS(statement, type, words)                                               \
  do {                                                                                     \
    bool unit_thrown = false;                                                              \
    try {                                                                                  \
      statement;                                                                           \
    } catch (const type &error) {                                                          \
      unit_thrown = true;                                                                  \
      if (std::string(error.what()).find(words) == std::string::npos)                      \
        unit::fail(__FILE__, __LINE__, unit::difference(#statement, error.what(), words)); \
    }                                                                                      \
    if (!unit_thrown) unit::fail(__FILE__, __LINE__, #statement " did not throw " #type);  \
  } while (0)

#define SKIP(reason) throw unit::Skip(reason)

#define UNIT_MAIN() \
  int main(int argc, char **argv) { return unit::run_all(argc, argv); }
