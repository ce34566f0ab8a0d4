// SPDX-License-Identifier: Apache-2.0
// ImageRecordIter and its relatives: JPEG and PNG images in RecordIO files, decoded, scaled, cropped, mirrored and
// normalised. Random numbers are drawn while records are read, in order, so that a seed gives the same batches with any
// number of threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <system_error>
#include <thread>

#include "batch_loader.hpp"
#include "record_file.hpp"

namespace cohort_mxnet {
namespace {

// The beginning of a record: a label, or the number of labels that follow it, and the number of the image.
struct RecordHeader {
  uint32_t num_labels;  // 0: `label` is the only one
  float label;
  uint64_t id, unused;
};
static_assert(sizeof(RecordHeader) == 24, "the layout of the file");

struct ImageSettings {
  int64_t channels, height, width;  // of an image in a batch
  int64_t resize = -1;              // length of the shorter edge; -1: as it is
  int64_t pad = 0;
  unsigned char fill_value = 255;
  int64_t inter_method = 1;
  bool mirror = false, rand_mirror = false, rand_crop = false;
  std::array<float, 3> mean{}, deviation{1, 1, 1};
  float scale = 1;
  std::vector<float> mean_image;  // of the shape in a batch; empty: none
};

// An image that is to be decoded into a batch.
struct ImageJob {
  std::string bytes;
  uint64_t id;
  void *to;
  double crop_x, crop_y;  // 0 to 1: where the crop lies between its first and its last place
  bool mirror;
};

// Rows of pixels, channels last.
struct Pixels {
  cohort::NDArray array;
  const unsigned char *data;
  int64_t height, width, channels;

  explicit Pixels(cohort::NDArray of) : array(std::move(of)), data(static_cast<unsigned char *>(array.data())) {
    const cohort::Shape shape = array.shape();
    height = shape[0];
    width = shape[1];
    channels = shape[2];
  }
};

Pixels resized(const ImageSettings &settings, const Pixels &image, int64_t height, int64_t width) {
  int64_t method = settings.inter_method;
  if (method == 9) method = height < image.height ? 3 : 2;  // area means for smaller images, cubic for larger ones
  return Pixels(cohort::invoke("_cvimresize", {image.array}, {{"w", width}, {"h", height}, {"interp", method}})[0]);
}

// The image before the crop, which is at least as large as the crop.
Pixels decode(const ImageSettings &settings, const ImageJob &job, const cohort::Context &context) {
  const cohort::NDArray bytes = cohort::NDArray::from_host(
      job.bytes.data(), job.bytes.size(), {static_cast<int64_t>(job.bytes.size())}, COHORT_DTYPE_UINT8, context);
  Pixels image(cohort::invoke("_cvimdecode", {bytes}, {{"flag", settings.channels == 1 ? 0 : 1}, {"to_rgb", true}})[0]);
  const int64_t shorter = std::min(image.height, image.width);
  if (settings.resize > 0 && shorter != settings.resize) {
    const auto scaled = [&](int64_t length) { return length * settings.resize / shorter; };
    image = resized(settings, image, scaled(image.height), scaled(image.width));
  }
  if (settings.pad > 0) {
    image = Pixels(
        cohort::invoke("_cvcopyMakeBorder", {image.array},
                       {{"top", settings.pad},
                        {"bot", settings.pad},
                        {"left", settings.pad},
                        {"right", settings.pad},
                        {"values", cohort::Shape(static_cast<size_t>(image.channels), settings.fill_value)}})[0]);
  }
  const auto enlarged = [](int64_t length, int64_t from, int64_t to) {
    return static_cast<int64_t>(static_cast<float>(to) / static_cast<float>(from) * static_cast<float>(length));
  };
  if (image.height < settings.height)
    image = resized(settings, image, settings.height, enlarged(image.width, image.height, settings.height));
  if (image.width < settings.width)
    image = resized(settings, image, enlarged(image.height, image.width, settings.width), settings.width);
  return image;
}

// Writes the crop of an image into a batch, channels first. `value_of` makes an element of a pixel's channel.
template <typename Element, typename ValueOf>
void write_crop(const ImageSettings &settings, const ImageJob &job, const Pixels &image, ValueOf value_of) {
  const int64_t room_y = image.height - settings.height, room_x = image.width - settings.width;
  if (room_y < 0 || room_x < 0) fail("image " + std::to_string(job.id) + " cannot be made large enough");
  const auto place = [](int64_t room, double part) {
    return std::min(room, static_cast<int64_t>(part * static_cast<double>(room + 1)));
  };
  const int64_t top = settings.rand_crop ? place(room_y, job.crop_y) : room_y / 2;
  const int64_t left = settings.rand_crop ? place(room_x, job.crop_x) : room_x / 2;
  auto *to = static_cast<Element *>(job.to);
  for (int64_t c = 0; c < settings.channels; ++c) {
    for (int64_t y = top; y < top + settings.height; ++y) {
      for (int64_t column = 0; column < settings.width; ++column) {
        const int64_t x = left + (job.mirror ? settings.width - 1 - column : column);
        const unsigned char pixel = image.data[(y * image.width + x) * image.channels + c];
        *to = value_of(pixel, c, to - static_cast<Element *>(job.to));
        ++to;
      }
    }
  }
}

// Where the records of a file begin, without reading them.
std::vector<uint64_t> record_positions(const std::string &uri) {
  std::vector<uint64_t> positions;
  RecordReader reader(uri);
  for (uint64_t position = 0; reader.skip(); position = reader.tell()) positions.push_back(position);
  return positions;
}

class ImageRows final : public RowSource {
 public:
  ImageRows(const IterParams &params, ImageSettings settings, cohort_dtype dtype, int64_t label_width)
      : settings_(std::move(settings)),
        dtype_(dtype),
        label_width_(static_cast<size_t>(label_width)),
        path_(params.text("path_imgrec")),
        reader_(path_),
        shuffles_(params.flag("shuffle")),
        order_random_(static_cast<uint64_t>(params.integer("seed", INT32_MIN, INT32_MAX))),
        image_random_(seed_of_images(params)),
        num_threads_(static_cast<size_t>(params.integer("preprocess_threads", 1, 1024))) {
    const std::vector<uint64_t> all = record_positions(path_);
    if (all.empty()) fail(path_ + ": there are no records");
    const uint64_t num_parts = static_cast<uint64_t>(params.integer("num_parts", 1, INT32_MAX));
    const uint64_t part = static_cast<uint64_t>(params.integer("part_index", 0, static_cast<int64_t>(num_parts) - 1));
    const auto bound = [&](uint64_t of) { return static_cast<ptrdiff_t>(all.size() * of / num_parts); };
    positions_.assign(all.begin() + bound(part), all.begin() + bound(part + 1));
    if (positions_.empty()) fail(path_ + ": expected a record for each part, found " + std::to_string(all.size()));
    order();
  }

  bool next(void *data, void *label, uint64_t &index) override {
    if (at_ == positions_.size()) return false;
    reader_.seek(positions_[at_]);
    if (!reader_.next(record_)) fail(path_ + ": the file has changed while it was read");
    ++at_;
    RecordHeader header;
    if (record_.size() < sizeof header) fail(path_ + ": a record is shorter than the header of an image");
    std::memcpy(&header, record_.data(), sizeof header);
    const size_t label_bytes = size_t{header.num_labels} * sizeof(float);
    if (record_.size() - sizeof header < label_bytes)
      fail(path_ + ", image " + std::to_string(header.id) + ": the record is shorter than its labels");
    read_label(header, static_cast<float *>(label));
    index = header.id;
    // As many numbers are drawn for each image, whatever the settings.
    const double crop_x = draw(), crop_y = draw();
    const bool mirrors = draw() < 0.5;
    jobs_.push_back({record_.substr(sizeof header + label_bytes), header.id, data, crop_x, crop_y,
                     settings_.mirror || (settings_.rand_mirror && mirrors)});
    return true;
  }

  void begin() override { jobs_.clear(); }

  void finish() override {
    std::vector<ImageJob> jobs;
    jobs.swap(jobs_);
    std::vector<std::exception_ptr> errors(jobs.size());
    std::atomic<size_t> next_job{0};
    const auto run = [&](int32_t thread) {
      // A context of its own for each thread: work on one context is done in order.
      const cohort::Context context(cohort_context{COHORT_DEVICE_CPU, thread});
      for (size_t i = next_job++; i < jobs.size(); i = next_job++) {
        try {
          complete(jobs[i], context);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      }
    };
    std::vector<std::thread> threads;
    try {
      for (size_t t = 1; t < std::min(num_threads_, jobs.size()); ++t)
        threads.emplace_back(run, static_cast<int32_t>(t));
    } catch (const std::system_error &) {  // fewer threads do the same work
    }
    run(0);
    for (std::thread &thread : threads) thread.join();
    for (const std::exception_ptr &error : errors)
      if (error) std::rethrow_exception(error);
  }

  void rewind() override {
    at_ = 0;
    order();
  }

 private:
  static uint64_t seed_of_images(const IterParams &params) {
    const bool is_given = params.text("seed_aug") != "None";
    return static_cast<uint64_t>(params.integer(is_given ? "seed_aug" : "seed", INT32_MIN, INT32_MAX));
  }

  void order() {
    if (!shuffles_) return;
    for (size_t i = positions_.size(); i > 1; --i) std::swap(positions_[i - 1], positions_[order_random_() % i]);
  }

  double draw() { return static_cast<double>(image_random_() >> 11) * 0x1p-53; }

  void read_label(const RecordHeader &header, float *label) const {
    const size_t found = header.num_labels == 0 ? 1 : header.num_labels;
    if (found != label_width_)
      fail(path_ + ", image " + std::to_string(header.id) + ": expected " + std::to_string(label_width_) +
           " labels, found " + std::to_string(found));
    if (header.num_labels == 0) {
      *label = header.label;
    } else {
      std::memcpy(label, record_.data() + sizeof header, found * sizeof(float));
    }
  }

  void complete(const ImageJob &job, const cohort::Context &context) const {
    try {
      const Pixels image = decode(settings_, job, context);
      const ImageSettings &s = settings_;
      if (dtype_ == COHORT_DTYPE_UINT8) {
        write_crop<uint8_t>(s, job, image, [](unsigned char pixel, int64_t, int64_t) { return pixel; });
      } else if (dtype_ == COHORT_DTYPE_INT8) {
        write_crop<int8_t>(s, job, image, [](unsigned char pixel, int64_t, int64_t) {
          return static_cast<int8_t>(std::min<int>(pixel, INT8_MAX));
        });
      } else if (!s.mean_image.empty()) {
        write_crop<float>(s, job, image, [&](unsigned char pixel, int64_t, int64_t i) {
          return (static_cast<float>(pixel) - s.mean_image[static_cast<size_t>(i)]) * s.scale;
        });
      } else {
        write_crop<float>(s, job, image, [&](unsigned char pixel, int64_t c, int64_t) {
          const auto channel = static_cast<size_t>(c);
          return (static_cast<float>(pixel) - s.mean[channel]) / s.deviation[channel] * s.scale;
        });
      }
    } catch (const cohort::Error &error) {
      fail(path_ + ", image " + std::to_string(job.id) + ": " + error.what());
    }
  }

  const ImageSettings settings_;
  const cohort_dtype dtype_;
  const size_t label_width_;
  const std::string path_;
  RecordReader reader_;
  std::vector<uint64_t> positions_;
  size_t at_ = 0;
  const bool shuffles_;
  std::mt19937_64 order_random_, image_random_;
  const size_t num_threads_;
  std::string record_;
  std::vector<ImageJob> jobs_;
};

// Refuses settings that would change images in ways that are not implemented.
void check_unused(const IterParams &params) {
  static const char *const kUnused[] = {"path_imglist",
                                        "rotate",
                                        "max_rotate_angle",
                                        "max_aspect_ratio",
                                        "min_aspect_ratio",
                                        "max_shear_ratio",
                                        "max_crop_size",
                                        "min_crop_size",
                                        "max_random_scale",
                                        "min_random_scale",
                                        "max_random_area",
                                        "min_random_area",
                                        "brightness",
                                        "contrast",
                                        "saturation",
                                        "pca_noise",
                                        "random_h",
                                        "random_s",
                                        "random_l",
                                        "random_resized_crop",
                                        "max_random_contrast",
                                        "max_random_illumination",
                                        "aug_seq",
                                        "shuffle_chunk_size"};
  for (const char *const name : kUnused)
    if (!params.is_default(name)) params.refuse(name, "the default: others are not implemented in Cohort");
}

std::vector<float> load_mean_image(const IterParams &params, const cohort::Shape &shape) {
  const std::string path = params.text("mean_img");
  if (path.empty()) return {};
  const cohort::Arrays loaded = cohort::Arrays::load(path);
  if (loaded.num() != 1 || !loaded.array(0) || loaded.array(0).shape() != shape)
    fail(path + ": expected one array of shape " + cohort::Attr("", shape).value);
  return loaded.array(0).read<float>();
}

std::shared_ptr<DataIter> create(const IterParams &params, cohort_dtype dtype) {
  check_unused(params);
  if (params.text("path_imgrec").empty()) params.refuse("path_imgrec", "a RecordIO file");
  if (params.dtype("dtype", dtype) != dtype) params.refuse("dtype", "None: the kind of iterator says it");
  const cohort::Shape shape = params.shape("data_shape");
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3))
    params.refuse("data_shape", "(3, height, width) or (1, height, width)");
  ImageSettings settings;
  settings.channels = shape[0];
  settings.height = shape[1];
  settings.width = shape[2];
  settings.resize = params.integer("resize", -1, 1 << 20);
  settings.pad = params.integer("pad", 0, 1 << 20);
  settings.fill_value = static_cast<unsigned char>(params.integer("fill_value", 0, 255));
  settings.inter_method = params.integer("inter_method", 0, 9);
  if (settings.inter_method > 4 && settings.inter_method != 9) params.refuse("inter_method", "0 to 4, or 9");
  settings.rand_crop = params.flag("rand_crop");
  if (dtype == COHORT_DTYPE_FLOAT32) {
    settings.mirror = params.flag("mirror");
    settings.rand_mirror = params.flag("rand_mirror");
    settings.scale = static_cast<float>(params.number("scale"));
    const char *const means[] = {"mean_r", "mean_g", "mean_b"}, *const deviations[] = {"std_r", "std_g", "std_b"};
    for (size_t c = 0; c < 3; ++c) {
      settings.mean[c] = static_cast<float>(params.number(means[c]));
      settings.deviation[c] = static_cast<float>(params.number(deviations[c]));
      if (settings.deviation[c] == 0) params.refuse(deviations[c], "a number other than 0");
    }
    settings.mean_image = load_mean_image(params, shape);
  }
  const int64_t label_width = params.integer("label_width", 1, 1 << 20);
  const cohort::Shape label_shape = label_width == 1 ? cohort::Shape{} : cohort::Shape{label_width};
  auto rows = std::make_unique<ImageRows>(params, std::move(settings), dtype, label_width);
  return std::make_shared<BatchLoader>(std::move(rows), RowFormat{shape, dtype},
                                       RowFormat{label_shape, COHORT_DTYPE_FLOAT32},
                                       params.integer("batch_size", 1, INT32_MAX), params.flag("round_batch"));
}

}  // namespace

std::shared_ptr<DataIter> create_image_iter(const IterParams &params) { return create(params, COHORT_DTYPE_FLOAT32); }
std::shared_ptr<DataIter> create_uint8_image_iter(const IterParams &params) {
  return create(params, COHORT_DTYPE_UINT8);
}
std::shared_ptr<DataIter> create_int8_image_iter(const IterParams &params) { return create(params, COHORT_DTYPE_INT8); }

}  // namespace cohort_mxnet
