// SPDX-License-Identifier: Apache-2.0
// Device memory: its pages are accessible only to operations that run on their device, and are opened at the first
// access. New memory is filled with NaN, and addresses are never reused. A fault inside a kernel ends that kernel, as
// on a device.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "sim.hpp"
#include "sim_threads.hpp"

#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace cudasim {
namespace {

constexpr size_t kRegionBytes = size_t(1) << 37, kAlignment = 256, kPage = 4096;
constexpr unsigned char kFresh = 0xff, kGuard = 0xcb;
constexpr size_t kMostOpen = 4096;  // each is two mappings, of which a process may have some 65,000

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

void fail_hard(const char *what) {
  std::perror(what);
  std::abort();
}

void protect(const Block &block, int how) {
  if (mprotect(block.pages, block.page_bytes, how) != 0) fail_hard("cudasim: mprotect");
}

// Fills the bytes of the pages around a block with kGuard.
void guard(const Block &block) {
  std::memset(block.pages, kGuard, size_t(block.data - block.pages));
  std::memset(block.end(), kGuard, size_t(block.pages + block.page_bytes - block.end()));
#ifdef UNDER_ASAN
  ASAN_POISON_MEMORY_REGION(block.pages, size_t(block.data - block.pages));
  ASAN_POISON_MEMORY_REGION(block.end(), size_t(block.pages + block.page_bytes - block.end()));
#endif
}

bool is_guarded(const Block &block) {
#ifdef UNDER_ASAN
  return block.state == Block::State::kLive;  // AddressSanitizer has reported writes there
#else
  const auto whole = [](const char *from, const char *to) {
    return std::all_of(from, to, [](char byte) { return static_cast<unsigned char>(byte) == kGuard; });
  };
  return whole(block.pages, block.data) && whole(block.end(), block.pages + block.page_bytes);
#endif
}

struct sigaction before;  // the fault handler while no kernel runs

// Called at an access to a protected page: a first access by an operation of the page's device, or an illegal one.
void handle_fault(int number, siginfo_t *info, void *context) {
  Simulator &all = sim();
  void *const address = info->si_addr;
  if (threads_running()) {
    Block *const block = all.find(address);
    if (block && block->state == Block::State::kLive && !block->open && block->device == all.running_device) {
      all.open(*block);
      return;
    }
    note_fault(address);
    auto *const machine = static_cast<ucontext_t *>(context);
    machine->uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(leave_at_fault);
    machine->uc_mcontext.gregs[REG_RSP] = machine->uc_mcontext.gregs[REG_RSP] / 16 * 16 - 8;  // as after a call
    return;
  }
  if (all.is_device_address(address)) {
    std::fprintf(stderr, "cudasim: the host touches %s\n", in_words(address).c_str());
  }
  sigaction(number, &before, nullptr);  // the access is repeated, with the previous handler
}

}  // namespace

void take_faults() {
  struct sigaction action {
  }, old;
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSEGV, &action, &old) != 0) fail_hard("cudasim: sigaction");
  if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != handle_fault) before = old;
}

void give_faults_back() {
  if (sigaction(SIGSEGV, &before, nullptr) != 0) fail_hard("cudasim: sigaction");
}

bool Simulator::is_device_address(const void *address) const {
  return std::any_of(devices, devices + kMaxDevices, [&](const Device &device) {
    return device.region && address >= device.region && address < device.region + kRegionBytes;
  });
}

Block *Simulator::allocate(int device, size_t bytes, Block::State state) {
  Block block;
  block.device = device;
  block.bytes = bytes;
  const size_t inner = round_up(std::max<size_t>(bytes, 1), kAlignment);
  block.page_bytes = round_up(inner, kPage);
  if (device < 0) {
    block.pages = static_cast<char *>(
        mmap(nullptr, block.page_bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (block.pages == MAP_FAILED) return nullptr;
    if (mprotect(block.pages + block.page_bytes, kPage, PROT_NONE) != 0) fail_hard("cudasim: mprotect");
    bytes_pinned += bytes;
  } else {
    Device &on = devices[device];
    if (on.bytes_in_use + bytes > device_bytes) return nullptr;
    if (!on.region) {
      void *const region = mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (region == MAP_FAILED) fail_hard("cudasim: mmap");
      madvise(region, kRegionBytes, MADV_DONTDUMP);  // terabytes of addresses, hardly any of them in use
      on.region = static_cast<char *>(region);
    }
    on.region_used += kPage;  // between two blocks
    if (on.region_used + block.page_bytes + kPage > kRegionBytes) {
      std::fprintf(stderr, "cudasim: no addresses are left\n");
      std::abort();
    }
    block.pages = on.region + on.region_used;
    on.region_used += block.page_bytes;
    on.bytes_in_use += bytes;
  }
  block.data = block.pages + block.page_bytes - inner;
  Block &kept = blocks[reinterpret_cast<uintptr_t>(block.pages)] = block;
  if (state == Block::State::kLive) set_live(kept);
  return &kept;
}

void Simulator::set_live(Block &block) {
  block.state = Block::State::kLive;
  if (block.device >= 0) protect(block, PROT_READ | PROT_WRITE);
  if (!kernels_are_empty) std::memset(block.data, kFresh, block.bytes);
  guard(block);
  if (block.device >= 0) protect(block, PROT_NONE);
}

void Simulator::free_block(Block &block) {
  if (block.device < 0) {
    if (!is_guarded(block)) report("something was written beside " + in_words(block.data));
    bytes_pinned -= block.bytes;
#ifdef UNDER_ASAN
    ASAN_UNPOISON_MEMORY_REGION(block.pages, block.page_bytes);
#endif
    munmap(block.pages, block.page_bytes + kPage);
    blocks.erase(reinterpret_cast<uintptr_t>(block.pages));
    return;
  }
  opened.erase(std::remove(opened.begin(), opened.end(), &block), opened.end());
  devices[block.device].bytes_in_use -= block.bytes;
  if (block.pool) block.pool->used -= block.bytes;
#ifdef UNDER_ASAN
  ASAN_UNPOISON_MEMORY_REGION(block.pages, block.page_bytes);
#endif
  protect(block, PROT_NONE);
  madvise(block.pages, block.page_bytes, MADV_DONTNEED);
  block.open = false;
  block.state = Block::State::kFreed;
}

Block *Simulator::find(const void *address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto after = blocks.upper_bound(at);
  if (after == blocks.begin()) return nullptr;
  Block &block = (--after)->second;
  return at < after->first + block.page_bytes ? &block : nullptr;
}

Block *Simulator::find_live(const void *address, size_t bytes, int device, std::string *why) {
  Block *const block = find(address);
  const auto *const from = static_cast<const char *>(address);
  const bool inside = block && from >= block->data && from <= block->end() && bytes <= size_t(block->end() - from);
  if (inside && block->state == Block::State::kLive && (device == -2 || block->device == device)) return block;
  *why = in_words(address);
  if (block && block->state == Block::State::kLive && !inside) *why += ", over its end with " + std::to_string(bytes);
  return nullptr;
}

void Simulator::open(Block &block) {
  if (block.open || block.device < 0) return;
  if (opened.size() >= kMostOpen) close_oldest(kMostOpen / 2);
  protect(block, PROT_READ | PROT_WRITE);
  block.open = true;
  opened.push_back(&block);
}

void Simulator::close_all() { close_oldest(opened.size()); }

// A kernel that still uses one of these blocks opens it again.
void Simulator::close_oldest(size_t count) {
  const auto end = opened.begin() + std::ptrdiff_t(count);
  for (Block *const block : std::vector<Block *>(opened.begin(), end)) {
    if (!is_guarded(*block)) {
      fault(block->device, cudaErrorIllegalAddress, "something was written beside " + in_words(block->data));
      guard(*block);
    }
    protect(*block, PROT_NONE);
    block->open = false;
  }
  opened.erase(opened.begin(), end);
}

std::string in_words(const void *address) {
  std::ostringstream words;
  const Block *const block = sim().find(address);
  if (!block) {
    words << (sim().is_device_address(address) ? "device memory between two arrays" : "memory of the host") << " ("
          << address << ")";
    return words.str();
  }
  static const char *const kStates[] = {"not yet allocated", "live", "freed"};
  words << "byte " << static_cast<const char *>(address) - block->data << " of " << block->bytes << " "
        << kStates[int(block->state)] << " ones";
  if (block->device < 0) {
    words << ", pinned";
  } else {
    words << " of gpu(" << block->device << ")";
  }
  return words.str();
}

}  // namespace cudasim
