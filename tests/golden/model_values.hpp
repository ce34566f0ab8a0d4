// SPDX-License-Identifier: Apache-2.0
// Parameters and inputs of model cases, which a formula computes: they are not stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "value.hpp"

namespace golden {

// Element i of stream p: 32 bits, and the same evenly spread over [-0.5, 0.5).
uint32_t formula_bits(uint32_t seed, uint32_t p, uint32_t i);
double formula_unit(uint32_t seed, uint32_t p, uint32_t i);

// A float32 array for an input, a parameter or a head gradient as model.json describes it. `prefix` is "eval_" for the
// values of inference, if they differ.
HostArray formula_array(const Value &description, uint32_t seed, const std::string &prefix = "");

NDArray to_device(const HostArray &array, const Context &context);

// Extends a CRC-32 (polynomial 0xedb88320), which starts at 0, by the bytes of an array.
uint32_t crc32_update(uint32_t crc, const std::vector<unsigned char> &bytes);

}  // namespace golden
