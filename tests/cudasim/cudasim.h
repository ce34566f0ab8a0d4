/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by which tests control the simulated CUDA runtime that this libcohort_cuda.so is linked to.
 * Environment variables, read when the library is loaded, with their defaults:
 *   CUDASIM_DEVICES  the number of GPUs (2)
 *   CUDASIM_SEED     the seed of everything that is done in random order (1)
 *   CUDASIM_MEMORY   bytes of memory of each GPU (1 GiB)
 *   CUDASIM_EMPTY    1: kernels, also those of libraries, do nothing, and memory that is not written takes none; to
 *                    measure the time of queueing (0)
 *   CUDASIM_BREAK    the nth launch of a process ends with a fault; 0: none (0)
 *   CUDASIM_CUDNN    the version of cuDNN (92600 with odd seeds; 8907, which is too old, with even ones)
 *   CUDASIM_NCCL     the version of NCCL (that of its header)
 *   CUDASIM_DRIVER   the version of CUDA that the driver supports; 12040 is too old, 0 means no driver (the header's)
 *   CUDASIM_MACHINE  five numbers separated by commas, as for cudasim_set_machine()
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDASIM_API __attribute__((visibility("default")))

/* Restarts the random order with this seed. With an even seed queued work runs only when something waits for it; with
 * an odd one every call of CUDA may also run some of it. */
CUDASIM_API void cudasim_seed(uint64_t seed);
/* The nth call from now (1: the next) that can fail returns this cudaError_t and does nothing. 0: none. */
CUDASIM_API void cudasim_fail_call(uint64_t nth, int error);
CUDASIM_API uint64_t cudasim_num_calls(void);    /* so far, of those that can fail */
CUDASIM_API uint64_t cudasim_num_launches(void); /* of kernels, also those of libraries, and of graphs */
CUDASIM_API uint64_t cudasim_num_replays(void);  /* launches of graphs */
CUDASIM_API uint64_t cudasim_host_bytes(void);   /* copied between the host and devices */
/* The errors found since the last call of this function, one per line; "" if there were none. Valid until the next
 * call. */
CUDASIM_API const char *cudasim_reports(void);
/* From now on all work of the device, also work already queued, ends with a fault, as after an illegal access. */
CUDASIM_API void cudasim_break_device(int device);
/* 1: the device hangs; 0: it goes on. */
CUDASIM_API void cudasim_stop_device(int device, int stop);
/* 1: aborts of NCCL communicators do not return; 0: they go on. */
CUDASIM_API void cudasim_hang_aborts(int hang);
CUDASIM_API uint64_t cudasim_num_collectives(void); /* finished so far */
/* The attributes of all devices, clocks in kHz. Default: H100 (90, 132, 1980000, 2619000, 5120). */
CUDASIM_API void cudasim_set_machine(int capability, int units, int clock, int memory_clock, int bus_bits);
CUDASIM_API size_t cudasim_bytes_in_use(int device);
CUDASIM_API void cudasim_set_memory(size_t bytes); /* of each device */
CUDASIM_API size_t cudasim_bytes_pinned(void);
CUDASIM_API int cudasim_num_contexts(int device); /* alive: the primary one, and those of hosts */
CUDASIM_API int cudasim_num_objects(void);        /* streams, events and graphs alive */
/* cuBLASLt: 1 makes it refuse to add a bias while it writes a product; the number of handles alive. */
CUDASIM_API void cudasim_refuse_epilogues(int refuse);
CUDASIM_API int cudasim_num_cublas_handles(void);
/* cuDNN: the numbers of convolutions and gradients computed, and of descriptors and handles alive. */
CUDASIM_API uint64_t cudasim_num_convolutions(void);
CUDASIM_API int cudasim_num_cudnn_descriptors(void);
CUDASIM_API int cudasim_num_cudnn_handles(void);
/* NVRTC: the command that compiles a source to a shared object for the host (`COMMAND -o OBJECT SOURCE`); NULL, as at
 * the start: there is no NVRTC. The number of times it was run. */
CUDASIM_API void cudasim_compile_with(const char *command);
CUDASIM_API uint64_t cudasim_num_compilations(void);
/* For tests that act as a host using the driver: create a context and make it current; the current context. */
CUDASIM_API void *cudasim_create_context(int device);
CUDASIM_API void cudasim_destroy_context(void *context);
CUDASIM_API void *cudasim_current_context(void);
CUDASIM_API int cudasim_last_error(void); /* of the calling thread; not cleared */

#ifdef __cplusplus
}
#endif
