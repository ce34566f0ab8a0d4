// SPDX-License-Identifier: Apache-2.0
// The backend interface: memory, queues, events, kernels. cpu and cuda implement it; executor and group use devices
// only through this header.
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

// One block of memory of one device. The last reference frees it through `release`.
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
  MemoryAccount *account_ = nullptr;  // the account that counts this memory
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

// Runs a step on the calling thread, outside of any queue. Rethrows its error with the step's label added.
void run_on_caller(const Step &step);

// A queue's compiled form of a program, used to run it again faster (a CUDA graph).
class Replay {
 public:
  virtual ~Replay() = default;  // after the queue has finished with it
};

// How many threads a program is worth, by an estimate of its time.
enum class WorkSize : uint8_t {
  kParallel,  // runs on all threads of the queue
  kSerial,    // not worth splitting: runs on one thread
  kBrief,     // not worth waking a thread either: serial, and may run on the calling thread
};

inline int threads_of(WorkSize size, int num_threads) { return size == WorkSize::kParallel ? num_threads : 1; }

// Steps that run one after another. Their owner keeps them, and everything they point to, alive and unchanged until the
// queue has finished with them (Queue::run holds a reference to the owner).
struct Program {
  const Step *steps;
  size_t count;
  WorkSize size;
  // If set, called when a step fails, and when the program is skipped because of an earlier failure, before sync()
  // throws; it marks what was not written (Storage::fail). Runs on the queue's worker thread; must neither throw nor
  // use the queue.
  void (*failed)(const void *owner, const char *message) = nullptr;
  // Waits for nothing beyond what is queued already, so it may also run on the calling thread if the queue's only
  // thread would have to share a processor with it.
  bool may_run_inline = false;
  // A failure is reported through `failed` only: it does not poison the queue, and an earlier failure does not skip
  // this program.
  bool isolated = false;
  const char *name = nullptr;  // name of the whole program in a trace; a string literal
  // For programs that run repeatedly on one queue: where the owner stores the queue's replay. The owner resets it
  // before steps or pointers change.
  std::unique_ptr<Replay> *replay = nullptr;
};

// One in-order stream of work on one device. One thread at a time enqueues; any thread may wait. Only sync() and
// check() throw errors of queued work: the first error poisons the queue and later work is skipped until sync() has
// thrown it.
class Queue {
 public:
  virtual ~Queue() = default;  // waits for the queued work
  // Runs the program after everything queued before. May return first. Allocates nothing on a warm path.
  virtual void run(const Program &program, std::shared_ptr<const void> owner) = 0;
  // Calls fn on the host in queue order: before anything queued later starts, and after everything queued earlier has
  // started (cuda) or finished (cpu). On backends whose memory the host can access, this runs host code between steps.
  virtual void call(std::function<void()> fn, const char *label) = 0;
  // Copies bytes between this device's memory and host memory, in either direction; `owner` keeps both alive. `failed`
  // as in Program.
  virtual void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
                    void (*failed)(const void *owner, const char *message) = nullptr) = 0;
  virtual std::shared_ptr<Event> record() = 0;  // fires when everything queued so far is done; callable from any thread
  virtual void wait(std::shared_ptr<Event> event) = 0;  // work queued later waits for it
  virtual void sync() = 0;                              // the caller waits; throws the first error and clears it
  virtual void finish() noexcept = 0;                   // the caller waits; allocates nothing; an error stays pending
  virtual void check() const = 0;                       // throws the first error, which stays pending
  virtual bool idle() const = 0;                        // nothing queued, no error pending
  virtual int num_threads() const = 0;                  // 1 on cuda
};

struct QueueOptions {
  int num_threads = 0;  // 0: all processors this process may use
  Trace *trace = &process_trace();
};

// Peak rates of a device with a given number of threads.
struct MachineRates {
  double flops_per_s = 0;         // float32 multiply-adds; 0: not known
  double narrow_flops_per_s = 0;  // bfloat16, and on GPUs float16, if the hardware has units for it
  double bytes_per_s = 0;         // read and written by a copy
  double tf32_flops_per_s = 0;    // float32 with factors rounded to TF32, if the hardware has units for it
};

class Communicator;  // device/communicator.hpp
class KernelTable;

// Which of an operator's kernels a step got, and why preferred ones were refused.
struct KernelChoice {
  std::string name;      // KernelEntry::name
  std::string refusals;  // "NAME: why" for each kernel tried before, in order; mostly empty
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  explicit Device(Context context) : context_(context) {}
  virtual ~Device() = default;
  const Context &context() const { return context_; }
  // 64-byte aligned, contents undefined. Throws kOutOfMemory if the device is full or its account's limit is reached.
  std::shared_ptr<Memory> allocate(size_t bytes);
  void keep_account(MemoryAccount &account) { account_ = &account; }
  virtual size_t cached_bytes() const { return 0; }  // freed memory the device keeps for reuse
  // Host memory from which this device's queues copy asynchronously; meant for small blocks.
  virtual std::shared_ptr<void> host_memory(size_t bytes) { return std::shared_ptr<char[]>(new char[bytes]); }
  virtual std::shared_ptr<Queue> create_queue(const QueueOptions &options) = 0;
  virtual const KernelTable &kernels() const = 0;
  // A communicator over these devices, all of this backend, the first one this device. Null, with the reason in *why,
  // if there is none.
  virtual std::shared_ptr<Communicator> make_communicator(const std::vector<Context> &, std::string *why) {
    *why = "this backend has none";
    return nullptr;
  }
  virtual MachineRates rates(int /* num_threads */) const { return {}; }  // measured once; zeros: not known
  // Converts a tensor from one layout to another. A null layout is row-major and dense.
  virtual std::unique_ptr<Kernel> make_reorder(const TensorSpec &from, const TensorSpec &to, int num_threads) = 0;
  // Creates the kernel of a step from the first candidate that accepts it and can be constructed. `prepare`, if given,
  // is called before each construction and may change the inputs' layouts to those the candidate reads. May lower
  // spec.num_threads, which bounds the threads of any Lane passed to the kernel. Throws kUnsupported with all reasons
  // if no candidate works.
  using Prepare = std::function<void(const KernelEntry &entry, StepSpec &spec)>;
  std::unique_ptr<Kernel> make_kernel(StepSpec &spec, KernelChoice *choice = nullptr, const Prepare &prepare = nullptr);

 protected:
  virtual std::shared_ptr<Memory> obtain(size_t bytes) = 0;  // allocate() without the accounting
  // Called when memory is out. Returns true if finished work has freed some, so that a retry makes sense.
  virtual bool reclaim(int /* times */) { return false; }
  // Runs the entry's factory with the settings (threads, current device) under which the kernel will run.
  virtual std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) = 0;
  static std::unique_ptr<Kernel> call_factory(const KernelEntry &entry, StepSpec &spec) { return entry.make_(spec); }

 private:
  const Context context_;
  MemoryAccount *account_ = nullptr;
};

// The device of a context. Loads its backend on first use; returns the same object while anyone holds it. Throws
// kDevice with the reason if there is no such device or backend (CTX-03).
std::shared_ptr<Device> get_device(const Context &context);
// Queues that run a caller's work are registered here. wait_for_all_queues() waits for all that still exist, then
// throws their errors; each error also stays pending for the next wait on that queue.
void register_queue(const std::shared_ptr<Queue> &queue);
void wait_for_all_queues();
int count_devices(DeviceType type);  // usable GPUs; for cpu: processors this process may use

// Creates the device with a given id. Each backend serves all ids of one device type.
using BackendFactory = std::function<std::shared_ptr<Device>(int32_t id)>;
BackendFactory cpu_backend();                                  // src/cpu
bool backend_available(DeviceType type, std::string *reason);  // false: reason says what is missing

// Type of `cohort_backend`, the one symbol that a backend's shared object exports. It fills *backend, or returns the
// reason it cannot (a string that stays valid). interface_version and build_id guard against a stale file.
struct BackendExports {
  Device *(*create)(int32_t id);  // throws Error kDevice
  int (*count)();
};
constexpr int kBackendInterface = 2;
using BackendEntry = const char *(*)(int interface_version, const char *build_id, BackendExports *backend);

}  // namespace cohort
