// SPDX-License-Identifier: Apache-2.0
// Kernels of op/random_pdf.hpp.
#pragma once

#include "op/random_pdf.hpp"

#include <algorithm>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "op/random_pdf_math.hpp"

namespace cohort {
namespace {

// `rows` sets of parameters, with `each` samples for every set.
struct PdfRows {
  int64_t rows, each;
  bool is_log;

  PdfRows(const StepSpec &spec, const Shape &samples, const Shape &parameters)
      : rows(parameters.size()), each(rows > 0 ? samples.size() / rows : 0), is_log(spec.attrs_as<PdfAttrs>().is_log) {}
};

template <typename Backend, typename D, typename C>
class Pdf {
 public:
  explicit Pdf(StepSpec &spec) : rows_(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, rows_.rows, 1 + Backend::kExpensiveGrain / (rows_.each + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row) {
                              const C p[2] = {in[1][row], D::kParameters > 1 ? in[D::kParameters][row] : C(0)};
                              for (int64_t i = row * rows_.each; i < (row + 1) * rows_.each; ++i) {
                                const C density = D::log_of(in[0][i], p);
                                out[0][i] = rows_.is_log ? density : std::exp(density);
                              }
                            }
                          });
  }

 private:
  const PdfRows rows_;
};

template <typename Backend, typename D, typename C>
class PdfBackward {
 public:
  explicit PdfBackward(StepSpec &spec) : rows_(spec, spec.inputs[1].shape, spec.inputs[2].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, rows_.rows, 1 + Backend::kExpensiveGrain / (rows_.each + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row) {
                              const C p[2] = {in[2][row], D::kParameters > 1 ? in[1 + D::kParameters][row] : C(0)};
                              C sums[2] = {0, 0};
                              for (int64_t i = row * rows_.each; i < (row + 1) * rows_.each; ++i) {
                                C dx, dp[2] = {0, 0};
                                D::slopes(in[1][i], p, &dx, dp);
                                const C head = rows_.is_log ? in[0][i] : in[0][i] * std::exp(D::log_of(in[1][i], p));
                                if (out[0]) out[0][i] = head * dx;
                                sums[0] += head * dp[0];
                                sums[1] += head * dp[1];
                              }
                              for (int k = 0; k < D::kParameters; ++k) {
                                if (out[1 + k]) out[1 + k][row] = sums[k];
                              }
                            }
                          });
  }

 private:
  const PdfRows rows_;
};

// Log density of samples x with concentrations a along the last axis: sum of (a - 1) log(x), plus log gamma of the
// sum of a, minus the sum of log gamma of each a.
struct DirichletRows {
  int64_t rows, each, cols;
  bool is_log;

  DirichletRows(const StepSpec &spec, const Shape &samples, const Shape &alpha)
      : cols(alpha[alpha.rank() - 1]), is_log(spec.attrs_as<PdfAttrs>().is_log) {
    rows = alpha.size(0, alpha.rank() - 1);
    each = rows > 0 ? samples.size(0, samples.rank() - 1) / rows : 0;
  }
  template <typename C>
  COHORT_HOST_DEVICE C log_of(const C *x, const C *a) const {
    C sum = 0, result = 0;
    for (int64_t c = 0; c < cols; ++c) {
      sum += a[c];
      result += (a[c] - 1) * std::log(x[c]) - pointwise::gammaln_of(a[c]);
    }
    return result + pointwise::gammaln_of(sum);
  }
};

template <typename Backend, typename C>
class DirichletPdf {
 public:
  explicit DirichletPdf(StepSpec &spec) : rows_(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, rows_.rows * rows_.each, 1 + Backend::kExpensiveGrain / 8 / (rows_.cols + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const C density =
                                  rows_.log_of(in[0] + i * rows_.cols, in[1] + i / rows_.each * rows_.cols);
                              out[0][i] = rows_.is_log ? density : std::exp(density);
                            }
                          });
  }

 private:
  const DirichletRows rows_;
};

template <typename Backend, typename C>
class DirichletPdfBackward {
 public:
  explicit DirichletPdfBackward(StepSpec &spec) : rows_(spec, spec.inputs[1].shape, spec.inputs[2].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(
        lane, rows_.rows, 1 + Backend::kExpensiveGrain / 8 / (rows_.each * rows_.cols + 1),
        [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const C *const a = in[2] + row * rows_.cols;
            C *const da = out[1] ? out[1] + row * rows_.cols : nullptr;
            C sum = 0;
            for (int64_t c = 0; c < rows_.cols; ++c) sum += a[c];
            if (da) fill_elements(da, rows_.cols, C(0));
            for (int64_t i = row * rows_.each; i < (row + 1) * rows_.each; ++i) {
              const C *const x = in[1] + i * rows_.cols;
              const C head = rows_.is_log ? in[0][i] : in[0][i] * std::exp(rows_.log_of(x, a));
              for (int64_t c = 0; c < rows_.cols; ++c) {
                if (out[0]) out[0][i * rows_.cols + c] = head * (a[c] - 1) / x[c];
                if (da) da[c] += head * (std::log(x[c]) + pointwise::digamma_of(sum) - pointwise::digamma_of(a[c]));
              }
            }
          }
        });
  }

 private:
  const DirichletRows rows_;
};

// The kernels of distribution D, for make_compute().
template <typename D>
struct PdfOf {
  template <typename Backend, typename C>
  using Forward = Pdf<Backend, D, C>;
  template <typename Backend, typename C>
  using Backward = PdfBackward<Backend, D, C>;
};

template <typename Backend, typename D>
void register_pdf(const std::string &name) {
  using Of = PdfOf<D>;
  KernelTable &table = backend_kernels();
  table.add("_random_pdf_" + name, make_compute<Backend, Of::template Forward>).dtypes(kFloatTypes);
  table.add("_backward__random_pdf_" + name, make_compute<Backend, Of::template Backward>).dtypes(kFloatTypes);
}

template <typename Backend>
void register_random_pdf_kernels() {
  register_pdf<Backend, pdf::Uniform>("uniform");
  register_pdf<Backend, pdf::Normal>("normal");
  register_pdf<Backend, pdf::Gamma>("gamma");
  register_pdf<Backend, pdf::Exponential>("exponential");
  register_pdf<Backend, pdf::Poisson>("poisson");
  register_pdf<Backend, pdf::NegativeBinomial>("negative_binomial");
  register_pdf<Backend, pdf::GeneralizedNegativeBinomial>("generalized_negative_binomial");
  KernelTable &table = backend_kernels();
  table.add("_random_pdf_dirichlet", make_compute<Backend, DirichletPdf>).dtypes(kFloatTypes);
  table.add("_backward__random_pdf_dirichlet", make_compute<Backend, DirichletPdfBackward>).dtypes(kFloatTypes);
}

}  // namespace
}  // namespace cohort
