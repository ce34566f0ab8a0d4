// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_communicator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/attributes.hpp"
#include "base/error.hpp"
#include "base/settings.hpp"
#include "cuda/cuda_completion.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_named.hpp"
#include "cuda/cuda_nccl.hpp"
#include "cuda/cuda_poll.hpp"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

// The stream of a device for sums: shared by all communicators, created once and kept.
cudaStream_t sum_stream(int device) {
  struct Streams {
    std::mutex mutex;  // guards all
    std::map<int, cudaStream_t> all;
  };
  static auto *const streams = new Streams;
  const std::lock_guard<std::mutex> lock(streams->mutex);
  cudaStream_t &stream = streams->all[device];
  if (!stream) {
    const CurrentDevice current(device);
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  return stream;
}

class CudaCommunicator final : public Communicator,
                               public Pollable,
                               public std::enable_shared_from_this<CudaCommunicator> {
 public:
  CudaCommunicator(const Nccl &nccl, std::vector<int> devices, Clock::duration patience)
      : nccl_(nccl), devices_(std::move(devices)), patience_(patience), comms_(devices_.size()) {
    for (const int device : devices_) streams_.push_back(named(device, [&] { return sum_stream(device); }));
    const CurrentDevice current(devices_[0]);  // NCCL changes what is current
    const std::lock_guard<std::mutex> alone(launch_order());
    const int result = nccl_.comm_init_all(comms_.data(), int(devices_.size()), devices_.data());
    if (result != Nccl::kSuccess)
      throw Error(Code::kDevice, text(all_names(), ": ", describe("ncclCommInitAll", result)));
  }
  ~CudaCommunicator() override {  // nothing is in flight: sums in flight hold a reference
    const CurrentDevice current(devices_[0], std::nothrow);
    const std::lock_guard<std::mutex> alone(launch_order());
    for (NcclComm *comm : comms_)
      if (comm) nccl_.comm_destroy(comm);
  }

  Events all_reduce(const Sums &sums, const Events &ready, std::shared_ptr<const void> owner, Failed failed) override {
    refuse_failed(ready);
    try {
      refuse_broken();  // before launch_order() is taken, so that no other sum waits for one that never starts
      return give(sums, ready, std::move(owner), failed);
    } catch (const Error &error) {
      throw Error(error.code(), text(sums.label, ": ", error.what()), error.subject());
    }
  }

  bool broken() const override { return broken_.load(std::memory_order_acquire); }

  bool poll() override {
    std::vector<InFlight> over;  // destroyed after the lock is released
    std::string lost;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (broken_) lost = reason_;
      while (!in_flight_.empty() && lost.empty()) {
        InFlight &first = in_flight_.front();
        lost = what_is_lost(first);
        if (!lost.empty() || !all_done(first.done)) break;
        over.push_back(std::move(first));
        in_flight_.pop_front();
      }
      if (lost.empty()) return polled_ = !in_flight_.empty();
      if (!broken_) reason_ = lost;  // never again: it is read without the lock from then on
      broken_.store(true, std::memory_order_release);
      for (InFlight &work : in_flight_) over.push_back(std::move(work));
      in_flight_.clear();
      polled_ = false;
    }
    // Mark the arrays as failed before the communicators are aborted: the abort ends the sums, and threads that wait
    // for them must then find their arrays marked.
    for (const InFlight &work : over)
      if (!all_done(work.done) || failed_device(work.done) >= 0)
        work.failed(work.owner.get(), text(work.label, ": ", lost).c_str());
    std::vector<NcclComm *> stopped(comms_.size());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      comms_.swap(stopped);
    }
    abort(std::move(stopped));
    return false;
  }

  void finish() const override {
    std::vector<std::shared_ptr<CudaEvent>> last;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!in_flight_.empty()) last = in_flight_.back().done;
    }
    for (const auto &event : last) event->wait();
  }

 private:
  using CudaEvents = std::vector<std::shared_ptr<CudaEvent>>;
  struct InFlight {
    CudaEvents ready, done;
    std::shared_ptr<const void> owner;
    Failed failed = nullptr;
    const char *label = "";  // the owner's
    bool begun = false;      // a device has reached it, at `since`
    Clock::time_point since{};
  };

  // To the streams of all devices.
  Events give(const Sums &sums, const Events &ready, std::shared_ptr<const void> owner, Failed failed) {
    InFlight work;                                               // destroyed after the locks are released
    const std::lock_guard<std::mutex> in_order(launch_order());  // the same order of sums on all devices
    const std::lock_guard<std::mutex> lock(mutex_);
    refuse_broken();
    work.owner = std::move(owner);
    work.failed = failed;
    work.label = sums.label;
    for (size_t d = 0; d < devices_.size(); ++d) {
      work.ready.push_back(std::dynamic_pointer_cast<CudaEvent>(ready[d]));
      named(devices_[d], [&] {
        const CurrentDevice current(devices_[d]);
        CUDA_CHECK(cudaStreamWaitEvent(streams_[d], work.ready[d]->handle(), 0));
      });
    }
    try {
      queue(sums);
      for (size_t d = 0; d < devices_.size(); ++d) {
        named(devices_[d], [&] {
          const CurrentDevice current(devices_[d]);
          work.done.push_back(std::make_shared<CudaEvent>(devices_[d]));
          work.done[d]->record(streams_[d]);
        });
      }
    } catch (const std::exception &e) {
      // Some devices may have begun and wait for the others: keep everything alive until they are stopped.
      reason_ = e.what();
      broken_.store(true, std::memory_order_release);
      keep(std::move(work));
      throw;
    }
    Events done(work.done.begin(), work.done.end());
    keep(std::move(work));
    return done;
  }

  // An abort may block as long as a device hangs, and the polling thread has other objects to poll: run it on a thread
  // of its own.
  void abort(std::vector<NcclComm *> comms) {
    const auto abort_all = [self = shared_from_this(), comms = std::move(comms)] {
      const CurrentDevice current(self->devices_[0], std::nothrow);
      for (NcclComm *const comm : comms)
        if (comm) self->nccl_.comm_abort(comm);
    };
    try {
      std::thread(abort_all).detach();
    } catch (const std::system_error &) {  // no thread can be created
      abort_all();
    }
  }
  void refuse_broken() const {
    if (broken()) throw Error(Code::kDevice, reason_);
  }
  // Throws the errors of kernels before their results are summed.
  static void refuse_failed(const Events &ready) {
    for (const auto &event : ready) {
      const auto &reporting = static_cast<const CudaEvent &>(*event).reporting();
      if (!reporting) continue;
      event->wait();
      reporting->throw_first();
    }
  }
  void keep(InFlight work) {
    in_flight_.push_back(std::move(work));
    if (!polled_) start_polling(shared_from_this());
    polled_ = true;
  }
  std::string describe(const char *call, int result) const {
    return text("NCCL: ", nccl_.error_string(result), " in ", call);
  }
  // One NCCL group for all devices: if one thread called per device, the first call would block for ever.
  void queue(const Sums &sums) {
    const CurrentDevice current(devices_[0]);
    int first = nccl_.group_start();
    const char *call = "ncclGroupStart";
    int at = -1;  // the device
    for (size_t d = 0; d < devices_.size() && first == Nccl::kSuccess; ++d) {
      for (const Summand &array : sums.of[d]) {
        if (first != Nccl::kSuccess) break;
        call = "ncclAllReduce", at = devices_[d];
        first = nccl_.all_reduce(array.from, array.to, size_t(array.count), nccl_type(array.dtype), Nccl::kSum,
                                 comms_[d], streams_[d]);
      }
    }
    const int end = nccl_.group_end();
    if (first == Nccl::kSuccess) call = "ncclGroupEnd", at = -1, first = end;
    if (first == Nccl::kSuccess || first == Nccl::kInProgress) return;
    throw Error(Code::kDevice,
                text(at < 0 ? all_names() : text(Context{DeviceType::kGpu, at}), ": ", describe(call, first)));
  }
  std::string all_names() const {
    std::string all;
    for (const int device : devices_) all += text(all.empty() ? "" : ", ", Context{DeviceType::kGpu, device});
    return all;
  }
  static bool all_done(const CudaEvents &events) {
    return std::all_of(events.begin(), events.end(), [](const auto &event) { return event->over(); });
  }
  static int failed_device(const CudaEvents &events) {
    for (size_t d = 0; d < events.size(); ++d) {
      const cudaError_t status = events[d]->status();
      if (status != cudaSuccess && status != cudaErrorNotReady) return int(d);
    }
    return -1;
  }
  // Names a device that has failed or is overdue; empty if there is none.
  std::string what_is_lost(InFlight &work) const {
    for (const CudaEvents *events : {&work.ready, &work.done}) {
      const int failed = failed_device(*events);
      if (failed >= 0)
        return text("gpu(", devices_[size_t(failed)],
                    ") has failed: ", cudaGetErrorString((*events)[size_t(failed)]->status()));
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      int error = Nccl::kSuccess;
      if (nccl_.comm_get_async_error(comms_[d], &error) == Nccl::kSuccess && error != Nccl::kSuccess &&
          error != Nccl::kInProgress)
        return text("gpu(", devices_[d], ") has failed: ", nccl_.error_string(error));
    }
    const auto is_ready = [](const auto &event) { return event->over(); };
    if (!work.begun) {
      work.begun = std::any_of(work.ready.begin(), work.ready.end(), is_ready);
      work.since = Clock::now();
    }
    if (!work.begun || Clock::now() - work.since < patience_ || all_done(work.done)) return "";
    const auto late = std::find_if_not(work.ready.begin(), work.ready.end(), is_ready);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience_).count();
    if (late == work.ready.end()) return text("the devices have not finished the sum in ", seconds, " seconds");
    return text("gpu(", devices_[size_t(late - work.ready.begin())], ") has not reached the sum for ", seconds,
                " seconds");
  }

  const Nccl &nccl_;
  const std::vector<int> devices_;
  const Clock::duration patience_;
  std::vector<cudaStream_t> streams_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<NcclComm *> comms_;
  std::deque<InFlight> in_flight_;
  bool polled_ = false;
  std::string reason_;  // why it is broken
  std::atomic<bool> broken_{false};
};

}  // namespace

std::shared_ptr<Communicator> make_cuda_communicator(const std::vector<Context> &contexts, std::string *why) {
  struct Known {
    std::mutex mutex;  // guards all
    std::map<std::vector<int>, std::weak_ptr<CudaCommunicator>> all;
  };
  static auto *const known = new Known;
  const Nccl *const nccl = find_nccl(why);
  if (!nccl) return nullptr;
  std::vector<int> devices;
  for (const Context &context : contexts) devices.push_back(context.id);
  const std::lock_guard<std::mutex> lock(known->mutex);
  std::weak_ptr<CudaCommunicator> &latest = known->all[devices];
  std::shared_ptr<CudaCommunicator> communicator = latest.lock();
  if (communicator && !communicator->broken()) return communicator;
  constexpr double kLeast = 0.1, kMost = 1e9;
  const double asked = parse_float(kSumTimeout.name, read_setting(kSumTimeout));
  const double seconds = asked < kMost ? std::max(kLeast, asked) : kMost;
  communicator = std::make_shared<CudaCommunicator>(
      *nccl, devices, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  latest = communicator;
  return communicator;
}

}  // namespace cohort
