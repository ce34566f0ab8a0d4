// SPDX-License-Identifier: Apache-2.0
// Shapes that values say: of operators that are applied at once (invoke.hpp), and of nodes of a bound network.
#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "executor/executor_impl.hpp"

namespace cohort {

// Whether values say what shape the output of the operator has: by a kernel "_shape_NAME" of the host, which makes of
// the inputs the number of axes and their lengths.
bool has_shape_by_values(const Op &op);
// That shape; the inputs, on whatever device, are waited for.
Shape shape_by_values(const Op &op, const Attrs &attrs, const std::vector<NDArray> &inputs);

// What the parts below have in common with those of the same network after a reshape, and second parts of any shapes
// with each other.
struct SharedPartState {
  std::shared_ptr<std::vector<RandomStream>> first_random, second_random;
  std::shared_ptr<SharedArenas> arenas;    // of second parts: the queues of the first, another arena
  std::shared_ptr<SharedPartState> inner;  // of the parts of a second part
};

// An executor of a network in which shapes depend on values runs it in two parts. The first is all that comes from no
// node of that kind, and is bound with the executor. The second begins with those nodes; forward binds it, when the
// values that the first has made say the shapes, and keeps it for these shapes. It may have two parts itself. Where the
// parts edge, what the first makes is an argument of the second, and has its gradient from there.
class ValueShapedParts {
 public:
  static constexpr size_t kMost = 32;  // second parts that are kept: those used last

  // The owner, which has its arrays and shapes as far as they are known. Throws kShape where one is not, and values
  // cannot say it either.
  explicit ValueShapedParts(Executor::Impl &whole);

  // A pass of the executors of a group, or of one alone. Forward: all first parts are queued; then what each makes is
  // waited for, and all second parts are queued. Backward: the second ones, then the first. Where steps meet those of
  // other devices no part runs without those of the others.
  static Failures forward(const std::vector<ValueShapedParts *> &all, bool is_train);
  static Failures backward(const std::vector<ValueShapedParts *> &all,
                           const std::vector<std::vector<ArraySlice>> &head_grads, bool is_train);
  bool has_run() const { return is_complete_; }
  const Node &sized_node() const;  // the first of those whose shapes values say
  // What is bound now: the first part, and the second of the last forward.
  struct Bound {
    const Executor &executor;
    const std::vector<int> &nodes;  // of the whole, by its own; -1: a edge
  };
  std::vector<Bound> bound() const;

 private:
  struct CutEdge {
    Graph::Input from;
    NDArray gradient;  // empty: no argument of the first part has one
    GradReq req = GradReq::kNull;
  };
  // What an argument of a part is in the whole: an auxiliary state where the nodes that keep it are in the other part.
  struct Source {
    enum Kind { kCutEdge, kArgument, kState } kind;
    size_t index;  // of the edge, or in the whole's list
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
  // What the part that comes last would have written in a pass that went wrong before is bad.
  void pass_failed(bool backward, const std::exception_ptr &failure) const;
  Shapes found_shapes() const;  // of sized_, once the first part has run
  ExecutorOptions options() const;
  void monitor(Executor &part) const;
  std::vector<bool> cut_inputs_in(const std::vector<int> &nodes) const;  // by node of the part whose nodes these are
  const NDArray &value(const Graph::Input &input) const;  // a variable's, or one that the first part has made
  std::shared_ptr<std::vector<RandomStream>> random_of(const std::vector<int> &nodes) const;

  Executor::Impl &whole_;
  std::vector<bool> later_;  // by node of the whole: it belongs to the second part
  std::vector<int> sized_;   // of the whole: nodes of which values say the shapes
  std::vector<CutEdge> cut_edges_;
  std::vector<size_t> first_heads_, second_heads_;  // of the whole
  std::shared_ptr<Executor> first_;                 // null: nothing comes before
  std::vector<int> first_nodes_;                    // of the whole, by node of the first
  Symbol second_symbol_;
  std::vector<int> second_nodes_;  // of the whole, by node of the second; -1: a edge
  std::vector<int> second_sized_;  // sized_ in the second
  std::vector<Source> second_args_;
  std::vector<size_t> second_aux_;                                   // of the whole
  std::list<std::pair<Shapes, std::shared_ptr<Executor>>> seconds_;  // the last used first
  std::shared_ptr<Executor> current_;                                // that of the last forward
  bool is_complete_ = false;                                         // that forward pass
};

}  // namespace cohort
