// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG and PNG. Both C libraries report errors by longjmp, so no object with a destructor may be created
// between setjmp and the calls.
#include "base/image_file.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "base/error.hpp"

namespace cohort {
namespace {

constexpr int64_t kMostLength = 1 << 20, kMostPixels = 1 << 30;  // OpenCV's limits
// Guards against small files that claim huge images: above kFreePixels, at most kPixelsPerByte pixels per file byte.
constexpr int64_t kFreePixels = 1 << 24, kPixelsPerByte = 4096;
// Guards against progressive JPEGs with many scans, each of which visits all pixels: above kFreeScannedPixels, the same
// bound per byte applies to pixels times scans. Encoders write about a dozen scans, and even the cheapest scan holds
// one bit per 64 pixels.
constexpr int kMostScans = 200;
constexpr int64_t kFreeScannedPixels = 1 << 28;

constexpr size_t kMessageBytes = 256;  // enough for both libraries: JMSG_LENGTH_MAX is 200

[[noreturn]] void refuse(const char *what) { throw Error(Code::kFormat, text("image: ", what)); }

bool is_png(const void *file, size_t bytes) {
  return bytes >= 8 && png_sig_cmp(static_cast<png_const_bytep>(file), 0, 8) == 0;
}
bool is_jpeg(const void *file, size_t bytes) { return bytes >= 3 && std::memcmp(file, "\xff\xd8\xff", 3) == 0; }

void check_size(const ImageSize &size, size_t bytes) {
  const int64_t pixels = size.height * size.width;
  if (size.height < 1 || size.width < 1 || size.height > kMostLength || size.width > kMostLength ||
      pixels > kMostPixels || (pixels > kFreePixels && pixels / kPixelsPerByte > int64_t(bytes))) {
    throw Error(Code::kFormat, text("image: the header says ", size.height, " rows of ", size.width,
                                    " pixels, more than is accepted in a file of ", bytes, " bytes"));
  }
}

// ---- JPEG
// ----------------------------------------------------------------------------------------------------------

struct JpegFailure {
  jpeg_error_mgr base;  // must be first: libjpeg sees only this
  std::jmp_buf leave;
  char message[kMessageBytes];
  int64_t bytes;  // of the file
};

void fail_jpeg(j_common_ptr info) {
  auto *const failure = reinterpret_cast<JpegFailure *>(info->err);
  failure->base.format_message(info, failure->message);
  std::longjmp(failure->leave, 1);
}

// Only the warning about a truncated file is treated as an error; other damage merely shows in the pixels.
void note_warning(j_common_ptr info, int level) {
  if (level >= 0 || info->err->msg_code != JWRN_JPEG_EOF) return;
  auto *const failure = reinterpret_cast<JpegFailure *>(info->err);
  std::snprintf(failure->message, sizeof failure->message, "the file is truncated");
  std::longjmp(failure->leave, 1);
}

void watch_scans(j_common_ptr info) {
  auto *const failure = reinterpret_cast<JpegFailure *>(info->err);
  const auto *const picture = reinterpret_cast<j_decompress_ptr>(info);
  const int64_t pixels = int64_t(picture->image_height) * picture->image_width;
  const int scans = picture->input_scan_number;
  const bool is_cheap = pixels * scans <= kFreeScannedPixels || pixels * scans / kPixelsPerByte <= failure->bytes;
  if (scans <= kMostScans && is_cheap) return;
  std::snprintf(
      failure->message, sizeof failure->message,
      "expected at most %d scans, and no more of them than %lld bytes are worth, found scan %d of %u x %u pixels",
      kMostScans, static_cast<long long>(failure->bytes), scans, picture->image_height, picture->image_width);
  std::longjmp(failure->leave, 1);
}

class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&failure_.base);
    failure_.base.error_exit = fail_jpeg;
    failure_.base.emit_message = note_warning;
    progress_.progress_monitor = watch_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader &) = delete;
  JpegReader &operator=(const JpegReader &) = delete;

  ImageSize open(const void *file, size_t bytes) {
    if (setjmp(failure_.leave)) refuse(failure_.message);
    jpeg_create_decompress(&info_);
    failure_.bytes = int64_t(bytes);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, static_cast<const unsigned char *>(file), static_cast<unsigned long>(bytes));
    jpeg_read_header(&info_, TRUE);
    return {info_.image_height, info_.image_width};
  }
  // The image is CMYK, which libjpeg cannot convert to RGB.
  bool has_black() const { return info_.num_components == 4; }
  void start(bool gray) {
    if (setjmp(failure_.leave)) refuse(failure_.message);
    info_.out_color_space = has_black() ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&info_);
  }
  void read_row(uint8_t *pixels) {
    if (setjmp(failure_.leave)) refuse(failure_.message);
    JSAMPROW row = pixels;
    jpeg_read_scanlines(&info_, &row, 1);
  }

 private:
  jpeg_decompress_struct info_ = {};
  jpeg_progress_mgr progress_ = {};
  JpegFailure failure_ = {};
};

uint8_t gray_of(int red, int green, int blue) {
  constexpr int kShift = 14;  // fixed-point weights of 0.299, 0.587 and 0.114
  return uint8_t((red * 4899 + green * 9617 + blue * 1868 + (1 << (kShift - 1))) >> kShift);
}

void swap_red_and_blue(uint8_t *row, int64_t width) {
  for (int64_t x = 0; x < width; ++x) std::swap(row[3 * x], row[3 * x + 2]);
}

// Converts one row of CMYK, which files store inverted.
void from_inks(const uint8_t *inks, int64_t width, ImageColors colors, uint8_t *row) {
  for (int64_t x = 0; x < width; ++x, inks += 4) {
    const int black = inks[3];
    const auto light = [black](int ink) { return black - ((255 - ink) * black >> 8); };
    const int red = light(inks[0]), green = light(inks[1]), blue = light(inks[2]);
    if (colors == ImageColors::kGray) {
      row[x] = gray_of(red, green, blue);
      continue;
    }
    row[3 * x] = uint8_t(red);
    row[3 * x + 1] = uint8_t(green);
    row[3 * x + 2] = uint8_t(blue);
  }
}

void decode_jpeg(const void *file, size_t bytes, ImageColors colors, const ImageSize &size, uint8_t *pixels) {
  JpegReader reader;
  const ImageSize found = reader.open(file, bytes);
  if (found.height != size.height || found.width != size.width) refuse("the decoded size differs from the header's");
  const bool gray = colors == ImageColors::kGray;
  reader.start(gray);
  std::vector<uint8_t> inks(reader.has_black() ? size_t(4 * size.width) : 0);
  for (int64_t y = 0; y < size.height; ++y, pixels += size.width * (gray ? 1 : 3)) {
    if (reader.has_black()) {
      reader.read_row(inks.data());
      from_inks(inks.data(), size.width, colors, pixels);
    } else {
      reader.read_row(pixels);
    }
    if (colors == ImageColors::kBgr) swap_red_and_blue(pixels, size.width);
  }
}

// ---- PNG
// -----------------------------------------------------------------------------------------------------------

class PngReader {
 public:
  PngReader(const void *file, size_t bytes) : next_(static_cast<const uint8_t *>(file)), left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, say_nothing);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (info_) return;
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw std::bad_alloc();
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader &) = delete;
  PngReader &operator=(const PngReader &) = delete;

  ImageSize read_header() {
    if (setjmp(leave_)) refuse(message_);
    png_set_read_fn(png_, this, take);
    png_set_user_limits(png_, kMostLength, kMostLength);
    png_set_chunk_cache_max(png_, 1);  // keeps no text chunks, which may take gigabytes
    png_read_info(png_, info_);
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
  }
  // `rows` holds one address per row.
  void read(ImageColors colors, size_t row_bytes, png_bytepp rows) {
    if (setjmp(leave_)) refuse(message_);
    const bool has_colors = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_palette_to_rgb(png_);
    if (!has_colors) png_set_expand_gray_1_2_4_to_8(png_);
    if (colors == ImageColors::kGray) {
      png_set_rgb_to_gray(png_, 1, 0.299, 0.587);
    } else if (!has_colors) {
      png_set_gray_to_rgb(png_);
    } else if (colors == ImageColors::kBgr) {
      png_set_bgr(png_);
    }
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != row_bytes) png_error(png_, "row length differs from the header's");
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
  }

 private:
  static void fail(png_structp png, png_const_charp message) {
    auto *const self = static_cast<PngReader *>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof self->message_, "%s", message);
    std::longjmp(self->leave_, 1);
  }
  static void say_nothing(png_structp, png_const_charp) {}
  static void take(png_structp png, png_bytep to, size_t bytes) {
    auto *const self = static_cast<PngReader *>(png_get_io_ptr(png));
    if (bytes > self->left_) png_error(png, "the file is truncated");
    std::memcpy(to, self->next_, bytes);
    self->next_ += bytes;
    self->left_ -= bytes;
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  const uint8_t *next_;
  size_t left_;
  std::jmp_buf leave_;
  char message_[kMessageBytes];
};

void decode_png(const void *file, size_t bytes, ImageColors colors, const ImageSize &size, uint8_t *pixels) {
  PngReader reader(file, bytes);
  const ImageSize found = reader.read_header();
  if (found.height != size.height || found.width != size.width) refuse("the decoded size differs from the header's");
  const size_t row_bytes = size_t(size.width) * (colors == ImageColors::kGray ? 1 : 3);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < size.height; ++y) rows.push_back(pixels + size_t(y) * row_bytes);
  reader.read(colors, row_bytes, rows.data());
}

}  // namespace

ImageSize image_size(const void *file, size_t bytes) {
  ImageSize size;
  if (is_png(file, bytes)) {
    size = PngReader(file, bytes).read_header();
  } else if (is_jpeg(file, bytes)) {
    size = JpegReader().open(file, bytes);
  } else {
    throw Error(Code::kFormat, text("image: expected JPEG or PNG, found ", bytes, " bytes of neither"));
  }
  check_size(size, bytes);
  return size;
}

void decode_image(const void *file, size_t bytes, ImageColors colors, const ImageSize &size, uint8_t *pixels) {
  check_size(size, bytes);
  (is_png(file, bytes) ? decode_png : decode_jpeg)(file, bytes, colors, size, pixels);
}

}  // namespace cohort
