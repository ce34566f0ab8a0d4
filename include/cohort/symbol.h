/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file symbol.h
 * Symbols: graphs of operators over variables, composed from C or read from MXNet's JSON.
 *
 * A symbol is one or more heads: outputs of nodes. Nodes never change: setting an attribute gives the handle a new
 * node, and executors and groups keep what they were bound with. Lists run depth-first from the heads, inputs left to
 * right, each node once.
 */
#ifndef COHORT_SYMBOL_H
#define COHORT_SYMBOL_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Lists of names that a symbol has. */
enum {
  COHORT_SYMBOL_ARGUMENTS = 0, /* variables that are no auxiliary states */
  COHORT_SYMBOL_AUX = 1,       /* auxiliary states: variables that operators update, such as moving means */
  COHORT_SYMBOL_OUTPUTS = 2,   /* the heads */
  COHORT_SYMBOL_INPUTS = 3,    /* all variables, arguments and auxiliary states interleaved */
  COHORT_SYMBOL_LABELS = 4     /* arguments that outputs need only as labels of losses such as SoftmaxOutput:
                                  inference needs no values of them */
};
typedef int32_t cohort_symbol_list;

/**
 * Makes a variable.
 *
 * @param name  Not empty.
 * @param keys  Attributes; each key starts and ends with two underscores (`__shape__`, `__lr_mult__`), or is one of the
 *              short names ctx_group, lr_mult, wd_mult, force_mirroring, mirror_stage. Others: COHORT_ERROR_NAME.
 *
 * The library reads these, at the call that uses them: `__shape__` "(4, 5)", 0 where not known; `__dtype__` the number
 * of a COHORT_DTYPE_ constant, "2"; `__storage_type__` the number of a COHORT_STORAGE_ constant; `__layout__` "TNC";
 * `__lr_mult__` and `__wd_mult__` "0.5"; `__ctx_group__` any word, see cohort_group_options; `__init__`, see
 * cohort_initializer_apply(). It keeps all others for the caller, and in JSON.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_variable(const char *name, const char *const *keys,
                                                                  const char *const *values, size_t num_attrs,
                                                                  cohort_symbol **out_symbol);

/**
 * Makes a node of an operator.
 *
 * Inputs that are not given become variables called `<name>_<input>`, as in `fc1_weight`.
 *
 * @param op           An operator's name, as cohort_operator_name() lists them.
 * @param name         @nullable The node's name; NULL or "": the operator's name in lower case and the next number that
 *                     no automatic name of the process has had and no node among the inputs has, so that layers can be
 *                     added to networks that were loaded or have names of their own. The number depends on what else
 *                     the process composes: give names if parameters are saved, as frontends do that count by thread or
 *                     by scope.
 * @param keys         The operator's attributes as text, and node attributes as for cohort_symbol_variable(). An
 *                     operator without attributes takes and keeps any, as in MXNet.
 * @param inputs       Symbols of one output each. An operator that takes any number of inputs counts them itself if its
 *                     count attribute is not among the keys. An operator that runs graphs (_foreach: fn; _while_loop:
 *                     cond, func; _cond: cond, then_branch, else_branch; _CachedOp: graph; _sg_mkldnn_conv,
 *                     _sg_mkldnn_fully_connected, _sg_mkldnn_selfatt_qk, _sg_mkldnn_selfatt_valatt: layer) takes these
 *                     first: for each a symbol of all outputs of the graph, whose variables are its inputs. Attributes
 *                     say the rest, as in MXNet's JSON.
 * @param input_names  @nullable The operator's input that each symbol is for; NULL: in the operator's order.
 * @return NULL, or
 *   COHORT_ERROR_NAME              no such operator, attribute or input; an input given twice; an attribute missing
 *   COHORT_ERROR_INVALID_ARGUMENT  an attribute out of its range; too many inputs; an input of several outputs
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_create(const char *op, const char *name,
                                                                const char *const *keys, const char *const *values,
                                                                size_t num_attrs, cohort_symbol *const *inputs,
                                                                const char *const *input_names, size_t num_inputs,
                                                                cohort_symbol **out_symbol);

/** Makes a symbol of all heads of the given ones, in order; the same head may come twice. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_group(cohort_symbol *const *symbols, size_t num_symbols,
                                                               cohort_symbol **out_symbol);

/** Frees a handle; NULL does nothing. */
COHORT_API void cohort_symbol_free(cohort_symbol *symbol);

/** Makes a copy that shares no node with the original. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_copy(const cohort_symbol *symbol, cohort_symbol **out_symbol);

/**
 * Replaces variables by other symbols, in a copy.
 *
 * @param names   @nullable The variable that each symbol replaces; NULL: in the order of the arguments. Unknown:
 *                COHORT_ERROR_NAME.
 * @param inputs  Symbols of one output each.
 * @param name    @nullable The head's new name; NULL or "": it keeps its own.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_compose(const cohort_symbol *symbol, const char *const *names,
                                                                 cohort_symbol *const *inputs, size_t num_inputs,
                                                                 const char *name, cohort_symbol **out_symbol);

/** Makes a symbol whose heads are all outputs of all nodes that a user can see, variables included, in list order. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_internals(const cohort_symbol *symbol,
                                                                   cohort_symbol **out_symbol);

/**
 * Makes a symbol whose heads are the inputs of the head nodes.
 *
 * @param out_symbol  @gives_null NULL if these have none.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_children(const cohort_symbol *symbol,
                                                                  cohort_symbol **out_symbol);

/** Makes a symbol of one head of another symbol. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_output(const cohort_symbol *symbol, size_t index,
                                                                cohort_symbol **out_symbol);

/** @as cohort_symbol_output(), by output name. Unknown or ambiguous: COHORT_ERROR_NAME. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_output_named(const cohort_symbol *symbol, const char *name,
                                                                      cohort_symbol **out_symbol);

/** How many nodes the symbol's JSON has, variables included. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_num_nodes(const cohort_symbol *symbol, size_t *out_num);

/** The length of a list of names: `list` is a COHORT_SYMBOL_ constant. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_num_names(const cohort_symbol *symbol, cohort_symbol_list list,
                                                                   size_t *out_num);

/**
 * A name of a list. Output names: the name of a variable; `<node>_output`; `<node>_<output>` if there are several.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_name_at(const cohort_symbol *symbol, cohort_symbol_list list,
                                                                 size_t index, const char **out_name);

/**
 * The name of the head's node.
 *
 * @param out_name  @gives_null NULL if there are several heads.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_name(const cohort_symbol *symbol, const char **out_name);

/**
 * An attribute of the head's node.
 *
 * @param out_value  @gives_null NULL if the node has none of that key, or if there are several heads.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_attr(const cohort_symbol *symbol, const char *key,
                                                              const char **out_value);

/**
 * Sets attributes of the head's node, for this handle: symbols composed from it before keep the ones they had.
 *
 * @param keys  @as cohort_symbol_variable(). `<input>_lr_mult` and the like: COHORT_ERROR_NAME with advice.
 * @return NULL, or COHORT_ERROR_STATE if there are several heads; nothing is set then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_set_attrs(cohort_symbol *symbol, const char *const *keys,
                                                                   const char *const *values, size_t num_attrs);

/** How many attributes the head's node has (`all` 0), or all nodes together have (`all` 1). */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_num_attrs(const cohort_symbol *symbol, cohort_bool all,
                                                                   size_t *out_num);

/**
 * An attribute of that list, sorted by key within a node.
 *
 * @param out_node, out_key, out_value  @nullable
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_attr_at(const cohort_symbol *symbol, cohort_bool all,
                                                                 size_t index, const char **out_node,
                                                                 const char **out_key, const char **out_value);

/**
 * Infers the shapes of all arguments, outputs and auxiliary states.
 *
 * @param known         @nullable Shapes by name, of arguments or auxiliary states; entries without names are taken in
 *                      the order of the arguments. Length 0 is not known. Dtypes and layouts are not read. NULL: none.
 *                      `__shape__` attributes take part.
 * @param partial       1: gives what was found even if it is not all.
 * @param out_complete  1 if every shape is known, else 0.
 * @param out_args, out_outputs, out_aux  @nullable @gives_null Names and shapes in list order; NULL if incomplete and
 *                      not partial.
 * @return NULL, or
 *   COHORT_ERROR_NAME   a known name is neither argument nor auxiliary state
 *   COHORT_ERROR_SHAPE  shapes contradict (the error names the node, what it was given and what it infers)
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_infer_shape(const cohort_symbol *symbol,
                                                                     const cohort_descs *known, cohort_bool partial,
                                                                     cohort_bool *out_complete, cohort_descs **out_args,
                                                                     cohort_descs **out_outputs,
                                                                     cohort_descs **out_aux);

/** @as cohort_symbol_infer_shape(), for dtypes: known's shapes are not read; contradictions are COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_infer_dtype(const cohort_symbol *symbol,
                                                                     const cohort_descs *known, cohort_bool partial,
                                                                     cohort_bool *out_complete, cohort_descs **out_args,
                                                                     cohort_descs **out_outputs,
                                                                     cohort_descs **out_aux);

/**
 * Reads a symbol from JSON as MXNet 0.8 to 1.9 wrote it, bringing older forms up to date. Names may take up to 2^28
 * bytes in all, where that of a node counts once for each of its inputs and outputs, and for each head that is one of
 * these.
 *
 * @param bytes  The length of json, without an ending zero.
 * @return NULL, or COHORT_ERROR_FORMAT: other JSON, indices out of range, a cycle, unknown operators (the error names
 *   all of them, each with its nodes), an unknown attribute (the error names node and operator) or longer names.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_from_json(const char *json, size_t bytes,
                                                                   cohort_symbol **out_symbol);

/**
 * The symbol as JSON in the form of MXNet 1.9. The text belongs to the symbol's handle. Control characters in names and
 * attributes other than line ends and tabs are written bare, which other readers of JSON may refuse: MXNet reads no
 * other form.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_to_json(const cohort_symbol *symbol, const char **out_json);

/** Reads a JSON file as cohort_symbol_from_json() does. A missing or unreadable file: COHORT_ERROR_IO. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_load(const char *path, cohort_symbol **out_symbol);

/** Writes a JSON file, whole or not at all. COHORT_ERROR_IO names the file. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_symbol_save(const cohort_symbol *symbol, const char *path);

COHORT_END_DECLS

#endif /* COHORT_SYMBOL_H */
