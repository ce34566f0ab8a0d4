// SPDX-License-Identifier: Apache-2.0
// MNISTIter: images and labels from two files in the idx format of the MNIST database. Pixels are divided by 256.
#include "data_iter.hpp"
#include "record_file.hpp"

namespace cohort_mxnet {
namespace {

// An idx file of unsigned bytes: a magic number that ends with the number of axes, the lengths, the bytes.
class IdxFile {
 public:
  IdxFile(const std::string &uri, uint32_t num_axes) : path_(uri), file_(open_file(uri, "rb")) {
    const uint32_t magic = read_big_endian(), expected = 0x800 + num_axes;
    if (magic != expected)
      fail(path_ + ": expected an idx file of bytes that begins with " + std::to_string(expected) + ", found " +
           std::to_string(magic));
    for (uint32_t i = 0; i < num_axes; ++i) lengths_.push_back(read_big_endian());
  }

  const cohort::Shape &lengths() const { return lengths_; }

  // The bytes of the items from begin up to end, which are in the file or this fails: a damaged length allocates no
  // more than the file has.
  std::vector<uint8_t> read_items(uint64_t begin, uint64_t end) {
    const cohort::Shape item(lengths_.begin() + 1, lengths_.end());
    const uint64_t item_bytes = batch_bytes(1, item, COHORT_DTYPE_UINT8);
    const uint64_t header_bytes = 4 * (1 + lengths_.size());
    const uint64_t data_bytes = batch_bytes(lengths_[0], item, COHORT_DTYPE_UINT8);
    if (fseeko(file_.get(), 0, SEEK_END) != 0) fail(path_ + ": cannot find the end of the file");
    const off_t file_bytes = ftello(file_.get());
    if (file_bytes < 0 || static_cast<uint64_t>(file_bytes) - header_bytes < data_bytes)
      fail(path_ + ": expected " + std::to_string(data_bytes) + " bytes after the header, found " +
           std::to_string(file_bytes - static_cast<off_t>(header_bytes)));
    std::vector<uint8_t> bytes((end - begin) * item_bytes);
    if (fseeko(file_.get(), static_cast<off_t>(header_bytes + begin * item_bytes), SEEK_SET) != 0 ||
        std::fread(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
      fail(path_ + ": cannot read the file");
    return bytes;
  }

 private:
  uint32_t read_big_endian() {
    unsigned char bytes[4];
    if (std::fread(bytes, 1, sizeof bytes, file_.get()) != sizeof bytes) fail(path_ + ": the file ends in its header");
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }

  const std::string path_;
  File file_;
  cohort::Shape lengths_;
};

// A last batch that is not full is left out.
class MnistIter final : public DataIter {
 public:
  explicit MnistIter(const IterParams &params)
      : batch_size_(static_cast<size_t>(params.integer("batch_size", 1, INT32_MAX))),
        dtype_(params.dtype("dtype", COHORT_DTYPE_FLOAT32)) {
    IdxFile images(params.text("image"), 3), labels(params.text("label"), 1);
    const int64_t num = images.lengths()[0], rows = images.lengths()[1], columns = images.lengths()[2];
    if (labels.lengths()[0] != num)
      fail(params.text("label") + ": expected labels of " + std::to_string(num) + " images, found " +
           std::to_string(labels.lengths()[0]));
    const int64_t num_parts = params.integer("num_parts", 1, INT32_MAX);
    const int64_t part = params.integer("part_index", 0, num_parts - 1);
    const auto bound = [&](int64_t of) { return static_cast<uint64_t>(num * of / num_parts); };
    begin_ = bound(part);
    const uint64_t end = bound(part + 1);
    images_ = images.read_items(begin_, end);
    labels_ = labels.read_items(begin_, end);
    image_bytes_ = labels_.empty() ? 0 : images_.size() / labels_.size();
    if (params.flag("flat")) {
      image_shape_ = {rows * columns};
    } else {
      image_shape_ = {1, rows, columns};
    }
    order_ = params.flag("shuffle")
                 ? shuffled(begin_, end, static_cast<uint64_t>(params.integer("seed", INT32_MIN, INT32_MAX)))
                 : in_order(begin_, end);
    batch_bytes(static_cast<int64_t>(batch_size_), image_shape_, COHORT_DTYPE_FLOAT32);
  }

  bool next(Batch &batch) override {
    if (order_.size() - position_ < batch_size_) return false;
    std::vector<float> data, label;
    data.reserve(batch_size_ * image_bytes_);
    label.reserve(batch_size_);
    batch.index.assign(order_.begin() + static_cast<ptrdiff_t>(position_),
                       order_.begin() + static_cast<ptrdiff_t>(position_ + batch_size_));
    for (const uint64_t item : batch.index) {
      const uint8_t *const image = images_.data() + (item - begin_) * image_bytes_;
      for (size_t i = 0; i < image_bytes_; ++i) data.push_back(static_cast<float>(image[i]) * (1.0f / 256.0f));
      label.push_back(labels_[item - begin_]);
    }
    cohort::Shape shape{static_cast<int64_t>(batch_size_)};
    batch.label = in_dtype(cohort::NDArray::from_host(label, shape));
    shape.insert(shape.end(), image_shape_.begin(), image_shape_.end());
    batch.data = in_dtype(cohort::NDArray::from_host(data, shape));
    batch.num_pad = 0;
    position_ += batch_size_;
    return true;
  }

  void before_first() override { position_ = 0; }

 private:
  static std::vector<uint64_t> in_order(uint64_t begin, uint64_t end) {
    std::vector<uint64_t> order;
    for (uint64_t i = begin; i < end; ++i) order.push_back(i);
    return order;
  }

  cohort::NDArray in_dtype(cohort::NDArray array) const {
    return dtype_ == COHORT_DTYPE_FLOAT32 ? array : array.cast(dtype_);
  }

  const size_t batch_size_;
  const cohort_dtype dtype_;
  uint64_t begin_ = 0;  // the first item of this part
  std::vector<uint8_t> images_, labels_;
  size_t image_bytes_ = 0;
  cohort::Shape image_shape_;
  std::vector<uint64_t> order_;
  size_t position_ = 0;
};

}  // namespace

std::shared_ptr<DataIter> create_mnist_iter(const IterParams &params) { return std::make_shared<MnistIter>(params); }

}  // namespace cohort_mxnet
