// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// A LogReceiver receives the library's messages until it is closed. Without any receiver, warnings go to stderr.
type LogReceiver struct{ handle }

// ReceiveLog calls a function with each message from a level on, on one thread at a time. The function must not use this package.
func ReceiveLog(lowest LogLevel, function func(level LogLevel, message string)) (*LogReceiver, error) {
	if function == nil {
		return nil, newError(ErrorClassInvalidArgument, "ReceiveLog", "ReceiveLog: expected a function, found nil")
	}
	kept := newCallback(logFunc(function))
	var raw *C.cohort_log
	if err := call(func() *C.cohort_error {
		return C.cohort_log_create(C.cohort_log_level(lowest), logCallback(), logEndCallback(), kept.cell, &raw)
	}); err != nil {
		kept.letGo()
		return nil, err
	}
	made := &LogReceiver{}
	made.init("log receiver", unsafe.Pointer(raw), freeLog, nil)
	runtime.SetFinalizer(made, func(l *LogReceiver) { finalizer(&l.handle) })
	return made, nil
}
