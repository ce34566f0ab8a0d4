// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: devices, contexts, streams, memory. One thread at a time is inside, and whoever waits for
// queued work does it himself. Read by the files of this folder alone; cuda/ sees NVIDIA's headers.
//
// Streams are adversaries: which of them goes on next is drawn by lot, and all of them as late as can be.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace cudasim {

constexpr int kMaxDevices = 16;

// A point in a stream.
struct Mark {
  bool done = false;
};

// A collective of several streams: runs when it is at the head of each.
struct Meeting {
  size_t num_expected = 0;
  std::vector<CUstream_st *> streams;
  std::function<void()> run;
  bool met = false;
};

struct GraphRun;

struct Op {
  const char *what = "";
  std::function<void()> run = nullptr;
  std::shared_ptr<Mark> after = nullptr;  // it waits for this
  std::shared_ptr<Mark> mark = nullptr;   // done when it has run
  std::shared_ptr<Meeting> meeting = nullptr;
  bool on_host = false;                       // a function of the host: nothing is locked while it runs
  bool by_driver = false;                     // memory is taken and given back though the device stands still
  std::shared_ptr<GraphRun> graph = nullptr;  // a node at a time
};

// ---- memory (sim_memory.cc)

struct Block {
  enum class State { kReserved, kLive, kFreed } state = State::kReserved;
  int device = -1;  // -1: pinned memory of the host
  char *data = nullptr, *pages = nullptr;
  size_t bytes = 0, page_bytes = 0;
  bool open = false;
  CUmemPoolHandle_st *pool = nullptr;  // from which it was taken

  char *end() const { return data + bytes; }
};

struct Device {
  char *region = nullptr;  // the addresses of its memory
  size_t region_used = 0, bytes_in_use = 0;
  cudaError_t fault = cudaSuccess;  // stays
  bool stopped = false;
  CUctx_st *primary = nullptr;
  int primary_uses = 0, num_contexts = 0;
};

struct Simulator {
  Simulator();

  std::mutex mutex;  // guards all that follows
  std::condition_variable changed;
  pid_t process;
  std::mt19937_64 random;
  bool lazy = true;
  bool peers = true;  // devices reach each other's memory
  int num_devices = 2;
  size_t device_bytes = size_t(1) << 30;
  Device devices[kMaxDevices];
  std::set<CUstream_st *> streams;  // also those that were destroyed with work in them
  std::set<CUevent_st *> events;
  std::set<CUgraph_st *> captured;
  std::set<CUgraphExec_st *> graphs;
  uint64_t num_calls = 0, num_launches = 0, num_replays = 0, num_collectives = 0, fail_at = 0, break_at = 0;
  cudaError_t fail_with = cudaSuccess;
  std::map<cudaDeviceAttr, int> attributes;  // of all devices
  void be_machine(int capability, int units, int clock, int memory_clock, int bus_bits);
  bool aborts_hang = false, kernels_are_empty = false;
  size_t cudnn_version = 0;
  int driver_version = 0;  // of CUDA, that it serves; 0: there is no driver
  bool driver_serves() const { return driver_version / 1000 >= CUDART_VERSION / 1000; }
  std::set<std::pair<int, uint64_t>> used_code;  // by device
  std::thread::id launching;                     // who gives a collective to several devices now
  bool unloading = false;                        // the process ends: no call does anything any more
  std::string reports;
  std::map<uintptr_t, Block> blocks;  // by the first byte of their pages
  std::vector<Block *> opened;
  size_t bytes_pinned = 0;
  // What runs now.
  int running_device = -1;
  const char *running = "";

  uint64_t draw(uint64_t below) { return random() % below; }

  // Memory. Device pages can be touched only by what runs on their device.
  Block *allocate(int device, size_t bytes, Block::State state);
  void set_live(Block &block);
  void free_block(Block &block);
  Block *find(const void *address);  // also freed ones
  // Null, and the reason, where these bytes are not those of one live block of this device (-1: pinned, -2: any).
  Block *find_live(const void *address, size_t bytes, int device, std::string *why);
  void open(Block &block);
  void close_all();
  void close_oldest(size_t count);
  bool is_device_address(const void *address) const;

  // Work.
  void enqueue(CUstream_st *stream, Op op);
  void launch(CUstream_st *stream, Op op);  // the same of a kernel, of ours or of a library's
  void progress();                          // some of what is queued, perhaps
  // Goes on until `done` holds. False: nothing can go on.
  bool run_until(std::unique_lock<std::mutex> &lock, const std::function<bool()> &done);
  bool run_one(std::unique_lock<std::mutex> &lock);
  bool can_go_on(const CUstream_st &stream) const;
  void run_op(std::unique_lock<std::mutex> &lock, CUstream_st *stream, const Op &op);
  void run_node(std::unique_lock<std::mutex> &lock, CUstream_st *stream, GraphRun *graph);
  void spoil(CUstream_st &stream, const std::string &why);  // its capture
  bool may_go_on() const;                                   // if somebody aborts a collective, or lets a device go on
  void report(const std::string &what);
  // A call that may wait for devices: not while somebody else launches a collective, of which one may have begun.
  void check_no_launch(const char *call);
  // A call about something of a device, which is to be the current one.
  void check_current(int device, const char *call);
  // Code is launched, which the driver loads the first time on each device: that may wait for the device.
  void use_code(uint64_t code, CUstream_st *stream, const char *what);
  void fault(int device, cudaError_t error, const std::string &what);
};

Simulator &sim();

// One call of CUDA: holds the lock, and has found out whether the call can be made at all.
struct Call {
  // A current context, which is made where there is none; kCertain: a call that fails only when its device has.
  enum Needs { kNothing, kCertain, kContext };
  Call(const char *name, Needs needs, bool unsafe_in_capture = false);
  cudaError_t result(cudaError_t status) const;  // remembers a failure

  std::unique_lock<std::mutex> lock;
  cudaError_t refused = cudaSuccess;
  CUctx_st *context = nullptr;
};

// Of the calling thread.
struct ThreadState {
  std::vector<CUctx_st *> contexts;  // the last one is current
  cudaError_t last_error = cudaSuccess;
  bool in_host_function = false;
};
ThreadState &this_thread();
CUctx_st *primary_context(int device);

std::string in_words(const void *address);  // what lies there, for reports
// A kernel runs between the two; whoever handled faults before, CMocka for one, does so again afterwards.
void take_faults();
void give_faults_back();

}  // namespace cudasim

struct CUctx_st {
  int device = 0;
  bool primary = false;
};

struct CUmemPoolHandle_st {
  int device = 0;
  std::set<int> open_to;  // devices besides its own
  uint64_t release_threshold = 0;
  uint64_t used = 0, reserved = 0, most_used = 0;
};

struct CUgraph_st {
  struct Node {
    cudasim::Op op;
    std::vector<size_t> after;
    std::vector<size_t> before = {};  // of one that is ready to be launched: what comes after it
  };
  std::vector<Node> nodes;
  int device = 0;
};

struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
  bool uploaded = false;
};

namespace cudasim {
// One launch of a graph: its nodes in an order drawn from those that they allow, with other streams' work between them.
struct GraphRun {
  std::shared_ptr<const CUgraph_st> graph;
  std::vector<size_t> num_waiting;  // by node: how many are not done that it comes after
  std::vector<size_t> ready;
};

struct Capture {
  CUgraph_st graph;
  std::thread::id thread;  // that began it
  CUstream_st *origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool spoilt = false;
  std::set<CUstream_st *> streams;
};
}  // namespace cudasim

struct CUstream_st {
  CUctx_st *context = nullptr;
  std::deque<cudasim::Op> ops;
  bool busy = false;       // a function of the host runs in it
  bool destroyed = false;  // by its owner
  std::shared_ptr<cudasim::Capture> capture;
  std::vector<size_t> captured;  // nodes that the next one comes after
};

struct CUevent_st {
  CUctx_st *context = nullptr;
  std::shared_ptr<cudasim::Mark> mark;  // of the last record
  std::shared_ptr<cudasim::Capture> capture;
  std::vector<size_t> captured;
};
