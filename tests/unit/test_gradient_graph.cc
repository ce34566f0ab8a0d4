// SPDX-License-Identifier: Apache-2.0
// Gradients as graphs: which operators have them. Their values are tested over the C ABI, with tapes.
#include "base/error.hpp"
#include "op/gradient_graph.hpp"
#include "op/pointwise.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

Application application_of(const std::string &name, const AttrMap &attrs = {}) {
  Application what;
  what.op = &get_op(name);
  what.attrs = attrs;
  what.parsed = attrs.empty() ? Attrs(what.op->new_attrs()) : what.op->parse(attrs);
  return what;
}

const TensorType kMatrix{Shape{2, 3}, Dtype::kFloat64};

}  // namespace

// A new point-wise operator needs a formula here, otherwise its second derivatives are missing.
TEST(every_pointwise_gradient_can_be_differentiated) {
  int num_seen = 0;
  for (const auto &rule : pointwise_rules()) {
    if (rule->gradient.kind != Gradient::Kind::kKernel) continue;
    GradientGraph graph(application_of(rule->name), std::vector<TensorType>(size_t(rule->num_inputs), kMatrix),
                        {kMatrix}, {true});
    differentiate(graph);
    for (int input : rule->gradient.of) {
      if (graph.gradients()[size_t(input)] < 0)
        unit::fail(__FILE__, __LINE__, rule->name + ": no gradient of input " + std::to_string(input));
    }
    for (const GradientGraph::Node &node : graph.nodes()) {
      if (!node.what.backward) continue;
      GradientGraph again(node.what, std::vector<TensorType>(node.inputs.size(), kMatrix), {kMatrix}, {true});
      differentiate(again);  // throws if there is none
    }
    ++num_seen;
  }
  CHECK(num_seen > 60);
}

// Where no gradient flows back the graph is empty, and nothing is computed.
TEST(nothing_comes_of_nothing) {
  GradientGraph graph(application_of("tanh"), {kMatrix}, {kMatrix}, {false});
  differentiate(graph);
  CHECK_EQ(graph.gradients()[0], -1);
  CHECK(graph.nodes().empty());
}

// Broadcast operands get their gradient in their own shape.
TEST(gradients_have_the_shape_of_their_input) {
  const TensorType row{Shape{3}, Dtype::kFloat64};
  GradientGraph graph(application_of("broadcast_mul"), {kMatrix, row}, {kMatrix}, {true});
  differentiate(graph);
  CHECK_EQ(graph.values()[size_t(graph.gradients()[0])].type.shape, kMatrix.shape);
  CHECK_EQ(graph.values()[size_t(graph.gradients()[1])].type.shape, row.shape);
}

UNIT_MAIN()
