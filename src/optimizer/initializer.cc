// SPDX-License-Identifier: Apache-2.0
#include "optimizer/initializer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/names.hpp"
#include "base/random.hpp"
#include "base/setting_reader.hpp"

namespace cohort {
namespace {

// The random numbers of one array: each seed and name has its own sequence.
class Numbers {
 public:
  Numbers(uint64_t seed, const std::string &name) : seed_(seed), stream_(name_stream(name)) {}
  double uniform(int64_t i) const { return double(uniform_at(seed_, uint64_t(i), stream_)); }  // from [0, 1)
  double normal(int64_t i) const { return double(normal_at(seed_, uint64_t(i), stream_)); }

 private:
  const uint64_t seed_, stream_;
};

// One number, or numbers in nested lists: an array that is broadcast to the shape to fill.
class ConstantInitializer final : public Initializer {
 public:
  explicit ConstantInitializer(double value) : numbers_{value} {}
  explicit ConstantInitializer(SettingReader *reader) {
    std::string source = reader->text_of("value").value_or("0");
    if (source.find_first_of("[(") != 0) {
      numbers_.push_back(parse_float("value", source));
      return;
    }
    const std::string given = source;
    std::replace(source.begin(), source.end(), '(', '[');
    std::replace(source.begin(), source.end(), ')', ']');
    for (size_t comma = source.find(','); comma != std::string::npos; comma = source.find(',', comma + 1)) {
      const size_t next = source.find_first_not_of(' ', comma + 1);
      if (next != std::string::npos && source[next] == ']') source[comma] = ' ';  // (1,)
    }
    try {
      add(parse_json(source, "value", kMaxAxes), 0);
    } catch (const Error &) {
      numbers_.clear();
      lengths_.clear();  // their product could overflow
    }
    int64_t size = 1;
    for (const int64_t length : lengths_) size *= length;
    if (numbers_.empty() || int64_t(numbers_.size()) != size)
      reader->fail("value", "a number, or lists of numbers that are equally long", given);
  }

 private:
  void add(const Json &value, size_t depth) {
    if (value.is(Json::Kind::kInteger) || value.is(Json::Kind::kNumber)) {
      if (depth != lengths_.size()) throw Error(Code::kFormat, "a number beside lists");
      numbers_.push_back(parse_float("value", value.text));
      return;
    }
    const auto length = int64_t(value.elements.size());
    if (depth == lengths_.size() && numbers_.empty()) lengths_.push_back(length);
    if (!value.is(Json::Kind::kArray) || depth >= lengths_.size() || lengths_[depth] != length)
      throw Error(Code::kFormat, "lists of several lengths");
    for (const Json &element : value.elements) add(element, depth + 1);
  }
  void check(const std::string &name, const Shape &shape) const override {
    const int extra = int(lengths_.size()) - shape.rank();
    for (int axis = 0; axis < int(lengths_.size()); ++axis) {
      const int64_t length = lengths_[size_t(axis)];
      if (length == 1 || (axis >= extra && length == shape[axis - extra])) continue;
      throw Error(Code::kShape,
                  text("'", name, "': a value of shape ", Shape(lengths_), " does not fill an array of shape ", shape),
                  name);
    }
  }
  void values(const std::string &, const Shape &shape, double *to) const override {
    for (int64_t i = 0; i < shape.size(); ++i) {
      int64_t at = 0, rest = i, step = 1;
      for (int axis = shape.rank() - 1, own = int(lengths_.size()) - 1; axis >= 0 && own >= 0; --axis, --own) {
        const int64_t length = lengths_[size_t(own)];
        if (length > 1) at += rest % shape[axis] * step;
        rest /= shape[axis];
        step *= length;
      }
      to[i] = numbers_[size_t(at)];
    }
  }

  std::vector<int64_t> lengths_;  // per level of lists
  std::vector<double> numbers_;
};

// Uniform in [-scale, scale), or normal with that standard deviation.
class Random final : public Initializer {
 public:
  Random(bool normal, double scale, uint64_t seed) : normal_(normal), scale_(scale), seed_(seed) {}

 private:
  void check(const std::string &, const Shape &) const override {}
  void values(const std::string &name, const Shape &shape, double *to) const override {
    const Numbers numbers(seed_, name);
    for (int64_t i = 0; i < shape.size(); ++i) {
      to[i] = normal_ ? scale_ * numbers.normal(i) : scale_ * (2 * numbers.uniform(i) - 1);
    }
  }

  const bool normal_;
  const double scale_;
  const uint64_t seed_;
};

// Like Random, with a scale that depends on the numbers of inputs and outputs (Glorot and Bengio, 2010; He et al.,
// 2015).
class Xavier final : public Initializer {
 public:
  Xavier(bool gaussian, const std::string &factor_type, double magnitude, uint64_t seed)
      : gaussian_(gaussian), factor_type_(factor_type), magnitude_(magnitude), seed_(seed) {}

 private:
  void check(const std::string &name, const Shape &shape) const override {
    if (shape.rank() < 2) {
      throw Error(Code::kShape, text("'", name, "': this initializer needs at least 2 axes, found shape ", shape),
                  name);
    }
  }
  void values(const std::string &name, const Shape &shape, double *to) const override {
    const double window = double(shape.size(2, shape.rank()));
    const double fan_in = double(shape[1]) * window, fan_out = double(shape[0]) * window;
    const double factor = factor_type_ == "avg" ? (fan_in + fan_out) / 2 : factor_type_ == "in" ? fan_in : fan_out;
    const double scale = factor > 0 ? std::sqrt(magnitude_ / factor) : 0;
    const Numbers numbers(seed_, name);
    for (int64_t i = 0; i < shape.size(); ++i) {
      to[i] = gaussian_ ? scale * numbers.normal(i) : scale * (2 * numbers.uniform(i) - 1);
    }
  }

  const bool gaussian_;
  const std::string factor_type_;
  const double magnitude_;
  const uint64_t seed_;
};

// Rows, or columns if there are fewer of them, that are orthogonal to each other and of length `scale` (Saxe et al.,
// 2014). Uses the Gram-Schmidt process, twice against rounding errors.
class Orthogonal final : public Initializer {
 public:
  Orthogonal(double scale, bool normal, uint64_t seed) : scale_(scale), normal_(normal), seed_(seed) {}

 private:
  void check(const std::string &name, const Shape &shape) const override {
    if (shape.rank() < 2) {
      throw Error(Code::kShape, text("'", name, "': this initializer needs at least 2 axes, found shape ", shape),
                  name);
    }
  }
  void values(const std::string &name, const Shape &shape, double *to) const override {
    const int64_t rows = shape[0], columns = shape.size(1, shape.rank());
    const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    const Numbers numbers(seed_, name);
    std::vector<double> basis(size_t(count * length));
    for (size_t i = 0; i < basis.size(); ++i) {
      basis[i] = normal_ ? numbers.normal(int64_t(i)) : 2 * numbers.uniform(int64_t(i)) - 1;
    }
    for (int64_t v = 0; v < count; ++v) orthonormalise(basis.data(), v, length);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        to[r * columns + c] =
            scale_ * (rows <= columns ? basis[size_t(r * length + c)] : basis[size_t(c * length + r)]);
      }
    }
  }
  static void orthonormalise(double *basis, int64_t v, int64_t length) {
    double *vector = basis + v * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t other = 0; other < v; ++other) {
        const double *known = basis + other * length;
        double along = 0;
        for (int64_t i = 0; i < length; ++i) along += vector[i] * known[i];
        for (int64_t i = 0; i < length; ++i) vector[i] -= along * known[i];
      }
      double norm = 0;
      for (int64_t i = 0; i < length; ++i) norm += vector[i] * vector[i];
      norm = std::sqrt(norm);
      for (int64_t i = 0; i < length; ++i) vector[i] = norm > 0 ? vector[i] / norm : 0;
    }
  }

  const double scale_;
  const bool normal_;
  const uint64_t seed_;
};

// The bias of an LSTM: the forget gate's quarter is `forget_bias`, the rest 0.
class LstmBias final : public Initializer {
 public:
  explicit LstmBias(double forget_bias) : forget_bias_(forget_bias) {}

 private:
  void check(const std::string &name, const Shape &shape) const override {
    if (shape.rank() != 1 || shape[0] % 4 != 0) {
      throw Error(Code::kShape, text("'", name, "': expected one axis of four gates, found shape ", shape), name);
    }
  }
  void values(const std::string &, const Shape &shape, double *to) const override {
    const int64_t gate = shape[0] / 4;
    for (int64_t i = 0; i < shape[0]; ++i) to[i] = i / std::max<int64_t>(gate, 1) == 1 ? forget_bias_ : 0;
  }

  const double forget_bias_;
};

// The kernel of a layer that enlarges images: (1 - |x / f - c|)(1 - |y / f - c|) for each pair of channels.
class Bilinear final : public Initializer {
  void check(const std::string &name, const Shape &shape) const override {
    if (shape.rank() == 4) return;
    throw Error(Code::kShape, text("'", name, "': this initializer needs 4 axes, found shape ", shape), name);
  }
  void values(const std::string &, const Shape &shape, double *to) const override {
    const int64_t height = shape[2], width = shape[3];
    const double f = std::ceil(double(width) / 2), c = (2 * f - 1 - std::fmod(f, 2)) / (2 * f);
    for (int64_t i = 0; i < shape.size(); ++i) {
      const double x = double(i % width), y = double(i / width % height);
      to[i] = (1 - std::fabs(x / f - c)) * (1 - std::fabs(y / f - c));
    }
  }
};

// The packed parameters of RNN (op/rnn.hpp): each gate's matrix is filled by the initializer inside, or by the one that
// fills weights; biases are 0, but those of an lstm's forget gates `forget_bias`.
class FusedRnn final : public Initializer {
 public:
  FusedRnn(SettingReader *reader, uint64_t seed) {
    const auto inner = reader->text_of("init");
    if (inner && !is_none(*inner)) init_ = from_attribute("init", *inner, seed);
    hidden_ = reader->integer("num_hidden", 0);
    layers_ = reader->integer("num_layers", 0);
    const std::string mode = reader->text_of("mode").value_or("");
    gates_ = mode == "lstm" ? 4 : mode == "gru" ? 3 : mode == "rnn_relu" || mode == "rnn_tanh" ? 1 : 0;
    if (gates_ == 0) reader->fail("mode", "one of 'lstm', 'gru', 'rnn_relu', 'rnn_tanh'", mode);
    for (const auto &[key, value] : {std::make_pair("num_hidden", hidden_), std::make_pair("num_layers", layers_)}) {
      if (value < 1 || value > kMost) reader->fail(key, text("from 1 to ", kMost), text(value));
    }
    directions_ = reader->boolean("bidirectional", false) ? 2 : 1;
    forget_bias_ = reader->number("forget_bias", 1);
  }

 private:
  static constexpr int64_t kMost = 1 << 20;  // so that no product below overflows

  void follow(const Initializer &global) override {
    if (!init_) global_ = &global;
  }
  const Initializer *inner() const { return init_ ? init_.get() : global_; }

  // The number of inputs for which the vector has this length, or 0.
  int64_t inputs_of(const Shape &shape) const {
    if (shape.rank() != 1) return 0;
    const double rows = double(gates_ * hidden_) * double(directions_);
    const double upper = double(layers_ - 1) * double(hidden_ * (1 + directions_) + 2);
    const double inputs = double(shape[0]) / rows - upper - double(hidden_ + 2);
    return inputs >= 1 && inputs == std::floor(inputs) ? int64_t(inputs) : 0;
  }
  void check(const std::string &name, const Shape &shape) const override {
    if (!inner()) throw Error(Code::kInvalidArgument, text("'", name, "': fusedrnn needs an initializer inside"), name);
    const int64_t inputs = inputs_of(shape);
    if (inputs == 0) {
      throw Error(Code::kShape, text("'", name, "': shape ", shape, " does not fit the parameters of these layers"),
                  name);
    }
    inner()->check(name, Shape{hidden_, inputs});
  }
  void values(const std::string &name, const Shape &shape, double *to) const override {
    int64_t columns = inputs_of(shape);
    for (int64_t layer = 0; layer < layers_; ++layer, columns = hidden_ * directions_) {
      for (int64_t i = 0; i < directions_ * 2 * gates_; ++i) {  // from the inputs, then from the state
        const Shape matrix{hidden_, i / gates_ % 2 == 0 ? columns : hidden_};
        inner()->values(text(name, "_", layer, "_", i), matrix, to);
        to += matrix.size();
      }
    }
    for (int64_t gate = 0; gate < layers_ * directions_ * 2 * gates_; ++gate, to += hidden_) {
      std::fill(to, to + hidden_, gates_ == 4 && gate % 4 == 1 ? forget_bias_ : 0.0);
    }
  }

  std::shared_ptr<Initializer> init_;
  const Initializer *global_ = nullptr;
  int64_t hidden_, layers_, gates_, directions_;
  double forget_bias_;
};

void write_values(const NDArray &array, const std::vector<double> &values) {
  std::vector<char> bytes(array.bytes());
  cast_elements(values.data(), Dtype::kFloat64, bytes.data(), array.dtype(), array.size());
  array.write(bytes.data(), bytes.size());
}

[[noreturn]] void bad_init(const std::string &name, const std::string &found, const std::string &why) {
  throw Error(Code::kInvalidArgument, text("__init__ of '", name, "': ", why, ", found ", found), name);
}

std::string to_setting(const Json &value) {
  if (value.is(Json::Kind::kNull)) return "None";
  if (!value.is(Json::Kind::kArray)) return value.text;
  std::string list;
  for (const Json &element : value.elements) list += (list.empty() ? "[" : ", ") + to_setting(element);
  return (list.empty() ? "[" : list) + "]";
}

AttrMap to_settings(const Json &object) {
  AttrMap settings;
  for (size_t i = 0; i < object.num_keys(); ++i) settings[object.key(i)] = to_setting(object.value(i));
  return settings;
}

}  // namespace

// Accepts each form that MXNet does: `["xavier", {"magnitude": 3}]`, `{"initializer": "xavier", "magnitude": 3}`, and a
// bare name, which Gluon writes.
std::shared_ptr<Initializer> Initializer::from_attribute(const std::string &name, const std::string &source,
                                                         uint64_t seed) try {
  using Kind = Json::Kind;
  if (source.find_first_of("[{") != 0) return create(source, {}, seed);
  Json parsed;
  try {
    parsed = parse_json(source, "__init__", 2 + kMaxAxes);  // parameters: numbers, words, arrays
  } catch (const Error &) {                                 // reported below, with what was expected
  }
  const std::vector<Json> &parts = parsed.elements;
  if (parsed.is(Kind::kObject)) {
    AttrMap settings = to_settings(parsed);
    const auto kind = settings.extract("initializer");
    if (!kind) bad_init(name, source, "expected {\"initializer\": \"name\", parameters}");
    return create(kind.mapped(), settings, seed);
  }
  if (!parsed.is(Kind::kArray) || parts.empty() || parts.size() > 2 || !parts[0].is(Kind::kString) ||
      (parts.size() == 2 && !parts[1].is(Kind::kObject))) {
    bad_init(name, source, "expected [\"name\", {parameters}]");
  }
  return create(parts[0].text, parts.size() == 2 ? to_settings(parts[1]) : AttrMap(), seed);
} catch (const Error &e) {  // add the parameter's name, which the initializer does not know
  if (e.subject() == name) throw;
  throw Error(e.code(), text("__init__ of '", name, "': ", e.what()), name);
}

namespace {

// Chooses by the end of the name (MXNet's rule); null for a weight, which the caller's initializer fills.
std::shared_ptr<Initializer> by_suffix(const std::string &name) {
  if (ends_with(name, "weight")) return nullptr;
  for (const char *zero : {"bias", "beta", "moving_mean", "running_mean", "moving_inv_var", "moving_avg", "min"})
    if (ends_with(name, zero)) return std::make_shared<ConstantInitializer>(0);
  for (const char *one : {"gamma", "moving_var", "running_var", "max"})
    if (ends_with(name, one)) return std::make_shared<ConstantInitializer>(1);
  throw Error(Code::kName,
              text("'", name,
                   "': no initial values are known for this name; expected it to end in weight, bias, gamma, beta, "
                   "moving_mean, running_mean, moving_var, running_var, min or max, or an __init__ attribute"),
              name);
}

}  // namespace

std::shared_ptr<Initializer> Initializer::create(const std::string &name, const AttrMap &settings, uint64_t seed) {
  const std::string kind = lower_case(name);
  SettingReader reader("initializer '" + name + "'", settings);
  std::shared_ptr<Initializer> made;
  if (kind == "zero" || kind == "zeros") made = std::make_shared<ConstantInitializer>(0);
  if (kind == "one" || kind == "ones") made = std::make_shared<ConstantInitializer>(1);
  if (kind == "constant") made = std::make_shared<ConstantInitializer>(&reader);
  if (kind == "uniform") made = std::make_shared<Random>(false, reader.number("scale", 0.07), seed);
  if (kind == "normal") made = std::make_shared<Random>(true, reader.number("sigma", 0.01), seed);
  if (kind == "xavier") {
    const bool gaussian = reader.word("rnd_type", {"uniform", "gaussian"}) == "gaussian";
    const std::string factor_type = reader.word("factor_type", {"avg", "in", "out"});
    const double magnitude = reader.number("magnitude", 3);
    if (!(magnitude >= 0)) reader.fail("magnitude", "at least 0", text(magnitude));
    made = std::make_shared<Xavier>(gaussian, factor_type, magnitude, seed);
  }
  if (kind == "msraprelu") {
    const std::string factor_type = reader.word("factor_type", {"avg", "in", "out"});
    const double slope = reader.number("slope", 0.25);
    made = std::make_shared<Xavier>(true, factor_type, 2 / (1 + slope * slope), seed);
  }
  if (kind == "orthogonal") {
    const double scale = reader.number("scale", 1.414);
    const bool normal = reader.word("rand_type", {"uniform", "normal"}) == "normal";
    made = std::make_shared<Orthogonal>(scale, normal, seed);
  }
  if (kind == "bilinear") made = std::make_shared<Bilinear>();
  if (kind == "fusedrnn") made = std::make_shared<FusedRnn>(&reader, seed);
  if (kind == "lstmbias") made = std::make_shared<LstmBias>(reader.number("forget_bias", 1));
  if (!made) {
    throw Error(Code::kName,
                text("there is no initializer '", name,
                     "'; there are zero, one, constant, uniform, normal, xavier, msraprelu, orthogonal, bilinear, "
                     "lstmbias and fusedrnn"),
                name);
  }
  reader.finish();
  made->seed_ = seed;
  return made;
}

void Initializer::apply(const Symbol *symbol, const NamedArrays &arrays) const {
  std::vector<std::shared_ptr<Initializer>> rules(arrays.size());
  std::map<std::string, const std::string *> attributes;
  std::vector<NodePtr> nodes;
  if (symbol) {
    nodes = symbol->nodes();
    for (const NodePtr &node : nodes) {
      const auto found = node->attrs.find("__init__");
      if (node->is_variable() && found != node->attrs.end()) attributes[node->name] = &found->second;
    }
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].second) continue;
    const std::string &name = arrays[i].first;
    const auto found = attributes.find(name);
    rules[i] = found != attributes.end() ? from_attribute(name, *found->second, seed_) : by_suffix(name);
    if (rules[i]) rules[i]->follow(*this);
    (rules[i] ? *rules[i] : *this).check(name, arrays[i].second.shape());
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].second) (rules[i] ? *rules[i] : *this).fill(arrays[i].first, arrays[i].second);
  }
}

void Initializer::fill(const std::string &name, const NDArray &array) const {
  check(name, array.shape());
  std::vector<double> numbers(size_t(array.size()));
  values(name, array.shape(), numbers.data());
  write_values(array, numbers);
}

}  // namespace cohort
