// SPDX-License-Identifier: Apache-2.0
// The operators that frontends are told of. A creator, or OpHandle, is the address of one of them, for the whole
// process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handles.hpp"

namespace cohort_mxnet {

struct Operator {
  std::string name;
  std::string canonical;  // its name in the JSON of symbols
  std::string doc;
  std::string count_attr;  // the attribute that counts the inputs, as MXNet knows it; "" if there is none
  bool is_variadic = false;
  bool is_known = true;  // false: it is only listed
  size_t num_inputs = 0;
  bool takes_context = false;  // has an attribute `ctx`
  bool infers_dtype = false;   // has no input, and takes the type of a given output if none is named
  std::vector<std::string> arg_names, arg_types, arg_docs;
  std::vector<const char *> arg_name_pointers, arg_type_pointers, arg_doc_pointers;
};

const std::vector<Operator> &operators();
const Operator &operator_of(const void *creator);
// Null if there is none of that name.
const Operator *find_operator(std::string_view name);

}  // namespace cohort_mxnet
