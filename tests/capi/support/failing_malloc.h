/* SPDX-License-Identifier: Apache-2.0 */
/* A malloc that fails the N-th call of the library, or all calls from the N-th on. It takes the place of the C
 * library's in the program that includes this header, in one of its files.
 *
 * Two libraries do not handle failed allocations: libgomp ends the process, and oneDNN 2.6 uses the null pointer, so
 * calls from these always succeed. */
#ifndef COHORT_TESTS_FAILING_MALLOC_H
#define COHORT_TESTS_FAILING_MALLOC_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first header: dl_iterate_phdr() needs it"
#endif

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "support/sanitizer.h"

#define OWN_MALLOC !UNDER_SANITIZER /* a sanitizer has its own malloc: nothing fails */

/* Setup of a group of tests, before the first call of arm(). */
static inline int find_libraries(void **state);

/* Makes allocation number `countdown` from now on fail, and with `onward` all after it. 0: none fails. */
static inline void arm(long countdown, int onward);

/* Lets all allocations succeed. */
static inline void disarm(void);

/* The number of allocations from arm() to now, or to disarm(). */
static inline long num_asked(void);

/* Whether oneDNN was among the callers of the first allocation that failed. */
static inline int failed_in_onednn(void);

/* The number of blocks of the process that have not been freed. */
static inline long num_live_blocks(void);

/* ---- implementation ---- */

typedef struct code {
  uintptr_t begin, end;
} code;

static code gomp, onednn;

static struct {
  long countdown; /* counts down to the allocation that fails; 0: none does */
  int onward;     /* all later ones fail, too */
  int armed;
  long asked;    /* while armed */
  int in_onednn; /* the first failing allocation was reached */
  long live;     /* blocks that have not been freed */
} memory;

#if OWN_MALLOC
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static int is_in(const code *library, const void *address) {
  return (uintptr_t)address >= library->begin && (uintptr_t)address < library->end;
}

static int called_by(const code *library) {
  void *frames[64];
  const int num_frames = backtrace(frames, 64);
  int i;

  for (i = 0; i < num_frames; ++i) {
    if (is_in(library, frames[i])) return 1;
  }
  return 0;
}

static int refuse(const void *caller) {
  long asked;

  if (!__atomic_load_n(&memory.armed, __ATOMIC_RELAXED)) return 0;
  if (is_in(&gomp, caller) || is_in(&onednn, caller)) return 0;
  asked = __atomic_add_fetch(&memory.asked, 1, __ATOMIC_RELAXED);
  if (memory.countdown == 0 || asked < memory.countdown || (asked > memory.countdown && !memory.onward)) return 0;
  if (asked == memory.countdown) memory.in_onednn = called_by(&onednn);
  errno = ENOMEM;
  return 1;
}

static void *count_live(void *block) {
  if (block) __atomic_add_fetch(&memory.live, 1, __ATOMIC_RELAXED);
  return block;
}

void *malloc(size_t size) { return refuse(__builtin_return_address(0)) ? NULL : count_live(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) {
  return refuse(__builtin_return_address(0)) ? NULL : count_live(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
  void *moved;

  if (size && refuse(__builtin_return_address(0))) return NULL;
  moved = __libc_realloc(block, size);
  if (!block) return count_live(moved);
  if (!size && !moved) __atomic_sub_fetch(&memory.live, 1, __ATOMIC_RELAXED);
  return moved;
}

void *memalign(size_t alignment, size_t size) {
  return refuse(__builtin_return_address(0)) ? NULL : count_live(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
  return refuse(__builtin_return_address(0)) ? NULL : count_live(__libc_memalign(alignment, size));
}

int posix_memalign(void **out_block, size_t alignment, size_t size) {
  void *block = refuse(__builtin_return_address(0)) ? NULL : count_live(__libc_memalign(alignment, size));

  if (!block) return ENOMEM;
  *out_block = block;
  return 0;
}

void free(void *block) {
  if (block) __atomic_sub_fetch(&memory.live, 1, __ATOMIC_RELAXED);
  __libc_free(block);
}
#endif

static int find_code(struct dl_phdr_info *info, size_t size, void *data) {
  code *const found = strstr(info->dlpi_name, "libgomp") ? &gomp : strstr(info->dlpi_name, "libdnnl") ? &onednn : NULL;
  int i;

  (void)size;
  (void)data;
  for (i = 0; found && i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
    found->begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    found->end = found->begin + info->dlpi_phdr[i].p_memsz;
  }
  return 0;
}

static inline int find_libraries(void **state) {
  void *frame;

  (void)state;
  backtrace(&frame, 1); /* allocates at its first call */
  dl_iterate_phdr(find_code, NULL);
  return 0;
}

static inline void arm(long countdown, int onward) {
  memory.countdown = countdown;
  memory.onward = onward;
  memory.asked = 0;
  memory.in_onednn = 0;
  __atomic_store_n(&memory.armed, 1, __ATOMIC_SEQ_CST);
}

static inline void disarm(void) { __atomic_store_n(&memory.armed, 0, __ATOMIC_SEQ_CST); }

static inline long num_asked(void) { return memory.asked; }

static inline int failed_in_onednn(void) { return memory.in_onednn; }

static inline long num_live_blocks(void) { return memory.live; }

#endif
