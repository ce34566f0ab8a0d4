/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file version.h
 * The version, written here and nowhere else, and what this build can do.
 */
#ifndef COHORT_VERSION_H
#define COHORT_VERSION_H

#include "cohort/types.h"

#define COHORT_VERSION_MAJOR 0
#define COHORT_VERSION_MINOR 1
#define COHORT_VERSION_PATCH 0
#define COHORT_VERSION "0.1.0"

/** The number in libcohort.so.N: changes when a program built against an older header would no longer run. */
#define COHORT_SOVERSION 0

COHORT_BEGIN_DECLS

/** The version of the library that is loaded, "MAJOR.MINOR.PATCH"; COHORT_VERSION is that of the header. */
COHORT_API const char *cohort_version(void);

/** The version of the library that is loaded as one number: MAJOR * 10000 + MINOR * 100 + PATCH. */
COHORT_API int32_t cohort_version_number(void);

/**
 * Whether the library that is loaded has a feature: 1 or 0, and 0 for names it does not know. Loads no backend.
 *
 * Names: "cpu", "onednn", "dlpack"; "cuda" (the CUDA backend is there and finds a GPU).
 */
COHORT_API cohort_bool cohort_has_feature(const char *name);

COHORT_END_DECLS

#endif /* COHORT_VERSION_H */
