// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// Lists of names that a symbol has.
pub type cohort_symbol_list = i32;
/// variables that are no auxiliary states
pub const COHORT_SYMBOL_ARGUMENTS: cohort_symbol_list = 0;
/// auxiliary states: variables that operators update, such as moving means
pub const COHORT_SYMBOL_AUX: cohort_symbol_list = 1;
/// the heads
pub const COHORT_SYMBOL_OUTPUTS: cohort_symbol_list = 2;
/// all variables, arguments and auxiliary states interleaved
pub const COHORT_SYMBOL_INPUTS: cohort_symbol_list = 3;
/// arguments that outputs need only as labels of losses such as SoftmaxOutput: inference needs no values of them
pub const COHORT_SYMBOL_LABELS: cohort_symbol_list = 4;

extern "C" {
    /// An attribute of the head's node.
    ///
    /// - `out_value`: NULL may come out. NULL if the node has none of that key, or if there are several heads.
    pub fn cohort_symbol_attr(
        symbol: *const cohort_symbol,
        key: *const c_char,
        out_value: *mut *const c_char,
    ) -> *mut cohort_error;
    /// An attribute of that list, sorted by key within a node.
    ///
    /// - `out_node`: may be NULL.
    /// - `out_key`: may be NULL.
    /// - `out_value`: may be NULL.
    pub fn cohort_symbol_attr_at(
        symbol: *const cohort_symbol,
        all: cohort_bool,
        index: usize,
        out_node: *mut *const c_char,
        out_key: *mut *const c_char,
        out_value: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Makes a symbol whose heads are the inputs of the head nodes.
    ///
    /// - `out_symbol`: NULL may come out. NULL if these have none.
    pub fn cohort_symbol_children(
        symbol: *const cohort_symbol,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Replaces variables by other symbols, in a copy.
    ///
    /// - `names`: may be NULL. The variable that each symbol replaces; NULL: in the order of the arguments. Unknown: COHORT_ERROR_NAME.
    /// - `inputs`: Symbols of one output each.
    /// - `name`: may be NULL. The head's new name; NULL or "": it keeps its own.
    pub fn cohort_symbol_compose(
        symbol: *const cohort_symbol,
        names: *const *const c_char,
        inputs: *const *mut cohort_symbol,
        num_inputs: usize,
        name: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Makes a copy that shares no node with the original.
    pub fn cohort_symbol_copy(
        symbol: *const cohort_symbol,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Makes a node of an operator.
    ///
    /// Inputs that are not given become variables called `\<name\>_\<input\>`, as in `fc1_weight`.
    ///
    /// - `op`: An operator's name, as cohort_operator_name() lists them.
    /// - `name`: may be NULL. The node's name; NULL or "": the operator's name in lower case and the next number that no automatic name of the process has had and no node among the inputs has, so that layers can be added to networks that were loaded or have names of their own. The number depends on what else the process composes: give names if parameters are saved, as frontends do that count by thread or by scope.
    /// - `keys`: The operator's attributes as text, and node attributes as for cohort_symbol_variable(). An operator without attributes takes and keeps any, as in MXNet.
    /// - `inputs`: Symbols of one output each. An operator that takes any number of inputs counts them itself if its count attribute is not among the keys. An operator that runs graphs (_foreach: fn; _while_loop: cond, func; _cond: cond, then_branch, else_branch; _CachedOp: graph; _sg_mkldnn_conv, _sg_mkldnn_fully_connected, _sg_mkldnn_selfatt_qk, _sg_mkldnn_selfatt_valatt: layer) takes these first: for each a symbol of all outputs of the graph, whose variables are its inputs. Attributes say the rest, as in MXNet's JSON.
    /// - `input_names`: may be NULL. The operator's input that each symbol is for; NULL: in the operator's order.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_NAME              no such operator, attribute or input; an input given twice; an attribute missing
    ///   COHORT_ERROR_INVALID_ARGUMENT  an attribute out of its range; too many inputs; an input of several outputs
    pub fn cohort_symbol_create(
        op: *const c_char,
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        inputs: *const *mut cohort_symbol,
        input_names: *const *const c_char,
        num_inputs: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    ///
    /// - `symbol`: may be NULL.
    pub fn cohort_symbol_free(
        symbol: *mut cohort_symbol,
    );
    /// Reads a symbol from JSON as MXNet 0.8 to 1.9 wrote it, bringing older forms up to date. Names may take up to 2^28
    /// bytes in all, where that of a node counts once for each of its inputs and outputs, and for each head that is one of
    /// these.
    ///
    /// - `bytes`: The length of json, without an ending zero.
    ///
    /// Returns: NULL, or COHORT_ERROR_FORMAT: other JSON, indices out of range, a cycle, unknown operators (the error names
    ///   all of them, each with its nodes), an unknown attribute (the error names node and operator) or longer names.
    pub fn cohort_symbol_from_json(
        json: *const c_char,
        bytes: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Makes a symbol of all heads of the given ones, in order; the same head may come twice.
    pub fn cohort_symbol_group(
        symbols: *const *mut cohort_symbol,
        num_symbols: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// As cohort_symbol_infer_shape(), for dtypes: known's shapes are not read; contradictions are COHORT_ERROR_DTYPE.
    ///
    /// - `known`: may be NULL. Shapes by name, of arguments or auxiliary states; entries without names are taken in the order of the arguments. Length 0 is not known. Dtypes and layouts are not read. NULL: none. `__shape__` attributes take part.
    /// - `partial`: 1: gives what was found even if it is not all.
    /// - `out_complete`: 1 if every shape is known, else 0.
    /// - `out_args`: may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
    /// - `out_outputs`: may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
    /// - `out_aux`: may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
    pub fn cohort_symbol_infer_dtype(
        symbol: *const cohort_symbol,
        known: *const cohort_descs,
        partial: cohort_bool,
        out_complete: *mut cohort_bool,
        out_args: *mut *mut cohort_descs,
        out_outputs: *mut *mut cohort_descs,
        out_aux: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Infers the shapes of all arguments, outputs and auxiliary states.
    ///
    /// - `known`: may be NULL. Shapes by name, of arguments or auxiliary states; entries without names are taken in the order of the arguments. Length 0 is not known. Dtypes and layouts are not read. NULL: none. `__shape__` attributes take part.
    /// - `partial`: 1: gives what was found even if it is not all.
    /// - `out_complete`: 1 if every shape is known, else 0.
    /// - `out_args`: may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
    /// - `out_outputs`: may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
    /// - `out_aux`: may be NULL, NULL may come out. Names and shapes in list order; NULL if incomplete and not partial.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_NAME   a known name is neither argument nor auxiliary state
    ///   COHORT_ERROR_SHAPE  shapes contradict (the error names the node, what it was given and what it infers)
    pub fn cohort_symbol_infer_shape(
        symbol: *const cohort_symbol,
        known: *const cohort_descs,
        partial: cohort_bool,
        out_complete: *mut cohort_bool,
        out_args: *mut *mut cohort_descs,
        out_outputs: *mut *mut cohort_descs,
        out_aux: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Makes a symbol whose heads are all outputs of all nodes that a user can see, variables included, in list order.
    pub fn cohort_symbol_internals(
        symbol: *const cohort_symbol,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Reads a JSON file as cohort_symbol_from_json() does. A missing or unreadable file: COHORT_ERROR_IO.
    pub fn cohort_symbol_load(
        path: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// The name of the head's node.
    ///
    /// - `out_name`: NULL may come out. NULL if there are several heads.
    pub fn cohort_symbol_name(
        symbol: *const cohort_symbol,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// A name of a list. Output names: the name of a variable; `\<node\>_output`; `\<node\>_\<output\>` if there are several.
    pub fn cohort_symbol_name_at(
        symbol: *const cohort_symbol,
        list: cohort_symbol_list,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many attributes the head's node has (`all` 0), or all nodes together have (`all` 1).
    pub fn cohort_symbol_num_attrs(
        symbol: *const cohort_symbol,
        all: cohort_bool,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The length of a list of names: `list` is a COHORT_SYMBOL_ constant.
    pub fn cohort_symbol_num_names(
        symbol: *const cohort_symbol,
        list: cohort_symbol_list,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// How many nodes the symbol's JSON has, variables included.
    pub fn cohort_symbol_num_nodes(
        symbol: *const cohort_symbol,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Makes a symbol of one head of another symbol.
    pub fn cohort_symbol_output(
        symbol: *const cohort_symbol,
        index: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// As cohort_symbol_output(), by output name. Unknown or ambiguous: COHORT_ERROR_NAME.
    pub fn cohort_symbol_output_named(
        symbol: *const cohort_symbol,
        name: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Writes a JSON file, whole or not at all. COHORT_ERROR_IO names the file.
    pub fn cohort_symbol_save(
        symbol: *const cohort_symbol,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// Sets attributes of the head's node, for this handle: symbols composed from it before keep the ones they had.
    ///
    /// - `keys`: As for cohort_symbol_variable(). `\<input\>_lr_mult` and the like: COHORT_ERROR_NAME with advice. Attributes; each key starts and ends with two underscores (`__shape__`, `__lr_mult__`), or is one of the short names ctx_group, lr_mult, wd_mult, force_mirroring, mirror_stage. Others: COHORT_ERROR_NAME.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE if there are several heads; nothing is set then.
    pub fn cohort_symbol_set_attrs(
        symbol: *mut cohort_symbol,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
    ) -> *mut cohort_error;
    /// The symbol as JSON in the form of MXNet 1.9. The text belongs to the symbol's handle. Control characters in names and
    /// attributes other than line ends and tabs are written bare, which other readers of JSON may refuse: MXNet reads no
    /// other form.
    pub fn cohort_symbol_to_json(
        symbol: *const cohort_symbol,
        out_json: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Makes a variable.
    ///
    ///
    /// The library reads these, at the call that uses them: `__shape__` "(4, 5)", 0 where not known; `__dtype__` the number
    /// of a COHORT_DTYPE_ constant, "2"; `__storage_type__` the number of a COHORT_STORAGE_ constant; `__layout__` "TNC";
    /// `__lr_mult__` and `__wd_mult__` "0.5"; `__ctx_group__` any word, see cohort_group_options; `__init__`, see
    /// cohort_initializer_apply(). It keeps all others for the caller, and in JSON.
    ///
    /// - `name`: Not empty.
    /// - `keys`: Attributes; each key starts and ends with two underscores (`__shape__`, `__lr_mult__`), or is one of the short names ctx_group, lr_mult, wd_mult, force_mirroring, mirror_stage. Others: COHORT_ERROR_NAME.
    pub fn cohort_symbol_variable(
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
}
