// SPDX-License-Identifier: Apache-2.0
// Operators that normalise, resize, sample and align, and linear algebra: cases that golden cases do not hold (indices
// out of range, NaN, labels that do not fit), and refusals.
#include <limits>

#include "support/run_kernel.hpp"

using namespace cohort;
using unit::Array;
using unit::check_close;
using unit::OpRun;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

Array array(const Shape &shape, const std::vector<double> &values, Dtype dtype = Dtype::kFloat64) {
  return Array(shape, dtype, values);
}

Array zeros(const Shape &shape, Dtype dtype = Dtype::kFloat64) {
  return Array(shape, dtype, std::vector<double>(size_t(shape.size()), 0.0));
}

// The code of the error that making or running the operator throws; 0 if it runs.
int refusal(const std::string &op, const AttrMap &attrs, const std::vector<Array> &inputs) {
  try {
    OpRun run(op, attrs, inputs);
  } catch (const Error &e) {
    return int(e.code());
  }
  return 0;
}

}  // namespace

TEST(losses_of_labels_that_do_not_fit_are_zero_and_pass_nothing_back) {
  const Array data = array({2, 1, 3}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
  OpRun run("CTCLoss", {}, {data, array({1, 2}, {1, 1})});  // two equal labels need a blank between: three steps
  check_close("loss", run.outputs()[0], {0}, 0, 0);
  check_close("gradient", run.backward({array({1}, {1})})[0], std::vector<double>(6, 0.0), 0, 0);
}

TEST(labels_and_lengths_out_of_range_are_errors_of_execution) {
  const Array data = zeros({3, 1, 3});
  CHECK_EQ(refusal("CTCLoss", {}, {data, array({1, 2}, {1, 3})}), int(Code::kExecution));
  CHECK_EQ(refusal("CTCLoss", {}, {data, array({1, 2}, {kNaN, 1})}), int(Code::kExecution));
  CHECK_EQ(refusal("CTCLoss", {{"use_data_lengths", "1"}}, {data, array({1, 2}, {1, 2}), array({1}, {4})}),
           int(Code::kExecution));
  CHECK_EQ(refusal("CTCLoss", {{"use_label_lengths", "1"}}, {data, array({1, 2}, {1, 2}), array({1}, {-1})}),
           int(Code::kExecution));
  CHECK_EQ(refusal("CTCLoss", {}, {data, zeros({1, 4})}), int(Code::kShape));
  CHECK_EQ(refusal("CTCLoss", {}, {data, zeros({2, 2})}), int(Code::kShape));
}

TEST(regions_of_no_image_are_errors_or_zeros_and_corners_may_be_anything) {
  const AttrMap attrs{{"pooled_size", "(1, 1)"}, {"spatial_scale", "1"}};
  const Array data = array({1, 1, 2, 2}, {1, 2, 3, 4});
  CHECK_EQ(refusal("ROIPooling", attrs, {data, array({1, 5}, {1, 0, 0, 1, 1})}), int(Code::kExecution));
  CHECK_EQ(refusal("ROIPooling", attrs, {data, array({1, 5}, {kNaN, 0, 0, 1, 1})}), int(Code::kExecution));
  check_close("below", OpRun("ROIPooling", attrs, {data, array({1, 5}, {-1, 0, 0, 1, 1})}).outputs()[0], {0}, 0, 0);
  check_close("huge", OpRun("ROIPooling", attrs, {data, array({1, 5}, {0, -1e30, -1e30, 1e30, 1e30})}).outputs()[0],
              {4}, 0, 0);
  CHECK_EQ(refusal("ROIPooling", {{"pooled_size", "(1,)"}, {"spatial_scale", "1"}}, {data, zeros({1, 5})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(refusal("ROIPooling", attrs, {data, zeros({1, 4})}), int(Code::kShape));
}

TEST(places_outside_of_an_image_and_nan_read_zero) {
  const Array data = array({1, 1, 2, 2}, {1, 2, 3, 4});
  const Array grid = array({1, 2, 1, 4}, {kNaN, 1e30, -1, 1, 0, 0, -1, kNaN});
  check_close("sampled", OpRun("BilinearSampler", {}, {data, grid}).outputs()[0], {0, 0, 1, 0}, 0, 0);
}

TEST(matrices_without_factors_are_errors_of_execution) {
  const Array singular = array({2, 2}, {1, 2, 2, 4});
  CHECK_EQ(refusal("_linalg_inverse", {}, {singular}), int(Code::kExecution));
  CHECK_EQ(refusal("_linalg_potrf", {}, {array({2, 2}, {1, 2, 2, 1})}), int(Code::kExecution));
  CHECK_EQ(refusal("_linalg_potrf", {}, {array({1, 1}, {kNaN})}), int(Code::kExecution));
  check_close("det", OpRun("_linalg_det", {}, {singular}).outputs()[0], {0}, 0, 0);
  CHECK_EQ(refusal("_linalg_det", {}, {zeros({2, 3})}), int(Code::kShape));
  CHECK_EQ(refusal("_linalg_det", {}, {zeros({2, 2}, Dtype::kFloat16)}), int(Code::kDtype));
  CHECK_EQ(refusal("_linalg_gemm2", {}, {zeros({2, 3}), zeros({2, 3})}), int(Code::kShape));
  CHECK_EQ(refusal("_linalg_gemm2", {{"axis", "-1"}}, {zeros({2, 2}), zeros({2, 2})}), int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_linalg_trsm", {}, {zeros({3, 3}), zeros({2, 3})}), int(Code::kShape));
  CHECK_EQ(refusal("_linalg_maketrian", {}, {zeros({5})}), int(Code::kShape));
  CHECK_EQ(refusal("_linalg_extractdiag", {{"offset", "2"}}, {zeros({2, 2})}), int(Code::kShape));
}

TEST(orthogonal_factors_are_orthogonal_and_give_the_matrix_again) {
  const int64_t m = 5, n = 7;
  const Array a(Shape{m, n}, Dtype::kFloat64, unit::spread(m * n, -1, 1));
  const OpRun lq("_linalg_gelqf", {}, {a});
  const std::vector<double> q = lq.outputs()[0].values(), l = lq.outputs()[1].values();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double product = 0;
      for (int64_t k = 0; k < m; ++k) product += l[size_t(i * m + k)] * q[size_t(k * n + j)];
      check_close("L Q", product, a.at(i * n + j), 0, 1e-14);
    }
  }
  std::vector<double> low = unit::spread(m * m, -1, 1, 3);
  const OpRun eigen("_linalg_syevd", {}, {array({m, m}, low)});
  const std::vector<double> u = eigen.outputs()[0].values(), values = eigen.outputs()[1].values();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      double product = 0, dot = 0;
      for (int64_t k = 0; k < m; ++k) {
        product += u[size_t(k * m + i)] * values[size_t(k)] * u[size_t(k * m + j)];
        dot += u[size_t(i * m + k)] * u[size_t(j * m + k)];
      }
      check_close("U^T L U", product, low[size_t(std::max(i, j) * m + std::min(i, j))], 0, 1e-13);
      check_close("U U^T", dot, i == j ? 1 : 0, 0, 1e-14);
    }
  }
  check_close("identity", OpRun("_linalg_syevd", {}, {array({2, 2}, {1, 0, 0, 1})}).outputs()[1], {1, 1}, 0, 0);
  check_close("one", OpRun("_linalg_gelqf", {}, {array({1, 1}, {-3})}).outputs()[1], {-3}, 0, 0);
  CHECK_EQ(refusal("_linalg_gelqf", {}, {zeros({3, 2})}), int(Code::kShape));
  CHECK_EQ(refusal("_linalg_syevd", {}, {zeros({3, 2})}), int(Code::kShape));
  CHECK_EQ(refusal("_linalg_syevd", {}, {array({2, 2}, {kNaN, 0, 0, 1})}), int(Code::kExecution));
}

TEST(spectra_of_any_length_are_those_of_the_definition) {
  for (int64_t n : {1, 2, 3, 5, 8, 12, 17, 64, 100}) {
    const std::vector<double> x = unit::spread(2 * n, -1, 1, int(n));
    std::vector<double> pairs, back;
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t k = 0; k < n; ++k) {
        double real = 0, imaginary = 0;
        for (int64_t j = 0; j < n; ++j) {
          const double angle = 2 * 3.14159265358979323846 * double(j * k % n) / double(n);
          real += x[size_t(row * n + j)] * std::cos(angle);
          imaginary -= x[size_t(row * n + j)] * std::sin(angle);
        }
        pairs.push_back(real);
        pairs.push_back(imaginary);
      }
    }
    for (double v : x) back.push_back(v * double(n));
    const OpRun forward("_contrib_fft", {}, {array({2, n}, x)});
    check_close("fft", forward.outputs()[0], pairs, 0, 1e-12 * double(n));
    check_close("ifft", OpRun("_contrib_ifft", {}, {forward.outputs()[0]}).outputs()[0], back, 0, 1e-11 * double(n));
  }
  unit::check_gradient("_contrib_fft", {}, {array({2, 5}, unit::spread(10, -1, 1))});
  unit::check_gradient("_contrib_ifft", {}, {array({2, 6}, unit::spread(12, -1, 1))});
  CHECK_EQ(refusal("_contrib_ifft", {}, {zeros({2, 5})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_fft", {}, {zeros({2, 5}, Dtype::kInt32)}), int(Code::kDtype));
}

TEST(sketches_add_up_by_place) {
  const Array data = array({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), h = array({1, 4}, {0, 2, 2, 1}),
              s = array({1, 4}, {1, -1, 1, -1});
  OpRun run("_contrib_count_sketch", {{"out_dim", "3"}}, {data, h, s});
  check_close("sketch", run.outputs()[0], {1, -4, 1, 5, -8, 1}, 0, 0);
  check_close("gradient", run.backward({array({2, 3}, {1, 2, 3, 4, 5, 6})})[0], {1, -3, 3, -2, 4, -6, 6, -5}, 0, 0);
  CHECK_EQ(refusal("_contrib_count_sketch", {{"out_dim", "2"}}, {data, h, s}), int(Code::kExecution));
  CHECK_EQ(refusal("_contrib_count_sketch", {{"out_dim", "0"}}, {data, h, s}), int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_contrib_count_sketch", {{"out_dim", "3"}}, {data, array({1, 4}, {0, kNaN, 0, 0}), s}),
           int(Code::kExecution));
}

// MXNet's gradient leaves out the final states; central differences do not.
TEST(likelihoods_of_events_have_the_slopes_of_differences) {
  const std::vector<Array> inputs = {array({2, 2}, {0.5, 0.4, 0.3, 0.2}),
                                     array({2}, {0.1, 0.2}),
                                     array({2}, {1, 2}),
                                     array({2, 2}, {0, 0.1, 0.2, 0.3}),
                                     array({2, 3}, {0.1, 0.2, 0.3, 0.2, 0.1, 0.4}),
                                     array({2, 3}, {0, 1, 0, 1, 1, 0}, Dtype::kInt32),
                                     array({2}, {3, 2}),
                                     array({2}, {1, 2})};
  unit::check_gradient("_contrib_hawkesll", {}, inputs);
  std::vector<Array> wrong = inputs;
  wrong[5] = array({2, 3}, {0, 2, 0, 1, 1, 0}, Dtype::kInt32);
  CHECK_EQ(refusal("_contrib_hawkesll", {}, wrong), int(Code::kExecution));
  wrong[1] = array({3}, {0.1, 0.2, 0.3});
  CHECK_EQ(refusal("_contrib_hawkesll", {}, wrong), int(Code::kShape));
}

// MXNet passes on more than two axes, without a gradient for them.
TEST(a_sparse_regularizer_counts_all_of_a_column) {
  const AttrMap attrs{{"sparseness_target", "0.25"}, {"penalty", "1"}, {"momentum", "0"}};
  const Array data = array({2, 2, 2}, {0.2, 0.4, 0.5, 0.5, 0.6, 0.8, 0.5, 0.5}, Dtype::kFloat32);
  OpRun run("IdentityAttachKLSparseReg", attrs, {data, zeros({2}, Dtype::kFloat32)});
  check_close("output", run.outputs()[0], data.values(), 0, 0);
  check_close("means", run.inputs[1], {0.5, 0.5}, 1e-6, 0);
  const Array head = array({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, Dtype::kFloat32);
  check_close("gradient", run.backward({head})[0], {2, 3, 4, 5, 6, 7, 8, 9}, 1e-6, 0);
  CHECK_EQ(refusal("IdentityAttachKLSparseReg", {}, {zeros({3}, Dtype::kFloat32), zeros({3}, Dtype::kFloat32)}),
           int(Code::kShape));
}

TEST(shapes_and_attributes_that_make_no_sense_are_refused) {
  CHECK_EQ(refusal("InstanceNorm", {}, {zeros({2, 3}), zeros({3}), zeros({3})}), int(Code::kShape));
  CHECK_EQ(refusal("GroupNorm", {{"num_groups", "2"}}, {zeros({2, 3, 4}), zeros({2}), zeros({2})}), int(Code::kShape));
  CHECK_EQ(refusal("L2Normalization", {{"mode", "channel"}}, {zeros({2, 3})}), int(Code::kShape));
  CHECK_EQ(refusal("L2Normalization", {}, {zeros({2, 3}, Dtype::kInt32)}), int(Code::kDtype));
  CHECK_EQ(refusal("LRN", {{"nsize", "0"}}, {zeros({1, 2, 3, 4})}), int(Code::kInvalidArgument));
  CHECK_EQ(refusal("LRN", {{"nsize", "3"}}, {zeros({1, 2, 3})}), int(Code::kShape));
  CHECK_EQ(refusal("Correlation", {{"kernel_size", "2"}}, {zeros({1, 1, 4, 4}), zeros({1, 1, 4, 4})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(refusal("Correlation", {{"max_displacement", "2"}}, {zeros({1, 1, 4, 4}), zeros({1, 1, 4, 4})}),
           int(Code::kShape));
  CHECK_EQ(refusal("UpSampling", {{"scale", "0"}, {"sample_type", "nearest"}}, {zeros({1, 1, 2, 2})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(
      refusal("UpSampling", {{"scale", "2"}, {"sample_type", "nearest"}}, {zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3})}),
      int(Code::kShape));
  CHECK_EQ(
      refusal("UpSampling", {{"scale", "2"}, {"sample_type", "bilinear"}}, {zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3})}),
      int(Code::kShape));
  CHECK_EQ(refusal("GridGenerator", {{"transform_type", "affine"}}, {zeros({1, 6})}), int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_contrib_BilinearResize2D", {{"mode", "odd_scale"}}, {zeros({1, 1, 2, 2})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_contrib_box_iou", {}, {zeros({2, 3}), zeros({2, 4})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_interleaved_matmul_selfatt_qk", {{"heads", "2"}}, {zeros({3, 1, 8})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_interleaved_matmul_selfatt_qk", {{"heads", "0"}}, {zeros({3, 1, 6})}),
           int(Code::kInvalidArgument));
}

UNIT_MAIN()
