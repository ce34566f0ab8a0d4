// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/host_step.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/cuda_check.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_host.hpp"
#include "device/device.hpp"
#include "kernels/backend.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

// cpu(0), and its queues for the steps of all GPUs: one per step that runs at a time, because a host operator may
// itself run others.
class Host {
 public:
  static std::shared_ptr<Host> get() {
    static std::mutex mutex;
    static std::weak_ptr<Host> known;
    const std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<Host> host = known.lock();
    if (!host) known = host = std::make_shared<Host>();
    return host;
  }
  Host() : device_(host_services().cpu()) {}

  std::unique_ptr<Kernel> make(StepSpec &spec) const { return host_services().make_kernel(*device_, spec); }
  void run(const Kernel &kernel, const Args &args) {
    const Caught caught(kernel);
    const Step step{&caught, args, "on the host"};
    const std::shared_ptr<Queue> queue = take();
    queue->run({&step, 1, WorkSize::kBrief}, nullptr);
    queue->sync();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      free_.push_back(queue);
    }
    if (caught.error) std::rethrow_exception(caught.error);
  }

 private:
  // The waiting thread adds the operator's name to an error, so the queue of the host must not.
  struct Caught final : Kernel {
    explicit Caught(const Kernel &kernel) : inner(kernel) {}
    void run(const Args &args, const Lane &lane) const override {
      try {
        inner.run(args, lane);
      } catch (...) {
        error = std::current_exception();
      }
    }
    const Kernel &inner;
    mutable std::exception_ptr error;
  };

  std::shared_ptr<Queue> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return device_->create_queue({1});
    std::shared_ptr<Queue> queue = std::move(free_.back());
    free_.pop_back();
    return queue;
  }

  const std::shared_ptr<Device> device_;
  std::mutex mutex_;  // guards free_
  std::vector<std::shared_ptr<Queue>> free_;
};

class HostStep final : public Kernel {
 public:
  HostStep(StepSpec &spec, size_t first_mutable) : host_(Host::get()), first_mutable_(first_mutable) {
    StepSpec inside = spec;
    inside.num_threads = 1;
    inside.scratch_bytes = inside.saved_bytes = 0;
    if (spec.forward) {
      const auto *const forward = dynamic_cast<const HostStep *>(spec.forward);
      if (!forward) throw Error(Code::kInternal, text(spec.op, ": its forward step does not run on the host"));
      inside.forward = forward->kernel_.get();
      saved_bytes_ = forward->saved_bytes_;
    }
    kernel_ = host_->make(inside);
    if (!spec.forward) spec.saved_bytes = saved_bytes_ = inside.saved_bytes;
    const auto add = [&](std::vector<BlockSlice> *places, const TensorSpec &tensor) {
      if (tensor.layout) throw Error(Code::kInternal, text(spec.op, ": the host's kernel wants a layout of its own"));
      places->push_back({book(bytes_, tensor.bytes()), tensor.bytes()});
    };
    for (const TensorSpec &input : inside.inputs) add(&inputs_, input);
    for (const TensorSpec &output : inside.outputs) add(&outputs_, output);
    saved_at_ = book(bytes_, saved_bytes_);
    scratch_at_ = book(bytes_, inside.scratch_bytes);
    own_lane_ = std::make_unique<CallerLane>(spec.context, on_caller());
  }

  bool on_caller() const override { return kernel_->on_caller(); }
  bool replays() const override { return false; }

  void run(const Args &args, const Lane &lane) const override {
    own_lane_->run(lane, [&](const Lane &own) { run_here(args, own); });
  }

 private:
  struct BlockSlice {
    size_t at, bytes;
  };

  void run_here(const Args &given, const Lane &lane) const {
    size_t room = bytes_ + kAlignment;
    const std::unique_ptr<char[]> memory(new char[room]);
    void *first = memory.get();
    auto *const block = static_cast<char *>(std::align(kAlignment, bytes_, first, room));
    std::vector<void *> pointers;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      pointers.push_back(given.inputs[i] ? block + inputs_[i].at : nullptr);
      if (pointers.back()) read_back(lane, pointers.back(), given.inputs[i], inputs_[i].bytes);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      pointers.push_back(given.outputs[i] ? block + outputs_[i].at : nullptr);
    }
    if (given.saved) read_back(lane, block + saved_at_, given.saved, saved_bytes_);
    Args args = given;
    args.inputs = pointers.data();
    args.outputs = pointers.data() + inputs_.size();
    args.saved = given.saved ? block + saved_at_ : nullptr;
    args.scratch = block + scratch_at_;
    if (on_caller()) {
      kernel_->run(args, {1, nullptr});
    } else {
      host_->run(*kernel_, args);
    }
    // Read when the stream has come to it, which the end waits for: the memory goes.
    for (size_t i = first_mutable_; i < inputs_.size(); ++i) {
      if (given.inputs[i]) copy_bytes(lane, given.inputs[i], args.inputs[i], inputs_[i].bytes);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (given.outputs[i]) copy_bytes(lane, given.outputs[i], args.outputs[i], outputs_[i].bytes);
    }
    if (given.saved) copy_bytes(lane, given.saved, args.saved, saved_bytes_);
    CUDA_CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(lane.stream)));
  }

  static constexpr size_t kAlignment = 64;
  const std::shared_ptr<Host> host_;
  const size_t first_mutable_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<CallerLane> own_lane_;
  std::vector<BlockSlice> inputs_, outputs_;
  size_t bytes_ = 0, saved_bytes_ = 0, saved_at_ = 0, scratch_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_host_step(StepSpec &spec) { return make_host_step(spec, spec.inputs.size()); }
std::unique_ptr<Kernel> make_host_step(StepSpec &spec, size_t first_mutable) {
  return std::make_unique<HostStep>(spec, first_mutable);
}

namespace {

void copy_and_wait(const Lane &lane, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return;
  const auto stream = static_cast<cudaStream_t>(lane.stream);
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace

void read_back(const Lane &lane, void *to, const void *from, size_t bytes) {
  copy_and_wait(lane, to, from, bytes, cudaMemcpyDeviceToHost);
}

void write_through(const Lane &lane, void *to, const void *from, size_t bytes) {
  copy_and_wait(lane, to, from, bytes, cudaMemcpyHostToDevice);
}

class CallerLane::Own {
 public:
  explicit Own(int device) : device_(device) {
    const CurrentDevice current(device_);
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Own() {
    const CurrentDevice current(device_, std::nothrow);
    cudaStreamDestroy(stream_);
  }
  void call(void (*fn)(const void *, const Lane &), const void *own) const {
    const CurrentDevice current(device_);
    try {
      fn(own, {1, stream_});
    } catch (...) {
      cudaStreamSynchronize(stream_);  // what is queued of it uses what the caller is about to let go
      cudaGetLastError();
      throw;
    }
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

 private:
  const int device_;
  cudaStream_t stream_ = nullptr;
};

CallerLane::CallerLane(const Context &context, bool on_caller) {
  if (on_caller) own_ = std::make_unique<Own>(context.id);
}
CallerLane::~CallerLane() = default;
void CallerLane::call(const Lane &given, void (*fn)(const void *, const Lane &), const void *own) const {
  if (own_ && !given.stream) return own_->call(fn, own);
  fn(own, given);
}

}  // namespace cohort
