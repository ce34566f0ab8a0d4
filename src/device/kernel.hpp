// SPDX-License-Identifier: Apache-2.0
// A kernel's factory runs at bind and resolves everything; run() only computes. KernelEntry says which steps a kernel
// accepts, so the choice is made before anything is constructed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/context.hpp"
#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace cohort {

// A backend's own memory layout of a tensor, opaque to other rooms; the backend compares and sizes it. A null pointer
// always means row-major and dense.
class Layout {
 public:
  virtual ~Layout() = default;
  virtual bool equals(const Layout &other) const = 0;  // same backend only
  virtual size_t bytes() const = 0;                    // size of a whole tensor in this layout, padding included
  virtual std::string describe() const = 0;            // for traces: "nChw16c"
};

inline bool same_layout(const std::shared_ptr<const Layout> &a, const std::shared_ptr<const Layout> &b) {
  return a == b || (a && b && a->equals(*b));
}

// How an array stores its elements: all of them, or only non-zero rows or elements.
enum class StorageType : uint8_t { kDense, kRowSparse, kCsr };
const char *storage_name(StorageType storage);  // "dense", "row_sparse", "csr"

struct TensorSpec {
  Shape shape;
  Dtype dtype = Dtype::kFloat32;
  std::shared_ptr<const Layout> layout;
  StorageType storage = StorageType::kDense;

  size_t bytes() const { return layout ? layout->bytes() : size_t(shape.size()) * dtype_size(dtype); }
};

class ReplayRecorder;  // device/run_value.hpp

// Resources of a queue that its kernels may use.
struct Lane {
  int num_threads;                     // cpu: the most threads to use; cuda: 1
  void *stream;                        // cuda: the cudaStream_t; cpu: null
  ReplayRecorder *recorder = nullptr;  // cuda: set while the work is recorded for replay
};

// The random-number state of one node: its seed and how many draws it has made, over all plans.
struct RandomStream {
  uint64_t seed = 0, draws = 0;
};

// For steps that combine results across the devices of a group, each of which processes a share of one batch: one block
// of StepSpec::share_bytes per device, in host memory (Device::host_memory() of the device that writes it).
struct BatchShares {
  std::vector<void *> blocks;  // indexed by device of the group
  size_t own = 0;
};

// Pointers of one call, in the order of StepSpec. A null output is not wanted; output 0 of a forward kernel always is.
struct Args {
  void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  void *scratch = nullptr;  // StepSpec::scratch_bytes, contents undefined before and after
  void *saved = nullptr;    // written by forward, read by backward: StepSpec::saved_bytes
  // Values other than arrays that change from run to run, such as an update's learning rate: a block of the operator's
  // own type (UpdateNumbers<double>), which kernels read through run_value(). Null: use the attributes.
  const void *numbers = nullptr;
  RandomStream *random = nullptr;       // for random operators, read through next_draw(); used by one call at a time
  const BatchShares *shares = nullptr;  // for kernels that set share_bytes

  template <typename T>
  const T *in(int i) const {
    return static_cast<const T *>(inputs[i]);
  }
  template <typename T>
  T *out(int i) const {
    return static_cast<T *>(outputs[i]);
  }
  template <typename T>
  T *mutable_in(int i) const {  // auxiliary states and other inputs listed in Op::mutates
    return static_cast<T *>(inputs[i]);
  }
};

class SubgraphCompiler;  // device/subprogram.hpp

class Kernel {
 public:
  virtual ~Kernel() = default;
  // May run concurrently, since plans are shared by everything bound to them. No look-up and no lock; allocates only if
  // more calls run at once than the kernel has scratch for. Throws Error if the work fails.
  virtual void run(const Args &args, const Lane &lane) const = 0;
  // For kernels that set share_bytes: writes this device's block. run() follows once all devices have written theirs.
  virtual void publish_share(const Args &, const Lane &) const {}
  // True if the kernel calls the host, which may only be called on a thread that is inside one of its own calls: the
  // executor then waits for earlier work and runs the step on the calling thread.
  virtual bool on_caller() const { return false; }
  // True if, with the same pointers, it enqueues the same work every time apart from run_value() and next_draw(), so
  // that it can be recorded and replayed. False if host code takes decisions or waits for the device.
  virtual bool replays() const { return true; }
};

// An operation that the plan fuses into a kernel: applied to its result before that is written. Extra inputs follow the
// operator's own, one for each post-operation that takes one, in the same order.
struct PostOp {
  enum class Kind {
    kActivation,
    kClip,       // into [low, high]
    kSum,        // adds an extra input of the output's shape, before the post-operations that follow
    kTrainRelu,  // relu in training, before the gradient is computed: the backward step gets it, too
  } kind;
  int activation = 0;  // ActivationAttrs::Type (op/activation.hpp) for kActivation
  double low = 0, high = 0;
};

// The input of a kernel's factory; it also returns values in the fields marked <-.
struct StepSpec {
  std::string op;                     // "softmax", "_backward_softmax"
  std::shared_ptr<const void> attrs;  // the operator's attribute struct (of the forward operator, for backward)
  Context context;                    // of the device
  bool is_train = false;
  bool keep_for_backward = false;  // a backward step of this node follows: save what it needs
  bool frozen = false;  // in training with no gradient wanted up to this step: auxiliary states must not change
  // Inputs arrive in these layouts. A factory that needs another layout stores it here <- and the plan inserts a
  // reorder. Entries without any_layout() get row-major inputs.
  std::vector<TensorSpec> inputs;
  std::vector<bool> constant;       // inputs that rarely change, so that reordering them is free (weights at inference)
  std::vector<TensorSpec> outputs;  // layout <- (null unless the factory sets it)
  std::vector<bool> wanted;         // outputs that are used; the others get a null pointer
  std::vector<PostOp> post;         // only if the entry fuses them
  const Kernel *forward = nullptr;  // backward: the kernel of the forward step, for hints
  // Compiler for the node's sub-graphs, if it has any; valid during construction only.
  const SubgraphCompiler *subgraphs = nullptr;
  std::vector<bool> gradients_wanted;  // forward, if a backward step follows: which of its outputs are used
  size_t scratch_bytes = 0;            // <-
  size_t saved_bytes = 0;              // <- forward; the backward step gets the same block
  bool tf32 = false;                   // float32 products may round their factors to TF32; <- false if none do
  int num_replicas = 1;                // number of devices in the group that share this batch
  // <- size of this device's block if the kernel combines results across devices (publish_share).
  size_t share_bytes = 0;
  // <- (input, output) pairs that may share memory, in addition to Op::inplace: an addend that the kernel adds to in
  // place. The kernel must also work if the two are separate.
  std::vector<std::pair<int, int>> inplace;
  std::string refused;  // <- the reason, if the factory returns null
  // <- inputs the kernel does not read: it gets null pointers, and their values are not kept for it.
  std::vector<int> unread;
  int num_threads = 1;

  // A step that wants all its outputs and has no constant inputs.
  static StepSpec of(std::string op, std::shared_ptr<const void> attrs, std::vector<TensorSpec> inputs,
                     std::vector<TensorSpec> outputs, int num_threads) {
    StepSpec spec;
    spec.op = std::move(op);
    spec.attrs = std::move(attrs);
    spec.constant.assign(inputs.size(), false);
    spec.inputs = std::move(inputs);
    spec.wanted.assign(outputs.size(), true);
    spec.outputs = std::move(outputs);
    spec.num_threads = num_threads;
    return spec;
  }

  template <typename A>
  const A &attrs_as() const {
    return *static_cast<const A *>(attrs.get());
  }
};

// Constructs the kernel of a step that its entry accepts. If it finds only during construction that it cannot (a vendor
// library has no implementation), it returns null and leaves `spec` unchanged except for `refused`; the next candidate
// is tried.
using KernelFactory = std::unique_ptr<Kernel> (*)(StepSpec &spec);
// Returns why a kernel does not accept a step, or an empty string if it does. Cheap; constructs nothing.
using KernelCondition = std::string (*)(const StepSpec &spec);

// A set of element types.
class DtypeSet {
 public:
  constexpr DtypeSet() = default;
  constexpr DtypeSet(std::initializer_list<Dtype> dtypes) {
    for (Dtype dtype : dtypes) bits_ |= 1u << unsigned(dtype);
  }
  constexpr bool has(Dtype dtype) const { return dtype != Dtype::kNone && (bits_ >> unsigned(dtype) & 1u) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  std::string text() const;  // "float32 or float64"

 private:
  uint32_t bits_ = 0;
};

inline constexpr DtypeSet kFloatTypes{Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16};
inline constexpr DtypeSet kWideFloatTypes{Dtype::kFloat32, Dtype::kFloat64};

// One kernel of one operator: which steps it accepts and how it is constructed. A kernel file registers it
// (kernel_table.hpp) and states what it accepts; the default is row-major, dense arrays of any type and nothing fused.
class KernelEntry {
 public:
  KernelEntry(std::string op, KernelFactory make) : op_(std::move(op)), make_(make) {}
  KernelEntry(const KernelEntry &) = delete;
  KernelEntry &operator=(const KernelEntry &) = delete;

  // ---- for registration; each returns the entry
  // The way or the library by which it computes; unique among the kernels of its operator. `tuned`: it is written for
  // speed, unlike a plain loop or a detour by another type.
  KernelEntry &named(const char *name, bool tuned = true) { return name_ = name, tuned_ = tuned, *this; }
  // Allowed types of the first input, or of the first output; inference determines the rest.
  KernelEntry &dtypes(DtypeSet set) { return dtypes_ = set, typed_ = Typed::kFirstInput, *this; }
  KernelEntry &output_dtypes(DtypeSet set) { return dtypes_ = set, typed_ = Typed::kFirstOutput, *this; }
  KernelEntry &one_dtype(DtypeSet set) {
    return dtypes_ = set, typed_ = Typed::kAll, *this;
  }                                                                // all arrays have this one type
  KernelEntry &storages(std::initializer_list<StorageType> set);   // of any array
  KernelEntry &any_layout() { return any_layout_ = true, *this; }  // reads StepSpec layouts
  KernelEntry &fuses(std::initializer_list<PostOp::Kind> kinds);
  KernelEntry &when(KernelCondition condition) { return condition_ = condition, *this; }
  // Candidates are tried in descending order of preference, then in the order in which their file registers them.
  KernelEntry &preference(int value) { return preference_ = value, *this; }

  const std::string &op() const { return op_; }
  const std::string &name() const { return name_; }
  bool is_tuned() const { return tuned_; }
  bool reads_layouts() const { return any_layout_; }
  bool takes(Dtype dtype) const { return dtypes_.empty() || dtypes_.has(dtype); }  // in at least one step
  int preference() const { return preference_; }
  std::string refusal(const StepSpec &spec) const;  // empty: takes the step

 private:
  friend class Device;  // only Device::make_kernel constructs: a factory reads settings of the calling thread
  std::string dtype_refusal(const StepSpec &spec) const;
  std::string post_refusal(const StepSpec &spec) const;

  const std::string op_;
  const KernelFactory make_;
  std::string name_ = "plain";
  bool tuned_ = false;
  DtypeSet dtypes_;  // empty: any
  enum class Typed : uint8_t { kFirstInput, kFirstOutput, kAll } typed_ = Typed::kFirstInput;
  bool any_layout_ = false;
  unsigned storages_ = 1u << unsigned(StorageType::kDense), fuses_ = 0;
  KernelCondition condition_ = nullptr;
  int preference_ = 0;
};

}  // namespace cohort
