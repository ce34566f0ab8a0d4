// SPDX-License-Identifier: Apache-2.0
#include "op/sequence.hpp"

namespace cohort {
namespace {

// Checks data and infers the shape of sequence_length. Returns false if nothing is known.
bool infer_sequences(const SequenceAttrs &a, Shapes &in) {
  if (in[0].rank_known() && in[0].rank() < 2) {
    throw Error(Code::kShape, text("data: expected at least 2 axes, found ", in[0]), "data");
  }
  if (!in[0].rank_known()) return false;
  if (a.use_sequence_length) unify(in[1], Shape{in[0][1 - a.axis]}, "sequence_length");
  return true;
}

void infer_sequence_dtype(const SequenceAttrs &a, Dtypes &in, Dtypes &out) {
  unify(out[0], in[0], "output");
  unify(in[0], out[0], "data");
  if (a.use_sequence_length && in[1] == Dtype::kNone) in[1] = in[0];
}

OpBuilder<SequenceAttrs> sequences(const char *name, const char *doc, int last_axis, bool has_value = false) {
  OpBuilder<SequenceAttrs> op(name);
  op.doc(doc)
      .attr(&SequenceAttrs::use_sequence_length, "use_sequence_length", false,
            "Whether there is an input sequence_length; otherwise every sequence has all time steps.")
      .input("data", "(T, N, ...), or (N, T, ...) with axis 1: N sequences of T time steps.")
      .names_only_input()
      .input_if(
          "sequence_length", [](const SequenceAttrs &a) { return a.use_sequence_length; },
          "(N,): the length of each sequence.")
      .infer_dtype(infer_sequence_dtype)
      .gradient([](const SequenceAttrs &a) {
        Gradient g;
        g.kind = Gradient::Kind::kKernel;
        g.of = {0};
        if (a.use_sequence_length) g.inputs = {1};
        return g;
      });
  if (has_value) op.attr(&SequenceAttrs::value, "value", 0.0f, "The value written after the end of each sequence.");
  op.attr(&SequenceAttrs::axis, "axis", 0, "The axis of time steps.").range(0, last_axis);
  return op;
}

void infer_like_data(const SequenceAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  infer_sequences(a, in);
  unify(out[0], in[0], "output");
}

[[maybe_unused]] const bool defined = [] {
  sequences("SequenceLast", "The last time step of each sequence.", 1)
      .infer_shape([](const SequenceAttrs &a, Shapes &in, Shapes &out) {
        if (!infer_sequences(a, in)) return;
        std::vector<int64_t> result(in[0].begin(), in[0].end());
        result.erase(result.begin() + a.axis);
        unify(out[0], Shape(result), "output");
      });
  sequences("SequenceMask", "Replaces the time steps after the end of each sequence by a value.", 1,
            /* has_value */ true)
      .alias("_npx_sequence_mask")
      .infer_shape(infer_like_data)
      .inplace(0, 0)
      .backward_inplace(0, 0);
  sequences("SequenceReverse", "Reverses the time steps of each sequence; steps after its end are kept.", 0)
      .infer_shape(infer_like_data);
  return true;
}();

}  // namespace
}  // namespace cohort
