// SPDX-License-Identifier: Apache-2.0
// A tape records operators as they are applied to arrays, and computes gradients back along what it recorded. One
// thread at a time.
//
// Records are numbered in the order in which they are made, and refer to their inputs by number. So passes go over
// sorted numbers, and neither passes nor the release of a long chain recurse.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/invoke.hpp"
#include "ndarray/ndarray.hpp"
#include "op/gradient_graph.hpp"
#include "plan/grad_req.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// A function that the host computes: returns gradients of its inputs (a null array: none) from those of its outputs.
class TapeFunction {
 public:
  virtual ~TapeFunction() = default;
  virtual std::vector<NDArray> backward(const std::vector<NDArray> &head_grads) = 0;
};

class Tape {
 public:
  using Arrays = std::vector<NDArray>;

  bool recording() const { return recording_; }
  bool training() const { return training_; }
  void set_recording(bool recording);
  void set_training(bool training);

  // `gradients` is empty, or has one for each array, which may be null.
  void mark(const Arrays &arrays, const Arrays &gradients, const std::vector<GradReq> &reqs);
  // Parameters are as in executor/invoke.hpp.
  Arrays invoke(const std::string &op, const AttrMap &attrs, const Arrays &inputs, const Arrays &outputs,
                const Context &context, uint64_t seed);
  void record_function(const Arrays &inputs, const Arrays &outputs, std::shared_ptr<TapeFunction> function);

  struct BackwardOptions {
    bool retain_graph = false, create_graph = false;
  };
  // `head_grads` is empty, or has one for each head; a null array stands for ones.
  void backward(const Arrays &heads, const Arrays &head_grads, const BackwardOptions &options);
  Arrays gradients_of(const Arrays &heads, const Arrays &head_grads, const Arrays &variables,
                      const BackwardOptions &options);

  Symbol symbol(const NDArray &array);
  size_t num_recorded();  // without variables, and without records that cannot be reached any more

 private:
  struct Edge {  // where an array comes from: an output of a record, or (record 0) a constant
    uint64_t record = 0;
    int output = 0;
    bool operator==(const Edge &other) const { return record == other.record && output == other.output; }
  };
  struct Tracked {
    NDArray array;
    Edge edge;
  };
  using Values = std::vector<Tracked>;
  struct KeptArray {
    NDArray array;  // null: not kept
    uint64_t version = 0;
  };
  struct Record {
    Application what;  // no operator: a variable or a function
    Context context;
    std::vector<Edge> edges;  // one per input
    std::vector<TensorType> in_types, out_types;
    std::vector<Context> in_contexts;  // of a function
    std::vector<KeptArray> inputs, outputs;
    std::vector<std::weak_ptr<Storage>> made;  // the outputs
    Kept kept;
    std::shared_ptr<TapeFunction> function;
    bool is_variable = false;
    bool learns = false;  // a gradient flows back through it to a variable
    NDArray gradient;     // of a variable; null: none
    GradReq req = GradReq::kNull;
    size_t num_readers = 0;

    std::string name() const { return is_variable ? "a mark" : what.op ? what.name() : "a function"; }
  };
  struct Known {
    std::weak_ptr<Storage> storage;
    size_t offset, bytes;
    Dtype dtype;
    uint64_t version;
    Edge edge;
  };
  class Backward;  // one backward pass, in tape_backward.cc

  void check_idle() const;
  Tracked track(const NDArray &array, const char *what, size_t index);
  Values track_all(const Arrays &arrays, const char *what);
  const Known *find_known(const NDArray &array, const char *what, size_t index);
  // The entry of a larger array that this one is a part of, or null.
  const Known *find_whole(const NDArray &array) const;
  Tracked record_part(const Known &whole, const NDArray &part);
  bool is_stale(const Known &known) const;
  void remember(const NDArray &array, const Edge &edge);
  // Its array was overwritten: it is a constant from here on, unless it is a variable.
  void untrack(const NDArray &array);
  void refuse_variables(const Arrays &outputs, const std::string &what);

  // Apply the operator, and record it if the tape is recording and an input is tracked. `types` has the types of a
  // backward step's outputs; an output that is not wanted is not computed. `spare` has an array for each output, which
  // it is written to if it has as many elements of the same type on the same device.
  Values apply(const Application &what, const Values &inputs, const Arrays &outputs, const Context &context,
               uint64_t seed);
  Values apply_backward(const Application &what, const Values &inputs, const std::vector<TensorType> &types,
                        const std::vector<bool> &wanted, const Record &of, const Arrays &spare);
  // The sum of arrays of one shape, each in `type` or in 16 bits, computed in `type` or float32, from left to right;
  // not recorded. Written to `into`, which may be the first one; null: to a new array.
  Tracked sum(const Values &addends, Dtype type, const NDArray &into);
  // Whether a gradient flows back through the operator to a variable.
  bool learns(const Application &what, const Values &inputs) const;
  Values record(Record record, const Values &inputs, const Arrays &outputs);
  void keep_arrays(Record *record, const Values &inputs, const Arrays &outputs) const;
  void remove(uint64_t id);
  void sweep();
  bool unreachable(const Record &record) const;

  bool recording_ = true, training_ = true;
  bool busy_ = false;  // in a backward pass
  uint64_t next_id_ = 1;
  size_t next_sweep_ = 256;   // records
  size_t unswept_bytes_ = 0;  // of outputs recorded since the last sweep
  std::map<uint64_t, Record> records_;
  std::unordered_map<const Storage *, std::vector<Known>> known_;
};

}  // namespace cohort
