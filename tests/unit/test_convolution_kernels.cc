// SPDX-License-Identifier: Apache-2.0
// The kernels of convolution and deconvolution, with and without fusion, in every layout.
#include "cpu/op/plain_convolution.hpp"
#include "support/kernel_case.hpp"

using namespace cohort;
using namespace unit;

namespace {

Values convolution_reference(const std::vector<Tensor> &in, int64_t stride, int64_t pad, int64_t dilate,
                             int64_t groups) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t oh = (x[2] + 2 * pad - dilate * (w[2] - 1) - 1) / stride + 1;
  const int64_t ow = (x[3] + 2 * pad - dilate * (w[3] - 1) - 1) / stride + 1;
  Values y;
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t o = 0; o < w[0]; ++o) {
      for (int64_t i = 0; i < oh; ++i) {
        for (int64_t j = 0; j < ow; ++j) {
          double sum = in.size() > 2 ? in[2].values[size_t(o)] : 0;
          for (int64_t c = 0; c < w[1]; ++c) {
            for (int64_t a = 0; a < w[2]; ++a) {
              for (int64_t b = 0; b < w[3]; ++b) {
                const int64_t u = i * stride - pad + a * dilate, v = j * stride - pad + b * dilate;
                if (u < 0 || v < 0 || u >= x[2] || v >= x[3]) continue;
                const int64_t channel = o / (w[0] / groups) * w[1] + c;
                sum += in[0].values[size_t(((n * x[1] + channel) * x[2] + u) * x[3] + v)] *
                       in[1].values[size_t(((o * w[1] + c) * w[2] + a) * w[3] + b)];
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

}  // namespace

TEST(convolution_of_odd_channels) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "5"}, {"pad", "(1,1)"}, {"stride", "(2,2)"}},
         {{2, 3, 7, 6}, {5, 3, 3, 3}, {5}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 2, 1, 1, 1); };
  check_case(c);
}

TEST(convolution_of_full_blocks) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "32"}, {"pad", "(1,1)"}, {"no_bias", "True"}},
         {{2, 16, 6, 5}, {32, 16, 3, 3}},
         nullptr,
         {0, 1}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 1, 1); };
  check_case(c);
}

TEST(convolution_in_the_way_of_winograd) {
  const int64_t num_images = kSanitized ? 1 : 5;
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "32"}, {"pad", "(1,1)"}},
         {{num_images, 32, 15, 14}, {32, 32, 3, 3}, {32}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 1, 1); };
  check_case(c);
  c.shapes.push_back({num_images, 32, 15, 14});  // with an addend and relu
  const std::vector<Tensor> inputs = tensors_of(c);
  Values expected = convolution_reference({inputs[0], inputs[1], inputs[2]}, 1, 1, 1, 1);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + inputs[3].values[i], 0.0);
  Settings s;
  s.dtype = Dtype::kFloat32;
  s.is_train = false;
  s.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, ActivationAttrs::kRelu}};
  for (bool constant : {false, true}) {
    s.constant = constant;
    compare("Convolution after Winograd with post-operations", run_op(c.op, c.attrs, inputs, s).outputs[0], expected,
            1e-4, 1e-4);
  }
}

// Windows of 5 x 5: channels that fill vectors and that do not, tiles that reach beyond the result, padding or none.
TEST(convolution_of_five_by_five_in_the_way_of_winograd) {
  const auto run = [](const Shape &data, int64_t filters, int64_t pad, bool has_bias) {
    Case c{"Convolution",
           {{"kernel", "(5,5)"}, {"num_filter", text(filters)}, {"pad", text('(', pad, ',', pad, ')')}},
           {data, {filters, data[1], 5, 5}}};
    if (has_bias) {
      c.shapes.push_back({filters});
    } else {
      c.attrs["no_bias"] = "True";
    }
    c.reference = [pad](const std::vector<Tensor> &in) { return convolution_reference(in, 1, pad, 1, 1); };
    c.prepare = [](std::vector<Tensor> &in) {  // weights that keep the magnitude of the data, as in trained networks
      for (double &w : in[1].values) w /= 16;
    };
    check_case(c);
  };
  run({16, 16, 7, 3}, 18, 1, /* has_bias */ true);
  if (kSanitized) return;  // would take minutes there, for the same code
  run({8, 20, 12, 11}, 50, 0, /* has_bias */ true);
  run({2, 16, 15, 13}, 32, 2, /* has_bias */ false);
  run({1, 19, 27, 22}, 18, 1, /* has_bias */ true);
}

// MON-11: the same bits whether the activation is fused into the layer or a separate step.
TEST(convolution_in_the_way_of_winograd_is_followed_by_the_same_activation) {
  Case c{"Convolution", {{"kernel", "(5,5)"}, {"num_filter", "18"}}, {{2, 16, 20, 20}, {18, 16, 5, 5}, {18}}};
  const std::vector<Tensor> inputs = tensors_of(c);
  Settings s;
  s.dtype = Dtype::kFloat32;
  s.is_train = false;
  const Values alone = run_op(c.op, c.attrs, inputs, s).outputs[0];
  for (const auto &[name, type] : {std::pair("tanh", ActivationAttrs::kTanh), {"relu", ActivationAttrs::kRelu}}) {
    s.post = {};
    const Values apart = run_op("Activation", {{"act_type", name}}, {{{2, 18, 16, 16}, alone}}, s).outputs[0];
    s.post = {{PostOp::Kind::kActivation, type}};
    CHECK(run_op(c.op, c.attrs, inputs, s).outputs[0] == apart);
  }
}

TEST(convolution_of_an_image) {
  Case c{"Convolution",
         {{"kernel", "(5,5)"}, {"num_filter", "16"}},
         {{2, 1, 9, 8}, {16, 1, 5, 5}, {16}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 0, 1, 1); };
  check_case(c);
}

// 20 filters do not fill vectors of 16; remainders of places and filters, and windows that reach beyond the image.
TEST(convolution_of_an_image_by_filters_that_fill_no_vectors) {
  const auto run = [](const AttrMap &more, const std::vector<Shape> &shapes, int64_t stride, int64_t pad) {
    Case c{"Convolution", {{"kernel", "(5,5)"}}, shapes, nullptr, {0, 1}};
    for (const auto &[name, value] : more) c.attrs[name] = value;
    c.reference = [=](const std::vector<Tensor> &in) { return convolution_reference(in, stride, pad, 1, 1); };
    check_case(c);
  };
  run({{"num_filter", "20"}}, {{3, 1, 12, 15}, {20, 1, 5, 5}, {20}}, 1, 0);
  run({{"num_filter", "37"}, {"pad", "(2,2)"}}, {{2, 1, 7, 8}, {37, 1, 5, 5}, {37}}, 1, 2);
  run({{"num_filter", "6"}, {"pad", "(1,1)"}, {"stride", "(2,2)"}, {"no_bias", "True"}}, {{2, 1, 9, 23}, {6, 1, 5, 5}},
      2, 1);
}

TEST(convolution_of_an_image_by_large_windows) {
  Case c{"Convolution",
         {{"kernel", "(7,7)"}, {"num_filter", "32"}, {"stride", "(2,2)"}},
         {{2, 3, 17, 15}, {32, 3, 7, 7}, {32}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 2, 0, 1, 1); };
  check_case(c);
}

TEST(convolution_from_many_to_odd_channels) {
  Case c{"Convolution",
         {{"kernel", "(1,1)"}, {"num_filter", "10"}},
         {{2, 16, 4, 4}, {10, 16, 1, 1}, {10}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 0, 1, 1); };
  check_case(c);
}

TEST(convolution_in_groups_and_dilated) {
  Case c{"Convolution",
         {{"kernel", "(2,2)"}, {"num_filter", "6"}, {"num_group", "2"}, {"dilate", "(2,2)"}, {"pad", "(1,1)"}},
         {{2, 4, 6, 5}, {6, 2, 2, 2}, {6}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 2, 2); };
  check_case(c);
}

TEST(convolution_of_each_channel_alone) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "32"}, {"num_group", "32"}, {"pad", "(1,1)"}},
         {{2, 32, 5, 5}, {32, 1, 3, 3}, {32}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) { return convolution_reference(in, 1, 1, 1, 32); };
  check_case(c);
}

TEST(convolution_over_one_and_three_axes) {
  check_case({"Convolution",
              {{"kernel", "(3,)"}, {"num_filter", "4"}, {"stride", "(2,)"}, {"pad", "(1,)"}},
              {{2, 3, 8}, {4, 3, 3}, {4}},
              nullptr,
              {0, 1, 2}});
  check_case({"Convolution",
              {{"kernel", "(2,2,2)"}, {"num_filter", "3"}, {"no_bias", "1"}},
              {{1, 2, 4, 3, 4}, {3, 2, 2, 2, 2}},
              nullptr,
              {0, 1}});
}

TEST(convolution_channels_last_by_attribute) {
  check_case({"Convolution",
              {{"kernel", "(3,3)"}, {"num_filter", "4"}, {"num_group", "2"}, {"layout", "NHWC"}},
              {{2, 5, 6, 6}, {4, 3, 3, 3}, {4}},
              nullptr,
              {0, 1, 2}});
}

TEST(convolution_by_columns_of_a_whole_image_takes_no_memory_for_places_and_threads_without_work) {
  const int64_t filters = 8, side = 64, size = side * side;
  const PlainConvolution way(convolution_sizes({1, 1, side, side}, {filters, 1, side, side}, {1, filters, 1, 1}, {1, 1},
                                               {1, 1}, {0, 0}, 1, false),
                             Dtype::kFloat64, 16);
  const size_t weight_bytes = size_t(filters * size) * sizeof(double);
  CHECK(way.forward_scratch_bytes() <= 2 * weight_bytes);
  CHECK(way.weight_scratch_bytes() <= 2 * weight_bytes);
  const std::vector<double> data(size_t(size), 2.0), weight(size_t(filters * size), 3.0), head(size_t(filters), 5.0);
  std::vector<double> result(head.size()), grad(weight.size());
  std::vector<double> scratch(std::max(way.forward_scratch_bytes(), way.weight_scratch_bytes()) / sizeof(double));
  const Lane lane{16, nullptr};
  way.forward(data.data(), weight.data(), nullptr, result.data(), scratch.data(), lane);
  way.backward_weight(head.data(), data.data(), grad.data(), scratch.data(), lane);
  CHECK(result == std::vector<double>(result.size(), 6.0 * double(size)));
  CHECK(grad == std::vector<double>(grad.size(), 10.0));
}

TEST(convolution_fuses_activation_and_sum) {
  Case c{"Convolution",
         {{"kernel", "(3,3)"}, {"num_filter", "16"}, {"pad", "(1,1)"}},
         {{2, 16, 5, 5}, {16, 16, 3, 3}, {16}}};
  for (int filters : {16, 5}) {
    c.attrs["num_filter"] = std::to_string(filters);
    c.shapes = {{2, 16, 5, 5}, {filters, 16, 3, 3}, {filters}, {2, filters, 5, 5}};
    const std::vector<Tensor> inputs = tensors_of(c);
    for (int type :
         {ActivationAttrs::kRelu, ActivationAttrs::kTanh, ActivationAttrs::kSigmoid, ActivationAttrs::kSoftrelu}) {
      Settings s;
      s.is_train = false;
      s.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, type}};
      Values expected = convolution_reference({inputs[0], inputs[1], inputs[2]}, 1, 1, 1, 1);
      for (size_t i = 0; i < expected.size(); ++i) {
        const double x = expected[i] + inputs[3].values[i];
        expected[i] = type == ActivationAttrs::kRelu      ? std::max(x, 0.0)
                      : type == ActivationAttrs::kTanh    ? std::tanh(x)
                      : type == ActivationAttrs::kSigmoid ? 1 / (1 + std::exp(-x))
                                                          : std::log1p(std::exp(x));
      }
      for (Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
        for (const char *layout : {"", "last", "block"}) {
          s.dtype = dtype;
          s.layout = layout;
          compare("Convolution with post-operations " + settings_text(s),
                  run_op("Convolution", c.attrs, inputs, s).outputs[0], expected, 1e-4, 1e-5);
        }
      }
    }
  }
}

// For most of these oneDNN has only its reference implementation.
TEST(convolution_padded_beyond_its_kernel_fuses_as_well) {
  for (int64_t kernel : {1, 2, 3}) {
    for (int64_t filters : {1, 3, 16}) {
      const int64_t pad = kernel + 1, side = 4 + 2 * pad - kernel + 1;
      Case c;
      c.op = "Convolution";
      c.attrs = {{"kernel", text('(', kernel, ',', kernel, ')')},
                 {"pad", text('(', pad, ',', pad, ')')},
                 {"num_filter", text(filters)}};
      c.shapes = {{2, 4, 4, 4}, {filters, 4, kernel, kernel}, {filters}, {2, filters, side, side}};
      const std::vector<Tensor> inputs = tensors_of(c);
      const Values plain = convolution_reference({inputs[0], inputs[1], inputs[2]}, 1, pad, 1, 1);
      for (bool sum : {false, true}) {
        for (bool relu : {false, true}) {
          Settings s;
          s.dtype = Dtype::kFloat32;
          s.is_train = false;
          if (sum) s.post.push_back({PostOp::Kind::kSum, 0});
          if (relu) s.post.push_back({PostOp::Kind::kActivation, ActivationAttrs::kRelu});
          Values expected = plain;
          for (size_t i = 0; i < expected.size(); ++i) {
            if (sum) expected[i] += inputs[3].values[i];
            if (relu) expected[i] = std::max(expected[i], 0.0);
          }
          std::vector<Tensor> given = inputs;
          if (!sum) given.pop_back();
          for (const char *layout : {"", "last"}) {
            s.layout = layout;
            compare("Convolution padded far " + settings_text(s), run_op("Convolution", c.attrs, given, s).outputs[0],
                    expected, 1e-4, 1e-5);
          }
        }
      }
    }
  }
}

TEST(deconvolution_is_the_transposed_convolution) {
  Case c{"Deconvolution",
         {{"kernel", "(3,3)"},
          {"num_filter", "4"},
          {"stride", "(2,2)"},
          {"pad", "(1,1)"},
          {"adj", "(1,1)"},
          {"no_bias", "False"}},
         {{2, 3, 4, 3}, {3, 4, 3, 3}, {4}},
         nullptr,
         {0, 1, 2}};
  c.reference = [](const std::vector<Tensor> &in) {
    const int64_t oh = 8, ow = 6;
    Values y(size_t(2 * 4 * oh * ow));
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t f = 0; f < 4; ++f) {
        for (int64_t i = 0; i < oh * ow; ++i) y[size_t((n * 4 + f) * oh * ow + i)] = in[2].values[size_t(f)];
        for (int64_t ch = 0; ch < 3; ++ch) {
          for (int64_t i = 0; i < 4 * 3 * 9; ++i) {
            const int64_t a = i / 27, b = i / 9 % 3, u = i / 3 % 3, v = i % 3;
            const int64_t row = a * 2 - 1 + u, column = b * 2 - 1 + v;
            if (row < 0 || row >= oh || column < 0 || column >= ow) continue;
            y[size_t(((n * 4 + f) * oh + row) * ow + column)] += in[0].values[size_t(((n * 3 + ch) * 4 + a) * 3 + b)] *
                                                                 in[1].values[size_t(((ch * 4 + f) * 3 + u) * 3 + v)];
          }
        }
      }
    }
    return y;
  };
  check_case(c);
  check_case({"Deconvolution",
              {{"kernel", "(2,2)"}, {"num_filter", "32"}, {"num_group", "2"}, {"stride", "(2,2)"}},
              {{2, 32, 3, 4}, {32, 16, 2, 2}},
              nullptr,
              {0, 1}});
  check_case({"Deconvolution",
              {{"kernel", "(3,3)"}, {"num_filter", "2"}, {"dilate", "(2,2)"}, {"target_shape", "(7,6)"}},
              {{1, 3, 4, 3}, {3, 2, 3, 3}},
              nullptr,
              {0, 1}});
  check_case({"Deconvolution",
              {{"kernel", "(4,)"}, {"num_filter", "3"}, {"stride", "(3,)"}, {"adj", "(2,)"}},
              {{2, 2, 3}, {2, 3, 4}},
              nullptr,
              {0, 1}});
  check_case({"Deconvolution",
              {{"kernel", "(2,3)"}, {"num_filter", "4"}, {"num_group", "2"}, {"layout", "NHWC"}},
              {{2, 3, 4, 6}, {6, 2, 3, 2}},
              nullptr,
              {0, 1}});
}

UNIT_MAIN()
