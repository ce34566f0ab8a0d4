// SPDX-License-Identifier: Apache-2.0
// The neural-network kernels of the cpu backend other than convolutions (see test_convolution_kernels).
#include "support/kernel_case.hpp"

using namespace cohort;
using namespace unit;

TEST(fully_connected) {
  for (int64_t rows : {1, 2, 5, 64}) {
    Case c{"FullyConnected", {{"num_hidden", "7"}}, {{rows, 3, 4}, {7, 12}, {7}}, nullptr, {0, 1, 2}};
    c.reference = [](const std::vector<Tensor> &in) {
      Values y;
      for (int64_t i = 0; i < in[0].shape[0]; ++i) {
        for (int64_t j = 0; j < 7; ++j) {
          double sum = in[2].values[size_t(j)];
          for (int64_t k = 0; k < 12; ++k) sum += in[0].values[size_t(i * 12 + k)] * in[1].values[size_t(j * 12 + k)];
          y.push_back(sum);
        }
      }
      return y;
    };
    check_case(c);
  }
  check_case({"FullyConnected",
              {{"num_hidden", "9"}, {"flatten", "False"}, {"no_bias", "True"}},
              {{2, 3, 33}, {9, 33}},
              nullptr,
              {0, 1}});
  check_case({"FullyConnected", {{"num_hidden", "128"}}, {{32, 100}, {128, 100}, {128}}, nullptr, {}});
}

TEST(fully_connected_fuses_activation_and_sum) {
  for (int64_t rows : {1, 3, 40}) {
    Case c{"FullyConnected", {{"num_hidden", "6"}}, {{rows, 50}, {6, 50}, {6}, {rows, 6}}};
    const std::vector<Tensor> inputs = tensors_of(c);
    const std::vector<Tensor> own(inputs.begin(), inputs.begin() + 3);
    Settings s;
    s.is_train = false;
    Values expected = run_op(c.op, c.attrs, own, s).outputs[0];
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + inputs[3].values[i], 0.0);
    s.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, ActivationAttrs::kRelu}};
    for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
      for (bool constant : {false, true}) {
        s.dtype = dtype;
        s.constant = constant;
        compare("FullyConnected with post-operations", run_op(c.op, c.attrs, inputs, s).outputs[0], expected, 1e-4,
                1e-5);
      }
    }
  }
}

TEST(fully_connected_of_an_empty_batch) {
  Settings s;
  s.dtype = Dtype::kFloat32;
  const Results r =
      run_op("FullyConnected", {{"num_hidden", "2"}}, {{{0, 3}, {}}, {{2, 3}, noise(6, 1)}, {{2}, {1, 2}}}, s);
  CHECK(r.outputs[0].empty());
  CHECK(r.grads[1] == Values(6, 0));
  CHECK(r.grads[2] == Values(2, 0));
}

TEST(activations) {
  for (const char *type : {"relu", "sigmoid", "tanh", "softrelu", "softsign"}) {
    check_case({"Activation", {{"act_type", type}}, {{2, 16, 3, 4}}, nullptr, {0}});
    check_case({"Activation", {{"act_type", type}}, {{5, 1001}}, nullptr, {0}});
  }
}

TEST(pooling_of_all_kinds) {
  for (const char *convention : {"valid", "full"}) {
    for (const char *type : {"max", "avg", "sum", "lp"}) {
      for (int64_t channels : {3, 16}) {
        AttrMap attrs = {{"kernel", "(3,2)"},
                         {"stride", "(2,2)"},
                         {"pad", "(1,1)"},
                         {"pool_type", type},
                         {"pooling_convention", convention}};
        if (std::string(type) == "lp") attrs["p_value"] = "2";
        check_case({"Pooling", attrs, {{2, channels, 6, 6}}, nullptr, {0}});
        if (std::string(type) != "avg") continue;
        attrs["count_include_pad"] = "False";
        check_case({"Pooling", attrs, {{2, channels, 6, 6}}, nullptr, {0}});
      }
    }
  }
  for (const char *type : {"max", "avg", "sum"}) {
    check_case({"Pooling", {{"global_pool", "True"}, {"pool_type", type}}, {{2, 16, 3, 5}}, nullptr, {0}});
    check_case({"Pooling", {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pool_type", type}}, {{2, 3, 8}}, nullptr, {0}});
    check_case({"Pooling",
                {{"kernel", "(2,2,2)"}, {"stride", "(2,1,2)"}, {"pad", "(1,0,1)"}, {"pool_type", type}},
                {{1, 2, 4, 4, 3}},
                nullptr,
                {0}});
    check_case({"Pooling",
                {{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pool_type", type}, {"layout", "NHWC"}},
                {{2, 5, 6, 3}},
                nullptr,
                {0}});
    check_case({"Pooling",
                {{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pool_type", type}, {"pooling_convention", "same"}},
                {{2, 3, 7, 8}},
                nullptr,
                {0}});
    check_case({"Pooling_v1",
                {{"kernel", "(3,3)"},
                 {"stride", "(2,2)"},
                 {"pad", "(1,1)"},
                 {"pool_type", type},
                 {"pooling_convention", "full"}},
                {{2, 3, 6, 6}},
                nullptr,
                {0}});
  }
}

TEST(the_first_of_equal_maxima_gets_the_gradient) {
  for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    for (const char *layout : {"", "last", "block"}) {
      Settings s;
      s.dtype = dtype;
      s.layout = layout;
      const Results r = run_op("Pooling", {{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pool_type", "max"}},
                               {{{1, 16, 2, 4}, Values(16 * 8, 0.5)}}, s);
      const Values head = noise(32, 77);
      Values expected;
      for (size_t c = 0; c < 16; ++c) {
        for (double v : {head[2 * c], 0.0, head[2 * c + 1], 0.0, 0.0, 0.0, 0.0, 0.0}) expected.push_back(v);
      }
      compare("ties " + settings_text(s), r.grads[0], expected, 0, 1e-6);
    }
  }
}

namespace {
Case batch_norm(AttrMap attrs, Shape data, int64_t channels) {
  const Shape vector{channels};
  Case c{"BatchNorm", attrs, {data, vector, vector, vector, vector}, nullptr, {0, 2}};
  if (attrs.count("fix_gamma")) c.differentiable = {0, 1, 2};
  c.prepare = [](std::vector<Tensor> &t) {
    for (double &v : t[4].values) v = 1.5 + v;
  };
  return c;
}
}  // namespace

TEST(batch_norm_in_training) {
  for (const char *global : {"False", "True"}) {
    check_case(batch_norm({{"fix_gamma", "False"}, {"use_global_stats", global}}, {3, 5, 4, 3}, 5));
    check_case(batch_norm({{"fix_gamma", "False"}, {"use_global_stats", global}}, {2, 16, 4, 3}, 16));
    check_case(batch_norm({{"use_global_stats", global}}, {2, 16, 4, 3}, 16));
    check_case(batch_norm({{"fix_gamma", "False"}, {"use_global_stats", global}}, {6, 4}, 4));
    check_case(batch_norm({{"fix_gamma", "False"}, {"axis", "-1"}}, {3, 4, 5, 6}, 6));
    check_case(batch_norm({{"fix_gamma", "False"}, {"axis", "2"}}, {3, 4, 5, 6}, 5));
    check_case(batch_norm({{"fix_gamma", "False"}}, {2, 3, 2, 3, 2}, 3));
  }
}

TEST(batch_norm_moves_its_statistics_and_leaves_a_fixed_gamma) {
  const Case c = batch_norm({{"momentum", "0.75"}, {"eps", "0.01"}, {"output_mean_var", "True"}}, {3, 2, 2}, 2);
  const std::vector<Tensor> inputs = tensors_of(c);
  for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16}) {
    Settings s;
    s.dtype = dtype;
    const Results r = run_op(c.op, c.attrs, inputs, s);
    for (size_t channel = 0; channel < 2; ++channel) {
      double mean = 0, variance = 0;
      const auto at = [&](size_t n, size_t i) { return inputs[0].values[(n * 2 + channel) * 2 + i]; };
      for (size_t n = 0; n < 3; ++n) mean += (at(n, 0) + at(n, 1)) / 6;
      for (size_t n = 0; n < 3; ++n) {
        for (size_t i = 0; i < 2; ++i) variance += (at(n, i) - mean) * (at(n, i) - mean) / 6;
      }
      CHECK_NEAR(r.inputs_after[1][channel], inputs[1].values[channel], 1e-6);
      CHECK_NEAR(r.inputs_after[3][channel], 0.75 * inputs[3].values[channel] + 0.25 * mean, 1e-6);
      CHECK_NEAR(r.inputs_after[4][channel], 0.75 * inputs[4].values[channel] + 0.25 * variance, 1e-6);
      CHECK_NEAR(r.outputs[1][channel], mean, 1e-6);
      CHECK_NEAR(r.outputs[2][channel], 1 / std::sqrt(variance + 0.01), 1e-5);
      CHECK_EQ(r.grads[1][channel], 0.0);
    }
  }
}

TEST(batch_norm_fuses_relu_in_training) {
  for (int64_t channels : {5, 16}) {
    Case c = batch_norm({{"fix_gamma", "False"}}, {3, channels, 4, 3}, channels);
    const std::vector<Tensor> inputs = tensors_of(c);
    const Results bare = run_op(c.op, c.attrs, inputs, Settings());
    Values expected = bare.outputs[0];
    Values head = noise(int64_t(expected.size()), 77), masked = head;
    for (size_t i = 0; i < expected.size(); ++i) {
      masked[i] = expected[i] > 0 ? head[i] : 0;
      expected[i] = std::max(expected[i], 0.0);
    }
    Settings s;
    s.post = {{PostOp::Kind::kTrainRelu, ActivationAttrs::kRelu}};
    const Results truth = run_op(c.op, c.attrs, inputs, s);
    compare("BatchNorm with relu float64", truth.outputs[0], expected, 1e-12, 1e-12);
    for (size_t ch = 0; ch < size_t(channels); ++ch) {
      double sum = 0;
      for (size_t n = 0; n < 3; ++n) {
        for (size_t i = 0; i < 12; ++i) sum += masked[(n * size_t(channels) + ch) * 12 + i];
      }
      CHECK_NEAR(truth.grads[2][ch], sum, 1e-9);
    }
    for (const char *layout : {"", "last", "block"}) {
      for (int num_threads : {1, 2}) {
        s.dtype = Dtype::kFloat32;
        s.layout = layout;
        s.num_threads = num_threads;
        const Results r = run_op(c.op, c.attrs, inputs, s);
        compare("BatchNorm with relu " + settings_text(s), r.outputs[0], truth.outputs[0], 1e-4, 1e-5);
        for (size_t i = 0; i < 3; ++i) {
          compare("BatchNorm with relu, gradient " + settings_text(s), r.grads[i], truth.grads[i], 1e-4, 1e-4);
        }
      }
    }
  }
}

TEST(softmax_and_its_relatives) {
  for (const char *op : {"softmax", "log_softmax", "softmin"}) {
    for (const char *axis : {"0", "1", "-1"}) {
      Case c{op, {{"axis", axis}, {"temperature", "0.5"}}, {{3, 5, 7}}, nullptr, {0}};
      c.reference = [op = std::string(op), axis = std::string(axis)](const std::vector<Tensor> &in) {
        const Shape &s = in[0].shape;
        const int a = axis == "0" ? 0 : axis == "1" ? 1 : 2;
        const int64_t inner = s.size(a + 1, 3), cols = s[a];
        Values y(in[0].values.size());
        for (size_t i = 0; i < y.size(); ++i) {
          const int64_t first = int64_t(i) / (inner * cols) * inner * cols + int64_t(i) % inner;
          const double sign = op == "softmin" ? -2 : 2;
          double sum = 0;
          for (int64_t k = 0; k < cols; ++k) sum += std::exp(sign * in[0].values[size_t(first + k * inner)]);
          y[i] = std::exp(sign * in[0].values[i]) / sum;
          if (op == "log_softmax") y[i] = std::log(y[i]);
        }
        return y;
      };
      check_case(c);
    }
    check_case({op, {}, {{4, 1100}}, nullptr, {0}});
    check_case({op, {{"axis", "0"}}, {{6, 300}}, nullptr, {0}});
  }
  check_case({"SoftmaxActivation", {}, {{3, 4, 5}}, nullptr, {0}});
  check_case({"SoftmaxActivation", {{"mode", "channel"}}, {{3, 4, 5}}, nullptr, {0}});
}

TEST(softmax_stops_at_the_length) {
  Case c{"softmax", {{"use_length", "True"}, {"axis", "1"}}, {{2, 4, 2}, {2, 2}}, nullptr, {0}};
  c.prepare = [](std::vector<Tensor> &t) { t[1].values = {4, 1, 0, 2}; };
  c.reference = [](const std::vector<Tensor> &in) {
    Values y(16, 0);
    for (size_t n = 0; n < 2; ++n) {
      for (size_t j = 0; j < 2; ++j) {
        const size_t length = size_t(in[1].values[n * 2 + j]);
        double sum = 0;
        for (size_t k = 0; k < length; ++k) sum += std::exp(in[0].values[(n * 4 + k) * 2 + j]);
        for (size_t k = 0; k < length; ++k) y[(n * 4 + k) * 2 + j] = std::exp(in[0].values[(n * 4 + k) * 2 + j]) / sum;
      }
    }
    return y;
  };
  check_case(c);
}

TEST(leaky_relu_of_all_kinds) {
  for (const char *type : {"leaky", "elu", "selu", "gelu"}) {
    check_case({"LeakyReLU", {{"act_type", type}, {"slope", "0.3"}}, {{2, 16, 3, 4}}, nullptr, {0}});
  }
  check_case({"LeakyReLU", {{"slope", "-0.3"}}, {{2, 16, 3, 4}}, nullptr, {0}});
  for (const Shape &gamma : {Shape{16}, Shape{1}, Shape{2, 16, 3}}) {
    check_case({"LeakyReLU", {{"act_type", "prelu"}}, {{2, 16, 3}, gamma}, nullptr, {0, 1}});
  }
}

TEST(random_slopes_of_leaky_relu_keep_to_their_bounds) {
  Settings s;
  s.dtype = Dtype::kFloat32;
  s.is_train = false;
  const AttrMap attrs = {{"act_type", "rrelu"}, {"lower_bound", "0.2"}, {"upper_bound", "0.4"}};
  compare("rrelu out of training", run_op("LeakyReLU", attrs, {{{2}, {-1, 2}}}, s).outputs[0], {-0.3, 2}, 1e-6, 0);

  // In training: two runs of a kernel draw different numbers, so run_op, which requires repeatable runs, cannot be
  // used.
  StepSpec spec;
  spec.op = "LeakyReLU";
  spec.attrs = get_op("LeakyReLU").parse(attrs).pointer();
  spec.is_train = spec.keep_for_backward = true;
  const TensorSpec tensor{{1000}, Dtype::kFloat32, nullptr};
  spec.inputs = {tensor};
  spec.outputs = {tensor, tensor};
  spec.wanted = {true, true};
  const auto forward = make_kernel(spec);
  std::vector<float> x(1000, -1), y(1000), slopes(1000), dx(1000);
  void *in = x.data(), *grad = dx.data();
  void *outs[] = {y.data(), slopes.data()}, *back[] = {x.data(), nullptr, slopes.data()};
  RandomStream random{5};
  run_kernel(*forward, {&in, outs, nullptr, nullptr, nullptr, &random}, 1);
  spec.op = "_backward_LeakyReLU";
  spec.forward = forward.get();
  spec.inputs = {tensor, tensor, tensor};
  spec.outputs = {tensor};
  spec.wanted = {true};
  run_kernel(*make_kernel(spec), {back, &grad}, 1);
  double mean = 0;
  for (size_t i = 0; i < 1000; ++i) {
    CHECK(y[i] <= -0.2f && y[i] >= -0.4f);
    CHECK_EQ(slopes[i], -y[i]);
    CHECK_EQ(dx[i], y[i]);  // head -1 times the slope, as the output is
    mean += double(y[i]) / 1000;
  }
  CHECK_NEAR(mean, -0.3, 0.01);
}

TEST(layer_norm) {
  for (const char *axis : {"-1", "0", "1"}) {
    const Shape data{4, 6, 37};
    const int64_t length = data[normalize_axis(std::stoi(axis), 3, "axis")];
    check_case({"LayerNorm", {{"axis", axis}, {"eps", "0.01"}}, {data, {length}, {length}}, nullptr, {0, 1, 2}});
  }
  Case c{"LayerNorm", {{"output_mean_var", "True"}}, {{3, 20}, {20}, {20}}};
  const std::vector<Tensor> inputs = tensors_of(c);
  const Results r = run_op(c.op, c.attrs, inputs, Settings());
  for (size_t row = 0; row < 3; ++row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < 20; ++i) mean += inputs[0].values[row * 20 + i] / 20;
    for (size_t i = 0; i < 20; ++i) variance += std::pow(inputs[0].values[row * 20 + i] - mean, 2) / 20;
    CHECK_NEAR(r.outputs[1][row], mean, 1e-12);
    CHECK_NEAR(r.outputs[2][row], std::sqrt(variance + 1e-5), 1e-8);
    CHECK_NEAR(r.outputs[0][row * 20 + 3],
               (inputs[0].values[row * 20 + 3] - mean) / std::sqrt(variance + 1e-5) * inputs[1].values[3] +
                   inputs[2].values[3],
               1e-7);
  }
}

namespace {
Values slice_of(const Values &v, size_t begin, size_t count) {
  return Values(v.begin() + ptrdiff_t(begin), v.begin() + ptrdiff_t(begin + count));
}

// One direction of one layer, from its packed parameters.
Values rnn_reference(const std::string &mode, const std::vector<Tensor> &in, size_t hidden) {
  const size_t time = size_t(in[0].shape[0]), batch = size_t(in[0].shape[1]), inputs = size_t(in[0].shape[2]);
  const size_t gates = (mode == "lstm" ? 4 : mode == "gru" ? 3 : 1) * hidden;
  const Values wx = slice_of(in[1].values, 0, gates * inputs),
               wh = slice_of(in[1].values, gates * inputs, gates * hidden);
  const Values bx = slice_of(in[1].values, gates * (inputs + hidden), gates);
  const Values bh = slice_of(in[1].values, gates * (inputs + hidden) + gates, gates);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  Values y(time * batch * hidden);
  for (size_t n = 0; n < batch; ++n) {
    Values h = slice_of(in[2].values, n * hidden, hidden), c(hidden);
    if (mode == "lstm") c = slice_of(in[3].values, n * hidden, hidden);
    for (size_t t = 0; t < time; ++t) {
      Values x = bx, u = bh, next(hidden);
      for (size_t g = 0; g < gates; ++g) {
        for (size_t i = 0; i < inputs; ++i) x[g] += wx[g * inputs + i] * in[0].values[(t * batch + n) * inputs + i];
        for (size_t i = 0; i < hidden; ++i) u[g] += wh[g * hidden + i] * h[i];
      }
      for (size_t k = 0; k < hidden; ++k) {
        const auto sum = [&](size_t gate) { return x[gate * hidden + k] + u[gate * hidden + k]; };
        if (mode == "lstm") {
          c[k] = sigmoid(sum(1)) * c[k] + sigmoid(sum(0)) * std::tanh(sum(2));
          next[k] = sigmoid(sum(3)) * std::tanh(c[k]);
        } else if (mode == "gru") {
          const double r = sigmoid(sum(0)), z = sigmoid(sum(1));
          next[k] = (1 - z) * std::tanh(x[2 * hidden + k] + r * u[2 * hidden + k]) + z * h[k];
        } else {
          next[k] = mode == "rnn_relu" ? std::max(sum(0), 0.0) : std::tanh(sum(0));
        }
        y[(t * batch + n) * hidden + k] = next[k];
      }
      h = next;
    }
  }
  return y;
}

Case rnn(const std::string &mode, AttrMap attrs, int64_t layers, int64_t directions, int64_t hidden, int64_t out,
         Shape data) {
  attrs.insert({{"mode", mode}, {"num_layers", std::to_string(layers)}, {"state_size", std::to_string(hidden)}});
  if (directions == 2) attrs["bidirectional"] = "True";
  const int64_t gates = (mode == "lstm" ? 4 : mode == "gru" ? 3 : 1) * hidden;
  int64_t count = 0;
  for (int64_t l = 0; l < layers; ++l) {
    count +=
        directions * (gates * ((l == 0 ? data[2] : out * directions) + out + 2) + (out == hidden ? 0 : out * hidden));
  }
  Case c{"RNN", attrs, {data, {count}, {layers * directions, data[1], out}}, nullptr, {0, 1, 2}};
  if (mode == "lstm") c.shapes.push_back({layers * directions, data[1], hidden}), c.differentiable.push_back(3);
  c.visible = attrs.count("state_outputs") ? (mode == "lstm" ? 3 : 2) : 1;
  return c;
}
}  // namespace

TEST(rnn_of_all_cells) {
  for (const char *mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    Case c = rnn(mode, {}, 1, 1, 5, 5, {4, 3, 6});
    c.reference = [mode](const std::vector<Tensor> &in) { return rnn_reference(mode, in, 5); };
    check_case(c);
    check_case(rnn(mode, {{"state_outputs", "True"}}, 2, 2, 4, 4, {3, 2, 5}));
    check_case(rnn(mode, {{"state_outputs", "True"}}, 3, 1, 33, 33, {2, 3, 17}));
  }
}

TEST(rnn_with_projection_and_clipping) {
  check_case(rnn("lstm", {{"state_outputs", "True"}, {"projection_size", "3"}}, 2, 2, 4, 3, {3, 2, 5}));
  check_case(rnn("lstm", {{"lstm_state_clip_min", "-0.2"}, {"lstm_state_clip_max", "0.2"}}, 1, 1, 4, 4, {3, 2, 5}));
}

TEST(rnn_stops_at_the_length_of_each_sequence) {
  for (const char *mode : {"lstm", "gru", "rnn_tanh"}) {
    Case c = rnn(mode, {{"state_outputs", "True"}, {"use_sequence_length", "True"}}, 2, 2, 3, 3, {4, 3, 5});
    c.shapes.push_back({3});
    c.prepare = [](std::vector<Tensor> &t) { t.back().values = {4, 1, 3}; };
    check_case(c);
    // A single sequence, cut to its length, gives the same.
    const std::vector<Tensor> inputs = tensors_of(c);
    const Results whole = run_op("RNN", c.attrs, inputs, Settings());
    std::vector<Tensor> one = inputs;
    one.pop_back();
    one[0] = {{3, 1, 5}, {}};
    for (size_t t = 0; t < 3; ++t) {
      for (size_t i = 0; i < 5; ++i) one[0].values.push_back(inputs[0].values[(t * 3 + 2) * 5 + i]);
    }
    for (size_t s = 2; s < one.size(); ++s) {
      one[s] = {{4, 1, 3}, {}};
      for (size_t l = 0; l < 4; ++l) {
        for (size_t i = 0; i < 3; ++i) one[s].values.push_back(inputs[s].values[(l * 3 + 2) * 3 + i]);
      }
    }
    AttrMap attrs = c.attrs;
    attrs.erase("use_sequence_length");
    const Results cut = run_op("RNN", attrs, one, Settings());
    for (size_t t = 0; t < 4; ++t) {
      for (size_t i = 0; i < 6; ++i) {
        CHECK_NEAR(whole.outputs[0][(t * 3 + 2) * 6 + i], t < 3 ? cut.outputs[0][t * 6 + i] : 0.0, 1e-12);
      }
    }
    for (size_t l = 0; l < 4; ++l) {
      for (size_t i = 0; i < 3; ++i)
        CHECK_NEAR(whole.outputs[1][(l * 3 + 2) * 3 + i], cut.outputs[1][l * 3 + i], 1e-12);
    }
  }
}

UNIT_MAIN()
