// SPDX-License-Identifier: Apache-2.0
#include "model_values.hpp"

#include <array>
#include <cstring>

namespace golden {
namespace {

uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

constexpr uint32_t kPlanes = 500000;  // stream offset of the values that all elements of a plane share

}  // namespace

uint32_t formula_bits(uint32_t seed, uint32_t p, uint32_t i) { return mix(seed + p * 2654435761u + i); }

double formula_unit(uint32_t seed, uint32_t p, uint32_t i) { return formula_bits(seed, p, i) / 4294967296.0 - 0.5; }

HostArray formula_array(const Value &description, uint32_t seed, const std::string &prefix) {
  HostArray array;
  array.shape = description.at("shape").as_integers();
  array.bytes.resize(static_cast<size_t>(array.size()) * sizeof(float));
  const uint32_t p = static_cast<uint32_t>(description.at("p").as_integer()),
                 count = static_cast<uint32_t>(array.size());
  const auto fill = [&](auto value) {
    for (uint32_t i = 0; i < count; ++i) {
      const float element = static_cast<float>(value(i));
      std::memcpy(array.bytes.data() + i * sizeof(float), &element, sizeof(float));
    }
  };
  const Value *const fill_rule = description.find("fill");
  const std::string kind = fill_rule ? fill_rule->at("kind").as_text() : "real";
  const Value &numbers = fill_rule ? *fill_rule : description;
  if (kind == "real" || kind == "planes") {
    const double offset = numbers.number(prefix + "offset", numbers.at("offset").as_real());
    const double scale = numbers.number(prefix + "scale", numbers.at("scale").as_real());
    const double plane_scale = kind == "planes" ? numbers.at("plane_scale").as_real() : 0;
    int64_t plane = 1;
    for (size_t axis = 2; axis < array.shape.size(); ++axis) plane *= array.shape[axis];
    if (kind == "real") {
      fill([=](uint32_t i) { return offset + scale * formula_unit(seed, p, i); });
    } else {
      fill([=](uint32_t i) {
        const uint32_t which = static_cast<uint32_t>(i / plane);
        return (offset + scale * formula_unit(seed, p, i)) + plane_scale * formula_unit(seed, p + kPlanes, which);
      });
    }
  } else if (kind == "int") {
    const int64_t low = numbers.at("lo").as_integer(), range = numbers.at("hi").as_integer() - low;
    if (range < 1) throw BadCase("no integers in " + numbers.describe());
    fill([=](uint32_t i) { return low + formula_bits(seed, p, i) % range; });
  } else if (kind == "const") {
    const double value = numbers.at("value").as_real();
    fill([=](uint32_t) { return value; });
  } else if (kind == "list") {
    const std::vector<double> values = numbers.at("values").as_reals();
    if (values.size() != count)
      throw BadCase("expected " + std::to_string(count) + " values, found " + fill_rule->describe());
    fill([&](uint32_t i) { return values[i]; });
  } else {
    throw BadCase("there is no way to fill called '" + kind + "'");
  }
  return array;
}

NDArray to_device(const HostArray &array, const Context &context) {
  return NDArray::from_host(array.bytes.data(), array.bytes.size(), array.shape, array.dtype, context);
}

uint32_t crc32_update(uint32_t crc, const std::vector<unsigned char> &bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t entry = i;
      for (int bit = 0; bit < 8; ++bit) entry = entry & 1 ? (entry >> 1) ^ 0xedb88320u : entry >> 1;
      entries[i] = entry;
    }
    return entries;
  }();
  crc = ~crc;
  for (const unsigned char byte : bytes) crc = table[(crc ^ byte) & 255] ^ (crc >> 8);
  return ~crc;
}

}  // namespace golden
