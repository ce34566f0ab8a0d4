// SPDX-License-Identifier: Apache-2.0
#include "group/collective_reducer.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <set>

#include "base/error.hpp"
#include "device/trace.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {
namespace {

constexpr int kWholeParams = 1 << 30;  // a number of threads of a worker that is so large that no parameter is cut
constexpr size_t kSumAlignment = 256;

bool has_elements(const ExchangeParam &param) { return param.grads[0].size() > 0; }

}  // namespace

// The state that all reductions share.
struct CollectiveReducer::Work {
  // Casts on one device: gradients of a bucket to the type in which they are summed, or sums back to their own.
  struct Casts {
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::deque<std::array<void *, 2>> pointers;  // source and target of each kernel
    std::vector<Step> steps;

    void add(const Worker &worker, const Summand &what, Dtype to) {
      kernels.push_back(make_cast(worker, what.dtype, to, what.count));
      std::array<void *, 2> &both = pointers.emplace_back();
      both = {const_cast<void *>(what.from), what.to};
      Step step{};
      step.kernel = kernels.back().get();
      step.args.inputs = &both[0];
      step.args.outputs = &both[1];
      step.label = kExchangeLabel;
      step.info = exchange_info();
      steps.push_back(step);
    }
  };

  DeviceArrays grads;
  std::vector<std::vector<void *>> sums;        // [param][device]
  std::vector<std::shared_ptr<Memory>> memory;  // of each device's sums
  std::vector<std::string> labels;              // of each bucket
  std::vector<Communicator::Sums> buckets;
  std::vector<double> moved_bytes;         // bytes of each bucket that are read and written on all devices
  std::vector<std::vector<Casts>> narrow;  // [bucket][device]
  std::vector<Casts> widen;                // [device]: all sums

  Work(const ExchangeParams &params, const GradientBuckets &ends, const ExchangeDevices &devices, Dtype sum_dtype)
      : sums(params.size()), widen(devices.size()) {
    std::vector<size_t> offsets, narrow_offsets;
    size_t bytes = 0;
    const auto book = [&](int64_t count, Dtype dtype) {
      const size_t offset = bytes;
      bytes += (size_t(count) * dtype_size(dtype) + kSumAlignment - 1) / kSumAlignment * kSumAlignment;
      return offset;
    };
    for (const ExchangeParam &param : params) {
      const Dtype own = param.grads[0].dtype(), in = type_of_sum(own, sum_dtype);
      grads.push_back(param.grads);
      offsets.push_back(book(param.grads[0].size(), own));
      narrow_offsets.push_back(in == own ? 0 : book(param.grads[0].size(), in));
    }
    for (const ExchangeDevice &device : devices) {
      memory.push_back(name_allocation([&] { return get_device(device.context)->allocate(bytes); }, kExchangeLabel));
      for (size_t p = 0; p < params.size(); ++p)
        sums[p].push_back(static_cast<char *>(memory.back()->data()) + offsets[p]);
    }
    size_t param = 0;
    for (size_t b = 0; b < ends.param_ends.size(); ++b) {
      const size_t first = param, end = size_t(ends.param_ends[b]);
      Communicator::Sums &bucket = buckets.emplace_back();
      std::vector<Casts> &casts = narrow.emplace_back(devices.size());
      bucket.of.resize(devices.size());
      for (; param < end; ++param) {
        for (size_t d = 0; has_elements(params[param]) && d < devices.size(); ++d) {
          const NDArray &grad = grads[param][d];
          const Dtype own = grad.dtype(), in = type_of_sum(own, sum_dtype);
          if (in == own) {
            bucket.of[d].push_back({grad.data(), sums[param][d], grad.size(), own});
            continue;
          }
          const Worker worker{devices[d].context, 1};
          void *const between = static_cast<char *>(memory[d]->data()) + narrow_offsets[param];
          casts[d].add(worker, {grad.data(), between, grad.size(), own}, in);
          bucket.of[d].push_back({between, between, grad.size(), in});
          widen[d].add(worker, {between, sums[param][d], grad.size(), in}, own);
        }
      }
      double &moved = moved_bytes.emplace_back(0);
      for (const Summand &array : bucket.of[0])
        moved += 2.0 * double(array.count) * double(dtype_size(array.dtype)) * double(devices.size());
      labels.push_back(first == end ? std::string("sum of no gradients")
                                    : text("sum of bucket ", b, ", the gradients of '", params[first].name, "' to '",
                                           params[end - 1].name, "'"));
    }
    for (size_t b = 0; b < buckets.size(); ++b) buckets[b].label = labels[b].c_str();
  }
};

// One backward pass and the sums that follow it. Queued work owns it.
class CollectiveReducer::Reduction : public std::enable_shared_from_this<Reduction> {
 public:
  Reduction(const ExchangeDevices &devices, std::shared_ptr<const Work> work)
      : devices_(devices), work_(std::move(work)), ready_(work_->buckets.size()), ends_(devices.size()) {
    // The end of the pass stands for the last bucket.
    const size_t num_buckets = work_->buckets.size(), num_early = num_buckets - 1;
    arrivals_.resize(devices.size() * num_early);
    for (size_t d = 0; d < devices.size(); ++d) {
      ends_[d].pass = this;
      ends_[d].device = d;
      ends_[d].step.kernel = &ends_[d];
      ends_[d].step.label = kExchangeLabel;
      for (size_t b = 0; b < num_early; ++b) {
        Arrival &arrival = arrivals_[d * num_early + b];
        arrival.pass = this;
        arrival.device = d;
        arrival.bucket = b;
        arrival.steps = work_->narrow[b][d].steps;
        Step &last = arrival.steps.emplace_back();
        last.kernel = &arrival;
        last.label = kExchangeLabel;
      }
    }
    for (const Arrival &arrival : arrivals_) programs_.push_back(program_of(arrival.steps));
  }
  Reduction(const Reduction &) = delete;
  Reduction &operator=(const Reduction &) = delete;

  void begin(std::shared_ptr<Communicator> communicator) {
    communicator_ = std::move(communicator);
    for (auto &events : ready_) events.assign(devices_.size(), nullptr);
    done_.clear();
    num_summed_ = 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    consumer_.reset();
    failure_.clear();
  }
  // The gradients have changed since they were summed.
  void invalidate_sums() {
    for (auto &events : ready_) events.assign(devices_.size(), nullptr);
    num_summed_ = 0;
  }
  bool is_summed() const { return num_summed_ == work_->buckets.size(); }
  bool is_consumed() const { return consumed_; }
  std::string failure() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

  BucketPrograms bucket_programs(size_t device) {
    const size_t num_early = work_->buckets.size() - 1;
    return {programs_.data() + device * num_early, num_early, shared_from_this()};
  }
  // Queues the sums that are not made yet; all gradients are on the devices' queues.
  void sum_rest() {
    Communicator::Events now;
    for (size_t d = 0; d < devices_.size(); ++d) {
      for (size_t b = num_summed_; b < work_->buckets.size(); ++b)
        if (!ready_[b][d]) run(d, work_->narrow[b][d].steps);
      now.push_back(devices_[d].queue->record());
    }
    while (!is_summed()) {
      for (size_t d = 0; d < devices_.size(); ++d) {
        std::shared_ptr<Event> &ready = ready_[num_summed_][d];
        if (!ready) ready = now[d];
      }
      sum(num_summed_);
    }
  }
  // Makes the devices' queues wait for all queued sums.
  void join() {
    for (size_t d = 0; d < done_.size(); ++d) {
      devices_[d].queue->wait(done_[d]);
      run(d, work_->widen[d].steps);
    }
  }
  void consume(const std::shared_ptr<SumConsumer> &consumer, bool replaces) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      consumer_ = consumer;
      replaces_ = replaces;
      // From here on, the code that finds a failure tells the consumer.
      if (!failure_.empty()) fail_all_locked(failure_.c_str());
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      Program program{};
      program.steps = &ends_[d].step;
      program.count = 1;
      program.failed = End::failed;
      const std::shared_ptr<const void> owner(shared_from_this(), &ends_[d]);
      devices_[d].queue->run(program, owner);
      Program consuming = consumer->steps(d);
      consuming.failed = End::failed;
      devices_[d].queue->run(consuming, owner);
    }
    consumed_ = true;
  }
  void reset_consumed() { consumed_ = false; }
  void fail(const char *message) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) return;  // the first is the cause
    try {
      failure_ = message;
    } catch (const std::exception &) {  // no memory for the message
      failure_.assign("failed");        // short enough to need none
    }
    fail_all_locked(message);
  }

 private:
  struct Arrival final : Kernel {
    void run(const Args &, const Lane &) const override { pass->arrive(device, bucket); }
    Reduction *pass = nullptr;
    size_t device = 0, bucket = 0;
    std::vector<Step> steps;  // casts, then this
  };
  struct End final : Kernel {
    void run(const Args &, const Lane &) const override { pass->check(); }
    static void failed(const void *owner, const char *message) {
      const auto *end = static_cast<const End *>(owner);
      const std::lock_guard<std::mutex> lock(end->pass->mutex_);
      end->pass->fail_device_locked(end->device, message);
    }
    Reduction *pass = nullptr;
    size_t device = 0;
    Step step{};
  };

  static Program program_of(const std::vector<Step> &steps) {
    Program program{};
    program.steps = steps.data();
    program.count = steps.size();
    return program;
  }
  void run(size_t device, const std::vector<Step> &steps) {
    if (!steps.empty()) devices_[device].queue->run(program_of(steps), work_);
  }

  // On the thread that queues backward. A failure here must not fail the backward pass that it interrupts.
  void arrive(size_t device, size_t bucket) {
    try {
      ready_[bucket][device] = devices_[device].queue->record();
      while (num_summed_ + 1 < work_->buckets.size() &&
             std::all_of(ready_[num_summed_].begin(), ready_[num_summed_].end(), [](auto &e) { return e != nullptr; }))
        sum(num_summed_);
    } catch (const std::exception &e) {
      fail(e.what());
    }
  }
  void sum(size_t bucket) {
    if (!work_->buckets[bucket].of[0].empty()) {
      const WorkSpan span(SpanKind::kExchange, "sum of gradients", work_->moved_bytes[bucket]);
      done_ = communicator_->all_reduce(work_->buckets[bucket], ready_[bucket], shared_from_this(),
                                        [](const void *pass, const char *message) {
                                          static_cast<Reduction *>(const_cast<void *>(pass))->fail(message);
                                        });
    }
    ++num_summed_;
  }
  void check() const {
    for (size_t d = 0; d < devices_.size(); ++d) check_gradients(work_->grads, d);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) throw Error(Code::kExecution, failure_);
  }
  // Marks everything on a device that the sums were to change as failed; mutex_ is held.
  void fail_device_locked(size_t device, const char *message) noexcept {
    if (!consumer_) return;
    consumer_->fail(device, message);
    for (size_t p = 0; replaces_ && p < work_->grads.size(); ++p) work_->grads[p][device].fail(message);
  }
  void fail_all_locked(const char *message) noexcept {  // mutex_ is held
    for (size_t d = 0; d < devices_.size(); ++d) fail_device_locked(d, message);
  }

  const ExchangeDevices devices_;
  const std::shared_ptr<const Work> work_;
  std::shared_ptr<Communicator> communicator_;
  std::vector<Communicator::Events> ready_;  // [bucket][device]; null: not there yet
  Communicator::Events done_;                // of the bucket that was summed last
  size_t num_summed_ = 0;                    // buckets, in their order
  bool consumed_ = false;
  std::vector<Arrival> arrivals_;  // [device * num_early + bucket]
  std::vector<Program> programs_;  // of the arrivals
  std::vector<End> ends_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<SumConsumer> consumer_;
  bool replaces_ = false;  // sums take the place of the gradients
  std::string failure_;
};

std::unique_ptr<CollectiveReducer> CollectiveReducer::make(const ExchangeParams &params, const GradientBuckets &buckets,
                                                           const ExchangeDevices &devices, Dtype sum_dtype,
                                                           std::string *why) {
  std::set<Context> known;
  std::vector<Context> contexts;
  for (size_t d = 0; d < devices.size(); ++d) {
    const Context &context = devices[d].context;
    contexts.push_back(context);
    if (!known.insert(context).second) *why = text(context, " is in the group more than once");
    if (context.type != devices[0].context.type) *why = "the devices of the group are of different types";
    if (!devices[d].others.empty()) *why = "layers are placed on other devices";
    for (const ExchangeParam &param : params) {
      if (param.weights[d].context() != context || param.grads[d].context() != context)
        *why = text("'", param.name, "' is not on its device");
      if (!kFloatTypes.has(param.grads[d].dtype()))
        *why = text("gradients of '", param.name, "' have dtype ", param.grads[d].dtype());
    }
  }
  if (!why->empty()) return nullptr;
  std::shared_ptr<Communicator> communicator;
  try {
    communicator = get_device(contexts[0])->make_communicator(contexts, why);
  } catch (const Error &error) {
    *why = error.what();
  }
  if (!communicator) return nullptr;
  return std::unique_ptr<CollectiveReducer>(
      new CollectiveReducer(params, buckets, devices, sum_dtype, std::move(communicator)));
}

CollectiveReducer::CollectiveReducer(const ExchangeParams &params, const GradientBuckets &buckets,
                                     const ExchangeDevices &devices, Dtype sum_dtype,
                                     std::shared_ptr<Communicator> communicator)
    : GradientReducer(params, buckets, kWholeParams),
      devices_(devices),
      work_(std::make_shared<Work>(params, buckets, devices, sum_dtype)),
      communicator_(std::move(communicator)) {
  for (const ExchangeDevice &device : devices) {
    workers_.push_back({device.context, 1});
    contexts_.push_back(device.context);
  }
}

void *CollectiveReducer::sum_of(size_t param, size_t worker) const { return work_->sums[param][worker]; }

// Makes another communicator if the old one is broken.
const std::shared_ptr<Communicator> &CollectiveReducer::communicator() {
  if (!communicator_ || communicator_->broken()) {
    std::string why;
    communicator_ = get_device(contexts_[0])->make_communicator(contexts_, &why);
    if (!communicator_) throw Error(Code::kDevice, text(kExchangeLabel, ": ", why));
  }
  return communicator_;
}

void CollectiveReducer::begin_reduction() {
  latest_.reset();
  for (const auto &known : reductions_)
    if (known.use_count() == 1) latest_ = known;
  if (!latest_) latest_ = reductions_.emplace_back(std::make_shared<Reduction>(devices_, work_));
  latest_->begin(communicator());
  latest_->reset_consumed();
}

// Sums are made during backward if those of the previous pass were asked for; else only when they are asked for.
void CollectiveReducer::begin_backward() {
  eager_ = asked_;
  asked_ = false;
  begin_reduction();
}

BucketPrograms CollectiveReducer::after_bucket(size_t device) {
  return eager_ ? latest_->bucket_programs(device) : BucketPrograms();
}

void CollectiveReducer::end_backward() {
  if (!eager_) return;
  latest_->sum_rest();
  latest_->join();
  versions_.clear();
  for (const auto &arrays : work_->grads)
    for (const NDArray &grad : arrays) versions_.push_back(grad.version());
}

// If gradients were changed after backward, or may have been, their sums are made again.
void CollectiveReducer::before_update() {
  if (!latest_ || !latest_->is_summed()) return;
  bool changed = versions_.empty();
  size_t i = 0;
  for (const auto &arrays : work_->grads) {
    for (const NDArray &grad : arrays) {
      changed = changed || grad.exposed() || grad.version() != versions_[i];
      ++i;
    }
  }
  if (changed) latest_->invalidate_sums();
}

void CollectiveReducer::queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) {
  asked_ = true;
  if (!latest_ || latest_->is_consumed()) begin_reduction();  // asked for twice after one backward
  const std::shared_ptr<Reduction> pass = latest_;
  consumer->before_sums(devices_);
  if (!pass->is_summed()) {
    pass->sum_rest();
    pass->join();
  }
  // Work queued since backward reads the old weights, which the first device may overwrite with new ones.
  for (size_t d = 1; waits && d < devices_.size(); ++d) devices_[0].queue->wait(devices_[d].queue->record());
  pass->consume(consumer, replace_gradients);
  for (size_t p = 0; replace_gradients && p < work_->grads.size(); ++p) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      const NDArray &grad = work_->grads[p][d];
      devices_[d].queue->copy(grad.data(), work_->sums[p][d], grad.bytes(), pass);
    }
  }
  consumer->after_sums(devices_);
}

void CollectiveReducer::wait() {
  const std::string failure = latest_ ? latest_->failure() : "";
  if (failure.empty()) return;
  latest_.reset();
  throw Error(Code::kExecution, failure, kExchangeLabel);
}

}  // namespace cohort
