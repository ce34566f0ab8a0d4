// SPDX-License-Identifier: Apache-2.0
// The inside of an executor, shared by the files of this folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/bound_plan.hpp"
#include "executor/executable_network.hpp"
#include "executor/executor.hpp"

namespace cohort {

struct SharedPartState;

// The input for binding one part of another executor (value_shapes.hpp); empty for an executor of its own.
struct Executor::PartSetup {
  std::shared_ptr<SharedArenas> arenas;
  RandomStreams random;
  std::vector<std::pair<int, Shape>> shapes;    // of nodes with one output, as values determined them
  std::vector<bool> cut_inputs;                 // by node: it is a variable that another part computes
  size_t num_cut_heads = 0;                     // how many of the last heads another part reads
  std::shared_ptr<SharedPartState> part_state;  // of the parts that it has itself
};

struct Executor::Impl {
  Impl();
  ~Impl();

  Symbol symbol;
  Graph graph;
  Inferred inferred;
  ExecutorOptions options;
  std::vector<Context> contexts;  // of the plan's devices
  int num_threads = 0;            // of each context on the host
  std::map<std::string, int> group_devices;
  std::map<int, int> fixed_devices;
  std::shared_ptr<SharedArenas> arenas;
  std::vector<size_t> arena_index;  // per context, index in arenas->devices
  std::vector<GradReq> reqs;
  BoundArrays arrays;
  std::vector<std::string> arg_names, aux_names, output_names;
  std::vector<bool> constants;                  // per argument: rarely written
  std::vector<std::vector<ValueRange>> ranges;  // node_ranges()
  std::map<int, Op::Precision> precisions;      // by node
  bool any_gradient = false;
  std::vector<bool> heads_with_gradient;  // empty until it is asked for
  bool backward_has_run = false;          // since the last forward
  std::vector<int> gradient_order;
  std::vector<int> bucket_ends;
  MonitorFunction monitor;
  bool monitor_all = false;
  const char *pass = nullptr;  // the pass in progress, for traces; null: none
  bool is_part = false, compute_type_logged = false;
  std::vector<std::pair<int, Shape>> sized;     // nodes whose shapes values determined: PartSetup::shapes
  std::vector<bool> cut_inputs;                 // PartSetup::cut_inputs
  size_t num_cut_heads = 0;                     // PartSetup::num_cut_heads
  std::shared_ptr<SharedPartState> part_state;  // null: there are no parts
  std::unique_ptr<ExecutableNetwork> network;

  bool is_cut_input(int node) const { return size_t(node) < cut_inputs.size() && cut_inputs[size_t(node)]; }
  std::vector<int> same_memory() const;  // PlanRequest::same_memory
  void check_compute_type() const;       // kUnsupported if a device does not compute in it
  void share_threads();
  int join(const Context &context);  // returns the context's device in the plan, adding it to the arenas if it is new
  // Places nodes around variables whose arrays have, or shall have, these contexts. kDevice on a contradiction.
  void fix_contexts(const std::map<int, Context> &places);
  std::vector<Context> node_contexts() const;  // by node
  // Infer from the known shapes and types, by node. An unknown shape is an error; so is an unknown type if `strict`,
  // else it becomes float32.
  void infer_shapes(const std::vector<Shape> &by_node);
  void infer_dtypes(std::vector<Dtype> by_node, bool strict);
  void finish_bind();  // needs all from `symbol` to `arrays`; makes outputs and the network
  void make_arguments(const SimpleBind &what, const Impl *shared, ArrayPool *staged);
  void make_auxiliary(const SimpleBind &what, const Impl *shared);
  void make_outputs();
  void check_written_gradients() const;                  // kInvalidArgument if one shares memory with another array
  [[noreturn]] void refuse_sync() const;                 // kState: steps sync with executors of other devices
  void log_if_none_narrow(const ExecutableNetwork &of);  // once for a whole network
};

// Finds entries of a list by name; of entries with one name, the first.
template <typename T>
class ByName {
 public:
  explicit ByName(const std::vector<std::pair<std::string, T>> &list) {
    for (const auto &entry : list) entries_.emplace(entry.first, &entry.second);
  }
  const T *find(const std::string &name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string, const T *> entries_;
};

// Throws with the expected and the found one if shape or type differ; `what` is "gradient of", ...
void check_array(const NDArray &array, const Shape &shape, Dtype dtype, const std::string &what,
                 const std::string &name);

}  // namespace cohort
