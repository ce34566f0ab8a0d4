// SPDX-License-Identifier: Apache-2.0
// Parameters and inputs of a model case, which a formula gives: nothing of them is stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "value.hpp"

namespace golden {

// Element i of stream p: 32 bits, and the same evenly spread over [-0.5, 0.5).
uint32_t formula_bits(uint32_t seed, uint32_t p, uint32_t i);
double formula_unit(uint32_t seed, uint32_t p, uint32_t i);

// A float32 array for an input, a parameter or a head gradient as model.json describes it. `prefix`: "eval_" for the
// values of inference where there are such.
HostArray formula_array(const Value &description, uint32_t seed, const std::string &prefix = "");

NDArray to_device(const HostArray &array, const cohort_context &context);

// Of all bytes so far, with those of another array: CRC-32 with the polynomial 0xedb88320. Starts at 0.
uint32_t crc_with(uint32_t crc, const std::vector<unsigned char> &bytes);

}  // namespace golden
