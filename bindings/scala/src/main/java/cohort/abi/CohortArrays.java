// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import java.nio.Buffer;

/** The functions of cohort/arrays.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortArrays {
    private CohortArrays() {
    }

    static {
        Loader.register(CohortArrays.class);
    }

    /**
     * Appends an entry.
     * @param name may be NULL. NULL or "": none. Names may repeat here; looking a repeated one up is an error.
     * @param array may be NULL. NULL: an entry without an array (an argument without gradient).
     */
    public static native long cohort_arrays_add(long arrays, String name, long array);

    /** Makes an empty list. */
    public static native long cohort_arrays_create(long[] out_arrays);

    /**
     * Finds an entry by name.
     * Returns: NULL, or COHORT_ERROR_NAME if there is none or more than one.
     */
    public static native long cohort_arrays_find(long arrays, String name, long[] out_index);

    /**
     * Frees a list, not the arrays that others hold; NULL does nothing.
     * @param arrays may be NULL.
     */
    public static native void cohort_arrays_free(long arrays);

    /**
     * A handle on the array of an entry.
     * @param out_array NULL may come out. NULL if the entry has none.
     */
    public static native long cohort_arrays_get(long arrays, long index, long[] out_array);

    /**
     * Reads a file of arrays: a .params file of any version that MXNet wrote, NumPy's .npy (one array, without a name) or
     * .npz (compressed ones, too). The content decides which it is, not the file's name. The file is opened once, so it may
     * be a pipe; a character device such as a terminal is refused (IO).
     *
     * A .params file without names gives entries without names. If a name is repeated, the last entry is kept; entries with
     * the empty name are all kept. An empty entry, which means "no array", becomes an entry without an array in a file
     * without names; in a file with names it is left out, with one warning.
     * Returns: NULL, or
     *   COHORT_ERROR_IO           the file cannot be read (the error names it)
     *   COHORT_ERROR_FORMAT       it is damaged or cut short, or holds more than 2^20 arrays or COHORT_MAX_AXES axes; sizes
     *                             are checked before anything is allocated
     *   COHORT_ERROR_UNSUPPORTED  it holds a sparse array, or elements of a type that arrays do not have (the error names
     *                             it)
     *   COHORT_ERROR_DEVICE       there is no such context
     * @param context may be NULL. The context of the arrays, whatever the file says; NULL: cpu(0).
     */
    public static native long cohort_arrays_load(String path, Structs.Context context, long[] out_arrays);

    /**
     * As cohort_arrays_load(), from `bytes` bytes of memory, which are not kept.
     * @param context may be NULL. The context of the arrays, whatever the file says; NULL: cpu(0).
     */
    public static native long cohort_arrays_load_memory(Buffer data, long bytes, Structs.Context context, long[] out_arrays);

    /**
     * As cohort_arrays_load() to cpu(0), but a .params file is mapped instead of read: large arrays lie in a private
     * mapping of the file. The system reads a page when it is first used, and may drop it while it is unused. Writing to
     * such an array does not change the file. Meant for inference with cohort_group_options::arg_params: parameters that a
     * group has converted to the layouts of its kernels then take memory only once. A file that cannot be mapped, a pipe or
     * a file of NumPy's, is loaded.
     *
     * As long as such an array lives, the file must stay as it is. Replacing it by renaming another file over it, as
     * cohort_arrays_save() does, is fine. Changing it in place changes the arrays; shortening it in place ends the process
     * when a page that is gone is used. Load a file that may change.
     */
    public static native long cohort_arrays_map(String path, long[] out_arrays);

    /** The name of an entry, "" if none. */
    public static native long cohort_arrays_name(long arrays, long index, long[] out_name);

    /** How many entries there are. */
    public static native long cohort_arrays_num(long arrays, long[] out_num);

    /**
     * Writes a .params file as MXNet's nd.save does: a list if no entry has a name, else a map, in
     * which entries without a name have the empty one.
     *
     * Waits for the arrays. The file appears whole under its name or not at all: an older one is replaced at the end.
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  an entry has no array
     *   COHORT_ERROR_IO                the file cannot be written (the error names it)
     *   COHORT_ERROR_EXECUTION         work that an array waits for failed; nothing was written
     */
    public static native long cohort_arrays_save(long arrays, String path);

    /**
     * As cohort_arrays_save(), into memory.
     * @param out_data may be NULL. NULL: only the size is wanted.
     */
    public static native long cohort_arrays_save_memory(long arrays, Buffer out_data, long capacity, long[] out_bytes);

    /**
     * Writes the only array of a list to a .npy file, as numpy.save() does. Otherwise like cohort_arrays_save().
     * Returns: As cohort_arrays_save(), and
     *   COHORT_ERROR_INVALID_ARGUMENT  the list does not have exactly one array
     *   COHORT_ERROR_DTYPE             bfloat16, which NumPy does not have
     */
    public static native long cohort_arrays_save_npy(long arrays, String path);

    /**
     * Writes a .npz file, as numpy.savez() does: each array under its name, or under "arr_0", "arr_1", .. by its position
     * if it has no name. Nothing is compressed. Otherwise like cohort_arrays_save().
     * Returns: As cohort_arrays_save(), and
     *   COHORT_ERROR_NAME   two arrays have one name, or a name has more than 65,531 bytes
     *   COHORT_ERROR_DTYPE  bfloat16, which NumPy does not have
     */
    public static native long cohort_arrays_save_npz(long arrays, String path);

    /**
     * Replaces the array of the entry with this name, or appends an entry. Ambiguous name: COHORT_ERROR_NAME.
     * @param array may be NULL. NULL: the entry is one without an array.
     */
    public static native long cohort_arrays_set(long arrays, String name, long array);
}
