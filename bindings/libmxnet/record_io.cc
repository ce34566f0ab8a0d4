// SPDX-License-Identifier: Apache-2.0
// MXRecordIO*: readers and writers of RecordIO files.
#include <mutex>

#include "handles.hpp"
#include "mxnet/c_api.h"
#include "record_file.hpp"

namespace cohort_mxnet {
namespace {

struct ReaderObject : Object {
  static constexpr Kind kKind = Kind::kRecordReader;
  static constexpr const char *kName = "a RecordIO reader";
  explicit ReaderObject(const char *uri) : Object(kKind), reader(uri) {}

  std::mutex mutex;  // guards the other two
  RecordReader reader;
  std::string record;
};

struct WriterObject : Object {
  static constexpr Kind kKind = Kind::kRecordWriter;
  static constexpr const char *kName = "a RecordIO writer";
  explicit WriterObject(const char *uri) : Object(kKind), writer(uri) {}

  std::mutex mutex;  // guards writer
  RecordWriter writer;
};

template <typename T>
int create(const char *uri, RecordIOHandle *out) {
  return guarded([&] {
    required(out, "out");
    *out = publish(std::make_shared<T>(&required(uri, "uri")));
  });
}

// Calls `body` with the object of a handle, whose mutex is locked.
template <typename T, typename Body>
int with(RecordIOHandle handle, Body body) {
  return guarded([&] {
    const std::shared_ptr<T> object = from_handle<T>(handle);
    const std::lock_guard<std::mutex> lock(object->mutex);
    body(*object);
  });
}

}  // namespace
}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXRecordIOWriterCreate(const char *uri, RecordIOHandle *out) { return create<WriterObject>(uri, out); }

int MXRecordIOWriterFree(RecordIOHandle handle) {
  if (!handle) return 0;
  // The handle goes even if the last bytes cannot be written.
  return with<WriterObject>(handle, [&](WriterObject &object) {
    free_handle<WriterObject>(handle);
    object.writer.close();
  });
}

int MXRecordIOWriterWriteRecord(RecordIOHandle handle, const char *buf, size_t size) {
  return with<WriterObject>(handle, [&](WriterObject &object) {
    if (size != 0) required(buf, "buf");
    object.writer.write({buf, size});
  });
}

int MXRecordIOWriterTell(RecordIOHandle handle, size_t *pos) {
  return with<WriterObject>(handle, [&](WriterObject &object) { required(pos, "pos") = object.writer.tell(); });
}

int MXRecordIOReaderCreate(const char *uri, RecordIOHandle *out) { return create<ReaderObject>(uri, out); }

int MXRecordIOReaderFree(RecordIOHandle handle) {
  return guarded([&] { free_handle<ReaderObject>(handle); });
}

int MXRecordIOReaderReadRecord(RecordIOHandle handle, char const **buf, size_t *size) {
  return with<ReaderObject>(handle, [&](ReaderObject &object) {
    required(buf, "buf");
    required(size, "size");
    const bool is_there = object.reader.next(object.record);
    *buf = is_there ? object.record.c_str() : nullptr;
    *size = is_there ? object.record.size() : 0;
  });
}

int MXRecordIOReaderSeek(RecordIOHandle handle, size_t pos) {
  return with<ReaderObject>(handle, [&](ReaderObject &object) { object.reader.seek(pos); });
}

int MXRecordIOReaderTell(RecordIOHandle handle, size_t *pos) {
  return with<ReaderObject>(handle, [&](ReaderObject &object) { required(pos, "pos") = object.reader.tell(); });
}

}  // extern "C"
