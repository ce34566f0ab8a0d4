// SPDX-License-Identifier: Apache-2.0
// The library reads and writes numbers independently of the locale of its host program.
#include <locale>
#include <string>

#include "base/error.hpp"
#include "executor/executor.hpp"
#include "group/slices.hpp"
#include "op/op.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

// 1.234.567,5
struct Dotted final : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class DottedScope {
 public:
  DottedScope() : before_(std::locale::global(std::locale(std::locale::classic(), new Dotted))) {}
  ~DottedScope() { std::locale::global(before_); }
  DottedScope(const DottedScope &) = delete;
  DottedScope &operator=(const DottedScope &) = delete;

 private:
  const std::locale before_;
};

}  // namespace

TEST(numbers_are_written_as_the_language_writes_them) {
  const DottedScope scope;
  CHECK_EQ(text(1234567, ' ', 0.5, ' ', Shape{1000, 2}), "1234567 0.5 (1000, 2)");
  CHECK_THROWS(split_batch(1000, {1000, 0.5, -1.5}, 3, Rounding::kHalfUp), Error, "[1000, 0.5, -1.5]");
}

TEST(symbols_and_reports_are_the_same_in_every_locale) {
  const auto make = [] {
    const Symbol data = Symbol::variable("data", {{"__shape__", "(2000,1000)"}});
    return Symbol::create("_mul_scalar", {{"scalar", "1000.5"}}, "scaled", {}, {data});
  };
  const auto report = [](const Symbol &symbol) {
    SimpleBind what;
    return Executor::simple_bind(symbol, what, {})->debug_text();
  };
  const std::string json = make().to_json(), expected = report(make());
  const DottedScope scope;
  CHECK_EQ(make().to_json(), json);
  CHECK_EQ(report(Symbol::from_json(json)), expected);
}

UNIT_MAIN()
