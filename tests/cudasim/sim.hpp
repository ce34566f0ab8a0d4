// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: devices, contexts, streams, memory. One mutex guards all of it; a thread that waits for
// queued work runs that work itself. Included by the files of this folder only; cuda/ sees NVIDIA's headers.
//
// The order between streams is hostile: the next stream is drawn at random, and work runs as late as possible.
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

// A collective operation of several streams: runs when it is at the head of each.
struct Rendezvous {
  size_t num_expected = 0;
  std::vector<CUstream_st *> streams;
  std::function<void()> run;
  bool done = false;
};

struct GraphRun;

struct Op {
  const char *what = "";
  std::function<void()> run = nullptr;
  std::shared_ptr<Mark> after = nullptr;  // it waits for this
  std::shared_ptr<Mark> mark = nullptr;   // done when it has run
  std::shared_ptr<Rendezvous> rendezvous = nullptr;
  bool on_host = false;                       // a host function: runs without the mutex
  bool by_driver = false;                     // allocating and freeing: runs although the device hangs
  std::shared_ptr<GraphRun> graph = nullptr;  // runs one node at a time
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

  std::mutex mutex;  // guards all members below
  std::condition_variable changed;
  pid_t process;
  std::mt19937_64 random;
  bool lazy = true;
  bool peers = true;  // devices can access each other's memory
  int num_devices = 2;
  size_t device_bytes = size_t(1) << 30;
  Device devices[kMaxDevices];
  std::set<CUstream_st *> streams;  // also destroyed ones with unfinished work
  std::set<CUevent_st *> events;
  std::set<CUgraph_st *> captured;
  std::set<CUgraphExec_st *> graphs;
  uint64_t num_calls = 0, num_launches = 0, num_replays = 0, num_collectives = 0, fail_at = 0, break_at = 0,
           host_bytes = 0;
  cudaError_t fail_with = cudaSuccess;
  std::map<cudaDeviceAttr, int> attributes;  // of all devices
  void be_machine(int capability, int units, int clock, int memory_clock, int bus_bits);
  bool aborts_hang = false, kernels_are_empty = false;
  size_t cudnn_version = 0;
  int driver_version = 0;  // the CUDA version it supports; 0: no driver
  bool driver_serves() const { return driver_version / 1000 >= CUDART_VERSION / 1000; }
  std::set<std::pair<int, uint64_t>> used_code;  // by device
  std::thread::id launching;                     // the thread that is queueing a collective on several devices
  bool unloading = false;                        // the process ends: calls do nothing
  std::string reports;
  std::map<uintptr_t, Block> blocks;  // by the first byte of their pages
  std::vector<Block *> opened;
  size_t bytes_pinned = 0;
  // The operation that is running.
  int running_device = -1;
  const char *running = "";

  uint64_t draw(uint64_t below) { return random() % below; }

  // Memory. Pages of a device are accessible only to operations that run on that device.
  Block *allocate(int device, size_t bytes, Block::State state);
  void set_live(Block &block);
  void free_block(Block &block);
  Block *find(const void *address);  // also freed ones
  // Null, and *why, if these bytes are not within one live block of this device (-1: pinned, -2: any).
  Block *find_live(const void *address, size_t bytes, int device, std::string *why);
  void open(Block &block);
  void close_all();
  void close_oldest(size_t count);
  bool is_device_address(const void *address) const;

  // Work.
  void enqueue(CUstream_st *stream, Op op);
  void launch(CUstream_st *stream, Op op);  // the same for a kernel, ours or a library's
  void progress();                          // may run some of the queued work
  // Runs work until `done` holds. False: no stream can go on.
  bool run_until(std::unique_lock<std::mutex> &lock, const std::function<bool()> &done);
  bool run_one(std::unique_lock<std::mutex> &lock);
  bool can_go_on(const CUstream_st &stream) const;
  void run_op(std::unique_lock<std::mutex> &lock, CUstream_st *stream, const Op &op);
  void run_node(std::unique_lock<std::mutex> &lock, CUstream_st *stream, GraphRun *graph);
  void spoil(CUstream_st &stream, const std::string &why);  // invalidates its capture
  bool may_go_on() const;  // another thread may still abort a collective or let a device go on
  void report(const std::string &what);
  // For calls that may wait for devices: reports if another thread is queueing a collective, of which a part may run.
  void check_no_launch(const char *call);
  // For calls about an object of a device: reports if that is not the current device.
  void check_current(int device, const char *call);
  // For launches of code, which the driver loads at its first launch on each device and may wait for the device then.
  void use_code(uint64_t code, CUstream_st *stream, const char *what);
  void fault(int device, cudaError_t error, const std::string &what);
};

Simulator &sim();

// One call of CUDA: holds the mutex; `refused` says why the call cannot be made.
struct Call {
  // kContext: needs a current context, which is created if there is none; kCertain: fails only after its device failed.
  enum Needs { kNothing, kCertain, kContext };
  Call(const char *name, Needs needs, bool unsafe_in_capture = false);
  cudaError_t result(cudaError_t status) const;  // sets the thread's last error

  std::unique_lock<std::mutex> lock;
  cudaError_t refused = cudaSuccess;
  CUctx_st *context = nullptr;
};

// The state of the calling thread.
struct ThreadState {
  std::vector<CUctx_st *> contexts;  // the last one is current
  cudaError_t last_error = cudaSuccess;
  bool in_host_function = false;
};
ThreadState &this_thread();
CUctx_st *primary_context(int device);

std::string in_words(const void *address);  // describes an address, for reports
// Called before and after a kernel runs: installs our fault handler, then restores the previous one, such as CMocka's.
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
    std::vector<size_t> before = {};  // in an instantiated graph: the nodes that come after it
  };
  std::vector<Node> nodes;
  int device = 0;
};

struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
  bool uploaded = false;
};

namespace cudasim {
// One launch of a graph: its nodes in a random order that the edges allow, with work of other streams between them.
struct GraphRun {
  std::shared_ptr<const CUgraph_st> graph;
  std::vector<size_t> num_waiting;  // by node: how many of its predecessors are not done
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
  bool busy = false;       // runs a host function
  bool destroyed = false;  // by its owner
  std::shared_ptr<cudasim::Capture> capture;
  std::vector<size_t> captured;  // predecessors of the next captured node
};

struct CUevent_st {
  CUctx_st *context = nullptr;
  std::shared_ptr<cudasim::Mark> mark;  // of the last record
  std::shared_ptr<cudasim::Capture> capture;
  std::vector<size_t> captured;
};
