// SPDX-License-Identifier: Apache-2.0
// Shapes that depend on values: of operators that are applied immediately (invoke.hpp), and of nodes of a bound
// network.
#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "executor/executable_network.hpp"
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
//
// A forward pass is that of the first part, then that of the second; a backward pass is the reverse.
class SplitNetwork final : public ExecutableNetwork {
 public:
  static constexpr size_t kMost = 32;  // second parts that are kept: the most recently used

  // `whole` owns this; it has its arrays, and its shapes as far as they are known. Throws kShape if values cannot
  // determine one that is not.
  explicit SplitNetwork(Executor::Impl &whole);

  void prepare_forward(bool is_train) override;
  void prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train,
                        const BucketPrograms &after_bucket) override;
  const std::vector<int> &sync_nodes() const override;
  bool repeats_forward() const override { return pass_.running && pass_.running->repeats_forward(); }
  void repeat_forward() override {
    if (pass_.running) pass_.running->repeat_forward();
  }
  void begin() override;
  PassStop advance() override;
  void abandon(const char *why) override;
  int partial_forward(bool is_train, int step) override;

  bool has_run() const override;
  std::vector<int> gradient_order() override;
  std::vector<bool> narrow_nodes() const override;
  const Node *node_sized_by_values() const override { return whole_.graph.nodes[size_t(sized_[0])].get(); }
  void each_planned(const std::function<void(const PlannedNetwork &)> &fn) const override;

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
  struct RunningPass {
    bool backward = false, is_train = false;
    std::vector<ArraySlice> head_grads = {};
    bool begun = false;                   // registered with the arrays
    bool started = false;                 // advanced, too
    int num_prepared = 0, num_ended = 0;  // parts
    Executor *running = nullptr;          // null: the next part is not prepared, or has nothing to do
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
  void prepare_part();          // of the running pass: the one after those that have ended
  Shapes found_shapes() const;  // of sized_, once the first part has run
  ExecutorOptions options() const;
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
  RunningPass pass_;
};

}  // namespace cohort
