// SPDX-License-Identifier: Apache-2.0
#include "op/control_flow.hpp"

#include <algorithm>

namespace cohort {
namespace {

using A = ControlFlowAttrs;

[[noreturn]] void refuse(const char *what, const std::string &expected, int64_t found) {
  throw Error(Code::kInvalidArgument, text(what, ": expected ", expected, ", found ", found), what);
}

void expect(const char *what, int64_t expected, int64_t found) {
  if (expected != found) refuse(what, std::to_string(expected), found);
}

// Requires each location to be below `limit` and unique.
void check_locations(const char *what, const Tuple &locations, size_t limit) {
  std::vector<bool> seen(limit, false);
  for (const int64_t at : locations) {
    if (at < 0 || at >= int64_t(limit)) refuse(what, text("input numbers below ", limit), at);
    if (seen[size_t(at)]) refuse(what, "each input once", at);
    seen[size_t(at)] = true;
  }
}

void name_inputs(A &a) {
  const int count = a.num_args - int(a.inside.size());
  if (count < 0) refuse("num_args", text("at least ", a.inside.size(), " sub-graphs"), a.num_args);
  for (int i = 0; i < count; ++i) a.inputs.push_back({"data" + std::to_string(i), "", nullptr, false});
}

// Inputs of the node for which says(sub-graph, input) is true.
template <typename Says>
std::vector<int> inputs_that(const A &a, Says &&says) {
  std::vector<bool> found(a.num_inputs(), false);
  for (size_t g = 0; g < a.inside.size(); ++g) {
    for (size_t i = 0; i < a.sources[g].size(); ++i) {
      if (says(*a.inside[g], i)) found[size_t(a.sources[g][i])] = true;
    }
  }
  std::vector<int> list;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) list.push_back(int(i));
  }
  return list;
}

bool has(const std::vector<int> &list, int input) { return std::binary_search(list.begin(), list.end(), input); }

// States are values of the loop, not the arrays that hold their initial values: forward passes write copies.
void find_changed(A &a) {
  a.auxiliary = inputs_that(a, [](const Subgraph &inside, size_t i) { return inside.is_auxiliary(i); });
  for (const PassKind pass : {PassKind::kInference, PassKind::kTraining, PassKind::kBackward}) {
    a.changed[size_t(pass)] =
        inputs_that(a, [=](const Subgraph &inside, size_t i) { return inside.is_written(i, pass); });
  }
  for (size_t i = 0; i < a.num_data(); ++i) {
    if (has(a.auxiliary, int(i)))
      refuse("sub-graph", "no auxiliary state among data and states of the loop", int64_t(i));
  }
  for (const int state : a.states()) {
    if (has(a.auxiliary, state)) refuse("sub-graph", "no auxiliary state among data and states of the loop", state);
    if (has(a.changed[size_t(PassKind::kBackward)], state))
      refuse("sub-graph", "no fixed gamma among the states of the loop", state);
    for (std::vector<int> &changed : a.changed)
      changed.erase(std::remove(changed.begin(), changed.end(), state), changed.end());
  }
}

// Sets the node's inputs that feed a sub-graph.
void take_sources(A &a, size_t g, const char *what, const Tuple &locations) {
  check_locations(what, locations, a.num_inputs());
  expect(what, int64_t(a.inside[g]->num_inputs()), int64_t(locations.size()));
  a.sources.emplace_back(locations.begin(), locations.end());
}

void check_foreach(A &a) {
  name_inputs(a);
  const size_t inside = a.inside[0]->num_inputs();
  Tuple all = a.data_locs;
  all.insert(all.end(), a.state_locs.begin(), a.state_locs.end());
  all.insert(all.end(), a.remain_locs.begin(), a.remain_locs.end());
  check_locations("in_data_locs, in_state_locs, remain_locs", all, inside);
  expect("in_data_locs, in_state_locs, remain_locs", int64_t(inside), int64_t(all.size()));
  expect("num_args", int64_t(inside) + 1, a.num_args);
  if (a.data_locs.empty()) refuse("in_data_locs", "at least one array", 0);
  a.sources.assign(1, std::vector<int>(inside));
  for (size_t i = 0; i < all.size(); ++i) a.sources[0][size_t(all[i])] = int(i);
  expect("outputs of the sub-graph", a.num_outputs, int64_t(a.inside[0]->num_outputs()));
  expect("num_out_data", a.num_outputs - int64_t(a.state_locs.size()), a.num_out_data);
  if (a.num_out_data < 0) refuse("num_out_data", "0 or more", a.num_out_data);
  find_changed(a);
}

void check_while(A &a) {
  name_inputs(a);
  take_sources(a, 0, "cond_input_locs", a.cond_locs);
  take_sources(a, 1, "func_input_locs", a.func_locs);
  check_locations("func_var_locs", a.var_locs, a.func_locs.size());
  if (a.var_locs.empty()) refuse("func_var_locs", "at least one variable", 0);
  if (a.max_iterations < 0) refuse("max_iterations", "0 or more", a.max_iterations);
  expect("outputs of cond", 1, int64_t(a.inside[0]->num_outputs()));
  expect("outputs of func", a.num_outputs, int64_t(a.inside[1]->num_outputs()));
  expect("num_out_data", a.num_outputs - int64_t(a.var_locs.size()), a.num_out_data);
  if (a.num_out_data < 0) refuse("num_out_data", "0 or more", a.num_out_data);
  find_changed(a);
}

void check_cond(A &a) {
  name_inputs(a);
  take_sources(a, 0, "cond_input_locs", a.cond_locs);
  take_sources(a, 1, "then_input_locs", a.then_locs);
  take_sources(a, 2, "else_input_locs", a.else_locs);
  expect("outputs of cond", 1, int64_t(a.inside[0]->num_outputs()));
  expect("outputs of then_branch", a.num_outputs, int64_t(a.inside[1]->num_outputs()));
  expect("outputs of else_branch", a.num_outputs, int64_t(a.inside[2]->num_outputs()));
  find_changed(a);
}

void check_cached(A &a) {
  a.num_args = int(a.inside[0]->num_inputs()) + 1;
  a.num_outputs = int(a.inside[0]->num_outputs());
  name_inputs(a);
  a.sources.resize(1);
  for (size_t i = 0; i < a.num_inputs(); ++i) a.sources[0].push_back(int(i));
  find_changed(a);
}

// ---- inference: passes what is known of the node to the sub-graph, and back ----------------------------------------

template <typename T>
std::vector<T> taken(const std::vector<T> &all, const std::vector<int> &which) {
  std::vector<T> some;
  for (const int i : which) some.push_back(all[size_t(i)]);
  return some;
}

template <typename T>
void put_back(const std::vector<T> &some, const std::vector<int> &which, std::vector<T> *all) {
  for (size_t i = 0; i < some.size(); ++i) unify((*all)[size_t(which[i])], some[i], "input of the sub-graph");
}

// A state has the same shape and type before and after each pass.
template <typename T>
void tie_states(const A &a, std::vector<T> &in, std::vector<T> &out) {
  const std::vector<int> states = a.states();
  for (size_t k = 0; k < states.size(); ++k) {
    T &first = in[size_t(states[k])], &last = out[size_t(a.num_out_data) + k];
    unify(first, last, "state");
    unify(last, first, "state");
  }
}

Shape row_of(const Shape &shape) {
  if (!shape.rank_known()) return Shape();
  if (shape.rank() == 0) throw Error(Code::kShape, "data: expected at least one axis to take rows along, found none");
  return Shape(shape.begin() + 1, shape.end());
}

Shape with_rows(int64_t length, const Shape &row) {
  if (!row.rank_known()) return Shape();
  std::vector<int64_t> lengths{length};
  lengths.insert(lengths.end(), row.begin(), row.end());
  return Shape(std::move(lengths));
}

// The shapes of one row of each output, and of the states.
Shapes rows_of(const A &a, const Shapes &out) {
  Shapes rows = out;
  for (int j = 0; j < a.num_out_data; ++j) rows[size_t(j)] = row_of(out[size_t(j)]);
  return rows;
}

void put_rows(const A &a, int64_t length, const Shapes &rows, Shapes *out) {
  for (size_t j = 0; j < rows.size(); ++j) {
    unify((*out)[j], int(j) < a.num_out_data ? with_rows(length, rows[j]) : rows[j], "output of the sub-graph");
  }
}

void check_scalar(const Shapes &condition) {
  if (condition[0].known() && condition[0].size() != 1) {
    throw Error(Code::kShape, text("cond: expected one element, found ", condition[0]), "cond");
  }
}

int64_t length_of(const A &a, const Shapes &in, const Shapes &out) {
  Shape length{Shape::kUnknown};
  const auto merge = [&](const Shape &shape, const char *what) {
    row_of(shape);
    if (shape.rank_known()) unify(length, Shape{shape[0]}, what);
  };
  for (size_t i = 0; i < a.num_data(); ++i) merge(in[i], "rows of data");
  for (int j = 0; j < a.num_out_data; ++j) merge(out[size_t(j)], "rows of an output");
  return length[0];
}

void infer_foreach(const A &a, Shapes &in, Shapes &out) {
  const int64_t length = length_of(a, in, out);
  tie_states(a, in, out);
  Shapes sub_in = in, sub_out = rows_of(a, out);
  for (size_t i = 0; i < a.num_data(); ++i) sub_in[i] = row_of(in[i]);
  sub_in = taken(sub_in, a.sources[0]);
  a.inside[0]->infer_shapes(&sub_in, &sub_out);
  for (size_t i = 0; i < sub_in.size(); ++i) {
    const size_t at = size_t(a.sources[0][i]);
    unify(in[at], at < a.num_data() ? with_rows(length, sub_in[i]) : sub_in[i], "input of the sub-graph");
  }
  put_rows(a, length, sub_out, &out);
  tie_states(a, in, out);
}

// Infers one sub-graph; `sub_out` holds what is known of its outputs.
template <typename T>
void infer_inside(const A &a, size_t g, void (Subgraph::*infer)(std::vector<T> *, std::vector<T> *) const,
                  std::vector<T> &in, std::vector<T> &sub_out) {
  std::vector<T> sub_in = taken(in, a.sources[g]);
  ((*a.inside[g]).*infer)(&sub_in, &sub_out);
  put_back(sub_in, a.sources[g], &in);
}

void infer_while(const A &a, Shapes &in, Shapes &out) {
  tie_states(a, in, out);
  Shapes condition(1), rows = rows_of(a, out);
  infer_inside(a, 0, &Subgraph::infer_shapes, in, condition);
  check_scalar(condition);
  infer_inside(a, 1, &Subgraph::infer_shapes, in, rows);
  put_rows(a, a.max_iterations, rows, &out);
  tie_states(a, in, out);
}

void infer_cond(const A &a, Shapes &in, Shapes &out) {
  Shapes condition(1);
  infer_inside(a, 0, &Subgraph::infer_shapes, in, condition);
  check_scalar(condition);
  for (const size_t branch : {1, 2}) infer_inside(a, branch, &Subgraph::infer_shapes, in, out);
}

void infer_dtypes(const A &a, Dtypes &in, Dtypes &out) {
  tie_states(a, in, out);
  for (size_t g = 0; g < a.inside.size(); ++g) {
    Dtypes condition{Dtype::kNone};
    infer_inside(a, g, &Subgraph::infer_dtypes, in, a.inside.size() > 1 && g == 0 ? condition : out);
  }
  tie_states(a, in, out);
}

// ---- gradients and costs -------------------------------------------------------------------------------------------

Gradient gradient_of_inside(const A &a) {
  const std::vector<int> of = a.with_gradient();
  if (of.empty()) return Gradient();
  std::vector<int> inputs, outputs;
  for (size_t i = 0; i < a.num_inputs(); ++i) inputs.push_back(int(i));
  const int num_outputs = a.states().empty() ? a.num_outputs : a.num_out_data;  // the loop itself saves its states
  for (int j = 0; j < num_outputs; ++j) outputs.push_back(j);
  Gradient gradient = Gradient::by_kernel(of, inputs, outputs).beside_forward();
  gradient.writes = a.changed[size_t(PassKind::kBackward)];
  return gradient;
}

double flops_of(const A &a, const Shapes &in, double passes) {
  Shapes known = in;
  for (size_t i = 0; i < a.num_data(); ++i) known[i] = row_of(in[i]);
  double most = 0;
  for (size_t g = 0; g < a.inside.size(); ++g) most = std::max(most, a.inside[g]->flops(taken(known, a.sources[g])));
  return passes * most;
}

const std::vector<InputField> &inputs_of(const A &a) { return a.inputs; }

OpBuilder<A> control_flow(const char *name, const char *doc, std::vector<const char *> subgraphs) {
  OpBuilder<A> op(name);
  return op.doc(doc)
      .variadic("data", "num_args", "The inputs of the sub-graphs.")
      .own_inputs(inputs_of)
      .subgraphs(std::move(subgraphs), &A::inside, &A::num_args)
      .outputs([](const A &a) { return a.num_outputs; })
      .infer_dtype(infer_dtypes)
      .own_mutates([](const A &a, PassKind pass) { return a.changed[size_t(pass)]; })
      .gradient(gradient_of_inside);
}

[[maybe_unused]] const auto &kForeach =
    control_flow(
        "_foreach",
        "Runs a sub-graph for each row of the data. Its outputs are rows of the outputs; its states are passed "
        "from one pass to the next.",
        {"fn"})
        .required(&A::num_outputs, "num_outputs", "Number of outputs of the sub-graph.")
        .required(&A::num_out_data, "num_out_data", "Number of outputs that are rows; the others are states.")
        .required(&A::state_locs, "in_state_locs", "Inputs of the sub-graph that are states.")
        .shown_as("tuple of <long>")
        .required(&A::data_locs, "in_data_locs", "Inputs of the sub-graph that are rows.")
        .shown_as("tuple of <long>")
        .required(&A::remain_locs, "remain_locs", "Inputs of the sub-graph that do not change between passes.")
        .shown_as("tuple of <long>")
        .check(check_foreach)
        .infer_shape(infer_foreach)
        .flops([](const A &a, const Shapes &in, const Shapes &) { return flops_of(a, in, double(in[0][0])); });

[[maybe_unused]] const auto &kWhile =
    control_flow("_while_loop",
                 "Runs func while cond is not 0, at most max_iterations times. Outputs have max_iterations rows; rows "
                 "that were not computed are 0.",
                 {"cond", "func"})
        .required(&A::num_outputs, "num_outputs", "Number of outputs of func.")
        .required(&A::num_out_data, "num_out_data", "Number of outputs that are rows; the others are loop variables.")
        .required(&A::max_iterations, "max_iterations", "Largest number of iterations.")
        .required(&A::cond_locs, "cond_input_locs", "Inputs that cond reads.")
        .shown_as("tuple of <long>")
        .required(&A::func_locs, "func_input_locs", "Inputs that func reads.")
        .shown_as("tuple of <long>")
        .required(&A::var_locs, "func_var_locs", "Inputs of func that are loop variables.")
        .shown_as("tuple of <long>")
        .check(check_while)
        .infer_shape(infer_while)
        .flops([](const A &a, const Shapes &in, const Shapes &) { return flops_of(a, in, a.max_iterations); });

[[maybe_unused]] const auto &kCond =
    control_flow("_cond", "Runs then_branch if cond is not 0, otherwise else_branch.",
                 {"cond", "then_branch", "else_branch"})
        .required(&A::num_outputs, "num_outputs", "Number of outputs of each branch.")
        .required(&A::cond_locs, "cond_input_locs", "Inputs that cond reads.")
        .shown_as("tuple of <long>")
        .required(&A::then_locs, "then_input_locs", "Inputs that then_branch reads.")
        .shown_as("tuple of <long>")
        .required(&A::else_locs, "else_input_locs", "Inputs that else_branch reads.")
        .shown_as("tuple of <long>")
        .check(check_cond)
        .infer_shape(infer_cond)
        .flops([](const A &a, const Shapes &in, const Shapes &) { return flops_of(a, in, 1); });

COHORT_OPERATOR(_CachedOp, A)
    .alias("_CachedOpThreadSafe")
    .doc("Runs a sub-graph once.")
    .input("data", "The inputs of the sub-graph.")
    .own_inputs(inputs_of)
    .subgraphs({"graph"}, &A::inside, &A::num_args)
    .outputs([](const A &a) { return a.num_outputs; })
    .other_attrs([](A &, const std::string &, const std::string &) {})  // MXNet's execution options
    .check(check_cached)
    .infer_shape([](const A &a, Shapes &in, Shapes &out) { infer_inside(a, 0, &Subgraph::infer_shapes, in, out); })
    .infer_dtype(infer_dtypes)
    .own_mutates([](const A &a, PassKind pass) { return a.changed[size_t(pass)]; })
    .gradient(gradient_of_inside)
    .flops([](const A &a, const Shapes &in, const Shapes &) { return flops_of(a, in, 1); });

}  // namespace

std::vector<int> ControlFlowAttrs::states() const {
  std::vector<int> list;
  for (const int64_t at : state_locs) list.push_back(sources[0][size_t(at)]);
  for (const int64_t at : var_locs) list.push_back(sources[1][size_t(at)]);
  return list;
}

std::vector<int> ControlFlowAttrs::with_gradient() const {
  std::vector<int> list;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!has(auxiliary, int(i))) list.push_back(int(i));
  }
  return list;
}

}  // namespace cohort
