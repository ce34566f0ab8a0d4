/* SPDX-License-Identifier: Apache-2.0 */
/* RecordIO files: records come back as they were written, positions lead to them, and damaged files are errors. */
#include "mxnet_test.h"

static const char magic[4] = {0x0a, 0x23, (char)0xd7, (char)0xce};

/* Writes records of these lengths into a file; record i consists of bytes i + 1. */
static const char *write_records(const char *name, const size_t *lengths, size_t num, size_t *positions) {
  const char *const path = path_of(name);
  char bytes[64];
  RecordIOHandle writer = NULL;
  size_t i;

  ok(MXRecordIOWriterCreate(path, &writer));
  for (i = 0; i < num; ++i) {
    assert_true(lengths[i] <= sizeof bytes);
    memset(bytes, (int)i + 1, sizeof bytes);
    ok(MXRecordIOWriterTell(writer, &positions[i]));
    ok(MXRecordIOWriterWriteRecord(writer, bytes, lengths[i]));
  }
  ok(MXRecordIOWriterFree(writer));
  return path;
}

static void assert_record(RecordIOHandle reader, const void *bytes, size_t num_bytes) {
  const char *found = NULL;
  size_t size = 99;

  ok(MXRecordIOReaderReadRecord(reader, &found, &size));
  assert_non_null(found);
  assert_int_equal(size, num_bytes);
  assert_memory_equal(found, bytes, num_bytes);
}

static void assert_end(RecordIOHandle reader) {
  const char *found = "";
  size_t size = 99;

  ok(MXRecordIOReaderReadRecord(reader, &found, &size));
  assert_null(found);
  assert_int_equal(size, 0);
}

static void records_come_back(void **state) {
  const size_t lengths[] = {5, 0, 8, 1};
  size_t positions[4], position = 0;
  const char *path = write_records("a.rec", lengths, 4, positions);
  RecordIOHandle reader = NULL;

  (void)state;
  ok(MXRecordIOReaderCreate(path, &reader));
  assert_record(reader, "\1\1\1\1\1", 5);
  assert_record(reader, "", 0);
  ok(MXRecordIOReaderTell(reader, &position));
  assert_int_equal(position, positions[2]);
  assert_record(reader, "\3\3\3\3\3\3\3\3", 8);
  assert_record(reader, "\4", 1);
  assert_end(reader);
  assert_end(reader);
  ok(MXRecordIOReaderFree(reader));
}

static void a_position_leads_to_its_record(void **state) {
  const size_t lengths[] = {5, 3, 8};
  size_t positions[3];
  const char *path = write_records("a.rec", lengths, 3, positions);
  const char *found = NULL;
  size_t size = 0;
  RecordIOHandle reader = NULL;

  (void)state;
  ok(MXRecordIOReaderCreate(path, &reader));
  ok(MXRecordIOReaderSeek(reader, positions[2]));
  assert_record(reader, "\3\3\3\3\3\3\3\3", 8);
  assert_end(reader);
  ok(MXRecordIOReaderSeek(reader, positions[1]));
  assert_record(reader, "\2\2\2", 3);
  ok(MXRecordIOReaderSeek(reader, positions[1] + 4));
  fails(MXRecordIOReaderReadRecord(reader, &found, &size), "expected the beginning of a record");
  ok(MXRecordIOReaderSeek(reader, 0)); /* it goes on after an error */
  assert_record(reader, "\1\1\1\1\1", 5);
  fails(MXRecordIOReaderSeek(reader, SIZE_MAX), "2^63");
  ok(MXRecordIOReaderFree(reader));
}

/* The bytes of the format, which programs of others read. */
static void a_file_is_laid_out_as_others_expect(void **state) {
  const char expected[] = "\x0a\x23\xd7\xce\5\0\0\0\1\1\1\1\1\0\0\0\x0a\x23\xd7\xce\4\0\0\0\2\2\2\2";
  const size_t lengths[] = {5, 4};
  size_t positions[2], num_bytes = 0;
  char *found = read_file(write_records("a.rec", lengths, 2, positions), &num_bytes);

  (void)state;
  assert_int_equal(num_bytes, sizeof expected - 1);
  assert_memory_equal(found, expected, num_bytes);
  assert_int_equal(positions[1], 16);
  free(found);
}

/* A record that contains the magic number on a boundary of four bytes is cut there. */
static void a_record_with_the_magic_number_is_cut_and_joined(void **state) {
  char record[24], *found;
  const char *path = path_of("a.rec");
  size_t num_bytes = 0, i, num_magic = 0;
  RecordIOHandle writer = NULL, reader = NULL;

  (void)state;
  memset(record, 7, sizeof record);
  memcpy(record, magic, 4);
  memcpy(record + 8, magic, 4);
  memcpy(record + 17, magic, 4); /* not on a boundary: it stays */
  ok(MXRecordIOWriterCreate(path, &writer));
  ok(MXRecordIOWriterWriteRecord(writer, record, 23));
  ok(MXRecordIOWriterWriteRecord(writer, record, 4));
  ok(MXRecordIOWriterFree(writer));
  found = read_file(path, &num_bytes);
  for (i = 0; i + 4 <= num_bytes; i += 4) num_magic += memcmp(found + i, magic, 4) == 0;
  assert_int_equal(num_magic, 3 + 2); /* parts */
  assert_int_equal(found[7], 0x20);   /* the first part is empty */
  free(found);
  ok(MXRecordIOReaderCreate(path, &reader));
  assert_record(reader, record, 23);
  assert_record(reader, record, 4);
  assert_end(reader);
  ok(MXRecordIOReaderFree(reader));
}

static void refuses(const char *bytes, size_t num_bytes, const char *part) {
  const char *found = NULL;
  size_t size = 0;
  RecordIOHandle reader = NULL;

  ok(MXRecordIOReaderCreate(write_file("bad.rec", bytes, num_bytes), &reader));
  fails(MXRecordIOReaderReadRecord(reader, &found, &size), part);
  fails(MXRecordIOReaderReadRecord(reader, &found, &size), part); /* it stays where it was */
  ok(MXRecordIOReaderFree(reader));
}

#define REFUSES(bytes, part) refuses(bytes, sizeof(bytes) - 1, part)

static void damaged_files_are_errors(void **state) {
  (void)state;
  REFUSES("x", "ends inside a record");
  REFUSES("\x0a\x23\xd7\xce\1\0\0", "ends inside a record");
  REFUSES("\x0a\x23\xd7\xce\5\0\0\0abcd", "ends inside a record");
  REFUSES("\x0a\x23\xd7\xce\5\0\0\0abcde\0\0", "ends inside a record"); /* in the padding */
  REFUSES("\x0a\x23\xd7\xcf\1\0\0\0a\0\0\0", "expected the beginning of a record");
  REFUSES(
      "\x0a\x23\xd7\xce\xff\xff\xff\x1f"
      "abcd",
      "ends inside a record"); /* a length of 2^29 - 1 */
  REFUSES("\x0a\x23\xd7\xce\0\0\0\x40", "a further part");
  REFUSES("\x0a\x23\xd7\xce\0\0\0\x60", "a further part");
  REFUSES("\x0a\x23\xd7\xce\0\0\0\x80", "");
  REFUSES("\x0a\x23\xd7\xce\0\0\0\x20", "ends inside a record"); /* no second part */
  REFUSES("\x0a\x23\xd7\xce\0\0\0\x20\x0a\x23\xd7\xce\0\0\0\0", "the beginning of another one");
}

static void wrong_calls_are_errors(void **state) {
  const char *found = NULL;
  size_t size = 0;
  RecordIOHandle reader = NULL, writer = NULL;

  (void)state;
  fails(MXRecordIOReaderCreate(path_of("none.rec"), &reader), "none.rec: cannot open the file: No such file");
  fails(MXRecordIOReaderCreate(test_folder, &reader), "directory");
  fails(MXRecordIOReaderCreate("hdfs://host/a.rec", &reader), "another scheme");
  fails(MXRecordIOReaderCreate(NULL, &reader), "uri");
  fails(MXRecordIOWriterCreate(path_of("no/folder.rec"), &writer), "cannot open the file");
  assert_null(reader);
  ok(MXRecordIOWriterCreate(path_of("a.rec"), &writer));
  fails(MXRecordIOWriterCreate(path_of("a.rec"), NULL), "out");
  fails(MXRecordIOWriterWriteRecord(writer, NULL, 3), "buf");
  fails(MXRecordIOWriterWriteRecord(writer, "", (size_t)1 << 29), "2^29");
  fails(MXRecordIOReaderReadRecord(writer, &found, &size), "another object");
  ok(MXRecordIOWriterWriteRecord(writer, NULL, 0));
  ok(MXRecordIOWriterFree(writer));
  fails(MXRecordIOWriterWriteRecord(writer, "a", 1), "freed");
  fails(MXRecordIOWriterFree(writer), "freed");
  ok(MXRecordIOReaderFree(NULL));
  ok(MXRecordIOReaderCreate(path_of("a.rec"), &reader));
  assert_record(reader, "", 0);
  assert_end(reader);
  fails(MXRecordIOReaderReadRecord(reader, NULL, &size), "buf");
  fails(MXRecordIOReaderTell(reader, NULL), "pos");
  ok(MXRecordIOReaderFree(reader));
}

static void a_file_may_be_named_with_its_scheme(void **state) {
  const size_t length = 2;
  size_t position = 0;
  char uri[640];
  RecordIOHandle reader = NULL;

  (void)state;
  sprintf(uri, "file://%s", write_records("a.rec", &length, 1, &position));
  ok(MXRecordIOReaderCreate(uri, &reader));
  assert_record(reader, "\1\1", 2);
  ok(MXRecordIOReaderFree(reader));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(records_come_back),
      TEST(a_position_leads_to_its_record),
      TEST(a_file_is_laid_out_as_others_expect),
      TEST(a_record_with_the_magic_number_is_cut_and_joined),
      TEST(damaged_files_are_errors),
      TEST(wrong_calls_are_errors),
      TEST(a_file_may_be_named_with_its_scheme),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
