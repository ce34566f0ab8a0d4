// SPDX-License-Identifier: Apache-2.0
// What kernels on oneDNN share: its engine, layouts around its memory descriptors, and primitives with their arguments
// bound once. Included by the kernels of src/cpu that call oneDNN.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/dnnl_compat.hpp"
#include "cpu/parallel.hpp"
#include "cpu/spares.hpp"
#include "device/kernel.hpp"

namespace cohort::dnn {

const dnnl::engine &engine();

// ---- layouts -------------------------------------------------------------------------------------------------------

// A tensor as oneDNN lays it out. `plain` describes the same tensor row-major and dense, on the axes of `desc`, which
// need not be those of the tensor (weights in groups have one more).
// Layouts of activations are chosen so that they hold no padding: element-wise kernels may take them as flat memory.
class DnnlLayout final : public Layout {
 public:
  DnnlLayout(Desc desc, Desc plain) : desc_(std::move(desc)), plain_(std::move(plain)) {}
  bool equals(const Layout &other) const override;
  size_t bytes() const override { return desc_.get_size(); }
  std::string describe() const override;
  const Desc &desc() const { return desc_; }
  const Desc &plain() const { return plain_; }

 private:
  const Desc desc_, plain_;
};

bool type_known(Dtype dtype);  // whether oneDNN has this element type
memory::data_type type_of(Dtype dtype);
Dims dims_of(const Shape &shape);                                       // rank 0 as {1}
Desc row_major(const Dims &dims, Dtype dtype);                          // dense, last axis fastest
Desc ordered(const Dims &dims, Dtype dtype, const Dims &axes);          // dense; axes from slowest to fastest
Desc channels_last(const Dims &dims, Dtype dtype);                      // axis 1 fastest
Desc channels_in_blocks(const Dims &dims, Dtype dtype, int64_t block);  // of axis 1, in which they fill whole blocks
Desc any_of(const Dims &dims, Dtype dtype);                             // oneDNN chooses
Desc desc_of(const TensorSpec &tensor);                                 // as it lies
bool same_bytes(const Desc &a, const Desc &b);                          // both put every element at the same place
bool is_padded(const Desc &desc);
bool is_channels_last(const Desc &desc);
// The layout that says `desc`; null if that is row-major and dense, which `plain` describes.
std::shared_ptr<const Layout> layout_of(const Desc &desc, const Desc &plain);

// ---- calls ---------------------------------------------------------------------------------------------------------

// Where an argument of a call is found when it runs.
struct Place {
  enum class Kind { kInput, kOutput, kScratch, kSaved, kOwn } kind;
  int index;      // kInput, kOutput
  size_t offset;  // in bytes, kScratch, kSaved
  void *own;      // kOwn: memory of the kernel

  static Place input(int index) { return {Kind::kInput, index, 0, nullptr}; }
  static Place output(int index) { return {Kind::kOutput, index, 0, nullptr}; }
  static Place scratch(size_t offset) { return {Kind::kScratch, 0, offset, nullptr}; }
  static Place saved(size_t offset) { return {Kind::kSaved, 0, offset, nullptr}; }
  static Place mine(void *data) { return {Kind::kOwn, 0, 0, data}; }

  void *find(const Args &args) const {
    switch (kind) {
      case Kind::kInput:
        return args.inputs[index];
      case Kind::kOutput:
        return args.outputs[index];
      case Kind::kScratch:
        return static_cast<char *>(args.scratch) + offset;
      case Kind::kSaved:
        return static_cast<char *>(args.saved) + offset;
      case Kind::kOwn:
        break;
    }
    return own;
  }
};

// The types in which oneDNN's layers work here.
inline constexpr DtypeSet kLayerTypes{Dtype::kFloat32, Dtype::kBfloat16};

// Whether this processor multiplies bfloat16 in units of its own.
bool has_bfloat16_units();

// KernelEntry::when: refuses steps on arrays without elements, of which oneDNN makes no primitives, and layers in
// bfloat16 where the processor would have to imitate it.
std::string refuses_layer(const StepSpec &spec);

// Books bytes of scratch or saved memory (StepSpec::scratch_bytes, saved_bytes), 64-byte aligned; returns their offset.
inline size_t book(size_t &total, size_t bytes) {
  const size_t offset = (total + 63) / 64 * 64;
  total = offset + bytes;
  return offset;
}

// Attributes that all primitives here are made with: their scratchpad is ours to give.
primitive_attr attributes();
primitive_attr attributes(const dnnl::post_ops &post);

// Calls make(), which makes a primitive descriptor; empty if oneDNN has no implementation for the case.
template <typename Fn>
auto attempt(Fn &&make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const dnnl::error &e) {
    if (e.status == dnnl_out_of_memory) throw Error(Code::kOutOfMemory, "oneDNN: no memory for a primitive descriptor");
    return std::nullopt;
  }
}

// Whether it is one of oneDNN's plain implementations, which take any case, slowly. Their post-operations are not to be
// relied upon: a binary one adds its first element everywhere (oneDNN 2.6).
template <typename Pd>
bool is_reference(const Pd &pd) {
  return std::strncmp(pd.impl_info_str(), "ref", 3) == 0;
}

// Throws what a status other than success means.
[[noreturn]] void fail(dnnl_status_t status, const std::string &what);
#define COHORT_DNN_CHECK(call, what)                              \
  do {                                                            \
    const dnnl_status_t cohort_status = (call);                   \
    if (cohort_status != dnnl_success) fail(cohort_status, what); \
  } while (0)

struct Operand {
  int arg;  // DNNL_ARG_...
  Desc desc;
  Place place;
};

// A primitive with its arguments bound to places. Made at bind, with the number of threads set that it will run with;
// run() sets what pointers have changed and executes. Any number of runs at once.
class Call {
 public:
  Call() = default;  // none: run() must not be called
  // `what` names the operation in errors. Books the scratchpad in spec.scratch_bytes.
  template <typename Pd>
  Call(const Pd &pd, std::string what, std::vector<Operand> operands, StepSpec &spec)
      : Call(pd.get(), pd.scratchpad_desc(), std::move(what), std::move(operands), &spec.scratch_bytes) {}
  template <typename Pd>  // for primitives without a scratchpad; throws kInternal if there is one
  Call(const Pd &pd, std::string what, std::vector<Operand> operands)
      : Call(pd.get(), pd.scratchpad_desc(), std::move(what), std::move(operands), nullptr) {}

  explicit operator bool() const { return bool(primitive_); }
  void run(const Args &args) const;

 private:
  // What one run at a time has: a memory object for each operand, and what it points to.
  struct Binding {
    std::vector<memory> objects;
    std::vector<void *> bound;
    std::vector<dnnl_exec_arg_t> args;
  };
  Call(const_dnnl_primitive_desc_t pd, const Desc &scratchpad, std::string what, std::vector<Operand> operands,
       size_t *scratch_bytes);

  std::unique_ptr<Binding> make_binding() const;

  dnnl::primitive primitive_;
  std::vector<Operand> operands_;
  std::string what_;
  std::unique_ptr<Spares<Binding>> bindings_;  // those that no run has
};

// "Convolution (64, 1, 28, 28)": for errors.
std::string name_of(const StepSpec &spec);

// The number of threads that pay for `operations` multiplications or `elements` moved; spec.num_threads or 1.
int threads_for_work(const StepSpec &spec, double operations);
int threads_for_elements(const StepSpec &spec, double elements);

}  // namespace cohort::dnn
