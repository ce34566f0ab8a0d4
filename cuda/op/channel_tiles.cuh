// SPDX-License-Identifier: Apache-2.0
// Kernels that go over a tensor channel by channel, for norms: which thread takes which elements, and sums over
// channels whose order depends on the shape alone, so that every launch on every device gives the same bits.
//
// A thread loads 16 bytes at a time, a vector of neighbouring elements:
//   channels last   vectors of a row of channels; a thread keeps its channels and walks down the rows of its part
//   channels first  vectors of a channel's inner elements, of which the threads of a block take turns
// The last vector of a row may be short.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda/op/compute_type.cuh"

#ifdef __CUDACC__
#define COHORT_UNROLL _Pragma("unroll")  // a loop over a small array that is to stay in registers
#define COHORT_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#else
#define COHORT_UNROLL
#define COHORT_LAUNCH_BOUNDS(threads, blocks)
#endif

namespace cohort {

// A tensor as (outer, channels, inner).
struct ChannelExtent {
  int64_t outer, channels, inner;
  int64_t each() const { return outer * inner; }  // elements of a channel
  int64_t size() const { return outer * channels * inner; }
};

// How the elements are distributed: `blocks` blocks cover the channels, and the elements of each channel are cut into
// `parts`. As many blocks as an H100 or H200 holds at once, 4 per multiprocessor, but at least kLeast vectors per
// thread.
struct ChannelTiles {
  int64_t outer, channels, inner;
  int64_t last;     // 1: channels come last, and inner is 1
  int64_t vectors;  // of a row of channels, or of inner elements
  int64_t whole;    // 1: all of these have all their elements
  int64_t across;   // threads along a row of channels; the others of a block take other rows
  int64_t blocks, parts;

  ChannelTiles(const ChannelExtent &e, Dtype dtype)
      : outer(e.channels == 1 ? 1 : e.outer),
        channels(e.channels),
        inner(e.channels == 1 ? e.each() : e.inner),
        last(inner == 1),
        across(1) {
    constexpr int64_t kBlocks = 132 * 4, kLeast = 4;
    const auto length = 16 / int64_t(dtype_size(dtype)), row = last ? channels : inner;
    vectors = (row + length - 1) / length;
    whole = row % length == 0;
    while (last && across < vectors && across < 32) across *= 2;
    blocks = last ? (vectors + across - 1) / across : channels;
    const int64_t walks = last ? outer : outer * vectors, rows = kBlockThreads / across;
    if (blocks >= int64_t(1) << 29)
      throw Error(Code::kUnsupported, text("expected fewer than 2^29 channels, found ", channels));
    parts = e.size() == 0
                ? 0
                : std::max<int64_t>(1, std::min(kBlocks / std::max<int64_t>(blocks, 1), walks / (rows * kLeast)));
  }
  COHORT_HOST_DEVICE int64_t each() const { return outer * inner; }
  COHORT_HOST_DEVICE int64_t units() const { return blocks * parts; }  // blocks of threads
  COHORT_HOST_DEVICE int64_t first_of(int64_t channel) const { return channel * inner; }
  int64_t num_vectors() const { return last ? outer * vectors : outer * channels * vectors; }
  // For kernels without sums of which a multiprocessor holds 3 blocks, not 4.
  ChannelTiles for_three() const {
    ChannelTiles tiles = *this;
    if (parts > 1) tiles.parts = parts * 3 / 4;
    return tiles;
  }
  size_t parts_bytes() const { return size_t(channels * parts) * 2 * sizeof(double); }
  Grid grid() const { return {dim3(unsigned(units())), dim3(unsigned(across), unsigned(kBlockThreads / across))}; }
};

// The vectors of one thread. kWhole: all are whole, and addresses allow to load them so.
template <typename T, bool kLast, bool kWhole>
class ChannelWalk {
 public:
  static constexpr int kSize = Vector<T>::kSize;
  static constexpr int kOwn = kLast ? kSize : 1;  // channels of a thread

  int64_t at;       // the first element of the vector
  int64_t channel;  // the first of its own
  int left;         // vectors from this one on

  // backwards: the rows of channels from the last to the first, for a kernel that follows one which read the same
  // array: the rows read last are still in the cache.
  __device__ explicit ChannelWalk(const ChannelTiles &t, bool backwards = false) {
    const int64_t block = blockIdx.x % t.blocks, part = blockIdx.x / t.blocks;
    const int64_t walks = kLast ? t.outer : t.outer * t.vectors;
    int64_t begin = walks * part / t.parts;
    const int64_t end = walks * (part + 1) / t.parts;
    begin += threadIdx.y;
    left = begin < end ? int((end - begin + blockDim.y - 1) / blockDim.y) : 0;
    if constexpr (kLast) {
      const int64_t column = block * blockDim.x + threadIdx.x;
      if (column >= t.vectors) left = 0;
      channel = column * kSize;
      at = begin * t.channels + channel;
      step_ = blockDim.y * t.channels;
      number_ = begin * t.vectors + column;
      number_step_ = blockDim.y * t.vectors;
      count_ = t.channels - channel < kSize ? int(t.channels - channel) : kSize;
      if (backwards) {
        at += (left - 1) * step_;
        number_ += (left - 1) * number_step_;
        step_ = -step_;
        number_step_ = -number_step_;
      }
    } else {
      const int64_t sample = begin / t.vectors, samples = blockDim.y / t.vectors;
      channel = block;
      place_ = begin % t.vectors;
      place_step_ = blockDim.y % t.vectors;
      at = (sample * t.channels + channel) * t.inner + place_ * kSize;
      number_ = (sample * t.channels + channel) * t.vectors + place_;
      step_ = samples * t.channels * t.inner + place_step_ * kSize;
      number_step_ = samples * t.channels * t.vectors + place_step_;
      set_count(t);
    }
  }
  __device__ void next(const ChannelTiles &t) {
    --left;
    at += step_;
    if constexpr (!kWhole) number_ += number_step_;
    if constexpr (!kLast) {
      place_ += place_step_;
      if (place_ >= t.vectors) {
        place_ -= t.vectors;
        at += t.channels * t.inner - t.vectors * kSize;
        if constexpr (!kWhole) number_ += (t.channels - 1) * t.vectors;
      }
      set_count(t);
    }
  }
  // The number of the vector in the tensor, and its elements.
  __device__ int64_t number() const { return kWhole ? int64_t(uint64_t(at) / kSize) : number_; }
  __device__ int count() const { return kWhole ? kSize : count_; }
  // Whether there is such a channel of its own.
  __device__ bool has(const ChannelTiles &t, int k) const { return channel + (kWhole ? 0 : k) < t.channels; }
  // The values of its own channels.
  template <typename C>
  __device__ void load_own(const ChannelTiles &t, const C *from, C (&own)[kOwn]) const {
    COHORT_UNROLL
    for (int k = 0; k < kOwn; ++k) own[k] = has(t, k) ? from[channel + k] : C(0);
  }

 private:
  __device__ void set_count(const ChannelTiles &t) {
    const int64_t rest = t.inner - place_ * kSize;
    count_ = rest < kSize ? int(rest) : kSize;
  }

  int64_t step_, number_, number_step_;
  int count_;
  int64_t place_ = 0, place_step_ = 0;  // channels first: the vector in its row
};

// kWhole: addresses and lengths allow loads of whole vectors. The elements that a short vector lacks are 0.
template <bool kWhole, typename T>
__device__ Vector<T> load_part(const T *from, int count) {
  if constexpr (kWhole) {
    return load_vector(from);
  } else {
    Vector<T> vector{};
    COHORT_UNROLL
    for (int k = 0; k < Vector<T>::kSize; ++k) {
      if (k < count) vector.at[k] = from[k];
    }
    return vector;
  }
}
template <bool kWhole, typename T>
__device__ void store_part(T *to, const Vector<T> &vector, int count) {
  if constexpr (kWhole) {
    // As words, because nvcc stores 16-bit elements in pairs otherwise.
    Vector<uint32_t> words;
    static_assert(sizeof words == sizeof vector);
    memcpy(&words, &vector, sizeof words);
    store_vector(reinterpret_cast<uint32_t *>(to), words);
  } else {
    COHORT_UNROLL
    for (int k = 0; k < Vector<T>::kSize; ++k) {
      if (k < count) to[k] = vector.at[k];
    }
  }
}

// Calls use(load(walk)) for each vector of a walk. The loads of a batch are issued before the first is used.
template <int kBatch, typename Walk, typename Load, typename Use>
__device__ void walk_in_batches(const ChannelTiles &t, Walk &walk, const Load &load, const Use &use) {
  while (walk.left >= kBatch) {
    decltype(load(walk)) batch[kBatch];
    COHORT_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      batch[i] = load(walk);
      walk.next(t);
    }
    COHORT_UNROLL
    for (int i = 0; i < kBatch; ++i) use(batch[i]);
  }
  for (; walk.left > 0; walk.next(t)) use(load(walk));
}

struct alignas(16) SumPair {
  double first, second;
};

// Adds the sums of the threads of a block that have the same channels, own(k) of channel walk.channel + k, and writes
// them to parts[part][channel].
template <typename Walk, typename Own>
__device__ void write_part(const ChannelTiles &t, const Walk &walk, const Own &own, SumPair *parts) {
  COHORT_SHARED(double, all, [2 * Walk::kOwn][kBlockThreads]);
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  COHORT_UNROLL
  for (int k = 0; k < Walk::kOwn; ++k) {
    const SumPair sums = own(k);
    all[2 * k][thread] = sums.first;
    all[2 * k + 1][thread] = sums.second;
  }
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
    COHORT_UNROLL
    for (int k = 0; k < 2 * Walk::kOwn; ++k) all[k][thread] += all[k][thread + half * blockDim.x];
  }
  if (threadIdx.y == 0) {
    SumPair *const to = parts + blockIdx.x / t.blocks * t.channels + walk.channel;
    COHORT_UNROLL
    for (int k = 0; k < Walk::kOwn; ++k) {
      if (walk.has(t, k)) to[k] = {all[2 * k][thread], all[2 * k + 1][thread]};
    }
  }
}

constexpr int kJoinChannels = 8, kJoinRows = 32;

// Calls then(channel, sums over all parts).
template <typename Then>
__global__ void join_parts(const SumPair *parts, int64_t num_parts, int64_t channels, Then then) {
  COHORT_SHARED(double, all, [2][kJoinRows][kJoinChannels]);
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const int64_t channel = int64_t(blockIdx.x) * kJoinChannels + x;
  SumPair sum{0, 0};
  if (channel < channels) {
    for (int64_t part = y; part < num_parts; part += kJoinRows) {
      const SumPair one = parts[part * channels + channel];
      sum.first += one.first;
      sum.second += one.second;
    }
  }
  all[0][y][x] = sum.first;
  all[1][y][x] = sum.second;
  for (unsigned half = kJoinRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y >= half) continue;
    for (int k = 0; k < 2; ++k) all[k][y][x] += all[k][y + half][x];
  }
  if (y == 0 && channel < channels) then(channel, SumPair{all[0][0][x], all[1][0][x]});
}
template <typename Then>
void join(const Lane &lane, const ChannelTiles &t, const SumPair *parts, const Then &then) {
  if (t.channels == 0) return;
  const Grid grid{dim3(unsigned((t.channels + kJoinChannels - 1) / kJoinChannels)), dim3(kJoinChannels, kJoinRows)};
  launch(join_parts<Then>, grid, lane.stream, parts, t.parts, t.channels, then);
}

// Calls fn(T(), whether channels come last, whether vectors are loaded whole), the latter two as types. C: the type to
// compute in, double for double data, which is always loaded by elements.
template <typename C, typename Fn>
void dispatch_tiles(const ChannelTiles &t, Dtype dtype, std::initializer_list<const void *> arrays, const Fn &fn) {
  if (t.units() == 0) return;
  const auto for_layout = [&](auto type, auto whole) {
    return t.last ? fn(type, std::true_type(), whole) : fn(type, std::false_type(), whole);
  };
  if constexpr (std::is_same_v<C, double>) {
    for_layout(double(), std::false_type());
  } else {
    const auto for_type = [&](auto type) {
      return t.whole && can_be_vectors(arrays) ? for_layout(type, std::true_type())
                                               : for_layout(type, std::false_type());
    };
    if (dtype == Dtype::kFloat16) return for_type(Float16());
    if (dtype == Dtype::kBfloat16) return for_type(Bfloat16());
    for_type(float());
  }
}

}  // namespace cohort
