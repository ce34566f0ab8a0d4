// SPDX-License-Identifier: Apache-2.0
// What a backend implements: memory, queues, events, kernels. cpu and cuda are the two backends; executor and group
// drive them through this header alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/context.hpp"
#include "device/kernel.hpp"
#include "device/memory_account.hpp"

namespace cohort {

class Trace;     // device/trace.hpp
class WorkInfo;  // likewise
Trace &process_trace();

// One block of memory of one device. Freed with the last reference, by whoever made it.
class Memory {
 public:
  Memory(Context context, void *data, size_t bytes, std::function<void(void *)> release)
      : context_(context), data_(data), bytes_(bytes), release_(std::move(release)) {}
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() {
    if (release_) release_(data_);
    if (account_) account_->release(bytes_);
  }
  const Context &context() const { return context_; }
  void *data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  const Context context_;
  void *const data_;
  const size_t bytes_;
  const std::function<void(void *)> release_;
  friend class Device;
  MemoryAccount *account_ = nullptr;  // in which it is booked
};

// A point in a queue's order that the host or another queue can wait for. From any backend.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void wait() const = 0;  // the calling thread; never throws: errors belong to the queue
};

// One kernel call of a plan, all resolved. `label` names operator and node for errors: "Convolution 'conv0'".
struct Step {
  const Kernel *kernel;
  Args args;
  const char *label;
  const WorkInfo *info = nullptr;  // null: it is not shown in a trace
};

// Runs a step on this thread, of whose work it is not a queue's. Throws what it throws, as an error that names it.
void run_on_caller(const Step &step);

// What a queue has made of a program, to run it again faster.
class Replay {
 public:
  virtual ~Replay() = default;  // when the queue is done with it
};

// Steps to be run one after the other. Their owner keeps them, and what they point to, alive and unchanged until the
// queue is done with them (Queue::run takes a reference on it).
struct Program {
  const Step *steps;
  size_t count;
  bool brief;  // so little work that waking another thread costs more: may run on the caller, with one thread
  // If set: called when a step fails and when the program is skipped because of an earlier failure, before sync()
  // throws. For whoever must know what was not written (Storage::fail). On the thread that works for the queue; must
  // neither throw nor use the queue.
  void (*failed)(const void *owner, const char *message) = nullptr;
  // It waits for nothing but what is queued already: may run on the caller, too, where the queue's one thread would
  // have to share a processor with it.
  bool here = false;
  // Its failure is told to `failed` alone: the queue is not poisoned, and what is queued behind is run. Nor is it
  // skipped for an earlier failure.
  bool contained = false;
  const char *name = nullptr;  // in a trace, of all its steps together: a literal
  // Of programs that are run again and again on one queue: where their owner keeps what the queue makes of them, and
  // lets go of it before steps or pointers change.
  std::unique_ptr<Replay> *replay = nullptr;
};

// One in-order stream of work on one device. One thread at a time enqueues; any thread may wait. Nothing here throws
// errors of the queued work but sync(): such an error poisons the queue, later work is skipped until a sync() has
// thrown it.
class Queue {
 public:
  virtual ~Queue() = default;  // waits for the queued work
  // Runs the program after everything queued before. May return first. Allocates nothing on a warm path.
  virtual void run(const Program &program, std::shared_ptr<const void> owner) = 0;
  // Calls fn on the host in this queue's order: before anything queued later is started, after everything queued before
  // has been started (cuda) or has finished (cpu). For a backend whose memory the host sees, this is how host code
  // joins in.
  virtual void call(std::function<void()> fn, const char *label) = 0;
  // bytes from one place to another, this device's memory or host memory, both of which `owner` keeps. `failed` as in
  // Program.
  virtual void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
                    void (*failed)(const void *owner, const char *message) = nullptr) = 0;
  virtual std::shared_ptr<Event> record() = 0;          // done when all queued before is; any thread
  virtual void wait(std::shared_ptr<Event> event) = 0;  // later work on this queue waits for it
  virtual void sync() = 0;                              // the caller waits; throws and clears the first error
  virtual void finish() noexcept = 0;                   // the caller waits, without memory; an error stays pending
  virtual void check() const = 0;                       // throws the first error, which stays pending
  virtual bool idle() const = 0;                        // nothing queued, no error pending
  virtual int num_threads() const = 0;                  // 1 on cuda
};

struct QueueOptions {
  int num_threads = 0;  // 0: all processors this process may use
  Trace *trace = &process_trace();
};

// What a device does at most, on so many threads.
struct MachineRates {
  double flops_per_s = 0;         // products of float32; 0: not known
  double narrow_flops_per_s = 0;  // of bfloat16, where there are units for it; on GPUs of float16, too
  double bytes_per_s = 0;         // read and written by a copy
  double tf32_flops_per_s = 0;    // of float32 whose factors are rounded to TF32, where there are units for it
};

class Communicator;  // device/communicator.hpp
class KernelTable;

// Which of an operator's kernels a step got, and why others did not get it.
struct KernelChoice {
  std::string name;      // KernelEntry::name
  std::string refusals;  // "NAME: why" of each that was preferred, in order; mostly empty
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  explicit Device(Context context) : context_(context) {}
  virtual ~Device() = default;
  const Context &context() const { return context_; }
  // 64-byte aligned, contents undefined; throws kOutOfMemory, of the device or of the limit that its account has.
  std::shared_ptr<Memory> allocate(size_t bytes);
  void keep_account(MemoryAccount &account) { account_ = &account; }
  virtual size_t cached_bytes() const { return 0; }  // that it keeps for later, beside those in use
  // The host's, to and from which this device's queues copy while the host goes on; for small things.
  virtual std::shared_ptr<void> host_memory(size_t bytes) { return std::shared_ptr<char[]>(new char[bytes]); }
  virtual std::shared_ptr<Queue> create_queue(const QueueOptions &options) = 0;
  virtual const KernelTable &kernels() const = 0;
  // What sums over these devices of one backend, this one the first. Null, and why, where nothing does.
  virtual std::shared_ptr<Communicator> make_communicator(const std::vector<Context> &, std::string *why) {
    *why = "this backend has none";
    return nullptr;
  }
  virtual MachineRates rates(int /* num_threads */) const { return {}; }  // measured once; zeros: nobody knows
  // A layout change: from one layout of a tensor to another. Either may be null, which is row-major and dense.
  virtual std::unique_ptr<Kernel> make_reorder(const TensorSpec &from, const TensorSpec &to, int num_threads) = 0;
  // Makes the kernel of a step: that of the first candidate that takes it and can be made. Before a candidate is made,
  // `prepare` may put the inputs into the layouts that it reads. May lower spec.num_threads to what can run: no lane
  // with more is to be given to the kernel. Throws kUnsupported with the reasons of all where there is none.
  using Prepare = std::function<void(const KernelEntry &entry, StepSpec &spec)>;
  std::unique_ptr<Kernel> make_kernel(StepSpec &spec, KernelChoice *choice = nullptr, const Prepare &prepare = nullptr);

 protected:
  virtual std::shared_ptr<Memory> obtain(size_t bytes) = 0;  // allocate(), but for the account
  // There was no room. True: work that has ended since had some, and it is worth trying again.
  virtual bool reclaim(int /* times */) { return false; }
  // Runs the entry's factory with the settings (threads, current device) under which the kernel will run.
  virtual std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) = 0;
  static std::unique_ptr<Kernel> call_factory(const KernelEntry &entry, StepSpec &spec) { return entry.make_(spec); }

 private:
  const Context context_;
  MemoryAccount *account_ = nullptr;
};

// The device of a context; loads its backend at the first use. The same object for the same context while it is in use.
// Throws kDevice that says why where there is no such device or backend (CTX-03).
std::shared_ptr<Device> get_device(const Context &context);
// Queues that a caller's work goes to are registered; wait_for_all_queues() waits for those that are still there, and
// then throws what failed on any of them, which stays for whoever waits for that queue: it may be another's.
void register_queue(const std::shared_ptr<Queue> &queue);
void wait_for_all_queues();
int count_devices(DeviceType type);  // GPUs that can be used; for cpu: the processors this process may use

// A backend answers for all ids of one device type.
using BackendFactory = std::function<std::shared_ptr<Device>(int32_t id)>;
BackendFactory cpu_backend();                                  // src/cpu
bool backend_available(DeviceType type, std::string *reason);  // false: reason says what is missing

// The one symbol that a backend's shared object exports: `cohort_backend`, of this type. It answers through *backend,
// or returns a message that says why not (static text or text it keeps). interface_version and build_id guard against a
// stale file.
struct BackendExports {
  Device *(*create)(int32_t id);  // throws Error kDevice
  int (*count)();
};
constexpr int kBackendInterface = 2;
using BackendEntry = const char *(*)(int interface_version, const char *build_id, BackendExports *backend);

}  // namespace cohort
