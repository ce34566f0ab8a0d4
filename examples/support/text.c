/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { HELD_OUT_OF = 10, MAX_TEXT = 64 << 20 };

text load_text(const char *path) {
  FILE *file = fopen(path, "rb");
  unsigned char code_of[256] = {0};
  text t = {0, NULL, 1, {0}};
  long size = -1;
  size_t i;

  if (!file) fail("the text %s cannot be read: %s; --text names another", path, strerror(errno));
  if (fseek(file, 0, SEEK_END) == 0) size = ftell(file);
  if (size < 1 || size > MAX_TEXT)
    fail("the text %s is no file of 1 byte to %d MiB; --text names another", path, MAX_TEXT >> 20);
  rewind(file);
  t.num = (size_t)size;
  t.codes = allocate(t.num);
  if (fread(t.codes, 1, t.num, file) != t.num) fail("the text %s cannot be read: %s", path, strerror(errno));
  fclose(file);
  for (i = 0; i < t.num; ++i) {
    unsigned char *code = &code_of[t.codes[i]];

    if (!*code) { /* bytes in the order of their first occurrence; a 256th shares the last number */
      *code = (unsigned char)(t.num_codes < 256 ? t.num_codes++ : 255);
      t.of_code[*code] = (char)t.codes[i];
    }
    t.codes[i] = *code;
  }
  return t;
}

void free_text(text *t) { free(t->codes); }

bucket_list read_buckets(const char *list) {
  bucket_list buckets = {0, {0}};
  char item[32];

  while (*list) {
    if (buckets.num == MAX_BUCKETS) fail("--buckets: at most %d", MAX_BUCKETS);
    buckets.lengths[buckets.num] = (long)number("--buckets", next_item(&list, item, sizeof item), 1, 1024);
    if (buckets.num && buckets.lengths[buckets.num] <= buckets.lengths[buckets.num - 1])
      fail("--buckets: each is longer than the one before");
    ++buckets.num;
  }
  if (buckets.num == 0) fail("--buckets: at least one");
  return buckets;
}

text_batch make_batch(const bucket_list *buckets, size_t bucket, long batch) {
  const size_t num = (size_t)(batch * buckets->lengths[bucket]);
  text_batch made = {bucket, NULL, NULL};
  size_t i;

  made.data = allocate(num * sizeof(float));
  made.labels = allocate(num * sizeof(float));
  for (i = 0; i < num; ++i) made.data[i] = made.labels[i] = TEXT_PADDING;
  return made;
}

static text_batch *append_batch(text_batches *all, text_batch made) {
  if (all->num % 64 == 0) {
    text_batch *more = allocate((all->num + 64) * sizeof *more);

    if (all->num) memcpy(more, all->batches, all->num * sizeof *more);
    free(all->batches);
    all->batches = more;
  }
  all->batches[all->num] = made;
  return &all->batches[all->num++];
}

void free_batches(text_batches *all) {
  size_t i;

  for (i = 0; i < all->num; ++i) {
    free(all->batches[i].data);
    free(all->batches[i].labels);
  }
  free(all->batches);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

typedef struct line {
  const unsigned char *codes; /* its newline included */
  size_t num;
} line;

static size_t bucket_for(const bucket_list *buckets, size_t length) {
  size_t k = 0;

  while (k + 1 < buckets->num && (size_t)buckets->lengths[k] < length) ++k;
  return k;
}

/* The lines of one part, without empty ones. */
static size_t find_lines(const text *t, int part, size_t longest, unsigned char newline, line *lines) {
  size_t begin = 0, number = 0, num = 0;

  while (begin < t->num) {
    size_t end = begin;

    while (end < t->num && end - begin < longest && t->codes[end] != newline) ++end;
    if (end < t->num && end - begin < longest) ++end; /* the newline */
    if (end - begin > 1 && (number++ % HELD_OUT_OF == HELD_OUT_OF - 1) == (part == TEXT_HELD_OUT)) {
      lines[num].codes = t->codes + begin;
      lines[num++].num = end - begin;
    }
    begin = end;
  }
  return num;
}

static void shuffle_lines(line *lines, size_t num, uint64_t *random_state) {
  size_t i;

  for (i = num; i > 1; --i) {
    const size_t j = (size_t)(random_number(random_state) % i);
    const line kept = lines[i - 1];

    lines[i - 1] = lines[j];
    lines[j] = kept;
  }
}

static void shuffle_batches(text_batches *all, uint64_t *random_state) {
  size_t i;

  for (i = all->num; i > 1; --i) {
    const size_t j = (size_t)(random_number(random_state) % i);
    const text_batch kept = all->batches[i - 1];

    all->batches[i - 1] = all->batches[j];
    all->batches[j] = kept;
  }
}

text_batches line_batches(const text *t, int part, const bucket_list *buckets, long batch, uint64_t *random_state) {
  const size_t longest = (size_t)buckets->lengths[buckets->num - 1];
  const char *found = memchr(t->of_code, '\n', (size_t)t->num_codes);
  const unsigned char newline = (unsigned char)(found ? found - t->of_code : 1);
  line *lines = allocate((t->num / 2 + 2) * sizeof *lines);
  const size_t num = find_lines(t, part, longest, newline, lines);
  text_batches all = {0, 0, NULL};
  long rows[MAX_BUCKETS] = {0}; /* rows used of the bucket's open batch */
  size_t open[MAX_BUCKETS] = {0}, i, k;

  shuffle_lines(lines, num, random_state);
  for (i = 0; i < num; ++i) {
    const size_t b = bucket_for(buckets, lines[i].num);
    float *data, *labels;

    if (rows[b] == 0) open[b] = (size_t)(append_batch(&all, make_batch(buckets, b, batch)) - all.batches);
    data = all.batches[open[b]].data + rows[b] * buckets->lengths[b];
    labels = all.batches[open[b]].labels + rows[b] * buckets->lengths[b];
    for (k = 0; k < lines[i].num; ++k) { /* a line starts after the newline of another */
      data[k] = k ? lines[i].codes[k - 1] : newline;
      labels[k] = lines[i].codes[k];
    }
    all.num_codes += lines[i].num;
    rows[b] = (rows[b] + 1) % batch;
  }
  free(lines);
  shuffle_batches(&all, random_state);
  return all;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

text_batches stream_batches(const text *t, int part, const bucket_list *buckets, long batch, uint64_t *random_state) {
  const size_t cut = t->num - t->num / HELD_OUT_OF;
  const unsigned char *codes = part == TEXT_HELD_OUT ? t->codes + cut : t->codes;
  const size_t num = part == TEXT_HELD_OUT ? t->num - cut : cut;
  const size_t each = num > 1 ? (num - 1) / (size_t)batch : 0;
  text_batches all = {0, 0, NULL};
  size_t at = 0;

  while (each - at >= (size_t)buckets->lengths[0]) {
    size_t b = (size_t)(random_number(random_state) % buckets->num);
    text_batch made;
    long row, k;

    while ((size_t)buckets->lengths[b] > each - at) --b; /* the first fits */
    made = make_batch(buckets, b, batch);
    for (row = 0; row < batch; ++row) {
      for (k = 0; k < buckets->lengths[b]; ++k) {
        const size_t from = (size_t)row * each + at + (size_t)k, to = (size_t)(row * buckets->lengths[b] + k);

        made.data[to] = codes[from];
        made.labels[to] = codes[from + 1];
      }
    }
    append_batch(&all, made);
    at += (size_t)buckets->lengths[b];
    all.num_codes += (size_t)(batch * buckets->lengths[b]);
  }
  return all;
}
