/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies a picture with a network in MXNet's files, through MXNet's prediction interface. It is written as programs
 * are that embed MXNet, and links to libmxnet.so alone:
 *
 *   classify_image [OPTION...] SYMBOL.json FILE.params PICTURE.ppm
 *
 * The picture is a binary PGM or PPM file (P5, P6). It is scaled to the size of the network's input, less the mean,
 * times the scale. The most likely classes are printed, by name if there is a file with a name on each line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxnet/c_predict_api.h"

static const char usage[] =
    "usage: classify_image [OPTION...] SYMBOL.json FILE.params PICTURE.ppm\n"
    "  --shape C,H,W    channels (1 or 3), height and width of the input (3,224,224)\n"
    "  --input NAME     the input's name (data)\n"
    "  --mean R,G,B     what is subtracted from each channel (0,0,0)\n"
    "  --scale S        what the difference is multiplied by (1)\n"
    "  --names FILE     a file with the name of a class on each line\n"
    "  --top N          how many classes to print (5)\n"
    "  --gpu ID         run on this GPU\n";

typedef struct options {
  unsigned shape[3];
  const char *input, *names, *files[3];
  float mean[3], scale;
  int top, gpu;
} options;

static void fail(const char *subject, const char *message) {
  fprintf(stderr, "classify_image: %s: %s\n", subject, message);
  exit(1);
}

static void check(int answer, const char *subject) {
  if (answer != 0) fail(subject, MXGetLastError());
}

static void *allocate(size_t bytes) {
  void *const memory = malloc(bytes + 1);

  if (!memory) fail("memory", strerror(errno));
  return memory;
}

/* Reads a whole file, with a zero after its end. */
static char *read_file(const char *path, size_t *num_bytes) {
  FILE *const file = fopen(path, "rb");
  char *bytes;
  long size;

  if (!file) fail(path, strerror(errno));
  if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
    fail(path, strerror(errno));
  bytes = allocate((size_t)size);
  if (fread(bytes, 1, (size_t)size, file) != (size_t)size) fail(path, "the file cannot be read");
  bytes[size] = 0;
  fclose(file);
  *num_bytes = (size_t)size;
  return bytes;
}

typedef struct picture {
  unsigned channels, width, height;
  const unsigned char *pixels;
} picture;

/* The next number of the header, after blanks and comments. */
static unsigned header_number(const char *path, const char **at) {
  char *end;
  unsigned long number;

  while (**at == '#' || **at == ' ' || **at == '\t' || **at == '\r' || **at == '\n') {
    *at += **at == '#' ? strcspn(*at, "\n") : 1;
  }
  number = **at >= '0' && **at <= '9' ? strtoul(*at, &end, 10) : 0;
  if (number < 1 || number > 65535) fail(path, "expected a binary PGM or PPM file of 8 bits");
  *at = end;
  return (unsigned)number;
}

static picture parse_picture(const char *path, const char *bytes, size_t num_bytes) {
  picture made;
  const char *at = bytes + 2;

  if (strncmp(bytes, "P5", 2) != 0 && strncmp(bytes, "P6", 2) != 0) fail(path, "expected a PGM or PPM file (P5, P6)");
  made.channels = bytes[1] == '5' ? 1 : 3;
  made.width = header_number(path, &at);
  made.height = header_number(path, &at);
  if (header_number(path, &at) != 255) fail(path, "expected pixels from 0 to 255");
  ++at;
  if ((size_t)(at - bytes) > num_bytes ||
      num_bytes - (size_t)(at - bytes) < (size_t)made.channels * made.width * made.height)
    fail(path, "the file is cut short");
  made.pixels = (const unsigned char *)at;
  return made;
}

/* A channel between four pixels; x and y are in the picture. */
static float sample(const picture *from, unsigned channel, float x, float y) {
  const unsigned left = (unsigned)x, top = (unsigned)y;
  const unsigned right = left + 1 < from->width ? left + 1 : left, bottom = top + 1 < from->height ? top + 1 : top;
  const float along_x = x - (float)left, along_y = y - (float)top;
#define PIXEL(row, column) ((float)from->pixels[((size_t)(row)*from->width + (column)) * from->channels + channel])
  const float above = PIXEL(top, left) * (1 - along_x) + PIXEL(top, right) * along_x;
  const float below = PIXEL(bottom, left) * (1 - along_x) + PIXEL(bottom, right) * along_x;
#undef PIXEL

  return above * (1 - along_y) + below * along_y;
}

/* Where the middle of pixel `at` of `num` lies in a line of `from_num` pixels. */
static float position(unsigned at, unsigned num, unsigned from_num) {
  const float middle = ((float)at + 0.5f) * (float)from_num / (float)num - 0.5f;

  if (middle < 0) return 0;
  return middle > (float)(from_num - 1) ? (float)(from_num - 1) : middle;
}

/* The input of the network: channels first. A grey picture serves all channels, a colour one gives their mean. */
static float *make_input(const options *options, const picture *from) {
  const unsigned channels = options->shape[0], height = options->shape[1], width = options->shape[2];
  float *const input = allocate(sizeof(float) * channels * height * width), *to = input;
  unsigned c, y, x;

  for (c = 0; c < channels; ++c) {
    for (y = 0; y < height; ++y) {
      for (x = 0; x < width; ++x) {
        const float at_x = position(x, width, from->width), at_y = position(y, height, from->height);
        float value;

        if (from->channels == channels) {
          value = sample(from, c, at_x, at_y);
        } else if (from->channels == 1) {
          value = sample(from, 0, at_x, at_y);
        } else {
          value = (sample(from, 0, at_x, at_y) + sample(from, 1, at_x, at_y) + sample(from, 2, at_x, at_y)) / 3;
        }
        *to++ = (value - options->mean[c]) * options->scale;
      }
    }
  }
  return input;
}

/* The line of a class in a file of names; NULL if it has none. Cuts the text into lines. */
static const char *name_of(char *names, unsigned index) {
  static char **lines;
  static unsigned num;
  char *line;

  if (!names) return NULL;
  if (!lines) {
    lines = allocate(sizeof *lines * (strlen(names) + 1));
    for (line = strtok(names, "\r\n"); line; line = strtok(NULL, "\r\n")) lines[num++] = line;
  }
  return index < num ? lines[index] : NULL;
}

static void print_best(const float *scores, unsigned num, int top, char *names) {
  char *const is_printed = allocate(num);
  unsigned i, best;

  memset(is_printed, 0, num);
  for (; top > 0; --top) {
    const char *name;

    for (best = num, i = 0; i < num; ++i) {
      if (!is_printed[i] && (best == num || scores[i] > scores[best])) best = i;
    }
    if (best == num) break;
    is_printed[best] = 1;
    name = name_of(names, best);
    if (name) {
      printf("%.6f  %u  %s\n", (double)scores[best], best, name);
    } else {
      printf("%.6f  %u\n", (double)scores[best], best);
    }
  }
  free(is_printed);
}

static options parse_options(int argc, char **argv) {
  options made = {{3, 224, 224}, "data", NULL, {NULL, NULL, NULL}, {0, 0, 0}, 1, 5, -1};
  int i, num_files = 0;

  for (i = 1; i < argc; ++i) {
    const char *const option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    int good = 1;

    if (strcmp(option, "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    }
    if (strncmp(option, "--", 2) != 0) {
      if (num_files == 3) fail(option, "there are three files already");
      made.files[num_files++] = option;
      continue;
    }
    ++i;
    if (strcmp(option, "--shape") == 0) {
      good = sscanf(value, "%u,%u,%u", &made.shape[0], &made.shape[1], &made.shape[2]) == 3 &&
             (made.shape[0] == 1 || made.shape[0] == 3) && made.shape[1] - 1 < 65535 && made.shape[2] - 1 < 65535;
    } else if (strcmp(option, "--input") == 0) {
      made.input = value;
    } else if (strcmp(option, "--mean") == 0) {
      good = sscanf(value, "%f,%f,%f", &made.mean[0], &made.mean[1], &made.mean[2]) >= 1;
    } else if (strcmp(option, "--scale") == 0) {
      good = sscanf(value, "%f", &made.scale) == 1;
    } else if (strcmp(option, "--names") == 0) {
      made.names = value;
    } else if (strcmp(option, "--top") == 0) {
      good = sscanf(value, "%d", &made.top) == 1 && made.top > 0;
    } else if (strcmp(option, "--gpu") == 0) {
      good = sscanf(value, "%d", &made.gpu) == 1 && made.gpu >= 0;
    } else {
      fail(option, "there is no such option");
    }
    if (!good || i == argc) fail(option, "expected another value; --help describes it");
  }
  if (num_files != 3) {
    fputs(usage, stderr);
    exit(2);
  }
  return made;
}

int main(int argc, char **argv) {
  const options options = parse_options(argc, argv);
  const uint32_t indptr[] = {0, 4}, shape[] = {1, options.shape[0], options.shape[1], options.shape[2]};
  const char *inputs[] = {options.input};
  size_t num_params = 0, num_picture = 0, num_text = 0;
  char *const json = read_file(options.files[0], &num_text);
  char *const params = read_file(options.files[1], &num_params);
  char *const bytes = read_file(options.files[2], &num_picture);
  char *const names = options.names ? read_file(options.names, &num_text) : NULL;
  const picture from = parse_picture(options.files[2], bytes, num_picture);
  float *const input = make_input(&options, &from), *scores;
  PredictorHandle predictor = NULL;
  uint32_t *output_shape = NULL, num_axes = 0, num_scores = 1, i;

  if (num_params > 0x7fffffff) fail(options.files[1], "the interface takes parameters of less than 2 GiB");
  check(MXPredCreate(json, params, (int)num_params, options.gpu < 0 ? 1 : 2, options.gpu < 0 ? 0 : options.gpu, 1,
                     inputs, indptr, shape, &predictor),
        options.files[0]);
  check(MXPredSetInput(predictor, options.input, input, shape[1] * shape[2] * shape[3]), options.input);
  check(MXPredForward(predictor), "forward pass");
  check(MXPredGetOutputShape(predictor, 0, &output_shape, &num_axes), "output");
  for (i = 0; i < num_axes; ++i) num_scores *= output_shape[i];
  scores = allocate(sizeof(float) * num_scores);
  check(MXPredGetOutput(predictor, 0, scores, num_scores), "output");
  print_best(scores, num_scores, options.top, names);
  check(MXPredFree(predictor), "predictor");
  free(scores);
  free(input);
  free(names);
  free(bytes);
  free(params);
  free(json);
  return 0;
}
