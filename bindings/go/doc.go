// SPDX-License-Identifier: Apache-2.0

// Package cohort trains and asks networks in MXNet's formats on several devices at once, with libcohort.
//
// # Memory
//
// Every object has Close, which frees it at once and may be called twice. Who forgets it leaves that to the garbage collector, which knows
// nothing of how much memory of the library's is behind an object: a program that makes many arrays or groups closes them. The last handle of
// a group or an executor waits for queued work, which is another reason not to leave it to a finalizer. An object that is in use is freed
// when the call ends. Functions that an object was given are kept until it is closed: if they refer to the object, only Close ends it.
//
// Arrays that groups and executors show are live: they hold on to their memory, and outlive the object they came from. What a call is given
// is copied or shared, so that slices and arrays are the caller's again when it returns. LiveHandles tells what is left.
//
// # Goroutines
//
// Any goroutine may use any object. Two that use the same one wait for each other, and so do those that use objects with common memory: an
// executor and its group, a manager and its groups, groups made WithSharedGroup. All others run side by side; calls do not hold up the
// scheduler. Arguments of a call, such as arrays, are not held. A Predictor may be asked by any number of goroutines at once.
//
// Functions that are handed in run on the goroutine that made the call, before that returns. An error that they give comes out of it as it
// is, and a panic goes on from there. They must not call runtime.Goexit, as testing.T.FailNow does: the library would stay in the midst of
// the call for ever. Inside one, the object whose call it runs in cannot be used: that is an ErrState.
//
// # Errors
//
// Errors are of type *Error, with class, message of one line, and subject. errors.Is(err, cohort.ErrShape) asks for a class, and
// errors.Is(err, os.ErrClosed) whether an object was closed.
package cohort
