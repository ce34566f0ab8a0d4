// SPDX-License-Identifier: Apache-2.0
// The scheduler: runs the queued work of all streams in random order, as late as possible.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "cudasim.h"
#include "sim.hpp"

namespace cudasim {
namespace {

uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *const text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

Simulator &sim() {
  static auto *const all = new Simulator;  // used by objects that outlive static ones
  return *all;
}

ThreadState &this_thread() {
  static thread_local ThreadState state;
  return state;
}

Simulator::Simulator() : process(getpid()) {
  num_devices = int(number_from("CUDASIM_DEVICES", 2));
  if (num_devices > kMaxDevices) num_devices = kMaxDevices;
  device_bytes = number_from("CUDASIM_MEMORY", device_bytes);
  const uint64_t seed = number_from("CUDASIM_SEED", 1);
  random.seed(seed);
  lazy = seed % 2 == 0;
  peers = seed / 2 % 2 == 0;
  int machine[] = {90, 132, 1980000, 2619000, 5120};
  if (const char *const text = std::getenv("CUDASIM_MACHINE"))
    std::sscanf(text, "%d,%d,%d,%d,%d", machine, machine + 1, machine + 2, machine + 3, machine + 4);
  be_machine(machine[0], machine[1], machine[2], machine[3], machine[4]);
  kernels_are_empty = number_from("CUDASIM_EMPTY", 0) != 0;
  break_at = number_from("CUDASIM_BREAK", 0);
  driver_version = int(number_from("CUDASIM_DRIVER", CUDART_VERSION));
  cudnn_version = number_from("CUDASIM_CUDNN", seed % 2 ? 92600 : 8907);
  take_faults();  // also handles faults of the host until it installs a handler
  std::atexit([] {
    const std::lock_guard<std::mutex> lock(sim().mutex);
    sim().unloading = true;
  });
}

CUctx_st *primary_context(int device) {
  Device &on = sim().devices[device];
  if (!on.primary) {
    on.primary = new CUctx_st{device, true};
    ++on.num_contexts;
  }
  return on.primary;
}

void Simulator::be_machine(int capability, int units, int clock, int memory_clock, int bus_bits) {
  attributes = {{cudaDevAttrComputeCapabilityMajor, capability / 10},
                {cudaDevAttrComputeCapabilityMinor, capability % 10},
                {cudaDevAttrMultiProcessorCount, units},
                {cudaDevAttrClockRate, clock},
                {cudaDevAttrMemoryClockRate, memory_clock},
                {cudaDevAttrGlobalMemoryBusWidth, bus_bits}};
}

void Simulator::report(const std::string &what) {
  std::fprintf(stderr, "cudasim: %s\n", what.c_str());
  reports += what + "\n";
}

void Simulator::check_no_launch(const char *call) {
  if (launching == std::thread::id() || launching == std::this_thread::get_id()) return;
  report(std::string(call) + " while another thread launches a collective: both may wait for ever");
}

void Simulator::check_current(int device, const char *call) {
  const std::vector<CUctx_st *> &contexts = this_thread().contexts;
  if (contexts.empty() || !contexts.back() || contexts.back()->device != device) {
    report(std::string(call) + " where its device is not current");
  }
}

void Simulator::use_code(uint64_t code, CUstream_st *stream, const char *what) {
  if (!used_code.emplace(stream->context->device, code).second) return;
  const std::string loading = std::string(what) + " is loaded";
  check_no_launch(loading.c_str());
  if (stream->capture) spoil(*stream, loading + " while its stream is captured");
}

void Simulator::fault(int device, cudaError_t error, const std::string &what) {
  report("gpu(" + std::to_string(device) + "): " + what);
  if (devices[device].fault == cudaSuccess) devices[device].fault = error;
}

void Simulator::enqueue(CUstream_st *stream, Op op) {
  if (stream->capture) {
    CUgraph_st &graph = stream->capture->graph;
    graph.nodes.push_back({std::move(op), stream->captured});
    stream->captured = {graph.nodes.size() - 1};
    return;
  }
  stream->ops.push_back(std::move(op));
}

void Simulator::launch(CUstream_st *stream, Op op) {
  ++num_launches;
  if (kernels_are_empty) op.run = nullptr;
  if (op.run || stream->capture) enqueue(stream, std::move(op));
}

bool Simulator::can_go_on(const CUstream_st &stream) const {
  if (stream.busy || stream.ops.empty()) return false;
  const Op &op = stream.ops.front();
  if (devices[stream.context->device].stopped && !op.by_driver) return false;
  if (op.after && !op.after->done) return false;
  if (!op.rendezvous || op.rendezvous->done) return true;
  if (devices[stream.context->device].fault != cudaSuccess)
    return true;  // it is dropped, and the other streams wait for ever
  if (op.rendezvous->streams.size() < op.rendezvous->num_expected) return false;
  const auto is_there = [&](const CUstream_st *other) {
    const Device &its = devices[other->context->device];
    const bool works = !its.stopped && its.fault == cudaSuccess;
    return works && !other->busy && !other->ops.empty() && other->ops.front().rendezvous == op.rendezvous;
  };
  return std::all_of(op.rendezvous->streams.begin(), op.rendezvous->streams.end(), is_there);
}

bool Simulator::run_one(std::unique_lock<std::mutex> &lock) {
  std::vector<CUstream_st *> able;
  for (CUstream_st *stream : streams)
    if (can_go_on(*stream)) able.push_back(stream);
  if (able.empty()) return false;
  CUstream_st *const stream = able[draw(able.size())];
  if (GraphRun *const graph = stream->ops.front().graph.get(); graph && !graph->ready.empty()) {
    run_node(lock, stream, graph);
    if (!graph->ready.empty()) return true;
  }
  const Op op = std::move(stream->ops.front());
  stream->ops.pop_front();
  run_op(lock, stream, op);
  if (op.mark) op.mark->done = true;
  if (stream->destroyed && stream->ops.empty() && !stream->busy) {
    streams.erase(stream);
    delete stream;
  }
  changed.notify_all();
  return true;
}

void Simulator::run_node(std::unique_lock<std::mutex> &lock, CUstream_st *stream, GraphRun *graph) {
  const std::vector<CUgraph_st::Node> &nodes = graph->graph->nodes;
  std::swap(graph->ready[draw(graph->ready.size())], graph->ready.back());
  const size_t node = graph->ready.back();
  graph->ready.pop_back();
  run_op(lock, stream, nodes[node].op);
  for (const size_t next : nodes[node].before)
    if (--graph->num_waiting[next] == 0) graph->ready.push_back(next);
  changed.notify_all();
}

void Simulator::run_op(std::unique_lock<std::mutex> &lock, CUstream_st *stream, const Op &op) {
  const int device = stream->context->device;
  const bool works = devices[device].fault == cudaSuccess;
  if (op.on_host && (works || draw(2) == 0)) {  // it may have begun before its device failed
    stream->busy = true;
    lock.unlock();
    this_thread().in_host_function = true;
    op.run();
    this_thread().in_host_function = false;
    lock.lock();
    stream->busy = false;
  } else if (!op.on_host && works) {
    if (running_device != device) close_all();
    running_device = device;
    running = op.what;
    if (op.rendezvous && !op.rendezvous->done) {
      op.rendezvous->done = true;
      op.rendezvous->run();
      ++num_collectives;
    }
    if (op.run) op.run();
  }
}

void Simulator::spoil(CUstream_st &stream, const std::string &why) {
  stream.capture->spoilt = true;
  report(why);
}

bool Simulator::may_go_on() const {
  return std::any_of(streams.begin(), streams.end(), [this](const CUstream_st *stream) {
    if (stream->ops.empty()) return false;
    const auto &rendezvous = stream->ops.front().rendezvous;
    return (rendezvous && !rendezvous->done) || devices[stream->context->device].stopped;
  });
}

bool Simulator::run_until(std::unique_lock<std::mutex> &lock, const std::function<bool()> &done) {
  bool went_on = true;
  while (!done()) {
    went_on = run_one(lock);
    if (went_on) continue;
    bool busy = false;
    for (const CUstream_st *stream : streams) busy = busy || stream->busy;
    if (!busy && !may_go_on()) break;
    close_all();
    constexpr std::chrono::seconds kPatience{60};
    if (busy) {
      changed.wait(lock);
    } else if (changed.wait_for(lock, kPatience) == std::cv_status::timeout) {
      break;
    }
    went_on = true;
  }
  close_all();
  running_device = -1;
  if (!went_on) {
    std::string waiting;
    for (const CUstream_st *stream : streams) {
      if (stream->ops.empty()) continue;
      waiting += std::string(waiting.empty() ? "" : ", ") + stream->ops.front().what + " on gpu(" +
                 std::to_string(stream->context->device) + ")";
    }
    report("deadlock: nothing of what is queued can go on: " + waiting);
  }
  return went_on;
}

Call::Call(const char *name, Needs needs, bool unsafe_in_capture) {
  Simulator &all = sim();
  if (getpid() != all.process) {  // the thread that held the mutex may not exist in this process
    refused = cudaErrorInitializationError;
    return;
  }
  lock = std::unique_lock<std::mutex>(all.mutex);
  if (all.unloading) {
    if (needs != kNothing) all.report(std::string(name) + " is called when the process ends");
    refused = cudaErrorCudartUnloading;
    return;
  }
  if (!all.driver_serves()) {
    refused = cudaErrorInsufficientDriver;
    return;
  }
  ThreadState &thread = this_thread();
  if (thread.in_host_function) {
    all.report(std::string(name) + " is called by a function of the host in a stream");
    refused = cudaErrorNotPermitted;
    return;
  }
  if (needs == kNothing) return;
  if (needs == kContext && ++all.num_calls == all.fail_at) {
    refused = all.fail_with;
    return;
  }
  if (all.num_devices == 0) {
    refused = cudaErrorNoDevice;
    return;
  }
  if (thread.contexts.empty() || !thread.contexts.back()) {
    if (thread.contexts.empty()) thread.contexts.push_back(nullptr);
    thread.contexts.back() = primary_context(0);
  }
  context = thread.contexts.back();
  refused = all.devices[context->device].fault;
  if (refused) return;
  if (unsafe_in_capture) {
    for (CUstream_st *stream : all.streams) {
      if (!stream->capture || stream->capture->mode == cudaStreamCaptureModeRelaxed) continue;
      const bool here = stream->capture->thread == std::this_thread::get_id();
      if (!here && stream->capture->mode == cudaStreamCaptureModeThreadLocal) continue;
      all.spoil(*stream, std::string(name) + " is called while a stream is captured");
      refused = cudaErrorStreamCaptureUnsupported;
    }
  }
  while (!all.lazy && all.draw(3) == 0 && all.run_one(lock)) {
  }
  all.close_all();
  all.running_device = -1;
}

cudaError_t Call::result(cudaError_t status) const {
  if (status != cudaSuccess) this_thread().last_error = status;
  return status;
}

}  // namespace cudasim

using cudasim::sim;
using Lock = std::lock_guard<std::mutex>;

void cudasim_seed(uint64_t seed) {
  const Lock lock(sim().mutex);
  sim().random.seed(seed);
  sim().lazy = seed % 2 == 0;
}

void cudasim_set_machine(int capability, int units, int clock, int memory_clock, int bus_bits) {
  const Lock lock(sim().mutex);
  sim().be_machine(capability, units, clock, memory_clock, bus_bits);
}

void cudasim_fail_call(uint64_t nth, int error) {
  const Lock lock(sim().mutex);
  sim().fail_at = nth ? sim().num_calls + nth : 0;
  sim().fail_with = cudaError_t(error);
}

uint64_t cudasim_num_calls() {
  const Lock lock(sim().mutex);
  return sim().num_calls;
}

uint64_t cudasim_num_launches() {
  const Lock lock(sim().mutex);
  return sim().num_launches;
}

uint64_t cudasim_num_replays() {
  const Lock lock(sim().mutex);
  return sim().num_replays;
}

uint64_t cudasim_host_bytes() {
  const Lock lock(sim().mutex);
  return sim().host_bytes;
}

void cudasim_stop_device(int device, int stop) {
  const Lock lock(sim().mutex);
  sim().devices[device].stopped = stop != 0;
  sim().changed.notify_all();
}

void cudasim_hang_aborts(int hang) {
  const Lock lock(sim().mutex);
  sim().aborts_hang = hang != 0;
  sim().changed.notify_all();
}

uint64_t cudasim_num_collectives() {
  const Lock lock(sim().mutex);
  return sim().num_collectives;
}

const char *cudasim_reports() {
  static std::string told;
  const Lock lock(sim().mutex);
  told.swap(sim().reports);
  sim().reports.clear();
  return told.c_str();
}

void cudasim_break_device(int device) {
  const Lock lock(sim().mutex);
  sim().devices[device].fault = cudaErrorIllegalAddress;
}

size_t cudasim_bytes_in_use(int device) {
  const Lock lock(sim().mutex);
  return sim().devices[device].bytes_in_use;
}

void cudasim_set_memory(size_t bytes) {
  const Lock lock(sim().mutex);
  sim().device_bytes = bytes;
}

size_t cudasim_bytes_pinned() {
  const Lock lock(sim().mutex);
  return sim().bytes_pinned;
}

int cudasim_num_contexts(int device) {
  const Lock lock(sim().mutex);
  return sim().devices[device].num_contexts;
}

int cudasim_num_objects() {
  const Lock lock(sim().mutex);
  return int(sim().streams.size() + sim().events.size() + sim().captured.size() + sim().graphs.size());
}
