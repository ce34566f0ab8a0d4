/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file c_predict_api.h
 * Prediction with a trained network: MXNet's small interface for programs that only run networks.
 *
 * A network is the text of a symbol's JSON and the bytes of a .params file, whose names begin with `arg:` or `aux:`.
 * Shapes of inputs are given as in input_shape_data, of which input i takes the lengths from input_shape_indptr[i] up to
 * input_shape_indptr[i + 1]. dev_type is 1 for CPUs and 2 for GPUs. Errors are those of c_api.h. One thread uses a
 * predictor at a time; different predictors may be used at once, those that share parameters, too.
 */
#ifndef MXNET_C_PREDICT_API_H_
#define MXNET_C_PREDICT_API_H_

#include <stdbool.h>
#include <stdint.h>

#include "mxnet/c_handles.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *PredictorHandle;
typedef void *NDListHandle;
typedef void (*PredMonitorCallback)(const char *name, NDArrayHandle array, void *callback_handle);

/** The message of the last failed call of this thread; "" before the first one. */
MXNET_DLL const char *MXGetLastError(void);

/** Binds a network for prediction. Arguments of the network that neither are inputs nor have a parameter stay zero. */
MXNET_DLL int MXPredCreate(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                           int dev_id, uint32_t num_input_nodes, const char **input_keys,
                           const uint32_t *input_shape_indptr, const uint32_t *input_shape_data, PredictorHandle *out);

/** As MXPredCreate(), with element types of inputs and parameters by name; all others are float32. */
MXNET_DLL int MXPredCreateEx(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                             int dev_id, const uint32_t num_input_nodes, const char **input_keys,
                             const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                             const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names,
                             const int *provided_arg_dtypes, PredictorHandle *out);

/** As MXPredCreate(), for outputs of inner layers: output_keys are names of nodes, with or without "_output". */
MXNET_DLL int MXPredCreatePartialOut(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                                     int dev_id, uint32_t num_input_nodes, const char **input_keys,
                                     const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                                     uint32_t num_output_nodes, const char **output_keys, PredictorHandle *out);

/** Fills out with num_threads predictors that share one copy of the parameters; each may be used by its own thread. */
MXNET_DLL int MXPredCreateMultiThread(const char *symbol_json_str, const void *param_bytes, int param_size,
                                      int dev_type, int dev_id, uint32_t num_input_nodes, const char **input_keys,
                                      const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                                      int num_threads, PredictorHandle *out);

/** A new predictor for other input shapes, which shares the parameters. The old one stays usable. */
MXNET_DLL int MXPredReshape(uint32_t num_input_nodes, const char **input_keys, const uint32_t *input_shape_indptr,
                            const uint32_t *input_shape_data, PredictorHandle handle, PredictorHandle *out);

/** The shape lives as long as the predictor, until a pass gives another one; it is known before the first pass. */
MXNET_DLL int MXPredGetOutputShape(PredictorHandle handle, uint32_t index, uint32_t **shape_data, uint32_t *shape_ndim);

/** The number of an element type: 0 float32, 1 float64, 2 float16, 3 uint8, 4 int32, 5 int8, 6 int64. */
MXNET_DLL int MXPredGetOutputType(PredictorHandle handle, uint32_t out_index, int *out_dtype);

/** Copies size elements, of the input's own type, which must be as many as the input has. */
MXNET_DLL int MXPredSetInput(PredictorHandle handle, const char *key, const float *data, uint32_t size);

/** Queues a pass. */
MXNET_DLL int MXPredForward(PredictorHandle handle);

/** Runs the first step + 1 layers of the network, and says how many are left: start at 0, end when *step_left is 0. */
MXNET_DLL int MXPredPartialForward(PredictorHandle handle, int step, int *step_left);

/** Waits for the pass and copies size elements, of the output's own type. */
MXNET_DLL int MXPredGetOutput(PredictorHandle handle, uint32_t index, float *data, uint32_t size);
MXNET_DLL int MXPredFree(PredictorHandle handle);

/** Reads arrays, as of a .params file, from memory. */
MXNET_DLL int MXNDListCreate(const char *nd_file_bytes, int nd_file_size, NDListHandle *out, uint32_t *out_length);

/** An array as float32. All pointers live until the list is freed. */
MXNET_DLL int MXNDListGet(NDListHandle handle, uint32_t index, const char **out_key, const float **out_data,
                          const uint32_t **out_shape, uint32_t *out_ndim);

/** The callback gets each output as it is computed; it owns the array handle that it gets. */
MXNET_DLL int MXPredSetMonitorCallback(PredictorHandle handle, PredMonitorCallback callback, void *callback_handle,
                                       bool monitor_all);
MXNET_DLL int MXNDListFree(NDListHandle handle);

#ifdef __cplusplus
}
#endif

#endif /* MXNET_C_PREDICT_API_H_ */
