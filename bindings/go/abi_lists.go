// SPDX-License-Identifier: Apache-2.0
// Code generated from bindings/abi.json by bindings/tools/abi.pl. DO NOT EDIT.

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import "unsafe"

func freeNDArray(ptr unsafe.Pointer) { C.cohort_ndarray_free((*C.cohort_ndarray)(ptr)) }

// listNDArray keeps the objects from being freed for as long as the scratch lives. Where nil is allowed it is NULL.
func (s *scratch) listNDArray(from []*NDArray, nullable bool, what string) (**C.cohort_ndarray, C.size_t) {
	return listIn(s, from, func(one *NDArray) *C.cohort_ndarray {
		if one == nil {
			if !nullable {
				s.pin(nil, what)
			}
			return nil
		}
		return (*C.cohort_ndarray)(s.pin(&one.handle, what))
	}), C.size_t(len(from))
}

func freeArrays(ptr unsafe.Pointer) { C.cohort_arrays_free((*C.cohort_arrays)(ptr)) }

func freeDescs(ptr unsafe.Pointer) { C.cohort_descs_free((*C.cohort_descs)(ptr)) }

func freeSymbol(ptr unsafe.Pointer) { C.cohort_symbol_free((*C.cohort_symbol)(ptr)) }

// listSymbol keeps the objects from being freed for as long as the scratch lives. Where nil is allowed it is NULL.
func (s *scratch) listSymbol(from []*Symbol, nullable bool, what string) (**C.cohort_symbol, C.size_t) {
	s.readSymbols()
	return listIn(s, from, func(one *Symbol) *C.cohort_symbol {
		if one == nil {
			if !nullable {
				s.pin(nil, what)
			}
			return nil
		}
		return (*C.cohort_symbol)(s.pin(&one.handle, what))
	}), C.size_t(len(from))
}

func freeExecutor(ptr unsafe.Pointer) { C.cohort_executor_free((*C.cohort_executor)(ptr)) }

func freeGroup(ptr unsafe.Pointer) { C.cohort_group_free((*C.cohort_group)(ptr)) }

func freeOptimizer(ptr unsafe.Pointer) { C.cohort_optimizer_free((*C.cohort_optimizer)(ptr)) }

func freeMetric(ptr unsafe.Pointer) { C.cohort_metric_free((*C.cohort_metric)(ptr)) }

func freeInitializer(ptr unsafe.Pointer) { C.cohort_initializer_free((*C.cohort_initializer)(ptr)) }

func freeManager(ptr unsafe.Pointer) { C.cohort_manager_free((*C.cohort_manager)(ptr)) }

func freeMonitor(ptr unsafe.Pointer) { C.cohort_monitor_free((*C.cohort_monitor)(ptr)) }

func freeTape(ptr unsafe.Pointer) { C.cohort_tape_free((*C.cohort_tape)(ptr)) }

func freeCalibration(ptr unsafe.Pointer) { C.cohort_calibration_free((*C.cohort_calibration)(ptr)) }

func freeLog(ptr unsafe.Pointer) { C.cohort_log_free((*C.cohort_log)(ptr)) }

func freeTrace(ptr unsafe.Pointer) { C.cohort_trace_free((*C.cohort_trace)(ptr)) }
