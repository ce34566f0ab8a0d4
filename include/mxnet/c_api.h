/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file c_api.h
 * The C interface of MXNet 1.9.1, as libmxnet.so offers it over Cohort: names, types and numbers are MXNet's, so that
 * programs, frontends and bindings that were written for MXNet's library run with this one.
 *
 * Functions return 0, or -1 after an error, which MXGetLastError() describes; those of a feature that Cohort does not
 * have return -1 and say so. Text and lists that a function gives live until the same thread's next call, unless its
 * comment says otherwise. A handle belongs to the caller, who frees it with the function of its kind.
 */
#ifndef MXNET_C_API_H_
#define MXNET_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxnet/c_graph.h"
#include "mxnet/c_handles.h"

#ifdef __cplusplus
#define MXNET_DEFAULT(value) = value
extern "C" {
#else
#define MXNET_DEFAULT(value)
#endif

/* ---- types ---- */

typedef const void *FunctionHandle;
typedef void *AtomicSymbolCreator;
typedef void *CachedOpHandle;
typedef void *AtomicSymbolHandle;
typedef void *ExecutorHandle;
typedef void *DataIterCreator;
typedef void *DataIterHandle;
typedef void *KVStoreHandle;
typedef void *RecordIOHandle;
typedef void *RtcHandle;
typedef void *CudaModuleHandle;
typedef void *CudaKernelHandle;
typedef void *ProfileHandle;
typedef void *DLManagedTensorHandle;
typedef const void *ContextHandle;
typedef const void *EngineFnPropertyHandle;
typedef void *EngineVarHandle;
typedef void *TVMFunctionHandle;
typedef void *MXNetFunctionHandle;
typedef void *MXNetObjectHandle;
typedef int64_t dim_t;

typedef void (*EngineAsyncFunc)(void *, void *, void *);
typedef void (*EngineSyncFunc)(void *, void *);
typedef void (*EngineFuncParamDeleter)(void *);

/** Gets an output's name and a handle on the array, which it owns. */
typedef void (*ExecutorMonitorCallback)(const char *, NDArrayHandle, void *);
typedef void (*CachedOpMonitorCallback)(const char *, const char *, NDArrayHandle);

/** A feature of the library, and whether this build has it. */
struct LibFeature {
  const char *name;
  bool enabled;
};

/** An argument or a result of a packed function; which member it is, a code beside it says. */
typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } v_type;
} MXNetValue;

/* Callbacks of operators of the host. Lists of them are in the order of the enumerations below. */

typedef int (*MXGenericCallback)(void);

struct MXCallbackList {
  int num_callbacks;
  int (**callbacks)(void);
  void **contexts;
};

enum CustomOpCallbacks { kCustomOpDelete, kCustomOpForward, kCustomOpBackward };

enum CustomOpPropCallbacks {
  kCustomOpPropDelete,
  kCustomOpPropListArguments,
  kCustomOpPropListOutputs,
  kCustomOpPropListAuxiliaryStates,
  kCustomOpPropInferShape,
  kCustomOpPropDeclareBackwardDependency,
  kCustomOpPropCreateOperator,
  kCustomOpPropInferType,
  kCustomOpPropInferStorageType,
  kCustomOpPropBackwardInferStorageType
};

enum CustomFunctionCallbacks { kCustomFunctionBackward, kCustomFunctionDelete };

typedef int (*CustomOpFBFunc)(int size, void **ptrs, int *tags, const int *reqs, const int is_train, void *state);
typedef int (*CustomOpDelFunc)(void *state);
typedef int (*CustomOpListFunc)(char ***args, void *state);
typedef int (*CustomOpInferShapeFunc)(int num_input, int *ndims, int **shapes, void *state);
typedef int (*CustomOpInferStorageTypeFunc)(int num_input, int *stypes, void *state);
typedef int (*CustomOpBackwardInferStorageTypeFunc)(int num_input, int *stypes, int *tags, void *state);
typedef int (*CustomOpInferTypeFunc)(int num_input, int *types, void *state);
typedef int (*CustomOpBwdDepFunc)(const int *out_grad, const int *in_data, const int *out_data, int *num_dep,
                                  int **dependencies, void *state);
typedef int (*CustomOpCreateFunc)(const char *ctx, int num_inputs, unsigned **shapes, const int *ndims,
                                  const int *dtypes, struct MXCallbackList *callbacks, void *state);
typedef int (*CustomOpPropCreator)(const char *op_type, const int num_kwargs, const char **keys, const char **values,
                                   struct MXCallbackList *callbacks);
typedef int (*CustomFunctionBwdFunc)(int num_ograds, int num_igrads, void **ptrs, const int *reqs, const int is_train,
                                     void *state);
typedef int (*CustomFunctionDelFunc)(void *state);

/* Callbacks of two older kinds of operators, which are not implemented. */

struct NativeOpInfo {
  void (*forward)(int, float **, int *, unsigned **, int *, void *);
  void (*backward)(int, float **, int *, unsigned **, int *, void *);
  void (*infer_shape)(int, int *, unsigned **, void *);
  void (*list_outputs)(char ***, void *);
  void (*list_arguments)(char ***, void *);
  void *p_forward;
  void *p_backward;
  void *p_infer_shape;
  void *p_list_outputs;
  void *p_list_arguments;
};

struct NDArrayOpInfo {
  bool (*forward)(int, void **, int *, void *);
  bool (*backward)(int, void **, int *, void *);
  bool (*infer_shape)(int, int *, unsigned **, void *);
  bool (*list_outputs)(char ***, void *);
  bool (*list_arguments)(char ***, void *);
  bool (*declare_backward_dependency)(const int *, const int *, const int *, int *, int **, void *);
  void *p_forward;
  void *p_backward;
  void *p_infer_shape;
  void *p_list_outputs;
  void *p_list_arguments;
  void *p_declare_backward_dependency;
};

/* ---- errors, version, features ---- */

/** The message of the last failed call of this thread; "" before the first one. Valid until the thread's next failure. */
MXNET_DLL const char *MXGetLastError(void);

/** The version of MXNet whose interface this is: 10901. */
MXNET_DLL int MXGetVersion(int *out);

/** Features of this build. The list lives as long as the process. */
MXNET_DLL int MXLibInfoFeatures(const struct LibFeature **libFeature, size_t *size);

/** Waits for all work. Called once before a host program exits; handles may still be freed afterwards. */
MXNET_DLL int MXNotifyShutdown(void);

/** Not implemented: libraries of C++ operators link to MXNet's own classes. */
MXNET_DLL int MXLoadLib(const char *path, unsigned verbose);
MXNET_DLL int MXGetEnv(const char *name, const char **value);
MXNET_DLL int MXSetEnv(const char *name, const char *value);

/* ---- devices and the engine ---- */

MXNET_DLL int MXRandomSeed(int seed);

/** Seeds the random operators of one device. */
MXNET_DLL int MXRandomSeedContext(int seed, int dev_type, int dev_id);

/** Not implemented: OMP_NUM_THREADS in the environment says it when an executor is bound. */
MXNET_DLL int MXSetNumOMPThreads(int thread_num);

/** Work is always queued as it comes: the number is only kept, and given back by the next call. */
MXNET_DLL int MXEngineSetBulkSize(int bulk_size, int *prev_bulk_size);
MXNET_DLL int MXGetGPUCount(int *out);

/** Not implemented, nor is the next one: Cohort knows what it uses of a device, not what others do. */
MXNET_DLL int MXGetGPUMemoryInformation(int dev, int *free_mem, int *total_mem);
MXNET_DLL int MXGetGPUMemoryInformation64(int dev, uint64_t *free_mem, uint64_t *total_mem);

/** Checks that there is such a device. Memory goes back as it is freed. */
MXNET_DLL int MXStorageEmptyCache(int dev_type, int dev_id);

/* ---- profiler ---- */

MXNET_DLL int MXSetProcessProfilerConfig(int num_params, const char *const *keys, const char *const *vals,
                                         KVStoreHandle kvstoreHandle);
MXNET_DLL int MXSetProfilerConfig(int num_params, const char *const *keys, const char *const *vals);

/** 0 stops and 1 starts recording. What is recorded stays until it is written. */
MXNET_DLL int MXSetProcessProfilerState(int state, int profile_process, KVStoreHandle kvStoreHandle);
MXNET_DLL int MXSetProfilerState(int state);

/** Writes the file that the configuration names. finished: whether recording ends with it. */
MXNET_DLL int MXDumpProcessProfile(int finished, int profile_process, KVStoreHandle kvStoreHandle);
MXNET_DLL int MXDumpProfile(int finished);
MXNET_DLL int MXAggregateProfileStatsPrint(const char **out_str, int reset);

/** format 0: a table, 1: JSON. sort_by 0 to 4: total, average, least and greatest time, count. */
MXNET_DLL int MXAggregateProfileStatsPrintEx(const char **out_str, int reset, int format, int sort_by, int ascending);
MXNET_DLL int MXProcessProfilePause(int paused, int profile_process, KVStoreHandle kvStoreHandle);
MXNET_DLL int MXProfilePause(int paused);
MXNET_DLL int MXProfileCreateDomain(const char *domain, ProfileHandle *out);
MXNET_DLL int MXProfileCreateTask(ProfileHandle domain, const char *task_name, ProfileHandle *out);
MXNET_DLL int MXProfileCreateFrame(ProfileHandle domain, const char *frame_name, ProfileHandle *out);
MXNET_DLL int MXProfileCreateEvent(const char *event_name, ProfileHandle *out);
MXNET_DLL int MXProfileCreateCounter(ProfileHandle domain, const char *counter_name, ProfileHandle *out);

/** Also of a domain. A running duration ends. */
MXNET_DLL int MXProfileDestroyHandle(ProfileHandle frame_handle);
MXNET_DLL int MXProfileDurationStart(ProfileHandle duration_handle);
MXNET_DLL int MXProfileDurationStop(ProfileHandle duration_handle);
MXNET_DLL int MXProfileSetCounter(ProfileHandle counter_handle, uint64_t value);
MXNET_DLL int MXProfileAdjustCounter(ProfileHandle counter_handle, int64_t value);

/** scope: "process", "thread" or "global"; it is noted, but all markers stand on the domain's row. */
MXNET_DLL int MXProfileSetMarker(ProfileHandle domain, const char *instant_marker_name, const char *scope);

/* ---- arrays ---- */

/** An array without a shape, which gets one from the first operator that writes it. */
MXNET_DLL int MXNDArrayCreateNone(NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreate(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc,
                              NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateEx(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc,
                                int dtype, NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateEx64(const int64_t *shape, int ndim, int dev_type, int dev_id, int delay_alloc, int dtype,
                                  NDArrayHandle *out);

/** Sparse storage: not implemented. */
MXNET_DLL int MXNDArrayCreateSparseEx(int storage_type, const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id,
                                      int delay_alloc, int dtype, uint32_t num_aux, int *aux_type, uint32_t *aux_ndims,
                                      const uint32_t *aux_shape, NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateSparseEx64(int storage_type, const int64_t *shape, int ndim, int dev_type, int dev_id,
                                        int delay_alloc, int dtype, uint32_t num_aux, int *aux_type, int *aux_ndims,
                                        const int64_t *aux_shape, NDArrayHandle *out);
MXNET_DLL int MXNDArrayLoadFromRawBytes(const void *buf, size_t size, NDArrayHandle *out);
MXNET_DLL int MXNDArraySaveRawBytes(NDArrayHandle handle, size_t *out_size, const char **out_buf);
MXNET_DLL int MXNDArraySave(const char *fname, uint32_t num_args, NDArrayHandle *args, const char **keys);

/** The arrays are the caller's, one by one; the lists live until this thread's next call. */
MXNET_DLL int MXNDArrayLoad(const char *fname, uint32_t *out_size, NDArrayHandle **out_arr, uint32_t *out_name_size,
                            const char ***out_names);
MXNET_DLL int MXNDArrayLoadFromBuffer(const void *ndarray_buffer, size_t size, uint32_t *out_size,
                                      NDArrayHandle **out_arr, uint32_t *out_name_size, const char ***out_names);

/** size counts elements. Waits for the copy. */
MXNET_DLL int MXNDArraySyncCopyFromCPU(NDArrayHandle handle, const void *data, size_t size);

/** size counts elements. Waits for the array. */
MXNET_DLL int MXNDArraySyncCopyToCPU(NDArrayHandle handle, void *data, size_t size);
MXNET_DLL int MXNDArraySyncCopyFromNDArray(NDArrayHandle handle_dst, const NDArrayHandle handle_src, const int i);
MXNET_DLL int MXNDArraySyncCheckFormat(NDArrayHandle handle, const bool full_check);
MXNET_DLL int MXNDArrayWaitToRead(NDArrayHandle handle);
MXNET_DLL int MXNDArrayWaitToWrite(NDArrayHandle handle);
MXNET_DLL int MXNDArrayWaitAll(void);
MXNET_DLL int MXNDArrayFree(NDArrayHandle handle);
MXNET_DLL int MXNDArraySlice(NDArrayHandle handle, uint32_t slice_begin, uint32_t slice_end, NDArrayHandle *out);
MXNET_DLL int MXNDArraySlice64(NDArrayHandle handle, int64_t slice_begin, int64_t slice_end, NDArrayHandle *out);
MXNET_DLL int MXNDArrayAt(NDArrayHandle handle, uint32_t idx, NDArrayHandle *out);
MXNET_DLL int MXNDArrayAt64(NDArrayHandle handle, int64_t idx, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetStorageType(NDArrayHandle handle, int *out_storage_type);
MXNET_DLL int MXNDArrayReshape(NDArrayHandle handle, int ndim, int *dims, NDArrayHandle *out);
MXNET_DLL int MXNDArrayReshape64(NDArrayHandle handle, int ndim, dim_t *dims, bool reverse, NDArrayHandle *out);

/** The lengths live until this thread's next call, as in all functions that give shapes. */
MXNET_DLL int MXNDArrayGetShape(NDArrayHandle handle, uint32_t *out_dim, const uint32_t **out_pdata);
MXNET_DLL int MXNDArrayGetShapeEx(NDArrayHandle handle, int *out_dim, const int **out_pdata);
MXNET_DLL int MXNDArrayGetShapeEx64(NDArrayHandle handle, int *out_dim, const int64_t **out_pdata);

/** Waits for the array. The pointer is valid as long as the array lives. */
MXNET_DLL int MXNDArrayGetData(NDArrayHandle handle, void **out_pdata);

/** Gives a DLManagedTensor, which keeps the memory alive until MXNDArrayCallDLPackDeleter(). */
MXNET_DLL int MXNDArrayToDLPack(NDArrayHandle handle, DLManagedTensorHandle *out_dlpack);
MXNET_DLL int MXNDArrayFromDLPack(DLManagedTensorHandle dlpack, NDArrayHandle *out_handle);

/** transient_handle: whether the caller drops the handle afterwards; the memory is taken over either way. */
MXNET_DLL int MXNDArrayFromDLPackEx(DLManagedTensorHandle dlpack, const bool transient_handle,
                                    NDArrayHandle *out_handle);
MXNET_DLL int MXNDArrayCallDLPackDeleter(DLManagedTensorHandle dlpack);
MXNET_DLL int MXNDArrayGetDType(NDArrayHandle handle, int *out_dtype);
MXNET_DLL int MXNDArrayGetAuxType(NDArrayHandle handle, uint32_t i, int *out_type);
MXNET_DLL int MXNDArrayGetAuxNDArray(NDArrayHandle handle, uint32_t i, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetDataNDArray(NDArrayHandle handle, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetContext(NDArrayHandle handle, int *out_dev_type, int *out_dev_id);

/** The gradient array that MXAutogradMarkVariables() attached; *out is NULL if there is none. */
MXNET_DLL int MXNDArrayGetGrad(NDArrayHandle handle, NDArrayHandle *out);
MXNET_DLL int MXNDArrayDetach(NDArrayHandle handle, NDArrayHandle *out);
MXNET_DLL int MXNDArraySetGradState(NDArrayHandle handle, int state);
MXNET_DLL int MXNDArrayGetGradState(NDArrayHandle handle, int *out);
MXNET_DLL int MXNDArrayGetSharedMemHandle(NDArrayHandle handle, int *shared_pid, int *shared_id);
MXNET_DLL int MXNDArrayCreateFromSharedMem(int shared_pid, int shared_id, const uint32_t *shape, uint32_t ndim,
                                           int dtype, NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateFromSharedMemEx(int shared_pid, int shared_id, const int *shape, int ndim, int dtype,
                                             NDArrayHandle *out);
MXNET_DLL int MXShallowCopyNDArray(NDArrayHandle src, NDArrayHandle *out);

/* ---- operators that are applied at once ---- */

MXNET_DLL int MXListAllOpNames(uint32_t *out_size, const char ***out_array);
MXNET_DLL int MXListFunctions(uint32_t *out_size, FunctionHandle **out_array);
MXNET_DLL int MXGetFunction(const char *name, FunctionHandle *out);
MXNET_DLL int MXFuncGetInfo(FunctionHandle fun, const char **name, const char **description, uint32_t *num_args,
                            const char ***arg_names, const char ***arg_type_infos, const char ***arg_descriptions,
                            const char **return_type MXNET_DEFAULT(NULL));
MXNET_DLL int MXFuncDescribe(FunctionHandle fun, uint32_t *num_use_vars, uint32_t *num_scalars,
                             uint32_t *num_mutate_vars, int *type_mask);
MXNET_DLL int MXFuncInvoke(FunctionHandle fun, NDArrayHandle *use_vars, float *scalar_args, NDArrayHandle *mutate_vars);
MXNET_DLL int MXFuncInvokeEx(FunctionHandle fun, NDArrayHandle *use_vars, float *scalar_args,
                             NDArrayHandle *mutate_vars, int num_params, char **param_keys, char **param_vals);
MXNET_DLL int MXImperativeInvoke(AtomicSymbolCreator creator, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                                 NDArrayHandle **outputs, int num_params, const char **param_keys,
                                 const char **param_vals);

/** *num_outputs 0: new arrays, which are the caller's, in a list that lives until this thread's next call. */
MXNET_DLL int MXImperativeInvokeEx(AtomicSymbolCreator creator, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                                   NDArrayHandle **outputs, int num_params, const char **param_keys,
                                   const char **param_vals, const int **out_stypes);

/* ---- autograd ---- */

MXNET_DLL int MXAutogradSetIsRecording(int is_recording, int *prev);
MXNET_DLL int MXAutogradSetIsTraining(int is_training, int *prev);
MXNET_DLL int MXAutogradIsRecording(bool *curr);
MXNET_DLL int MXAutogradIsTraining(bool *curr);
MXNET_DLL int MXIsNumpyShape(int *curr);
MXNET_DLL int MXSetIsNumpyShape(int is_np_shape, int *prev);
MXNET_DLL int MXAutogradMarkVariables(uint32_t num_var, NDArrayHandle *var_handles, uint32_t *reqs_array,
                                      NDArrayHandle *grad_handles);

/** As MXAutogradBackward() with heads of ones and without keeping the record. */
MXNET_DLL int MXAutogradComputeGradient(uint32_t num_output, NDArrayHandle *output_handles);
MXNET_DLL int MXAutogradBackward(uint32_t num_output, NDArrayHandle *output_handles, NDArrayHandle *ograd_handles,
                                 int retain_graph);
MXNET_DLL int MXAutogradBackwardEx(uint32_t num_output, NDArrayHandle *output_handles, NDArrayHandle *ograd_handles,
                                   uint32_t num_variables, NDArrayHandle *var_handles, int retain_graph,
                                   int create_graph, int is_train, NDArrayHandle **grad_handles, int **grad_stypes);
MXNET_DLL int MXAutogradGetSymbol(NDArrayHandle handle, SymbolHandle *out);

/* ---- cached graphs ---- */

MXNET_DLL int MXCreateCachedOp(SymbolHandle handle, CachedOpHandle *out);
MXNET_DLL int MXCreateCachedOpEx(SymbolHandle handle, int num_flags, const char **keys, const char **vals,
                                 CachedOpHandle *out);
MXNET_DLL int MXCreateCachedOpEX(SymbolHandle handle, int num_flags, const char **keys, const char **vals,
                                 CachedOpHandle *out, bool thread_safe MXNET_DEFAULT(false));
MXNET_DLL int MXFreeCachedOp(CachedOpHandle handle);
MXNET_DLL int MXInvokeCachedOp(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                               NDArrayHandle **outputs);
MXNET_DLL int MXInvokeCachedOpEx(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                                 NDArrayHandle **outputs, const int **out_stypes);
MXNET_DLL int MXCachedOpRegisterOpHook(NDArrayHandle handle, CachedOpMonitorCallback callback, bool monitor_all);

/* ---- symbols ---- */

MXNET_DLL int MXSymbolListAtomicSymbolCreators(uint32_t *out_size, AtomicSymbolCreator **out_array);
MXNET_DLL int MXSymbolGetAtomicSymbolName(AtomicSymbolCreator creator, const char **name);
MXNET_DLL int MXSymbolGetInputSymbols(SymbolHandle sym, SymbolHandle **inputs, int *input_size);
MXNET_DLL int MXSymbolCutSubgraph(SymbolHandle sym, SymbolHandle **inputs, int *input_size);

/** key_var_num_args is the attribute that counts the inputs of an operator with any number of them, or "". */
MXNET_DLL int MXSymbolGetAtomicSymbolInfo(AtomicSymbolCreator creator, const char **name, const char **description,
                                          uint32_t *num_args, const char ***arg_names, const char ***arg_type_infos,
                                          const char ***arg_descriptions, const char **key_var_num_args,
                                          const char **return_type MXNET_DEFAULT(NULL));
MXNET_DLL int MXSymbolCreateAtomicSymbol(AtomicSymbolCreator creator, uint32_t num_param, const char **keys,
                                         const char **vals, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateVariable(const char *name, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateGroup(uint32_t num_symbols, SymbolHandle *symbols, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateFromFile(const char *fname, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateFromJSON(const char *json, SymbolHandle *out);
MXNET_DLL int MXSymbolRemoveAmpCast(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle);
MXNET_DLL int MXSymbolSaveToFile(SymbolHandle symbol, const char *fname);
MXNET_DLL int MXSymbolSaveToJSON(SymbolHandle symbol, const char **out_json);
MXNET_DLL int MXSymbolFree(SymbolHandle symbol);
MXNET_DLL int MXSymbolCopy(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int MXSymbolPrint(SymbolHandle symbol, const char **out_str);
MXNET_DLL int MXSymbolGetName(SymbolHandle symbol, const char **out, int *success);
MXNET_DLL int MXSymbolGetAttr(SymbolHandle symbol, const char *key, const char **out, int *success);
MXNET_DLL int MXSymbolSetAttr(SymbolHandle symbol, const char *key, const char *value);
MXNET_DLL int MXSymbolListAttr(SymbolHandle symbol, uint32_t *out_size, const char ***out);
MXNET_DLL int MXSymbolListAttrShallow(SymbolHandle symbol, uint32_t *out_size, const char ***out);
MXNET_DLL int MXSymbolListArguments(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array);
MXNET_DLL int MXSymbolListOutputs(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array);
MXNET_DLL int MXSymbolGetNumOutputs(SymbolHandle symbol, uint32_t *output_count);
MXNET_DLL int MXSymbolGetInternals(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int MXSymbolGetChildren(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int MXSymbolGetOutput(SymbolHandle symbol, uint32_t index, SymbolHandle *out);
MXNET_DLL int MXSymbolListAuxiliaryStates(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array);

/** Replaces the symbol's inputs in place. A call on an atomic symbol turns it into a node. */
MXNET_DLL int MXSymbolCompose(SymbolHandle sym, const char *name, uint32_t num_args, const char **keys,
                              SymbolHandle *args);

/** Not implemented: gradients come from executors and from autograd. */
MXNET_DLL int MXSymbolGrad(SymbolHandle sym, uint32_t num_wrt, const char **wrt, SymbolHandle *out);

/** Shapes of the arguments that keys name, or of the first ones if keys is NULL; ind_ptr says where each begins. */
MXNET_DLL int MXSymbolInferShape(SymbolHandle sym, uint32_t num_args, const char **keys, const uint32_t *arg_ind_ptr,
                                 const uint32_t *arg_shape_data, uint32_t *in_shape_size,
                                 const uint32_t **in_shape_ndim, const uint32_t ***in_shape_data,
                                 uint32_t *out_shape_size, const uint32_t **out_shape_ndim,
                                 const uint32_t ***out_shape_data, uint32_t *aux_shape_size,
                                 const uint32_t **aux_shape_ndim, const uint32_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapeEx(SymbolHandle sym, uint32_t num_args, const char **keys, const uint32_t *arg_ind_ptr,
                                   const int *arg_shape_data, uint32_t *in_shape_size, const int **in_shape_ndim,
                                   const int ***in_shape_data, uint32_t *out_shape_size, const int **out_shape_ndim,
                                   const int ***out_shape_data, uint32_t *aux_shape_size, const int **aux_shape_ndim,
                                   const int ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapeEx64(SymbolHandle sym, uint32_t num_args, const char **keys, const int64_t *arg_ind_ptr,
                                     const int64_t *arg_shape_data, size_t *in_shape_size, const int **in_shape_ndim,
                                     const int64_t ***in_shape_data, size_t *out_shape_size, const int **out_shape_ndim,
                                     const int64_t ***out_shape_data, size_t *aux_shape_size,
                                     const int **aux_shape_ndim, const int64_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapePartial(SymbolHandle sym, uint32_t num_args, const char **keys,
                                        const uint32_t *arg_ind_ptr, const uint32_t *arg_shape_data,
                                        uint32_t *in_shape_size, const uint32_t **in_shape_ndim,
                                        const uint32_t ***in_shape_data, uint32_t *out_shape_size,
                                        const uint32_t **out_shape_ndim, const uint32_t ***out_shape_data,
                                        uint32_t *aux_shape_size, const uint32_t **aux_shape_ndim,
                                        const uint32_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapePartialEx(SymbolHandle sym, uint32_t num_args, const char **keys,
                                          const uint32_t *arg_ind_ptr, const int *arg_shape_data,
                                          uint32_t *in_shape_size, const int **in_shape_ndim,
                                          const int ***in_shape_data, uint32_t *out_shape_size,
                                          const int **out_shape_ndim, const int ***out_shape_data,
                                          uint32_t *aux_shape_size, const int **aux_shape_ndim,
                                          const int ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapePartialEx64(SymbolHandle sym, uint32_t num_args, const char **keys,
                                            const int64_t *arg_ind_ptr, const int64_t *arg_shape_data,
                                            size_t *in_shape_size, const int **in_shape_ndim,
                                            const int64_t ***in_shape_data, size_t *out_shape_size,
                                            const int **out_shape_ndim, const int64_t ***out_shape_data,
                                            size_t *aux_shape_size, const int **aux_shape_ndim,
                                            const int64_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferType(SymbolHandle sym, uint32_t num_args, const char **keys, const int *arg_type_data,
                                uint32_t *in_type_size, const int **in_type_data, uint32_t *out_type_size,
                                const int **out_type_data, uint32_t *aux_type_size, const int **aux_type_data,
                                int *complete);
MXNET_DLL int MXSymbolInferTypePartial(SymbolHandle sym, uint32_t num_args, const char **keys, const int *arg_type_data,
                                       uint32_t *in_type_size, const int **in_type_data, uint32_t *out_type_size,
                                       const int **out_type_data, uint32_t *aux_type_size, const int **aux_type_data,
                                       int *complete);
MXNET_DLL int MXShallowCopySymbol(SymbolHandle src, SymbolHandle *out);

/* ---- changes of whole symbols ---- */

MXNET_DLL int MXQuantizeSymbol(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle, const int *dev_type,
                               const uint32_t num_excluded_sym_names, const char **excluded_sym_names,
                               const uint32_t num_excluded_op_names, const char **excluded_op_names,
                               const uint32_t num_offline, const char **offline_params, const char *quantized_dtype,
                               const bool calib_quantize, const char *quantize_mode, const char *quantize_granularity,
                               uint32_t *out_num_calib_names, const char ***out_calib_names);
MXNET_DLL int MXReducePrecisionSymbol(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle, uint32_t num_args,
                                      const int *arg_type_data, uint32_t num_ind_ptr, const int *ind_ptr,
                                      const int *target_dtype, const int cast_optional_params,
                                      const uint32_t num_target_dtype_op_names, const uint32_t num_fp32_op_names,
                                      const uint32_t num_widest_dtype_op_names,
                                      const uint32_t num_conditional_fp32_op_names, const uint32_t num_excluded_symbols,
                                      const uint32_t num_model_params, const char **target_dtype_op_names,
                                      const char **fp32_op_names, const char **widest_dtype_op_names,
                                      const char **conditional_fp32_op_names, const char **excluded_symbols,
                                      const char **conditional_param_names, const char **conditional_param_vals,
                                      const char **model_param_names, const char **arg_names);
MXNET_DLL int MXSetCalibTableToQuantizedSymbol(SymbolHandle qsym_handle, const uint32_t num_layers,
                                               const char **layer_names, const float *low_quantiles,
                                               const float *high_quantiles, SymbolHandle *ret_sym_handle);
MXNET_DLL int MXGenBackendSubgraph(SymbolHandle sym_handle, const char *backend, SymbolHandle *ret_sym_handle);
MXNET_DLL int MXGenAtomicSymbolFromSymbol(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle);
MXNET_DLL int MXOptimizeForBackend(SymbolHandle sym_handle, const char *backend_name, const int dev_type,
                                   SymbolHandle *ret_sym_handle, const uint32_t args_len, NDArrayHandle *in_args_handle,
                                   const uint32_t aux_len, NDArrayHandle *in_aux_handle, const uint32_t num_options,
                                   const char **keys, const char **vals, const uint32_t num_input_shapes,
                                   const char **input_shape_names, const int64_t *input_shape_data,
                                   const uint32_t *input_shape_idx, const uint32_t num_input_dtypes,
                                   const char **input_dtype_names, const int *input_dtypes,
                                   const uint32_t num_input_stypes, const char **input_stype_names,
                                   const int *input_stypes, bool skip_infer, int *new_args_cnt,
                                   NDArrayHandle **new_args_handle, char ***new_arg_names_handle, int *new_aux_cnt,
                                   NDArrayHandle **new_aux_handle, char ***new_aux_names_handle);
MXNET_DLL int MXBuildSubgraphByOpNames(SymbolHandle sym_handle, const char *prop_name, const uint32_t num_ops,
                                       const char **op_names, SymbolHandle *ret_sym_handle);
MXNET_DLL int MXSetSubgraphPropertyOpNames(const char *prop_name, const uint32_t num_ops, const char **op_names);
MXNET_DLL int MXSetSubgraphPropertyOpNamesV2(const char *prop_name, const uint32_t num_ops, const char **op_names);
MXNET_DLL int MXRemoveSubgraphPropertyOpNames(const char *prop_name);
MXNET_DLL int MXRemoveSubgraphPropertyOpNamesV2(const char *prop_name);

/* ---- executors ---- */

MXNET_DLL int MXExecutorFree(ExecutorHandle handle);

/** Text that ends with the memory the executor takes. */
MXNET_DLL int MXExecutorPrint(ExecutorHandle handle, const char **out_str);
MXNET_DLL int MXExecutorForward(ExecutorHandle handle, int is_train);
MXNET_DLL int MXExecutorBackward(ExecutorHandle handle, uint32_t len, NDArrayHandle *head_grads);
MXNET_DLL int MXExecutorBackwardEx(ExecutorHandle handle, uint32_t len, NDArrayHandle *head_grads, int is_train);
MXNET_DLL int MXExecutorOutputs(ExecutorHandle handle, uint32_t *out_size, NDArrayHandle **out);
MXNET_DLL int MXExecutorBind(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t len, NDArrayHandle *in_args,
                             NDArrayHandle *arg_grad_store, uint32_t *grad_req_type, uint32_t aux_states_len,
                             NDArrayHandle *aux_states, ExecutorHandle *out);
MXNET_DLL int MXExecutorBindX(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t num_map_keys,
                              const char **map_keys, const int *map_dev_types, const int *map_dev_ids, uint32_t len,
                              NDArrayHandle *in_args, NDArrayHandle *arg_grad_store, uint32_t *grad_req_type,
                              uint32_t aux_states_len, NDArrayHandle *aux_states, ExecutorHandle *out);
MXNET_DLL int MXExecutorBindEX(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t num_map_keys,
                               const char **map_keys, const int *map_dev_types, const int *map_dev_ids, uint32_t len,
                               NDArrayHandle *in_args, NDArrayHandle *arg_grad_store, uint32_t *grad_req_type,
                               uint32_t aux_states_len, NDArrayHandle *aux_states, ExecutorHandle shared_exec,
                               ExecutorHandle *out);
MXNET_DLL int MXExecutorSimpleBind(SymbolHandle symbol_handle, int dev_type, int dev_id, const uint32_t num_g2c_keys,
                                   const char **g2c_keys, const int *g2c_dev_types, const int *g2c_dev_ids,
                                   const uint32_t provided_grad_req_list_len, const char **provided_grad_req_names,
                                   const char **provided_grad_req_types, const uint32_t num_provided_arg_shapes,
                                   const char **provided_arg_shape_names, const uint32_t *provided_arg_shape_data,
                                   const uint32_t *provided_arg_shape_idx, const uint32_t num_provided_arg_dtypes,
                                   const char **provided_arg_dtype_names, const int *provided_arg_dtypes,
                                   const uint32_t num_provided_arg_stypes, const char **provided_arg_stype_names,
                                   const int *provided_arg_stypes, const uint32_t num_shared_arg_names,
                                   const char **shared_arg_name_list, int *shared_buffer_len,
                                   const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
                                   const char ***updated_shared_buffer_name_list,
                                   NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args,
                                   NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
                                   NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out);
MXNET_DLL int MXExecutorSimpleBindEx(
    SymbolHandle symbol_handle, int dev_type, int dev_id, const uint32_t num_g2c_keys, const char **g2c_keys,
    const int *g2c_dev_types, const int *g2c_dev_ids, const uint32_t provided_grad_req_list_len,
    const char **provided_grad_req_names, const char **provided_grad_req_types, const uint32_t num_provided_arg_shapes,
    const char **provided_arg_shape_names, const int *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
    const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names, const int *provided_arg_dtypes,
    const uint32_t num_provided_arg_stypes, const char **provided_arg_stype_names, const int *provided_arg_stypes,
    const uint32_t num_shared_arg_names, const char **shared_arg_name_list, int *shared_buffer_len,
    const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
    const char ***updated_shared_buffer_name_list, NDArrayHandle **updated_shared_buffer_handle_list,
    uint32_t *num_in_args, NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
    NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out);
MXNET_DLL int MXExecutorSimpleBindEx64(
    SymbolHandle symbol_handle, int dev_type, int dev_id, const uint32_t num_g2c_keys, const char **g2c_keys,
    const int *g2c_dev_types, const int *g2c_dev_ids, const uint32_t provided_grad_req_list_len,
    const char **provided_grad_req_names, const char **provided_grad_req_types, const uint32_t num_provided_arg_shapes,
    const char **provided_arg_shape_names, const int64_t *provided_arg_shape_data,
    const uint32_t *provided_arg_shape_idx, const uint32_t num_provided_arg_dtypes,
    const char **provided_arg_dtype_names, const int *provided_arg_dtypes, const uint32_t num_provided_arg_stypes,
    const char **provided_arg_stype_names, const int *provided_arg_stypes, const uint32_t num_shared_arg_names,
    const char **shared_arg_name_list, int *shared_buffer_len, const char **shared_buffer_name_list,
    NDArrayHandle *shared_buffer_handle_list, const char ***updated_shared_buffer_name_list,
    NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args, NDArrayHandle **in_args,
    NDArrayHandle **arg_grads, uint32_t *num_aux_states, NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle,
    ExecutorHandle *out);

/** *out is the caller's; the old executor stays usable. */
MXNET_DLL int MXExecutorReshape(int partial_shaping, int allow_up_sizing, int dev_type, int dev_id,
                                uint32_t num_map_keys, const char **map_keys, const int *map_dev_types,
                                const int *map_dev_ids, const uint32_t num_provided_arg_shapes,
                                const char **provided_arg_shape_names, const uint32_t *provided_arg_shape_data,
                                const uint32_t *provided_arg_shape_idx, uint32_t *num_in_args, NDArrayHandle **in_args,
                                NDArrayHandle **arg_grads, uint32_t *num_aux_states, NDArrayHandle **aux_states,
                                ExecutorHandle shared_exec, ExecutorHandle *out);
MXNET_DLL int MXExecutorReshapeEx(int partial_shaping, int allow_up_sizing, int dev_type, int dev_id,
                                  uint32_t num_map_keys, const char **map_keys, const int *map_dev_types,
                                  const int *map_dev_ids, const uint32_t num_provided_arg_shapes,
                                  const char **provided_arg_shape_names, const int *provided_arg_shape_data,
                                  const uint32_t *provided_arg_shape_idx, uint32_t *num_in_args,
                                  NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
                                  NDArrayHandle **aux_states, ExecutorHandle shared_exec, ExecutorHandle *out);
MXNET_DLL int MXExecutorGetOptimizedSymbol(ExecutorHandle handle, SymbolHandle *out);

/** The callback owns the array handle that it gets. */
MXNET_DLL int MXExecutorSetMonitorCallback(ExecutorHandle handle, ExecutorMonitorCallback callback,
                                           void *callback_handle);
MXNET_DLL int MXExecutorSetMonitorCallbackEX(ExecutorHandle handle, ExecutorMonitorCallback callback,
                                             void *callback_handle, bool monitor_all);

/* ---- data iterators ---- */

/** The kinds of iterators that MXDataIterCreateIter() makes. */
MXNET_DLL int MXListDataIters(uint32_t *out_size, DataIterCreator **out_array);
MXNET_DLL int MXDataIterCreateIter(DataIterCreator handle, uint32_t num_param, const char **keys, const char **vals,
                                   DataIterHandle *out);
MXNET_DLL int MXDataIterGetIterInfo(DataIterCreator creator, const char **name, const char **description,
                                    uint32_t *num_args, const char ***arg_names, const char ***arg_type_infos,
                                    const char ***arg_descriptions);
MXNET_DLL int MXDataIterFree(DataIterHandle handle);

/** *out is 1 if there is a batch, else 0. */
MXNET_DLL int MXDataIterNext(DataIterHandle handle, int *out);
MXNET_DLL int MXDataIterBeforeFirst(DataIterHandle handle);

/** The batch's array, which the caller frees; the next batch is another one. */
MXNET_DLL int MXDataIterGetData(DataIterHandle handle, NDArrayHandle *out);

/** The numbers of the batch's rows, counted in the whole data set. Valid until the next batch. */
MXNET_DLL int MXDataIterGetIndex(DataIterHandle handle, uint64_t **out_index, uint64_t *out_size);

/** How many rows at the end of the batch only fill it up. */
MXNET_DLL int MXDataIterGetPadNum(DataIterHandle handle, int *pad);
MXNET_DLL int MXDataIterGetLabel(DataIterHandle handle, NDArrayHandle *out);

/* ---- stores of parameters ---- */

/** Gets the key, the sum that was pushed and the stored value, which it updates in place. */
typedef void(MXKVStoreUpdater)(int key, NDArrayHandle recv, NDArrayHandle local, void *handle);
typedef void(MXKVStoreStrUpdater)(const char *key, NDArrayHandle recv, NDArrayHandle local, void *handle);
typedef void(MXKVStoreServerController)(int head, const char *body, void *controller_handle);
MXNET_DLL int MXInitPSEnv(uint32_t num_vars, const char **keys, const char **vals);

/** "local", "device", "local_allreduce_cpu", "local_allreduce_device"; stores of several processes are not implemented. */
MXNET_DLL int MXKVStoreCreate(const char *type, KVStoreHandle *out);
MXNET_DLL int MXKVStoreSetGradientCompression(KVStoreHandle handle, uint32_t num_params, const char **keys,
                                              const char **vals);
MXNET_DLL int MXKVStoreFree(KVStoreHandle handle);
MXNET_DLL int MXKVStoreInit(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals);
MXNET_DLL int MXKVStoreInitEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals);

/** Values that share a key are summed in the order of the list; then the updater is called, or the sum is stored. */
MXNET_DLL int MXKVStorePush(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals, int priority);
MXNET_DLL int MXKVStorePushEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals, int priority);

/** ignore_sparse: whether sparse arrays are left as they are. */
MXNET_DLL int MXKVStorePullWithSparse(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals,
                                      int priority, bool ignore_sparse);
MXNET_DLL int MXKVStorePullWithSparseEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals,
                                        int priority, bool ignore_sparse);
MXNET_DLL int MXKVStorePull(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals, int priority);
MXNET_DLL int MXKVStorePullEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals, int priority);
MXNET_DLL int MXKVStorePullRowSparse(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals,
                                     const NDArrayHandle *row_ids, int priority);
MXNET_DLL int MXKVStorePullRowSparseEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals,
                                       const NDArrayHandle *row_ids, int priority);
MXNET_DLL int MXKVStoreBroadcast(KVStoreHandle handle, uint32_t vnum, const int *vkeys, uint32_t onum, const int *okeys,
                                 NDArrayHandle *vals, NDArrayHandle *outs, int priority);
MXNET_DLL int MXKVStoreBroadcastEx(KVStoreHandle handle, uint32_t vnum, const char **vkeys, uint32_t onum,
                                   const char **okeys, NDArrayHandle *vals, NDArrayHandle *outs, int priority);
MXNET_DLL int MXKVStorePushPull(KVStoreHandle handle, uint32_t vnum, const int *vkeys, uint32_t onum, const int *okeys,
                                NDArrayHandle *vals, NDArrayHandle *outs, int priority);
MXNET_DLL int MXKVStorePushPullEx(KVStoreHandle handle, uint32_t vnum, const char **vkeys, uint32_t onum,
                                  const char **okeys, NDArrayHandle *vals, NDArrayHandle *outs, int priority);
MXNET_DLL int MXKVStoreSetUpdater(KVStoreHandle handle, MXKVStoreUpdater updater, void *updater_handle);

/** str_updater is called for keys that are text. Both own the two array handles that they get. */
MXNET_DLL int MXKVStoreSetUpdaterEx(KVStoreHandle handle, MXKVStoreUpdater updater, MXKVStoreStrUpdater str_updater,
                                    void *updater_handle);
MXNET_DLL int MXKVStoreGetType(KVStoreHandle handle, const char **type);
MXNET_DLL int MXKVStoreGetRank(KVStoreHandle handle, int *ret);

/** 1, and the rank is 0. */
MXNET_DLL int MXKVStoreGetGroupSize(KVStoreHandle handle, int *ret);

/** 1: a store of one process is a worker, and neither server nor scheduler. */
MXNET_DLL int MXKVStoreIsWorkerNode(int *ret);
MXNET_DLL int MXKVStoreIsServerNode(int *ret);
MXNET_DLL int MXKVStoreIsSchedulerNode(int *ret);
MXNET_DLL int MXKVStoreBarrier(KVStoreHandle handle);
MXNET_DLL int MXKVStoreSetBarrierBeforeExit(KVStoreHandle handle, const int barrier_before_exit);

/** Not implemented: there are no servers. */
MXNET_DLL int MXKVStoreRunServer(KVStoreHandle handle, MXKVStoreServerController controller, void *controller_handle);

/** A store of one process has no server: the command has no effect, as in MXNet. */
MXNET_DLL int MXKVStoreSendCommmandToServers(KVStoreHandle handle, int cmd_id, const char *cmd_body);
MXNET_DLL int MXKVStoreGetNumDeadNode(KVStoreHandle handle, const int node_id, int *number,
                                      const int timeout_sec MXNET_DEFAULT(60));

/* ---- RecordIO ---- */

MXNET_DLL int MXRecordIOWriterCreate(const char *uri, RecordIOHandle *out);
MXNET_DLL int MXRecordIOWriterFree(RecordIOHandle handle);
MXNET_DLL int MXRecordIOWriterWriteRecord(RecordIOHandle handle, const char *buf, size_t size);
MXNET_DLL int MXRecordIOWriterTell(RecordIOHandle handle, size_t *pos);
MXNET_DLL int MXRecordIOReaderCreate(const char *uri, RecordIOHandle *out);
MXNET_DLL int MXRecordIOReaderFree(RecordIOHandle handle);

/** *buf is NULL and *size 0 at the end. The record lives until the reader's next call. */
MXNET_DLL int MXRecordIOReaderReadRecord(RecordIOHandle handle, const char **buf, size_t *size);

/** pos must be where a record begins, as MXRecordIOWriterTell() gave it before the record. */
MXNET_DLL int MXRecordIOReaderSeek(RecordIOHandle handle, size_t pos);
MXNET_DLL int MXRecordIOReaderTell(RecordIOHandle handle, size_t *pos);

/* ---- operators of the host ---- */

/** Registers an operator that is made of callbacks, for `Custom` with op_type. */
MXNET_DLL int MXCustomOpRegister(const char *op_type, CustomOpPropCreator creator);

/** Records a function of the host, which computes its own gradient. */
MXNET_DLL int MXCustomFunctionRecord(int num_inputs, NDArrayHandle *inputs, int num_outputs, NDArrayHandle *outputs,
                                     struct MXCallbackList *callbacks);

/* ---- kernels compiled at run time ---- */

/** Not implemented, as the other functions of this section: kernels that are compiled while a program runs. */
MXNET_DLL int MXRtcCreate(char *name, uint32_t num_input, uint32_t num_output, char **input_names, char **output_names,
                          NDArrayHandle *inputs, NDArrayHandle *outputs, char *kernel, RtcHandle *out);
MXNET_DLL int MXRtcPush(RtcHandle handle, uint32_t num_input, uint32_t num_output, NDArrayHandle *inputs,
                        NDArrayHandle *outputs, uint32_t gridDimX, uint32_t gridDimY, uint32_t gridDimZ,
                        uint32_t blockDimX, uint32_t blockDimY, uint32_t blockDimZ);
MXNET_DLL int MXRtcFree(RtcHandle handle);
MXNET_DLL int MXRtcCudaModuleCreate(const char *source, int num_options, const char **options, int num_exports,
                                    const char **exports, CudaModuleHandle *out);
MXNET_DLL int MXRtcCudaModuleFree(CudaModuleHandle handle);
MXNET_DLL int MXRtcCudaKernelCreate(CudaModuleHandle handle, const char *name, int num_args, int *is_ndarray,
                                    int *is_const, int *arg_types, CudaKernelHandle *out);
MXNET_DLL int MXRtcCudaKernelFree(CudaKernelHandle handle);
MXNET_DLL int MXRtcCudaKernelCall(CudaKernelHandle handle, int dev_id, void **args, uint32_t grid_dim_x,
                                  uint32_t grid_dim_y, uint32_t grid_dim_z, uint32_t block_dim_x, uint32_t block_dim_y,
                                  uint32_t block_dim_z, uint32_t shared_mem);

/* ---- work of the host on the engine ---- */

/** Not implemented, as the other functions of this section: work of the host on MXNet's own engine. */
MXNET_DLL int MXEnginePushAsync(EngineAsyncFunc async_func, void *func_param, EngineFuncParamDeleter deleter,
                                ContextHandle ctx_handle, EngineVarHandle const_vars_handle, int num_const_vars,
                                EngineVarHandle mutable_vars_handle, int num_mutable_vars,
                                EngineFnPropertyHandle prop_handle MXNET_DEFAULT(NULL), int priority MXNET_DEFAULT(0),
                                const char *opr_name MXNET_DEFAULT(NULL), bool wait MXNET_DEFAULT(false));
MXNET_DLL int MXEnginePushSync(EngineSyncFunc sync_func, void *func_param, EngineFuncParamDeleter deleter,
                               ContextHandle ctx_handle, EngineVarHandle const_vars_handle, int num_const_vars,
                               EngineVarHandle mutable_vars_handle, int num_mutable_vars,
                               EngineFnPropertyHandle prop_handle MXNET_DEFAULT(NULL), int priority MXNET_DEFAULT(0),
                               const char *opr_name MXNET_DEFAULT(NULL));
MXNET_DLL int MXEnginePushAsyncND(EngineAsyncFunc async_func, void *func_param, EngineFuncParamDeleter deleter,
                                  ContextHandle ctx_handle, NDArrayHandle *const_nds_handle, int num_const_nds,
                                  NDArrayHandle *mutable_nds_handle, int num_mutable_nds,
                                  EngineFnPropertyHandle prop_handle MXNET_DEFAULT(NULL), int priority MXNET_DEFAULT(0),
                                  const char *opr_name MXNET_DEFAULT(NULL), bool wait MXNET_DEFAULT(false));
MXNET_DLL int MXEnginePushSyncND(EngineSyncFunc sync_func, void *func_param, EngineFuncParamDeleter deleter,
                                 ContextHandle ctx_handle, NDArrayHandle *const_nds_handle, int num_const_nds,
                                 NDArrayHandle *mutable_nds_handle, int num_mutable_nds,
                                 EngineFnPropertyHandle prop_handle MXNET_DEFAULT(NULL), int priority MXNET_DEFAULT(0),
                                 const char *opr_name MXNET_DEFAULT(NULL));

/* ---- packed functions ---- */

MXNET_DLL int MXNetFuncFree(MXNetFunctionHandle func);
MXNET_DLL int MXNetFuncCall(MXNetFunctionHandle func, MXNetValue *arg_values, int *type_codes, int num_args,
                            MXNetValue *ret_val, int *ret_type_code);

/** Functions of the packed interface, which none of the frontends needs to load; *out is NULL: there is none. */
MXNET_DLL int MXNetFuncGetGlobal(const char *name, MXNetFunctionHandle *out);
MXNET_DLL int MXNetFuncListGlobalNames(int *out_size, const char ***out_array);
MXNET_DLL int MXNetObjectFree(MXNetObjectHandle obj);
MXNET_DLL int MXTVMBridge(TVMFunctionHandle pregister);

#ifdef __cplusplus
}
#endif

#endif /* MXNET_C_API_H_ */
