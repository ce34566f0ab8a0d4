// SPDX-License-Identifier: Apache-2.0
// Numbers out of range, which kernels on a GPU record and the queue reports: the errors are those of the CPU, also in
// replayed passes, and values computed from such numbers are marked.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kCpu, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1};
const auto seed_anew = CONTROL(cudasim_seed);

NDArray floats(const Shape &shape, const std::vector<float> &values, const Context &context = kCpu) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, kCpu);
  array.write(values.data(), array.bytes());
  return context == kCpu ? array : array.copy_to(context);
}

std::vector<float> range(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(float(i));
  return values;
}

std::vector<float> read(const NDArray &array) {
  const NDArray here = array.copy_to(kCpu);
  std::vector<float> all(size_t(array.size()));
  here.read(all.data(), here.bytes());
  return all;
}

Symbol node(const std::string &op, const AttrMap &attrs, const std::vector<std::string> &inputs) {
  std::vector<Symbol> variables;
  for (const std::string &name : inputs) variables.push_back(Symbol::variable(name));
  return Symbol::create(op, attrs, "node", {}, variables);
}

struct Bound {
  std::vector<NDArray> args;
  std::shared_ptr<Executor> exec;
};

Bound bind_on(const Context &context, const Symbol &symbol, const std::vector<NDArray> &host_args) {
  Bound bound;
  for (const NDArray &arg : host_args) bound.args.push_back(arg.copy_to(context));
  ExecutorOptions options;
  options.context = context;
  const std::vector<GradReq> reqs(host_args.size(), GradReq::kNull);
  bound.exec = Executor::bind(symbol, bound.args, std::vector<NDArray>(host_args.size()), reqs, {}, options);
  return bound;
}

template <typename Fn>
std::string error_of(Fn &&fn) {
  try {
    fn();
  } catch (const Error &error) {
    CHECK_EQ(int(error.code()), int(Code::kExecution));
    return error.what();
  }
  return "no error";
}

// Checks the error of a pass with these inputs, and that a pass with valid ones afterwards succeeds.
void fails_as_on_the_cpu(const std::string &op, const AttrMap &attrs, const std::vector<NDArray> &args, size_t wrong,
                         const NDArray &good, const std::string &expected) {
  std::vector<std::string> names;
  for (size_t i = 0; i < args.size(); ++i) names.push_back("x" + std::to_string(i));
  for (const Context &context : {kCpu, kGpu0}) {
    const Bound bound = bind_on(context, node(op, attrs, names), args);
    for (int i = 0; i < 2; ++i) {
      bound.args[wrong].copy_from(args[wrong]);
      bound.exec->forward(false);
      CHECK_EQ(error_of([&] { bound.exec->outputs()[0].wait(); }), op + " 'node': " + expected);
      bound.args[wrong].copy_from(good);
      bound.exec->forward(false);
      CHECK(!read(bound.exec->outputs()[0]).empty());
    }
  }
}

const NDArray rows() { return floats({5, 3}, range(15)); }

}  // namespace

TEST(the_errors_are_those_of_the_cpu) {
  for (uint64_t seed = 2; seed < 6; ++seed) {
    seed_anew(seed);
    fails_as_on_the_cpu("take", {{"mode", "raise"}}, {rows(), floats({4}, {1, 7, 0, -1})}, 1, floats({4}, {1, 4, 0, 0}),
                        "indices[1]: expected 0 to 4, found 7");
    fails_as_on_the_cpu("gather_nd", {}, {rows(), floats({2, 3}, {1, 2, -5, 0, -4, 2})}, 1,
                        floats({2, 3}, {1, 2, -5, 0, -3, 2}),
                        "indices: expected -3 to 2 along axis 1, found -4 in column 1");
    fails_as_on_the_cpu("scatter_nd", {{"shape", "(4, 2)"}}, {floats({2}, {1, 2}), floats({2, 2}, {0, 3, 0, 2})}, 1,
                        floats({2, 2}, {0, 3, 0, 1}), "indices: expected 0 to 1 along axis 1, found 2 in column 1");
    fails_as_on_the_cpu("_contrib_index_copy", {}, {rows(), floats({2}, {4, 5}), floats({2, 3}, range(6))}, 1,
                        floats({2}, {4, 0}), "index_vector[1]: expected 0 to 4, found 5");
    fails_as_on_the_cpu("SequenceReverse", {{"use_sequence_length", "True"}}, {rows(), floats({3}, {5, 0, -1})}, 1,
                        floats({3}, {5, 0, 1}), "sequence_length[2]: expected 0 to 5, found -1");
    fails_as_on_the_cpu("SequenceLast", {{"use_sequence_length", "True"}}, {rows(), floats({3}, {5, 0, 1})}, 1,
                        floats({3}, {5, 1, 1}), "sequence_length[1]: expected 1 to 5, found 0");
    // Numbers after padding are ignored.
    const NDArray scores = floats({4, 2, 3}, range(24)), labels = floats({2, 2}, {1, 2, 0, 7});
    fails_as_on_the_cpu("CTCLoss", {}, {scores, floats({2, 2}, {1, 2, 2, 3})}, 1, labels,
                        "label[1, 1]: expected 0 to 2, found 3");
    fails_as_on_the_cpu("CTCLoss", {{"blank_label", "last"}}, {scores, floats({2, 2}, {0, -2, 1, -1})}, 1,
                        floats({2, 2}, {0, -1, 1, -1}), "label[0, 1]: expected 0 to 2, found -2");
    fails_as_on_the_cpu("CTCLoss", {{"use_data_lengths", "1"}, {"use_label_lengths", "1"}},
                        {scores, labels, floats({2}, {4, 4.5}), floats({2}, {2, 1})}, 2, floats({2}, {4, 2.5}),
                        "data_lengths[1]: expected 0 to 4, found 4.5");
    fails_as_on_the_cpu("CTCLoss", {{"use_data_lengths", "1"}, {"use_label_lengths", "1"}},
                        {scores, labels, floats({2}, {4, 4}), floats({2}, {-0.5, 1})}, 3, floats({2}, {2, 1}),
                        "label_lengths[0]: expected 0 to 2, found -0.5");
    const NDArray image = floats({2, 4, 4, 4}, range(128));
    const auto regions = [](float second) {
      return floats({3, 5}, {1, 0, 0, 3, 3, second, 0, 0, 2, 2, -1, 0, 0, 2, 2});
    };
    fails_as_on_the_cpu("ROIPooling", {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}}, {image, regions(2)}, 1,
                        regions(0), "rois[1]: expected an image below 2, found 2");
    fails_as_on_the_cpu("_contrib_ROIAlign", {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}}, {image, regions(5)},
                        1, regions(0), "rois[1]: expected an image below 2, found 5");
    const auto turned = [](float second, float width) {
      return floats({3, 6}, {1, 2, 2, 3, 3, 30, second, 2, 2, width, 2, 0, -1, 2, 2, 1e30F, 2, 0});
    };
    const AttrMap of_turned = {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}};
    fails_as_on_the_cpu("_contrib_RROIAlign", of_turned, {image, turned(2, 2)}, 1, turned(0, 2),
                        "rois[1]: expected an image below 2, found 2");
    fails_as_on_the_cpu("_contrib_RROIAlign", of_turned, {image, turned(1, 1e30F)}, 1, turned(0, 2),
                        "rois[1]: expected at most 4096 places along a side of a window, found 5e+29");
    fails_as_on_the_cpu("_contrib_PSROIPooling", {{"output_dim", "1"}, {"pooled_size", "2"}, {"spatial_scale", "1"}},
                        {image, regions(3)}, 1, regions(0), "rois[1]: expected an image below 2, found 3");
    fails_as_on_the_cpu("_contrib_box_encode", {},
                        {floats({1, 3}, {0, 1, 1}), floats({1, 3}, {9, 1, 2}), floats({1, 3, 4}, range(12)),
                         floats({1, 2, 4}, range(8)), floats({4}, {0, 0, 0, 0}), floats({4}, {1, 1, 1, 1})},
                        1, floats({1, 3}, {9, 1, 0}), "matches[0, 2]: expected 0 to 1 where samples is 1, found 2");
    // Rows after the first one of class -1 are not checked.
    const auto labels_of = [](float corner) {
      return floats({2, 3, 5}, {1, .1f, .1f, .4f, .4f, 0,  .2f, .2f,    .3f, .3f, 1,  .5f, .5f, .6f, .6f,
                                0, .1f, .1f, .4f, .4f, -1, -1,  corner, -1,  -1,  -1, 7,   7,   7,   7});
    };
    fails_as_on_the_cpu(
        "_contrib_MultiBoxTarget", {},
        {floats({1, 2, 4}, {0, 0, .5f, .5f, .5f, .5f, 1, 1}), labels_of(.25f), floats({2, 2, 2}, range(8))}, 1,
        labels_of(-1), "label[1, 1, 2]: expected -1 behind class -1, found 0.25");
    fails_as_on_the_cpu("_contrib_MultiProposal",
                        {{"scales", "(1,)"}, {"ratios", "(1,)"}, {"feature_stride", "8"}, {"rpn_post_nms_top_n", "2"}},
                        {floats({2, 2, 2, 3}, range(24)), floats({2, 4, 2, 3}, std::vector<float>(48, 0)),
                         floats({2, 3}, {16, 24, 1, 16, 32, 1})},
                        2, floats({2, 3}, {16, 24, 1, 16, 31.5f, 1}),
                        "im_info[1]: expected an image of at most 16 by 24, found 16 by 32");
  }
}

TEST(a_replayed_graph_reports_input_errors) {
  const auto num_replays = CONTROL(cudasim_num_replays);
  for (uint64_t seed = 2; seed < 6; ++seed) {
    seed_anew(seed);
    const NDArray good = floats({2}, {1, 2}), wrong = floats({2}, {1, 5});
    const Symbol taken = node("take", {{"mode", "raise"}}, {"x", "at"});
    const Symbol net = Symbol::create("sum", {}, "all", {}, {Symbol::create("square", {}, "sq", {}, {taken})});
    const Bound bound = bind_on(kGpu0, net, {rows(), good});
    for (int i = 0; i < 6; ++i) bound.exec->forward(false);
    CHECK_NEAR(read(bound.exec->outputs()[0])[0], 199, 1e-3);
    const uint64_t before = num_replays();
    for (int i = 0; i < 3; ++i) {
      bound.args[1].copy_from(wrong);
      bound.exec->forward(false);
      CHECK_EQ(error_of([&] { bound.exec->outputs()[0].wait(); }),
               std::string("take 'node': indices[1]: expected 0 to 4, found 5"));
      bound.args[1].copy_from(good);
      bound.exec->forward(false);
      CHECK_NEAR(read(bound.exec->outputs()[0])[0], 199, 1e-3);
    }
    CHECK(num_replays() > before);
  }
}

// Refused at once if the error is known by then, else when the array is read.
TEST(everything_computed_from_a_wrong_number_is_marked) {
  for (uint64_t seed = 2; seed < 10; ++seed) {
    seed_anew(seed);
    const Bound first = bind_on(kGpu0, node("take", {{"mode", "raise"}}, {"x", "at"}), {rows(), floats({2}, {9, 1})});
    const Bound second = bind_on(kGpu1, node("square", {}, {"x"}), {floats({2, 3}, range(6))});
    const NDArray beside = floats({2}, {3, 4}, kGpu0);
    const auto copy = [&] {
      second.args[0].copy_from(first.exec->outputs()[0]);
      second.exec->forward(false);
      read(second.exec->outputs()[0]);
    };
    const auto apply = [&] { read(invoke("square", {}, {first.exec->outputs()[0]}, {}, kGpu0)[0]); };
    const auto look = [&] { read(first.exec->outputs()[0]); };
    first.exec->forward(false);
    const NDArray other = invoke("square", {}, {beside}, {}, kGpu0)[0];
    const std::vector<std::function<void()>> ways{copy, apply, look};
    for (size_t i = 0; i < ways.size(); ++i) {  // each in turn is the first to use it
      const std::string error = error_of(ways[(i + seed) % ways.size()]);
      if (error.find("indices[0]: expected 0 to 4, found 9") == std::string::npos)
        unit::fail(__FILE__, __LINE__, error);
    }
    CHECK_NEAR(read(other)[1], 16, 0);
  }
}

TEST(an_applied_operator_reports_its_own_errors_only) {
  for (uint64_t seed = 2; seed < 6; ++seed) {
    seed_anew(seed);
    const NDArray x = rows().copy_to(kGpu0), six = floats({1}, {6}, kGpu0), four = floats({1}, {4}, kGpu0);
    const auto take = [&](const NDArray &at) { return invoke("take", {{"mode", "raise"}}, {x, at}, {}, kGpu0)[0]; };
    const NDArray wrong = take(six), right = take(four);
    for (const auto &error :
         {error_of([&] { read(wrong); }), error_of([&] { read(invoke("square", {}, {wrong}, {}, kGpu0)[0]); })})
      CHECK(error.find("indices[0]: expected 0 to 4, found 6") != std::string::npos);
    CHECK_NEAR(read(right)[2], 14, 0);
  }
}

namespace {

class Throws final : public Kernel {
 public:
  void run(const Args &, const Lane &) const override { throw Error(Code::kExecution, "no more"); }
};

std::unique_ptr<Kernel> take_kernel(const NDArray &x, const NDArray &at, const NDArray &result) {
  StepSpec spec;
  spec.op = "take";
  spec.attrs = get_op(spec.op).parse({{"mode", "raise"}}).pointer();
  spec.context = kGpu0;
  for (const NDArray &array : {x, at}) spec.inputs.push_back({array.shape(), array.dtype(), nullptr});
  spec.constant = {false, false};
  spec.outputs = {{result.shape(), result.dtype(), nullptr}};
  spec.wanted = {true};
  return get_device(kGpu0)->make_kernel(spec);
}

}  // namespace

// The input error comes before the failure of the host step, and does not affect the next program.
TEST(a_failed_program_leaves_no_input_error_behind) {
  for (uint64_t seed = 2; seed < 6; ++seed) {
    seed_anew(seed);
    const NDArray x = rows().copy_to(kGpu0), wrong = floats({1}, {6}, kGpu0), right = floats({1}, {4}, kGpu0);
    const NDArray result = floats({1, 3}, {0, 0, 0}, kGpu0);
    const auto queue = get_device(kGpu0)->create_queue({});
    const auto take = take_kernel(x, right, result);
    const Throws throws;
    void *const good_inputs[] = {x.data(), right.data()}, *const bad_inputs[] = {x.data(), wrong.data()};
    void *const outputs[] = {result.data()};
    const Step fine{take.get(), {good_inputs, outputs}, "take 'fine'"},
        off{take.get(), {bad_inputs, outputs}, "take 'off'"}, last{&throws, {}, "Custom 'host'"};
    const auto owner = std::make_shared<int>(0);
    for (const bool is_wrong : {true, false}) {
      const Step bad[] = {fine, is_wrong ? off : fine, last};
      queue->run({bad, 3, WorkSize::kParallel}, owner);
      CHECK_EQ(error_of([&] { queue->sync(); }),
               std::string(is_wrong ? "take 'off': indices[0]: expected 0 to 4, found 6" : "Custom 'host': no more"));
      queue->run({&fine, 1, WorkSize::kParallel}, owner);
      CHECK_EQ(error_of([&] { queue->sync(); }), std::string("no error"));
    }
    CHECK_NEAR(read(result)[2], 14, 0);
  }
}

UNIT_MAIN()
