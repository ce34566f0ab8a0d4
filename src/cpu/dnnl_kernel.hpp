// SPDX-License-Identifier: Apache-2.0
// Common code of kernels on oneDNN: its engine, layouts around its memory descriptors, and primitives whose arguments
// are bound once.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/dnnl_compat.hpp"
#include "cpu/object_pool.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort::dnn {

const dnnl::engine &engine();

// ---- layouts -------------------------------------------------------------------------------------------------------

// A tensor in oneDNN's layout. `plain` describes the same tensor row-major and dense, with the axes of `desc`, which
// may differ from those of the tensor (weights in groups have one more). Layouts of activations hold no padding, so
// that element-wise kernels may treat them as flat memory.
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
Dims dims_of(const Shape &shape);                               // rank 0 as {1}
Desc row_major(const Dims &dims, Dtype dtype);                  // dense, last axis fastest
Desc ordered(const Dims &dims, Dtype dtype, const Dims &axes);  // dense; axes from slowest to fastest
Desc channels_last(const Dims &dims, Dtype dtype);              // axis 1 fastest
Desc channels_in_blocks(const Dims &dims, Dtype dtype,
                        int64_t block);         // of axis 1, which must be a multiple of `block`
Desc any_of(const Dims &dims, Dtype dtype);     // oneDNN chooses the layout
Desc desc_of(const TensorSpec &tensor);         // in its own layout
bool same_bytes(const Desc &a, const Desc &b);  // both put every element at the same offset
bool is_padded(const Desc &desc);
bool is_channels_last(const Desc &desc);
// The layout of `desc`; null if that is row-major and dense, which `plain` describes.
std::shared_ptr<const Layout> layout_of(const Desc &desc, const Desc &plain);

// ---- calls ---------------------------------------------------------------------------------------------------------

// The buffer of an argument, resolved in each run.
struct BufferRef {
  enum class Kind { kInput, kOutput, kScratch, kSaved, kOwn } kind;
  int index;      // kInput, kOutput
  size_t offset;  // in bytes, kScratch, kSaved
  void *memory;   // kOwn: memory of the kernel

  static BufferRef input(int index) { return {Kind::kInput, index, 0, nullptr}; }
  static BufferRef output(int index) { return {Kind::kOutput, index, 0, nullptr}; }
  static BufferRef scratch(size_t offset) { return {Kind::kScratch, 0, offset, nullptr}; }
  static BufferRef saved(size_t offset) { return {Kind::kSaved, 0, offset, nullptr}; }
  static BufferRef own(void *data) { return {Kind::kOwn, 0, 0, data}; }

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
    return memory;
  }
};

// The types in which oneDNN's layers work here.
inline constexpr DtypeSet kLayerTypes{Dtype::kFloat32, Dtype::kBfloat16};

// Whether this processor has instructions for products of bfloat16.
bool has_bfloat16_units();

// For KernelEntry::when. Refuses steps on empty arrays, of which oneDNN makes no primitives, and layers in bfloat16
// on processors that would emulate it.
std::string refuses_layer(const StepSpec &spec);

// The attributes of all primitives here: the scratchpad is passed by the caller.
primitive_attr attributes();
primitive_attr attributes(const dnnl::post_ops &post);

// Calls make(), which makes a primitive descriptor. Empty if oneDNN has no implementation for the case.
template <typename Fn>
auto attempt(Fn &&make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const dnnl::error &e) {
    if (e.status == dnnl_out_of_memory) throw Error(Code::kOutOfMemory, "oneDNN: no memory for a primitive descriptor");
    return std::nullopt;
  }
}

// Whether it is one of oneDNN's reference implementations, which are slow, and whose post-operations are wrong: a
// binary one adds its first element everywhere (oneDNN 2.6).
template <typename Pd>
bool is_reference(const Pd &pd) {
  return std::strncmp(pd.impl_info_str(), "ref", 3) == 0;
}

// Throws the error that corresponds to a status other than success.
[[noreturn]] void fail(dnnl_status_t status, const std::string &what);
#define COHORT_DNN_CHECK(call, what)                              \
  do {                                                            \
    const dnnl_status_t cohort_status = (call);                   \
    if (cohort_status != dnnl_success) fail(cohort_status, what); \
  } while (0)

struct DnnlArg {
  int arg;  // DNNL_ARG_...
  Desc desc;
  BufferRef buffer;
};

// A primitive with its arguments bound to buffers. Made at bind, with the number of threads set that it will run
// with; run() sets the pointers that have changed, and executes. Any number of runs may be active at once.
class DnnlCall {
 public:
  DnnlCall() = default;  // none: run() must not be called
  // `what` names the operation in errors. Books the scratchpad in spec.scratch_bytes.
  template <typename Pd>
  DnnlCall(const Pd &pd, std::string what, std::vector<DnnlArg> operands, StepSpec &spec)
      : DnnlCall(pd.get(), pd.scratchpad_desc(), std::move(what), std::move(operands), &spec.scratch_bytes) {}
  template <typename Pd>  // for primitives without a scratchpad; throws kInternal if there is one
  DnnlCall(const Pd &pd, std::string what, std::vector<DnnlArg> operands)
      : DnnlCall(pd.get(), pd.scratchpad_desc(), std::move(what), std::move(operands), nullptr) {}

  explicit operator bool() const { return bool(primitive_); }
  void run(const Args &args) const;

 private:
  // The state of one active run: a memory object for each argument, and the pointer it is set to.
  struct Binding {
    std::vector<memory> objects;
    std::vector<void *> bound;
    std::vector<dnnl_exec_arg_t> args;
  };
  DnnlCall(const_dnnl_primitive_desc_t pd, const Desc &scratchpad, std::string what, std::vector<DnnlArg> operands,
           size_t *scratch_bytes);

  std::unique_ptr<Binding> make_binding() const;

  dnnl::primitive primitive_;
  std::vector<DnnlArg> operands_;
  std::string what_;
  std::unique_ptr<ObjectPool<Binding>> bindings_;  // of runs that are not active
};

// "Convolution (64, 1, 28, 28)": for error messages.
std::string name_of(const StepSpec &spec);

// The number of threads worth using for so many multiplications, or elements moved: spec.num_threads or 1.
int threads_for_work(const StepSpec &spec, double operations);
int threads_for_elements(const StepSpec &spec, double elements);

}  // namespace cohort::dnn
