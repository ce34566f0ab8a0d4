// SPDX-License-Identifier: Apache-2.0
#include "op/op.hpp"

#include <algorithm>
#include <charconv>

#include "base/names.hpp"
#include "op/auxiliary_inputs.hpp"

namespace cohort {
Op &OpRegistry::add(Op op) {
  ops_.push_back(std::move(op));
  return ops_.back();
}

const std::map<std::string, const Op *> &OpRegistry::names() const {
  std::call_once(once_, [this] {
    names_.clear();
    const auto enter = [this](const std::string &name, const Op &op) {
      if (!names_.emplace(name, &op).second) duplicates_ += (duplicates_.empty() ? "" : ", ") + name;
    };
    for (const Op &op : ops_) {
      enter(op.name, op);
      for (const std::string &alias : op.aliases) enter(alias, op);
    }
  });
  if (!duplicates_.empty()) throw Error(Code::kInternal, text("operators are registered twice: ", duplicates_));
  return names_;
}

const Op *OpRegistry::find(const std::string &name) const {
  const auto found = names().find(name);
  return found == names().end() ? nullptr : found->second;
}

OpRegistry &op_registry() {
  static auto *const registry = new OpRegistry;
  return *registry;
}

const Op *find_op(const std::string &name) { return op_registry().find(name); }

namespace {

std::string no_operator(const std::string &name) {
  std::vector<std::string> known;
  for (const auto &entry : op_registry().names()) known.push_back(entry.first);
  return text("no operator is named '", name, "'", nearest_words(known, name));
}

std::string print_number(double value) {  // 1073741824, 0.5: the shortest exact form
  char printed[32];
  return std::string(printed, std::to_chars(printed, printed + sizeof printed, value).ptr);
}

}  // namespace

const Op &get_op(const std::string &name) {
  const Op *op = find_op(name);
  if (!op) throw Error(Code::kName, no_operator(name), name);
  return *op;
}

std::vector<const Op *> list_ops() {
  std::vector<const Op *> list;
  op_registry().names();  // throws where a name was given twice
  for (const Op &op : op_registry().ops()) list.push_back(&op);
  std::sort(list.begin(), list.end(), [](const Op *a, const Op *b) { return a->name < b->name; });
  return list;
}

int Op::count_args(const AttrMap &source, size_t num_given) const {
  if (variadic.empty()) return 0;
  const auto found = source.find(variadic);
  const int64_t count = found == source.end() ? int64_t(num_given) : parse_int(variadic, found->second);
  if (count < 1 || count > kMaxInputs) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected 1 to ", kMaxInputs, " inputs, found ", count), variadic);
  }
  return int(count);
}

std::vector<std::string> Op::input_names(const Attrs &a, int num_args) const {
  std::vector<std::string> names;
  for (const InputField *field : input_fields(a, num_args)) {
    const bool counted = !variadic.empty() && !own_inputs && field == &inputs.front();
    const int index = int(names.size());
    if (!counted) {
      names.push_back(field->name);
    } else {
      names.push_back(name_input ? name_input(a, index, num_args) : field->name + std::to_string(index));
    }
  }
  return names;
}

// A variadic operator may also declare named inputs; those present for these attributes replace the counted ones.
std::vector<const InputField *> Op::input_fields(const Attrs &a, int num_args) const {
  const std::vector<InputField> &declared = declared_inputs(a);
  const bool counted = !variadic.empty() && !own_inputs;
  std::vector<const InputField *> named;
  for (size_t i = counted ? 1 : 0; i < declared.size(); ++i) {
    if (!declared[i].present || declared[i].present(a)) named.push_back(&declared[i]);
  }
  if (!counted || !named.empty()) return named;
  return std::vector<const InputField *>(size_t(num_args), &inputs.front());
}

std::vector<std::string> Op::output_names(const Attrs &a) const {
  if (name_outputs) return name_outputs(a);
  std::vector<std::string> names;
  for (int i = 0, count = num_outputs(a); i < count; ++i) names.push_back(output_name(a, i));
  return names;
}

std::string Op::output_name(const Attrs &a, int index) const {
  if (name_outputs) return name_outputs(a)[size_t(index)];
  return "output" + (num_outputs(a) == 1 && !numbers_one_output ? "" : std::to_string(index));
}

int Op::num_aux(const Attrs &a) const {
  int count = 0;
  for (const InputField &field : declared_inputs(a)) count += field.aux && (!field.present || field.present(a));
  return count;
}

std::vector<int> auxiliary_inputs(const Op &op, const Attrs &attrs, size_t num_inputs) {
  std::vector<int> indices;
  if (op.num_aux(attrs) == 0) return indices;
  const std::vector<const InputField *> fields = op.input_fields(attrs, int(num_inputs));
  for (size_t i = 0; i < fields.size() && i < num_inputs; ++i) {
    if (fields[i]->aux) indices.push_back(int(i));
  }
  return indices;
}

bool Op::any_subgraph(const Attrs &a, bool (Subgraph::*is)() const) const {
  if (!subgraphs_of) return false;
  const Subgraphs &inside = subgraphs_of(a);
  return std::any_of(inside.begin(), inside.end(), [is](const auto &subgraph) { return ((*subgraph).*is)(); });
}

std::vector<int> Op::mutated(const Attrs &a, size_t num_inputs, PassKind pass) const {
  if (own_mutates) return own_mutates(a, pass);
  if (mutates.empty() && !own_inputs) return {};
  const std::vector<int> states = auxiliary_inputs(*this, a, num_inputs);
  std::vector<int> indices;
  for (const int index : mutates) {
    const bool is_state = std::count(states.begin(), states.end(), index) > 0;
    if (size_t(index) < num_inputs && (pass == PassKind::kTraining || !is_state)) indices.push_back(index);
  }
  if (own_inputs) indices.insert(indices.end(), states.begin(), states.end());
  return indices;
}

std::vector<int> Op::mutated_backward(const Attrs &a, size_t num_inputs) const {
  const Gradient gradient = gradient_of(a);
  std::vector<int> indices;
  int at = gradient.head_grads ? num_visible(a) : 0;
  for (const int input : gradient.inputs) {
    if (size_t(input) >= num_inputs) continue;
    if (std::count(gradient.writes.begin(), gradient.writes.end(), input) > 0) indices.push_back(at);
    ++at;
  }
  return indices;
}

void AttrField::set(void *target, const std::string &source) const {
  parse(target, source);
  if (!numbers || (!std::isfinite(low) && !std::isfinite(high))) return;
  for (const double number : numbers(target)) {
    if (number >= low && number <= high) continue;
    const std::string expected = !std::isfinite(high)  ? text("at least ", print_number(low))
                                 : !std::isfinite(low) ? text("at most ", print_number(high))
                                                       : text(print_number(low), " to ", print_number(high));
    throw Error(Code::kInvalidArgument, text("attribute '", name, "': expected ", expected, ", found ", source), name);
  }
}

Attrs Op::parse(const AttrMap &source, const Subgraphs &given) const {
  const auto named = [this](const auto &run, const std::string &attr = "") {
    try {
      run();
    } catch (const Error &e) {
      const std::string what = e.what();
      const bool says_which = attr.empty() || what.find("attribute '") == 0;
      throw Error(attr.empty() ? e.code() : Code::kInvalidArgument,
                  text("operator ", name, says_which ? ": " : ": attribute '" + attr + "': ", what),
                  attr.empty() ? e.subject() : attr);
    }
  };
  std::shared_ptr<void> target = new_attrs();
  if (given.size() != subgraphs.size()) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected ", subgraphs.size(), " sub-graphs, found ", given.size()), name);
  }
  for (const auto &entry : source) {
    const std::string &key = entry.first;
    if (key.size() >= 4 && key.compare(0, 2, "__") == 0 && key.compare(key.size() - 2, 2, "__") == 0) continue;
    if (key == variadic) continue;  // counted from the inputs
    const auto field = std::find_if(attrs.begin(), attrs.end(), [&](const AttrField &f) { return f.name == key; });
    if (field == attrs.end() && other_attrs) {
      other_attrs(target.get(), key, entry.second);
      continue;
    }
    // MXNet ignores attributes of such operators; its own CosineEmbeddingLoss gives broadcast_maximum an axis.
    if (attrs.empty() && variadic.empty()) continue;
    if (field == attrs.end()) {
      std::string known;
      for (const AttrField &f : attrs) known += (known.empty() ? "" : ", ") + f.name;
      throw Error(Code::kName, text("operator ", name, " has no attribute '", key, "'; it has: ", known), key);
    }
    named([&] { field->set(target.get(), entry.second); }, key);
  }
  for (const AttrField &field : attrs) {
    if (field.required && source.count(field.name) == 0) {
      throw Error(Code::kName, text("operator ", name, " requires the attribute '", field.name, "'"), field.name);
    }
  }
  const int num_args = set_subgraphs ? count_args(source, 0) : 0;
  named([&] {
    if (set_subgraphs) set_subgraphs(target.get(), given, num_args);
    if (check_attrs) check_attrs(target.get());
  });
  Attrs parsed{target};
  const int outputs = num_outputs(parsed);
  const int least = mutates.empty() ? 1 : 0;  // an operator that mutates its inputs may have no outputs
  if (outputs < least || outputs > kMaxOutputs) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected ", least, " to ", kMaxOutputs, " outputs, found ", outputs), name);
  }
  return parsed;
}

void unify(Shape &shape, const Shape &known, const char *name) {
  if (shape.merge(known)) return;
  const bool only_rank =
      std::all_of(known.begin(), known.end(), [](int64_t length) { return length == Shape::kUnknown; });
  const std::string expected = only_rank ? text(known.rank(), " axes") : text(known);
  throw Error(Code::kShape, text(name, ": expected ", expected, ", found ", shape), name);
}

void unify(Dtype &dtype, Dtype known, const char *name) {
  if (known == Dtype::kNone || dtype == known) return;
  if (dtype != Dtype::kNone) throw Error(Code::kDtype, text(name, ": expected ", known, ", found ", dtype), name);
  dtype = known;
}

void unify(Shape &shape, const Shape &known, size_t input) {
  if (!shape.merge(known)) unify(shape, known, text("input ", input).c_str());
}

void unify(Dtype &dtype, Dtype known, size_t input) {
  if (known != Dtype::kNone && dtype != known) unify(dtype, known, text("input ", input).c_str());
}

void join(Shape &all, const Shape &shape, size_t input) {
  if (all.merge(shape)) return;
  Shape found = shape;
  unify(found, all, input);
}

void infer_same_shape(const Attrs &, Shapes &in, Shapes &out) {
  Shape all;
  for (const Shape &s : out) unify(all, s, "output");
  for (size_t i = 0; i < in.size(); ++i) join(all, in[i], i);
  for (size_t i = 0; i < in.size(); ++i) unify(in[i], all, i);
  for (Shape &s : out) unify(s, all, "output");
}

void infer_same_dtype(const Attrs &, Dtypes &in, Dtypes &out) {
  Dtype all = Dtype::kNone;
  for (Dtype d : in) {
    if (all == Dtype::kNone) all = d;
  }
  for (Dtype d : out) {
    if (all == Dtype::kNone) all = d;
  }
  for (size_t i = 0; i < in.size(); ++i) unify(in[i], all, i);
  for (Dtype &d : out) unify(d, all, "output");
}

void infer_same_float(const Attrs &a, Dtypes &in, Dtypes &out) {
  infer_same_dtype(a, in, out);
  if (in[0] != Dtype::kNone && !dtype_is_float(in[0])) {
    throw Error(Code::kDtype, text("expected a floating type, found ", in[0]), "data");
  }
}

int64_t parse_int_in(const std::string &name, const std::string &source, int64_t low, int64_t high) {
  const int64_t value = parse_int(name, source);
  if (value < low || value > high) {
    throw Error(Code::kInvalidArgument,
                text("attribute '", name, "': expected ", low, " to ", high, ", found ", source), name);
  }
  return value;
}

std::string print_float(double value, int digits) {
  char printed[32];
  const auto end = std::to_chars(printed, printed + sizeof printed, value, std::chars_format::general, digits).ptr;
  return std::string(printed, end);  // unlike printf, independent of the host's locale
}

std::string print_tuple(const Tuple &value) {
  std::string out = "[";
  for (size_t i = 0; i < value.size(); ++i) out += (i ? "," : "") + std::to_string(value[i]);
  return out + "]";
}

Tuple parse_whole_tuple(const std::string &name, const std::string &source) {
  Tuple whole;
  if (is_none(source)) return whole;
  for (const std::optional<int64_t> &element : parse_tuple(name, source)) {
    if (!element) {
      throw Error(Code::kInvalidArgument, text("attribute '", name, "': expected integers, found ", source), name);
    }
    whole.push_back(*element);
  }
  return whole;
}

}  // namespace cohort
