// SPDX-License-Identifier: Apache-2.0
// Symbols and parameter files with random damage: each is either refused with an error of the caller's kind, or read,
// and then it can be used. The numbers depend on the seed alone; FUZZ_ROUNDS and FUZZ_SEED in the environment try more.
#include <dirent.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/error.hpp"
#include "ndarray/params.hpp"
#include "support/unit.hpp"
#include "symbol/symbol.hpp"

using namespace cohort;

namespace {

long setting(const char *name, long otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atol(value) : otherwise;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t roll() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  size_t below(size_t count) { return count ? size_t(roll() % count) : 0; }

 private:
  uint64_t state_;
};

std::vector<std::string> files_in(const std::string &folder, const std::string &end) {
  std::vector<std::string> paths;
  DIR *open = opendir(folder.c_str());
  CHECK(open);
  while (const dirent *entry = readdir(open)) {
    const std::string name = entry->d_name;
    if (name.size() > end.size() && name.substr(name.size() - end.size()) == end) paths.push_back(folder + "/" + name);
  }
  closedir(open);
  std::sort(paths.begin(), paths.end());
  return paths;
}

// One to four damages: bytes changed, removed, doubled or inserted from `pieces`; or the end cut off.
std::string damaged(std::string bytes, const std::vector<std::string> &pieces, Dice &dice) {
  for (size_t wounds = 1 + dice.below(4); wounds > 0 && !bytes.empty(); --wounds) {
    const size_t at = dice.below(bytes.size()), length = 1 + dice.below(std::min<size_t>(bytes.size() - at, 64));
    const std::string &piece = pieces[dice.below(pieces.size())];
    switch (dice.below(7)) {
      case 0:
        bytes[at] = char(dice.roll());
        break;
      case 1:
        bytes[at] = char(bytes[at] ^ (1 << dice.below(8)));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes.insert(at, piece);
        break;
      case 5:
        bytes.replace(at, std::min(piece.size(), bytes.size() - at), piece);
        break;
      default:
        if (dice.below(4) == 0) bytes.resize(at);
    }
  }
  return bytes;
}

// Replaces a number or a string in JSON by another one.
std::string with_other_value(const std::string &json, const std::vector<std::string> &pieces, Dice &dice) {
  const size_t start = dice.below(json.size());
  const size_t begin = json.find_first_of("0123456789\"", start);
  if (begin == std::string::npos) return json;
  size_t end = begin + 1;
  if (json[begin] == '"') {
    end = json.find('"', end);
    if (end == std::string::npos) return json;
    ++end;
  } else {
    while (end < json.size() && std::isdigit(static_cast<unsigned char>(json[end]))) ++end;
  }
  return json.substr(0, begin) + pieces[dice.below(pieces.size())] + json.substr(end);
}

// Calls use(bytes), which may throw an Error, but not one that blames the library or reports that memory ran out.
template <typename Use>
bool survives(const std::string &what, Use &&use) {
  try {
    use();
    return true;
  } catch (const Error &error) {
    if (error.code() == Code::kInternal || error.code() == Code::kOutOfMemory) {
      unit::fail(__FILE__, __LINE__, what + ": " + error.what());
    }
  } catch (const std::exception &error) {
    unit::fail(__FILE__, __LINE__, what + ": " + error.what());
  }
  return false;
}

void use_symbol(const std::string &json) {
  const Symbol symbol = Symbol::from_json(json);
  const Graph graph(symbol);
  symbol.to_json();
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const std::string &name : symbol.list_arguments()) {
    if (name.find("data") != std::string::npos) shapes.emplace_back(name, Shape{2, 3, 32, 32});
  }
  Inferred inferred;
  infer_shapes(graph, shapes, &inferred);
  infer_dtypes(graph, {}, &inferred);
}

}  // namespace

TEST(damaged_symbols_are_read_or_refused) {
  const std::vector<std::string> pieces = {"0",
                                           "-1",
                                           "1",
                                           "65536",
                                           "4294967296",
                                           "9223372036854775807",
                                           "18446744073709551616",
                                           "1e999",
                                           "null",
                                           "true",
                                           "[]",
                                           "{}",
                                           "[[[[[[[[",
                                           "\"\"",
                                           "\"null\"",
                                           "\"(0,)\"",
                                           "\"(-1,2147483647)\"",
                                           "\"9223372036854775807\"",
                                           "\"(9223372036854775807,2)\"",
                                           "\"1e38\"",
                                           "\"nan\"",
                                           "\"None\"",
                                           "\"data\"",
                                           "\"\\u0000\"",
                                           "\"\xff\xfe\"",
                                           "\"Convolution\"",
                                           "\"Concat\"",
                                           "\"RNN\"",
                                           "\"Reshape\"",
                                           "\"SliceChannel\"",
                                           "\"Pooling\"",
                                           "\"num_args\": \"65536\"",
                                           ",",
                                           ":",
                                           "\"",
                                           "]",
                                           "}"};
  const std::vector<std::string> paths = files_in("tests/data/symbol", ".json");
  CHECK(paths.size() >= 5);
  const long rounds = setting("FUZZ_ROUNDS", 300), seed = setting("FUZZ_SEED", 1);
  long num_read = 0;
  for (long round = 0; round < rounds; ++round) {
    Dice dice(uint64_t(seed) * 1000003 + uint64_t(round));
    std::string json = read_file(paths[size_t(round) % paths.size()]);
    if (dice.below(3) == 0) {
      json = damaged(json, pieces, dice);
    } else {
      for (size_t times = 1 + dice.below(3); times > 0; --times) json = with_other_value(json, pieces, dice);
    }
    num_read += survives(text("symbol ", round), [&] { use_symbol(json); });
  }
  CHECK(num_read > 0);
  CHECK(num_read < rounds);
}

TEST(damaged_parameter_files_are_read_or_refused) {
  const auto little_endian = [](uint64_t value, size_t bytes) {
    std::string piece;
    for (size_t i = 0; i < bytes; ++i) piece += char(value >> (8 * i));
    return piece;
  };
  std::vector<std::string> pieces;
  for (uint32_t word : {0u, 1u, 2u, 12u, 0x112u, 0xF993fac8u, 0xF993fac9u, 0xF993facau, 0x7fffffffu, 0xffffffffu}) {
    pieces.push_back(little_endian(word, 4));
  }
  for (uint64_t word : {uint64_t(1) << 31, uint64_t(1) << 40, uint64_t(1) << 62, ~uint64_t(0), uint64_t(1) << 63}) {
    pieces.push_back(little_endian(word, 8));
  }
  const std::vector<std::string> paths = files_in("tests/golden/group/mlp_2dev", ".params");
  CHECK(paths.size() >= 2);
  const long rounds = setting("FUZZ_ROUNDS", 300), seed = setting("FUZZ_SEED", 1);
  long num_read = 0;
  for (long round = 0; round < rounds; ++round) {
    Dice dice(uint64_t(seed) * 1000003 + uint64_t(round));
    // Most of a file is numbers, any of which is valid; the damage therefore concentrates on the first 200 bytes.
    const std::string whole = read_file(paths[size_t(round) % paths.size()]);
    const size_t head = dice.below(4) ? std::min<size_t>(whole.size(), 200) : whole.size();
    const std::string bytes = damaged(whole.substr(0, head), pieces, dice) + whole.substr(head);
    num_read += survives(text("parameters ", round), [&] {
      const NamedArrays arrays = load_params(bytes.data(), bytes.size(), "damaged");
      params_bytes(arrays);
    });
  }
  CHECK(num_read > 0);
  CHECK(num_read < rounds);
}

UNIT_MAIN()
