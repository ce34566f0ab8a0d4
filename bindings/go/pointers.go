// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>

// The functions that callbacks.go exports.
extern void cohortGoMonitor(char *, cohort_ndarray *, void *);
extern int32_t cohortGoMetric(cohort_ndarray **, size_t, cohort_ndarray **, size_t, double *, double *, void *);
extern int32_t cohortGoBucket(char *, cohort_symbol **, void *);
extern int32_t cohortGoFilter(char *, void *);
extern int32_t cohortGoStatistic(cohort_ndarray *, cohort_arrays *, void *);
extern int32_t cohortGoGradient(cohort_arrays *, cohort_arrays *, void *);
extern void cohortGoLog(int32_t, char *, void *);
extern void cohortGoEnded(void *);
extern int32_t cohortGoDeclare(char **, char **, size_t, cohort_descs *, cohort_descs *, cohort_descs *, void *);
extern int32_t cohortGoInfer(char **, char **, size_t, cohort_descs *, cohort_descs *, cohort_descs *, cohort_descs *, void *);
extern int32_t cohortGoCreate(char **, char **, size_t, cohort_context *, void **, void *);
extern int32_t cohortGoForward(void *, cohort_arrays *, cohort_arrays *, cohort_arrays *, int32_t, void *);
extern int32_t cohortGoBackward(void *, cohort_arrays *, cohort_arrays *, cohort_arrays *, cohort_arrays *, cohort_arrays *, void *);
extern void cohortGoRelease(void *, void *);
*/
import "C"

func monitorCallback() C.cohort_monitor_fn      { return C.cohort_monitor_fn(C.cohortGoMonitor) }
func metricCallback() C.cohort_metric_fn        { return C.cohort_metric_fn(C.cohortGoMetric) }
func bucketCallback() C.cohort_bucket_symbol_fn { return C.cohort_bucket_symbol_fn(C.cohortGoBucket) }
func filterCallback() C.cohort_name_filter_fn   { return C.cohort_name_filter_fn(C.cohortGoFilter) }
func statisticCallback() C.cohort_statistic_fn  { return C.cohort_statistic_fn(C.cohortGoStatistic) }
func gradientCallback() C.cohort_tape_function_fn {
	return C.cohort_tape_function_fn(C.cohortGoGradient)
}
func releaseCallback() C.cohort_tape_release_fn { return C.cohort_tape_release_fn(C.cohortGoEnded) }
func logCallback() C.cohort_log_fn              { return C.cohort_log_fn(C.cohortGoLog) }
func logEndCallback() C.cohort_log_end_fn       { return C.cohort_log_end_fn(C.cohortGoEnded) }

// customTable fills in the library's table of a custom operator.
func customTable(table *C.cohort_custom_op) {
	table.declare = C.cohort_custom_declare_fn(C.cohortGoDeclare)
	table.infer_shape = C.cohort_custom_infer_fn(C.cohortGoInfer)
	table.create = C.cohort_custom_create_fn(C.cohortGoCreate)
	table.forward = C.cohort_custom_forward_fn(C.cohortGoForward)
	table.backward = C.cohort_custom_backward_fn(C.cohortGoBackward)
	table.release = C.cohort_custom_release_fn(C.cohortGoRelease)
	table.ended = C.cohort_custom_end_fn(C.cohortGoEnded)
}
