/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file c_handles.h
 * Types of all headers here, once for programs that include several.
 */
#ifndef MXNET_C_HANDLES_H_
#define MXNET_C_HANDLES_H_

#include <stdint.h>

#ifndef MXNET_DLL
#if defined(__GNUC__)
#define MXNET_DLL __attribute__((visibility("default")))
#else
#define MXNET_DLL
#endif
#endif

typedef uint32_t mx_uint;
typedef float mx_float;
typedef void *NDArrayHandle;
typedef void *SymbolHandle;

#endif /* MXNET_C_HANDLES_H_ */
