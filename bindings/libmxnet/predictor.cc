// SPDX-License-Identifier: Apache-2.0
// MXPred* and MXNDList*: networks that are only run. A predictor is an executor without gradients; predictors that were
// made together, or by reshaping one another, are executors of their own on the same parameters.
#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "mxnet/c_predict_api.h"
#include "ndarray_handle.hpp"

namespace cohort_mxnet {
namespace {

using cohort::Shape;
using Dtypes = std::unordered_map<std::string, cohort_dtype>;
using Shapes = std::unordered_map<std::string, Shape>;
using NamedArrays = std::unordered_map<std::string, cohort::NDArray>;

std::string text_of(const Shape &shape) { return cohort::Attr("", shape).value; }

// A network and its parameters on one context.
struct Network {
  cohort::Symbol symbol;
  cohort::Context context;
  NamedArrays args, aux;
  Dtypes dtypes;  // of arguments, as the caller gave them
};

// The inputs as the caller describes them: their names, and their shapes one after the other.
struct InputList {
  uint32_t num;
  const char *const *names;
  const uint32_t *begins, *lengths;
};

Shapes shapes_of(const InputList &inputs) {
  Shapes shapes;
  if (inputs.num == 0) return shapes;
  required(inputs.names, "input_keys");
  required(inputs.begins, "input_shape_indptr");
  for (uint32_t i = 0; i < inputs.num; ++i) {
    const std::string name = &required(inputs.names[i], "an input's name");
    const uint32_t begin = inputs.begins[i], end = inputs.begins[i + 1];
    if (end < begin || end - begin > COHORT_MAX_AXES)
      fail("input '" + name + "': expected a shape of at most " + std::to_string(COHORT_MAX_AXES) +
           " axes, found input_shape_indptr from " + std::to_string(begin) + " to " + std::to_string(end));
    if (end > begin) required(inputs.lengths, "input_shape_data");
    Shape shape;
    for (uint32_t k = begin; k < end; ++k) shape.push_back(inputs.lengths[k]);
    if (!shapes.emplace(name, std::move(shape)).second) fail("input '" + name + "' is given twice");
  }
  return shapes;
}

// The outputs of inner nodes that the caller names, as the heads of a symbol.
cohort::Symbol select_outputs(const cohort::Symbol &symbol, uint32_t num, const char *const *names) {
  required(names, "output_keys");
  const cohort::Symbol internals = symbol.internals();
  const std::vector<std::string> known = internals.list_outputs();
  std::vector<cohort::Symbol> heads;
  for (uint32_t i = 0; i < num; ++i) {
    const std::string name = &required(names[i], "an output's name");
    auto found = std::find(known.begin(), known.end(), name + "_output");
    if (found == known.end()) found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) fail("the network has no output '" + name + "'");
    heads.push_back(internals.output(static_cast<size_t>(found - known.begin())));
  }
  return cohort::Symbol::group(heads);
}

void load_params(Network &network, const void *bytes, int num_bytes) {
  if (num_bytes < 0) fail("param_size: expected 0 or more, found " + std::to_string(num_bytes));
  if (!bytes) fail("param_bytes is NULL");
  const cohort::Arrays loaded = cohort::Arrays::load_memory(bytes, static_cast<size_t>(num_bytes), network.context);
  for (size_t i = 0; i < loaded.num(); ++i) {
    const std::string name = loaded.name(i);
    NamedArrays *list = name.compare(0, 4, "arg:") == 0   ? &network.args
                        : name.compare(0, 4, "aux:") == 0 ? &network.aux
                                                          : nullptr;
    if (!list) continue;
    cohort::NDArray array = loaded.array(i);
    if (!array) continue;
    const auto dtype = network.dtypes.find(name.substr(4));
    if (dtype != network.dtypes.end() && dtype->second != array.dtype()) array = array.cast(dtype->second);
    (*list)[name.substr(4)] = std::move(array);
  }
}

// Shapes of all arguments, outputs and auxiliary states. Those of parameters help only if those of inputs do not
// suffice.
cohort::Inferred infer_shapes(const Network &network, const Shapes &inputs) {
  const auto infer = [&](bool with_params) {
    cohort::Descs known;
    for (const std::string &name : network.symbol.list_arguments()) {
      const auto input = inputs.find(name);
      if (input != inputs.end()) known.add({name, input->second});
      const auto param = network.args.find(name);
      if (with_params && input == inputs.end() && param != network.args.end()) known.add({name, param->second.shape()});
    }
    return network.symbol.infer_shape(known, /* partial */ with_params);
  };
  cohort::Inferred found = infer(false);
  if (found.complete) return found;
  found = infer(true);
  if (found.complete) return found;
  std::string missing;
  for (const cohort::Desc &desc : found.args.list()) {
    if (desc.shape && std::find(desc.shape->begin(), desc.shape->end(), 0) == desc.shape->end()) continue;
    missing += (missing.empty() ? "'" : ", '") + desc.name + "'";
  }
  fail("the shapes of the inputs do not determine those of " + (missing.empty() ? "all arrays" : missing));
}

// Inputs are float32 unless the caller says otherwise, parameters what they were loaded as, and the rest follows.
cohort::Inferred infer_dtypes(const Network &network, const Shapes &inputs) {
  cohort::Descs known;
  const auto add = [&](const std::string &name, cohort_dtype dtype) { known.add(cohort::Desc::of_dtype(name, dtype)); };
  for (const std::string &name : network.symbol.list_arguments()) {
    const auto given = network.dtypes.find(name);
    const auto param = network.args.find(name);
    if (given != network.dtypes.end()) {
      add(name, given->second);
    } else if (inputs.count(name)) {
      add(name, COHORT_DTYPE_FLOAT32);
    } else if (param != network.args.end()) {
      add(name, param->second.dtype());
    }
  }
  return network.symbol.infer_dtype(known, /* partial */ true);
}

cohort_dtype known_or_float32(cohort_dtype dtype) { return dtype == COHORT_DTYPE_NONE ? COHORT_DTYPE_FLOAT32 : dtype; }

class Predictor : public Object {
 public:
  static constexpr Kind kKind = Kind::kPredictor;
  static constexpr const char *kName = "a predictor";

  Predictor(std::shared_ptr<const Network> network, Shapes inputs, int32_t num_threads)
      : Object(kKind), network_(std::move(network)), inputs_(std::move(inputs)), num_threads_(num_threads) {
    const cohort::Inferred shapes = infer_shapes(*network_, inputs_);
    const cohort::Inferred dtypes = infer_dtypes(*network_, inputs_);
    const std::vector<cohort::NDArray> args = arrays_for(shapes.args, dtypes.args, network_->args, "argument");
    const std::vector<cohort::NDArray> aux = arrays_for(shapes.aux, dtypes.aux, network_->aux, "auxiliary state");
    const std::vector<std::string> names = network_->symbol.list_arguments();
    for (size_t i = 0; i < names.size(); ++i) args_.emplace(names[i], args[i]);
    cohort::ExecutorOptions options;
    options.num_threads = num_threads_;
    executor_ = cohort::Executor::bind(network_->symbol, network_->context, args, {}, {}, aux, options);
    for (const cohort::Desc &desc : shapes.outputs.list()) {
      outputs_.emplace_back();
      for (const int64_t length : *desc.shape) outputs_.back().shape.push_back(static_cast<uint32_t>(length));
      outputs_.back().dtype = known_or_float32(dtypes.outputs.at(outputs_.size() - 1).dtype);
    }
  }

  std::shared_ptr<Predictor> reshape(const Shapes &changed) {
    Shapes inputs = inputs_;
    for (const auto &[name, shape] : changed) inputs[name] = shape;
    auto made = std::make_shared<Predictor>(network_, std::move(inputs), num_threads_);
    made->set_monitor(callback_, callback_handle_, monitor_all_);
    return made;
  }

  void set_input(const char *name, const float *data, uint32_t num) {
    const auto found = args_.find(name);
    if (found == args_.end()) fail("the network has no input '" + std::string(name) + "'");
    cohort::NDArray &array = found->second;
    if (network_->args.count(name) && !inputs_.count(name) && network_.use_count() > 1)
      fail("'" + std::string(name) + "' is a parameter that other predictors use, too");
    if (array.size() != int64_t{num})
      fail("input '" + std::string(name) + "': expected " + std::to_string(array.size()) + " elements of shape " +
           text_of(array.shape()) + ", found " + std::to_string(num));
    if (num != 0) required(data, "data");
    array.write(data, array.bytes());
  }

  void forward() {
    executor_.forward();
    was_run_ = true;
  }

  int partial_forward(int step) {
    const int left = executor_.partial_forward(false, step);
    was_run_ = true;
    return left;
  }

  const std::vector<uint32_t> &output_shape(uint32_t index) {
    Output &output = checked_output(index);
    // After a pass the array knows better: shapes can depend on values.
    const cohort::NDArray array = was_run_ ? executor_.array(COHORT_EXECUTOR_OUTPUTS, index) : cohort::NDArray();
    if (!array) return output.shape;
    std::vector<uint32_t> shape;
    for (const int64_t length : array.shape()) shape.push_back(static_cast<uint32_t>(length));
    if (shape != output.shape) output.shape = std::move(shape);
    return output.shape;
  }

  cohort_dtype output_dtype(uint32_t index) { return checked_output(index).dtype; }

  void get_output(uint32_t index, float *data, uint32_t num) {
    checked_output(index);
    const cohort::NDArray array = executor_.array(COHORT_EXECUTOR_OUTPUTS, index);
    if (!array) fail("output " + std::to_string(index) + " has no array before the first forward pass");
    if (array.size() != int64_t{num})
      fail("output " + std::to_string(index) + ": expected room for " + std::to_string(array.size()) +
           " elements of shape " + text_of(array.shape()) + ", found " + std::to_string(num));
    if (num != 0) required(data, "data");
    array.read(data, array.bytes());
  }

  void set_monitor(PredMonitorCallback callback, void *handle, bool monitor_all) {
    cohort::MonitorFunction function;
    if (callback) {
      function = [callback, handle](const std::string &name, const cohort::NDArray &array) {
        callback(name.c_str(), new_ndarray(array), handle);
      };
    }
    executor_.set_monitor(std::move(function), monitor_all);
    callback_ = callback;
    callback_handle_ = handle;
    monitor_all_ = monitor_all;
  }

  // Held by the calls on this predictor. Its callback may make further ones.
  std::recursive_mutex mutex;

 private:
  struct Output {
    std::vector<uint32_t> shape;
    cohort_dtype dtype = COHORT_DTYPE_FLOAT32;
  };

  // Arrays in the order of `shapes`: the parameters themselves where they have the right type, new zeros elsewhere.
  std::vector<cohort::NDArray> arrays_for(const cohort::Descs &shapes, const cohort::Descs &dtypes,
                                          const NamedArrays &params, const std::string &what) const {
    std::vector<cohort::NDArray> arrays;
    for (size_t i = 0; i < shapes.num(); ++i) {
      const cohort::Desc desc = shapes.at(i);
      const auto param = params.find(desc.name);
      const cohort_dtype dtype = dtypes.at(i).dtype;
      if (param == params.end() || inputs_.count(desc.name)) {
        arrays.push_back(cohort::NDArray::zeros(*desc.shape, known_or_float32(dtype), network_->context));
        if (param != params.end() && param->second.shape() == *desc.shape) param->second.copy_to(arrays.back());
        continue;
      }
      if (param->second.shape() != *desc.shape)
        fail(what + " '" + desc.name + "': expected shape " + text_of(*desc.shape) + ", found a parameter of shape " +
             text_of(param->second.shape()));
      const bool fits = dtype == COHORT_DTYPE_NONE || dtype == param->second.dtype();
      arrays.push_back(fits ? param->second : param->second.cast(dtype));
    }
    return arrays;
  }

  Output &checked_output(uint32_t index) {
    if (index >= outputs_.size())
      fail("expected an output below " + std::to_string(outputs_.size()) + ", found " + std::to_string(index));
    return outputs_[index];
  }

  const std::shared_ptr<const Network> network_;
  const Shapes inputs_;
  const int32_t num_threads_;  // 0: those of the processor
  NamedArrays args_;
  cohort::Executor executor_;
  std::vector<Output> outputs_;
  bool was_run_ = false;
  PredMonitorCallback callback_ = nullptr;
  void *callback_handle_ = nullptr;
  bool monitor_all_ = false;
};

// Arrays of a file, converted to float32 when they are asked for.
struct NDList : Object {
  static constexpr Kind kKind = Kind::kNDList;
  static constexpr const char *kName = "a list of arrays";
  struct Entry {
    std::string name;
    std::vector<uint32_t> shape;
    std::vector<float> values;
  };
  explicit NDList(std::vector<Entry> list) : Object(kKind), entries(std::move(list)) {}
  const std::vector<Entry> entries;
};

struct Request {
  const char *json;
  const void *param_bytes;
  int num_param_bytes;
  int dev_type, dev_id;
  InputList inputs;
  uint32_t num_outputs = 0;
  const char *const *outputs = nullptr;
  uint32_t num_dtypes = 0;
  const char *const *dtype_names = nullptr;
  const int *dtypes = nullptr;
};

std::shared_ptr<const Network> load_network(const Request &request) {
  auto network = std::make_shared<Network>();
  network->symbol = cohort::Symbol::from_json(&required(request.json, "symbol_json_str"));
  if (request.num_outputs != 0) network->symbol = select_outputs(network->symbol, request.num_outputs, request.outputs);
  network->context = cohort_context{request.dev_type, request.dev_id};
  if (request.num_dtypes != 0) {
    required(request.dtype_names, "provided_arg_dtype_names");
    required(request.dtypes, "provided_arg_dtypes");
  }
  for (uint32_t i = 0; i < request.num_dtypes; ++i) {
    if (request.dtypes[i] == COHORT_DTYPE_NONE) continue;
    cohort::query<size_t>(cohort_dtype_bytes, request.dtypes[i]);  // refuses unknown ones
    network->dtypes[&required(request.dtype_names[i], "an argument's name")] = request.dtypes[i];
  }
  load_params(*network, request.param_bytes, request.num_param_bytes);
  return network;
}

int create(const Request &request, PredictorHandle *out) {
  return guarded([&] {
    required(out, "out");
    *out = publish(std::make_shared<Predictor>(load_network(request), shapes_of(request.inputs), 0));
  });
}

// Calls `body` with the predictor of a handle, which other threads cannot use meanwhile.
template <typename Body>
int with(PredictorHandle handle, Body body) {
  return guarded([&] {
    const std::shared_ptr<Predictor> predictor = from_handle<Predictor>(handle);
    const std::lock_guard<std::recursive_mutex> lock(predictor->mutex);
    body(*predictor);
  });
}

}  // namespace
}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXPredCreate(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type, int dev_id,
                 uint32_t num_input_nodes, const char **input_keys, const uint32_t *input_shape_indptr,
                 const uint32_t *input_shape_data, PredictorHandle *out) {
  return create({symbol_json_str,
                 param_bytes,
                 param_size,
                 dev_type,
                 dev_id,
                 {num_input_nodes, input_keys, input_shape_indptr, input_shape_data}},
                out);
}

int MXPredCreateEx(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type, int dev_id,
                   const uint32_t num_input_nodes, const char **input_keys, const uint32_t *input_shape_indptr,
                   const uint32_t *input_shape_data, const uint32_t num_provided_arg_dtypes,
                   const char **provided_arg_dtype_names, const int *provided_arg_dtypes, PredictorHandle *out) {
  return create({symbol_json_str,
                 param_bytes,
                 param_size,
                 dev_type,
                 dev_id,
                 {num_input_nodes, input_keys, input_shape_indptr, input_shape_data},
                 0,
                 nullptr,
                 num_provided_arg_dtypes,
                 provided_arg_dtype_names,
                 provided_arg_dtypes},
                out);
}

int MXPredCreatePartialOut(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                           int dev_id, uint32_t num_input_nodes, const char **input_keys,
                           const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                           uint32_t num_output_nodes, const char **output_keys, PredictorHandle *out) {
  return create({symbol_json_str,
                 param_bytes,
                 param_size,
                 dev_type,
                 dev_id,
                 {num_input_nodes, input_keys, input_shape_indptr, input_shape_data},
                 num_output_nodes,
                 output_keys},
                out);
}

int MXPredCreateMultiThread(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                            int dev_id, uint32_t num_input_nodes, const char **input_keys,
                            const uint32_t *input_shape_indptr, const uint32_t *input_shape_data, int num_threads,
                            PredictorHandle *out) {
  return guarded([&] {
    required(out, "out");
    if (num_threads < 1) fail("num_threads: expected 1 or more, found " + std::to_string(num_threads));
    const std::shared_ptr<const Network> network =
        load_network({symbol_json_str,
                      param_bytes,
                      param_size,
                      dev_type,
                      dev_id,
                      {num_input_nodes, input_keys, input_shape_indptr, input_shape_data}});
    const Shapes inputs = shapes_of({num_input_nodes, input_keys, input_shape_indptr, input_shape_data});
    // The host's threads share the processors.
    const auto num_processors = static_cast<int>(cohort::query<size_t>(cohort_num_devices, COHORT_DEVICE_CPU));
    const int32_t threads_each = std::max(1, num_processors / num_threads);
    NewHandles handles;
    for (int i = 0; i < num_threads; ++i) handles.add(std::make_shared<Predictor>(network, inputs, threads_each));
    const std::vector<void *> made = handles.release();
    std::copy(made.begin(), made.end(), out);
  });
}

int MXPredReshape(uint32_t num_input_nodes, const char **input_keys, const uint32_t *input_shape_indptr,
                  const uint32_t *input_shape_data, PredictorHandle handle, PredictorHandle *out) {
  return with(handle, [&](Predictor &predictor) {
    required(out, "out");
    *out = publish(predictor.reshape(shapes_of({num_input_nodes, input_keys, input_shape_indptr, input_shape_data})));
  });
}

int MXPredGetOutputShape(PredictorHandle handle, uint32_t index, uint32_t **shape_data, uint32_t *shape_ndim) {
  return with(handle, [&](Predictor &predictor) {
    required(shape_data, "shape_data");
    required(shape_ndim, "shape_ndim");
    const std::vector<uint32_t> &shape = predictor.output_shape(index);
    *shape_data = const_cast<uint32_t *>(shape.data());
    *shape_ndim = static_cast<uint32_t>(shape.size());
  });
}

int MXPredGetOutputType(PredictorHandle handle, uint32_t out_index, int *out_dtype) {
  return with(handle,
              [&](Predictor &predictor) { required(out_dtype, "out_dtype") = predictor.output_dtype(out_index); });
}

int MXPredSetInput(PredictorHandle handle, const char *key, const float *data, uint32_t size) {
  return with(handle, [&](Predictor &predictor) { predictor.set_input(&required(key, "key"), data, size); });
}

int MXPredForward(PredictorHandle handle) {
  return with(handle, [](Predictor &predictor) { predictor.forward(); });
}

int MXPredPartialForward(PredictorHandle handle, int step, int *step_left) {
  return with(handle, [&](Predictor &predictor) {
    required(step_left, "step_left");
    *step_left = predictor.partial_forward(step);
  });
}

int MXPredGetOutput(PredictorHandle handle, uint32_t index, float *data, uint32_t size) {
  return with(handle, [&](Predictor &predictor) { predictor.get_output(index, data, size); });
}

int MXPredSetMonitorCallback(PredictorHandle handle, PredMonitorCallback callback, void *callback_handle,
                             bool monitor_all) {
  return with(handle, [&](Predictor &predictor) { predictor.set_monitor(callback, callback_handle, monitor_all); });
}

int MXPredFree(PredictorHandle handle) {
  return guarded([&] { free_handle<Predictor>(handle); });
}

int MXNDListCreate(const char *nd_file_bytes, int nd_file_size, NDListHandle *out, uint32_t *out_length) {
  return guarded([&] {
    required(out, "out");
    required(out_length, "out_length");
    required(nd_file_bytes, "nd_file_bytes");
    if (nd_file_size < 0) fail("nd_file_size: expected 0 or more, found " + std::to_string(nd_file_size));
    const cohort::Arrays loaded = cohort::Arrays::load_memory(nd_file_bytes, static_cast<size_t>(nd_file_size));
    std::vector<NDList::Entry> entries;
    for (size_t i = 0; i < loaded.num(); ++i) {
      entries.push_back({loaded.name(i), {}, {}});
      const cohort::NDArray array = loaded.array(i);
      if (!array) continue;
      entries.back().values = array.read<float>();
      for (const int64_t length : array.shape()) {
        if (length > UINT32_MAX) fail("array " + std::to_string(i) + " has an axis of 2^32 elements or more");
        entries.back().shape.push_back(static_cast<uint32_t>(length));
      }
    }
    const auto length = static_cast<uint32_t>(entries.size());
    *out = publish(std::make_shared<NDList>(std::move(entries)));
    *out_length = length;
  });
}

int MXNDListGet(NDListHandle handle, uint32_t index, const char **out_key, const float **out_data,
                const uint32_t **out_shape, uint32_t *out_ndim) {
  return guarded([&] {
    const std::shared_ptr<NDList> list = from_handle<NDList>(handle);
    if (index >= list->entries.size())
      fail("expected an index below " + std::to_string(list->entries.size()) + ", found " + std::to_string(index));
    const NDList::Entry &entry = list->entries[index];
    required(out_key, "out_key") = entry.name.c_str();
    required(out_data, "out_data") = entry.values.data();
    required(out_shape, "out_shape") = entry.shape.data();
    required(out_ndim, "out_ndim") = static_cast<uint32_t>(entry.shape.size());
  });
}

int MXNDListFree(NDListHandle handle) {
  return guarded([&] { free_handle<NDList>(handle); });
}

}  // extern "C"
