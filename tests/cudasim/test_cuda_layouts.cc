// SPDX-License-Identifier: Apache-2.0
// Networks of convolutions on the simulated runtime in 16 bits and TF32: images stay channels last from one end to the
// other, without a change of layout in between, and the numbers are those of the CPU.
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "device_arrays.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "group/group_lockstep.hpp"
#include "group/group_sync.hpp"
#include "plan/plan.hpp"
#include "support/unit.hpp"

using namespace cohort;
using device_tests::values_of;

namespace {

const Context kCpu, kGpu{DeviceType::kGpu, 0};

[[maybe_unused]] const int cudnn_is_there = setenv("CUDASIM_CUDNN", "92600", /* overwrite */ 0);  // with any seed
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device

ComputeTypes narrow(Dtype dtype) {
  ComputeTypes types;
  types.dtype = dtype;
  return types;
}
ComputeTypes tf32() {
  ComputeTypes types;
  types.tf32 = true;
  return types;
}

Symbol node(const std::string &op, const AttrMap &attrs, const std::string &name, const std::vector<Symbol> &inputs) {
  return Symbol::create(op, attrs, name, {}, inputs);
}
Symbol convolution(const std::string &name, const Symbol &data, int filters, int kernel = 3, int stride = 1) {
  const auto pair = [](int n) { return text("(", n, ",", n, ")"); };
  return node("Convolution",
              {{"kernel", pair(kernel)},
               {"stride", pair(stride)},
               {"pad", pair(kernel / 2)},
               {"num_filter", text(filters)},
               {"no_bias", "1"}},
              name, {data});
}
Symbol norm(const std::string &name, const Symbol &data) {
  return node("BatchNorm", {{"fix_gamma", "0"}}, name, {data});
}
Symbol relu(const std::string &name, const Symbol &data) {
  return node("Activation", {{"act_type", "relu"}}, name, {data});
}

// Two blocks like those of ResNet, of which the second halves the images.
Symbol residual_network(bool pools_all) {
  Symbol at = relu("relu0", norm("norm0", convolution("conv0", Symbol::variable("data"), 8)));
  at = node("Pooling", {{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pad", "(1,1)"}, {"pool_type", "max"}}, "pool0",
            {at});
  for (const int block : {1, 2}) {
    const std::string own = text(block, "_");
    Symbol side = convolution("side" + own, at, 8 * block, 1, block);
    if (block > 1) side = norm("sidenorm" + own, side);
    Symbol main = relu("relua" + own, norm("norma" + own, convolution("conva" + own, at, 8 * block, 3, block)));
    main = norm("normb" + own, convolution("convb" + own, main, 8 * block));
    at = relu("relub" + own, node("elemwise_add", {}, "sum" + own, {main, side}));
  }
  const AttrMap pool = pools_all ? AttrMap{{"global_pool", "1"}, {"kernel", "(1,1)"}, {"pool_type", "avg"}}
                                 : AttrMap{{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pool_type", "avg"}};
  at = node("Flatten", {}, "flat", {node("Pooling", pool, "pool1", {at})});
  return node("SoftmaxOutput", {}, "softmax", {node("FullyConnected", {{"num_hidden", "4"}}, "fc", {at})});
}

const Shape kImages{2, 3, 16, 16};

struct Planned {
  Graph graph;
  Inferred inferred;
  Plan plan;
};

Planned planned(const Symbol &symbol, const ComputeTypes &types, int num_replicas = 1) {
  Planned made;
  made.graph = Graph(symbol);
  std::vector<std::pair<std::string, Dtype>> dtypes;
  for (const std::string &name : made.graph.argument_names()) dtypes.emplace_back(name, Dtype::kFloat32);
  infer_shapes(made.graph, {{"data", kImages}}, &made.inferred);
  infer_dtypes(made.graph, dtypes, &made.inferred);
  PlanRequest request;
  request.graph = &made.graph;
  request.inferred = &made.inferred;
  for (const std::string &name : made.graph.argument_names()) {
    const bool learns = name != "data" && name.find("label") == std::string::npos;
    request.grad_reqs.push_back(learns ? GradReq::kWrite : GradReq::kNull);
    request.constants.push_back(learns);
  }
  request.devices = {get_device(kGpu)};
  request.num_replicas = num_replicas;
  request.is_train = request.with_backward = true;
  request.compute_dtype = types.dtype;
  request.tf32 = types.tf32;
  made.plan = compile(request);
  return made;
}

bool begins_with(const std::string &text, const std::string &words) {
  return text.compare(0, words.size(), words) == 0;
}

// The nodes before which the images of the whole batch are converted to another layout, forward or backward.
std::string reorders_of_images(const Plan &plan, bool backward) {
  std::string nodes;
  for (size_t s = backward ? plan.num_forward : 0; s < (backward ? plan.steps.size() : plan.num_forward); ++s) {
    const PlanStep &step = plan.steps[s];
    if (!begins_with(step.label, "reorder") || plan.slots[size_t(step.outputs[0])].spec.shape[0] != kImages[0])
      continue;
    nodes += (nodes.empty() ? "" : " ") + step.label.substr(std::strlen("reorder "));
  }
  return nodes;
}

int count(const Plan &plan, const std::vector<std::string> &kernels) {
  int found = 0;
  for (const PlanStep &step : plan.steps) {
    for (const std::string &kernel : kernels) found += begins_with(step.label, kernel + " '");
  }
  return found;
}

std::map<std::string, int> layouts_of(const Plan &plan) {
  std::map<std::string, int> found;
  for (const PlanStep &step : plan.steps) {
    for (const int v : step.outputs) {
      if (v >= 0 && plan.slots[size_t(v)].spec.layout) ++found[plan.slots[size_t(v)].spec.layout->describe()];
    }
  }
  return found;
}

}  // namespace

TEST(images_of_a_residual_network_change_their_layout_at_its_ends_alone) {
  for (const ComputeTypes &types : {narrow(Dtype::kBfloat16), narrow(Dtype::kFloat16), tf32()}) {
    const Planned all = planned(residual_network(true), types), some = planned(residual_network(false), types);
    CHECK_EQ(reorders_of_images(all.plan, false), std::string("'conv0'"));
    CHECK_EQ(reorders_of_images(all.plan, true), std::string("'conv0'"));  // the argument (BWD-08)
    CHECK_EQ(reorders_of_images(some.plan, false), std::string("'conv0' 'fc'"));
    CHECK_EQ(reorders_of_images(some.plan, true), std::string("'pool1' 'conv0'"));
    const std::map<std::string, int> layouts = layouts_of(all.plan);
    CHECK_EQ(layouts.size(), size_t(1));
    CHECK_EQ(layouts.begin()->first, std::string("NHWC"));
  }
}

// The gradients of the first block's result are added up where the gradient of its relu is computed. Those of the first
// pooling's result are not, as pooling is not point-wise.
TEST(sums_of_gradients_are_fused_with_their_point_wise_reader) {
  for (const ComputeTypes &types : {narrow(Dtype::kBfloat16), ComputeTypes()}) {
    const Planned net = planned(residual_network(true), types);
    CHECK_EQ(count(net.plan, {"_sum_gradients"}), 1);
  }
}

TEST(in_float32_nothing_has_a_layout) {
  for (const bool pools_all : {true, false}) {
    const Planned net = planned(residual_network(pools_all), ComputeTypes());
    CHECK_EQ(count(net.plan, {"reorder"}), 0);
    CHECK(layouts_of(net.plan).empty());
  }
}

// Data are converted once per pass; other conversions between 16 and 32 bits are those of weights, of their gradients,
// and after the last pooling.
TEST(images_between_convolutions_stay_in_16_bits) {
  const Planned net = planned(residual_network(true), narrow(Dtype::kBfloat16));
  for (const PlanStep &step : net.plan.steps) {
    if (!begins_with(step.label, "Cast '") && !begins_with(step.label, "_cast_copy '") &&
        !begins_with(step.label, "_backward_Cast '"))
      continue;
    const Shape &shape = net.plan.slots[size_t(step.outputs[0])].spec.shape;
    if (shape.rank() == 4 && shape[0] == kImages[0] && shape != kImages)
      unit::fail(__FILE__, __LINE__, text(step.label, " casts ", shape));
  }
}

// ---- numbers

namespace {

NDArray random_of(const Shape &shape, uint64_t seed, int steps) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, kCpu);
  array.fill_uniform(-1, 1, seed);
  std::vector<float> values(static_cast<size_t>(shape.size()));
  array.read(values.data(), array.bytes());
  for (float &value : values) value = std::round(value * float(steps)) / float(steps);
  array.write(values.data(), array.bytes());
  return array;
}

std::shared_ptr<Executor> bound(const Symbol &symbol, const ExecutorOptions &options) {
  SimpleBind what;
  what.shapes = {{"data", kImages}};
  what.grad_req.all = "write";
  const std::shared_ptr<Executor> exec = Executor::simple_bind(symbol, what, options);
  for (size_t i = 0; i < exec->args().size(); ++i) {
    const uint64_t seed = i + 1 + (exec->arg_names()[i] == "data" ? 50 * options.batch_part : 0);
    exec->args()[i].copy_from(random_of(exec->args()[i].shape(), seed, 4));
  }
  for (const NDArray &state : exec->aux()) {
    const NDArray ones = NDArray::create(state.shape(), Dtype::kFloat32, kCpu);
    ones.fill(1);
    state.copy_from(ones);
  }
  return exec;
}

// One pass of training on numbers that convolutions in 16 bits and TF32 do not round: outputs, gradients, states. Each
// device has a part of the batch.
std::map<std::string, std::vector<float>> trained(const Symbol &symbol, const std::vector<Context> &contexts,
                                                  const ComputeTypes &types, bool recompute = false) {
  ExecutorOptions options;
  options.compute = types;
  options.seed = 5;
  options.recompute = recompute;
  options.batch_sync = GroupSync::create(symbol, contexts.size());
  std::vector<std::shared_ptr<Executor>> execs;
  std::vector<std::vector<ArraySlice>> heads(contexts.size());
  for (size_t d = 0; d < contexts.size(); ++d) {
    options.context = contexts[d];
    options.batch_part = uint32_t(d);
    execs.push_back(bound(symbol, options));
    for (size_t i = 0; i < execs[d]->outputs().size(); ++i) {
      if (!execs[d]->output_needs_head_gradient(int(i))) continue;
      heads[d].emplace_back(random_of(execs[d]->outputs()[i].shape(), 90 + i, 4).copy_to(contexts[d]));
    }
  }
  forward_all(execs, true);
  backward_all(execs, heads, [](size_t) { return BucketPrograms(); });
  std::map<std::string, std::vector<float>> all;
  for (size_t d = 0; d < contexts.size(); ++d) {
    const Executor &exec = *execs[d];
    const std::string on = text(" on device ", d);
    for (size_t i = 0; i < exec.outputs().size(); ++i) all[exec.output_names()[i] + on] = values_of(exec.outputs()[i]);
    for (size_t i = 0; i < exec.grads().size(); ++i) {
      if (exec.grads()[i].shape().size() > 0)
        all["gradient of " + exec.arg_names()[i] + on] = values_of(exec.grads()[i]);
    }
    for (size_t i = 0; i < exec.aux().size(); ++i) all[exec.aux_names()[i] + on] = values_of(exec.aux()[i]);
  }
  return all;
}

void compare(const std::string &what, const std::map<std::string, std::vector<float>> &found,
             const std::map<std::string, std::vector<float>> &expected, double tolerance) {
  CHECK_EQ(found.size(), expected.size());
  for (const auto &[name, values] : expected) {
    const std::vector<float> &own = found.at(name);
    CHECK_EQ(own.size(), values.size());
    double most = 0;
    for (const float value : values) most = std::max(most, double(std::fabs(value)));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!(std::fabs(double(own[i]) - double(values[i])) <= tolerance * (1 + most)))
        unit::fail(__FILE__, __LINE__,
                   text(what, ": ", name, ", element ", i, ": expected ", values[i], ", found ", own[i]));
    }
  }
}

}  // namespace

// The operator between two convolutions, and the number of reorders that the plan needs. Some belong to the ends: data
// enter and a result leaves; its gradient enters, and the data once more.
TEST(operators_between_convolutions_take_images_as_they_lie) {
  struct Case {
    std::string name;
    Symbol made;
    int forward, backward;
  };
  const Symbol in = convolution("conv0", Symbol::variable("data"), 6), again = convolution("conv1", in, 6);
  const auto one = [&](const std::string &op, const AttrMap &attrs) { return node(op, attrs, "node", {in}); };
  const auto pool = [&](const AttrMap &attrs) {
    AttrMap all = attrs;
    all.insert({{"kernel", "(3,3)"}, {"stride", "(2,2)"}});
    return node("Pooling", all, "node", {in});
  };
  const std::vector<Case> cases{
      {"BatchNorm", norm("node", in), 2, 2},
      {"BatchNorm and relu", relu("relu", norm("node", in)), 2, 2},
      {"BatchNorm of rows", one("BatchNorm", {{"axis", "2"}, {"fix_gamma", "0"}}), 4, 4},
      {"relu", relu("node", in), 2, 2},
      {"sigmoid", one("sigmoid", {}), 2, 2},
      {"clip", one("clip", {{"a_min", "-0.5"}, {"a_max", "2"}}), 2, 2},
      {"chain", node("elemwise_add", {}, "sum", {one("sigmoid", {}), node("tanh", {}, "tanh", {in})}), 2, 2},
      {"LeakyReLU", one("LeakyReLU", {{"slope", "0.5"}}), 2, 2},
      {"LeakyReLU by channels", one("LeakyReLU", {{"act_type", "prelu"}}), 4, 4},
      {"Dropout", one("Dropout", {{"p", "0.4"}}), 2, 2},
      {"Dropout of planes", one("Dropout", {{"p", "0.4"}, {"axes", "(2,3)"}}), 2, 2},
      {"maxima", pool({{"pool_type", "max"}, {"pad", "(1,1)"}}), 2, 2},
      {"means", pool({{"pool_type", "avg"}, {"pad", "(1,1)"}, {"count_include_pad", "0"}}), 2, 2},
      {"norms", pool({{"pool_type", "lp"}, {"p_value", "2"}}), 2, 2},
      {"maxima of full windows", pool({{"pool_type", "max"}, {"pooling_convention", "full"}}), 2, 2},
      // Images of one pixel are the same in both layouts.
      {"means of all", one("Pooling", {{"global_pool", "1"}, {"pool_type", "avg"}, {"kernel", "(1,1)"}}), 1, 1},
      {"sum", node("elemwise_add", {}, "node", {in, again}), 2, 2},
      {"product", node("broadcast_mul", {}, "node", {in, again}), 2, 2},
      {"product by channels",
       node("broadcast_mul", {}, "node", {in, Symbol::variable("factors", {{"__shape__", "(1,6,1,1)"}})}), 4, 4},
      {"sum of three", node("add_n", {}, "node", {in, relu("relu", in), again}), 2, 2},
      {"Concat", node("Concat", {}, "node", {in, again, convolution("conv2", in, 1)}), 2, 2},
      {"Concat of rows", node("Concat", {{"dim", "2"}}, "node", {in, in}), 4, 4},
      {"Cast", node("Cast", {{"dtype", "float32"}}, "back", {one("Cast", {{"dtype", "float64"}})}), 2, 2},
      {"copy", one("_copy", {}), 2, 2},
  };
  for (const Case &of : cases) {
    const Symbol net = convolution("last", of.made, 3);
    const Planned made = planned(net, tf32());
    const auto words = [](const std::string &nodes) {
      return nodes.empty() ? 0 : 1 + int(std::count(nodes.begin(), nodes.end(), ' '));
    };
    if (words(reorders_of_images(made.plan, false)) != of.forward ||
        words(reorders_of_images(made.plan, true)) != of.backward) {
      unit::fail(__FILE__, __LINE__,
                 text(of.name, ": ", reorders_of_images(made.plan, false), "; ", reorders_of_images(made.plan, true)));
    }
    compare(of.name, trained(net, {kGpu}, tf32()), trained(net, {kCpu}, ComputeTypes()), 2e-3);
  }
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(a_residual_network_trains_as_on_the_cpu_and_the_same_each_time) {
  for (const bool pools_all : {true, false}) {
    const Symbol net = residual_network(pools_all);
    const auto expected = trained(net, {kCpu}, ComputeTypes());
    for (const ComputeTypes &types : {narrow(Dtype::kBfloat16), tf32()}) {
      const auto found = trained(net, {kGpu}, types);
      compare(text(types.dtype), found, expected, types.tf32 ? 0x1p-8 : 0x1p-3);
      CHECK(trained(net, {kGpu}, types) == found);
      CHECK(trained(net, {kGpu}, types, /* recompute */ true) == found);
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(norms_over_several_devices_take_images_as_they_lie) {
  const Symbol in = convolution("conv0", Symbol::variable("data"), 6);
  const Symbol norm = node("_contrib_SyncBatchNorm", {{"fix_gamma", "0"}, {"key", "norm"}}, "norm", {in});
  const Symbol net = convolution("last", norm, 3);
  const Planned made = planned(net, tf32(), 2);
  CHECK_EQ(reorders_of_images(made.plan, false), std::string("'conv0' 'last'"));
  CHECK_EQ(reorders_of_images(made.plan, true), std::string("'last' 'conv0'"));
  compare("SyncBatchNorm", trained(net, {kGpu, {DeviceType::kGpu, 1}}, tf32()),
          trained(net, {kCpu, {DeviceType::kCpu, 1}}, ComputeTypes()), 2e-3);
  CHECK_EQ(std::string(reports()), std::string());
}

// Whole and partial squares, with elements of every size.
TEST(transposes_are_those_of_the_cpu) {
  for (const Dtype dtype : {Dtype::kUint8, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    for (const Shape &shape : {Shape{2, 64, 96}, Shape{3, 45, 70}, Shape{1, 8, 33}, Shape{2, 7, 40}}) {
      const NDArray data = random_of(shape, 3, 4), typed = NDArray::create(shape, dtype, kCpu);
      typed.copy_from(data);
      for (const char *const axes : {"(0,2,1)", "(2,1,0)", "(1,2,0)", "(2,0,1)"}) {
        std::vector<std::vector<float>> found;
        for (const Context &context : {kCpu, kGpu})
          found.push_back(values_of(invoke("transpose", {{"axes", axes}}, {typed.copy_to(context)}, {}, context)[0]));
        CHECK(found[0] == found[1]);
      }
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// Rows stay whole, of lengths and at addresses that allow some elements at once, or one.
TEST(rows_that_move_as_a_whole_are_those_of_the_cpu) {
  for (const Dtype dtype : {Dtype::kUint8, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    for (const int64_t length : {1, 2, 6, 8, 20, 64}) {
      for (const int64_t begin : {0, 1, 4}) {
        const Shape shape{2, 5, 3, length};
        const NDArray data = random_of({begin + shape.size()}, 3, 4),
                      typed = NDArray::create(data.shape(), dtype, kCpu);
        typed.copy_from(data);
        std::vector<std::vector<float>> found[4];
        for (const Context &context : {kCpu, kGpu}) {
          const NDArray rows = typed.copy_to(context).slice(begin, begin + shape.size()).reshape(shape);
          const auto note = [&](size_t i, const std::string &op, const AttrMap &attrs) {
            found[i].push_back(values_of(invoke(op, attrs, {rows}, {}, context)[0]));
          };
          note(0, "transpose", {{"axes", "(0,2,1,3)"}});
          note(1, "slice", {{"begin", "(0,1,0,0)"}, {"end", "(2,5,3,None)"}, {"step", "(1,-2,1,1)"}});
          note(1, "slice", {{"begin", "(0,1,0,0)"}, {"end", "(2,5,3,None)"}, {"step", "(1,2,1,1)"}});
          note(2, "reverse", {{"axis", "(1,)"}});
          note(3, "Concat", {{"num_args", "1"}, {"dim", "3"}});
        }
        for (const std::vector<std::vector<float>> &both : found) {
          for (size_t i = 0; i < both.size() / 2; ++i) CHECK(both[i] == both[i + both.size() / 2]);
        }
      }
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

UNIT_MAIN()
