// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// An Error is an error of the library: its class, a message of one line, and its subject.
//
//	var failed *cohort.Error
//	if errors.As(err, &failed) && failed.Class == cohort.ErrorClassShape { ... }
//	if errors.Is(err, cohort.ErrShape) { ... }
type Error struct {
	Class   ErrorClass
	Message string
	Subject string // the operator, node, argument, array or file concerned; "" if there is none
	closed  bool
}

// Errors of each class, for errors.Is.
var (
	ErrInvalidArgument = &Error{Class: ErrorClassInvalidArgument}
	ErrName            = &Error{Class: ErrorClassName}
	ErrShape           = &Error{Class: ErrorClassShape}
	ErrDtype           = &Error{Class: ErrorClassDtype}
	ErrState           = &Error{Class: ErrorClassState}
	ErrUnsupported     = &Error{Class: ErrorClassUnsupported}
	ErrDevice          = &Error{Class: ErrorClassDevice}
	ErrFormat          = &Error{Class: ErrorClassFormat}
	ErrIO              = &Error{Class: ErrorClassIO}
	ErrOutOfMemory     = &Error{Class: ErrorClassOutOfMemory}
	ErrExecution       = &Error{Class: ErrorClassExecution}
	ErrInternal        = &Error{Class: ErrorClassInternal}
)

// Error returns the message, or the class if there is none, after "cohort: ".
func (e *Error) Error() string {
	if e.Message == "" {
		return "cohort: " + e.Class.String()
	}
	return "cohort: " + e.Message
}

// Is reports whether this is an error of the class of target; one of a closed object is also os.ErrClosed.
func (e *Error) Is(target error) bool {
	if target == os.ErrClosed || target == fs.ErrClosed {
		return e.closed
	}
	var class *Error
	return errors.As(target, &class) && class.Message == "" && class.Class == e.Class
}

func newError(class ErrorClass, subject, format string, values ...any) *Error {
	line := strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(fmt.Sprintf(format, values...))
	return &Error{Class: class, Message: line, Subject: subject}
}

func closedError(what string) *Error {
	if what == "" {
		what = "object"
	}
	made := newError(ErrorClassState, what, "%s: it is closed", what)
	made.closed = true
	return made
}

func errorFrom(failed *C.cohort_error) error {
	defer C.cohort_error_free(failed)
	return &Error{
		Class:   ErrorClass(C.cohort_error_code(failed)),
		Message: goText(C.cohort_error_message(failed)),
		Subject: goText(C.cohort_error_subject(failed)),
	}
}
