// SPDX-License-Identifier: Apache-2.0
// Data iterators: what they have in common, how a kind of them is described, and the parameters that the host gives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "handles.hpp"

namespace cohort_mxnet {

// A batch. The arrays are new ones for each batch: the host may keep them.
struct Batch {
  cohort::NDArray data, label;
  std::vector<uint64_t> index;  // the number of each row in the data set
  int num_pad = 0;              // rows at the end that only fill the batch up
};

class DataIter : public Object {
 public:
  static constexpr Kind kKind = Kind::kDataIter;
  static constexpr const char *kName = "a data iterator";

  DataIter() : Object(kKind) {}
  // Reads the next batch. False at the end, until before_first().
  virtual bool next(Batch &batch) = 0;
  virtual void before_first() = 0;
};

struct IterParam {
  const char *name, *type;
  const char *default_text;  // as MXNet prints it, text and int between quotes; null: a value is required
  const char *doc;
};

class IterParams;

struct IterKind {
  const char *name, *doc;
  std::vector<IterParam> params;
  std::shared_ptr<DataIter> (*create)(const IterParams &params);  // null: not implemented
};

const std::vector<IterKind> &iter_kinds();

// The parameters of a new iterator: those that the host gave, and defaults. Others than those of its kind are ignored,
// as MXNet does.
class IterParams {
 public:
  IterParams(const IterKind &kind, uint32_t num, const char *const *keys, const char *const *values);

  std::string text(const char *name) const;
  // Whether a parameter that the kind may lack has its default.
  bool is_default(const char *name) const;
  int64_t integer(const char *name, int64_t low, int64_t high) const;
  double number(const char *name) const;
  bool flag(const char *name) const;
  // Lengths of 1 or more.
  cohort::Shape shape(const char *name) const;
  // `fallback` where MXNet's text is None.
  cohort_dtype dtype(const char *name, cohort_dtype fallback) const;
  [[noreturn]] void refuse(const char *name, const std::string &expected) const;

 private:
  const IterKind &kind_;
  std::unordered_map<std::string, std::string> values_;
};

// The bytes of `num` arrays of a shape and dtype. Refuses more than memory can have.
size_t batch_bytes(int64_t num, const cohort::Shape &shape, cohort_dtype dtype);

// The numbers from begin up to end, in an order that follows from the seed.
std::vector<uint64_t> shuffled(uint64_t begin, uint64_t end, uint64_t seed);

std::shared_ptr<DataIter> create_csv_iter(const IterParams &params);
std::shared_ptr<DataIter> create_mnist_iter(const IterParams &params);
std::shared_ptr<DataIter> create_image_iter(const IterParams &params);
std::shared_ptr<DataIter> create_uint8_image_iter(const IterParams &params);
std::shared_ptr<DataIter> create_int8_image_iter(const IterParams &params);

}  // namespace cohort_mxnet
