// SPDX-License-Identifier: Apache-2.0

// Package cohort trains and runs networks in MXNet's formats on several devices at once, with libcohort.
//
// # Memory
//
// Every object has Close, which frees it at once and may be called twice. Objects that are not closed are freed after the garbage collector
// has run. It does not see how much memory of the library an object holds, so this package runs it when the memory in use on a context has
// doubled since the last run and is more than 64 MiB, and once more before a call fails with ErrOutOfMemory. A program that creates many
// arrays is faster if it closes them.
// Closing the last handle of a group or an executor waits for queued work, which is another reason not to leave it to a finalizer. An
// object that is in use is freed when the call ends. Functions given to an object are kept until it is closed: if they refer to the
// object, only Close releases it.
//
// Arrays of groups and executors are live: they keep their memory alive, and may outlive the object they came from. Arguments of a call
// are copied or shared, so that slices and arrays belong to the caller again when it returns. LiveHandles returns the number of objects
// that are alive.
//
// # Goroutines
//
// Any goroutine may use any object. Two goroutines that use the same object wait for each other, and so do those that use objects with
// common memory: an executor and its group, a manager and its groups, groups created WithSharedGroup. All others run in parallel; calls
// do not block the scheduler. Arguments of a call, such as arrays, are not locked. Any number of goroutines may use a Predictor at once.
//
// Callbacks run on the goroutine that made the call, before it returns. The call returns their error unchanged, and resumes their panic.
// They must not call runtime.Goexit, as testing.T.FailNow does: the library would stay inside the call for ever. Inside a callback, the
// object whose call it runs in cannot be used: that is an ErrState.
//
// # Errors
//
// Errors are of type *Error, with class, message of one line, and subject. errors.Is(err, cohort.ErrShape) asks for a class, and
// errors.Is(err, os.ErrClosed) whether an object was closed.
package cohort
