// SPDX-License-Identifier: Apache-2.0
// Images in JPEG and PNG, as pixels of 8 bits. The one place that knows libjpeg and libpng. The files are not trusted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort {

struct ImageSize {
  int64_t height = 0, width = 0;
};

// From the header alone. Throws kFormat where this is no such image, or one that is larger than its bytes can say.
ImageSize image_size(const void *file, size_t bytes);

enum class ImageColors { kGray, kRgb, kBgr };  // 1 or 3 channels

// All its pixels, row by row, channels last; `size` is what image_size() says. No transparency, no orientation. Throws
// kFormat, and leaves `pixels` as it happens to be.
void decode_image(const void *file, size_t bytes, ImageColors colors, const ImageSize &size, uint8_t *pixels);

}  // namespace cohort
