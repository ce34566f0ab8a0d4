// SPDX-License-Identifier: Apache-2.0
// CSVIter: rows of numbers from text files. Nothing is kept but the row that is read, so files may be of any size.
#include <charconv>
#include <cmath>
#include <cstring>

#include "batch_loader.hpp"
#include "record_file.hpp"

namespace cohort_mxnet {
namespace {

template <typename Number>
bool parse_number(std::string_view text, Number &number) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return false;
  if constexpr (std::is_floating_point_v<Number>) {
    if (error == std::errc::result_out_of_range) {
      const bool is_small =
          text.find("e-") != text.npos || text.find("E-") != text.npos || text[text.front() == '-'] == '0';
      number = is_small ? Number(0) : std::numeric_limits<Number>::infinity();
      if (text.front() == '-') number = -number;
      return true;
    }
  }
  return error == std::errc();
}

// A file of rows, one a line, of numbers with commas between them. A comma may end a row. Empty lines are no rows.
class CsvReader {
 public:
  CsvReader(const std::string &uri, size_t num_columns)
      : path_(uri), file_(open_file(uri, "rb")), num_columns_(num_columns) {
    skip_byte_order_mark();
  }

  // Writes the next row's numbers. False at the end.
  template <typename Number>
  bool next(Number *row) {
    size_t column = 0;
    for (bool is_row_over = false; !is_row_over;) {
      const int end = read_field();
      is_row_over = end != ',';
      if (is_row_over) ++line_;
      if (is_row_over && field_.empty()) {
        if (column == num_columns_) return true;  // a comma ended the row
        if (column == 0 && end == EOF) return false;
        if (column == 0) {
          is_row_over = false;
          continue;
        }
      }
      if (column == num_columns_) refuse(is_row_over, "more of them");
      if (!parse_number(field_, row[column]))
        refuse(is_row_over, "'" + field_.substr(0, 40) + "' in column " + std::to_string(column + 1));
      ++column;
      if (is_row_over && column < num_columns_) refuse(is_row_over, std::to_string(column));
    }
    return true;
  }

  void rewind() {
    std::rewind(file_.get());
    line_ = 0;
    skip_byte_order_mark();
  }

  const std::string &path() const { return path_; }

 private:
  static constexpr size_t kMaxFieldBytes = 4096;

  // Reads up to the next comma or the end of the line, into field_ without blanks around it. The character that ended
  // it.
  int read_field() {
    field_.clear();
    for (;;) {
      int c = std::getc(file_.get());
      if (c == '\r') {
        c = std::getc(file_.get());
        if (c != '\n' && c != EOF) std::ungetc(c, file_.get());
        c = '\n';
      }
      if (c == EOF && std::ferror(file_.get())) fail(path_ + ": cannot read the file");
      if (c == ',' || c == '\n' || c == EOF) {
        while (!field_.empty() && (field_.back() == ' ' || field_.back() == '\t')) field_.pop_back();
        return c;
      }
      if (field_.empty() && (c == ' ' || c == '\t')) continue;
      if (field_.size() == kMaxFieldBytes) refuse(false, "a field of more than 4096 characters");
      field_ += static_cast<char>(c);
    }
  }

  [[noreturn]] void refuse(bool is_row_over, const std::string &found) const {
    fail(path_ + ", line " + std::to_string(line_ + (is_row_over ? 0 : 1)) + ": expected " +
         std::to_string(num_columns_) + " numbers, found " + found);
  }

  void skip_byte_order_mark() {
    char mark[3];
    if (std::fread(mark, 1, 3, file_.get()) != 3 || std::memcmp(mark, "\xef\xbb\xbf", 3) != 0) std::rewind(file_.get());
  }

  const std::string path_;
  File file_;
  const size_t num_columns_;
  std::string field_;
  uint64_t line_ = 0;  // lines read to their end
};

size_t num_elements(const cohort::Shape &shape) { return batch_bytes(1, shape, COHORT_DTYPE_INT8); }

template <typename Number>
class CsvRows final : public RowSource {
 public:
  CsvRows(const IterParams &params, const cohort::Shape &data_shape, const cohort::Shape &label_shape)
      : data_(params.text("data_csv"), num_elements(data_shape)), num_label_(num_elements(label_shape)) {
    const std::string label = params.text("label_csv");
    if (label != "NULL") label_ = std::make_unique<CsvReader>(label, num_label_);
  }

  bool next(void *data, void *label, uint64_t &index) override {
    if (!data_.next(static_cast<Number *>(data))) return false;
    auto *const label_row = static_cast<Number *>(label);
    if (!label_) {
      std::fill_n(label_row, num_label_, Number(0));
    } else if (!label_->next(label_row)) {
      fail(label_->path() + ": expected a label for each row of " + data_.path() + ", found " + std::to_string(row_));
    }
    index = row_++;
    return true;
  }

  void rewind() override {
    data_.rewind();
    if (label_) label_->rewind();
    row_ = 0;
  }

 private:
  CsvReader data_;
  std::unique_ptr<CsvReader> label_;  // null: all labels are 0
  const size_t num_label_;
  uint64_t row_ = 0;
};

template <typename Number>
std::shared_ptr<DataIter> create(const IterParams &params, cohort_dtype dtype) {
  const cohort::Shape data_shape = params.shape("data_shape");
  // Without a file, and for one number for each row, labels have one axis.
  cohort::Shape label_shape = params.text("label_csv") == "NULL" ? cohort::Shape{1} : params.shape("label_shape");
  auto rows = std::make_unique<CsvRows<Number>>(params, data_shape, label_shape);
  if (label_shape == cohort::Shape{1}) label_shape.clear();
  return std::make_shared<BatchLoader>(std::move(rows), RowFormat{data_shape, dtype}, RowFormat{label_shape, dtype},
                                       params.integer("batch_size", 1, INT32_MAX), params.flag("round_batch"));
}

}  // namespace

std::shared_ptr<DataIter> create_csv_iter(const IterParams &params) {
  const cohort_dtype dtype = params.dtype("dtype", COHORT_DTYPE_FLOAT32);
  switch (dtype) {
    case COHORT_DTYPE_FLOAT32:
      return create<float>(params, dtype);
    case COHORT_DTYPE_INT32:
      return create<int32_t>(params, dtype);
    case COHORT_DTYPE_INT64:
      return create<int64_t>(params, dtype);
    default:
      params.refuse("dtype", "float32, int32 or int64");
  }
}

}  // namespace cohort_mxnet
