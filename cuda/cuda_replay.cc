// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_replay.hpp"

#include <cstring>
#include <utility>

#include "cuda/cuda_check.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_host.hpp"

namespace cohort {
namespace {

constexpr size_t kAlignment = 16, kLeastNodes = 2;

// A stream that nothing else uses or waits for, so that no other call invalidates the capture.
class OwnStream {
 public:
  OwnStream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream &) = delete;
  OwnStream &operator=(const OwnStream &) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace

CudaReplay::~CudaReplay() {
  const CurrentDevice current(id_, std::nothrow);
  forget();
}

void CudaReplay::forget() {
  {
    const std::lock_guard<std::mutex> alone(launch_order());
    for (const Piece &piece : pieces_)
      if (piece.graph) cudaGraphExecDestroy(piece.graph);
  }
  pieces_.clear();
  sources_.clear();
  uploads_.clear();
  block_.reset();
  block_bytes_ = 0;
}

void CudaReplay::run(const Program &program, cudaStream_t stream, StepsEnqueued *steps, StepRange *now) {
  if (may_report_error_) steps->note_replay();
  if (state_ == State::kCounted) record(program);
  if (state_ == State::kOnce) block_bytes_ = 0;
  if (state_ != State::kReady) {
    run_steps(program, 0, program.count, stream, state_ == State::kOnce ? this : nullptr, now);
    if (state_ == State::kNew || state_ == State::kOnce) state_ = State(int(state_) + 1);
    may_report_error_ = steps->may_report_error();
    return;
  }
  for (const Piece &piece : pieces_) {
    if (!piece.graph) {
      run_steps(program, piece.begin, piece.end, stream, nullptr, now);
      continue;
    }
    *now = {program.steps[piece.begin].label, program.steps[piece.end - 1].label};
    if (piece.bytes > 0) upload(piece, stream);
    CUDA_CHECK(cudaGraphLaunch(piece.graph, stream));
  }
}

void CudaReplay::run_steps(const Program &program, size_t begin, size_t end, cudaStream_t stream,
                           ReplayRecorder *recorder, StepRange *now) const {
  const Lane lane{1, stream, recorder};
  for (size_t s = begin; s < end; ++s) {
    *now = {program.steps[s].label, program.steps[s].label};
    StepsEnqueued::now()->is_at(s);
    program.steps[s].kernel->run(program.steps[s].args, lane);
  }
}

std::shared_ptr<void> CudaReplay::take_block() const {
  return std::shared_ptr<void>(pool_->take(block_bytes_), [pool = pool_](void *block) { pool->give_back(block); });
}

// If that fails, the program keeps running step by step.
void CudaReplay::record(const Program &program) {
  StepRange now;
  try {
    if (block_bytes_ > 0) block_ = take_block();
    const OwnStream stream;
    for (size_t begin = 0; begin < program.count;) {
      const auto replays = [&](size_t s) { return program.steps[s].kernel->replays(); };
      Piece piece{begin, begin + 1};
      while (piece.end < program.count && replays(piece.end) == replays(begin)) ++piece.end;
      pieces_.push_back(piece);
      if (replays(begin)) capture(program, stream.get(), &pieces_.back(), &now);
      begin = piece.end;
    }
    state_ = State::kReady;
  } catch (const std::exception &e) {
    cudaGetLastError();
    forget();
    state_ = State::kNever;
    const char *const name = program.name ? program.name : "a program";
    host_services().log(LogLevel::kInfo,
                        text("gpu(", id_, "): ", name, " runs step by step, not as a CUDA graph, because of ",
                             in_words(now), ": ", e.what()));
  }
}

// Captures the steps into a graph without running them: random draws advance at replays only.
void CudaReplay::capture(const Program &program, cudaStream_t stream, Piece *piece, StepRange *now) {
  piece->first_source = sources_.size();
  piece->at = used_;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    run_steps(program, piece->begin, piece->end, stream, this, now);
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
    throw;
  }
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  size_t num_nodes = 0;
  cudaError_t status = cudaGraphGetNodes(graph, nullptr, &num_nodes);
  if (status == cudaSuccess && num_nodes >= kLeastNodes) {
    const std::lock_guard<std::mutex> alone(launch_order());
    status = cudaGraphInstantiate(&piece->graph, graph, 0);
    if (status == cudaSuccess) status = cudaGraphUpload(piece->graph, stream);  // now, not at the first launch
  }
  cudaGraphDestroy(graph);
  CUDA_CHECK(status);
  piece->end_source = sources_.size();
  piece->bytes = used_ - piece->at;
}

// Replays of a piece and the copies for them are in one stream, so a copy cannot overtake the replay before it.
void CudaReplay::upload(const Piece &piece, cudaStream_t stream) {
  if (!uploads_.empty() && uploads_.front().copied->done()) {
    uploads_.push_back(std::move(uploads_.front()));
    uploads_.pop_front();
  } else {
    uploads_.push_back(
        {need_pinned(block_bytes_, "the values that change between replays"), std::make_shared<CudaEvent>(id_)});
  }
  const Upload &way = uploads_.back();
  char *const from = static_cast<char *>(way.pinned.get()) + piece.at;
  for (size_t i = piece.first_source; i < piece.end_source; ++i) {
    const Source &source = sources_[i];
    char *const to = static_cast<char *>(way.pinned.get()) + source.at;
    std::memcpy(to, source.random ? static_cast<const void *>(source.random) : source.numbers, source.bytes);
    if (source.random) ++source.random->draws;
  }
  CUDA_CHECK(
      cudaMemcpyAsync(static_cast<char *>(block_.get()) + piece.at, from, piece.bytes, cudaMemcpyHostToDevice, stream));
  way.copied->record(stream);
}

const void *CudaReplay::record_numbers(const void *numbers, size_t bytes) { return add({numbers, nullptr, 0, bytes}); }
const RandomStream *CudaReplay::record_draw(RandomStream *random) {
  return static_cast<const RandomStream *>(add({nullptr, random, 0, sizeof *random}));
}

const void *CudaReplay::add(Source source) {
  const size_t bytes = (source.bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (!block_) {
    block_bytes_ += bytes;
    return nullptr;
  }
  source.at = used_;
  used_ += bytes;
  if (used_ > block_bytes_) throw Error(Code::kInternal, "more changing values than in the run before");
  sources_.push_back(source);
  return static_cast<char *>(block_.get()) + source.at;
}

}  // namespace cohort
