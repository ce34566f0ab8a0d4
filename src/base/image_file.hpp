// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG and PNG images to 8-bit pixels. Only this file uses libjpeg and libpng. Input files are not trusted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort {

struct ImageSize {
  int64_t height = 0, width = 0;
};

// Reads the size from the header alone. Throws kFormat if the file is neither JPEG nor PNG, or if the header claims
// more pixels than a file of this length can plausibly hold.
ImageSize image_size(const void *file, size_t bytes);

enum class ImageColors { kGray, kRgb, kBgr };  // 1 or 3 channels

// Writes all pixels row by row, channels last. `size` must come from image_size(). Ignores transparency and
// orientation. Throws kFormat; `pixels` is then partly written.
void decode_image(const void *file, size_t bytes, ImageColors colors, const ImageSize &size, uint8_t *pixels);

}  // namespace cohort
