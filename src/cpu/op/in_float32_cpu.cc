// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "cpu/op/in_float32.hpp"
#include "cpu/op/plain_post_ops.hpp"
#include "device/device.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

constexpr size_t kMostArrays = 4;  // inputs, and outputs, of a layer or of its backward step

// Copies in float32 of the inputs or outputs of a step, in scratch memory: row-major, and in the layout of the kernel.
class WideCopies {
 public:
  WideCopies(const std::vector<TensorSpec> &narrow, const std::vector<TensorSpec> &wide, const std::vector<bool> &used,
             bool are_inputs, const StepSpec &step, size_t *scratch_bytes) {
    if (wide.size() > kMostArrays) throw Error(Code::kInternal, text(step.op, ": too many arrays"));
    const std::shared_ptr<Device> device = get_device(step.context);
    StepSpec cast;
    cast.op = "_cast_copy";
    cast.num_threads = step.num_threads;
    for (size_t i = 0; i < wide.size(); ++i) {
      Copy &copy = copies_.emplace_back();
      copy.used = used[i];
      if (!copy.used) continue;
      TensorSpec plain = wide[i];
      plain.layout = nullptr;
      copy.plain_at = copy.at = book(*scratch_bytes, plain.bytes());
      if (wide[i].layout) {
        copy.at = book(*scratch_bytes, wide[i].bytes());
        copy.reorder = are_inputs ? device->make_reorder(plain, wide[i], step.num_threads)
                                  : device->make_reorder(wide[i], plain, step.num_threads);
      }
      cast.inputs.push_back(are_inputs ? narrow[i] : plain);
      cast.outputs.push_back(are_inputs ? plain : narrow[i]);
    }
    cast.constant.assign(cast.inputs.size(), false);
    cast.wanted.assign(cast.outputs.size(), true);
    cast_ = device->make_kernel(cast);
  }

  void widen(void *const *narrow, char *scratch, const Lane &lane) const {
    cast(narrow, scratch, lane, /* widens */ true);
    for (const Copy &copy : copies_) move(copy, scratch + copy.plain_at, scratch + copy.at, lane);
  }
  void round(char *scratch, void *const *narrow, const Lane &lane) const {
    for (const Copy &copy : copies_) move(copy, scratch + copy.at, scratch + copy.plain_at, lane);
    cast(narrow, scratch, lane, /* widens */ false);
  }
  // The arrays for the kernel; null where they are not used.
  void find(char *scratch, std::array<void *, kMostArrays> *arrays) const {
    for (size_t i = 0; i < copies_.size(); ++i) (*arrays)[i] = copies_[i].used ? scratch + copies_[i].at : nullptr;
  }

 private:
  struct Copy {
    bool used = false;
    size_t plain_at = 0, at = 0;
    std::unique_ptr<Kernel> reorder;  // null: the kernel's layout is row-major
  };

  static void move(const Copy &copy, void *from, void *to, const Lane &lane) {
    if (!copy.reorder) return;
    Args args;
    args.inputs = &from;
    args.outputs = &to;
    copy.reorder->run(args, lane);
  }
  void cast(void *const *narrow, char *scratch, const Lane &lane, bool widens) const {
    std::array<void *, kMostArrays> outside{}, inside{};
    size_t count = 0;
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (!copies_[i].used) continue;
      outside[count] = narrow[i];
      inside[count++] = scratch + copies_[i].plain_at;
    }
    Args args;
    args.inputs = widens ? outside.data() : inside.data();
    args.outputs = widens ? inside.data() : outside.data();
    cast_->run(args, lane);
  }

  std::vector<Copy> copies_;
  std::unique_ptr<Kernel> cast_;
};

class InFloat32 final : public Kernel {
 public:
  explicit InFloat32(StepSpec &spec)
      : dtype_(spec.inputs[0].dtype), post_(spec.post), count_(spec.outputs[0].shape.size()) {
    const auto is_sum = [](const PostOp &op) { return op.kind == PostOp::Kind::kSum; };
    num_inputs_ = spec.inputs.size() - size_t(std::count_if(post_.begin(), post_.end(), is_sum));
    StepSpec wide = spec;
    wide.post.clear();
    wide.inputs.resize(num_inputs_);
    // The copies change in each run. Kernels for inference would transform each weight at length, as if once for all.
    wide.constant.assign(num_inputs_, false);
    wide.is_train = true;
    wide.scratch_bytes = 0;
    for (auto *tensors : {&wide.inputs, &wide.outputs}) {
      for (TensorSpec &tensor : *tensors) tensor.dtype = Dtype::kFloat32, tensor.layout = nullptr;
    }
    const auto *forward = dynamic_cast<const InFloat32 *>(spec.forward);
    wide.forward = forward ? forward->kernel_.get() : nullptr;
    kernel_ = get_device(spec.context)->make_kernel(wide);
    num_threads_ = wide.num_threads;
    spec.unread = wide.unread;
    spec.saved_bytes = wide.saved_bytes;

    std::vector<bool> read(num_inputs_, true), wanted = spec.wanted;
    for (const int input : wide.unread) read[size_t(input)] = false;
    wanted.resize(wide.outputs.size());
    inputs_ = std::make_unique<WideCopies>(spec.inputs, wide.inputs, read, true, wide, &spec.scratch_bytes);
    outputs_ = std::make_unique<WideCopies>(spec.outputs, wide.outputs, wanted, false, wide, &spec.scratch_bytes);
    kernel_scratch_at_ = book(spec.scratch_bytes, wide.scratch_bytes);
  }

  void run(const Args &args, const Lane &all) const override {
    Lane lane = all;
    lane.num_threads = std::min(lane.num_threads, num_threads_);
    char *const scratch = static_cast<char *>(args.scratch);
    std::array<void *, kMostArrays> inputs{}, outputs{};
    inputs_->find(scratch, &inputs);
    outputs_->find(scratch, &outputs);
    inputs_->widen(args.inputs, scratch, lane);
    Args wide = args;
    wide.inputs = inputs.data();
    wide.outputs = outputs.data();
    wide.scratch = scratch + kernel_scratch_at_;
    kernel_->run(wide, lane);
    outputs_->round(scratch, args.outputs, lane);
    apply_post_ops(post_, dtype_, args.outputs[0], count_, args, int(num_inputs_), lane);
  }

 private:
  const Dtype dtype_;
  const std::vector<PostOp> post_;
  const int64_t count_;
  size_t num_inputs_;
  std::unique_ptr<const Kernel> kernel_;
  int num_threads_;
  std::unique_ptr<const WideCopies> inputs_, outputs_;
  size_t kernel_scratch_at_;
};

}  // namespace

std::unique_ptr<Kernel> make_in_float32(StepSpec &spec) { return std::make_unique<InFloat32>(spec); }

}  // namespace cohort
