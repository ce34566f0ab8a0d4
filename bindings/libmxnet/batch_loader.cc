// SPDX-License-Identifier: Apache-2.0
#include "batch_loader.hpp"

namespace cohort_mxnet {
namespace {

cohort::NDArray make_array(const std::vector<unsigned char> &bytes, int64_t batch_size, const RowFormat &row) {
  cohort::Shape shape{batch_size};
  shape.insert(shape.end(), row.shape.begin(), row.shape.end());
  return cohort::NDArray::from_host(bytes.data(), bytes.size(), shape, row.dtype);
}

}  // namespace

BatchLoader::BatchLoader(std::unique_ptr<RowSource> source, RowFormat data, RowFormat label, int64_t batch_size,
                         bool round_batch)
    : source_(std::move(source)),
      data_(std::move(data)),
      label_(std::move(label)),
      batch_size_(batch_size),
      round_batch_(round_batch),
      data_row_bytes_(batch_bytes(1, data_.shape, data_.dtype)),
      label_row_bytes_(batch_bytes(1, label_.shape, label_.dtype)),
      data_buffer_(batch_bytes(batch_size, data_.shape, data_.dtype)),
      label_buffer_(batch_bytes(batch_size, label_.shape, label_.dtype)),
      index_(static_cast<size_t>(batch_size)) {}

bool BatchLoader::read_row(int64_t row) {
  const auto at = static_cast<size_t>(row);
  return source_->next(&data_buffer_[at * data_row_bytes_], &label_buffer_[at * label_row_bytes_], index_[at]);
}

bool BatchLoader::next(Batch &batch) {
  if (is_at_end_) return false;
  source_->begin();
  int64_t row = 0;
  while (row < batch_size_ && read_row(row)) ++row;
  const int64_t num_pad = batch_size_ - row;
  if (num_pad != 0) is_at_end_ = true;
  if (row == 0) return false;
  if (num_pad != 0 && round_batch_) {
    source_->rewind();
    for (; row < batch_size_; ++row) {
      if (read_row(row)) continue;
      source_->rewind();  // the batch is larger than the data set
      if (!read_row(row)) fail("the data set has changed while it was read");
    }
  }
  source_->finish();
  has_wrapped_ = num_pad != 0 && round_batch_;  // after an error the next pass begins with the first row
  batch.data = make_array(data_buffer_, batch_size_, data_);
  batch.label = make_array(label_buffer_, batch_size_, label_);
  batch.index = index_;
  batch.num_pad = static_cast<int>(num_pad);
  return true;
}

void BatchLoader::before_first() {
  if (!has_wrapped_) source_->rewind();
  has_wrapped_ = false;
  is_at_end_ = false;
}

}  // namespace cohort_mxnet
