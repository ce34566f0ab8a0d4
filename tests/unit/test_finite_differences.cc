// SPDX-License-Identifier: Apache-2.0
// Compares the gradients of every differentiable operator with central differences in float64, and gradients of
// gradients where these are graphs. The calls are those of tests/data/operators/types.tsv, moved away from points where
// functions are not differentiable. A differentiable operator that is not checked is listed in kNotChecked, with the
// reason.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "executor/invoke.hpp"
#include "support/unit.hpp"
#include "tape/tape.hpp"

using namespace cohort;

namespace {

constexpr char kTable[] = "tests/data/operators/types.tsv";
constexpr double kStep = 1e-5;

// Reasons why differences cannot check the gradient of an operator, or are not taken here.
const std::map<std::string, const char *> kNotChecked = {
    {"SoftmaxOutput", "a loss: its gradient is not its output's"},
    {"LinearRegressionOutput", "a loss"},
    {"LogisticRegressionOutput", "a loss"},
    {"MAERegressionOutput", "a loss"},
    {"SVMOutput", "a loss"},
    {"MakeLoss", "a loss: its gradient is grad_scale, whatever the head gradient"},
    {"make_loss", "a loss: its gradient is 1, whatever the head gradient"},
    {"_contrib_gradientmultiplier", "its gradient is multiplied: that is what it is for"},
    {"_contrib_round_ste", "straight through: its gradient is another function's"},
    {"_contrib_sign_ste", "straight through"},
    {"IdentityAttachKLSparseReg", "adds a penalty's gradient to the output's; float32 alone"},
    {"_CrossDeviceCopy", "a copy, of the plan's"},
    {"_image_adjust_lighting", "a sum, in float32 whatever the type"},
    {"_image_random_lighting", "a sum, in float32 whatever the type"},
    {"Custom", "the host's"},
    {"_foreach", "a graph's"},
    {"_while_loop", "a graph's"},
    {"_cond", "a graph's"},
};

// Operators of which only the first output has a gradient; the others are statistics.
const std::set<std::string> kFirstOutputOnly = {"BatchNorm", "_contrib_BatchNormWithReLU", "_contrib_SyncBatchNorm",
                                                "LayerNorm", "GroupNorm"};

// Functions of symmetric matrices: both halves of input 0 are moved together.
const std::set<std::string> kOfSymmetric = {"_linalg_potrf", "_linalg_syevd"};

// Samples of discrete distributions, input 0, have a gradient of 0, because there is nothing between two values.
const std::set<std::string> kOfDiscrete = {"_random_pdf_poisson", "_random_pdf_negative_binomial",
                                           "_random_pdf_generalized_negative_binomial"};

// Calls that the table does not have, in its format: of Cohort's own operators, and where MXNet has no float64.
constexpr char kMoreCalls[] =
    "log_sigmoid\t-\t2x3:-1.5,0.25,2\td>d\n"
    "mish\t-\t2x3:-1.5,0.25,2\td>d\n"
    "sum\taxis=1\t2x3:-1.5,0.25,2\td>d\n"
    "_square_sum\taxis=1\t2x3:-1.5,0.25,2\td>d\n"
    "_contrib_boolean_mask\t-\t3x2:-1.5,0.25,2|3:0,1,1\tdd>d\n"
    "_contrib_fft\t-\t2x4:-1.5,0.25,2\td>d\n"
    "_contrib_ifft\t-\t2x8:-1.5,0.25,2\td>d\n"
    "_contrib_count_sketch\tout_dim=4\t2x6:-1.5,0.25,2|1x6:0,1,3,2,1,0|1x6:1,-1,1\tddd>d\n";

struct Call {
  std::string op;
  AttrMap attrs;
  std::vector<Shape> shapes;
  std::vector<std::vector<double>> values;  // repeated to fill the shapes
  std::vector<std::string> combinations;    // of types, "dd>d"
};

std::vector<std::string> split(const std::string &text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

std::vector<Call> read_calls() {
  std::ifstream file(kTable);
  if (!file) throw std::runtime_error(std::string(kTable) + " cannot be read; run this where it is");
  std::stringstream lines;
  lines << kMoreCalls << file.rdbuf();
  std::vector<Call> calls;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == '-') continue;
    const std::vector<std::string> fields = split(line, '\t');
    Call call;
    call.op = fields.at(0);
    if (fields.at(1) != "-") {
      for (const std::string &attr : split(fields[1], ';')) {
        const size_t equals = attr.find('=');
        call.attrs[attr.substr(0, equals)] = attr.substr(equals + 1);
      }
    }
    if (fields.at(2) != "-") {
      for (const std::string &input : split(fields[2], '|')) {
        const size_t colon = input.find(':');
        std::vector<int64_t> lengths;
        for (const std::string &length : split(input.substr(0, colon), 'x')) lengths.push_back(std::stoll(length));
        call.shapes.emplace_back(lengths);
        call.values.emplace_back();
        for (const std::string &value : split(input.substr(colon + 1), ',')) {
          call.values.back().push_back(std::stod(value));
        }
      }
    }
    for (const std::string &combination : split(fields.at(3), ' ')) call.combinations.push_back(combination);
    calls.push_back(call);
  }
  return calls;
}

Dtype dtype_of(char letter) {
  static const std::map<char, Dtype> types = {{'h', Dtype::kFloat16}, {'f', Dtype::kFloat32}, {'d', Dtype::kFloat64},
                                              {'u', Dtype::kUint8},   {'b', Dtype::kInt8},    {'i', Dtype::kInt32},
                                              {'l', Dtype::kInt64},   {'o', Dtype::kBool}};
  return types.at(letter);
}

// Numbers from -1 to 1 without a pattern; none is near 0.
double noise(size_t seed, size_t i) {
  const double x = std::sin(double(seed) * 12.9898 + double(i) * 78.233) * 43758.5453;
  const double y = 2 * (x - std::floor(x)) - 1;
  return y < 0 ? y - 0.1 : y + 0.1;
}

// Makes matrices symmetric.
void make_symmetric(std::vector<double> *values, const Shape &shape) {
  const auto n = size_t(shape[shape.rank() - 1]);
  for (size_t i = 0; i < values->size(); ++i) {
    const size_t row = i / n % n, column = i % n;
    if (row < column) (*values)[i] = (*values)[i - row * n - column + column * n + row];
  }
}

// A call as a function of some of its inputs.
class Function {
 public:
  // `moves`: the step of each varied input, relative to its values, plus a little noise.
  Function(const Call &call, std::string types, std::vector<int> of, bool is_train, double moves)
      : call_(call), types_(std::move(types)), of_(std::move(of)), is_train_(is_train) {
    for (size_t i = 0; i < call.shapes.size(); ++i) {
      const bool varies = std::find(of_.begin(), of_.end(), int(i)) != of_.end();
      std::vector<double> values(size_t(call.shapes[i].size()));
      for (size_t k = 0; k < values.size(); ++k) {
        values[k] = call.values[i][k % call.values[i].size()];
        if (varies) values[k] = values[k] * (1 - moves) + 0.003 * noise(i, k);
      }
      if (varies && kOfSymmetric.count(call.op)) make_symmetric(&values, call.shapes[i]);
      at_.push_back(values);
    }
  }

  const Call &call() const { return call_; }
  const std::vector<double> &at(size_t input) const { return at_[input]; }
  // Moves input of()[k] along a direction.
  void move(size_t k, const std::vector<double> &direction, double by) {
    std::vector<double> &values = at_[size_t(of_[k])];
    for (size_t i = 0; i < values.size(); ++i) values[i] += by * direction[i];
  }

  // The sum of outputs times weights.
  double value() {
    double sum = 0;
    Tape tape;  // a random operator draws different numbers if it is not recorded
    tape.set_training(is_train_);
    const std::vector<NDArray> outputs = get_op(call_.op).random
                                             ? record(&tape).heads
                                             : invoke(call_.op, call_.attrs, arrays(), {}, Context(), is_train_, kSeed);
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (!counts(outputs, o)) continue;
      const std::vector<double> numbers = read(outputs[o]);
      for (size_t i = 0; i < numbers.size(); ++i) sum += numbers[i] * noise(100 + o, i);
    }
    return sum;
  }

  // The gradients of value().
  std::vector<std::vector<double>> gradients() {
    Tape tape;
    const Variables v = record(&tape);
    return read_all(tape.gradients_of(v.heads, v.weights, v.variables, {}));
  }

  // The gradients, as graphs, of the gradients of value() times weights, summed; kUnsupported where there is none.
  std::vector<std::vector<double>> second_gradients() {
    Tape tape;
    const Variables v = record(&tape);
    Tape::BackwardOptions graph;
    graph.create_graph = graph.retain_graph = true;
    const std::vector<NDArray> first = tape.gradients_of(v.heads, v.weights, v.variables, graph);
    std::vector<NDArray> weights;
    for (size_t k = 0; k < first.size(); ++k) weights.push_back(noise_like(first[k], 200 + k));
    return read_all(tape.gradients_of(first, weights, v.variables, {}));
  }
  // The function whose gradients second_gradients() computes.
  double value_of_gradients() {
    double sum = 0;
    const auto first = gradients();
    for (size_t k = 0; k < first.size(); ++k) {
      for (size_t i = 0; i < first[k].size(); ++i) sum += first[k][i] * noise(200 + k, i);
    }
    return sum;
  }

 private:
  static constexpr uint64_t kSeed = 5;
  struct Variables {
    std::vector<NDArray> variables, heads, weights;
  };

  bool counts(const std::vector<NDArray> &outputs, size_t o) const {
    return outputs[o].dtype() == Dtype::kFloat64 && (o == 0 || !kFirstOutputOnly.count(call_.op));
  }
  std::vector<NDArray> arrays() const {
    std::vector<NDArray> inputs;
    for (size_t i = 0; i < at_.size(); ++i) {
      NDArray wide = NDArray::create(call_.shapes[i], Dtype::kFloat64, Context(), false);
      wide.write(at_[i].data(), at_[i].size() * sizeof(double));
      const Dtype dtype = dtype_of(types_[i]);
      inputs.push_back(dtype == Dtype::kFloat64 ? wide : wide.cast(dtype));
    }
    return inputs;
  }
  static std::vector<double> read(const NDArray &array) {
    std::vector<double> numbers(size_t(array.shape().size()));
    array.read(numbers.data(), numbers.size() * sizeof(double));
    return numbers;
  }
  static std::vector<std::vector<double>> read_all(const std::vector<NDArray> &arrays) {
    std::vector<std::vector<double>> all;
    for (const NDArray &array : arrays) all.push_back(read(array));
    return all;
  }
  static NDArray noise_like(const NDArray &array, size_t seed) {
    std::vector<double> numbers(size_t(array.shape().size()));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = noise(seed, i);
    NDArray like = NDArray::create(array.shape(), Dtype::kFloat64, Context(), false);
    like.write(numbers.data(), numbers.size() * sizeof(double));
    return like;
  }
  Variables record(Tape *tape) {
    Variables v;
    const std::vector<NDArray> inputs = arrays();
    for (const int i : of_) v.variables.push_back(inputs[size_t(i)]);
    tape->set_training(is_train_);
    tape->mark(v.variables, {}, std::vector<GradReq>(v.variables.size(), GradReq::kWrite));
    const std::vector<NDArray> outputs = tape->invoke(call_.op, call_.attrs, inputs, {}, Context(), kSeed);
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (!counts(outputs, o)) continue;
      v.heads.push_back(outputs[o]);
      v.weights.push_back(noise_like(outputs[o], 100 + o));
    }
    return v;
  }

  const Call &call_;
  const std::string types_;
  const std::vector<int> of_;
  const bool is_train_;
  std::vector<std::vector<double>> at_;
};

// Calls that exist to test integer types, with numbers too large for small differences, or a division by 0. Modulo 0 is
// 0 here, with the gradient of other moduli, as in MXNet.
bool is_of_types(const Call &call) {
  for (const auto &values : call.values) {
    for (const double value : values)
      if (std::fabs(value) > 1000) return true;
  }
  const auto scalar = call.attrs.find("scalar");
  if (call.op == "_mod_scalar" && scalar != call.attrs.end() && scalar->second == "0") return true;
  return call.attrs.count("is_int") > 0;
}

// Inputs with a gradient; empty: no gradient flows back.
std::vector<int> differentiable_inputs(const Call &call) {
  const Op &op = get_op(call.op);
  const Gradient gradient = op.gradient_of(op.parse(call.attrs));
  if (gradient.kind == Gradient::Kind::kNone) return {};
  std::vector<int> of = gradient.of;
  if (of.empty() && !op.variadic.empty()) {
    for (size_t i = 0; i < call.shapes.size(); ++i) of.push_back(int(i));
  }
  if (kOfDiscrete.count(call.op)) of.erase(std::remove(of.begin(), of.end(), 0), of.end());
  return of;
}

// The combination of types with the most float64 among those that MXNet accepts with float64 in all inputs of `of`; all
// float64 where MXNet has none.
std::string types_of(const Call &call, const std::vector<int> &of) {
  std::string best;
  for (const std::string &combination : call.combinations) {
    const std::string types = combination.substr(0, combination.find('>'));
    if (!std::all_of(of.begin(), of.end(), [&](int i) { return types[size_t(i)] == 'd'; })) continue;
    const auto wide = [](const std::string &t) { return std::count(t.begin(), t.end(), 'd'); };
    if (best.empty() || wide(types) > wide(best)) best = types;
  }
  return best.empty() ? std::string(call.shapes.size(), 'd') : best;
}

using Values = std::vector<std::vector<double>>;

// Differences of value() along directions: one through all elements of each input, and one through each of some.
template <typename Value>
std::string compare(Function *f, const std::vector<int> &of, const Values &gradients, Value &&value, double tolerance) {
  for (size_t k = 0; k < of.size(); ++k) {
    const size_t size = f->at(size_t(of[k])).size();
    double largest = 0.01;
    for (const double g : gradients[k]) largest = std::max(largest, std::fabs(g));
    const bool symmetric = kOfSymmetric.count(f->call().op) > 0;
    for (size_t probe = 0; probe <= (symmetric ? 0 : std::min<size_t>(size, 6)); ++probe) {
      std::vector<double> direction(size, 0.0);
      if (probe == 0) {
        for (size_t i = 0; i < size; ++i) direction[i] = noise(300 + k, i) / std::sqrt(double(size));
        if (symmetric) make_symmetric(&direction, f->call().shapes[size_t(of[k])]);
      } else {
        direction[(probe * 7919) % size] = 1;
      }
      double expected = 0;
      for (size_t i = 0; i < size; ++i) expected += gradients[k][i] * direction[i];
      f->move(k, direction, kStep);
      const double behind = value();
      f->move(k, direction, -2 * kStep);
      const double before = value();
      f->move(k, direction, kStep);
      const double found = (behind - before) / (2 * kStep);
      if (std::fabs(found - expected) <= tolerance * largest) continue;
      return text("input ", of[k], ", direction ", probe, ": the gradient says ", expected, ", differences say ",
                  found);
    }
  }
  return "";
}

bool is_moderate(const Values &values) {
  for (const auto &list : values) {
    for (const double x : list)
      if (!(std::fabs(x) < 1e4)) return false;
  }
  return true;
}

struct Result {
  std::string failure;   // empty: correct
  bool checked = false;  // at inputs where function and gradient are finite and not huge
  bool second = false;   // the gradient has a gradient
};

Result check(const Call &call, const std::vector<int> &of, bool is_train) {
  Result result;
  for (const double moves : {0.02, -0.02}) {  // one direction may leave the domain
    Function f(call, types_of(call, of), of, is_train, moves);
    const Values gradients = f.gradients();
    if (!is_moderate(gradients) || !is_moderate({{f.value()}})) continue;
    result.checked = true;
    result.failure = compare(
        &f, of, gradients, [&] { return f.value(); }, 1e-5);
    if (!result.failure.empty()) return result;
    Values second;
    try {
      second = f.second_gradients();
    } catch (const Error &) {
      return result;  // the gradient is no graph
    }
    if (!is_moderate(second)) return result;
    result.second = true;
    result.failure = compare(
        &f, of, second, [&] { return f.value_of_gradients(); }, 1e-4);
    if (!result.failure.empty()) result.failure = "of second order: " + result.failure;
    return result;
  }
  return result;
}

}  // namespace

TEST(gradients_are_differences) {
  const char *only = std::getenv("COHORT_TEST_OP");  // one operator; else all
  std::set<std::string> checked;
  std::map<std::string, std::string> failures;
  size_t num_second = 0;
  for (const Call &call : read_calls()) {
    if (only && call.op != only) continue;
    if (!find_op(call.op) || kNotChecked.count(call.op) || is_of_types(call)) continue;
    const std::vector<int> of = differentiable_inputs(call);
    if (of.empty()) continue;
    for (const bool is_train : {true, false}) {
      std::string failure;
      try {
        const Result result = check(call, of, is_train);
        failure = result.failure;
        num_second += result.second;
        if (result.checked) checked.insert(get_op(call.op).name);
      } catch (const Error &e) {
        failure = e.what();
      }
      if (failure.empty()) continue;
      std::string attrs;
      for (const auto &[key, value] : call.attrs) attrs += " " + key + "=" + value;
      failures[call.op] = text(attrs, is_train ? " in training: " : ": ", failure);
    }
  }
  for (const auto &[op, failure] : failures) std::printf("%s%s\n", op.c_str(), failure.c_str());
  CHECK_EQ(failures.size(), size_t(0));
  size_t num_missing = 0;
  for (const Op &op : op_registry().ops()) {
    if (only && op.name != only) continue;
    const bool differentiable = bool(op.gradient) && !kNotChecked.count(op.name);
    if (!differentiable || checked.count(op.name)) continue;
    Attrs attrs;
    try {
      attrs = Attrs(op.new_attrs());
      if (op.gradient_of(attrs).kind == Gradient::Kind::kNone) continue;
    } catch (const std::exception &) {
    }
    std::printf("%s is differentiable, and not checked\n", op.name.c_str());
    ++num_missing;
  }
  CHECK_EQ(num_missing, size_t(0));
  std::printf("%zu operators, %zu calls with second derivatives\n", checked.size(), num_second);
  CHECK(only || checked.size() > 200);
  CHECK(only || num_second > 250);
}

UNIT_MAIN()
