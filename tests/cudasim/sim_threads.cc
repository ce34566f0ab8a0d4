// SPDX-License-Identifier: Apache-2.0
// Runs kernels block by block. The threads of a block are fibers that run until they wait for each other, in an order
// drawn anew each time. Threads that never wait share one fiber.
#include "sim_kernel.hpp"

#include "sim_threads.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "sim.hpp"

#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error the fibers of the simulator are written for x86-64
#endif

// Saves the callee-saved registers and the stack pointer at *from; resumes the fiber that was saved as `to`.
asm(R"(
.text
.hidden cudasim_switch
.globl cudasim_switch
.type cudasim_switch, @function
cudasim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cudasim_switch, .-cudasim_switch
)");
extern "C" void cudasim_switch(void **from, void *to);

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cudasim {
namespace {

constexpr size_t kStackBytes = size_t(256) << 10, kSharedBytes = size_t(227) << 10, kStaticSharedBytes = 48 << 10;
constexpr int kMostThreads = 1024, kWarp = 32;

struct Fiber {
  char *stack = nullptr;
  void *saved = nullptr;  // its stack pointer while it is suspended
};

enum class State : uint8_t { kNew, kReady, kAtBarrier, kInWarp, kDone };

struct Thread {
  State state;
  Fiber *fiber;
  unsigned mask;  // of the exchange it is in
  int from_lane;
  uint64_t value;
};

struct Shared {
  const void *key;
  size_t at, bytes;
};

// The running block.
struct Running {
  std::function<void()> one_thread;
  Thread threads[kMostThreads];
  int num_threads = 0, current = -1;
  void *scheduler = nullptr;  // its stack pointer while a fiber runs
  bool active = false;
  std::string fault;
  std::vector<Shared> shared;
  size_t dynamic_bytes = 0;
  alignas(256) char memory[kSharedBytes];
} running;

std::vector<Fiber *> &idle = *new std::vector<Fiber *>;  // used by objects that outlive static ones

#ifdef UNDER_ASAN
const void *scheduler_bottom = nullptr;
size_t scheduler_size = 0;
void *scheduler_fake = nullptr;

void to_fiber(Fiber &fiber) {
  __sanitizer_start_switch_fiber(&scheduler_fake, fiber.stack, kStackBytes);
  cudasim_switch(&running.scheduler, fiber.saved);
  __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
}
void to_scheduler(Fiber &fiber) {
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, scheduler_bottom, scheduler_size);
  cudasim_switch(&fiber.saved, running.scheduler);
  __sanitizer_finish_switch_fiber(fake, &scheduler_bottom, &scheduler_size);
}
void arrive() { __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom, &scheduler_size); }
#else
void to_fiber(Fiber &fiber) { cudasim_switch(&running.scheduler, fiber.saved); }
void to_scheduler(Fiber &fiber) { cudasim_switch(&fiber.saved, running.scheduler); }
void arrive() {}
#endif

Thread &current() { return running.threads[running.current]; }

// The body of a fiber: runs threads, one after the other.
void live() {
  arrive();
  for (;;) {
    running.one_thread();
    Thread &thread = current();
    thread.state = State::kDone;
    to_scheduler(*thread.fiber);
  }
}

void prepare(Fiber &fiber) {
  auto **top = reinterpret_cast<void **>(fiber.stack + kStackBytes);
  *--top = nullptr;                          // where live() would return to; keeps the stack aligned as after a call
  *--top = reinterpret_cast<void *>(&live);  // where cudasim_switch returns to
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.saved = top;
}

Fiber *take_fiber() {
  if (!idle.empty()) {
    Fiber *const fiber = idle.back();
    idle.pop_back();
    return fiber;
  }
  auto *const fiber = new Fiber;
  void *const pages =
      mmap(nullptr, kStackBytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages, 4096, PROT_NONE) != 0) {
    std::perror("cudasim: a stack");
    std::abort();
  }
  fiber->stack = static_cast<char *>(pages) + 4096;
  prepare(*fiber);
  return fiber;
}

// The running thread has made an error: stops it and its kernel.
[[noreturn]] void stop(const std::string &fault) {
  running.fault = fault;
  for (;;) to_scheduler(*current().fiber);
}

void pause(State state) {
  current().state = state;
  to_scheduler(*current().fiber);
}

void resume(int index) {
  Thread &thread = running.threads[index];
  running.current = index;
  const unsigned x = blockDim.x, y = blockDim.y, i = unsigned(index);
  threadIdx = uint3{i % x, i / x % y, i / x / y};
  if (!thread.fiber) thread.fiber = take_fiber();
  thread.state = State::kReady;
  to_fiber(*thread.fiber);
  if (thread.state == State::kDone) {
    idle.push_back(thread.fiber);
    thread.fiber = nullptr;
  }
}

std::string waiting_threads() {
  int at_barrier = 0, in_warp = 0, done = 0;
  for (int i = 0; i < running.num_threads; ++i) {
    at_barrier += running.threads[i].state == State::kAtBarrier;
    in_warp += running.threads[i].state == State::kInWarp;
    done += running.threads[i].state == State::kDone;
  }
  return "of " + std::to_string(running.num_threads) + " threads of a block, " + std::to_string(at_barrier) +
         " wait at a barrier, " + std::to_string(in_warp) + " in a warp, and " + std::to_string(done) + " have ended";
}

std::vector<int> draw_order() {
  std::vector<int> order(size_t(running.num_threads));
  std::iota(order.begin(), order.end(), 0);
  const uint64_t kind = sim().draw(4);
  if (kind == 1) std::reverse(order.begin(), order.end());
  if (kind >= 2) std::shuffle(order.begin(), order.end(), sim().random);
  return order;
}

void forget_shared() {
  size_t used = running.dynamic_bytes;
  for (const Shared &piece : running.shared) used = std::max(used, piece.at + piece.bytes);
#ifdef UNDER_ASAN
  ASAN_UNPOISON_MEMORY_REGION(running.memory, sizeof running.memory);
#endif
  std::fill_n(running.memory, used, char(0xff));
#ifdef UNDER_ASAN
  ASAN_POISON_MEMORY_REGION(running.memory, sizeof running.memory);
  ASAN_UNPOISON_MEMORY_REGION(running.memory, running.dynamic_bytes);
#endif
  running.shared.clear();
}

// False: its kernel is stopped.
bool run_block() {
  forget_shared();
  for (int i = 0; i < running.num_threads; ++i) running.threads[i] = Thread{State::kNew, nullptr, 0, 0, 0};
  for (;;) {
    bool went_on = false, all_done = true;
    for (const int i : draw_order()) {
      const State state = running.threads[i].state;
      if (state == State::kNew || state == State::kReady) {
        resume(i);
        went_on = true;
        if (!running.fault.empty()) return false;
      }
      all_done = all_done && running.threads[i].state == State::kDone;
    }
    if (all_done) return true;
    if (went_on) continue;
    for (int i = 0; i < running.num_threads; ++i) {
      if (running.threads[i].state != State::kAtBarrier) {
        running.fault = waiting_threads();
        return false;
      }
    }
    for (int i = 0; i < running.num_threads; ++i) running.threads[i].state = State::kReady;
  }
}

bool is_mapped(uintptr_t address) {
  unsigned char resident;
  return syscall(SYS_mincore, address / 4096 * 4096, size_t(1), &resident) == 0;
}

// Empty if the arguments are valid.
std::string check_arguments(const std::vector<Argument> &arguments, int device) {
  std::string why;
  for (const Argument &argument : arguments) {
    const auto *const address = reinterpret_cast<const void *>(argument.word);
    if (!address) continue;
    const bool looks_so =
        sim().is_device_address(address) ||
        (argument.word >= 0x500000000000 && argument.word < 0x800000000000 && is_mapped(argument.word));
    if (!argument.is_pointer && !looks_so) continue;
    if (sim().find_live(address, 0, device, &why) || sim().find_live(address, 0, -1, &why)) continue;
    return "argument " + std::to_string(argument.number) + " points to " + why;
  }
  return "";
}

void run_kernel(const cudaLaunchConfig_t &config, const char *kernel, const std::function<void()> &one_thread,
                const std::vector<Argument> &arguments, int device) {
  std::string fault = check_arguments(arguments, device);
  if (fault.empty()) {
    running.one_thread = one_thread;
    running.num_threads = int(config.blockDim.x * config.blockDim.y * config.blockDim.z);
    running.dynamic_bytes = config.dynamicSmemBytes;
    running.fault.clear();
    running.active = true;
    take_faults();
    blockDim = config.blockDim;
    gridDim = config.gridDim;
    const uint64_t count = uint64_t(config.gridDim.x) * config.gridDim.y * config.gridDim.z;
    const bool backwards = sim().draw(2) != 0;
    for (uint64_t b = 0; b < count && running.fault.empty(); ++b) {
      const uint64_t i = backwards ? count - 1 - b : b;
      blockIdx = uint3{unsigned(i % config.gridDim.x), unsigned(i / config.gridDim.x % config.gridDim.y),
                       unsigned(i / config.gridDim.x / config.gridDim.y)};
      run_block();
    }
    give_faults_back();
    running.active = false;
    running.one_thread = nullptr;
    for (int i = 0; i < running.num_threads; ++i) {  // of a kernel that was stopped
      Thread &thread = running.threads[i];
      if (!thread.fiber) continue;
      prepare(*thread.fiber);
      idle.push_back(thread.fiber);
      thread.fiber = nullptr;
    }
    fault = running.fault;
  }
  if (!fault.empty()) sim().fault(device, cudaErrorIllegalAddress, std::string(kernel) + ": " + fault);
}

// The part of launch_kernel's name that gives its template parameters.
std::string kernel_name(const std::string &function) {
  const size_t at = function.find("[with ");
  return "kernel " + (at == std::string::npos ? function : function.substr(at));
}

}  // namespace

bool threads_running() { return running.active && running.current >= 0; }

void note_fault(void *address) {
  running.fault = "thread " + std::to_string(running.current) + " of block " + std::to_string(blockIdx.x) +
                  " touches " + in_words(address);
}

void leave_at_fault() {
  for (;;) to_scheduler(*current().fiber);
}

void wait_at_barrier() { pause(State::kAtBarrier); }

int lane() { return running.current % kWarp; }

uint64_t exchange(unsigned mask, uint64_t value, int from_lane) {
  const int first = running.current / kWarp * kWarp, own = running.current - first;
  if (!(mask >> own & 1u)) stop("a thread shuffles with a mask that it is not in");
  Thread &thread = current();
  thread.mask = mask;
  thread.from_lane = from_lane;
  thread.value = value;
  bool complete = true;
  uint64_t values[kWarp];
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1u)) continue;
    if (first + l >= running.num_threads) stop("a shuffle's mask has lanes that the block lacks");
    const Thread &other = running.threads[first + l];
    if (other.state == State::kDone) stop("a shuffle's mask has a lane whose thread has ended");
    if (l != own && other.state == State::kInWarp && other.mask != mask) stop("lanes shuffle with different masks");
    complete = complete && (l == own || other.state == State::kInWarp);
    values[l] = other.value;
  }
  if (!complete) {
    pause(State::kInWarp);
    return thread.value;
  }
  uint64_t votes = 0;
  for (int l = 0; l < kWarp; ++l)
    if (mask >> l & 1u) votes |= uint64_t(values[l] != 0) << l;
  for (int l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1u)) continue;
    Thread &other = running.threads[first + l];
    const int from = other.from_lane;
    other.value = from == kBallot ? votes : (mask >> from & 1u) ? values[from] : ~uint64_t(0);
    other.state = State::kReady;
  }
  pause(State::kReady);  // so that the last lane to arrive does not go on first
  return thread.value;
}

void *shared_memory(const void *key, size_t bytes, size_t alignment) {
  size_t end = (running.dynamic_bytes + 255) / 256 * 256;
  const size_t begin = end;
  for (const Shared &piece : running.shared) {
    if (piece.key == key) return running.memory + piece.at;
    end = piece.at + piece.bytes;
  }
  const size_t at = (end + 16 + alignment - 1) / alignment * alignment;  // a gap that must stay unwritten
  if (at + bytes - begin > kStaticSharedBytes) stop("more than 48 KiB of shared memory");
  running.shared.push_back({key, at, bytes});
#ifdef UNDER_ASAN
  ASAN_UNPOISON_MEMORY_REGION(running.memory + at, bytes);
#endif
  return running.memory + at;
}

void check_vector(const void *address, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  stop("a load or store of " + std::to_string(bytes) + " bytes at " + in_words(address) + " is misaligned");
}

cudaError_t enqueue_kernel(const cudaLaunchConfig_t &config, const void *code, const char *kernel,
                           std::function<void()> one_thread, std::vector<Argument> arguments, size_t argument_bytes) {
  const Call call("cudaLaunchKernelEx", Call::kContext);
  if (call.refused) return call.result(call.refused);
  const dim3 &block = config.blockDim, &grid = config.gridDim;
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > kMostThreads || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return call.result(cudaErrorInvalidConfiguration);
  }
  if (argument_bytes > 4096 || config.dynamicSmemBytes > kStaticSharedBytes) return call.result(cudaErrorInvalidValue);
  if (!config.stream || !sim().streams.count(config.stream) || config.stream->context != call.context) {
    return call.result(cudaErrorInvalidResourceHandle);
  }
  sim().use_code(reinterpret_cast<uintptr_t>(code), config.stream, "a kernel");
  Op op{"a kernel"};
  if (sim().break_at && sim().num_launches + 1 >= sim().break_at) {
    sim().break_at = 0;
    op.run = [device = call.context->device] { sim().fault(device, cudaErrorIllegalAddress, "made to break"); };
  } else if (!sim().kernels_are_empty) {
    op.run = [config, name = kernel_name(kernel), thread = std::move(one_thread), arguments = std::move(arguments),
              device = call.context->device] { run_kernel(config, name.c_str(), thread, arguments, device); };
  }
  sim().launch(config.stream, std::move(op));
  return call.result(cudaSuccess);
}

}  // namespace cudasim
