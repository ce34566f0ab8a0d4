/* SPDX-License-Identifier: Apache-2.0 */
/* Where tests write files. */
#ifndef COHORT_TESTS_TEMPORARY_H
#define COHORT_TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEMPORARY_PATH = 600 };

/* A path that only this process uses, in the folder for temporary files. */
static inline const char *temporary_path(char path[TEMPORARY_PATH], const char *name, const char *end) {
  const char *const folder = getenv("TMPDIR");

  snprintf(path, TEMPORARY_PATH, "%s/%s_%ld%s", folder ? folder : "/tmp", name, (long)getpid(), end);
  return path;
}

#endif
