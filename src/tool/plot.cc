// SPDX-License-Identifier: Apache-2.0
// cohort plot: draws a network with Graphviz.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "tool/network.hpp"
#include "tool/printing.hpp"
#include "tool/tool.hpp"

extern char **environ;

namespace cohort::tool {
namespace {

// ---- kinds of operators, each with a colour of its own --------------------------------------------------------------

struct BoxColours {
  const char *fill, *line;
};
constexpr BoxColours kLayer{"#d7e6fb", "#3c78c8"}, kNorm{"#fdefcb", "#c8941a"}, kActivation{"#fbded8", "#d0604a"},
    kPooling{"#daf2e0", "#3b9a57"}, kRecurrent{"#e9dff8", "#7b54c3"}, kShape{"#eceef2", "#8b93a0"},
    kArithmetic{"#d6f0ef", "#2d918c"}, kLoss{"#fadaea", "#c23f80"}, kOther{"#ffffff", "#8b93a0"},
    kVariable{"#ffffff", "#4b5058"};

const std::map<std::string, BoxColours> &colours_by_operator() {
  static const std::map<std::string, BoxColours> map = [] {
    std::map<std::string, BoxColours> all;
    const auto put = [&](BoxColours colours, std::initializer_list<const char *> ops) {
      for (const char *op : ops) all[op] = colours;
    };
    put(kLayer,
        {"Convolution", "Convolution_v1", "Deconvolution", "FullyConnected", "dot", "batch_dot",
         "_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution", "_linalg_gemm", "_linalg_gemm2"});
    put(kActivation,
        {"Activation", "LeakyReLU", "relu", "sigmoid", "tanh", "softsign", "hard_sigmoid", "erf", "softmax",
         "log_softmax", "softmin", "SoftmaxActivation", "exp", "log", "sqrt", "square", "clip", "abs"});
    put(kRecurrent, {"RNN", "Embedding", "_foreach", "_while_loop", "_cond"});
    put(kShape, {"Reshape",        "Flatten",
                 "transpose",      "Concat",
                 "stack",          "SliceChannel",
                 "slice",          "slice_axis",
                 "slice_like",     "expand_dims",
                 "squeeze",        "SwapAxis",
                 "Crop",           "Pad",
                 "tile",           "repeat",
                 "broadcast_to",   "broadcast_axis",
                 "broadcast_like", "reshape_like",
                 "reverse",        "take",
                 "pick",           "gather_nd",
                 "where",          "Cast",
                 "_copy",          "SequenceLast",
                 "SequenceMask",   "SequenceReverse",
                 "depth_to_space", "space_to_depth",
                 "one_hot"});
    put(kLoss, {"MakeLoss", "make_loss", "CTCLoss", "softmax_cross_entropy", "smooth_l1", "_contrib_MultiBoxDetection",
                "_contrib_MultiBoxTarget", "IdentityAttachKLSparseReg", "BlockGrad"});
    put(kArithmetic, {"add_n", "elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "negative", "sum",
                      "mean", "max", "min", "prod", "norm"});
    return all;
  }();
  return map;
}

bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

BoxColours colours_of(const std::string &op) {
  const auto found = colours_by_operator().find(op);
  if (found != colours_by_operator().end()) return found->second;
  if (contains(op, "Output")) return kLoss;
  if (contains(op, "Pooling")) return kPooling;
  if (contains(op, "Norm") || op == "LRN") return kNorm;
  if (contains(op, "_scalar") || op.compare(0, 10, "broadcast_") == 0) return kArithmetic;
  if (contains(op, "quantized_conv") || contains(op, "quantized_fully")) return kLayer;
  return kOther;
}

// ---- text of the boxes ----------------------------------------------------------------------------------------------

std::string escaped(const std::string &text) {  // for an HTML-like label of Graphviz
  std::string result;
  for (const char c : printable(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string in_quotes(const std::string &text) {
  std::string result = "\"";
  for (const char c : printable(text)) result += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return result + "\"";
}

std::string attr(const NetworkNode &node, const char *key) {
  const auto found = node.attrs.find(key);
  return found == node.attrs.end() ? "" : found->second;
}

// "(3, 3)" as "3×3", or as "3" if `once` and all lengths are equal.
std::string lengths(const std::string &tuple, bool once = false) {
  std::vector<std::string> parts;
  std::string digits;
  for (const char c : tuple + ",") {
    if (c != ',') {
      if (!std::strchr("()[] ", c)) digits += c;
    } else if (!digits.empty()) {
      parts.push_back(digits);
      digits.clear();
    }
  }
  if (once && !parts.empty() && std::count(parts.begin(), parts.end(), parts[0]) == ptrdiff_t(parts.size()))
    parts.resize(1);
  return joined(parts, "×");
}

std::string detail_of(const NetworkNode &node, const std::string &op) {
  std::vector<std::string> words;
  const auto put = [&](const std::string &word, const std::string &value) {
    if (!value.empty()) words.push_back(word + value);
  };
  const auto stride = [&] {
    const std::string by = lengths(attr(node, "stride"), true);
    if (by != "1") put("stride ", by);
  };
  if (contains(op, "onvolution")) {
    put("", lengths(attr(node, "kernel")));
    put("", attr(node, "num_filter"));
    stride();
  } else if (op == "Pooling") {
    const std::string global = attr(node, "global_pool");
    const bool is_global = !global.empty() && std::strchr("Tt1", global[0]) != nullptr;
    put("", (is_global ? "global " : "") + attr(node, "pool_type"));
    if (!is_global) put("", lengths(attr(node, "kernel")));
    if (!is_global) stride();
  } else if (op == "RNN") {
    put("", attr(node, "mode"));
    put("", attr(node, "num_layers") + "×" + attr(node, "state_size"));
  } else if (op == "Embedding") {
    put("", attr(node, "input_dim") + " → " + attr(node, "output_dim"));
  } else {
    for (const char *key : {"num_hidden", "act_type", "p", "dim", "axis", "axes", "scalar"})
      put("", lengths(attr(node, key)));
    if (op == "Reshape") put("", attr(node, "shape"));
  }
  return joined(words, " · ");
}

std::string shape_label(const ArrayInfo &value) {
  if (!value.shape) return "";
  std::vector<std::string> parts;
  for (const int64_t length : *value.shape) parts.push_back(length ? std::to_string(length) : "?");
  return joined(parts, "×");
}

// ---- groups: nodes whose names begin alike --------------------------------------------------------------------------

// The group of each node, "" for none: its `__ctx_group__` if any node has one. Else the longest prefix of its name, up
// to an underscore, that at least three operators have, but no more than 70 % of them.
std::vector<std::string> groups_of(const Network &network) {
  const std::vector<NetworkNode> &nodes = network.nodes;
  std::vector<std::string> groups(nodes.size());
  bool placed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind != NetworkNode::kOperator) continue;
    groups[i] = attr(nodes[i], "__ctx_group__");
    placed = placed || !groups[i].empty();
  }
  if (placed) return groups;
  std::map<std::string, size_t> count;
  size_t num_operators = 0;
  const auto beginnings = [](const std::string &name) {  // the longest first
    std::vector<std::string> all;
    for (size_t at = name.rfind('_'); at != std::string::npos && at > 0; at = name.rfind('_', at - 1))
      all.push_back(name.substr(0, at));
    return all;
  };
  for (const NetworkNode &node : nodes) {
    if (node.kind != NetworkNode::kOperator) continue;
    ++num_operators;
    for (const std::string &beginning : beginnings(node.name)) ++count[beginning];
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind != NetworkNode::kOperator) continue;
    for (const std::string &beginning : beginnings(nodes[i].name)) {
      if (count[beginning] < 3 || 10 * count[beginning] > 7 * num_operators) continue;
      groups[i] = beginning;
      break;
    }
  }
  return groups;
}

// ---- the graph in Graphviz's language -------------------------------------------------------------------------------

struct Picture {
  std::string dot;
  size_t num_nodes = 0, num_edges = 0;
};

std::string box(const std::string &id, const std::string &title, const std::string &detail, BoxColours colours,
                const std::string &more) {
  return id + " [label=<<B>" + escaped(title) + "</B>" +
         (detail.empty() ? "" : "<BR/><FONT POINT-SIZE=\"9\" COLOR=\"#4b5058\">" + escaped(detail) + "</FONT>") +
         ">, fillcolor=\"" + colours.fill + "\", color=\"" + colours.line + "\"" + more + "];\n";
}

// The box of a node. In a group the node's name is shown without the group's prefix.
std::string node_text(const Network &network, size_t index, const std::string &group) {
  const NetworkNode &node = network.nodes[index];
  const std::string id = "n" + std::to_string(index);
  if (node.kind == NetworkNode::kInput) {
    return box(id, node.name, shape_label(network.value({index, 0})), kVariable,
               ", shape=ellipse, tooltip=" + in_quotes(node.name));
  }
  if (node.kind != NetworkNode::kOperator) {
    return box(id, node.name, shape_label(network.value({index, 0})), kShape,
               ", shape=plain, fillcolor=\"none\", fontsize=8, tooltip=" + in_quotes(node.name));
  }
  const char *canonical = nullptr;
  check(cohort_operator_info(node.op.c_str(), &canonical, nullptr, nullptr, nullptr, nullptr, nullptr));
  std::string tooltip = node.name;
  for (const auto &[key, value] : node.attrs) tooltip += " " + key + "=" + value;
  const bool begins = !group.empty() && node.name.compare(0, group.size() + 1, group + "_") == 0;
  const std::string name = begins ? node.name.substr(group.size() + 1) : node.name, detail = detail_of(node, canonical);
  return box(id, node.op, detail.empty() ? name : name + " · " + detail, colours_of(canonical),
             ", tooltip=" + in_quotes(tooltip));
}

Picture draw(const Network &network, const std::string &title, bool weights, bool grouped) {
  Picture picture;
  std::string &dot = picture.dot;
  dot = "digraph " + in_quotes(title) +
        " {\n"
        "graph [rankdir=TB, bgcolor=white, pad=0.3, nodesep=0.3, ranksep=0.4, fontname=\"Helvetica\", fontsize=10, "
        "fontcolor=\"#6b7280\"];\n"
        "node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=12, penwidth=1.3, "
        "margin=\"0.16,0.07\", "
        "fontcolor=\"#1f2328\"];\n"
        "edge [color=\"#8b93a0\", fontname=\"Helvetica\", fontsize=9, fontcolor=\"#6b7280\", arrowsize=0.6];\n";
  const auto shown = [&](size_t i) {
    return weights || network.nodes[i].kind == NetworkNode::kOperator || network.nodes[i].kind == NetworkNode::kInput;
  };
  const std::vector<std::string> groups = grouped ? groups_of(network) : std::vector<std::string>(network.nodes.size());
  std::map<std::string, std::string> members;
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    if (!shown(i)) continue;
    ++picture.num_nodes;
    if (groups[i].empty()) dot += node_text(network, i, groups[i]);
    if (!groups[i].empty()) members[groups[i]] += node_text(network, i, groups[i]);
  }
  size_t number = 0;
  for (const auto &[name, text] : members) {
    dot += "subgraph cluster_" + std::to_string(number++) +
           " {\nstyle=\"filled,rounded\"; fillcolor=\"#f6f7f9\"; color=\"#d7dbe1\"; labeljust=l; label=" +
           in_quotes(name) + ";\n" + text + "}\n";
  }
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    for (const NetworkNode::Source &source : network.nodes[i].inputs) {
      if (!shown(source.node)) continue;
      ++picture.num_edges;
      // The box of a variable shows its shape already.
      const bool labelled = network.nodes[source.node].kind == NetworkNode::kOperator;
      dot += "n" + std::to_string(source.node) + " -> n" + std::to_string(i) +
             (labelled ? " [label=" + in_quotes(" " + shape_label(network.value(source))) + "]" : "") + ";\n";
    }
  }
  const std::vector<ArrayInfo> outputs = network.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string id = "out" + std::to_string(i);
    dot += box(id, outputs[i].name, shape_label(outputs[i]), kVariable, ", shape=ellipse") + "n" +
           std::to_string(network.heads[i].node) + " -> " + id + ";\n";
  }
  dot += "}\n";
  return picture;
}

// ---- Graphviz -------------------------------------------------------------------------------------------------------

void render(const std::string &dot, const std::string &format, const std::string &path) {
  write_whole(path, [&](const std::string &beside) {
    const std::string source = beside + ".dot", kind = "-T" + format;
    std::ofstream file(source, std::ios::binary);
    file << dot;
    file.close();
    if (!file) throw Failure(path + ": " + std::strerror(errno));
    char *const words[] = {const_cast<char *>("dot"),          const_cast<char *>(kind.c_str()),
                           const_cast<char *>("-o"),           const_cast<char *>(beside.c_str()),
                           const_cast<char *>(source.c_str()), nullptr};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);  // hides dot's warnings about fonts
    pid_t child = 0;
    const int error = posix_spawnp(&child, "dot", &quiet, nullptr, words, environ);
    posix_spawn_file_actions_destroy(&quiet);
    int status = 0;
    if (!error) {
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    std::remove(source.c_str());
    if (error == ENOENT || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
      throw Failure(path + ": drawing needs Graphviz, whose program dot is not in PATH; -o FILE.dot works without it");
    }
    if (error) throw Failure(std::string("dot: ") + std::strerror(error));
    if (status) throw Failure("dot, Graphviz's program, did not draw " + path);
  });
}

void plot(const Arguments &arguments) {
  const std::string out = arguments.one("--output", "-"), end = extension(out);
  const bool as_text = out == "-" || end == ".dot" || end == ".gv";
  if (!as_text && end != ".svg" && end != ".png" && end != ".pdf") {
    throw UsageError("--output: expected a name that ends in .svg, .png, .pdf or .dot, found '" + out + "'");
  }
  if (out == "-" && arguments.has("--json")) throw UsageError("--json needs --output FILE");
  const GivenShapes known = known_from(arguments);
  Symbol symbol = load_symbol(arguments.file());
  std::optional<Params> params;
  if (arguments.has("--params")) params = load_params(arguments.one("--params"), symbol);
  const Network network = make_network(std::move(symbol), known, params ? &*params : nullptr);
  const Picture picture = draw(network, arguments.file(), arguments.has("--weights"), !arguments.has("--no-groups"));
  if (out == "-") return print(picture.dot);
  if (as_text) {
    write_text(out, picture.dot);
  } else {
    render(picture.dot, end.substr(1), out);
  }
  if (arguments.has("--json")) {
    print(nlohmann::ordered_json{
        {"file", arguments.file()}, {"saved", out}, {"nodes", picture.num_nodes}, {"edges", picture.num_edges}});
  } else {
    print(printable(out) + ": " + plural(picture.num_nodes, "node") + ", " + plural(picture.num_edges, "edge") + "\n");
  }
}

}  // namespace

Command plot_command() {
  return {"plot",
          "FILE",
          "draws a network, with Graphviz",
          "FILE is a symbol in JSON. The colour of a node shows the kind of its operator; edges show shapes\n"
          "as far as they are known. Nodes with the same __ctx_group__, or else with the same prefix in\n"
          "their names, share a frame.\n",
          {{"--output", "FILE",
            "the file to write: .svg, .png, .pdf or .dot; -o is short for it. Without it, or for '-', the graph\n"
            "in Graphviz's language goes to standard output"},
           kParamsOption,
           kShapeOption,
           kDtypeOption,
           {"--weights", "", "draw parameters and auxiliary states, too"},
           {"--no-groups", "", "draw no frames"},
           kJsonOption},
          plot};
}

}  // namespace cohort::tool
