// SPDX-License-Identifier: Apache-2.0
// Common code of the forward and backward kernels of RNN. They compute in double for float64, else in float; arrays
// of 16-bit types are converted in scratch memory.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/rnn_layers.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort::rnn {
namespace {

// Gives arrays of the operator as arrays of C: the arrays themselves, or converted copies in scratch memory.
template <typename C>
class Converter {
 public:
  explicit Converter(Dtype dtype) : dtype_(dtype) {}
  Dtype dtype() const { return dtype_; }
  // Books memory for the copy of an array of `count` elements, if one is needed.
  size_t book_copy(size_t &scratch_bytes, int64_t count) const {
    return same() ? 0 : book(scratch_bytes, size_t(count) * sizeof(C));
  }
  const C *read(const Lane &lane, const void *array, size_t place, int64_t count, const Args &args) const {
    if (same() || !array) return static_cast<const C *>(array);
    C *const copy = at(place, args);
    widen(lane, array, dtype_, copy, count);
    return copy;
  }
  C *written(void *array, size_t place, const Args &args) const {
    return same() || !array ? static_cast<C *>(array) : at(place, args);
  }
  void write_back(const Lane &lane, void *array, size_t place, int64_t count, const Args &args) const {
    if (!same() && array) narrow(lane, at(place, args), array, dtype_, count);
  }

 private:
  bool same() const { return dtype_ == dtype_of<C>(); }
  static C *at(size_t place, const Args &args) {
    return reinterpret_cast<C *>(static_cast<char *>(args.scratch) + place);
  }
  const Dtype dtype_;
};

// The base of the forward and the backward kernel. Backend has, beside the members of kernels/compute.hpp:
//   template <typename C> class Product
//     c = op(a) op(b) + beta c; made from (team, dtype, transpose_a, transpose_b, m, n, k, beta). It may round factors
//     to `dtype`. Members: scratch_bytes(), run(lane, a, b, c, scratch). For a b that several products read:
//     held_bytes(), hold(lane, b, to, scratch), which converts b once, and run_held(lane, a, held, c, scratch);
//     held_bytes() is 0 where b needs no conversion.
//   class Team
//     the threads for steps of so many operations; made from (spec, operations). Its class Scope, made from
//     (team, lane), has a member `lane` with those threads.
//   template <typename C> class Cells
//     one step of all sequences; made from (attrs, sizes)
//   template <typename C> void sum_rows(lane, values, rows, columns, sums)
template <typename Backend, typename C>
class RnnKernel : public Kernel {
 protected:
  using Product = typename Backend::template Product<C>;

  RnnKernel(StepSpec &spec, const Shape &data, Dtype dtype)
      : attrs_(spec.attrs_as<RNNAttrs>()),
        s_(sizes_of(attrs_, data)),
        team_(spec, 2.0 * double(s_.batch) * double(s_.gates) * double(s_.out)),
        cells_(attrs_, s_),
        convert_(dtype) {
    parameter_count_ = rnn_parameter_size(attrs_, s_.inputs);
    if (attrs_.use_sequence_length) lengths_place_ = book(spec.scratch_bytes, size_t(s_.batch) * sizeof(double));
  }

  int64_t state_count(int64_t width) const { return int64_t(s_.layers) * s_.directions * s_.batch * width; }
  bool drops(const StepSpec &spec) const { return spec.is_train && attrs_.p > 0 && s_.layers > 1; }
  // The k-th step of a direction.
  int64_t step(int direction, int64_t k) const { return direction == 0 ? k : s_.time - 1 - k; }

  const double *lengths(const Lane &lane, const void *array, Dtype dtype, const Args &args) const {
    if (!attrs_.use_sequence_length) return nullptr;
    double *const lengths = at<double>(args.scratch, lengths_place_);
    widen(lane, array, dtype, lengths, s_.batch);
    return lengths;
  }

  // Makes a product. All products use the same scratch memory in turn.
  Product product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, C beta) {
    Product made(team_, convert_.dtype(), transpose_a, transpose_b, m, n, k, beta);
    work_bytes_ = work_bytes_ > made.scratch_bytes() ? work_bytes_ : made.scratch_bytes();
    return made;
  }
  // Books the scratch memory of products; call it when all are made.
  void book_work(StepSpec &spec) { work_ = book(spec.scratch_bytes, work_bytes_); }
  void multiply(const Product &product, const C *a, const C *b, C *c, const Args &args, const Lane &lane) const {
    product.run(lane, a, b, c, at<char>(args.scratch, work_));
  }

  // For a matrix b of several products: book_held() books memory for its converted form, held() converts it.
  static size_t book_held(StepSpec &spec, const Product &product) {
    return product.held_bytes() > 0 ? book(spec.scratch_bytes, product.held_bytes()) : 0;
  }
  const C *held(const Product &product, const C *b, size_t place, const Args &args, const Lane &lane) const {
    if (product.held_bytes() == 0) return b;
    C *const to = at(args.scratch, place);
    product.hold(lane, b, to, at<char>(args.scratch, work_));
    return to;
  }
  void multiply_held(const Product &product, const C *a, const C *b, C *c, const Args &args, const Lane &lane) const {
    product.run_held(lane, a, b, c, at<char>(args.scratch, work_));
  }

  template <typename T = C>
  static T *at(void *base, size_t place) {
    return reinterpret_cast<T *>(static_cast<char *>(base) + place);
  }

  const RNNAttrs attrs_;
  const RnnSizes s_;
  const typename Backend::Team team_;
  const typename Backend::template Cells<C> cells_;
  const Converter<C> convert_;
  int64_t parameter_count_;

 private:
  size_t lengths_place_ = 0, work_bytes_ = 0, work_ = 0;
};

}  // namespace
}  // namespace cohort::rnn
