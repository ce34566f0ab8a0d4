// SPDX-License-Identifier: Apache-2.0
#include "ndarray/npy.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "ndarray/file.hpp"
#include "ndarray/params.hpp"

namespace cohort {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMostHeader = 1 << 20;  // bytes; NumPy's own limit is 10000

struct Descr {
  const char *name;  // without the byte order
  Dtype dtype;
};
constexpr Descr kDescrs[] = {{"f4", Dtype::kFloat32}, {"f8", Dtype::kFloat64}, {"f2", Dtype::kFloat16},
                             {"u1", Dtype::kUint8},   {"i4", Dtype::kInt32},   {"i1", Dtype::kInt8},
                             {"i8", Dtype::kInt64},   {"b1", Dtype::kBool}};

// Parses the header, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class Header {
 public:
  Header(std::string_view words, const std::string &name) : words_(words), name_(name) {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        take_descr();
      } else if (key == "fortran_order") {
        take_order();
      } else if (key == "shape") {
        take_shape();
      } else {
        fail(text("expected 'descr', 'fortran_order' or 'shape', found '", key, "'"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!words_.empty()) fail("expected nothing after the closing '}', found more");
    if (seen_ != 7) fail("expected 'descr', 'fortran_order' and 'shape', each once");
  }

  Dtype dtype = Dtype::kNone;
  bool swapped = false, fortran_order = false;
  Shape shape;

 private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(Code::kFormat, text("'", name_, "', header: ", plain_line(what)), name_);
  }
  void skip_space() {
    while (!words_.empty() && (words_[0] == ' ' || words_[0] == '\n')) words_.remove_prefix(1);
  }
  bool accept(char wanted) {
    skip_space();
    if (words_.empty() || words_[0] != wanted) return false;
    words_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(text("expected '", wanted, "'"));
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (words_.substr(0, word.size()) != word) return false;
    words_.remove_prefix(word.size());
    return true;
  }
  std::string_view quoted() {
    skip_space();
    const char quote = words_.empty() ? ' ' : words_[0];
    const size_t end = quote == '\'' || quote == '"' ? words_.find(quote, 1) : words_.npos;
    if (end == words_.npos) fail("expected text in quotes");
    const std::string_view found = words_.substr(1, end - 1);
    words_.remove_prefix(end + 1);
    return found;
  }
  void note(unsigned key, const char *what) {
    if (seen_ & key) fail(text("'", what, "' is given twice"));
    seen_ |= key;
  }

  void take_descr() {
    note(1, "descr");
    skip_space();
    const bool is_record = !words_.empty() && words_[0] == '[';
    const std::string_view descr = is_record ? std::string_view("a record") : quoted();
    const char order = descr.empty() ? ' ' : descr[0];
    const std::string_view type = descr.substr(std::min<size_t>(1, descr.size()));
    for (const Descr &known : kDescrs) {
      if (type != known.name) continue;
      dtype = known.dtype;
      constexpr char kForeign = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
      if (order == '<' || order == '>' || order == '=' || order == '|') {
        swapped = order == kForeign;
        return;
      }
    }
    throw Error(
        Code::kUnsupported,
        text("'", name_, "': expected a supported element type, found NumPy's '", plain_line(std::string(descr)), "'"),
        name_);
  }
  void take_order() {
    note(2, "fortran_order");
    fortran_order = accept_word("True");
    if (!fortran_order && !accept_word("False")) fail("'fortran_order': expected True or False");
  }
  void take_shape() {
    note(4, "shape");
    std::vector<int64_t> lengths;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t length = 0;
      const auto [end, error] = std::from_chars(words_.data(), words_.data() + words_.size(), length);
      if (error != std::errc() || length < 0) fail("'shape': expected lengths from 0");
      if (lengths.size() == size_t(kMaxAxes)) fail(text("'shape': expected at most ", kMaxAxes, " axes"));
      words_.remove_prefix(size_t(end - words_.data()));
      lengths.push_back(length);
      accept_word("L");  // written by Python 2
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    shape = Shape(std::move(lengths));
  }

  std::string_view words_;
  const std::string &name_;
  unsigned seen_ = 0;  // one bit per key
};

// Converts column-major order to row-major.
void transpose(const char *from, char *to, const Shape &shape, size_t element_bytes) {
  std::vector<int64_t> at(size_t(shape.rank()), 0), strides(size_t(shape.rank()), 1);
  for (size_t axis = 1; axis < strides.size(); ++axis) strides[axis] = strides[axis - 1] * shape[int(axis) - 1];
  int64_t source = 0;
  for (int64_t i = 0; i < shape.size(); ++i, to += element_bytes) {
    std::memcpy(to, from + size_t(source) * element_bytes, element_bytes);
    for (size_t axis = at.size(); axis-- > 0;) {
      source += strides[axis];
      if (++at[axis] < shape[int(axis)]) break;
      source -= strides[axis] * at[axis];
      at[axis] = 0;
    }
  }
}

void swap_bytes(char *data, size_t bytes, size_t element_bytes) {
  for (char *element = data; element < data + bytes; element += element_bytes) {
    std::reverse(element, element + element_bytes);
  }
}

}  // namespace

bool is_npy(const void *data, size_t bytes) {
  return bytes >= kMagic.size() && std::memcmp(data, kMagic.data(), kMagic.size()) == 0;
}

NDArray read_npy(uint64_t bytes, const ReadBytes &read, const std::string &name) {
  const auto fail = [&](const std::string &what) { throw Error(Code::kFormat, text("'", name, "': ", what), name); };
  uint64_t left = bytes;
  const auto take = [&](void *to, size_t count, const char *otherwise) {
    if (count > left) fail(otherwise);
    read(static_cast<char *>(to), count);
    left -= count;
  };
  unsigned char head[12] = {};
  take(head, kMagic.size(), "is not an .npy file");
  if (!is_npy(head, kMagic.size())) fail("is not an .npy file");
  take(head + kMagic.size(), 4, "truncated in its header");
  const unsigned version = head[6];
  if (version < 1 || version > 3) fail(text("expected version 1, 2 or 3 of .npy, found ", version));
  if (version > 1) take(head + 10, 2, "truncated in its header");
  const uint64_t length = head[8] | head[9] << 8 | uint64_t(head[10]) << 16 | uint64_t(head[11]) << 24;
  if (length > left) fail(text("truncated: the header takes ", length, " bytes, ", left, " are left"));
  if (length > kMostHeader) fail(text("expected a header of at most ", kMostHeader, " bytes, found ", length));
  std::string words(size_t(length), '\0');
  take(&words[0], words.size(), "truncated in its header");
  const Header header(words, name);

  size_t needed = 0;
  try {
    needed = dense_bytes(header.shape, header.dtype);
  } catch (const Error &error) {
    fail(error.what());
  }
  if (needed != left) fail(text("shape ", header.shape, ": expected ", needed, " bytes of data, found ", left));
  const NDArray array = NDArray::create(header.shape, header.dtype, Context(), false);
  auto *const target = static_cast<char *>(array.data());
  const size_t element_bytes = dtype_size(header.dtype);
  if (header.fortran_order) {
    std::string values(needed, '\0');
    read(&values[0], needed);
    transpose(values.data(), target, header.shape, element_bytes);
  } else {
    read(target, needed);
  }
  if (header.swapped) swap_bytes(target, needed, element_bytes);
  if (header.dtype == Dtype::kBool) {
    for (size_t i = 0; i < needed; ++i) target[i] = target[i] != 0;
  }
  array.written();
  return array;
}

NDArray parse_npy(const void *data, size_t bytes, const std::string &name) {
  const auto *next = static_cast<const char *>(data);
  const auto read = [&next](char *to, size_t count) {
    if (count > 0) std::memcpy(to, next, count);
    next += count;
  };
  return read_npy(bytes, read, name);
}

std::string npy_bytes(const NDArray &array) {
  const auto known = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                  [&](const Descr &descr) { return descr.dtype == array.dtype(); });
  if (known == std::end(kDescrs)) {
    throw Error(Code::kDtype, text(".npy files have no element type ", array.dtype()), "arrays");
  }
  constexpr char kNative = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
  std::string shape;
  for (const int64_t length : array.shape()) shape += (shape.empty() ? "" : ", ") + std::to_string(length);
  if (array.shape().rank() == 1) shape += ',';
  std::string words = text("{'descr': '", dtype_size(array.dtype()) == 1 ? '|' : kNative, known->name,
                           "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kAlignment = 64, kBefore = 10;
  words.append((kAlignment - (kBefore + words.size() + 1) % kAlignment) % kAlignment, ' ') += '\n';
  std::string bytes(kMagic);
  bytes += {1, 0, char(words.size() & 0xff), char(words.size() >> 8)};
  bytes += words;
  const size_t header = bytes.size();
  bytes.resize(header + array.bytes());
  array.read(&bytes[header], array.bytes());
  return bytes;
}

NamedArrays parse_arrays(const void *data, size_t bytes, const std::string &name) {
  if (is_npy(data, bytes)) return {{std::string(), parse_npy(data, bytes, name)}};
  if (is_npz(data, bytes)) return parse_npz(data, bytes, name);
  return load_params(data, bytes, name);
}

NamedArrays load_arrays(const std::string &path) {
  InputFile file(path);  // opened once, because a pipe can be read only once
  char first[8] = {};
  file.read(0, first, size_t(std::min<uint64_t>(sizeof first, file.size())));
  if (!is_npy(first, sizeof first) && !is_npz(first, sizeof first)) return load_params(file);
  const std::string whole = file.read_whole();
  return parse_arrays(whole.data(), whole.size(), path);
}

NamedArrays map_arrays(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (!file || is_npy(file->data(), file->bytes()) || is_npz(file->data(), file->bytes())) return load_arrays(path);
  return map_params(std::move(file), path);
}

}  // namespace cohort
