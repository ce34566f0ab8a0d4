// SPDX-License-Identifier: Apache-2.0
// Shapes that depend on values: of operators that are applied immediately (invoke.hpp), and of nodes of a bound
// network.
#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "executor/executor_impl.hpp"

namespace cohort {

// Whether the shape of the operator's output depends on values. A kernel "_shape_NAME" of the host then computes it
// from the inputs: the number of axes and their lengths.
bool has_shape_by_values(const Op &op);
// Computes that shape; waits for the inputs, on any device.
Shape shape_by_values(const Op &op, const Attrs &attrs, const std::vector<NDArray> &inputs);

// State that the parts below share with those of the same network after a reshape, and second parts of any shapes with
// each other.
struct SharedPartState {
  std::shared_ptr<SharedArenas> arenas;    // of second parts: the queues of the first, but other arenas
  std::shared_ptr<SharedPartState> inner;  // of the parts of a second part
};

// Runs a network in which shapes depend on values in two parts. The first, bound with the executor, has all nodes that
// do not depend on a node of that kind. The second begins with those nodes; forward binds it when the values of the
// first determine the shapes, and keeps it for these shapes. It may have two parts itself. A value that goes from the
// first part to the second (a cut edge) is an argument of the second, which computes its gradient.
class ValueShapedParts {
 public:
  static constexpr size_t kMost = 32;  // second parts that are kept: the most recently used

  // `whole` owns this; it has its arrays, and its shapes as far as they are known. Throws kShape if values cannot
  // determine one that is not.
  explicit ValueShapedParts(Executor::Impl &whole);

  // A pass of the executors of a group, or of one alone. Forward: all first parts are queued; then the values of each
  // are waited for, and all second parts are queued. Backward: the second parts, then the first. If steps sync with
  // other devices, a part runs only if those of all devices do.
  static Failures forward(const std::vector<ValueShapedParts *> &all, bool is_train);
  static Failures backward(const std::vector<ValueShapedParts *> &all,
                           const std::vector<std::vector<ArraySlice>> &head_grads, bool is_train);
  bool has_run() const { return is_complete_; }
  const Node &sized_node() const;  // the first node whose shape depends on values
  // The parts that are bound now: the first, and the second of the last forward.
  struct Bound {
    const Executor &executor;
    const std::vector<int> &nodes;  // of the whole, by node of the part; -1: a cut edge
  };
  std::vector<Bound> bound() const;

 private:
  struct CutEdge {
    Graph::Input from;
    NDArray gradient;  // null: no argument of the first part has a gradient
    GradReq req = GradReq::kNull;
  };
  // Where an argument of a part comes from: kState if the nodes that update it are in the other part.
  struct Source {
    enum Kind { kCutEdge, kArgument, kState } kind;
    size_t index;  // of the cut edge, or in the whole's list
  };
  struct Arguments {
    std::vector<NDArray> arrays, grads;
    std::vector<GradReq> reqs;
  };

  Source source_of(int variable) const;
  const NDArray &array(const Source &source) const;
  void take(const Source &source, Arguments *to) const;
  void find_later_nodes();
  void cut_second();
  void bind_first();
  std::shared_ptr<Executor> bind_second(const Shapes &shapes) const;
  const std::shared_ptr<Executor> &second(const Shapes &shapes);
  void choose_second();
  void show_outputs();
  // After a pass that failed, marks what the part that did not run would have written as failed.
  void pass_failed(bool backward, const std::exception_ptr &failure) const;
  Shapes found_shapes() const;  // of sized_, once the first part has run
  ExecutorOptions options() const;
  void monitor(Executor &part) const;
  std::vector<bool> cut_inputs_in(const std::vector<int> &nodes) const;  // by node of the part whose nodes these are
  const NDArray &value(const Graph::Input &input) const;  // of a variable, or one that the first part computes
  RandomStreams random_of(const std::vector<int> &nodes) const;

  Executor::Impl &whole_;
  std::vector<bool> later_;  // by node of the whole: it belongs to the second part
  std::vector<int> sized_;   // of the whole: nodes whose shapes depend on values
  std::vector<CutEdge> cut_edges_;
  std::vector<size_t> first_heads_, second_heads_;  // of the whole
  std::shared_ptr<Executor> first_;                 // null: no node belongs to it
  std::vector<int> first_nodes_;                    // of the whole, by node of the first
  Symbol second_symbol_;
  std::vector<int> second_nodes_;  // of the whole, by node of the second; -1: a cut edge
  std::vector<int> second_sized_;  // sized_ in the second
  std::vector<Source> second_args_;
  std::vector<size_t> second_aux_;                                   // of the whole
  std::list<std::pair<Shapes, std::shared_ptr<Executor>>> seconds_;  // the most recently used first
  std::shared_ptr<Executor> current_;                                // that of the last forward
  bool is_complete_ = false;                                         // that forward pass has run
};

}  // namespace cohort
