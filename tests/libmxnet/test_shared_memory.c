/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that one process hands to another one in shared memory. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "mxnet_test.h"

static const float numbers[] = {1, 2, 3, 4, 5, 6};
static const uint32_t two_by_three[] = {2, 3};

/* Another process finds the numbers in the memory, and doubles the first one. */
static void double_in_another_process(int descriptor) {
  const pid_t child = fork();
  int status = -1;

  assert_true(child >= 0);
  if (child == 0) {
    float *const found = mmap(NULL, sizeof numbers, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    if (found == MAP_FAILED || memcmp(found, numbers, sizeof numbers) != 0) _exit(1);
    found[0] *= 2;
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void another_process_shares_the_memory(void **state) {
  const float expected[] = {2, 2, 3, 4, 5, 6};
  const int shape[] = {2, 3};
  NDArrayHandle sent = floats_on(0, numbers, two_by_three, 2), received = NULL;
  int pid = 0, descriptor = -1, again = -1;

  (void)state;
  ok(MXNDArrayGetSharedMemHandle(sent, &pid, &descriptor));
  assert_int_equal(pid, -1);
  double_in_another_process(descriptor);
  ok(MXNDArrayCreateFromSharedMemEx(pid, dup(descriptor), shape, 2, 0, &received));
  ok(MXNDArrayFree(sent)); /* the receiver keeps the memory */
  assert_floats(received, expected, 6);
  assert_shape(received, shape, 2);
  /* An array that was received is sent on without a copy. */
  ok(MXNDArrayGetSharedMemHandle(received, &pid, &descriptor));
  ok(MXNDArrayGetSharedMemHandle(received, &pid, &again));
  assert_int_equal(descriptor, again);
  ok(MXNDArraySyncCopyFromCPU(received, numbers, 6));
  double_in_another_process(descriptor);
  take_floats(received, expected, 6);
}

/* Each time that an array is sent, the receiver gets its contents at that time. */
static void contents_are_those_of_the_call(void **state) {
  const float zeros[6] = {0};
  NDArrayHandle sent = floats_on(0, zeros, two_by_three, 2);
  int pid = 0, descriptor = -1;

  (void)state;
  ok(MXNDArrayGetSharedMemHandle(sent, &pid, &descriptor));
  ok(MXNDArraySyncCopyFromCPU(sent, numbers, 6));
  ok(MXNDArrayGetSharedMemHandle(sent, &pid, &descriptor));
  double_in_another_process(descriptor);
  take_floats(sent, numbers, 6); /* a copy: the array itself is as before */
}

static void wrong_calls_are_errors(void **state) {
  const int shape[] = {2, 3}, wide[] = {2, 2048}, negative[] = {-1}, huge[] = {2147483647, 2147483647, 2147483647};
  const uint32_t none[] = {0};
  NDArrayHandle sent = floats_on(0, numbers, two_by_three, 2), received = NULL, empty = NULL;
  int pid = 0, descriptor = -1;

  (void)state;
  ok(MXNDArrayGetSharedMemHandle(sent, &pid, &descriptor));
  fails(MXNDArrayCreateFromSharedMemEx(1234, descriptor, shape, 2, 0, &received), "shared_pid: expected -1");
  fails(MXNDArrayCreateFromSharedMemEx(-1, 9999, shape, 2, 0, &received), "not a descriptor");
  fails(MXNDArrayCreateFromSharedMemEx(-1, descriptor, wide, 2, 0, &received), "expected 16384 bytes, found 24");
  fails(MXNDArrayCreateFromSharedMemEx(-1, descriptor, negative, 1, 0, &received), "lengths of 0 or more");
  fails(MXNDArrayCreateFromSharedMemEx(-1, descriptor, huge, 3, 0, &received), "does not fit into memory");
  fails(MXNDArrayCreateFromSharedMemEx(-1, descriptor, shape, -1, 0, &received), "axes");
  fails(MXNDArrayCreateFromSharedMemEx(-1, descriptor, shape, 2, 77, &received), "77");
  fails(MXNDArrayCreateFromSharedMemEx(-1, descriptor, NULL, 2, 0, &received), "shape");
  fails(MXNDArrayGetSharedMemHandle(sent, NULL, &descriptor), "shared_pid");
  assert_null(received);
  ok(MXNDArrayCreateEx(none, 1, 1, 0, 0, 0, &empty)); /* no elements */
  ok(MXNDArrayGetSharedMemHandle(empty, &pid, &descriptor));
  ok(MXNDArrayCreateFromSharedMem(pid, dup(descriptor), none, 1, 0, &received));
  ok(MXNDArrayFree(received));
  ok(MXNDArrayFree(empty));
  ok(MXNDArrayFree(sent));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(another_process_shares_the_memory),
      TEST(contents_are_those_of_the_call),
      TEST(wrong_calls_are_errors),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
