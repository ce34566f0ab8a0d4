// SPDX-License-Identifier: Apache-2.0
#include "optimizer_case.hpp"

#include <cstring>
#include <map>

#include "compare.hpp"

namespace golden {
namespace {

Attrs attrs_of(const Value &settings, const std::string &without = "") {
  Attrs attrs;
  for (const std::string &key : settings.keys())
    if (key != without) attrs.emplace_back(key, settings.at(key).as_text());
  return attrs;
}

class OptimizerCase {
 public:
  OptimizerCase(const GoldenCase &golden_case, const Settings &settings)
      : description_(read_json(golden_case.path + "/optimizer.json")),
        files_(golden_case, {{"arrays", "arrays.params"}}),
        context_(context_of("cpu(0)", settings)),
        params_(description_.at("params").as_texts()),
        tolerance_{description_.number("rtol", 0), description_.number("atol", 0)},
        state_tolerance_{description_.number("state_rtol", tolerance_.rtol),
                         description_.number("state_atol", tolerance_.atol)} {
    if (!exists(context_)) throw NoDevice();
  }

  // Runs all steps with one optimizer; then again, with a second optimizer that loads the states of the first halfway.
  std::vector<std::string> run() {
    run_once(-1, "");
    run_once(description_.at("steps").as_integer() / 2, "after states were loaded, ");
    return failures_;
  }

 private:
  Optimizer create() const {
    Optimizer made(description_.at("optimizer").as_text(), attrs_of(description_.at("settings")));
    const Value &schedule = description_.get("schedule");
    if (!schedule.is_null()) made.set_lr_schedule(schedule.at("name").as_text(), attrs_of(schedule, "name"));
    for (const std::string &param : params_) {
      const auto mult = [&](const char *which) {
        const Value &all = description_.get(which);
        return all.is_null() ? -1 : all.number(param, -1);
      };
      made.set_mult(param, mult("lr_mult"), mult("wd_mult"));
    }
    return made;
  }

  void run_once(int64_t saved_after, const std::string &prefix) {
    Optimizer optimizer = create();
    std::map<std::string, NDArray> weights;
    for (const std::string &param : params_) weights[param] = input("weight:0:" + param);
    const int64_t steps = description_.at("steps").as_integer();
    for (int64_t step = 1; step <= steps; ++step) {
      if (step - 1 == saved_after) {
        const std::string states = optimizer.save_states_memory();
        optimizer = create();
        optimizer.load_states_memory(states);
      }
      const std::string at = ":" + std::to_string(step) + ":";
      for (const std::string &param : params_) {
        optimizer.update(param, weights[param], input("grad" + at + param));
        compare_with("weight" + at + param, weights[param], tolerance_, prefix);
      }
    }
    compare_states(optimizer.save_states_memory(), prefix);
  }

  // Saved states end with a .params file, which is found by its magic number.
  void compare_states(const std::string &states, const std::string &prefix) {
    const char magic[] = "\x12\x01\0\0\0\0\0\0\0\0\0\0\0\0\0";  // 16 bytes with the ending zero
    const size_t begin = states.find(std::string(magic, sizeof(magic)));
    if (begin == std::string::npos) return failures_.push_back(prefix + "states: there are no arrays");
    const Arrays arrays = Arrays::load_memory(states.data() + begin, states.size() - begin);
    for (const std::string &param : params_) {
      int64_t number = 0;
      for (const Value &name : description_.at("states").items()) {
        const std::string own = std::to_string(number++) + "/0/" + param;
        if (name.is_null()) continue;  // MXNet keeps no such state
        compare_with("state:" + name.as_text() + ":" + param, arrays.array(own), state_tolerance_, prefix);
      }
    }
  }

  NDArray input(const std::string &name) { return files_.array("arrays", name).copy(context_); }

  void compare_with(const std::string &name, const NDArray &found, const Tolerance &tolerance,
                    const std::string &prefix) {
    compare_arrays(read_array(files_.array("arrays", name)), read_array(found), prefix + name, tolerance, failures_);
  }

  const Value description_;
  CaseFiles files_;
  const Context context_;
  const std::vector<std::string> params_;
  const Tolerance tolerance_, state_tolerance_;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> run_optimizer_case(const GoldenCase &golden_case, const Settings &settings) {
  return OptimizerCase(golden_case, settings).run();
}

}  // namespace golden
