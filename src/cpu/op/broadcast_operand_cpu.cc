// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/broadcast_operand.hpp"

namespace cohort {

BroadcastOperand::BroadcastOperand(const Shape &shape, Dtype dtype, const Shape &to, Dtype compute)
    : same_type_(dtype == compute), compute_bytes_(dtype_size(compute)), load_(load_block(dtype, compute)) {
  const int missing = to.rank() - shape.rank();
  int64_t stride = 1;
  std::vector<Axis> axes(size_t(to.rank()), Axis{1, 0});
  for (int axis = to.rank(); axis-- > 0;) {
    const int64_t length = axis < missing ? 1 : shape[axis - missing];
    axes[size_t(axis)] = {to[axis], length == to[axis] ? stride : 0};
    stride *= length;
  }
  for (const Axis &axis : axes) {
    if (axis.length == 1) continue;
    const bool joins = !axes_.empty() && axes_.back().stride == axis.stride * axis.length;
    if (joins) {
      axes_.back() = {axes_.back().length * axis.length, axis.stride};
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) axes_.push_back({1, 1});
  dense_ = axes_.size() == 1 && axes_[0].stride == 1;
}

void BroadcastOperand::gather(const void *data, int64_t begin, int64_t count, void *buffer, Fill fill) const {
  const Axis &inner = axes_.back();
  for (int64_t filled = 0; filled < count;) {
    const int64_t run = std::min(inner.length - (begin + filled) % inner.length, count - filled);
    const int64_t at = offset(begin + filled);
    if (inner.stride == 1) {
      load_(data, at, static_cast<char *>(buffer) + size_t(filled) * compute_bytes_, run);
    } else {
      alignas(8) char one[8];
      load_(data, at, one, 1);
      fill(buffer, filled, one, run);
    }
    filled += run;
  }
}

ReduceAxes::ReduceAxes(const Shape &shape, const std::vector<bool> &reduced) {
  struct Group {
    int64_t length;
    bool reduced;
  };
  std::vector<Group> groups;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (!groups.empty() && groups.back().reduced == reduced[size_t(axis)]) {
      groups.back().length *= shape[axis];
    } else {
      groups.push_back({shape[axis], reduced[size_t(axis)]});
    }
  }
  if (groups.empty()) return;
  inner = groups.back().length;
  inner_kept = !groups.back().reduced;
  int64_t stride = inner;
  for (size_t i = groups.size() - 1; i-- > 0;) {
    auto &list = groups[i].reduced ? dropped : kept;
    list.insert(list.begin(), {groups[i].length, stride});
    (groups[i].reduced ? num_dropped : num_kept) *= groups[i].length;
    stride *= groups[i].length;
  }
}

std::vector<bool> reduced_axes(const Shape &large, const Shape &small) {
  std::vector<bool> reduced(size_t(large.rank()), true);
  const int missing = large.rank() - small.rank();
  for (int axis = missing; axis < large.rank(); ++axis) {
    reduced[size_t(axis)] = small[axis - missing] != large[axis];
  }
  return reduced;
}

}  // namespace cohort
