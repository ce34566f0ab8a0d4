// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_upload.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "cuda/cuda_check.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_copy_threads.hpp"
#include "cuda/cuda_host.hpp"

namespace cohort {
namespace {

constexpr size_t kPieceBytes = size_t(2) << 20, kLeastPiece = size_t(64) << 10, kPage = 4096;
constexpr int kNumPieces = 16;
constexpr std::chrono::microseconds kPollInterval{20};  // the device fetches a piece in about 40
constexpr size_t kMostStaging = size_t(1) << 30;        // device memory in the staging arrays of one queue

// Pieces small enough that all threads have some, and large enough for the bus.
size_t piece_bytes(size_t bytes, int num_threads) {
  const size_t share = bytes / (2 * size_t(num_threads)) / kPage * kPage;
  return std::clamp(share, kLeastPiece, kPieceBytes);
}

}  // namespace

bool PinnedRing::pin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_) return true;
  std::shared_ptr<void> memory = take_pinned(kNumPieces * kPieceBytes);
  if (!memory) {
    if (!has_warned_)
      host_services().log(LogLevel::kWarning,
                          text("gpu(", device_, "): no pinned memory for ", kNumPieces * kPieceBytes,
                               " bytes; large copies from the host will be slow"));
    has_warned_ = true;
    return false;
  }
  std::list<Piece> pieces;
  for (int i = 0; i < kNumPieces; ++i)
    pieces.emplace_back(static_cast<char *>(memory.get()) + size_t(i) * kPieceBytes, device_);
  pieces_ = std::move(pieces);
  memory_ = std::move(memory);
  return true;
}

// Calls fn for all pieces of that many bytes, on several threads and in any order. False: there is no pinned memory.
template <typename Fn>
bool PinnedRing::for_pieces(size_t bytes, cudaStream_t stream, const Fn &fn) {
  if (!pin()) return false;
  const int num_threads = num_copy_threads();
  const size_t size = piece_bytes(bytes, num_threads), num_pieces = (bytes + size - 1) / size;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the thread that has set `failed`
  run_together(int(std::min(size_t(num_threads), num_pieces)), [&] {
    try {
      const CurrentDevice current(device_);
      for (size_t i; !failed.load(std::memory_order_relaxed) && (i = next.fetch_add(1)) < num_pieces;)
        with_piece(stream, [&](Piece &piece) { fn(piece, i * size, std::min(size, bytes - i * size)); });
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
  return true;
}

template <typename Fn>
void PinnedRing::with_piece(cudaStream_t stream, const Fn &fn) {
  std::list<Piece> own;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    put_back_.wait(lock, [this] { return !pieces_.empty(); });
    own.splice(own.begin(), pieces_, pieces_.begin());
  }
  const auto put_back = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    pieces_.splice(pieces_.end(), own);
    put_back_.notify_one();
  };
  try {
    Piece &piece = own.front();
    // CudaEvent::wait() would keep several processors busy for as long as the stream is behind.
    while (piece.was_used && !piece.free.over()) std::this_thread::sleep_for(kPollInterval);
    fn(piece);
  } catch (...) {
    if (cudaStreamSynchronize(stream) != cudaSuccess) cudaGetLastError();  // its event may not cover the last copy
    put_back();
    throw;
  }
  put_back();
}

bool PinnedRing::upload(void *to, const void *from, size_t bytes, cudaStream_t stream) {
  return for_pieces(bytes, stream, [&](Piece &piece, size_t at, size_t size) {
    std::memcpy(piece.data, static_cast<const char *>(from) + at, size);
    CUDA_CHECK(cudaMemcpyAsync(static_cast<char *>(to) + at, piece.data, size, cudaMemcpyHostToDevice, stream));
    piece.record(stream);
  });
}

// Waits first: helpers that others need would wait for the stream otherwise.
bool PinnedRing::download(void *to, const void *from, size_t bytes, cudaStream_t stream) {
  CUDA_CHECK(cudaStreamSynchronize(stream));
  return for_pieces(bytes, stream, [&](Piece &piece, size_t at, size_t size) {
    CUDA_CHECK(cudaMemcpyAsync(piece.data, static_cast<const char *>(from) + at, size, cudaMemcpyDeviceToHost, stream));
    piece.record(stream);
    piece.free.wait();
    std::memcpy(static_cast<char *>(to) + at, piece.data, size);
  });
}

StagedUploads::~StagedUploads() {
  if (!stream_) return;
  const CurrentDevice current(id_, std::nothrow);
  if (cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
  cudaStreamDestroy(stream_);
  for (const StagingArray &array : arrays_) pool_.give_back(array.data);
}

bool StagedUploads::copy(void *to, const void *from, size_t bytes, cudaStream_t stream) {
  if (!stream_) CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  StagingArray *const array = find(to, bytes);
  if (!array) return false;
  if (!array->is_free()) CUDA_CHECK(cudaStreamWaitEvent(stream_, array->emptied.handle(), 0));
  try {
    if (!ring_.upload(array->data, from, bytes, stream_)) return false;
    array->filled.record(stream_);
    CUDA_CHECK(cudaStreamWaitEvent(stream, array->filled.handle(), 0));
  } catch (...) {  // no event covers what was enqueued
    if (cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
    throw;
  }
  CUDA_CHECK(cudaMemcpyAsync(to, array->data, bytes, cudaMemcpyDeviceToDevice, stream));
  array->emptied.record(stream);
  array->was_used = true;
  return true;
}

// A batch takes the array of the batch before it, even if it has to wait for that; other copies take one that is free,
// or a new one.
StagedUploads::StagingArray *StagedUploads::find(const void *to, size_t bytes) {
  const auto fits = [bytes](const StagingArray &a) { return a.bytes >= bytes && a.bytes / 2 <= bytes; };
  for (StagingArray &array : arrays_)
    if (array.to == to && fits(array)) return &array;
  for (StagingArray &array : arrays_) {
    if (!fits(array) || !array.is_free()) continue;
    array.to = to;
    return &array;
  }
  return add(to, bytes);
}

// Null: the limit is reached, or the device is full.
StagedUploads::StagingArray *StagedUploads::add(const void *to, size_t bytes) {
  for (auto next = arrays_.begin(); next != arrays_.end() && bytes_ + bytes > kMostStaging;) {
    const auto array = next++;
    if (!array->is_free()) continue;
    pool_.give_back(array->data);
    bytes_ -= array->bytes;
    arrays_.erase(array);
  }
  if (bytes_ + bytes > kMostStaging) return nullptr;
  arrays_.emplace_back(to, bytes, id_);
  try {
    arrays_.back().data = pool_.take(bytes);
  } catch (const Error &error) {
    arrays_.pop_back();
    if (error.code() == Code::kOutOfMemory) return nullptr;
    throw;
  }
  bytes_ += bytes;
  return &arrays_.back();
}

}  // namespace cohort
