// SPDX-License-Identifier: Apache-2.0
#include "model_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "compare.hpp"
#include "model_measures.hpp"
#include "model_values.hpp"

namespace golden {
namespace {

// The digest error from which an operator's output counts as different, when inference has failed.
constexpr double kDifferentOperator = 1e-3;

// A group with the parameters of a run, and its batch.
struct BoundGroup {
  Group group;
  std::vector<NDArray> data, label;
};

class ModelCase {
 public:
  ModelCase(const GoldenCase &golden_case, const Settings &settings)
      : description_(read_json(golden_case.path + "/model.json")),
        shapes_(read_json(golden_case.path + "/shapes.json")),
        files_(golden_case, {{"expected", "expected.params"}, {"checkpoint", "checkpoint-0000.params"}}),
        settings_(settings),
        seed_(static_cast<uint32_t>(description_.at("seed").as_integer())),
        modes_(description_.at("modes").as_texts()) {
    if (!exists(context_of("cpu(0)", settings))) throw NoDevice();
    if (modes_.empty()) return;
    expected_ = read_json(golden_case.path + "/expected.json");
    internals_ = read_json(golden_case.path + "/internals.json");
    for (const Value &input : description_.at("inputs").items())
      inputs_.push_back({input.at("name").as_text(), formula_array(input, seed_)});
  }

  std::vector<std::string> run() {
    const Symbol symbol = load("symbol");
    compare_names(output_names(), symbol, COHORT_SYMBOL_OUTPUTS);
    check_inferred(symbol);
    if (!modes_.empty()) check_formula();
    if (!failures_.empty()) return failures_;
    if (has_mode("eval")) run_eval(symbol);
    for (const std::string &file : description_.get("legacy_symbols").as_texts()) run_legacy(symbol, file);
    if (has_mode("train")) {
      const Symbol trained = description_.find("train_symbol") ? load("train_symbol") : load("symbol");
      run_step(trained, "train", 1);
      if (description_.flag("split2", true)) run_step(trained, "split2", 2);
      if (description_.find("sgd")) run_sgd(trained);
    }
    return failures_;
  }

 private:
  Symbol load_file(const std::string &file) { return Symbol::load(files_.path_of(file)); }
  Symbol load(const std::string &key) { return load_file(description_.at(key).as_text()); }
  bool has_mode(const char *mode) const { return std::count(modes_.begin(), modes_.end(), mode) > 0; }

  void fail(const std::string &what) { failures_.push_back(run_ + what); }
  void compare_number(const std::string &what, double expected, double found, double rtol) {
    std::vector<std::string> differences;
    compare(Value::real(expected), Value::real(found), what, {rtol, 0}, nullptr, differences);
    for (const std::string &difference : differences) fail(difference);
  }

  void compare_names(const std::vector<std::string> &expected, const Symbol &symbol, int32_t list) {
    compare(Value::texts(expected), Value::texts(symbol.names(list)), "names", {}, nullptr, failures_);
  }

  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const Value &output : description_.at("outputs").items()) names.push_back(output.at("name").as_text());
    return names;
  }

  // ---- shapes and types -------------------------------------------------------------------------------------------

  // Compares the shapes and types inferred for all internal outputs, variables included, by name.
  void check_inferred(const Symbol &symbol) {
    const Symbol internals = symbol.internals();
    run_ = "shapes: ";
    for (const Value &one : shapes_.at("cases").items())
      check_inferred_of(internals, one.at("inputs"), Value(), one.at("shapes"));
    run_ = "types: ";
    if (const Value *types = shapes_.find("types"))
      check_inferred_of(internals, Value(), types->at("inputs"), types->at("types"));
    run_.clear();
  }

  void check_inferred_of(const Symbol &internals, const Value &shapes, const Value &types, const Value &expected) {
    const Descs known = known_descs(shapes, types);
    const Inferred inferred = types.is_null() ? internals.infer_shape(known) : internals.infer_dtype(known);
    const std::vector<std::string> names = internals.list_outputs();
    Value found = Value::object();
    for (size_t i = 0; i < names.size(); ++i) {
      const Desc output = inferred.outputs.at(i);
      found.set(names[i], types.is_null() ? Value::integers(output.shape.value_or(Shape()))
                                          : Value::text(dtype_text(output.dtype)));
    }
    std::vector<std::string> differences;
    compare(expected, found, "", {}, nullptr, differences);
    for (const std::string &difference : differences) fail(difference);
  }

  // ---- values -----------------------------------------------------------------------------------------------------

  static bool is_aux(const Value &param) { return param.at("aux").as_bool(); }

  // Checks that the formula still gives the values that the case was made with.
  void check_formula() {
    const auto crc_of_params = [&](const std::string &prefix) {
      uint32_t crc = 0;
      for (const Value &param : description_.at("params").items())
        crc = crc32_update(crc, formula_array(param, seed_, prefix).bytes);
      return crc;
    };
    const auto compare_crc = [&](const char *key, uint32_t found) {
      char text[16];
      std::snprintf(text, sizeof(text), "%08x", found);
      if (description_.at(key).as_text() != text)
        fail(std::string(key) + ": expected " + description_.at(key).as_text() + ", found " + text);
    };
    compare_crc("params_crc32", crc_of_params(""));
    if (description_.find("eval_params_crc32")) compare_crc("eval_params_crc32", crc_of_params("eval_"));
    uint32_t crc = 0;
    for (const NamedArray &input : inputs_) crc = crc32_update(crc, input.array.bytes);
    compare_crc("inputs_crc32", crc);
    if (!std::filesystem::exists(files_.path_of("checkpoint-0000.params"))) return;
    for (const Value &param : description_.at("params").items()) {
      const std::string name = (is_aux(param) ? "aux:" : "arg:") + param.at("name").as_text();
      compare_arrays(formula_array(param, seed_), read_array(files_.array("checkpoint", name)), name, {}, failures_);
    }
  }

  std::vector<std::string> param_names() const {
    std::vector<std::string> names;
    for (const Value &param : description_.at("params").items())
      if (!is_aux(param)) names.push_back(param.at("name").as_text());
    return names;
  }

  Context context(int64_t device) const { return context_of("cpu(" + std::to_string(device) + ")", settings_); }

  // ---- groups -----------------------------------------------------------------------------------------------------

  // The grad_req of each argument of the symbol.
  std::vector<std::string> grad_reqs(const Symbol &symbol) const {
    std::vector<std::string> words;
    const std::vector<std::string> params = param_names();
    for (const std::string &name : symbol.list_arguments()) {
      bool wanted = std::count(params.begin(), params.end(), name) > 0;
      for (const Value &input : description_.at("inputs").items())
        wanted = wanted || (input.at("name").as_text() == name && input.at("grad").as_bool());
      words.push_back(wanted ? "write" : "null");
    }
    return words;
  }

  Descs descs(bool labels) const {
    Value list = Value::list();
    for (const Value &input : description_.at("inputs").items())
      if (input.at("label").as_bool() == labels) list.add(input);
    return make_descs(list);
  }

  BoundGroup bind(const Symbol &symbol, size_t num_devices, bool for_training) {
    std::vector<Context> contexts;
    for (size_t i = 0; i < num_devices; ++i) contexts.push_back(context(static_cast<int64_t>(i)));
    GroupOptions options;
    options.param_names = param_names();
    options.inputs_need_grad = true;
    options.grad_req = grad_reqs(symbol);
    const Value &map = description_.get("group2ctx");
    for (size_t i = 0; !map.is_null() && i < map.keys().size(); ++i)
      options.group2ctx[map.keys()[i]] = {context(map.items()[i].as_integer())};
    BoundGroup bound;
    bound.group = Group(symbol, contexts, descs(false), descs(true), for_training, options);
    set_params(bound.group, for_training ? "" : "eval_");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool is_label = description_.at("inputs").items()[i].at("label").as_bool();
      (is_label ? bound.label : bound.data).push_back(to_device(inputs_[i].array, context(0)));
    }
    return bound;
  }

  void set_params(Group &group, const std::string &prefix) {
    Arrays args, aux;
    for (const Value &param : description_.at("params").items())
      (is_aux(param) ? aux : args)
          .add(param.at("name").as_text(), to_device(formula_array(param, seed_, prefix), context(0)));
    group.set_params(args, aux);
  }

  static void forward(BoundGroup &bound, bool is_train) { bound.group.forward(bound.data, bound.label, is_train); }

  void backward(BoundGroup &bound) {
    std::vector<NDArray> heads;
    const Value &descriptions = description_.get("head_grads");
    for (size_t i = 0; !descriptions.is_null() && i < descriptions.items().size(); ++i)
      heads.push_back(to_device(formula_array(descriptions.items()[i], seed_), context(0)));
    bound.group.backward(heads);
  }

  // ---- runs -------------------------------------------------------------------------------------------------------

  void run_eval(const Symbol &symbol) {
    run_ = "eval: ";
    BoundGroup bound = bind(symbol, 1, false);
    forward(bound, false);
    const size_t before = failures_.size();
    compare_outputs(bound.group, "eval", expected_.at("tolerance").at("eval"));
    if (failures_.size() > before) name_first_difference(bound);
    run_.clear();
  }

  // Checks that a symbol in an older JSON form is the same network.
  void run_legacy(const Symbol &symbol, const std::string &file) {
    const Symbol older = load_file(file);
    const size_t before = failures_.size();
    for (const int32_t list : {COHORT_SYMBOL_ARGUMENTS, COHORT_SYMBOL_AUX, COHORT_SYMBOL_OUTPUTS})
      compare_names(symbol.names(list), older, list);
    check_inferred(older);
    if (has_mode("eval")) run_eval(older);
    for (size_t i = before; i < failures_.size(); ++i) failures_[i].insert(0, file + ": ");
  }

  // Runs forward and backward with the batch split over `num_devices` devices.
  void run_step(const Symbol &symbol, const std::string &run, size_t num_devices) {
    run_ = run + ": ";
    BoundGroup bound = bind(symbol, num_devices, true);
    forward(bound, true);
    const std::vector<double> losses = losses_of(bound);
    backward(bound);
    const Value &expected = expected_.at(run), &train = expected_.at("train"), &tolerance = expected_.at("tolerance");
    const bool same_outputs = num_devices == 1 || expected.at("outputs_same_as_train").as_bool();
    const bool same_grads = num_devices == 1 || expected.at("grads_same_as_train").as_bool();
    compare_outputs(bound.group, same_outputs ? "output" : "split2",
                    tolerance.at(same_outputs ? "output" : "split2_output"));
    if (expected.find("loss")) compare_number("loss", expected.at("loss").as_real(), losses.at(0), loss_rtol("loss"));
    const std::vector<double> expected_losses = expected.get("losses").as_reals();
    for (size_t i = 0; i < expected_losses.size(); ++i)
      compare_number("loss of device " + std::to_string(i), expected_losses[i], losses.at(i), loss_rtol("loss"));
    const bool own_grads = num_devices > 1 && tolerance.find("split2_grad");
    compare_gradients(bound.group, same_grads ? train : expected,
                      tolerance.at(own_grads && !same_grads ? "split2_grad" : "grad"), num_devices);
    if (const Value *aux = expected.find("aux"))
      compare_averages(bound.group, *aux, tolerance.at(num_devices > 1 ? "split2_aux" : "aux"), true);
    run_.clear();
  }

  void run_sgd(const Symbol &symbol) {
    run_ = "sgd: ";
    const Value &sgd = description_.at("sgd"), &expected = expected_.at("sgd"), &tolerance = expected_.at("tolerance");
    BoundGroup bound = bind(symbol, 1, true);
    Value settings = Value::object();
    settings.set("learning_rate", sgd.at("lr"));
    settings.set("momentum", sgd.at("momentum"));
    settings.set("wd", sgd.at("wd"));
    OptimizerObject optimizer = make_sgd(symbol, COHORT_UPDATE_ON_STORE, settings, sgd.at("rescale_grad").as_real());
    for (const std::string &name : param_names()) optimizer.handle.set_mult(name, 1, 1);
    const std::vector<double> losses = expected.get("losses").as_reals();
    for (size_t k = 0; k < static_cast<size_t>(sgd.at("steps").as_integer()); ++k) {
      forward(bound, true);
      if (k < losses.size())
        compare_number("loss of step " + std::to_string(k), losses[k], losses_of(bound).at(0), loss_rtol("sgd_loss"));
      backward(bound);
      bound.group.update(optimizer.handle, optimizer.mode);
    }
    compare_averages(bound.group, expected.at("params"), tolerance.at("sgd_param"), false);
    if (const Value *aux = expected.find("aux")) compare_averages(bound.group, *aux, tolerance.at("sgd_aux"), true);
    run_.clear();
  }

  double loss_rtol(const char *key) const { return expected_.at("tolerance").at(key).as_real(); }

  // ---- comparisons ------------------------------------------------------------------------------------------------

  bool holds_detections(size_t output) const {
    const std::vector<int64_t> list = description_.get("detections").as_integers();
    return std::count(list.begin(), list.end(), static_cast<int64_t>(output)) > 0;
  }

  void compare_outputs(const Group &group, const std::string &prefix, const Value &tolerances) {
    const size_t num = group.num_arrays(COHORT_GROUP_OUTPUTS);
    if (num != tolerances.items().size())
      fail("outputs: expected " + std::to_string(tolerances.items().size()) + ", found " + std::to_string(num));
    for (size_t i = 0; i < std::min(num, tolerances.items().size()); ++i) {
      const std::string name = prefix + ':' + std::to_string(i);
      HostArray expected = read_array(files_.array("expected", name));
      HostArray found = read_array(group.output(i));
      if (holds_detections(i)) {
        blank_rows(expected);
        blank_rows(found);
      }
      const Value &tolerance = tolerances.items()[i];
      compare_arrays(expected, found, run_ + name, {tolerance.at("rtol").as_real(), tolerance.at("atol").as_real()},
                     failures_);
    }
  }

  // One loss per device, from the device's outputs and its slice of the inputs.
  std::vector<double> losses_of(const BoundGroup &bound) const {
    std::vector<double> losses;
    const Value *const loss = description_.find("loss");
    if (!loss) return losses;
    for (size_t device = 0; device < bound.group.num_contexts(); ++device) {
      std::vector<HostArray> outputs;
      for (size_t i = 0; i < bound.group.num_arrays(COHORT_GROUP_OUTPUTS); ++i)
        outputs.push_back(read_array(bound.group.array(COHORT_GROUP_OUTPUTS, i, device)));
      const auto [begin, end] = bound.group.slice(device);
      std::vector<NamedArray> slices;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const double axis = description_.at("inputs").items()[i].number("batch_axis", -1);  // negative: not split
        slices.push_back(
            {inputs_[i].name, axis < 0 ? inputs_[i].array : slice_of(inputs_[i].array, size_t(axis), begin, end)});
      }
      losses.push_back(loss_of(*loss, outputs, slices));
    }
    return losses;
  }

  // Gradients of parameters, summed over the devices, and of inputs, for the whole batch.
  std::vector<NamedArray> gradients_of(const Group &group) const {
    std::vector<NamedArray> gradients;
    const std::vector<std::string> params = group.names(COHORT_GROUP_GRADS);
    for (size_t i = 0; i < params.size(); ++i) {
      const std::vector<NDArray> parts = group.device_arrays(COHORT_GROUP_GRADS, i);
      if (!parts[0]) continue;
      HostArray sum = read_array(parts[0]);
      for (size_t device = 1; device < parts.size(); ++device) {
        const HostArray part = read_array(parts[device]);
        for (int64_t k = 0; k < sum.size(); ++k) {
          const float element = static_cast<float>(sum.real(k) + part.real(k));
          std::memcpy(sum.bytes.data() + size_t(k) * sizeof(float), &element, sizeof(float));
        }
      }
      gradients.push_back({params[i], std::move(sum)});
    }
    size_t index = 0;
    for (const Value &input : description_.at("inputs").items()) {
      if (input.at("label").as_bool()) continue;
      if (input.at("grad").as_bool())
        gradients.push_back({input.at("name").as_text(), read_array(group.merged(COHORT_GROUP_INPUT_GRADS, index))});
      ++index;
    }
    return gradients;
  }

  void compare_gradients(const Group &group, const Value &expected, const Value &tolerance, size_t num_devices) {
    const Value &digests = expected.at("grads"), &zeros = expected.at("zero_grads");
    DigestErrors errors;
    size_t num_found = 0;
    for (const NamedArray &gradient : gradients_of(group)) {
      if (const Value *digest = digests.find(gradient.name)) {
        errors.add(gradient.name, digest->as_reals(), gradient.array);
      } else if (const Value *limit = zeros.find(gradient.name)) {
        const double norm = digest_of(gradient.array)[0];
        if (!(norm <= limit->as_real()))
          fail("gradient of " + gradient.name + ": expected zeros, a norm of at most " + number_text(limit->as_real()) +
               ", found " + number_text(norm));
      } else {
        continue;  // of an input: split runs do not record these
      }
      ++num_found;
    }
    const size_t num_expected = digests.items().size() + zeros.items().size();
    if (num_found != num_expected)
      fail("gradients: expected " + std::to_string(num_expected) + ", found " + std::to_string(num_found) + " of " +
           std::to_string(num_devices) + " devices");
    errors.report(run_ + "gradient of", tolerance, failures_);
  }

  // Compares parameters or auxiliary states, averaged over the devices.
  void compare_averages(const Group &group, const Value &expected, const Value &tolerance, bool aux) {
    const Params params = group.copy_params();
    const Arrays &arrays = aux ? params.aux : params.arg;
    DigestErrors errors;
    for (const std::string &name : expected.keys())
      errors.add(name, expected.at(name).as_reals(), read_array(arrays.array(name)));
    errors.report(run_ + (aux ? "state" : "parameter"), tolerance, failures_);
  }

  // Names the first operator, in order of execution, whose output differs from the recorded digest.
  void name_first_difference(BoundGroup &bound) {
    const Value &expected = internals_.at("eval");
    std::string first;
    bound.group.set_monitor([&](const std::string &name, const NDArray &array) {
      const Value *digest = expected.find(name);
      if (!digest || !first.empty()) return;
      const double error = digest_error(digest->as_reals(), digest_of(read_array(array)));
      if (!(error <= kDifferentOperator)) first = name + " is the first that differs, by " + number_text(error);
    });
    forward(bound, false);
    fail(first.empty() ? "no operator's output differs" : first);
  }

  const Value description_, shapes_;
  CaseFiles files_;
  const Settings settings_;
  const uint32_t seed_;
  const std::vector<std::string> modes_;
  Value expected_, internals_;
  std::vector<NamedArray> inputs_;  // in the order of the description
  std::string run_;                 // prefix of the failure lines
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> run_model_case(const GoldenCase &golden_case, const Settings &settings) {
  return ModelCase(golden_case, settings).run();
}

}  // namespace golden
