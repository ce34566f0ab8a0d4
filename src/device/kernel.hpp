// SPDX-License-Identifier: Apache-2.0
// A kernel has two lives: its factory runs at bind and resolves everything; run() only computes. Which kernel a step
// gets is known before either: each says which steps it takes (KernelEntry).
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

// How a backend keeps a tensor between steps when not row-major and dense: opaque here, compared and sized by the
// backend. A null pointer stands for row-major and dense everywhere.
class Layout {
 public:
  virtual ~Layout() = default;
  virtual bool equals(const Layout &other) const = 0;  // same backend only
  virtual size_t bytes() const = 0;                    // of a whole tensor in this layout, padding included
  virtual std::string describe() const = 0;            // for traces: "nChw16c"
};

inline bool same_layout(const std::shared_ptr<const Layout> &a, const std::shared_ptr<const Layout> &b) {
  return a == b || (a && b && a->equals(*b));
}

// How the elements of an array are kept: all of them, or the rows or elements alone that are not zero.
enum class StorageType : uint8_t { kDense, kRowSparse, kCsr };
const char *storage_name(StorageType storage);  // "dense", "row_sparse", "csr"

struct TensorSpec {
  Shape shape;
  Dtype dtype = Dtype::kFloat32;
  std::shared_ptr<const Layout> layout;
  StorageType storage = StorageType::kDense;

  size_t bytes() const { return layout ? layout->bytes() : size_t(shape.size()) * dtype_size(dtype); }
};

class Recorder;  // device/changing.hpp

// What a queue lends to the kernels that it runs.
struct Lane {
  int num_threads;               // cpu: at most so many threads; cuda: 1
  void *stream;                  // cuda: the cudaStream_t; cpu: null
  Recorder *recorder = nullptr;  // cuda: of work that is recorded, to be replayed
};

// The random numbers of one node: a stream of its own, and how often it has drawn from it, in whichever plan.
struct RandomStream {
  uint64_t seed = 0, draws = 0;
};

// What the same step finds on each device of a group, which all have a part of one batch: a block of
// StepSpec::part_bytes, in the host's memory (Device::host_memory() of the device that writes it).
struct Parts {
  std::vector<void *> blocks;  // by device of the group
  size_t own = 0;
};

// Pointers of one call, in the order of StepSpec. A null output is not wanted; output 0 of a forward kernel always is.
struct Args {
  void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  void *scratch = nullptr;  // StepSpec::scratch_bytes, contents undefined before and after
  void *saved = nullptr;    // forward writes it, backward reads it: StepSpec::saved_bytes
  // What changes from run to run and is no array, as the learning rate of an update: a block of the operator's own type
  // (UpdateNumbers<double>), which kernels take by changing(). Null: the attributes say it.
  const void *numbers = nullptr;
  RandomStream *random = nullptr;  // of random operators, which take next_draw(); one call at a time has it
  const Parts *parts = nullptr;    // of kernels that booked part_bytes

  template <typename T>
  const T *in(int i) const {
    return static_cast<const T *>(inputs[i]);
  }
  template <typename T>
  T *out(int i) const {
    return static_cast<T *>(outputs[i]);
  }
  template <typename T>
  T *mutable_in(int i) const {  // auxiliary states and whatever Op::mutates lists
    return static_cast<T *>(inputs[i]);
  }
};

class SubgraphCompiler;  // device/subprogram.hpp

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Any number of calls may run at once, for plans are shared by all that are bound to them. No look-up, no lock, and
  // no allocation but where more calls run at once than a kernel keeps scratch for. Throws Error if the work fails.
  virtual void run(const Args &args, const Lane &lane) const = 0;
  // Of kernels that booked part_bytes: writes the own block. run() comes when all devices have written theirs.
  virtual void find_part(const Args &, const Lane &) const {}
  // It calls the host, which may be called on the threads of its own calls alone: whoever runs the step waits for what
  // comes before it, and runs it itself.
  virtual bool on_caller() const { return false; }
  // With the same pointers it enqueues the same each time, but for what it takes by changing() and next_draw(): that
  // can be recorded, and replayed without it. False: the host decides in it, or waits for the device.
  virtual bool replays() const { return true; }
};

// An operation that a kernel does on its result before it writes it, fused in by the plan. The i-th extra input (after
// the operator's own) belongs to the i-th post-operation that takes one.
struct PostOp {
  enum class Kind {
    kActivation,
    kClip,       // into [low, high]
    kSum,        // adds an extra input of the output's shape, before the post-operations that follow
    kTrainRelu,  // relu in training, before gradients are made: the backward step is given it, too
  } kind;
  int activation = 0;  // ActivationAttrs::Type (op/activation.hpp) for kActivation
  double low = 0, high = 0;
};

// What a kernel's factory is told, and what it answers. It reads everything, and may set what is marked <-.
struct StepSpec {
  std::string op;                     // "softmax", "_backward_softmax"
  std::shared_ptr<const void> attrs;  // the operator's attribute struct (of the forward operator, for backward)
  Context context;                    // of the device
  bool is_train = false;
  bool keep_for_backward = false;  // a backward step of this node follows: save what it needs
  bool frozen = false;  // training, and no argument up to this step wants a gradient: auxiliary states stay as they are
  // Inputs come in the layouts in which they lie. A factory that wants another one writes it here <- and the plan puts
  // a reorder in between. Entries that do not say any_layout() are given row-major inputs.
  std::vector<TensorSpec> inputs;
  std::vector<bool> constant;  // inputs that change so rarely that a reorder of them costs nothing (inference weights)
  std::vector<TensorSpec> outputs;              // layout <- (null unless the factory sets it)
  std::vector<bool> wanted;                     // outputs that are used; the others get a null pointer
  std::vector<PostOp> post;                     // only if the entry fuses them
  const Kernel *forward = nullptr;              // backward: the kernel of the forward step, for hints
  const SubgraphCompiler *subgraphs = nullptr;  // of the node, if it has any; while the kernel is made
  std::vector<bool> gradients_wanted;  // forward, if a backward step follows: which of that step's outputs are used
  size_t scratch_bytes = 0;            // <-
  size_t saved_bytes = 0;              // <- forward; the same block is given to the backward step
  bool tf32 = false;                   // products of float32 may round their factors to TF32; <- false: none do
  int num_replicas = 1;                // devices of the group that have parts of this batch
  size_t part_bytes = 0;               // <- where it takes what all of them find (find_part)
  // <- (input, output) pairs that may share memory, beside those of Op::inplace: an addend that the kernel adds to in
  // place. It must do as well where the two lie apart.
  std::vector<std::pair<int, int>> inplace;
  std::string refused;      // <- of a factory that returns null: why
  std::vector<int> unread;  // <- inputs that it does without: it gets null pointers, and nothing is kept for it
  int num_threads = 1;

  template <typename A>
  const A &attrs_as() const {
    return *static_cast<const A *>(attrs.get());
  }
};

// Constructs the kernel of a step that its entry takes. One that finds out only while it constructs that it cannot, as
// when a vendor's library has no implementation, returns null and leaves `spec` as it was, but for the reason: the next
// candidate follows.
using KernelFactory = std::unique_ptr<Kernel> (*)(StepSpec &spec);
// Why a kernel does not take a step; empty: it takes it. Cheap, and makes nothing.
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

// One kernel of one operator: which steps it takes, and how it is made. A kernel file registers it (kernel_table.hpp)
// and says there what it takes; by default row-major, dense arrays of any type and nothing fused.
class KernelEntry {
 public:
  KernelEntry(std::string op, KernelFactory make) : op_(std::move(op)), make_(make) {}
  KernelEntry(const KernelEntry &) = delete;
  KernelEntry &operator=(const KernelEntry &) = delete;

  // ---- for registrations; each returns the entry
  KernelEntry &named(const char *name) { return name_ = name, *this; }  // among those of its operator
  // Types of the first input, or of the first output: the others follow by inference.
  KernelEntry &dtypes(DtypeSet set) { return dtypes_ = set, typed_ = Typed::kFirstInput, *this; }
  KernelEntry &output_dtypes(DtypeSet set) { return dtypes_ = set, typed_ = Typed::kFirstOutput, *this; }
  KernelEntry &one_dtype(DtypeSet set) { return dtypes_ = set, typed_ = Typed::kAll, *this; }  // of all arrays
  KernelEntry &storages(std::initializer_list<StorageType> set);                               // of any array
  KernelEntry &any_layout() { return any_layout_ = true, *this; }                              // reads StepSpec layouts
  KernelEntry &fuses(std::initializer_list<PostOp::Kind> kinds);
  KernelEntry &when(KernelCondition condition) { return condition_ = condition, *this; }
  // Candidates are asked in the order of their preference, the largest first; those of one preference in the order in
  // which their file registers them.
  KernelEntry &preference(int value) { return preference_ = value, *this; }

  const std::string &op() const { return op_; }
  const std::string &name() const { return name_; }
  bool reads_layouts() const { return any_layout_; }
  bool takes(Dtype dtype) const { return dtypes_.empty() || dtypes_.has(dtype); }  // in some step
  int preference() const { return preference_; }
  std::string refusal(const StepSpec &spec) const;  // empty: takes the step

 private:
  friend class Device;  // Device::make_kernel, and nobody else: a factory reads the settings of the calling thread
  std::string dtype_refusal(const StepSpec &spec) const;
  std::string post_refusal(const StepSpec &spec) const;

  const std::string op_;
  const KernelFactory make_;
  std::string name_ = "plain";
  DtypeSet dtypes_;  // empty: any
  enum class Typed : uint8_t { kFirstInput, kFirstOutput, kAll } typed_ = Typed::kFirstInput;
  bool any_layout_ = false;
  unsigned storages_ = 1u << unsigned(StorageType::kDense), fuses_ = 0;
  KernelCondition condition_ = nullptr;
  int preference_ = 0;
};

}  // namespace cohort
