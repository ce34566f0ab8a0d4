/* SPDX-License-Identifier: Apache-2.0 */
/* A text as numbers, and cut into batches of sequences for a language model. No part of Cohort. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_PADDING = 0, MAX_BUCKETS = 16 };

/* Each byte that occurs has a number from 1 on; 0 is padding. */
typedef struct text {
  size_t num;
  unsigned char *codes;
  long num_codes; /* including padding */
  char of_code[257];
} text;

/* Reads a file, or ends the program with a message. */
text load_text(const char *path);
void free_text(text *t);

/* Lengths of sequences, ascending. */
typedef struct bucket_list {
  size_t num;
  long lengths[MAX_BUCKETS];
} bucket_list;

/* Reads "16,32,48". */
bucket_list read_buckets(const char *list);

/* `batch` sequences of one length, row by row; each label is the code that follows in the text. */
typedef struct text_batch {
  size_t bucket;
  float *data, *labels;
} text_batch;

typedef struct text_batches {
  size_t num;
  size_t num_codes; /* labels that are not padding */
  text_batch *batches;
} text_batches;

/* A batch of nothing but padding. */
text_batch make_batch(const bucket_list *buckets, size_t bucket, long batch);

/* Parts of the text: one line in ten, or the last tenth of the stream, is held out. */
enum { TEXT_TRAIN = 0, TEXT_HELD_OUT = 1 };

/* Each line separately, in the smallest bucket that it fits in, padded; a line longer than the largest bucket is
 * continued as the next line. Unused rows are padding. Lines and batches are in a new order each time. */
text_batches line_batches(const text *t, int part, const bucket_list *buckets, long batch, uint64_t *random_state);

/* The text as `batch` parallel streams: row i of a batch continues where row i of the batch before ended. The length of
 * each batch is drawn from the buckets. */
text_batches stream_batches(const text *t, int part, const bucket_list *buckets, long batch, uint64_t *random_state);

void free_batches(text_batches *batches);

#endif /* TEXT_H */
