// SPDX-License-Identifier: Apache-2.0
// Batches of the rows of a source, for iterators that read row by row.
#pragma once

#include "data_iter.hpp"

namespace cohort_mxnet {

class RowSource {
 public:
  virtual ~RowSource() = default;
  // Writes the next row and its label, of the shapes and types that the loader was given. False at the end.
  virtual bool next(void *data, void *label, uint64_t &index) = 0;
  virtual void rewind() = 0;
  // Around the rows of a batch. A source may leave work of next() to finish(); begin() drops that of a batch that
  // failed.
  virtual void begin() {}
  virtual void finish() {}
};

struct RowFormat {
  cohort::Shape shape;
  cohort_dtype dtype;
};

// With round_batch the last batch is filled up with the first rows, and the next pass begins after these. Without, it
// is filled up with rows of the batch before.
class BatchLoader : public DataIter {
 public:
  BatchLoader(std::unique_ptr<RowSource> source, RowFormat data, RowFormat label, int64_t batch_size, bool round_batch);
  bool next(Batch &batch) override;
  void before_first() override;

 private:
  bool read_row(int64_t row);

  const std::unique_ptr<RowSource> source_;
  const RowFormat data_, label_;
  const int64_t batch_size_;
  const bool round_batch_;
  const size_t data_row_bytes_, label_row_bytes_;
  std::vector<unsigned char> data_buffer_, label_buffer_;
  std::vector<uint64_t> index_;
  bool is_at_end_ = false;
  bool has_wrapped_ = false;  // the source stands behind the rows that filled the last batch up
};

}  // namespace cohort_mxnet
