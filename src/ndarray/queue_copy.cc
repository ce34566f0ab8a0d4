// SPDX-License-Identifier: Apache-2.0
#include "ndarray/queue_copy.hpp"

#include <algorithm>

#include "device/array_work.hpp"
#include "device/trace.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {
namespace {

// A queued copy of plain bytes.
struct PlainCopy {
  const std::shared_ptr<Storage> from, to;
  const AddressRange written;
  const Timeline *const by;

  static void failed(const void *self, const char *message) {
    const auto *copy = static_cast<const PlainCopy *>(self);
    copy->to->hazards().fail(copy->written, message, copy->by);
  }
};

// A queued copy with a cast or a slice. Keeps its arrays until the queue is done, and marks the target if it fails.
struct QueuedCopy final : Kernel {
  QueuedCopy(ArraySlice source, NDArray target, const Timeline *on)
      : from(std::move(source)), to(std::move(target)), by(on) {}

  void run(const Args &, const Lane &) const override {
    const NDArray &array = from.array;
    if (checks) {
      array.check_written();
      to.clear_failure();
    }
    if (as_it_is()) return;  // the bytes are copied by the queue; this is only the check
    if (from.axis < 0) {
      cast_elements(array.data(), array.dtype(), to.data(), to.dtype(), to.size());
    } else {
      copy_slice(array.data(), array.shape(), array.dtype(), from.axis, from.begin, from.end, to.data(), to.dtype());
    }
  }
  bool as_it_is() const { return from.array.dtype() == to.dtype() && from.contiguous(); }
  static void failed(const void *self, const char *message) {
    const auto *copy = static_cast<const QueuedCopy *>(self);
    copy->to.fail(message, copy->by);
  }

  const ArraySlice from;
  const NDArray to;
  const Timeline *const by;
  bool checks = false;  // check when it starts that the source was written
  const Step step{this, Args(), "copy", as_it_is() ? nullptr : copy_info()};
};

// Work of a GPU's own kernel: copies between rows of arrays, or writes a value.
struct QueuedKernel final : Kernel {
  // `source` null: it reads nothing. `part`: it writes only a part of the target.
  QueuedKernel(NDArray source, NDArray target, bool part, std::unique_ptr<Kernel> own, const Timeline *on)
      : from(std::move(source)), to(std::move(target)), writes_part(part), kernel(std::move(own)), by(on) {
    input = from ? from.data() : nullptr;
    output = to.data();
    steps[0] = {this, Args(), "copy"};
    steps[1] = {kernel.get(), Args(), "copy", copy_info()};
    steps[1].args.inputs = &input;
    steps[1].args.outputs = &output;
  }

  void run(const Args &, const Lane &) const override {
    if (from) from.check_written();
    if (!writes_part) to.clear_failure();
  }
  static void failed(const void *self, const char *message) {
    const auto *work = static_cast<const QueuedKernel *>(self);
    work->to.fail(message, work->by);
  }

  const NDArray from, to;
  const bool writes_part;
  const std::unique_ptr<Kernel> kernel;
  const Timeline *const by;
  void *input, *output;
  Step steps[2];  // the check, and the kernel
};

std::unique_ptr<Kernel> make_kernel(const char *name, std::shared_ptr<const void> attrs, const NDArray &from,
                                    const NDArray &to) {
  std::vector<TensorSpec> inputs;
  if (from) inputs.push_back({from.shape(), from.dtype(), nullptr});
  StepSpec spec =
      StepSpec::of(name, std::move(attrs), std::move(inputs), {TensorSpec{to.shape(), to.dtype(), nullptr}}, 1);
  return get_device(to.context())->make_kernel(spec);
}

// Whether a GPU copies the slice by its own kernel.
bool goes_by_rows(const ArraySlice &from, const NDArray &to) {
  return !to.context().on_host() && from.array.context() == to.context() && from.array.dtype() == to.dtype() &&
         !from.contiguous();
}

// The rows of a slice in the array that it is of, and in a dense array of its shape.
struct SliceRows {
  explicit SliceRows(const ArraySlice &slice) {
    const Shape &shape = slice.array.shape();
    const int64_t behind = shape.size(slice.axis + 1, shape.rank());
    num = shape.size(0, slice.axis);
    first = slice.begin * behind;
    length = (slice.end - slice.begin) * behind;
    stride = shape[slice.axis] * behind;
  }
  int64_t num, first, length, stride;
};

bool same_or_apart(const NDArray &a, const NDArray &b) {
  const AddressRange one = a.range(), other = b.range();
  return !one.overlaps(other) || (one.begin == other.begin && a.dtype() == b.dtype() && a.shape() == b.shape());
}

const void *first_of(const ArraySlice &part) {
  if (part.axis < 0) return part.array.data();
  const Shape &shape = part.array.shape();
  const size_t row_bytes = part.array.bytes() / size_t(std::max<int64_t>(shape[part.axis], 1));
  return static_cast<const char *>(part.array.data()) + size_t(part.begin) * row_bytes;
}

// If enqueuing fails, the array is unchanged, and so is its earlier failure, if any.
template <typename Enqueue>
void write_or_leave(const NDArray &to, const Timeline *by, Enqueue &&enqueue) {
  const bool was_bad = to.failed();
  try {
    enqueue();
  } catch (const std::exception &e) {
    if (was_bad) to.fail(e.what(), by);
    throw;
  }
}

// About a megabyte takes 100 microseconds on one core.
WorkSize copy_size(const NDArray &to) { return to.bytes() <= 1 << 20 ? WorkSize::kSerial : WorkSize::kParallel; }

// On a timeline with one owner, who keeps `to`: a failure counts for all work after it.
void enqueue_own(const ArraySlice &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue) {
  from.array.begin_read(by);
  write_or_leave(to, by.get(), [&] {
    to.begin_write(by);
    by->count_submission();
    if (from.array.dtype() == to.dtype() && from.contiguous()) {
      const auto copy =
          std::make_shared<const PlainCopy>(PlainCopy{from.array.storage(), to.storage(), to.range(), by.get()});
      queue.copy(to.data(), first_of(from), to.bytes(), copy, PlainCopy::failed);
    } else {
      const auto copy = std::make_shared<QueuedCopy>(from, to, by.get());
      queue.run({&copy->step, 1, copy_size(to), QueuedCopy::failed, true}, copy);
    }
  });
}

// On a timeline that others use too: a failure must not affect their work. The bytes are copied even after the
// preceding check failed, because a queue cannot skip them; the target is marked as failed, so that its content is not
// used.
void enqueue_shared(const ArraySlice &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue) {
  const auto copy = std::make_shared<QueuedCopy>(from, to, by.get());
  copy->checks = true;
  Program program{&copy->step, 1, copy_size(to), QueuedCopy::failed, true};
  program.isolated = true;
  const auto enqueue_lock = by->lock_to_enqueue();
  from.array.storage()->hazards().begin_shared_read(from.array.range(), by);
  write_or_leave(to, by.get(), [&] {
    to.storage()->hazards().begin_write(to.range(), by);
    queue.run(program, copy);
  });
  if (!copy->as_it_is()) return;
  try {
    queue.copy(to.data(), first_of(from), to.bytes(), copy, QueuedCopy::failed);
  } catch (const std::exception &e) {  // the check has already cleared the target's failure
    queue.finish();
    to.fail(e.what(), by.get());
    throw;
  }
}

void enqueue_kernel(const std::shared_ptr<QueuedKernel> &work, const std::shared_ptr<Timeline> &by, Queue &queue,
                    bool shared) {
  Program program{work->steps, 2, WorkSize::kParallel, QueuedKernel::failed, true};
  program.isolated = shared;
  const auto enqueue = [&] {
    if (work->from) work->from.storage()->hazards().begin_shared_read(work->from.range(), by);
    write_or_leave(work->to, by.get(), [&] {
      work->to.storage()->hazards().begin_write(work->to.range(), by, /* overwrites */ !work->writes_part);
      queue.run(program, work);
    });
  };
  if (!shared) {
    by->count_submission();
    return enqueue();
  }
  const auto enqueue_lock = by->lock_to_enqueue();
  enqueue();
}

void enqueue_rows(const ArraySlice &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue,
                  bool shared) {
  const SliceRows rows(from);
  auto attrs = std::make_shared<RowCopy>(RowCopy{rows.num, rows.length, rows.first, rows.stride, 0, rows.length});
  auto kernel = make_kernel("_copy_rows", std::move(attrs), from.array, to);
  enqueue_kernel(std::make_shared<QueuedKernel>(from.array, to, false, std::move(kernel), by.get()), by, queue, shared);
}

void copy(const ArraySlice &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue, bool shared) {
  if (to.size() == 0) return;
  const NDArray &source = from.array;
  const bool as_it_is = source.dtype() == to.dtype() && from.contiguous();
  const bool from_host = source.context().on_host(), to_host = to.context().on_host();
  const bool by_rows = goes_by_rows(from, to);
  if (!from_host && !by_rows && (to_host || !as_it_is || source.context() != to.context())) {
    // First to the host on its GPU's queue, then onwards from there.
    const bool rows = from.contiguous();
    const NDArray staged = NDArray::create(rows ? from.shape() : source.shape(), source.dtype(), Context(), false);
    const std::shared_ptr<Timeline> gpu = source.storage()->immediate();
    enqueue_shared(rows ? from : ArraySlice(source), staged, gpu, *gpu->queues()[0]);
    copy(rows ? ArraySlice(staged) : ArraySlice(staged, from.axis, from.begin, from.end), to, by, queue, shared);
  } else if ((!to_host && !as_it_is && !by_rows) || !same_or_apart(source, to)) {
    const Context between = from_host ? Context() : to.context();
    const NDArray staged = name_allocation([&] { return NDArray::create(to.shape(), to.dtype(), between, false); },
                                           "copy to ", to.context());
    copy_at_once(from, staged);
    copy(staged, to, by, queue, shared);
  } else if (by_rows) {
    enqueue_rows(from, to, by, queue, shared);
  } else if (shared) {
    enqueue_shared(from, to, by, queue);
  } else {
    enqueue_own(from, to, by, queue);
  }
}

}  // namespace

const WorkInfo *copy_info() {
  static const auto *const info = new WorkInfo(SpanKind::kCopy, "copy");  // queues outlive static objects
  return info;
}

void copy_at_once(const ArraySlice &from, const NDArray &to) {
  const std::shared_ptr<Timeline> by = to.storage()->immediate();
  copy(from, to, by, *by->queues()[0], true);
}

void paste_at_once(const NDArray &from, const ArraySlice &to) {
  if (from.size() == 0) return;
  const SliceRows rows(to);
  auto attrs = std::make_shared<RowCopy>(RowCopy{rows.num, rows.length, 0, rows.length, rows.first, rows.stride});
  auto kernel = make_kernel("_copy_rows", std::move(attrs), from, to.array);
  const std::shared_ptr<Timeline> by = to.array.storage()->immediate();
  enqueue_kernel(std::make_shared<QueuedKernel>(from, to.array, true, std::move(kernel), by.get()), by,
                 *by->queues()[0], true);
}

void fill_at_once(const NDArray &to, uint64_t value) {
  if (to.size() == 0) return;
  auto kernel = make_kernel("_fill_elements", std::make_shared<ElementFill>(ElementFill{value}), NDArray(), to);
  const std::shared_ptr<Timeline> by = to.storage()->immediate();
  enqueue_kernel(std::make_shared<QueuedKernel>(NDArray(), to, false, std::move(kernel), by.get()), by,
                 *by->queues()[0], true);
}

Shape ArraySlice::shape() const {
  Shape result = array.shape();
  if (axis >= 0) result[axis] = end - begin;
  return result;
}

bool ArraySlice::contiguous() const {
  for (int i = 0; i < axis; ++i)
    if (array.shape()[i] != 1) return false;
  return true;
}

void queue_copy(const ArraySlice &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue) {
  copy(from, to, by, queue, false);
}

}  // namespace cohort
