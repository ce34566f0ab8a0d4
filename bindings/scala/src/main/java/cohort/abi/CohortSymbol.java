// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;

/** The functions of cohort/symbol.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortSymbol {
    private CohortSymbol() {
    }

    static {
        Loader.register(CohortSymbol.class);
    }

    /**
     * An attribute of the head's node.
     * @param out_value NULL may come out. NULL if the node has none of that key, or if there are several heads.
     */
    public static native long cohort_symbol_attr(long symbol, String key, long[] out_value);

    /**
     * An attribute of that list, sorted by key within a node.
     * @param out_node may be NULL.
     * @param out_key may be NULL.
     * @param out_value may be NULL.
     */
    public static native long cohort_symbol_attr_at(long symbol, int all, long index, long[] out_node, long[] out_key, long[] out_value);

    /**
     * Makes a symbol whose heads are the inputs of the head nodes.
     * @param out_symbol NULL may come out. NULL if these have none.
     */
    public static native long cohort_symbol_children(long symbol, long[] out_symbol);

    /**
     * Replaces variables by other symbols, in a copy.
     * @param names may be NULL. The variable that each symbol replaces; NULL: in the order of the arguments. Unknown: COHORT_ERROR_NAME.
     * @param inputs Symbols of one output each.
     * @param name may be NULL. The head's new name; NULL or "": it keeps its own.
     */
    public static native long cohort_symbol_compose(long symbol, Pointer names, long[] inputs, long num_inputs, String name, long[] out_symbol);

    /** Makes a copy that shares no node with the original. */
    public static native long cohort_symbol_copy(long symbol, long[] out_symbol);

    /**
     * Makes a node of an operator.
     *
     * Inputs that are not given become variables called `&lt;name&gt;_&lt;input&gt;`, as in `fc1_weight`.
     * Returns: NULL, or
     *   COHORT_ERROR_NAME              no such operator, attribute or input; an input given twice; an attribute missing
     *   COHORT_ERROR_INVALID_ARGUMENT  an attribute out of its range; too many inputs; an input of several outputs
     * @param op An operator's name, as cohort_operator_name() lists them.
     * @param name may be NULL. The node's name; NULL or "": the operator's name in lower case and the next number that no automatic name of the process has had and no node among the inputs has, so that layers can be added to networks that were loaded or have names of their own. The number depends on what else the process composes: give names if parameters are saved, as frontends do that count by thread or by scope.
     * @param keys The operator's attributes as text, and node attributes as for cohort_symbol_variable(). An operator without attributes takes and keeps any, as in MXNet.
     * @param inputs Symbols of one output each. An operator that takes any number of inputs counts them itself if its count attribute is not among the keys. An operator that runs graphs (_foreach: fn; _while_loop: cond, func; _cond: cond, then_branch, else_branch; _CachedOp: graph; _sg_mkldnn_conv, _sg_mkldnn_fully_connected, _sg_mkldnn_selfatt_qk, _sg_mkldnn_selfatt_valatt: layer) takes these first: for each a symbol of all outputs of the graph, whose variables are its inputs. Attributes say the rest, as in MXNet's JSON.
     * @param input_names may be NULL. The operator's input that each symbol is for; NULL: in the operator's order.
     */
    public static native long cohort_symbol_create(String op, String name, Pointer keys, Pointer values, long num_attrs, long[] inputs, Pointer input_names, long num_inputs, long[] out_symbol);

    /**
     * Frees a handle; NULL does nothing.
     * @param symbol may be NULL.
     */
    public static native void cohort_symbol_free(long symbol);

    /**
     * Reads a symbol from JSON as MXNet 0.8 to 1.9 wrote it, bringing older forms up to date. Names may take up to 2^28
     * bytes in all, where that of a node counts once for each of its inputs and outputs, and for each head that is one of
     * these.
     * Returns: NULL, or COHORT_ERROR_FORMAT: other JSON, indices out of range, a cycle, unknown operators (the error names
     *   all of them, each with its nodes), an unknown attribute (the error names node and operator) or longer names.
     * @param bytes The length of json, without an ending zero.
     */
    public static native long cohort_symbol_from_json(byte[] json, long bytes, long[] out_symbol);

    /** Makes a symbol of all heads of the given ones, in order; the same head may come twice. */
    public static native long cohort_symbol_group(long[] symbols, long num_symbols, long[] out_symbol);

    /**
     * As cohort_symbol_infer_shape(), for dtypes: known's shapes are not read; contradictions are COHORT_ERROR_DTYPE.
     * @param known may be NULL. Shapes by name, of arguments or auxiliary states; entries without names are taken in the order of the arguments. Length 0 is not known. Dtypes and layouts are not read. NULL: none. `__shape__` attributes take part.
     * @param partial 1: gives what was found even if it is not all.
     * @param out_complete 1 if every shape is known, else 0.
     * @param out_args may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
     * @param out_outputs may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
     * @param out_aux may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
     */
    public static native long cohort_symbol_infer_dtype(long symbol, long known, int partial, int[] out_complete, long[] out_args, long[] out_outputs, long[] out_aux);

    /**
     * Infers the shapes of all arguments, outputs and auxiliary states.
     * Returns: NULL, or
     *   COHORT_ERROR_NAME   a known name is neither argument nor auxiliary state
     *   COHORT_ERROR_SHAPE  shapes contradict (the error names the node, what it was given and what it infers)
     * @param known may be NULL. Shapes by name, of arguments or auxiliary states; entries without names are taken in the order of the arguments. Length 0 is not known. Dtypes and layouts are not read. NULL: none. `__shape__` attributes take part.
     * @param partial 1: gives what was found even if it is not all.
     * @param out_complete 1 if every shape is known, else 0.
     * @param out_args may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
     * @param out_outputs may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
     * @param out_aux may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
     */
    public static native long cohort_symbol_infer_shape(long symbol, long known, int partial, int[] out_complete, long[] out_args, long[] out_outputs, long[] out_aux);

    /**
     * Makes a symbol whose heads are all outputs of all nodes that a user can see, variables included, in list order.
     */
    public static native long cohort_symbol_internals(long symbol, long[] out_symbol);

    /** Reads a JSON file as cohort_symbol_from_json() does. A missing or unreadable file: COHORT_ERROR_IO. */
    public static native long cohort_symbol_load(String path, long[] out_symbol);

    /**
     * The name of the head's node.
     * @param out_name NULL may come out. NULL if there are several heads.
     */
    public static native long cohort_symbol_name(long symbol, long[] out_name);

    /**
     * A name of a list. Output names: the name of a variable; `&lt;node&gt;_output`; `&lt;node&gt;_&lt;output&gt;` if there are several.
     */
    public static native long cohort_symbol_name_at(long symbol, int list, long index, long[] out_name);

    /** How many attributes the head's node has (`all` 0), or all nodes together have (`all` 1). */
    public static native long cohort_symbol_num_attrs(long symbol, int all, long[] out_num);

    /** The length of a list of names: `list` is a COHORT_SYMBOL_ constant. */
    public static native long cohort_symbol_num_names(long symbol, int list, long[] out_num);

    /** How many nodes the symbol's JSON has, variables included. */
    public static native long cohort_symbol_num_nodes(long symbol, long[] out_num);

    /** Makes a symbol of one head of another symbol. */
    public static native long cohort_symbol_output(long symbol, long index, long[] out_symbol);

    /** As cohort_symbol_output(), by output name. Unknown or ambiguous: COHORT_ERROR_NAME. */
    public static native long cohort_symbol_output_named(long symbol, String name, long[] out_symbol);

    /** Writes a JSON file, whole or not at all. COHORT_ERROR_IO names the file. */
    public static native long cohort_symbol_save(long symbol, String path);

    /**
     * Sets attributes of the head's node, for this handle: symbols composed from it before keep the ones they had.
     * Returns: NULL, or COHORT_ERROR_STATE if there are several heads; nothing is set then.
     * @param keys As for cohort_symbol_variable(). `&lt;input&gt;_lr_mult` and the like: COHORT_ERROR_NAME with advice. Attributes; each key starts and ends with two underscores (`__shape__`, `__lr_mult__`), or is one of the short names ctx_group, lr_mult, wd_mult, force_mirroring, mirror_stage. Others: COHORT_ERROR_NAME.
     */
    public static native long cohort_symbol_set_attrs(long symbol, Pointer keys, Pointer values, long num_attrs);

    /**
     * The symbol as JSON in the form of MXNet 1.9. The text belongs to the symbol's handle. Control characters in names and
     * attributes other than line ends and tabs are written bare, which other readers of JSON may refuse: MXNet reads no
     * other form.
     */
    public static native long cohort_symbol_to_json(long symbol, long[] out_json);

    /**
     * Makes a variable.
     *
     *
     * The library reads these, at the call that uses them: `__shape__` "(4, 5)", 0 where not known; `__dtype__` the number
     * of a COHORT_DTYPE_ constant, "2"; `__storage_type__` the number of a COHORT_STORAGE_ constant; `__layout__` "TNC";
     * `__lr_mult__` and `__wd_mult__` "0.5"; `__ctx_group__` any word, see cohort_group_options; `__init__`, see
     * cohort_initializer_apply(). It keeps all others for the caller, and in JSON.
     * @param name Not empty.
     * @param keys Attributes; each key starts and ends with two underscores (`__shape__`, `__lr_mult__`), or is one of the short names ctx_group, lr_mult, wd_mult, force_mirroring, mirror_stage. Others: COHORT_ERROR_NAME.
     */
    public static native long cohort_symbol_variable(String name, Pointer keys, Pointer values, long num_attrs, long[] out_symbol);
}
