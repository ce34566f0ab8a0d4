// SPDX-License-Identifier: Apache-2.0
// Computes lifetimes, in-place reuse and offsets. Blocks are placed by descending size, each at the lowest offset that
// is free during its lifetime (greedy by size). This is the tightest known fast packing, but compares all pairs of
// blocks; plans with many blocks are placed in order of time instead, each block in the smallest gap that fits.
//
// Outputs of the prologue that main steps read are kept until their sources change. The others, and scratch, are in the
// arena while the prologue runs: before a forward pass at the start of the arena, before a backward pass after the
// region that holds the values of the forward pass.
#include <algorithm>
#include <map>
#include <set>

#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

constexpr size_t kFewBlocks = 4096;

// Free gaps in memory of one device that grows as needed.
class FreeGaps {
 public:
  size_t take(size_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [found, at] = *best;
      remove(at, found);
      if (found > bytes) insert(at + bytes, found - bytes);
      return at;
    }
    size_t at = end_;
    if (!by_offset_.empty() && by_offset_.rbegin()->first + by_offset_.rbegin()->second == end_) {
      at = by_offset_.rbegin()->first;
      remove(at, end_ - at);
    }
    end_ = at + bytes;
    return at;
  }
  void give_back(size_t at, size_t bytes) {
    const auto next = by_offset_.find(at + bytes);
    if (next != by_offset_.end()) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    const auto after = by_offset_.lower_bound(at);
    if (after != by_offset_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == at) {
        remove(before, size);
        at = before;
        bytes += size;
      }
    }
    insert(at, bytes);
  }
  size_t end() const { return end_; }

 private:
  void insert(size_t at, size_t bytes) {
    by_offset_[at] = bytes;
    by_size_.insert({bytes, at});
  }
  void remove(size_t at, size_t bytes) {
    by_offset_.erase(at);
    by_size_.erase({bytes, at});
  }

  std::map<size_t, size_t> by_offset_;           // gaps; adjacent ones are merged
  std::set<std::pair<size_t, size_t>> by_size_;  // the same as (bytes, offset)
  size_t end_ = 0;
};

struct ArenaBlock {
  size_t bytes = 0;
  int first = -1, last = -1;  // lifetime as steps, both inclusive
  int device = 0;
  size_t offset = 0;
  int inside = -1;       // the block whose memory it reuses
  bool is_value = true;  // not scratch, and not a converted argument or gradient
};

class MemoryPass {
 public:
  MemoryPass(const Ir &ir, Plan *plan) : ir_(ir), plan_(*plan), block_of_(ir.values.size(), -1) {
    for (const IrValue &value : ir.values)
      bound_.push_back(value.location == ValueLocation::kGradient ? value.index : -1);
  }

  void run() {
    find_lifetimes();
    find_forms_of_arguments();
    if (!ir_.request->separate_nodes) {
      reuse_bound_gradients();
      reuse_in_place();
    }
    count_values();
    plan_.arena_bytes = blocks_.size() <= kFewBlocks ? place_by_size() : place_by_time();
    place_prologue();
    for (size_t v = 0; v < ir_.values.size(); ++v) fill_slot(int(v));
  }

 private:
  // The block that holds the value, or -1.
  int block_of(int value) {
    int block = block_of_[size_t(ir_.root(value))];
    while (block >= 0 && blocks_[size_t(block)].inside >= 0) block = blocks_[size_t(block)].inside;
    return block_of_[size_t(ir_.root(value))] = block;
  }
  bool in_arena(int value) const { return ir_.values[size_t(value)].location == ValueLocation::kArena; }

  void touch(int value, int step, bool is_scratch = false) {
    if (value < 0) return;
    const int root = ir_.root(value);
    if (!in_arena(root)) return;
    int &index = block_of_[size_t(root)];
    if (index < 0) {
      index = int(blocks_.size());
      ArenaBlock block;
      block.bytes = ir_.values[size_t(root)].spec.bytes();
      block.device = ir_.values[size_t(root)].device;
      block.first = step;
      block.is_value = !is_scratch;
      blocks_.push_back(block);
      if (!is_scratch) plan_.intermediate_bytes += block.bytes;
    }
    ArenaBlock &block = blocks_[size_t(index)];
    block.first = std::min(block.first, step);
    block.last = std::max(block.last, step);
  }

  void find_lifetimes() {
    const int end = int(plan_.steps.size()), forward = int(plan_.num_forward);
    for (int value : ir_.head_gradients) {  // written before the first backward step
      touch(value, forward);
      touch(value, end);
    }
    for (int s = 0; s < end; ++s) {
      const PlanStep &step = plan_.steps[size_t(s)];
      for (int v : step.inputs) touch(v, s);
      for (int v : step.outputs) touch(v, s);
      touch(step.scratch, s, true);
      touch(step.saved, s);
    }
    if (ir_.request->backward_once) return;
    // Backward may be repeated after one forward: what it reads of the forward pass stays alive until the end of
    // backward, or is recomputed from values that do.
    const auto is_kept = [&](int b) {
      return b >= 0 && blocks_[size_t(b)].first < forward && blocks_[size_t(b)].last >= forward;
    };
    std::vector<bool> restored(blocks_.size(), false);
    const bool restores = ir_.request->devices.size() == 1;  // another device might still read the recomputed value
    for (int s = 0; s < forward; ++s) {
      const PlanStep &step = plan_.steps[size_t(s)];
      if (!step.restorer || !restores) continue;
      const int from = block_of(step.inputs[0]), to = block_of(step.outputs[0]);
      if (!is_kept(from) || restored[size_t(from)] || !is_kept(to) || blocks_[size_t(to)].first != s) continue;
      restored[size_t(to)] = true;
      plan_.restored.push_back(size_t(s));
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (is_kept(int(b)) && !restored[b]) blocks_[b].last = end;
    }
    if (!plan_.restored.empty()) touch(plan_.restoring_scratch, forward, true);
  }

  // Finds arguments converted to another layout or type, and values that are only converted or summed into gradients.
  void find_forms_of_arguments() {
    std::vector<int> num_readers(ir_.values.size(), 0);
    std::vector<bool> of_argument(ir_.values.size(), false), of_gradient(ir_.values.size(), false);
    for (size_t v = 0; v < ir_.values.size(); ++v) {
      of_argument[v] = ir_.values[v].location == ValueLocation::kArgument;
      of_gradient[v] = ir_.values[v].location == ValueLocation::kGradient;
    }
    const auto is_no_value = [&](int v) {
      if (block_of(v) >= 0) blocks_[size_t(block_of(v))].is_value = false;
    };
    for (const PlanStep &step : plan_.steps) {
      for (const int v : step.inputs) num_readers[size_t(v < 0 ? 0 : ir_.root(v))] += v >= 0;
      if (!step.reorder || !of_argument[size_t(ir_.root(step.inputs[0]))]) continue;
      of_argument[size_t(step.outputs[0])] = true;
      is_no_value(step.outputs[0]);
    }
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      if (!step->reorder && !step->sums_gradients) continue;
      if (!of_gradient[size_t(ir_.root(step->outputs[0]))]) continue;
      for (const int v : step->inputs) {
        const int root = ir_.root(v);
        if (num_readers[size_t(root)] != 1 || !in_arena(root)) continue;
        of_gradient[size_t(root)] = true;
        if (step->reorder) is_no_value(root);
      }
    }
  }

  void count_values() {
    std::vector<std::map<int, ptrdiff_t>> changes(ir_.request->devices.size());  // by step
    for (const ArenaBlock &block : blocks_) {
      if (!block.is_value || block.bytes == 0) continue;
      changes[size_t(block.device)][block.first] += ptrdiff_t(block.bytes);
      changes[size_t(block.device)][block.last + 1] -= ptrdiff_t(block.bytes);
    }
    for (const auto &of_device : changes) {
      ptrdiff_t live = 0, most = 0;
      for (const auto &[step, change] : of_device) most = std::max(most, live += change);
      plan_.value_bytes += size_t(most);
    }
  }

  // Where a step may compute a bound gradient in place of an input, the bound array holds that input, too, if nothing
  // else uses the array until then. Goes backwards, because the input may itself be computed in place.
  void reuse_bound_gradients() {
    std::map<int, size_t> first_use;  // of gradient arrays, by the values that gradient.cc has put there
    for (size_t s = plan_.steps.size(); s-- > plan_.num_forward;) {
      for (const std::vector<int> *values : {&plan_.steps[s].inputs, &plan_.steps[s].outputs}) {
        for (const int v : *values) {
          if (v >= 0 && gradient_array(v) >= 0) first_use[gradient_array(v)] = s;
        }
      }
    }
    for (size_t s = plan_.steps.size(); s-- > plan_.num_forward;) {
      const PlanStep &step = plan_.steps[s];
      for (const auto &[i, o] : step.inplace) {
        if (size_t(i) >= step.inputs.size() || size_t(o) >= step.outputs.size()) continue;
        const int input = step.inputs[size_t(i)], output = step.outputs[size_t(o)];
        if (input < 0 || output < 0) continue;
        const int source = block_of(input), array = gradient_array(output);
        if (source < 0 || array < 0 || first_use[array] < s) continue;
        const IrValue &value = ir_.values[size_t(ir_.root(input))], &result = ir_.values[size_t(ir_.root(output))];
        ArenaBlock &block = blocks_[size_t(source)];
        const bool read_elsewhere = std::count_if(step.inputs.begin(), step.inputs.end(), [&](int v) {
                                      return v >= 0 && (block_of(v) == source || gradient_array(v) == array);
                                    }) > 1;
        if (block.first < int(plan_.num_forward) || block.last != int(s) || read_elsewhere || value.spec.layout ||
            result.spec.layout || value.spec.bytes() != result.spec.bytes() || value.device != result.device) {
          continue;
        }
        bound_[size_t(ir_.root(input))] = array;
        block_of_[size_t(ir_.root(input))] = -1;
        block.bytes = 0;
        break;
      }
    }
  }
  // The gradient array that holds the value, or -1.
  int gradient_array(int value) const { return bound_[size_t(ir_.root(value))]; }

  void reuse_in_place() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep &step = plan_.steps[s];
      for (const auto &[i, o] : step.inplace) {
        if (size_t(i) >= step.inputs.size() || size_t(o) >= step.outputs.size()) continue;
        const int input = step.inputs[size_t(i)], output = step.outputs[size_t(o)];
        if (input < 0 || output < 0 || ir_.values[size_t(output)].alias >= 0) continue;
        const int source = block_of(input), target = block_of(output);
        if (source < 0 || target < 0 || source == target) continue;
        ArenaBlock &from = blocks_[size_t(source)], &to = blocks_[size_t(target)];
        const bool read_once = std::count_if(step.inputs.begin(), step.inputs.end(),
                                             [&](int v) { return v >= 0 && block_of(v) == source; }) == 1;
        if (from.last != int(s) || to.first != int(s) || from.bytes != to.bytes || from.device != to.device ||
            !read_once) {
          continue;
        }
        from.last = to.last;
        from.is_value |= to.is_value;
        to.bytes = 0;  // uses the memory of `from`
        to.inside = source;
        break;
      }
    }
  }

  std::vector<size_t> place_by_size() {
    std::vector<int> order;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].bytes > 0) order.push_back(int(b));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return blocks_[size_t(a)].bytes > blocks_[size_t(b)].bytes; });
    std::vector<size_t> total(ir_.request->devices.size(), 0);
    std::vector<int> placed;  // ordered by offset
    for (int index : order) {
      ArenaBlock &block = blocks_[size_t(index)];
      size_t at = 0;
      for (int other_index : placed) {
        const ArenaBlock &other = blocks_[size_t(other_index)];
        if (other.device != block.device || other.last < block.first || other.first > block.last) continue;
        if (other.offset >= at + block.bytes) break;  // fits into the gap before this one
        at = std::max(at, aligned(other.offset + other.bytes));
      }
      block.offset = at;
      total[size_t(block.device)] = std::max(total[size_t(block.device)], at + block.bytes);
      const auto position = std::upper_bound(placed.begin(), placed.end(), index, [&](int a, int b) {
        return blocks_[size_t(a)].offset < blocks_[size_t(b)].offset;
      });
      placed.insert(position, index);
    }
    return total;
  }

  std::vector<size_t> place_by_time() {
    std::vector<int> starts;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].bytes > 0) starts.push_back(int(b));
    }
    std::vector<int> ends = starts;
    const auto block = [this](int b) -> ArenaBlock & { return blocks_[size_t(b)]; };
    std::stable_sort(starts.begin(), starts.end(), [&](int a, int b) { return block(a).first < block(b).first; });
    std::stable_sort(ends.begin(), ends.end(), [&](int a, int b) { return block(a).last < block(b).last; });
    std::vector<FreeGaps> gaps(ir_.request->devices.size());
    size_t ended = 0;
    for (int b : starts) {
      for (; block(ends[ended]).last < block(b).first; ++ended) {
        const ArenaBlock &over = block(ends[ended]);
        gaps[size_t(over.device)].give_back(over.offset, aligned(over.bytes));
      }
      block(b).offset = gaps[size_t(block(b).device)].take(aligned(block(b).bytes));
    }
    std::vector<size_t> total;
    for (const FreeGaps &device : gaps) total.push_back(device.end());
    return total;
  }

  void place_prologue() {
    const int count = int(plan_.prologue.size());
    std::vector<int> last_reader(ir_.values.size(), -1);  // last prologue step that reads it; count: a main step does
    const auto reads = [&](const std::vector<int> &values, int step) {
      for (const int v : values) {
        if (v >= 0) last_reader[size_t(ir_.root(v))] = step;
      }
    };
    for (int p = 0; p < count; ++p) reads(plan_.prologue[size_t(p)].inputs, p);
    for (const PlanStep &step : plan_.steps) reads(step.inputs, count);

    struct Passing {
      int value, until;
    };
    std::vector<std::vector<Passing>> passing(ir_.request->devices.size());
    std::vector<FreeGaps> gaps(passing.size());
    std::vector<size_t> base(passing.size(), 0);
    for (size_t d = 0; ir_.request->with_backward && d < base.size(); ++d) base[d] = aligned(plan_.arena_bytes[d]);
    for (int p = 0; p < count; ++p) {
      PlanStep &step = plan_.prologue[size_t(p)];
      for (const int v : step.inputs) {
        const int root = v < 0 ? -1 : ir_.root(v);
        if (root < 0 || ir_.values[size_t(root)].location != ValueLocation::kConstant ||
            last_reader[size_t(root)] == count)
          continue;
        step.passed_by.push_back(ir_.values[size_t(root)].index);
      }
      const auto put = [&](int v, int until) {
        if (v < 0) return;
        Slot &slot = plan_.slots[size_t(v)];
        const IrValue &value = ir_.values[size_t(v)];
        const size_t bytes = aligned(value.spec.bytes()), device = size_t(value.device);
        if (until == count) {
          slot.offset = step.constant_bytes;
          step.constant_bytes += bytes;
          return;
        }
        passes_.insert(v);
        const size_t at = gaps[device].take(bytes);
        slot.offset = base[device] + at;
        passing[device].push_back({v, until});
      };
      for (const int v : step.outputs) put(v, v < 0 ? p : std::max(p, last_reader[size_t(v)]));
      put(step.scratch, p);
      for (size_t d = 0; d < passing.size(); ++d) {
        const auto over = [&](const Passing &one) {
          if (one.until > p) return false;
          const size_t bytes = aligned(ir_.values[size_t(one.value)].spec.bytes());
          gaps[d].give_back(plan_.slots[size_t(one.value)].offset - base[d], bytes);
          return true;
        };
        passing[d].erase(std::remove_if(passing[d].begin(), passing[d].end(), over), passing[d].end());
      }
    }
    for (size_t d = 0; d < base.size(); ++d) {
      if (gaps[d].end() > 0) plan_.arena_bytes[d] = std::max(plan_.arena_bytes[d], base[d] + gaps[d].end());
    }
  }

  void fill_slot(int value) {
    const IrValue &v = ir_.values[size_t(value)];
    const int root = ir_.root(value);
    Slot &slot = plan_.slots[size_t(value)];
    slot.spec = v.spec;
    slot.bytes = v.spec.bytes();
    slot.device = ir_.values[size_t(root)].device;
    slot.location = ir_.values[size_t(root)].location;
    slot.index = ir_.values[size_t(root)].index;
    if (slot.location == ValueLocation::kConstant) {
      slot.offset = plan_.slots[size_t(root)].offset;
      if (passes_.count(root)) slot.location = ValueLocation::kArena;
    }
    if (ir_.values[size_t(root)].location != ValueLocation::kArena) return;
    if (bound_[size_t(root)] >= 0) {
      slot.location = ValueLocation::kGradient;
      slot.index = bound_[size_t(root)];
      return;
    }
    const int block = block_of(value);
    if (block < 0) {
      slot.location = ValueLocation::kNowhere;
    } else {
      slot.offset = blocks_[size_t(block)].offset;
    }
  }

  const Ir &ir_;
  Plan &plan_;
  std::vector<int> block_of_;  // per root value
  std::vector<int> bound_;     // per root value: the gradient array that holds it, or -1
  std::vector<ArenaBlock> blocks_;
  std::set<int> passes_;  // prologue values that no main step reads
};

}  // namespace

void assign_memory(const Ir &ir, Plan *plan) { MemoryPass(ir, plan).run(); }

}  // namespace cohort::plan
