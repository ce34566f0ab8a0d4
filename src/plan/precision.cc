// SPDX-License-Identifier: Apache-2.0
// Computes in a narrower type than the network's where operators benefit from it (Op::precision). Their float32 inputs
// are cast once per value; results stay narrow for readers that accept them, and are cast back for others. Arguments,
// outputs and auxiliary states keep their types; gradients flow back through the casts.
#include <algorithm>

#include "base/error.hpp"
#include "device/kernel_table.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

class PrecisionPass {
 public:
  explicit PrecisionPass(Ir &ir)
      : ir_(ir),
        type_(ir.request->compute_dtype),
        to_narrow_(cast_to(type_)),
        to_wide_(cast_to(Dtype::kFloat32)),
        twin_(ir.values.size(), -1),
        narrow_made_(ir.values.size(), false),
        missing_(ir.values.size(), false) {}

  void run() {
    std::vector<IrStep> steps = std::move(ir_.steps);
    ir_.steps.clear();
    for (IrStep &step : steps) {
      const std::vector<int> inputs = step.inputs;
      const std::vector<int> mutated = step.op ? step.op->mutated(step.attrs, inputs.size()) : std::vector<int>();
      if (!narrow(step)) {
        for (int v : inputs) {
          if (v >= 0) make_wide(v, step);
        }
        ir_.steps.push_back(std::move(step));
      }
      for (int i : mutated) forget_casts_in_memory(inputs[size_t(i)]);
      // With separate nodes, each node may run alone and needs its own casts.
      for (size_t i = 0; ir_.request->separate_nodes && i < inputs.size(); ++i) forget_cast(inputs[i]);
    }
    ir_.num_forward = ir_.steps.size();
    for (size_t v = 0; v < missing_.size(); ++v) {
      if (missing_[v]) replace(int(v));
    }
  }

 private:
  struct Cast {
    const Op *op;
    Attrs attrs;
  };
  static Cast cast_to(Dtype type) {
    const Op &op = get_op("Cast");
    return {&op, op.parse({{"dtype", dtype_name(type)}})};
  }

  void add_cast(const Cast &cast, int from, int to, const IrStep &reader) {
    IrStep step;
    step.kernel = cast.op->name;
    step.op = cast.op;
    step.attrs = cast.attrs;
    step.node = reader.node;
    step.device = ir_.values[size_t(from)].device;
    step.inserted = step.casts = true;
    step.inputs = {from};
    step.outputs = {to};
    ir_.steps.push_back(std::move(step));
  }

  Op::Precision precision_of(const IrStep &step) const {
    const auto said = ir_.request->precisions.find(step.node);
    return said == ir_.request->precisions.end() ? step.op->precision : said->second;
  }
  // The caller requested the narrow type for this node, so failing to use it is an error.
  bool is_forced(const IrStep &step) const {
    const auto said = ir_.request->precisions.find(step.node);
    return said != ir_.request->precisions.end() && said->second == Op::Precision::kNarrow;
  }

  bool is_wide(int value) const { return ir_.values[size_t(value)].spec.dtype == Dtype::kFloat32; }
  bool is_made_narrow(int value) const { return narrow_made_[size_t(ir_.root(value))]; }

  // Makes later readers cast the value again.
  void forget_cast(int value) {
    if (value >= 0 && !is_made_narrow(value)) twin_[size_t(ir_.root(value))] = -1;
  }

  void forget_casts_in_memory(int value) {
    if (value < 0) return;
    forget_cast(value);
    const int memory = ir_.memory(value);
    for (size_t v = 0; v < ir_.values.size() && !ir_.request->same_memory.empty(); ++v)
      if (ir_.memory(int(v)) == memory) forget_cast(int(v));
  }

  // Inserts before `reader` a cast back to the network's type if only the narrow value exists.
  void make_wide(int value, const IrStep &reader) {
    const auto root = size_t(ir_.root(value));
    if (!missing_[root]) return;
    add_cast(to_wide_, twin_[root], int(root), reader);
    missing_[root] = false;
  }

  int narrow_value(int value, const IrStep &reader) {
    const int root = ir_.root(value);
    if (twin_[size_t(root)] < 0) {
      twin_[size_t(root)] = add_twin(root);
      ir_.values[size_t(twin_[size_t(root)])].narrow_of = root;
      add_cast(to_narrow_, root, twin_[size_t(root)], reader);
    }
    const int twin = twin_[size_t(root)];
    const IrValue &alias = ir_.values[size_t(value)];
    return root == value ? twin : ir_.add_alias(twin, alias.spec.shape, alias.blocks_gradient);
  }

  int add_twin(int value) {
    IrValue twin;
    twin.spec = ir_.values[size_t(value)].spec;
    twin.spec.dtype = type_;
    twin.device = ir_.values[size_t(value)].device;
    return ir_.add_value(std::move(twin));
  }

  // The wide value has no reader: the narrow one becomes the node's value.
  void replace(int value) {
    const IrValue &old = ir_.values[size_t(value)];
    if (old.node < 0) return;
    IrValue &twin = ir_.values[size_t(twin_[size_t(value)])];
    twin.node = old.node;
    twin.output = old.output;
    ir_.node_values[size_t(old.node)][size_t(old.output)] = twin_[size_t(value)];
  }

  // Inputs that the step would read in the narrow type.
  std::vector<bool> chosen_inputs(const IrStep &step) const {
    std::vector<bool> chosen(step.inputs.size(), false);
    const std::vector<int> mutated = step.op->mutated(step.attrs, step.inputs.size());
    const Gradient gradient = step.op->gradient_of(step.attrs);
    const auto is_among = [](const std::vector<int> &list, size_t i) {
      return std::count(list.begin(), list.end(), int(i)) > 0;
    };
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int v = step.inputs[i];
      if (v < 0 || !is_wide(v) || is_among(mutated, i)) continue;
      // Inputs without a gradient are positions and counts, such as lengths of sequences, which a narrow type cannot
      // represent exactly.
      if (gradient.kind == Gradient::Kind::kKernel && !gradient.of.empty() && !is_among(gradient.of, i)) continue;
      chosen[i] = precision_of(step) == Op::Precision::kNarrow || is_made_narrow(v);
    }
    return chosen;
  }

  // The output types if the chosen inputs are narrow; empty if the operator does not accept these types.
  Dtypes output_types(const IrStep &step, const std::vector<bool> &chosen) const {
    const size_t num_inputs = ir_.num_node_inputs(step);
    Dtypes in, out(step.outputs.size(), Dtype::kNone);
    for (size_t i = 0; i < std::min(num_inputs, step.inputs.size()); ++i) {
      in.push_back(chosen[i] ? type_ : ir_.values[size_t(step.inputs[i])].spec.dtype);
    }
    const Dtypes wanted = in;
    try {
      step.op->infer_dtype(step.attrs, in, out);
    } catch (const Error &) {
      return {};
    }
    const bool known = std::none_of(out.begin(), out.end(), [](Dtype d) { return d == Dtype::kNone; });
    return known && in == wanted ? out : Dtypes();
  }

  // Whether the narrow type pays off: it must not replace an optimised kernel by a slow one.
  bool has_kernels(const IrStep &step, const std::vector<bool> &chosen, const Dtypes &out) const {
    StepSpec spec = ir_.spec_of(step);
    const KernelEntry *const before = ir_.kernels(step).find(spec);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i]) spec.inputs[i].dtype = type_;
    }
    for (size_t j = 0; j < out.size(); ++j) spec.outputs[j].dtype = out[j];
    const KernelEntry *const after = ir_.kernels(step).find(spec);
    if (!before || !after) return false;
    const bool gains = after->is_tuned() || (!before->is_tuned() && precision_of(step) != Op::Precision::kNarrow);
    if (!is_forced(step) && !gains) return false;
    if (!ir_.request->with_backward || step.op->gradient_of(step.attrs).kind != Gradient::Kind::kKernel) return true;
    const std::vector<const KernelEntry *> &back = ir_.kernels(step).candidates("_backward_" + step.kernel);
    const auto narrow =
        std::find_if(back.begin(), back.end(), [this](const KernelEntry *entry) { return entry->takes(type_); });
    return narrow != back.end() && (narrow == back.begin() || (*narrow)->is_tuned());
  }

  bool refuse(const IrStep &step) const {
    if (!is_forced(step)) return false;
    const std::string &name = ir_.node(step.node).name;
    throw Error(Code::kUnsupported,
                text("narrow_names: ", step.op->name, " '", name, "' cannot compute in ", type_, " with these inputs"),
                name);
  }

  // Adds the step in the narrow type if that is wanted and possible.
  bool narrow(IrStep &step) {
    if (!step.op || precision_of(step) == Op::Precision::kOwn) return false;
    if (std::count(step.inputs.begin(), step.inputs.end(), -1) > 0) return false;
    std::vector<bool> chosen = chosen_inputs(step);
    if (is_forced(step) &&
        output_types(step, chosen).empty()) {  // besides its data, the step may have inputs that must stay wide
      std::fill(chosen.begin() + 1, chosen.end(), false);
    }
    if (std::none_of(chosen.begin(), chosen.end(), [](bool c) { return c; })) return refuse(step);
    const Dtypes out = output_types(step, chosen);
    if (out.empty() || !has_kernels(step, chosen, out)) return refuse(step);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (chosen[i]) {
        step.inputs[i] = narrow_value(step.inputs[i], step);
      } else {
        make_wide(step.inputs[i], step);
      }
    }
    std::vector<int> read_wide;
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      const int v = step.outputs[j];
      if (v < 0 || out[j] != type_ || !is_wide(v)) continue;
      const int twin = add_twin(v);
      twin_[size_t(v)] = twin;
      narrow_made_[size_t(v)] = missing_[size_t(v)] = true;
      step.outputs[j] = twin;
      const bool is_head = std::any_of(ir_.heads.begin(), ir_.heads.end(), [&](int h) { return ir_.root(h) == v; });
      if (is_head || ir_.values[size_t(v)].location != ValueLocation::kArena || ir_.request->separate_nodes)
        read_wide.push_back(v);
    }
    ir_.narrow_nodes.resize(ir_.request->graph->nodes.size(), false);
    ir_.narrow_nodes[size_t(step.node)] = true;
    ir_.steps.push_back(std::move(step));
    const IrStep made = ir_.steps.back();
    for (int v : read_wide) make_wide(v, made);
    return true;
  }

  Ir &ir_;
  const Dtype type_;
  const Cast to_narrow_, to_wide_;
  // Per value of the network; values created by this pass have no entries.
  std::vector<int> twin_;          // the value in the narrow type; -1: none
  std::vector<bool> narrow_made_;  // the step that produces the value writes the narrow type
  std::vector<bool> missing_;      // the wide value has not been created yet
};

}  // namespace

void lower_precision(Ir &ir) {
  const Dtype type = ir.request->compute_dtype;
  if (type != Dtype::kFloat32 && type != Dtype::kInt8) PrecisionPass(ir).run();
}

}  // namespace cohort::plan

namespace cohort {

std::map<int, Op::Precision> node_precisions(const Graph &graph, const ComputeTypes &types) {
  for (const std::string &name : types.narrow) {
    const Op *const op = find_op(name);
    for (const std::string &wide : types.wide) {
      if (wide != name && (!op || find_op(wide) != op)) continue;
      throw Error(Code::kInvalidArgument,
                  text("narrow_names: '", name, "' is also in float32_names",
                       wide == name ? std::string() : text(", as '", wide, "'")),
                  name);
    }
  }
  std::map<int, Op::Precision> by_node, by_op;
  const auto add = [&](const std::vector<std::string> &names, Op::Precision precision, const char *list) {
    for (const std::string &name : names) {
      const Op *const op = find_op(name);
      bool known = op != nullptr;
      for (size_t n = 0; n < graph.nodes.size(); ++n) {
        const Node &node = *graph.nodes[n];
        if (node.is_variable()) continue;
        if (node.name == name) known = true, by_node[int(n)] = precision;
        if (op && node.op == op) by_op[int(n)] = precision;
      }
      if (known || !types.all_known) continue;
      throw Error(Code::kName, text(list, ": '", name, "' is neither a node of the network nor an operator"), name);
    }
  };
  add(types.wide, Op::Precision::kOwn, "float32_names");
  add(types.narrow, Op::Precision::kNarrow, "narrow_names");
  by_node.insert(by_op.begin(), by_op.end());
  return by_node;
}

std::string value_name(const Node &node, int output) {
  return node.is_variable() ? node.name : node.name + "_" + node.op->output_name(node.parsed, output);
}

std::vector<std::vector<ValueRange>> node_ranges(const Graph &graph, const ComputeTypes &types) {
  std::vector<std::vector<ValueRange>> ranges;
  if (!types.ranges) return ranges;
  for (const auto &node : graph.nodes) {
    ranges.emplace_back();
    for (int output = 0; output < (node->is_variable() ? 1 : node->num_outputs()); ++output) {
      const auto found = types.ranges->find(value_name(*node, output));
      ranges.back().push_back(found == types.ranges->end() ? ValueRange() : found->second);
    }
  }
  return ranges;
}

}  // namespace cohort
