// SPDX-License-Identifier: Apache-2.0
// Reads and writes MXNet's .params format. A file is read in two passes: the first validates every record and reads the
// names, which follow the records, without trusting any size in the file; the second creates the arrays.
//
//   u64 0x112, u64 0, u64 count, count records, u64 number of names (0 or count), for each u64 length and its bytes
//
// A record begins with a u32 that identifies its kind:
//   V2, V3     i32 storage type, shape, context, i32 dtype, data; rank 0 is an empty entry in V2 and a scalar in V3
//   V1         shape, context, i32 dtype, data; rank 0 is an empty entry
//   up to 32   the oldest kind: this is the rank, then u32 lengths, context, i32 dtype, data; rank 0 is an empty entry
// with shape = i32 rank, i64 lengths; context = i32 type, i32 id. Nothing follows an empty entry's shape. All numbers
// are little-endian.
#include "ndarray/params.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <type_traits>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ndarray/file.hpp"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read and written in the byte order of memory");

namespace cohort {
namespace {

constexpr uint64_t kFileMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8u, kV2 = 0xF993FAC9u, kV3 = 0xF993FACAu;
// Because many small records would take much more memory than the file's size.
constexpr uint64_t kMostArrays = uint64_t(1) << 20;
constexpr size_t kWorthMapping = 64 << 10;  // bytes; smaller arrays are copied instead
constexpr int32_t kDense = 0, kRowSparse = 1, kCsr = 2;

// ---- reading ------------------------------------------------------------------------------------------------------

class MemorySource {
 public:
  MemorySource(const void *data, size_t bytes) : data_(static_cast<const char *>(data)), size_(bytes) {}
  uint64_t size() const { return size_; }
  void read(uint64_t offset, void *to, size_t bytes) const {
    if (bytes > 0) std::memcpy(to, data_ + offset, bytes);
  }

 private:
  const char *const data_;
  const uint64_t size_;
};

class MappedSource : public MemorySource {
 public:
  explicit MappedSource(std::shared_ptr<const MappedFile> file)
      : MemorySource(file->data(), file->bytes()), file_(std::move(file)) {}
  const std::shared_ptr<const MappedFile> &file() const { return file_; }

 private:
  const std::shared_ptr<const MappedFile> file_;
};

struct Record {
  int32_t storage = kDense;
  bool is_empty_entry = false;
  Shape shape;
  Dtype dtype = Dtype::kFloat32;
  uint64_t data = 0;  // offset in the file
};

template <typename Source>
class ParamsParser {
 public:
  ParamsParser(Source &source, const std::string &name) : source_(source), name_(name), size_(source.size()) {}

  NamedArrays load();

 private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(Code::kFormat, text("'", name_, "', ", part_, ", byte ", at_, ": ", what), name_);
  }
  void need(uint64_t bytes, const char *what) const {
    if (bytes > size_ - at_) fail(text("truncated: ", what, " takes ", bytes, " bytes, ", size_ - at_, " are left"));
  }
  template <typename T>
  T take(const char *what) {
    need(sizeof(T), what);
    T value;
    source_.read(at_, &value, sizeof value);
    at_ += sizeof value;
    return value;
  }
  template <typename Length>
  Shape take_lengths(int64_t rank);
  Shape take_shape(bool scalars);  // unknown rank: an empty entry
  Dtype take_dtype(const char *what);
  // Skips the data of an array and checks that the file contains all of it.
  uint64_t skip_data(const Shape &shape, Dtype dtype);
  Record take_record();
  void take_rest(Record &record);                         // context, dtype, data
  void skip_sparse(Record &record, const Shape &stored);  // the same for a sparse array
  std::vector<std::string> take_names(uint64_t count);
  void check_dense(const Record &record, const std::string &name) const;
  NDArray make_array(const Record &record);

  Source &source_;
  const std::string &name_;
  const uint64_t size_;
  uint64_t at_ = 0;
  std::string part_ = "header";
};

template <typename Source>
template <typename Length>
Shape ParamsParser<Source>::take_lengths(int64_t rank) {
  need(uint64_t(rank) * sizeof(Length), "the shape");
  std::vector<int64_t> lengths;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto length = int64_t(take<Length>("a length"));
    if (length < 0) fail(text("axis ", axis, ": expected a length from 0, found ", length));
    lengths.push_back(length);
  }
  return Shape(std::move(lengths));
}

template <typename Source>
Shape ParamsParser<Source>::take_shape(bool scalars) {
  const auto rank = take<int32_t>("the rank");
  if (rank == (scalars ? -1 : 0)) return Shape();
  if (rank < 0 || rank > kMaxAxes) fail(text("expected a rank of up to ", kMaxAxes, ", found ", rank));
  return take_lengths<int64_t>(rank);
}

template <typename Source>
Dtype ParamsParser<Source>::take_dtype(const char *what) {
  const auto code = take<int32_t>(what);
  if (!dtype_valid(code)) fail(text("expected the code of an element type, found ", code));
  return Dtype(code);
}

template <typename Source>
uint64_t ParamsParser<Source>::skip_data(const Shape &shape, Dtype dtype) {
  const uint64_t begin = at_;
  uint64_t bytes = 0;
  try {
    bytes = dense_bytes(shape, dtype);
  } catch (const Error &error) {
    fail(error.what());
  }
  need(bytes, "data");
  at_ += bytes;
  return begin;
}

template <typename Source>
void ParamsParser<Source>::take_rest(Record &record) {
  take<int32_t>("the device type");  // arrays are always loaded to the host
  take<int32_t>("the device id");
  record.dtype = take_dtype("the element type");
  record.data = skip_data(record.shape, record.dtype);
}

template <typename Source>
void ParamsParser<Source>::skip_sparse(Record &record, const Shape &stored) {
  take<int32_t>("the device type");
  take<int32_t>("the device id");
  record.dtype = take_dtype("the element type");
  std::vector<std::pair<Dtype, Shape>> parts;
  for (int32_t i = 0; i < record.storage; ++i) {
    const Dtype dtype = take_dtype("the element type of an index");
    const Shape shape = take_shape(false);
    parts.emplace_back(dtype, shape.rank_known() ? shape : Shape({0}));
  }
  skip_data(stored, record.dtype);
  for (const auto &part : parts) skip_data(part.second, part.first);
}

template <typename Source>
Record ParamsParser<Source>::take_record() {
  Record record;
  const auto kind = take<uint32_t>("a record");
  if (kind == kV2 || kind == kV3) {
    record.storage = take<int32_t>("the storage type");
    if (record.storage < kDense || record.storage > kCsr)
      fail(text("expected the code of a storage type, found ", record.storage));
    Shape stored;
    if (record.storage != kDense) stored = take_shape(kind == kV3);
    record.shape = take_shape(kind == kV3);
    record.is_empty_entry = !record.shape.rank_known();
    if (record.is_empty_entry) return record;
    if (record.storage == kDense) {
      take_rest(record);
    } else {
      skip_sparse(record, stored.rank_known() ? stored : Shape({0}));
    }
    return record;
  }
  if (kind == kV1) {
    record.shape = take_shape(false);
  } else if (kind == 0) {
    record.shape = Shape();
  } else if (kind <= uint32_t(kMaxAxes)) {
    record.shape = take_lengths<uint32_t>(kind);
  } else {
    at_ -= sizeof kind;
    char digits[16];
    std::snprintf(digits, sizeof digits, "0x%08x", kind);
    fail(text("expected the start of a record, found ", digits));
  }
  record.is_empty_entry = !record.shape.rank_known();
  if (!record.is_empty_entry) take_rest(record);
  return record;
}

template <typename Source>
std::vector<std::string> ParamsParser<Source>::take_names(uint64_t count) {
  part_ = "names";
  const auto num_names = take<uint64_t>("the number of names");
  if (num_names != 0 && num_names != count) {
    fail(text("expected no names or as many as arrays, ", count, ", found ", num_names));
  }
  std::vector<std::string> names;
  for (uint64_t i = 0; i < num_names; ++i) {
    part_ = text("name ", i);
    const auto length = take<uint64_t>("its length");
    need(length, "the name");
    std::string name(size_t(length), 0);
    source_.read(at_, &name[0], name.size());
    if (name.find('\0') != std::string::npos) fail("expected a name without zero bytes");
    at_ += length;
    names.push_back(std::move(name));
  }
  return names;
}

template <typename Source>
NDArray ParamsParser<Source>::make_array(const Record &record) {
  if constexpr (std::is_same_v<Source, const MappedSource>) {
    const size_t bytes = dense_bytes(record.shape, record.dtype);
    char *const data = source_.file()->data() + record.data;
    const bool is_aligned = reinterpret_cast<uintptr_t>(data) % dtype_size(record.dtype) == 0;
    if (bytes >= kWorthMapping && is_aligned && record.dtype != Dtype::kBool) {
      auto memory = std::make_shared<Memory>(Context(), data, bytes, [file = source_.file()](void *) {});
      return NDArray(std::make_shared<Storage>(std::move(memory), /* from_file */ true), 0, record.shape, record.dtype);
    }
  }
  const NDArray array = NDArray::create(record.shape, record.dtype, Context(), false);
  source_.read(record.data, array.data(), array.bytes());
  if (record.dtype == Dtype::kBool) {  // any byte but 0 is true; a bool must be 0 or 1
    auto *const bytes = array.data_as<uint8_t>();
    for (int64_t i = 0; i < array.size(); ++i) bytes[i] = bytes[i] != 0;
  }
  return array;
}

template <typename Source>
void ParamsParser<Source>::check_dense(const Record &record, const std::string &name) const {
  if (record.storage == kDense) return;
  throw Error(Code::kUnsupported,
              text("'", name_, "': ", name.empty() ? part_ : "'" + name + "'", " is sparse (",
                   record.storage == kRowSparse ? "row_sparse" : "csr", "), which is not supported"),
              name.empty() ? name_ : name);
}

template <typename Source>
NamedArrays ParamsParser<Source>::load() {
  const auto magic = take<uint64_t>("the first number");
  if (magic != kFileMagic) {
    at_ = 0;
    if (char(magic) == '{') fail("this is JSON, such as that of a symbol, not a .params file");
    fail(text("this is not a .params file: expected it to begin with ", kFileMagic, ", found ", magic));
  }
  take<uint64_t>("the second number");
  const auto count = take<uint64_t>("the number of arrays");
  need(count > UINT64_MAX / 4 ? UINT64_MAX : count * 4, "that many arrays");
  if (count > kMostArrays) fail(text("expected at most ", kMostArrays, " arrays, found ", count));
  const uint64_t first_record = at_;
  const auto next_record = [this](uint64_t i) {
    part_ = text("array ", i);
    return take_record();
  };
  for (uint64_t i = 0; i < count; ++i) next_record(i);
  const std::vector<std::string> names = take_names(count);

  NamedArrays arrays;
  arrays.reserve(size_t(count));
  std::map<std::string, size_t> places;
  std::string left_out;  // the first of the skipped empty entries
  uint64_t num_left_out = 0;
  at_ = first_record;
  for (uint64_t i = 0; i < count; ++i) {
    const Record record = next_record(i);
    const std::string name = names.empty() ? "" : names[size_t(i)];
    check_dense(record, name);
    if (record.is_empty_entry && !names.empty()) {
      if (num_left_out++ == 0) left_out = name.empty() ? part_ : "'" + name + "'";
      continue;
    }
    const NDArray array = record.is_empty_entry ? NDArray() : make_array(record);
    const auto place = name.empty() ? places.end() : places.emplace(name, arrays.size()).first;
    if (place == places.end() || place->second == arrays.size()) {
      arrays.emplace_back(name, array);
    } else {
      arrays[place->second].second = array;  // of several arrays with one name, the last one counts
    }
  }
  if (num_left_out > 0) {
    log(LogLevel::kWarning,
        text("'", name_, "': ", left_out,
             num_left_out == 1 ? std::string(" is an empty entry and is left out")
                               : text(" and ", num_left_out - 1, " more are empty entries and are left out")));
  }
  return arrays;
}

// ---- writing ------------------------------------------------------------------------------------------------------

template <typename Put>
void put_record(const Put &put, const NDArray &array, bool v3) {
  const auto number = [&](auto value) { put(&value, sizeof value); };
  number(v3 ? kV3 : kV2);
  number(kDense);
  if (!array) {
    number(int32_t(v3 ? -1 : 0));
    return;
  }
  const NDArray host = array.on_host();
  host.wait();
  number(int32_t(host.shape().rank()));
  for (const int64_t length : host.shape()) number(length);
  number(int32_t(DeviceType::kCpu));
  number(int32_t(0));
  number(int32_t(host.dtype()));
  put(host.data(), host.bytes());
}

// Passes the pieces of the file to put(data, bytes) in order.
template <typename Put>
void put_params(const NamedArrays &arrays, const Put &put) {
  const auto number = [&](uint64_t value) { put(&value, sizeof value); };
  bool named = false;  // if any entry has a name, those without one get an empty name
  // MXNet reads V3 and older records in different modes, so a file must not mix them.
  bool v3 = false;
  for (const auto &entry : arrays) {
    named = named || !entry.first.empty();
    v3 = v3 || (entry.second && (entry.second.shape().rank() == 0 || entry.second.size() == 0));
  }
  number(kFileMagic);
  number(0);
  number(arrays.size());
  for (const auto &entry : arrays) put_record(put, entry.second, v3);
  number(named ? arrays.size() : 0);
  for (size_t i = 0; named && i < arrays.size(); ++i) {
    number(arrays[i].first.size());
    put(arrays[i].first.data(), arrays[i].first.size());
  }
}

}  // namespace

NamedArrays load_params(InputFile &file) { return ParamsParser<InputFile>(file, file.path()).load(); }

NamedArrays load_params(const std::string &path) {
  InputFile file(path);
  return load_params(file);
}

NamedArrays map_params(std::shared_ptr<const MappedFile> file, const std::string &path) {
  const MappedSource source(std::move(file));
  return ParamsParser<const MappedSource>(source, path).load();
}

NamedArrays map_params(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return file ? map_params(std::move(file), path) : load_params(path);
}

NamedArrays load_params(const void *data, size_t bytes, const std::string &name) {
  const MemorySource source(data, bytes);
  return ParamsParser<const MemorySource>(source, name).load();
}

NamedArrays on_context(NamedArrays loaded, const Context &context) {
  for (auto &entry : loaded) {
    if (entry.second && entry.second.context() != context) entry.second = entry.second.copy_to(context);
  }
  return loaded;
}

void check_whole(const NamedArrays &arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].second) continue;
    throw Error(Code::kInvalidArgument, text("arrays: entry ", i, " '", arrays[i].first, "' has no array"),
                arrays[i].first);
  }
}

void save_params(const std::string &path, const NamedArrays &arrays) {
  OutputFile file(path);
  put_params(arrays, [&](const void *data, size_t bytes) { file.append(data, bytes); });
  file.commit();
}

std::string params_bytes(const NamedArrays &arrays) {
  std::string bytes;
  put_params(arrays, [&](const void *data, size_t count) { bytes.append(static_cast<const char *>(data), count); });
  return bytes;
}

}  // namespace cohort
