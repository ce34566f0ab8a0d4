// SPDX-License-Identifier: Apache-2.0
// Attention on interleaved projections in bfloat16, on oneDNN: each part is copied to scratch memory and multiplied
// there, as the kernels for all backends do. Measured with oneDNN 2.6, products directly on the projections take 1.6
// to 1.9 times as long.
#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/narrow_product.hpp"
#include "device/kernel_table.hpp"
#include "kernels/attention_projections.hpp"
#include "kernels/backend.hpp"

namespace cohort {
namespace {

using namespace dnn;
using A = InterleavedAttentionAttrs;

// The base of kernels that alternate copies and products. A part is gathered before the product that reads it, or
// scattered after the one that writes it.
class NarrowAttention : public Kernel {
 protected:
  NarrowAttention(const StepSpec &spec, const ProjectionPart &part, int64_t other_length)
      : num_threads_(threads_for_work(spec, 2.0 * double(part.size()) * double(other_length))) {}

  struct Scratch {
    ProjectionPart part;
    size_t at;
  };
  static Scratch book_part(const ProjectionPart &part, StepSpec &spec) {
    return {part, book(spec.scratch_bytes, size_t(part.size()) * sizeof(Bfloat16))};
  }
  static BufferRef place_of(const Scratch &s) { return BufferRef::scratch(s.at); }

  static Bfloat16 *memory_of(const Scratch &s, const Args &args) {
    return reinterpret_cast<Bfloat16 *>(static_cast<char *>(args.scratch) + s.at);
  }
  static void gather(const Scratch &to, int input, const Args &args, const Lane &lane) {
    to.part.move<CpuBackend, Bfloat16, false>(lane, args.in<Bfloat16>(input), memory_of(to, args));
  }
  static void scatter(const Scratch &from, void *projections, const Args &args, const Lane &lane) {
    from.part.move<CpuBackend, Bfloat16, true>(lane, memory_of(from, args), static_cast<Bfloat16 *>(projections));
  }
  // Sets gradients to 0: those of other parts of an array stay 0, or another step of the kernel writes them.
  static void clear(const ProjectionPart &part, void *projections, const Lane &lane) {
    zero_bytes(lane, projections, size_t(part.parts * part.size()) * sizeof(Bfloat16));
  }
  // Makes a call; false if oneDNN has no implementation.
  static bool make(DnnlCall *call, const NarrowProduct &p, BufferRef a, BufferRef b, BufferRef c, float factor,
                   StepSpec &spec) {
    auto made = narrow_product(p, Dtype::kBfloat16, a, b, c, factor, spec);
    if (made) *call = std::move(*made);
    return bool(made);
  }

  const int num_threads_;
};

float score_factor(const ProjectionPart &queries) { return 1 / std::sqrt(float(queries.width)); }

class NarrowScores final : public NarrowAttention {
 public:
  NarrowScores(StepSpec &spec, const ScoreProjections &p)
      : NarrowAttention(spec, p.queries, p.keys.length),
        joint_(p.joint),
        queries_(book_part(p.queries, spec)),
        keys_(book_part(p.keys, spec)) {
    const ThreadsScope threads(num_threads_);
    made_ = make(&product_, {p.queries.count, false, true, p.queries.length, p.keys.length, p.queries.width},
                 place_of(queries_), place_of(keys_), BufferRef::output(0), score_factor(p.queries), spec);
  }
  bool is_made() const { return made_; }
  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    gather(queries_, 0, args, lane);
    gather(keys_, joint_ ? 0 : 1, args, lane);
    product_.run(args);
  }

 private:
  const bool joint_;
  const Scratch queries_, keys_;
  DnnlCall product_;
  bool made_;
};

// Inputs: the head gradient, then those of the forward step.
class NarrowScoresBackward final : public NarrowAttention {
 public:
  NarrowScoresBackward(StepSpec &spec, const ScoreProjections &p)
      : NarrowAttention(spec, p.queries, 2 * p.keys.length),
        joint_(p.joint),
        queries_(book_part(p.queries, spec)),
        keys_(book_part(p.keys, spec)),
        query_grads_(book_part(p.queries, spec)),
        key_grads_(book_part(p.keys, spec)) {
    const ThreadsScope threads(num_threads_);
    const int64_t count = p.queries.count, length = p.queries.length, others = p.keys.length, width = p.queries.width;
    const float factor = score_factor(p.queries);
    made_ = make(&by_queries_, {count, false, false, length, width, others}, BufferRef::input(0), place_of(keys_),
                 place_of(query_grads_), factor, spec) &&
            make(&by_keys_, {count, true, false, others, width, length}, BufferRef::input(0), place_of(queries_),
                 place_of(key_grads_), factor, spec);
  }
  bool is_made() const { return made_; }
  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    void *const to_queries = args.outputs[0], *const to_keys = args.outputs[joint_ ? 0 : 1];
    if (to_keys) clear(keys_.part, to_keys, lane);
    if (to_queries) {
      gather(keys_, joint_ ? 1 : 2, args, lane);
      by_queries_.run(args);
      scatter(query_grads_, to_queries, args, lane);
    }
    if (to_keys) {
      gather(queries_, 1, args, lane);
      by_keys_.run(args);
      scatter(key_grads_, to_keys, args, lane);
    }
  }

 private:
  const bool joint_;
  const Scratch queries_, keys_, query_grads_, key_grads_;
  DnnlCall by_queries_, by_keys_;
  bool made_;
};

class NarrowValues final : public NarrowAttention {
 public:
  NarrowValues(StepSpec &spec, const ProjectionPart &values, const ProjectionPart &result)
      : NarrowAttention(spec, values, result.length),
        values_(book_part(values, spec)),
        result_(book_part(result, spec)) {
    const ThreadsScope threads(num_threads_);
    made_ = make(&product_, {values.count, false, false, result.length, values.width, values.length},
                 BufferRef::input(1), place_of(values_), place_of(result_), 1, spec);
  }
  bool is_made() const { return made_; }
  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    gather(values_, 0, args, lane);
    product_.run(args);
    scatter(result_, args.outputs[0], args, lane);
  }

 private:
  const Scratch values_, result_;
  DnnlCall product_;
  bool made_;
};

// Inputs: head gradient, projections, attention.
class NarrowValuesBackward final : public NarrowAttention {
 public:
  NarrowValuesBackward(StepSpec &spec, const ProjectionPart &values, const ProjectionPart &result)
      : NarrowAttention(spec, values, 2 * result.length),
        values_(book_part(values, spec)),
        heads_(book_part(result, spec)),
        value_grads_(book_part(values, spec)) {
    const ThreadsScope threads(num_threads_);
    const int64_t count = values.count, width = values.width;
    made_ = make(&by_attention_, {count, false, true, result.length, values.length, width}, place_of(heads_),
                 place_of(values_), BufferRef::output(1), 1, spec) &&
            make(&by_values_, {count, true, false, values.length, width, result.length}, BufferRef::input(2),
                 place_of(heads_), place_of(value_grads_), 1, spec);
  }
  bool is_made() const { return made_; }
  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    gather(heads_, 0, args, lane);
    if (args.outputs[1]) {
      gather(values_, 1, args, lane);
      by_attention_.run(args);
    }
    if (!args.outputs[0]) return;
    by_values_.run(args);
    clear(values_.part, args.outputs[0], lane);
    scatter(value_grads_, args.outputs[0], args, lane);
  }

 private:
  const Scratch values_, heads_, value_grads_;
  DnnlCall by_attention_, by_values_;
  bool made_;
};

// Makes the kernel; null if oneDNN lacks one of its products.
template <typename K, typename... Parts>
std::unique_ptr<Kernel> make_whole(StepSpec &spec, const Parts &...parts) {
  StepSpec answered = spec;
  auto kernel = std::make_unique<K>(answered, parts...);
  if (!kernel->is_made()) return nullptr;
  spec = std::move(answered);
  return kernel;
}

std::unique_ptr<Kernel> make_scores(StepSpec &spec) {
  return make_whole<NarrowScores>(spec, ScoreProjections(spec.attrs_as<A>(), spec.inputs, 0));
}
std::unique_ptr<Kernel> make_scores_backward(StepSpec &spec) {
  return make_whole<NarrowScoresBackward>(spec, ScoreProjections(spec.attrs_as<A>(), spec.inputs, 1));
}
std::unique_ptr<Kernel> make_values(StepSpec &spec) {
  const auto &a = spec.attrs_as<A>();
  return make_whole<NarrowValues>(spec, values_of(a, spec.inputs[0].shape),
                                  ProjectionPart(spec.outputs[0].shape, a.heads, 1, 0));
}
std::unique_ptr<Kernel> make_values_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<A>();
  return make_whole<NarrowValuesBackward>(spec, values_of(a, spec.inputs[1].shape),
                                          ProjectionPart(spec.inputs[0].shape, a.heads, 1, 0));
}

#define COHORT_NARROW_ATTENTION(op, make) \
  COHORT_KERNEL_BY(cpu, op, make).named("onednn").one_dtype({Dtype::kBfloat16}).when(refuses_layer).preference(1)

COHORT_NARROW_ATTENTION(_contrib_interleaved_matmul_selfatt_qk, make_scores);
COHORT_NARROW_ATTENTION(_backward__contrib_interleaved_matmul_selfatt_qk, make_scores_backward);
COHORT_NARROW_ATTENTION(_contrib_interleaved_matmul_encdec_qk, make_scores);
COHORT_NARROW_ATTENTION(_backward__contrib_interleaved_matmul_encdec_qk, make_scores_backward);
COHORT_NARROW_ATTENTION(_contrib_interleaved_matmul_selfatt_valatt, make_values);
COHORT_NARROW_ATTENTION(_backward__contrib_interleaved_matmul_selfatt_valatt, make_values_backward);
COHORT_NARROW_ATTENTION(_contrib_interleaved_matmul_encdec_valatt, make_values);
COHORT_NARROW_ATTENTION(_backward__contrib_interleaved_matmul_encdec_valatt, make_values_backward);

}  // namespace
}  // namespace cohort
