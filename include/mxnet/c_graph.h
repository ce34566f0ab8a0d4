/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file c_graph.h
 * The graph interface of MXNet 1.9.1, which MXNet has from its library nnvm (there nnvm/c_api.h): operators and symbols.
 * Errors, text and handles are as c_api.h says.
 */
#ifndef MXNET_C_GRAPH_H_
#define MXNET_C_GRAPH_H_

#include "mxnet/c_handles.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *OpHandle;
typedef void *GraphHandle;
typedef unsigned int nn_uint;

MXNET_DLL void NNAPISetLastError(const char *msg);
MXNET_DLL const char *NNGetLastError(void);
MXNET_DLL int NNListAllOpNames(nn_uint *out_size, const char ***out_array);
MXNET_DLL int NNGetOpHandle(const char *op_name, OpHandle *op_out);
MXNET_DLL int NNListUniqueOps(nn_uint *out_size, OpHandle **out_array);
MXNET_DLL int NNGetOpInfo(OpHandle op, const char **real_name, const char **description, nn_uint *num_doc_args,
                          const char ***arg_names, const char ***arg_type_infos, const char ***arg_descriptions,
                          const char **return_type);
MXNET_DLL int NNSymbolCreateAtomicSymbol(OpHandle op, nn_uint num_param, const char **keys, const char **vals,
                                         SymbolHandle *out);
MXNET_DLL int NNSymbolCreateVariable(const char *name, SymbolHandle *out);
MXNET_DLL int NNSymbolCreateGroup(nn_uint num_symbols, SymbolHandle *symbols, SymbolHandle *out);

/** Not implemented. */
MXNET_DLL int NNAddControlDeps(SymbolHandle src_symbol, SymbolHandle dep_symbol);
MXNET_DLL int NNSymbolFree(SymbolHandle symbol);
MXNET_DLL int NNSymbolCopy(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int NNSymbolPrint(SymbolHandle symbol, const char **out_str);
MXNET_DLL int NNSymbolGetAttr(SymbolHandle symbol, const char *key, const char **out, int *success);
MXNET_DLL int NNSymbolSetAttrs(SymbolHandle symbol, nn_uint num_param, const char **keys, const char **values);
MXNET_DLL int NNSymbolListAttrs(SymbolHandle symbol, int recursive_option, nn_uint *out_size, const char ***out);
MXNET_DLL int NNSymbolListInputVariables(SymbolHandle symbol, int option, nn_uint *out_size,
                                         SymbolHandle **out_sym_array);
MXNET_DLL int NNSymbolListInputNames(SymbolHandle symbol, int option, nn_uint *out_size, const char ***out_str_array);
MXNET_DLL int NNSymbolListOutputNames(SymbolHandle symbol, nn_uint *out_size, const char ***out_str_array);
MXNET_DLL int NNSymbolGetNumOutputs(SymbolHandle symbol, nn_uint *output_count);
MXNET_DLL int NNSymbolGetInternals(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int NNSymbolGetChildren(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int NNSymbolGetOutput(SymbolHandle symbol, nn_uint index, SymbolHandle *out);
MXNET_DLL int NNSymbolCompose(SymbolHandle sym, const char *name, nn_uint num_args, const char **keys,
                              SymbolHandle *args);

/** Not implemented, as the other functions of graphs: passes are the business of bind. */
MXNET_DLL int NNGraphCreate(SymbolHandle symbol, GraphHandle *graph);
MXNET_DLL int NNGraphFree(GraphHandle handle);
MXNET_DLL int NNGraphGetSymbol(GraphHandle graph, SymbolHandle *symbol);
MXNET_DLL int NNGraphSetJSONAttr(GraphHandle handle, const char *key, const char *json_value);
MXNET_DLL int NNGraphGetJSONAttr(GraphHandle handle, const char *key, const char **json_out, int *success);
MXNET_DLL int NNGraphSetNodeEntryListAttr_(GraphHandle handle, const char *key, SymbolHandle list);
MXNET_DLL int NNGraphApplyPasses(GraphHandle src, nn_uint num_pass, const char **pass_names, GraphHandle *dst);

#ifdef __cplusplus
}
#endif

#endif /* MXNET_C_GRAPH_H_ */
