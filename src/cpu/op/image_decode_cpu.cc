// SPDX-License-Identifier: Apache-2.0
#include "op/image_decode.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/image_file.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

class ImageKernel : public Kernel {
 public:
  explicit ImageKernel(const StepSpec &spec)
      : attrs_(spec.attrs_as<ImageDecodeAttrs>()),
        has_input_(!spec.inputs.empty()),
        bytes_(has_input_ ? spec.inputs[0].bytes() : 0) {}

 protected:
  // Calls fn(bytes, count) with the contents of the input or of the file.
  template <typename Fn>
  void with_file(const Args &args, Fn &&fn) const {
    if (has_input_) return fn(args.inputs[0], bytes_);
    const std::vector<char> all = read_file();
    fn(all.data(), all.size());
  }

  const ImageDecodeAttrs attrs_;

 private:
  std::vector<char> read_file() const {
    constexpr size_t kMostBytes = size_t(1) << 30;
    const auto fail = [this](const std::string &why) {
      throw Error(Code::kIo, text(attrs_.filename, ": ", why), attrs_.filename);
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(attrs_.filename.c_str(), "rb"), std::fclose);
    if (!file) fail(std::strerror(errno));
    std::vector<char> all;
    for (size_t found = 0;;) {
      all.resize(std::max<size_t>(2 * found, 1 << 16));
      const size_t more = std::fread(all.data() + found, 1, all.size() - found, file.get());
      if (std::ferror(file.get())) fail(std::strerror(errno));
      found += more;
      if (found > kMostBytes) fail(text("expected at most ", kMostBytes, " bytes of an image, found more"));
      if (found == all.size()) continue;
      all.resize(found);
      return all;
    }
  }

  const bool has_input_;
  const size_t bytes_;
};

// Writes output 0: the number of axes, and their lengths.
class ImageShape final : public ImageKernel {
 public:
  using ImageKernel::ImageKernel;
  void run(const Args &args, const Lane &) const override {
    with_file(args, [&](const void *file, size_t bytes) {
      const ImageSize size = image_size(file, bytes);
      int64_t *const shape = args.out<int64_t>(0);
      shape[0] = 3;
      shape[1] = size.height;
      shape[2] = size.width;
      shape[3] = attrs_.flag == 0 ? 1 : 3;
    });
  }
};

class ImageDecode final : public ImageKernel {
 public:
  explicit ImageDecode(const StepSpec &spec)
      : ImageKernel(spec), size_{spec.outputs[0].shape[0], spec.outputs[0].shape[1]} {}
  void run(const Args &args, const Lane &) const override {
    const ImageColors colors = attrs_.flag == 0 ? ImageColors::kGray
                               : attrs_.to_rgb  ? ImageColors::kRgb
                                                : ImageColors::kBgr;
    with_file(args, [&](const void *file, size_t bytes) {
      const ImageSize found = image_size(file, bytes);
      if (found.height != size_.height || found.width != size_.width) {
        throw Error(Code::kShape, text("image: expected ", size_.height, " rows of ", size_.width, " pixels, found ",
                                       found.height, " of ", found.width));
      }
      decode_image(file, bytes, colors, size_, args.out<uint8_t>(0));
    });
  }

 private:
  const ImageSize size_;
};

COHORT_KERNEL(cpu, _shape__cvimdecode, ImageShape);
COHORT_KERNEL(cpu, _cvimdecode, ImageDecode);
COHORT_KERNEL(cpu, _shape__cvimread, ImageShape);
COHORT_KERNEL(cpu, _cvimread, ImageDecode);

}  // namespace
}  // namespace cohort
