// SPDX-License-Identifier: Apache-2.0
// Composing symbols, their lists, names and attributes, and their JSON.
#include <fstream>
#include <thread>

#include "base/log.hpp"
#include "support/unit.hpp"
#include "symbol/symbol.hpp"

using namespace cohort;

namespace {

using Names = std::vector<std::string>;

std::string joined(const Names &names) {
  std::string all;
  for (const std::string &name : names) all += (all.empty() ? "" : " ") + name;
  return all;
}

Symbol var(const std::string &name, const AttrMap &attrs = {}) { return Symbol::variable(name, attrs); }

Symbol make(const std::string &op, const std::string &name, const AttrMap &attrs, const std::vector<Symbol> &inputs) {
  return Symbol::create(op, attrs, name, {}, inputs);
}

Symbol fully_connected(const std::string &name, const Symbol &data, AttrMap attrs = {}) {
  attrs.emplace("num_hidden", "3");
  return make("FullyConnected", name, attrs, {data});
}

std::string read_data(const std::string &name) {
  const std::string path = "tests/data/symbol/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path + "; run in the top folder of the project");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Attributes of the node of this name; empty if it has none.
AttrMap attributes_of(const Symbol &symbol, const std::string &node) {
  for (const auto &entry : symbol.all_attributes()) {
    if (entry.first == node) return entry.second;
  }
  return {};
}

std::string attribute_of(const Symbol &symbol, const std::string &node, const std::string &key) {
  const AttrMap attrs = attributes_of(symbol, node);
  const auto found = attrs.find(key);
  return found == attrs.end() ? "none" : found->second;
}

Code code_of(const std::string &json) {
  try {
    Symbol::from_json(json);
  } catch (const Error &e) {
    return e.code();
  }
  return Code(0);
}

std::string message_of(const std::string &json) {
  try {
    Symbol::from_json(json, "net.json");
  } catch (const Error &e) {
    CHECK_EQ(int(e.code()), int(Code::kFormat));
    CHECK(std::string(e.what()).find("net.json: ") == 0);
    CHECK(std::string(e.what()).find('\n') == std::string::npos);
    return e.what();
  }
  return "accepted";
}

#define CHECK_FORMAT(json, words)                                                                    \
  do {                                                                                               \
    const std::string message = message_of(json);                                                    \
    if (message.find(words) == std::string::npos)                                                    \
      unit::fail(__FILE__, __LINE__, unit::difference(#json, message, std::string("..") + (words))); \
  } while (0)

#define CHECK_CODE(statement, expected)             \
  do {                                              \
    Code found_code = Code(0);                      \
    try {                                           \
      statement;                                    \
    } catch (const Error &e) {                      \
      found_code = e.code();                        \
    }                                               \
    CHECK_EQ(int(found_code), int(Code::expected)); \
  } while (0)

// A file of the given nodes, the last of which is the head.
std::string file_of(const std::string &nodes, const std::string &heads = "[[1, 0, 0]]", int version = 10901) {
  return "{\"nodes\": [" + nodes + "], \"arg_nodes\": [0], \"heads\": " + heads +
         ", \"attrs\": {\"mxnet_version\": [\"int\", " + std::to_string(version) + "]}}";
}

const char kData[] = R"({"op": "null", "name": "data", "inputs": []}, )";

void check_same(const Symbol &a, const Symbol &b) {
  CHECK_EQ(joined(a.list_arguments()), joined(b.list_arguments()));
  CHECK_EQ(joined(a.list_auxiliary_states()), joined(b.list_auxiliary_states()));
  CHECK_EQ(joined(a.list_inputs()), joined(b.list_inputs()));
  CHECK_EQ(joined(a.list_outputs()), joined(b.list_outputs()));
  CHECK(a.all_attributes() == b.all_attributes());
}

}  // namespace

// ---- lists and names -----------------------------------------------------------------------------------------------

TEST(lists_run_depth_first_with_auxiliary_states_apart) {
  const Symbol m = fully_connected("m", var("a"));
  const Symbol bn = make("BatchNorm", "bn", {}, {m});
  const Symbol joint = make("Concat", "joint", {}, {bn, var("z"), m});
  CHECK_EQ(joined(joint.list_arguments()), "a m_weight m_bias bn_gamma bn_beta z");
  CHECK_EQ(joined(joint.list_auxiliary_states()), "bn_moving_mean bn_moving_var");
  CHECK_EQ(joined(joint.list_inputs()), "a m_weight m_bias bn_gamma bn_beta bn_moving_mean bn_moving_var z");
  CHECK_EQ(joined(joint.list_outputs()), "joint_output");
  CHECK_EQ(joint.nodes().size(), 11u);
}

TEST(two_variables_may_share_a_name) {
  const Symbol joint = make("Concat", "joint", {}, {var("x"), var("x")});
  CHECK_EQ(joined(joint.list_arguments()), "x x");
  const Symbol x = var("x");
  CHECK_EQ(joined(make("Concat", "joint", {}, {x, x}).list_arguments()), "x");
}

TEST(outputs_are_named_after_node_and_output) {
  CHECK_EQ(joined(var("x").list_outputs()), "x");
  CHECK_EQ(joined(fully_connected("fc", var("x")).list_outputs()), "fc_output");
  CHECK_EQ(joined(make("SliceChannel", "sp", {{"num_outputs", "2"}}, {var("x")}).list_outputs()),
           "sp_output0 sp_output1");
  CHECK_EQ(joined(make("SliceChannel", "sp", {{"num_outputs", "1"}}, {var("x")}).list_outputs()), "sp_output0");
  CHECK_EQ(joined(make("BatchNorm", "bn", {}, {var("x")}).list_outputs()), "bn_output");
  CHECK_EQ(joined(make("BatchNorm", "bn", {{"output_mean_var", "True"}}, {var("x")}).list_outputs()),
           "bn_output bn_mean bn_var");
  const AttrMap lstm{{"state_size", "3"}, {"num_layers", "1"}, {"mode", "lstm"}, {"state_outputs", "1"}};
  CHECK_EQ(joined(make("RNN", "rnn", lstm, {var("x")}).list_outputs()),
           "rnn_output rnn_state_output rnn_statecell_output");
}

TEST(a_group_has_the_heads_of_its_parts_and_no_name) {
  const Symbol fc = fully_connected("fc", var("x"));
  const Symbol group = Symbol::group({fc, var("x"), fc});
  CHECK_EQ(joined(group.list_outputs()), "fc_output x fc_output");
  CHECK_EQ(group.name(), "");
  CHECK(group.attribute("num_hidden") == nullptr);
  CHECK(group.attributes().empty());
  CHECK_EQ(group.output(1).name(), "x");
  CHECK_EQ(group.output("x").name(), "x");
  CHECK_CODE(group.output(3), kInvalidArgument);
  CHECK_CODE(group.output(-1), kInvalidArgument);
  CHECK_THROWS(group.output("fc_output"), Error, "more than one output is named 'fc_output'");
  CHECK_CODE(group.output("fc"), kName);
  CHECK_THROWS(group.output("fc"), Error, "there are: fc_output, x, fc_output");
  CHECK_CODE(Symbol::group({}), kInvalidArgument);
}

TEST(internals_are_all_outputs_that_a_user_can_see) {
  const Symbol bn = make("BatchNorm", "bn", {}, {fully_connected("fc", var("x"))});
  CHECK_EQ(joined(bn.internals().list_outputs()),
           "x fc_weight fc_bias fc_output bn_gamma bn_beta bn_moving_mean bn_moving_var bn_output");
  CHECK_EQ(joined(bn.children().list_outputs()), "fc_output bn_gamma bn_beta bn_moving_mean bn_moving_var");
  CHECK(var("x").children().heads().empty());
}

// ---- composing -----------------------------------------------------------------------------------------------------

TEST(missing_inputs_become_variables_with_the_attributes_of_the_layer) {
  const Symbol fc = fully_connected("fc", var("x"), {{"lr_mult", "2"}, {"__layout__", "NC"}});
  CHECK_EQ(joined(fc.list_arguments()), "x fc_weight fc_bias");
  for (const char *node : {"fc_weight", "fc_bias", "fc"}) {
    CHECK_EQ(attribute_of(fc, node, "num_hidden"), "3");
    CHECK_EQ(attribute_of(fc, node, "__lr_mult__"), "2");
    CHECK_EQ(attribute_of(fc, node, "__layout__"), "NC");
  }
  CHECK(attributes_of(fc, "x").empty());
  CHECK_EQ(joined(fully_connected("fc", var("x"), {{"no_bias", "True"}}).list_arguments()), "x fc_weight");
  CHECK_EQ(joined(make("SoftmaxOutput", "softmax", {}, {}).list_arguments()), "softmax_data softmax_label");
}

TEST(default_names_count_per_operator) {
  const auto number = [](const std::string &op, const AttrMap &attrs, const std::string &hint) {
    const std::string name = make(op, "", attrs, {var("x")}).name();
    CHECK_EQ(name.substr(0, hint.size()), hint);
    return std::stoi(name.substr(hint.size()));
  };
  const int first = number("FullyConnected", {{"num_hidden", "1"}}, "fullyconnected");
  CHECK_EQ(number("FullyConnected", {{"num_hidden", "1"}}, "fullyconnected"), first + 1);
  number("Flatten", {}, "flatten");
}

TEST(inputs_may_be_given_by_name) {
  const AttrMap attrs{{"num_hidden", "3"}};
  const Symbol fc = Symbol::create("FullyConnected", attrs, "fc", {"bias", "data"}, {var("b"), var("d")});
  CHECK_EQ(joined(fc.list_arguments()), "d fc_weight b");
  CHECK_CODE(Symbol::create("FullyConnected", attrs, "fc", {"wait"}, {var("b")}), kName);
  CHECK_THROWS(Symbol::create("FullyConnected", attrs, "fc", {"wait"}, {var("b")}), Error,
               "has no input 'wait'; it has: data, weight, bias");
  CHECK_CODE(Symbol::create("FullyConnected", attrs, "fc", {"data", "data"}, {var("a"), var("b")}), kName);
  CHECK_CODE(Symbol::create("FullyConnected", attrs, "fc", {"data"}, {}), kInvalidArgument);
}

TEST(variadic_operators_count_their_inputs) {
  const Symbol two = make("Concat", "c", {{"dim", "0"}}, {var("x"), var("y")});
  CHECK_EQ(*two.attribute("num_args"), "2");
  const Symbol three = make("Concat", "c", {{"num_args", "3"}}, {var("x"), var("y")});
  CHECK_EQ(joined(three.list_arguments()), "x y c_arg2");
  CHECK_CODE(make("Concat", "c", {{"num_args", "1"}}, {var("x"), var("y")}), kInvalidArgument);
  CHECK_CODE(make("Concat", "c", {{"num_args", "9999999999"}}, {var("x")}), kInvalidArgument);
  CHECK_CODE(make("Concat", "c", {}, {}), kInvalidArgument);
}

TEST(wrong_inputs_and_attributes_are_refused) {
  const Symbol pair = make("SliceChannel", "sp", {{"num_outputs", "2"}}, {var("x")});
  CHECK_CODE(fully_connected("fc", pair), kInvalidArgument);
  CHECK_THROWS(fully_connected("fc", pair), Error, "data: expected a symbol of one output, found one of 2");
  CHECK_CODE(make("Flatten", "f", {}, {var("x"), var("y")}), kInvalidArgument);
  CHECK_CODE(make("NoSuchOperator", "f", {}, {}), kName);
  CHECK_CODE(fully_connected("fc", var("x"), {{"num_hiden", "3"}}), kName);
  CHECK_THROWS(fully_connected("fc", var("x"), {{"num_hiden", "3"}}), Error, "it has: num_hidden, no_bias, flatten");
  CHECK_CODE(make("FullyConnected", "fc", {}, {var("x")}), kName);
  CHECK_CODE(fully_connected("fc", var("x"), {{"no_bias", "perhaps"}}), kInvalidArgument);
  CHECK_CODE(var(""), kInvalidArgument);
  CHECK_CODE(make("BatchNorm", "bn", {}, {var("x"), var("g"), var("b"), fully_connected("fc", var("x"))}),
             kInvalidArgument);
}

TEST(composing_replaces_variables_in_a_copy) {
  const Symbol net = fully_connected("fc2", fully_connected("fc1", var("data")));
  const Symbol below = make("Activation", "act", {{"act_type", "relu"}}, {var("image")});
  const Symbol whole = net.compose({{"data", below}}, "");
  CHECK_EQ(joined(whole.list_arguments()), "image fc1_weight fc1_bias fc2_weight fc2_bias");
  CHECK_EQ(joined(net.list_arguments()), "data fc1_weight fc1_bias fc2_weight fc2_bias");
  CHECK_EQ(net.compose({{"fc1_bias", var("b")}}, "top").name(), "top");
  CHECK_EQ(joined(net.compose({}, "top").list_outputs()), "top_output");
  CHECK_EQ(joined(var("x").compose({{"x", below}}, "").list_outputs()), "act_output");
  CHECK_CODE(net.compose({{"label", below}}, ""), kName);
  CHECK_THROWS(net.compose({{"label", below}}, ""), Error, "no variable is named 'label'; there are: data, fc1_weight");
  CHECK_CODE(net.compose({{"data", below}, {"data", below}}, ""), kName);
  CHECK_CODE(net.compose({{"data", Symbol::group({below, below})}}, ""), kInvalidArgument);
  // Both heads of a group see the same new node.
  const Symbol group = Symbol::group({net, net.internals().output("fc1_output")}).compose({{"data", below}}, "");
  CHECK(group.heads()[0].node->inputs[0].node == group.heads()[1].node);
}

TEST(a_long_chain_needs_no_deep_stack) {
  constexpr size_t kLength = unit::kSanitized ? 30000 : 200000;
  Symbol chain = var("x");
  for (size_t i = 0; i < kLength; ++i) chain = make("BlockGrad", "n" + std::to_string(i), {}, {chain});
  CHECK_EQ(chain.nodes().size(), kLength + 1);
  const std::string json = chain.to_json();
  const Symbol copy = Symbol::from_json(json);
  CHECK_EQ(joined(copy.list_outputs()), "n" + std::to_string(kLength - 1) + "_output");
  Inferred inferred;
  infer_shapes(Graph(copy), {{"x", Shape{2, 3}}}, &inferred);
  CHECK(inferred.shapes_complete);
  const Symbol other = chain.compose({{"x", var("y")}}, "");
  CHECK_EQ(joined(other.list_arguments()), "y");
}

TEST(symbols_of_one_graph_are_freed_from_many_threads) {
  for (int round = 0; round < 20; ++round) {
    Symbol chain = var("x");
    std::vector<Symbol> parts;
    for (int i = 0; i < 200; ++i) {
      chain = make("BlockGrad", "n", {}, {chain});
      parts.push_back(chain);
    }
    chain = Symbol();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&parts, t] {
        for (size_t i = t; i < parts.size(); i += 4) parts[i] = Symbol();
      });
    }
    for (std::thread &thread : threads) thread.join();
  }
}

// ---- attributes ----------------------------------------------------------------------------------------------------

TEST(short_names_of_attributes_stand_for_the_long_ones) {
  const Symbol x = var("x", {{"lr_mult", "0.5"}, {"__shape__", "(4, 5)"}});
  CHECK_EQ(*x.attribute("lr_mult"), "0.5");
  CHECK_EQ(*x.attribute("__lr_mult__"), "0.5");
  CHECK(x.attribute("wd_mult") == nullptr);
  CHECK_EQ(x.attributes().size(), 3u);  // lr_mult, __lr_mult__, __shape__
  CHECK_EQ(attribute_of(x, "x", "lr_mult"), "0.5");
  const Symbol changed = x.with_attribute("ctx_group", "dev1");
  CHECK_EQ(*changed.attribute("__ctx_group__"), "dev1");
  CHECK(x.attribute("ctx_group") == nullptr);
  CHECK_CODE(var("x", {{"color", "red"}}), kName);
  CHECK_CODE(x.with_attribute("color", "red"), kName);
}

TEST(attributes_of_a_head_change_in_a_new_node) {
  const Symbol fc = fully_connected("fc", var("x"));
  const Symbol act = make("Activation", "act", {{"act_type", "relu"}}, {fc});
  const Symbol wide = fc.with_attribute("num_hidden", "7");
  CHECK_EQ(*wide.attribute("num_hidden"), "7");
  Inferred inferred;
  infer_shapes(Graph(wide), {{"x", Shape{2, 4}}}, &inferred);
  CHECK_EQ(inferred.shapes.back()[0], (Shape{2, 7}));
  CHECK_EQ(attribute_of(act, "fc", "num_hidden"), "3");
  CHECK_CODE(fc.with_attribute("no_bias", "True"), kInvalidArgument);  // the bias is already there
  CHECK_CODE(fc.with_attribute("num_hidden", "many"), kInvalidArgument);
  CHECK_CODE(fc.with_attribute("weight_lr_mult", "2"), kName);
  CHECK_THROWS(fc.with_attribute("weight_lr_mult", "2"), Error, "set '__lr_mult__' on the input variable itself");
  CHECK_CODE(Symbol::group({fc, act}).with_attribute("__layout__", "NC"), kState);
  CHECK_CODE(make("Concat", "c", {}, {fc}).with_attribute("num_args", "2"), kInvalidArgument);
}

TEST(statistics_of_batch_norm_say_how_they_start) {
  const Symbol bn = make("BatchNorm", "bn", {}, {var("x")});
  CHECK_EQ(attribute_of(bn, "bn_moving_mean", "__init__"), "[\"zero\", {}]");
  CHECK_EQ(attribute_of(bn, "bn_moving_var", "__init__"), "[\"one\", {}]");
  CHECK_EQ(attribute_of(bn, "bn_gamma", "__init__"), "none");
  const Symbol own =
      make("BatchNorm", "bn", {}, {var("x"), var("g"), var("b"), var("m"), var("v", {{"__init__", "[\"zero\", {}]"}})});
  CHECK_EQ(attribute_of(own, "m", "__init__"), "[\"zero\", {}]");
  CHECK_EQ(attribute_of(own, "v", "__init__"), "[\"zero\", {}]");
  CHECK_EQ(attribute_of(Symbol::from_json(own.to_json()), "m", "__init__"), "[\"zero\", {}]");
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

TEST(what_is_saved_loads_as_the_same) {
  const Symbol x = var("x", {{"__shape__", "(0, 4)"}, {"lr_mult", "0.5"}});
  const Symbol bn = make("BatchNorm", "bn", {}, {fully_connected("fc", x)});
  const Symbol parts = make("SliceChannel", "sp", {{"num_outputs", "3"}}, {bn});
  const Symbol odd = var("a \"quoted\" \\ name\twith \xc3\xa9 and \x01");
  const Symbol whole = Symbol::group({parts.output(2), make("Concat", "c", {}, {parts.output(0), odd}), bn, bn});
  const Symbol loaded = Symbol::from_json(whole.to_json());
  check_same(loaded, whole);
  CHECK_EQ(loaded.to_json(), whole.to_json());
  CHECK(whole.to_json().find("\"mxnet_version\": [\"int\", 10901]") != std::string::npos);
}

TEST(names_that_json_cannot_hold_are_refused_on_saving) {
  for (const char *name : {"\xff", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\xaf"}) {
    CHECK_CODE(var(name).to_json(), kInvalidArgument);
  }
  for (const char *name : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x7f"}) {
    CHECK_EQ(Symbol::from_json(var(name).to_json()).name(), name);
  }
}

TEST(version_0_8_gets_its_auxiliary_states_back) {
  const Symbol net = Symbol::from_json(read_data("v0.8-mlp-without-aux.json"));
  CHECK_EQ(joined(net.list_arguments()),
           "data fc1_weight fc1_bias fc3_weight fc3_bias batchnorm0_gamma batchnorm0_beta softmax_label");
  CHECK_EQ(joined(net.list_auxiliary_states()), "batchnorm0_moving_mean batchnorm0_moving_var");
  CHECK_EQ(joined(net.list_outputs()), "softmax_output");
  // Auxiliary states inherit the attributes of their node, and those that the operator gives.
  CHECK_EQ(attribute_of(net, "batchnorm0_moving_mean", "momentum"), "0.9");
  CHECK_EQ(attribute_of(net, "batchnorm0_moving_mean", "__ctx_group__"),
           attribute_of(net, "batchnorm0", "__ctx_group__"));
  CHECK_EQ(attribute_of(net, "batchnorm0_moving_var", "__init__"), "[\"one\", {}]");
  CHECK_EQ(attribute_of(net, "data", "__lr_mult__"), "0.2");
  CHECK_EQ(attribute_of(net, "data", "__ctx_group__"), "stage1");
  CHECK_EQ(attribute_of(net, "fc1", "__wd_mult__"), "0.3");
  // weight_lr_mult on fc1 is meant for its weight.
  CHECK_EQ(attribute_of(net, "fc1_weight", "__lr_mult__"), "1.2");
  CHECK_EQ(attribute_of(net, "fc1", "weight_lr_mult"), "none");
  check_same(Symbol::from_json(net.to_json()), net);
}

TEST(names_of_operators_from_0_8_are_known) {
  const Symbol net = Symbol::from_json(read_data("v0.8-old-names.json"));
  CHECK_EQ(joined(net.list_arguments()), "a b");
  CHECK_EQ(joined(net.list_outputs()), "es_output");
  CHECK_EQ(net.nodes().size(), 7u);
}

TEST(version_0_9_keeps_all_attributes_in_one_place) {
  const Symbol net = Symbol::from_json(read_data("v0.9-attr.json"));
  CHECK_EQ(joined(net.list_arguments()), "data fc_weight fc_bias");
  CHECK_EQ(attribute_of(net, "fc_weight", "__lr_mult__"), "0.5");
  CHECK_EQ(attribute_of(net, "fc_weight", "__wd_mult__"), "2.0");
  CHECK_EQ(attribute_of(net, "fc", "__ctx_group__"), "dev1");
  CHECK_EQ(attribute_of(net, "lr", "slope"), "0.1");
}

TEST(argmax_of_files_before_0_9_5_is_over_the_whole_array) {
  const Symbol net = Symbol::from_json(read_data("v0.9.4-argmax.json"));
  CHECK_EQ(attribute_of(net, "am", "axis"), "none");
  CHECK_EQ(attribute_of(net, "am", "keepdims"), "False");
  std::string later = read_data("v0.9.4-argmax.json");
  later.replace(later.find("904"), 3, "905");
  CHECK_EQ(attribute_of(Symbol::from_json(later), "am", "axis"), "-1");
}

TEST(files_of_1_x_load) {
  CHECK_EQ(joined(Symbol::from_json(read_data("v1.0-attrs.json")).list_arguments()), "data w");
  CHECK_EQ(joined(Symbol::from_json(read_data("v1.3-spellings.json")).list_outputs()), "sm_output");
  const Symbol resnet = Symbol::from_json(read_data("v1.9-resnet.json"));
  CHECK_EQ(resnet.nodes().size(), 57u);
  CHECK_EQ(resnet.list_auxiliary_states().size(), 12u);
  check_same(Symbol::from_json(resnet.to_json()), resnet);
}

TEST(nodes_that_no_head_reaches_are_left_out) {
  const Symbol net = Symbol::from_json(read_data("v1.9-unused-node.json"));
  CHECK_EQ(joined(net.list_arguments()), "a b");
  CHECK_EQ(net.nodes().size(), 3u);
}

TEST(a_newer_version_is_read_with_a_warning) {
  std::string warning;
  set_log([&](LogLevel, const std::string &message) { warning = message; }, LogLevel::kWarning);
  const std::string nodes = std::string(kData) + R"({"op": "Flatten", "name": "f", "inputs": [[0, 0, 0]]})";
  const Symbol net = Symbol::from_json(file_of(nodes, "[[1, 0, 0]]", 20000), "net.json");
  set_log(nullptr, LogLevel::kWarning);
  CHECK_EQ(warning, "net.json: written by version 2.0.0 of MXNet, which is newer than 1.9.1");
  CHECK_EQ(joined(net.list_outputs()), "f_output");
}

TEST(unknown_operators_and_parameters_name_node_and_operator) {
  CHECK_FORMAT(file_of(std::string(kData) + R"({"op": "Magic", "name": "m", "inputs": [[0, 0, 0]]})"),
               "node 'm' (Magic): no operator is named 'Magic'");
  CHECK_FORMAT(
      file_of(std::string(kData) + R"({"op": "Dropout", "name": "d", "attrs": {"deep": "1"}, "inputs": [[0, 0, 0]]})"),
      "node 'd' (Dropout): operator Dropout has no attribute 'deep'");
  CHECK_FORMAT(file_of(std::string(kData) +
                       R"({"op": "Activation", "name": "a", "attrs": {"act_type": "loud"}, "inputs": [[0, 0, 0]]})"),
               "node 'a' (Activation)");
  // In a file of the current version the five short names are no operator parameters.
  CHECK_FORMAT(file_of(std::string(kData) +
                       R"({"op": "Dropout", "name": "d", "attrs": {"lr_mult": "1"}, "inputs": [[0, 0, 0]]})"),
               "has no attribute 'lr_mult'");
}

// MXNet's own loss functions have some of these in their graphs.
TEST(operators_without_attributes_take_and_keep_any) {
  const Symbol net = Symbol::from_json(
      file_of(std::string(kData) +
              R"({"op": "broadcast_maximum", "name": "m", "attrs": {"axis": "1"}, "inputs": [[0, 0, 0], [0, 0, 0]]})"));
  CHECK_EQ(attribute_of(Symbol::from_json(net.to_json()), "m", "axis"), "1");
}

TEST(unknown_keys_are_refused_with_those_that_are_known) {
  CHECK_FORMAT(R"({"nodes": [], "heads": [], "colour": 1})",
               "nodes, arg_nodes, node_row_ptr, heads, attrs, found 'colour'");
  CHECK_FORMAT(file_of(R"({"op": "null", "name": "x", "inputs": [], "colour": 1})", "[[0, 0]]"), "found 'colour'");
}

TEST(malformed_text_is_refused_in_plain_words) {
  for (const char *json : {"", "{", "[", "nonsense", "\xff\xfe", "{\"nodes\": [}", "{\"nodes\": []} x", "null", "[]",
                           "\"text\"", "{\"nodes\": \"\xff\"}", "{}", "1e999", "{\"nodes\": {}, \"heads\": []}"}) {
    CHECK_EQ(int(code_of(json)), int(Code::kFormat));
  }
  CHECK_FORMAT("{\"nodes\": [}", "expected JSON, found a syntax error at byte");
}

TEST(graphs_in_nodes_are_read_and_written) {
  using Names = std::vector<std::string>;
  const std::pair<const char *, Names> files[] = {{"v1.9-foreach.json", {"x", "h", "w"}},
                                                  {"v1.9-while.json", {"i", "x", "w"}},
                                                  {"v1.9-cond.json", {"a", "b", "w"}}};
  for (const auto &[name, arguments] : files) {
    const Symbol symbol = Symbol::from_json(read_data(name));
    const std::string json = symbol.to_json();
    CHECK(symbol.list_arguments() == arguments);
    CHECK(json.find("\"subgraphs\": [") != std::string::npos);
    CHECK_EQ(Symbol::from_json(json).to_json(), json);
  }
}

TEST(wrong_types_are_refused) {
  for (const char *node :
       {"1", "[]", "{}", R"({"op": 1, "name": "x", "inputs": []})", R"({"op": "null", "name": null, "inputs": []})",
        R"({"op": "null", "name": "x", "inputs": {}})", R"({"op": "null", "name": "x"})",
        R"({"op": "null", "name": "x", "inputs": [], "attrs": []})",
        R"({"op": "null", "name": "x", "inputs": [], "attrs": {"a": 1}})",
        R"({"op": "null", "name": "x", "inputs": [], "control_deps": 0})",
        R"({"op": "null", "name": "x", "inputs": [], "control_deps": [7]})",
        R"({"op": "null", "name": "x", "inputs": [], "subgraphs": [{}]})",
        R"({"op": "null", "name": "x", "inputs": [[0, 0]]})"}) {
    CHECK_EQ(int(code_of(file_of(node, "[[0, 0]]"))), int(Code::kFormat));
  }
  for (const char *heads : {"[]", "{}", "0", "[0]", "[[]]", "[[0]]", "[[0, 0, 0, 0]]", "[[\"0\", 0]]", "[[0.5, 0]]",
                            "[[-1, 0]]", "[[1, 0]]", "[[0, 1]]", "[[0, -1]]", "[[18446744073709551615, 0]]",
                            "[[99999999999999999999999, 0]]", "[[0, 0, -1]]", "[[1e400, 0]]"}) {
    CHECK_EQ(int(code_of(file_of(R"({"op": "null", "name": "x", "inputs": []})", heads))), int(Code::kFormat));
  }
  CHECK_EQ(int(code_of(file_of(R"({"op": "null", "name": "x", "inputs": []})", "[[0, 0]]"))), 0);
  for (const char *version : {"1", "[]", "[\"int\"]", "[\"int\", \"1\"]", "[\"int\", -1]", "[\"int\", 1e9]",
                              "[\"int\", 99999999999]", "[\"str\", 10901]"}) {
    CHECK_EQ(int(code_of(std::string(R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[0, 0]], )") +
                         "\"attrs\": {\"mxnet_version\": " + version + "}}")),
             int(Code::kFormat));
  }
}

TEST(indices_out_of_range_and_wrong_counts_of_inputs_are_refused) {
  const auto flatten = [](const char *inputs) {
    return file_of(std::string(kData) + R"({"op": "Flatten", "name": "f", "inputs": )" + inputs + "}");
  };
  CHECK_EQ(int(code_of(flatten("[[0, 0, 0]]"))), 0);
  CHECK_FORMAT(flatten("[[2, 0, 0]]"), "expected a whole number from 0 to 1, found 2");
  CHECK_FORMAT(flatten("[[0, 1, 0]]"), "expected an output below 1 of node 'data', found 1");
  CHECK_FORMAT(flatten("[]"), "expected 1 inputs, found 0");
  CHECK_FORMAT(flatten("[[0, 0, 0], [0, 0, 0]]"), "expected 1 inputs, found 2");
  CHECK_FORMAT(
      file_of(std::string(kData) + R"({"op": "Concat", "name": "c", "attrs": {"num_args": "2"}, "inputs": [[0, 0]]})"),
      "expected 2 inputs, found 1");
  CHECK_FORMAT(file_of(std::string(kData) +
                           R"({"op": "Concat", "name": "c", "attrs": {"num_args": "2000000000"}, "inputs": []})",
                       "[[1, 0]]", 800),
               "expected 1 to 65536 inputs, found 2000000000");
  const Symbol one =
      Symbol::from_json(file_of(std::string(kData) + R"({"op": "Concat", "name": "c", "inputs": [[0, 0]]})"));
  CHECK_EQ(*one.attribute("num_args"), "1");
}

TEST(cycles_are_refused_and_any_order_is_read) {
  CHECK_FORMAT(
      file_of(
          R"({"op": "Flatten", "name": "a", "inputs": [[1, 0]]}, {"op": "Flatten", "name": "b", "inputs": [[0, 0]]})"),
      "expected a graph without cycles");
  CHECK_FORMAT(file_of(R"({"op": "Flatten", "name": "a", "inputs": [[0, 0]]})", "[[0, 0]]"),
               "expected a graph without cycles");
  const Symbol net = Symbol::from_json(file_of(
      R"({"op": "Flatten", "name": "f", "inputs": [[1, 0]]}, {"op": "null", "name": "x", "inputs": []})", "[[0, 0]]"));
  CHECK_EQ(joined(net.list_arguments()), "x");
  CHECK_EQ(joined(net.list_outputs()), "f_output");
}

TEST(a_key_may_not_come_twice) {
  CHECK_FORMAT(R"({"nodes": [], "nodes": [], "heads": []})", "key 'nodes' comes twice in one object");
  CHECK_FORMAT(file_of(R"({"op": "null", "name": "x", "name": "y", "inputs": []})", "[[0, 0]]"),
               "key 'name' comes twice in one object");
  CHECK_FORMAT(file_of(R"({"op": "null", "name": "x", "inputs": [], "attrs": {"a": "1", "a": "2"}})", "[[0, 0]]"),
               "key 'a' comes twice in one object");
}

TEST(endless_nesting_is_refused) {
  const std::string deep(1000000, '['), objects = [] {
    std::string s;
    for (int i = 0; i < 100000; ++i) s += "{\"a\":";
    return s;
  }();
  CHECK_FORMAT(deep, "expected at most 37 levels of nesting");
  CHECK_FORMAT(objects, "expected at most 37 levels of nesting");
  CHECK_FORMAT("{\"nodes\": " + deep, "expected at most 37 levels of nesting");
}

TEST(a_small_file_cannot_ask_for_much_memory) {
  std::string nodes = kData;
  for (int i = 0; i < 100; ++i) {
    nodes += R"({"op": "SliceChannel", "name": "s", "attrs": {"num_outputs": "65536"}, "inputs": [[0, 0]]}, )";
  }
  nodes += R"({"op": "Concat", "name": "c", "inputs": [)";
  for (int i = 1; i <= 100; ++i) nodes += (i > 1 ? ", [" : "[") + std::to_string(i) + ", 0]";
  CHECK_FORMAT(file_of(nodes + "]}", "[[101, 0]]"), "outputs of all nodes, found more");
  CHECK_FORMAT(
      file_of(std::string(kData) +
              R"({"op": "SliceChannel", "name": "s", "attrs": {"num_outputs": "2000000000"}, "inputs": [[0, 0]]})"),
      "expected 1 to 65536");
}

// Every prefix of a file, and the file with any one byte replaced, is loaded or refused with an error.
TEST(damaged_files_are_refused_without_harm) {
  const std::string whole = read_data("v0.8-mlp-without-aux.json");
  for (size_t length = 0; length < whole.size(); length += 7) {
    CHECK_EQ(int(code_of(whole.substr(0, length))), int(length + 1 < whole.size() ? Code::kFormat : Code(0)));
  }
  static const char kBytes[] = "\"{}[],:0123456789.eE-nulx\\\x80\xff";
  uint32_t state = 1;
  for (size_t at = 0; at < whole.size(); at += 3) {
    state = state * 1664525u + 1013904223u;
    std::string damaged = whole;
    damaged[at] = kBytes[(state >> 16) % sizeof kBytes];
    const int code = int(code_of(damaged));
    CHECK(code == 0 || code == int(Code::kFormat));
  }
}

UNIT_MAIN()
