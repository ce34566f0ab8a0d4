/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file types.h
 * Handles, plain structs and constants that every other header uses. Constants cross the ABI as int32_t, under the name
 * of their family, cohort_dtype for COHORT_DTYPE_FLOAT32; their values are MXNet's where MXNet has them, and are never
 * renumbered.
 */
#ifndef COHORT_TYPES_H
#define COHORT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COHORT_API __attribute__((visibility("default")))
#define COHORT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define COHORT_API
#define COHORT_MUST_CHECK
#endif

#ifdef __cplusplus
#define COHORT_BEGIN_DECLS extern "C" {
#define COHORT_END_DECLS }
#else
#define COHORT_BEGIN_DECLS
#define COHORT_END_DECLS
#endif

COHORT_BEGIN_DECLS

/** Yes and no: 1 and 0, nothing else. */
typedef int32_t cohort_bool;

typedef struct cohort_error cohort_error;             /* why a call failed */
typedef struct cohort_ndarray cohort_ndarray;         /* an array on a device, or a view of one */
typedef struct cohort_arrays cohort_arrays;           /* an ordered list of arrays, each with or without a name */
typedef struct cohort_descs cohort_descs;             /* an ordered list of names, shapes, dtypes and layouts */
typedef struct cohort_symbol cohort_symbol;           /* a graph of operators */
typedef struct cohort_executor cohort_executor;       /* a symbol bound to arrays on its contexts */
typedef struct cohort_group cohort_group;             /* one executor per context, a batch split over them */
typedef struct cohort_optimizer cohort_optimizer;     /* a rule that updates parameters, with its states */
typedef struct cohort_metric cohort_metric;           /* a figure accumulated from labels and predictions */
typedef struct cohort_initializer cohort_initializer; /* a rule that fills parameters before training */
typedef struct cohort_manager cohort_manager;         /* a group for each bucket of a bucketing network */
typedef struct cohort_monitor cohort_monitor;         /* statistics of arrays while they are computed */
typedef struct cohort_tape cohort_tape;               /* a record of applied operators, for gradients */
typedef struct cohort_calibration cohort_calibration; /* ranges of values, for inference in int8 */
typedef struct cohort_log cohort_log;                 /* a receiver of the library's messages */
typedef struct cohort_trace cohort_trace;             /* a record of what the process does, with times */

/** Kinds of devices. */
enum { COHORT_DEVICE_CPU = 1, COHORT_DEVICE_GPU = 2, COHORT_DEVICE_CPU_PINNED = 3, COHORT_DEVICE_CPU_SHARED = 5 };
typedef int32_t cohort_device_type;

/**
 * One device: "cpu(0)" is {COHORT_DEVICE_CPU, 0}. Two contexts are equal if both fields are. Every id from 0 is a CPU
 * device, each with workers of its own; a GPU id must exist. The struct never grows. A function that takes a pointer to
 * one context takes NULL as cpu(0).
 */
typedef struct cohort_context {
  cohort_device_type device_type; /* COHORT_DEVICE_ constant */
  int32_t device_id;              /* from 0 */
} cohort_context;

/**
 * Element types, in the byte order of the host. A bool is a byte, 0 or 1; float16 is IEEE 754's, bfloat16 the upper
 * half of a float32. COHORT_DTYPE_NONE stands for "not given" or "not known".
 */
enum {
  COHORT_DTYPE_NONE = -1,
  COHORT_DTYPE_FLOAT32 = 0,
  COHORT_DTYPE_FLOAT64 = 1,
  COHORT_DTYPE_FLOAT16 = 2,
  COHORT_DTYPE_UINT8 = 3,
  COHORT_DTYPE_INT32 = 4,
  COHORT_DTYPE_INT8 = 5,
  COHORT_DTYPE_INT64 = 6,
  COHORT_DTYPE_BOOL = 7,
  COHORT_DTYPE_BFLOAT16 = 12
};
typedef int32_t cohort_dtype;

/** Storage types. Only the default one is supported; the others are known so that they can be refused by name. */
enum {
  COHORT_STORAGE_UNDEFINED = -1,
  COHORT_STORAGE_DEFAULT = 0,
  COHORT_STORAGE_ROW_SPARSE = 1,
  COHORT_STORAGE_CSR = 2
};
typedef int32_t cohort_storage_type;

/** How backward treats the gradient of an argument; "null", "write" and "add" as text. */
enum {
  COHORT_GRAD_NULL = 0,  /* there is none */
  COHORT_GRAD_WRITE = 1, /* each backward overwrites it */
  COHORT_GRAD_ADD = 3    /* each backward adds to it; the caller sets it to zero */
};
typedef int32_t cohort_grad_req;

/** The most axes that an array can have. A buffer of this many int64_t holds any shape. */
#define COHORT_MAX_AXES 32

/**
 * As a value of num_axes: the shape is not known. An axis of unknown length has length 0 where a function says so.
 */
#define COHORT_UNKNOWN_SHAPE (-1)

/** The memory that an executor, or one device of a group, takes. struct_size is set by the caller. */
typedef struct cohort_memory_info {
  size_t struct_size;        /* sizeof(cohort_memory_info) where the caller was compiled */
  size_t planned_bytes;      /* the planned pool: intermediate values and workspaces, after reuse */
  size_t intermediate_bytes; /* the bytes of all intermediate arrays without reuse */
  size_t argument_bytes;     /* arguments and auxiliary states */
  size_t gradient_bytes;     /* gradient arrays */
  size_t output_bytes;       /* outputs */
  /* The part of planned_bytes for intermediate values when they take most, and for what forward saves for backward. It
     excludes workspaces, and copies of arguments and gradients in a layout or type that a kernel wants. MXNet's
     `Total X MB allocated` counts the same. */
  size_t value_bytes;
} cohort_memory_info;

#define COHORT_MEMORY_INFO_INIT \
  { sizeof(cohort_memory_info), 0, 0, 0, 0, 0, 0 }

/**
 * How many handles are alive in this process, errors included. 0 at the end of a program that frees all its handles.
 * Any thread may call it.
 */
COHORT_API size_t cohort_live_handles(void);

COHORT_END_DECLS

#endif /* COHORT_TYPES_H */
