// SPDX-License-Identifier: Apache-2.0
// .params files: every kind of record, hostile ones, and writing that is all or nothing.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ndarray/params.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const uint32_t kV1 = 0xF993FAC8u, kV2 = 0xF993FAC9u, kV3 = 0xF993FACAu;

// A file composed field by field.
struct Bytes {
  std::string text;
  template <typename T>
  Bytes &put(T value) {
    text.append(reinterpret_cast<const char *>(&value), sizeof value);
    return *this;
  }
  Bytes &header(uint64_t count) { return put(uint64_t(0x112)).put(uint64_t(0)).put(count); }
  Bytes &shape(const std::vector<int64_t> &lengths) {
    put(int32_t(lengths.size()));
    for (const int64_t length : lengths) put(length);
    return *this;
  }
  Bytes &context(int32_t type = 1, int32_t id = 0) { return put(type).put(id); }
  Bytes &names(const std::vector<std::string> &all) {
    put(uint64_t(all.size()));
    for (const std::string &name : all) put(uint64_t(name.size())).text += name;
    return *this;
  }
  Bytes &floats(const std::vector<float> &values) {
    for (const float value : values) put(value);
    return *this;
  }
};

NamedArrays load(const std::string &bytes) {
  // Reads from memory of exactly that size, so that the sanitizer detects reads past the end.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  return load_params(exact.data(), exact.size(), "memory");
}

Code code_of(const std::string &bytes) {
  try {
    load(bytes);
  } catch (const Error &error) {
    return error.code();
  }
  return Code(0);
}

std::vector<float> values(const NDArray &array) {
  std::vector<float> result(size_t(array.size()));
  array.cast(Dtype::kFloat32).read(result.data(), result.size() * sizeof(float));
  return result;
}

NDArray array_of(const Shape &shape, Dtype dtype = Dtype::kFloat32) {
  const NDArray floats = NDArray::create(shape, Dtype::kFloat32, Context());
  std::iota(floats.data_as<float>(), floats.data_as<float>() + floats.size(), 1.0f);
  return floats.cast(dtype);
}

// A folder that is deleted with its contents.
struct Folder {
  std::string path;
  Folder() {
    const char *temporary = std::getenv("TMPDIR");
    path = std::string(temporary ? temporary : P_tmpdir) + "/cohort_params_XXXXXX";
    CHECK(mkdtemp(&path[0]));
  }
  ~Folder() {
    for (const std::string &name : list()) unlink((path + "/" + name).c_str());
    rmdir(path.c_str());
  }
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    DIR *folder = opendir(path.c_str());
    while (const dirent *entry = folder ? readdir(folder) : nullptr) {
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) names.push_back(entry->d_name);
    }
    if (folder) closedir(folder);
    return names;
  }
  std::string file(const std::string &name) const { return path + "/" + name; }
};

Bytes example() {
  Bytes file;
  file.header(1).put(kV2).put(int32_t(0)).shape({1, 3}).context().put(int32_t(0)).floats({1, 2, 3}).names({"arg:w"});
  return file;
}

// Several records of all kinds.
Bytes mixed() {
  Bytes file;
  file.header(6);
  file.put(kV2).put(int32_t(0)).shape({2, 2}).context(2, 3).put(int32_t(0)).floats({1, 2, 3, 4});
  file.put(kV1).shape({2}).context().put(int32_t(3)).put(uint8_t(7)).put(uint8_t(8));
  file.put(uint32_t(2)).put(uint32_t(1)).put(uint32_t(2)).context().put(int32_t(0)).floats({5, 6});
  file.put(kV3).put(int32_t(0)).shape({}).context().put(int32_t(0)).floats({9});
  file.put(kV3).put(int32_t(0)).shape({2, 0}).context().put(int32_t(6));
  file.put(kV2).put(int32_t(0)).shape({3}).context().put(int32_t(7)).put(uint8_t(0)).put(uint8_t(1)).put(uint8_t(200));
  return file.names({"a", "b", "c", "d", "e", "f"});
}

}  // namespace

TEST(the_written_bytes_are_those_of_mxnet) {
  const NDArray array = array_of({1, 3});
  const std::string bytes = params_bytes({{"arg:w", array}});
  CHECK_EQ(bytes.size(), 97u);
  CHECK(bytes == example().text);
  const NamedArrays back = load(bytes);
  CHECK_EQ(back.size(), 1u);
  CHECK_EQ(back[0].first, "arg:w");
  CHECK(back[0].second.shape() == Shape({1, 3}));
  CHECK(values(back[0].second) == (std::vector<float>{1, 2, 3}));
}

TEST(records_of_every_kind_are_read) {
  const NamedArrays arrays = load(mixed().text);
  CHECK_EQ(arrays.size(), 6u);
  CHECK(arrays[0].second.context() == Context());  // whatever device was saved
  CHECK(values(arrays[0].second) == (std::vector<float>{1, 2, 3, 4}));
  CHECK(arrays[1].second.dtype() == Dtype::kUint8);
  CHECK(values(arrays[1].second) == (std::vector<float>{7, 8}));
  CHECK(arrays[2].second.shape() == Shape({1, 2}));
  CHECK(values(arrays[2].second) == (std::vector<float>{5, 6}));
  CHECK(arrays[3].second.shape() == Shape(std::vector<int64_t>()));
  CHECK(values(arrays[3].second) == (std::vector<float>{9}));
  CHECK(arrays[4].second.shape() == Shape({2, 0}));
  CHECK(arrays[4].second.dtype() == Dtype::kInt64);
  CHECK(values(arrays[5].second) == (std::vector<float>{0, 1, 1}));
  CHECK_EQ(int(arrays[5].second.data_as<uint8_t>()[2]), 1);  // a bool is 0 or 1
}

TEST(every_type_survives_a_round_trip) {
  for (int32_t code : {0, 1, 2, 3, 4, 5, 6, 7, 12}) {
    const NDArray array = array_of({2, 3}, Dtype(code));
    const NamedArrays back = load(params_bytes({{"", array}, {"", array.slice(1, 2)}}));
    CHECK_EQ(back.size(), 2u);
    CHECK_EQ(back[0].first, "");
    CHECK(back[0].second.dtype() == Dtype(code));
    CHECK(values(back[0].second) == values(array));
    CHECK(values(back[1].second) == values(array.slice(1, 2)));
  }
}

TEST(scalars_and_empty_arrays_make_a_v3_file) {
  const NamedArrays arrays = {
      {"scalar", array_of(Shape(std::vector<int64_t>()))}, {"empty", array_of({0, 4})}, {"usual", array_of({2})}};
  const std::string bytes = params_bytes(arrays);
  CHECK(std::memcmp(bytes.data() + 24, &kV3, 4) == 0);
  CHECK(bytes.find(std::string(reinterpret_cast<const char *>(&kV2), 4)) == std::string::npos);
  const NamedArrays back = load(bytes);
  for (size_t i = 0; i < 3; ++i) {
    CHECK_EQ(back[i].first, arrays[i].first);
    CHECK(back[i].second.shape() == arrays[i].second.shape());
    CHECK(values(back[i].second) == values(arrays[i].second));
  }
}

TEST(empty_entries_are_no_arrays) {
  Bytes file;
  file.header(4);
  file.put(kV2).put(int32_t(0)).shape({});
  file.put(kV1).shape({});
  file.put(uint32_t(0));
  file.put(kV3).put(int32_t(0)).put(int32_t(-1));
  const NamedArrays list = load(Bytes(file).names({}).text);
  CHECK_EQ(list.size(), 4u);
  for (const auto &entry : list) CHECK(!entry.second);
  CHECK(load(params_bytes(list)).size() == 4);

  static std::string logged;
  set_log([](LogLevel, const std::string &message) { logged += message; }, LogLevel::kWarning);
  const NamedArrays map = load(Bytes(file).names({"a", "b", "c", "d"}).text);
  set_log(nullptr, LogLevel::kWarning);
  CHECK(map.empty());
  CHECK(logged.find("'a' and 3 more are empty entries and are left out") != std::string::npos);
  CHECK_EQ(std::count(logged.begin(), logged.end(), ':'), 1);  // one warning for any number of them
}

TEST(names_for_some_entries_survive_a_round_trip) {
  const NamedArrays arrays = {{"", array_of({1})}, {"a", array_of({2})}, {"", array_of({3})}};
  const NamedArrays back = load(params_bytes(arrays));
  CHECK_EQ(back.size(), 3u);
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK_EQ(back[i].first, arrays[i].first);
    CHECK(back[i].second.shape() == arrays[i].second.shape());
  }
}

TEST(more_small_entries_than_memory_is_meant_for_are_refused) {
  Bytes file;
  file.header((1 << 20) + 1).text.append(4 * ((1 << 20) + 1), 0);
  CHECK_THROWS(load(file.names({}).text), Error, "expected at most 1048576 arrays, found 1048577");
}

TEST(the_last_of_several_arrays_of_one_name_counts) {
  const NamedArrays back = load(params_bytes({{"a", array_of({1})}, {"b", array_of({2})}, {"a", array_of({3})}}));
  CHECK_EQ(back.size(), 2u);
  CHECK_EQ(back[0].first, "a");
  CHECK(back[0].second.shape() == Shape({3}));
}

TEST(sparse_arrays_are_unsupported_and_named) {
  Bytes file;
  file.header(3);
  file.put(kV2).put(int32_t(0)).shape({1}).context().put(int32_t(0)).floats({1});
  file.put(kV2).put(int32_t(1)).shape({1, 2}).shape({4, 2}).context().put(int32_t(0)).put(int32_t(6)).shape({1});
  file.floats({1, 2}).put(int64_t(3));
  file.put(kV2).put(int32_t(2)).shape({2}).shape({2, 3}).context().put(int32_t(0));
  file.put(int32_t(6)).shape({3}).put(int32_t(6)).shape({2}).floats({1, 2});
  for (int64_t index : {0, 1, 2, 0, 2}) file.put(index);
  file.names({"dense", "embedding", "matrix"});
  CHECK(code_of(file.text) == Code::kUnsupported);
  CHECK_THROWS(load(file.text), Error, "'memory': 'embedding' is sparse (row_sparse), which is not supported");
  for (size_t length = 0; length < file.text.size(); ++length) {
    CHECK(code_of(file.text.substr(0, length)) == Code::kFormat);
  }
}

TEST(a_file_cut_anywhere_is_a_format_error) {
  const std::string whole = mixed().text;
  for (size_t length = 0; length < whole.size(); ++length) CHECK(code_of(whole.substr(0, length)) == Code::kFormat);
  CHECK(code_of(whole) == Code(0));
  CHECK(code_of(whole + "what follows the names is ignored") == Code(0));
  CHECK_THROWS(load(example().text.substr(0, 60)), Error,
               "'memory', array 0, byte 60: truncated: the element type takes 4 bytes, 0 are left");
}

TEST(hostile_numbers_are_refused_before_anything_is_allocated) {
  // They claim more data than there is; the error must not be that of a failed allocation.
  const auto record = [](const std::vector<int64_t> &lengths, uint32_t kind = kV2, int32_t dtype = 0) {
    Bytes file;
    file.header(1).put(kind);
    if (kind != kV1) file.put(int32_t(0));
    return file.shape(lengths).context().put(dtype).floats({1, 2}).names({}).text;
  };
  CHECK(code_of(record({2})) == Code(0));
  CHECK(code_of(record({3})) == Code::kFormat);
  CHECK(code_of(record({int64_t(1) << 40})) == Code::kFormat);
  CHECK(code_of(record({int64_t(1) << 62})) == Code::kFormat);
  CHECK(code_of(record({int64_t(1) << 32, int64_t(1) << 32})) == Code::kFormat);  // 2^64 is 0
  CHECK(code_of(record({(int64_t(1) << 62) + 1, 4})) == Code::kFormat);
  CHECK(code_of(record({-2})) == Code::kFormat);
  CHECK(code_of(record({-1, -2})) == Code::kFormat);
  CHECK(code_of(record({INT64_MIN, INT64_MIN}, kV1)) == Code::kFormat);
  CHECK(code_of(record({INT64_MAX, INT64_MAX, 0}, kV3)) == Code::kFormat);
  CHECK(code_of(record({2}, kV2, 8)) == Code::kFormat);
  CHECK(code_of(record({2}, kV2, -1)) == Code::kFormat);
  CHECK(code_of(record({2}, kV2, INT32_MAX)) == Code::kFormat);
  CHECK(code_of(record({2}, 0xF993FACBu)) == Code::kFormat);
  CHECK(code_of(Bytes().header(UINT64_MAX).names({}).text) == Code::kFormat);
  CHECK(code_of(Bytes().header(uint64_t(1) << 62).names({}).text) == Code::kFormat);
  CHECK(code_of(Bytes().header(0).put(uint64_t(1)).text) == Code::kFormat);
  CHECK(code_of(Bytes().header(0).names({}).text) == Code(0));
  for (int32_t rank : {-1, -2, 33, INT32_MAX, INT32_MIN}) {
    CHECK(code_of(Bytes().header(1).put(kV2).put(int32_t(0)).put(rank).names({}).text) == Code::kFormat);
  }
  for (uint32_t rank : {33u, 0x7fffffffu, 0xffffffffu}) {
    CHECK(code_of(Bytes().header(1).put(rank).names({}).text) == Code::kFormat);
  }
  for (int32_t storage : {-1, 3, INT32_MAX}) {
    CHECK(code_of(Bytes().header(1).put(kV2).put(storage).shape({1}).context().put(0).floats({1}).names({}).text) ==
          Code::kFormat);
  }
  Bytes names;
  names.header(1).put(kV2).put(int32_t(0)).shape({1}).context().put(int32_t(0)).floats({1});
  CHECK(code_of(Bytes(names).names({"a", "b"}).text) == Code::kFormat);
  CHECK(code_of(Bytes(names).put(uint64_t(1)).put(UINT64_MAX).text) == Code::kFormat);
  CHECK(code_of(Bytes(names).put(UINT64_MAX).text) == Code::kFormat);
  CHECK(code_of(Bytes(names).names({std::string("a\0b", 3)}).text) == Code::kFormat);
  CHECK_THROWS(load("PNG and something after it"), Error, "this is not a .params file");
}

TEST(files_with_wrong_bytes_are_read_or_refused_but_never_more) {
  const std::string whole = mixed().text;
  set_log([](LogLevel, const std::string &) {}, LogLevel::kError);
  std::mt19937 random(1);
  const char *const repeats = std::getenv("COHORT_FUZZ");
  const int num_rounds = repeats ? std::atoi(repeats) : 2000;
  int num_read = 0;
  for (int round = 0; round < num_rounds; ++round) {
    std::string bytes = whole;
    const int num_changes = 1 + int(random() % 4);
    for (int i = 0; i < num_changes; ++i) {
      const size_t at = random() % bytes.size();
      switch (random() % 5) {
        case 0:
          bytes[at] = char(random());
          break;
        case 1:
          bytes[at] = char(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.erase(at, 1 + random() % 9);
          break;
        case 3:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
          break;
        default:
          for (size_t k = at; k < std::min(at + 8, bytes.size()); ++k) bytes[k] = char(random() % 2 ? 0xff : 0);
      }
    }
    const Code code = code_of(bytes);
    CHECK(code == Code(0) || code == Code::kFormat || code == Code::kUnsupported);
    num_read += code == Code(0);
  }
  set_log(nullptr, LogLevel::kWarning);
  CHECK(num_read > 0);
}

TEST(files_are_saved_and_loaded) {
  const Folder folder;
  const std::string path = folder.file("model-0001.params");
  NamedArrays arrays;
  for (int i = 0; i < 40; ++i) arrays.emplace_back(text("arg:w", i), array_of({i + 1, 37}));
  arrays.emplace_back("arg:large", array_of({300, 301}));
  save_params(path, arrays);
  CHECK(read_file(path) == params_bytes(arrays));
  const NamedArrays back = load_params(path);
  CHECK_EQ(back.size(), arrays.size());
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK_EQ(back[i].first, arrays[i].first);
    CHECK(values(back[i].second) == values(arrays[i].second));
  }
  CHECK_EQ(folder.list().size(), 1u);
}

TEST(a_file_cut_on_disk_is_a_format_error_with_its_name) {
  const Folder folder;
  const std::string path = folder.file("cut.params"), whole = example().text;
  write_file(path, whole.data(), 90);
  CHECK_THROWS(load_params(path), Error, "cut.params', name 0, byte 84: truncated");
}

TEST(files_that_cannot_be_read_are_io_errors_with_their_name) {
  const Folder folder;
  for (const std::string &path : {folder.file("missing.params"), folder.path, std::string()}) {
    try {
      load_params(path);
      CHECK(!"loaded");
    } catch (const Error &error) {
      CHECK(error.code() == Code::kIo);
      CHECK_EQ(error.subject(), path);
      CHECK(std::strstr(error.what(), ("'" + path + "'").c_str()));
    }
  }
}

TEST(a_failed_save_leaves_the_old_file_and_nothing_else) {
  const Folder folder;
  const std::string path = folder.file("model.params");
  save_params(path, {{"a", array_of({2})}});
  const std::string before = read_file(path);

  const NDArray failed = array_of({100});
  failed.fail("Convolution 'conv0': no luck");
  CHECK_THROWS(save_params(path, {{"a", array_of({50000})}, {"b", failed}}), Error, "conv0");
  CHECK(read_file(path) == before);
  CHECK_EQ(folder.list().size(), 1u);

  // A full disk, simulated by a limit on the size of files.
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100 << 10, limit.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  Code code = Code(0);
  try {
    save_params(path, {{"a", array_of({100000})}});
  } catch (const Error &error) {
    code = error.code();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  CHECK(code == Code::kIo);
  CHECK(read_file(path) == before);
  CHECK_EQ(folder.list().size(), 1u);

  CHECK_THROWS(save_params(folder.file("missing/x.params"), {}), Error, "missing/x.params' cannot be written");
  CHECK_THROWS(save_params(folder.path, {}), Error, "Is a directory");
}

TEST(a_save_keeps_permissions_and_follows_links) {
  const Folder folder;
  const std::string path = folder.file("model.params"), link = folder.file("link.params");
  save_params(path, {{"a", array_of({2})}});
  CHECK(chmod(path.c_str(), 0640) == 0);
  CHECK(symlink("model.params", link.c_str()) == 0);
  save_params(link, {{"b", array_of({3})}});
  struct stat status;
  CHECK(lstat(link.c_str(), &status) == 0 && S_ISLNK(status.st_mode));
  CHECK(stat(path.c_str(), &status) == 0);
  CHECK_EQ(status.st_mode & 0777, 0640u);
  CHECK(load_params(path)[0].first == "b");
}

UNIT_MAIN()
