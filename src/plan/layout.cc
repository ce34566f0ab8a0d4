// SPDX-License-Identifier: Apache-2.0
// Constructs the kernels in execution order. Each kernel is offered its inputs' current layouts, may request others,
// and states the layouts of its outputs. Reorders are inserted in between and shared. Arrays visible to the host are
// row-major.
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "device/output_check.hpp"
#include "plan/cost.hpp"
#include "plan/ir.hpp"
#include "plan/node_compiler.hpp"

namespace cohort::plan {
namespace {

using LayoutPtr = std::shared_ptr<const Layout>;

class LayoutPass {
 public:
  LayoutPass(Ir &ir, Plan *plan) : ir_(ir), plan_(*plan), request_(*ir.request) {}

  void run() {
    mark_constants();
    kernel_of_.resize(ir_.steps.size(), nullptr);
    saved_of_.resize(ir_.steps.size(), -1);
    plan_.node_end.assign(request_.graph->nodes.size(), 0);
    backward_of_.resize(ir_.steps.size(), -1);
    for (size_t s = ir_.num_forward; s < ir_.steps.size(); ++s) {
      if (ir_.steps[s].forward_step >= 0) backward_of_[size_t(ir_.steps[s].forward_step)] = int(s);
    }
    for (size_t s = 0; s < ir_.steps.size(); ++s) {
      if (s == ir_.num_forward) finish_forward();
      lower_step(s);
      last_step_of_.push_back(plan_.steps.empty() ? 0 : int(plan_.steps.size()) - 1);
    }
    if (ir_.steps.size() == ir_.num_forward) finish_forward();
    for (const Ir::Report &report : ir_.reports) {
      plan_.reports.push_back({last_step_of_[std::min(size_t(report.step), last_step_of_.size() - 1)], report.node,
                               report.input, report.value});
    }
    plan_.slots.resize(ir_.values.size());
  }

 private:
  // Marks values that depend only on constant arguments; the steps that compute them go to the prologue. In training
  // these are parameters in a narrower type: forward and backward read one copy, which is recomputed after an update.
  void mark_constants() {
    constant_.assign(ir_.values.size(), false);
    sources_.resize(ir_.values.size());
    if (request_.separate_nodes) return;
    const bool trains = request_.is_train || request_.with_backward;
    const int num_arguments = int(request_.graph->arguments.size());
    for (size_t v = 0; v < ir_.values.size(); ++v) {
      const IrValue &value = ir_.values[v];
      const bool parameter = ir_.is_parameter(int(v));
      const bool statistic = value.location == ValueLocation::kAuxiliary && value.alias < 0 && !trains;
      if (!parameter && !statistic) continue;
      constant_[v] = !trains;
      sources_[v] = {parameter ? value.index : num_arguments + value.index};
    }
  }

  bool is_constant(int value) const {
    const size_t root = size_t(ir_.root(value));
    return root < constant_.size() && constant_[root];
  }

  void set_constant(int value, std::vector<int> sources) {
    constant_.resize(ir_.values.size(), false);
    sources_.resize(ir_.values.size());
    constant_[size_t(value)] = true;
    sources_[size_t(value)] = std::move(sources);
  }

  bool narrows_parameter(const IrStep &step) const {
    return step.inserted && !step.backward && step.inputs.size() == 1 && ir_.is_parameter(step.inputs[0]) &&
           ir_.values[size_t(step.outputs[0])].narrow_of == step.inputs[0] &&
           ir_.values[size_t(step.outputs[0])].device == ir_.values[size_t(step.inputs[0])].device;
  }

  bool runs_in_prologue(const IrStep &step) const {
    if (request_.separate_nodes) return false;
    if (request_.is_train || request_.with_backward) return narrows_parameter(step);
    if (step.op && (step.op->is_random(step.attrs) || step.op->is_stateful(step.attrs))) return false;
    for (int v : step.outputs) {
      if (v >= 0 && ir_.values[size_t(v)].location != ValueLocation::kArena) return false;
    }
    if (step.inputs.empty()) return false;
    for (int v : step.inputs) {
      if (v < 0 || !is_constant(v)) return false;
    }
    return true;
  }

  bool on_host(int device) const { return request_.devices[size_t(device)]->context().on_host(); }

  int new_value(const TensorSpec &spec, int device) {
    IrValue value;
    value.spec = spec;
    value.device = device;
    return ir_.add_value(std::move(value));
  }

  int new_block(size_t bytes, int device) {
    if (bytes == 0) return -1;
    TensorSpec spec;
    spec.shape = Shape{int64_t(bytes)};
    spec.dtype = Dtype::kUint8;
    return new_value(spec, device);
  }

  int saved_block(const IrStep &step, size_t bytes) {
    if (request_.backward) {
      const int variable = request_.backward->saved;
      return variable < 0 ? -1 : ir_.node_values[size_t(variable)][0];
    }
    if (step.backward) return step.forward_step >= 0 ? saved_of_[size_t(step.forward_step)] : -1;
    const int block = new_block(bytes, step.device);
    if (block >= 0 && request_.gives_saved) {
      ir_.values[size_t(block)].location = ValueLocation::kOutput;
      ir_.values[size_t(block)].index = int(ir_.heads.size());
      ir_.heads.push_back(block);
    }
    return block;
  }

  // Adds a finished step to the plan. A step that depends only on constants goes to the prologue, and its outputs to
  // constant memory.
  void emit(PlanStep step, bool prologue) {
    if (!prologue) {
      plan_.steps.push_back(std::move(step));
      return;
    }
    for (int v : step.inputs) {
      const std::vector<int> &from = sources_[size_t(ir_.root(v))];
      step.sources.insert(step.sources.end(), from.begin(), from.end());
    }
    std::sort(step.sources.begin(), step.sources.end());
    step.sources.erase(std::unique(step.sources.begin(), step.sources.end()), step.sources.end());
    auto keep = [&](int v) {
      if (v < 0) return;
      ir_.values[size_t(v)].location = ValueLocation::kConstant;
      ir_.values[size_t(v)].index = int(plan_.prologue.size());
      set_constant(v, step.sources);
    };
    for (int v : step.outputs) keep(v);
    keep(step.scratch);
    plan_.prologue.push_back(std::move(step));
  }

  // Returns `value` in another layout, converted once. Arrays visible to the host are converted once per forward and
  // once per backward pass: the host may write them in between, and backward reads the current values (BWD-08).
  int reordered(int value, const LayoutPtr &layout, int node) {
    const int device = ir_.values[size_t(ir_.root(value))].device;  // the device that defines the layout
    const ValueLocation location = ir_.values[size_t(value)].location;
    const bool fixed = location == ValueLocation::kArena || location == ValueLocation::kConstant;
    for (const Reordered &known : reordered_[value]) {
      if (ir_.changes(value) || !same_layout(known.layout, layout)) continue;
      if (fixed || known.backward == in_backward_) return known.result;
    }
    TensorSpec to = ir_.values[size_t(value)].spec;
    to.layout = layout;
    const int result = new_value(to, device);
    add_reorder(value, result, node, device);
    reordered_[value].push_back({layout, in_backward_, result});
    return result;
  }

  void add_reorder(int from, int to, int node, int device) {
    PlanStep step;
    step.kernel = request_.devices[size_t(device)]->make_reorder(ir_.values[size_t(from)].spec,
                                                                 ir_.values[size_t(to)].spec, num_threads());
    step.inputs = {from};
    step.outputs = {to};
    step.node = node;
    step.device = device;
    step.label = text("reorder '", ir_.node(node).name, "'");
    step.info = std::make_unique<WorkInfo>(SpanKind::kOperator, ir_.node(node).name, "reorder");
    step.info->bytes = double(ir_.values[size_t(from)].spec.bytes()) + double(ir_.values[size_t(to)].spec.bytes());
    step.reorder = true;
    emit(std::move(step), is_constant(from) && ir_.values[size_t(to)].location == ValueLocation::kArena);
  }

  // A view of a value that is not row-major becomes a view of its row-major copy.
  int dense_view(int value, int node) {
    if (ir_.values[size_t(value)].alias < 0) return value;
    const int root = ir_.root(value);
    if (!ir_.values[size_t(root)].spec.layout) return value;
    const int plain = reordered(root, nullptr, node);
    return ir_.add_alias(plain, ir_.values[size_t(value)].spec.shape);
  }

  int in_layout(int value, const LayoutPtr &layout, int node) {
    if (same_layout(ir_.values[size_t(value)].spec.layout, layout)) return value;
    return reordered(value, layout, node);
  }

  // A layout that all tensors of a point-wise step can share: the first one that is not row-major and has no padding.
  LayoutPtr common_layout(const IrStep &step, const std::vector<int> &inputs) const {
    for (int v : inputs) {
      const TensorSpec &spec = ir_.values[size_t(v)].spec;
      if (!spec.layout || spec.layout->bytes() != size_t(spec.shape.size()) * dtype_size(spec.dtype)) continue;
      for (int other : inputs) {
        if (ir_.values[size_t(other)].spec.shape != spec.shape || ir_.values[size_t(other)].spec.dtype != spec.dtype) {
          return nullptr;
        }
      }
      for (int out : step.outputs) {
        if (out >= 0 &&
            (ir_.values[size_t(out)].spec.shape != spec.shape || ir_.values[size_t(out)].spec.dtype != spec.dtype)) {
          return nullptr;
        }
      }
      return spec.layout;
    }
    return nullptr;
  }

  int num_threads() const {
    return threads_of(in_backward_ ? plan_.backward_size : plan_.forward_size, request_.num_threads);
  }

  void lower_step(size_t s) {
    const IrStep &step = ir_.steps[s];
    const bool prologue = runs_in_prologue(step);
    std::vector<int> inputs = step.inputs;
    for (int &v : inputs) v = dense_view(v, step.node);
    LayoutPtr flat_layout;
    bool reads_layouts = false;
    const auto prepare = [&](const KernelEntry &entry, StepSpec &spec) {
      reads_layouts = entry.reads_layouts();
      if (reads_layouts) return;
      if (step.elementwise && on_host(step.device)) flat_layout = common_layout(step, inputs);
      for (size_t i = 0; i < inputs.size(); ++i) {
        inputs[i] = in_layout(inputs[i], flat_layout, step.node);
        spec.inputs[i] = ir_.values[size_t(inputs[i])].spec;
      }
      if (flat_layout) flatten(&spec);
    };

    PlanStep made;
    made.label = ir_.label_of(step);
    StepSpec spec = ir_.spec_of(step, inputs);
    spec.num_threads = num_threads();
    for (size_t i = 0; i < inputs.size(); ++i) spec.constant[i] = is_constant(inputs[i]);
    spec.forward = step.forward_step >= 0 ? kernel_of_[size_t(step.forward_step)]
                   : request_.backward    ? request_.backward->forward
                                          : nullptr;
    const NodeCompiler compiler(ir_.node(step.node), request_.devices[size_t(step.device)], &plan_.num_inner_steps);
    spec.subgraphs = &compiler;
    if (backward_of_[s] >= 0) {
      for (const int v : ir_.steps[size_t(backward_of_[s])].outputs) spec.gradients_wanted.push_back(v >= 0);
    }
    try {
      made.kernel = request_.devices[size_t(step.device)]->make_kernel(spec, &made.choice, prepare);
    } catch (const Error &e) {
      throw Error(e.code(), text(made.label, ": ", e.what()), ir_.node(step.node).name);
    }
    for (const int unread : spec.unread) inputs[size_t(unread)] = -1;
    for (size_t i = 0; reads_layouts && i < inputs.size(); ++i) {
      if (inputs[i] >= 0) inputs[i] = in_layout(inputs[i], spec.inputs[i].layout, step.node);
    }

    kernel_of_[s] = made.kernel.get();
    const bool runs_again = !step.op || !step.op->is_stateful(step.attrs);
    if (checks_outputs_ && runs_again && on_host(step.device)) {
      made.kernel = with_checked_outputs(std::move(made.kernel), spec);
    }
    made.info = info_of(step, made.choice, spec);
    made.inputs = inputs;
    made.node = step.node;
    made.device = step.device;
    made.inplace = step.inplace;
    made.inplace.insert(made.inplace.end(), spec.inplace.begin(), spec.inplace.end());
    if (const auto *const restoring = restoring_kernel(step, kernel_of_[s])) {
      made.restorer = std::make_unique<Restorer>(restoring);
      restoring_scratch_ = std::max(restoring_scratch_, spec.scratch_bytes);
    }
    if (spec.share_bytes > 0) made.share_kernel = kernel_of_[s], made.share_bytes = spec.share_bytes;
    made.repeatable = is_repeatable(step, spec);
    made.scales_loss = step.kernel == kScaleGradient;
    made.sums_gradients = step.kernel == kSumGradients;
    made.scratch = new_block(spec.scratch_bytes, step.device);
    made.saved = saved_of_[s] = saved_block(step, spec.saved_bytes);
    if (request_.gives_saved && step.keep_for_backward) plan_.keeping_kernel = kernel_of_[s];
    const auto moved = place_outputs(step, spec, flat_layout, &made);
    made.reorder = prologue ? narrows_parameter(step) : step.casts;
    emit(std::move(made), prologue);
    for (const auto &[from, to] : moved) {
      add_reorder(from, to, step.node, step.device);
      // Later readers may use either; the original layout is often the one they prefer.
      reordered_[to].push_back({ir_.values[size_t(from)].spec.layout, in_backward_, from});
    }
  }

  std::unique_ptr<WorkInfo> info_of(const IrStep &step, const KernelChoice &choice, const StepSpec &spec) const {
    const std::string &op = step.op && !step.backward ? step.op->name : step.kernel;
    auto info = std::make_unique<WorkInfo>(SpanKind::kOperator, ir_.node(step.node).name, op);
    info->kernel = choice.name;
    const Cost cost = cost_of(ir_, step);
    info->flops = cost.flops;
    info->bytes = cost.bytes;
    if (!spec.inputs.empty()) info->factors = factors_of(spec.inputs[0].dtype, spec.context, spec.tf32);
    return info;
  }

  static bool is_repeatable(const IrStep &step, const StepSpec &spec) {
    return step.op && !step.backward && !step.op->flops && !step.op->syncs_batch && spec.saved_bytes == 0 &&
           !step.op->is_random(step.attrs) && !step.op->is_stateful(step.attrs) &&
           step.op->mutated(step.attrs, step.inputs.size()).empty();
  }

  const RestoringKernel *restoring_kernel(const IrStep &step, const Kernel *kernel) const {
    if (!(request_.restores || request_.recompute) || !step.keep_for_backward || request_.separate_nodes) {
      return nullptr;
    }
    return dynamic_cast<const RestoringKernel *>(kernel);
  }

  // Gives the outputs the layouts in which the kernel writes them. Outputs visible to the user must be row-major: such
  // an output is produced separately, and the pair (as produced, as required) is returned.
  std::vector<std::pair<int, int>> place_outputs(const IrStep &step, const StepSpec &spec, const LayoutPtr &flat_layout,
                                                 PlanStep *made) {
    std::vector<std::pair<int, int>> moved;
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      const int v = step.outputs[j];
      made->outputs.push_back(v);
      if (v < 0) continue;
      const LayoutPtr layout = flat_layout ? flat_layout : spec.outputs[j].layout;
      if (!layout) continue;
      if (ir_.values[size_t(v)].location == ValueLocation::kArena) {
        ir_.values[size_t(v)].spec.layout = layout;
        continue;
      }
      TensorSpec as_made = ir_.values[size_t(v)].spec;
      as_made.layout = layout;
      made->outputs.back() = new_value(as_made, step.device);
      moved.emplace_back(made->outputs.back(), v);
    }
    return moved;
  }

  static void flatten(StepSpec *spec) {
    auto flat = [](TensorSpec *t) {
      t->shape = Shape{t->shape.size()};
      t->layout = nullptr;
    };
    for (TensorSpec &t : spec->inputs) flat(&t);
    for (TensorSpec &t : spec->outputs) flat(&t);
  }

  void finish_forward() {
    plan_.num_forward = plan_.steps.size();
    plan_.restoring_scratch = new_block(restoring_scratch_, 0);
    in_backward_ = true;
    size_t s = 0;
    for (size_t n = 0; n < plan_.node_end.size(); ++n) {
      while (s < plan_.num_forward && plan_.steps[s].node <= int(n)) ++s;
      plan_.node_end[n] = s;
    }
  }

  struct Reordered {
    LayoutPtr layout;
    bool backward;
    int result;
  };

  Ir &ir_;
  Plan &plan_;
  const PlanRequest &request_;
  const bool checks_outputs_ = check_enabled("outputs");
  bool in_backward_ = false;
  size_t restoring_scratch_ = 0;                     // bytes
  std::map<int, std::vector<Reordered>> reordered_;  // by value
  std::vector<bool> constant_;                       // per value
  std::vector<std::vector<int>> sources_;            // per constant value
  std::vector<const Kernel *> kernel_of_;            // per step of the Ir
  std::vector<int> saved_of_;
  std::vector<int> backward_of_;   // per step of the Ir: its backward step, or -1
  std::vector<int> last_step_of_;  // per step of the Ir: its last step in the plan
};

}  // namespace

void lower(Ir &ir, Plan *plan) { LayoutPass(ir, plan).run(); }

}  // namespace cohort::plan
