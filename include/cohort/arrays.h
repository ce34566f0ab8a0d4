/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file arrays.h
 * Ordered lists of arrays, with or without names: parameters by name, outputs by position, contents of .params, .npy
 * and .npz files.
 * A list holds references: it keeps its arrays alive, and writing an array is seen through every list it is in.
 */
#ifndef COHORT_ARRAYS_H
#define COHORT_ARRAYS_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Makes an empty list. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_create(cohort_arrays **out_arrays);

/** Frees a list, not the arrays that others hold; NULL does nothing. */
COHORT_API void cohort_arrays_free(cohort_arrays *arrays);

/**
 * Appends an entry.
 *
 * @param name   @nullable NULL or "": none. Names may repeat here; looking a repeated one up is an error.
 * @param array  @nullable NULL: an entry without an array (an argument without gradient).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_add(cohort_arrays *arrays, const char *name,
                                                             cohort_ndarray *array);

/**
 * Replaces the array of the entry with this name, or appends an entry. Ambiguous name: COHORT_ERROR_NAME.
 *
 * @param array  @nullable NULL: the entry is one without an array.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_set(cohort_arrays *arrays, const char *name,
                                                             cohort_ndarray *array);

/** How many entries there are. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_num(const cohort_arrays *arrays, size_t *out_num);

/** The name of an entry, "" if none. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_name(const cohort_arrays *arrays, size_t index,
                                                              const char **out_name);

/**
 * A handle on the array of an entry.
 *
 * @param out_array  @gives_null NULL if the entry has none.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_get(const cohort_arrays *arrays, size_t index,
                                                             cohort_ndarray **out_array);

/**
 * Finds an entry by name.
 *
 * @return NULL, or COHORT_ERROR_NAME if there is none or more than one.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_find(const cohort_arrays *arrays, const char *name,
                                                              size_t *out_index);

/**
 * Writes a .params file as MXNet's nd.save does: a list if no entry has a name, else a map, in
 * which entries without a name have the empty one.
 *
 * Waits for the arrays. The file appears whole under its name or not at all: an older one is replaced at the end.
 *
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  an entry has no array
 *   COHORT_ERROR_IO                the file cannot be written (the error names it)
 *   COHORT_ERROR_EXECUTION         work that an array waits for failed; nothing was written
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_save(const cohort_arrays *arrays, const char *path);

/**
 * @as cohort_arrays_save(), into memory.
 *
 * @param out_data  @nullable NULL: only the size is wanted.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_save_memory(const cohort_arrays *arrays, void *out_data,
                                                                     size_t capacity, size_t *out_bytes);

/**
 * Writes the only array of a list to a .npy file, as numpy.save() does. Otherwise like cohort_arrays_save().
 *
 * @return As cohort_arrays_save(), and
 *   COHORT_ERROR_INVALID_ARGUMENT  the list does not have exactly one array
 *   COHORT_ERROR_DTYPE             bfloat16, which NumPy does not have
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_save_npy(const cohort_arrays *arrays, const char *path);

/**
 * Writes a .npz file, as numpy.savez() does: each array under its name, or under "arr_0", "arr_1", .. by its position
 * if it has no name. Nothing is compressed. Otherwise like cohort_arrays_save().
 *
 * @return As cohort_arrays_save(), and
 *   COHORT_ERROR_NAME   two arrays have one name, or a name has more than 65,531 bytes
 *   COHORT_ERROR_DTYPE  bfloat16, which NumPy does not have
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_save_npz(const cohort_arrays *arrays, const char *path);

/**
 * Reads a file of arrays: a .params file of any version that MXNet wrote, NumPy's .npy (one array, without a name) or
 * .npz (compressed ones, too). The content decides which it is, not the file's name. The file is opened once, so it may
 * be a pipe; a character device such as a terminal is refused (IO).
 *
 * A .params file without names gives entries without names. If a name is repeated, the last entry is kept; entries with
 * the empty name are all kept. An empty entry, which means "no array", becomes an entry without an array in a file
 * without names; in a file with names it is left out, with one warning.
 *
 * @param context  The context of the arrays, whatever the file says; NULL: cpu(0).
 * @return NULL, or
 *   COHORT_ERROR_IO           the file cannot be read (the error names it)
 *   COHORT_ERROR_FORMAT       it is damaged or cut short, or holds more than 2^20 arrays or COHORT_MAX_AXES axes; sizes
 *                             are checked before anything is allocated
 *   COHORT_ERROR_UNSUPPORTED  it holds a sparse array, or elements of a type that arrays do not have (the error names
 *                             it)
 *   COHORT_ERROR_DEVICE       there is no such context
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_load(const char *path, const cohort_context *context,
                                                              cohort_arrays **out_arrays);

/**
 * @as cohort_arrays_load() to cpu(0), but a .params file is mapped instead of read: large arrays lie in a private
 * mapping of the file. The system reads a page when it is first used, and may drop it while it is unused. Writing to
 * such an array does not change the file. Meant for inference with cohort_group_options::arg_params: parameters that a
 * group has converted to the layouts of its kernels then take memory only once. A file that cannot be mapped, a pipe or
 * a file of NumPy's, is loaded.
 *
 * As long as such an array lives, the file must stay as it is. Replacing it by renaming another file over it, as
 * cohort_arrays_save() does, is fine. Changing it in place changes the arrays; shortening it in place ends the process
 * when a page that is gone is used. Load a file that may change.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_map(const char *path, cohort_arrays **out_arrays);

/** @as cohort_arrays_load(), from `bytes` bytes of memory, which are not kept. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_arrays_load_memory(const void *data, size_t bytes,
                                                                     const cohort_context *context,
                                                                     cohort_arrays **out_arrays);

COHORT_END_DECLS

#endif /* COHORT_ARRAYS_H */
