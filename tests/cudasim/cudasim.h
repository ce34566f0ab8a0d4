/* SPDX-License-Identifier: Apache-2.0 */
/* What tests may ask of the simulated CUDA runtime that libcohort_cuda.so is linked to here, beside CUDA itself.
 * The environment, read when the library is loaded: CUDASIM_DEVICES (how many GPUs there are, 2), CUDASIM_SEED (of all
 * that is done in random order, 1), CUDASIM_MEMORY (bytes of each GPU, 1 GiB), CUDASIM_EMPTY (1: kernels, those of
 * libraries too, do nothing and memory that nobody writes takes none, to see how long it takes to queue them),
 * CUDASIM_BREAK (the nth launch of a process ends with a fault; 0: none does), CUDASIM_CUDNN (the version that cuDNN
 * says it is of: 92600 with odd seeds, 8907, which is too old, with even ones), CUDASIM_NCCL (the same of NCCL, else
 * that of its header), CUDASIM_DRIVER (the version of CUDA that the driver serves, else that of the header: 12040 is
 * too old; 0: there is no driver), CUDASIM_MACHINE (five numbers with commas between them: as cudasim_set_machine()
 * takes them).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDASIM_API __attribute__((visibility("default")))

/* Starts anew with this seed. An even one lets queued work wait until somebody waits for it; with an odd one some of it
 * is done whenever CUDA is called. */
CUDASIM_API void cudasim_seed(uint64_t seed);
/* Of the calls that may fail, the nth from now (1: the next) fails with this cudaError_t and does nothing. 0: none. */
CUDASIM_API void cudasim_fail_call(uint64_t nth, int error);
CUDASIM_API uint64_t cudasim_num_calls(void);    /* that may fail, so far */
CUDASIM_API uint64_t cudasim_num_launches(void); /* of kernels, of libraries too, and of graphs */
CUDASIM_API uint64_t cudasim_num_replays(void);  /* launches of graphs */
/* What was found wrong since the last call of this, a line each; "" if nothing was. Valid until the next call. */
CUDASIM_API const char *cudasim_reports(void);
/* From now on the device's work ends with a fault, as when a kernel touched what it must not; what is queued, too. */
CUDASIM_API void cudasim_break_device(int device);
/* Whether the device does nothing any more, as when it hangs, until it is told to go on. */
CUDASIM_API void cudasim_stop_device(int device, int stop);
/* Whether aborts of NCCL's communicators do not return, until they are told to go on. */
CUDASIM_API void cudasim_hang_aborts(int hang);
CUDASIM_API uint64_t cudasim_num_collectives(void); /* that have been done */
/* What devices say of themselves, clocks in kHz; else they are H100s: 90, 132, 1980000, 2619000, 5120. */
CUDASIM_API void cudasim_set_machine(int capability, int units, int clock, int memory_clock, int bus_bits);
CUDASIM_API size_t cudasim_bytes_in_use(int device);
CUDASIM_API void cudasim_set_memory(size_t bytes); /* of each device */
CUDASIM_API size_t cudasim_bytes_pinned(void);
CUDASIM_API int cudasim_num_contexts(int device); /* that are alive: the primary one, and those of hosts */
CUDASIM_API int cudasim_num_objects(void);        /* streams, events and graphs that are alive */
/* cuBLASLt: whether it refuses to add a bias while it writes a product; handles that are alive. */
CUDASIM_API void cudasim_refuse_epilogues(int refuse);
CUDASIM_API int cudasim_num_cublas_handles(void);
/* cuDNN: convolutions and gradients that it has computed; descriptors and handles that are alive. */
CUDASIM_API uint64_t cudasim_num_convolutions(void);
CUDASIM_API int cudasim_num_cudnn_descriptors(void);
CUDASIM_API int cudasim_num_cudnn_handles(void);
/* NVRTC: the command that compiles a source to a shared object for the host (`COMMAND -o OBJECT SOURCE`), NULL: there
 * is no NVRTC, as at the start; how often it was run. */
CUDASIM_API void cudasim_compile_with(const char *command);
CUDASIM_API uint64_t cudasim_num_compilations(void);
/* As a host that uses the driver: makes a context and makes it current; tells the current one. */
CUDASIM_API void *cudasim_create_context(int device);
CUDASIM_API void cudasim_destroy_context(void *context);
CUDASIM_API void *cudasim_current_context(void);
CUDASIM_API int cudasim_last_error(void); /* the calling thread's, which stays */

#ifdef __cplusplus
}
#endif
