// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#cgo pkg-config: cohort
#include <cohort/cohort.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static uintptr_t this_thread(void) { return (uintptr_t)pthread_self(); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"runtime/cgo"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ---- locks

// A callLock is held by one goroutine at a time during a call. Objects that the library counts as one share it: groups and executors with
// common memory, a manager and its groups.
type callLock struct {
	number uint64
	mutex  sync.Mutex
}

var numCallLocks uint64

func newCallLock() *callLock { return &callLock{number: atomic.AddUint64(&numCallLocks, 1)} }

// acquire waits for the lock. A callback does not: it may run in a call on that very object.
func (l *callLock) acquire(what string) error {
	if l.mutex.TryLock() {
		return nil
	}
	if inCallback() {
		return newError(ErrorClassState, what, "%s: the object is in use, and a callback cannot wait for it", what)
	}
	l.mutex.Lock()
	return nil
}

func (l *callLock) release() { l.mutex.Unlock() }

// ---- handles

// A handle is the base of all objects of this package: an object of the library that is freed once, when nobody uses it any more.
type handle struct {
	what  string
	free  func(unsafe.Pointer)
	lock  *callLock
	mutex sync.Mutex // guards the fields below
	ptr   unsafe.Pointer
	pins  int
	held  []*callback // released when the object has been freed

	monitor *callback
	unset   func(ptr unsafe.Pointer) // removes the monitor before the object is freed, because the library may keep the executor that runs it
}

func (h *handle) init(what string, ptr unsafe.Pointer, free func(unsafe.Pointer), lock *callLock) {
	if lock == nil {
		lock = newCallLock()
	}
	h.what, h.ptr, h.free, h.lock = what, ptr, free, lock
}

// pin keeps the object from being freed until unpin.
func (h *handle) pin() (unsafe.Pointer, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.ptr == nil || h.pins < 0 {
		return nil, closedError(h.what)
	}
	h.pins++
	return h.ptr, nil
}

func (h *handle) unpin() {
	h.mutex.Lock()
	h.pins--
	last := h.ptr != nil && h.pins == closing
	h.mutex.Unlock()
	if last {
		h.release(inCallback())
	}
}

// Added to the pins of an object that is closed while it is in use.
const closing = -1 << 30

// Close frees the object, after waiting for its queued work; if it is in use, the last call that uses it frees it. Closing twice does
// nothing.
func (h *handle) Close() error {
	h.close(inCallback())
	return nil
}

func (h *handle) close(later bool) {
	h.mutex.Lock()
	if h.ptr == nil || h.pins < 0 {
		h.mutex.Unlock()
		return
	}
	h.pins += closing
	last := h.pins == closing
	h.mutex.Unlock()
	if last {
		h.release(later)
	}
}

func (h *handle) release(later bool) {
	if !h.lock.mutex.TryLock() {
		if later { // a finalizer must not wait, and a callback may run in a call that holds the lock
			go h.release(false)
			return
		}
		h.lock.mutex.Lock()
	}
	h.mutex.Lock()
	ptr := h.ptr
	h.ptr = nil
	h.mutex.Unlock()
	runtime.LockOSThread()
	if h.monitor != nil {
		h.unset(ptr)
		h.held = append(h.held, h.monitor)
	}
	h.free(ptr)
	ended := takeOutcome()
	runtime.UnlockOSThread()
	h.lock.release()
	for _, one := range h.held {
		one.letGo()
	}
	if ended != nil && ended.panicked {
		panic(ended.value)
	}
}

// keep releases a callback when the object has been freed.
func (h *handle) keep(one *callback) {
	h.mutex.Lock()
	h.held = append(h.held, one)
	h.mutex.Unlock()
}

// do makes a call on the object, which nobody else uses meanwhile.
func (h *handle) do(f func(ptr unsafe.Pointer) *C.cohort_error) error {
	ptr, err := h.pin()
	if err != nil {
		return err
	}
	defer h.unpin()
	if err := h.lock.acquire(h.what); err != nil {
		return err
	}
	defer h.lock.release()
	return call(func() *C.cohort_error { return f(ptr) })
}

// withLocks runs f holding several objects' locks, acquired in the same order everywhere.
func withLocks(locks []*callLock, what string, f func() error) error {
	ordered := append([]*callLock(nil), locks...)
	sort.Slice(ordered, func(i, j int) bool { return ordered[i].number < ordered[j].number })
	for i, one := range ordered {
		if i > 0 && one == ordered[i-1] {
			continue
		}
		if err := one.acquire(what); err != nil {
			return err
		}
		defer one.release()
	}
	return f()
}

// finalizer is called by the garbage collector on objects that have not been closed.
func finalizer(h *handle) { h.close(true) }

// ---- calls, and the outcomes of callbacks

// An outcome is the error or panic of a callback, on its way out of the call that it runs in.
type outcome struct {
	panicked bool
	value    any
}

// Callbacks run on the thread of the call that they run in. With calls inside callbacks the innermost one takes the outcome: while
// another callback runs there is none.
var (
	threads     sync.Mutex // guards the next two
	outcomes    = map[uintptr]*outcome{}
	callbacksIn = map[uintptr]int{}
	numOutcomes int32
	numInside   int32
)

func thisThread() uintptr { return uintptr(C.this_thread()) }

func takeOutcome() *outcome {
	if atomic.LoadInt32(&numOutcomes) == 0 {
		return nil
	}
	threads.Lock()
	defer threads.Unlock()
	thread := thisThread()
	found := outcomes[thread]
	if found != nil {
		delete(outcomes, thread)
		atomic.AddInt32(&numOutcomes, -1)
	}
	return found
}

func inCallback() bool {
	if atomic.LoadInt32(&numInside) == 0 {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	threads.Lock()
	defer threads.Unlock()
	return callbacksIn[thisThread()] > 0
}

// call turns the error that a call returned into a Go error. Errors and panics of callbacks in the call come out here.
func call(f func() *C.cohort_error) error {
	runtime.LockOSThread()
	failed := f()
	ended := takeOutcome()
	runtime.UnlockOSThread()
	var err error
	if failed != nil {
		err = errorFrom(failed)
	}
	if ended == nil {
		return err
	}
	if ended.panicked {
		panic(ended.value)
	}
	return ended.value.(error)
}

// guarded runs the body of a callback: 0, or 1 for a failure, which is kept. After that no callback runs in the same call.
func guarded(f func() error) (status C.int32_t) {
	thread := thisThread()
	threads.Lock()
	failed := outcomes[thread] != nil
	if !failed {
		callbacksIn[thread]++
		atomic.AddInt32(&numInside, 1)
	}
	threads.Unlock()
	if failed {
		return 1
	}
	var ended *outcome
	defer func() {
		if value := recover(); value != nil {
			ended = &outcome{true, value}
		}
		threads.Lock()
		if callbacksIn[thread]--; callbacksIn[thread] == 0 {
			delete(callbacksIn, thread)
		}
		atomic.AddInt32(&numInside, -1)
		if ended != nil {
			outcomes[thread] = ended
			atomic.AddInt32(&numOutcomes, 1)
			status = 1
		}
		threads.Unlock()
	}()
	if err := f(); err != nil {
		ended = &outcome{false, err}
	}
	return 0
}

// ---- callbacks

// A callback is a Go value that is found again from a C address.
type callback struct {
	cell    unsafe.Pointer
	holders int32
}

var numCells int32 // how many there are: tests must end with none

func newCallback(value any) *callback {
	atomic.AddInt32(&numCells, 1)
	made := &callback{C.malloc(C.sizeof_uintptr_t), 1}
	*(*C.uintptr_t)(made.cell) = C.uintptr_t(cgo.NewHandle(value))
	return made
}

func (c *callback) hold() *callback {
	atomic.AddInt32(&c.holders, 1)
	return c
}

func (c *callback) letGo() {
	if atomic.AddInt32(&c.holders, -1) == 0 {
		dropCell(c.cell)
	}
}

func valueIn(cell unsafe.Pointer) any { return cgo.Handle(*(*C.uintptr_t)(cell)).Value() }

func dropCell(cell unsafe.Pointer) {
	atomic.AddInt32(&numCells, -1)
	cgo.Handle(*(*C.uintptr_t)(cell)).Delete()
	C.free(cell)
}

// ---- arguments

// A scratch is C memory for the duration of a call, because Go memory that C reads must not contain Go pointers.
type scratch struct {
	memory []unsafe.Pointer
	pinned []*handle
	frees  []func()
	err    error

	readsSymbols bool
}

// Symbols are read as arguments by several calls at once, but changed by only one.
var symbols sync.RWMutex

// readSymbols prevents changes of symbols until the end of the call.
func (s *scratch) readSymbols() {
	if !s.readsSymbols {
		symbols.RLock()
		s.readsSymbols = true
	}
}

func (s *scratch) end() {
	if s.readsSymbols {
		symbols.RUnlock()
	}
	for _, free := range s.frees {
		free()
	}
	for _, one := range s.memory {
		C.free(one)
	}
	for _, one := range s.pinned {
		one.unpin()
	}
}

// fail records the first error; nil is ignored.
func (s *scratch) fail(err error) {
	if s.err == nil && err != nil {
		s.err = err
	}
}

// bytes returns memory of at least one byte, so that an empty list is not NULL.
func (s *scratch) bytes(size int) unsafe.Pointer {
	made := C.calloc(1, C.size_t(size)+1)
	s.memory = append(s.memory, made)
	return made
}

func (s *scratch) text(from, what string) *C.char {
	for i := 0; i < len(from); i++ {
		if from[i] == 0 {
			s.fail(newError(ErrorClassInvalidArgument, what, "%s: found a zero byte in it", what))
			return nil
		}
	}
	made := C.CString(from)
	s.memory = append(s.memory, unsafe.Pointer(made))
	return made
}

// textOrNull returns NULL for "".
func (s *scratch) textOrNull(from, what string) *C.char {
	if from == "" {
		return nil
	}
	return s.text(from, what)
}

func (s *scratch) texts(from []string, what string) **C.char {
	made := s.bytes(len(from) * int(unsafe.Sizeof(uintptr(0))))
	list := unsafe.Slice((**C.char)(made), len(from))
	for i, one := range from {
		list[i] = s.text(one, what)
	}
	return (**C.char)(made)
}

// listIn copies numbers or structs without pointers.
func listIn[T any, U any](s *scratch, from []T, as func(T) U) *U {
	var sample U
	made := s.bytes(len(from) * int(unsafe.Sizeof(sample)))
	list := unsafe.Slice((*U)(made), len(from))
	for i, one := range from {
		list[i] = as(one)
	}
	return (*U)(made)
}

func (s *scratch) shape(from []int) *C.int64_t {
	return listIn(s, from, func(length int) C.int64_t { return C.int64_t(length) })
}

func (s *scratch) reals(from []float64) *C.double {
	return listIn(s, from, func(value float64) C.double { return C.double(value) })
}

func (s *scratch) contexts(from []Context) *C.cohort_context {
	return listIn(s, from, func(one Context) C.cohort_context { return one.raw() })
}

// pin returns the address of an object that is used as an argument. nil is refused.
func (s *scratch) pin(h *handle, what string) unsafe.Pointer {
	if h == nil {
		s.fail(newError(ErrorClassInvalidArgument, what, "%s: expected an object, found nil", what))
		return nil
	}
	ptr, err := h.pin()
	if err != nil {
		s.fail(err)
		return nil
	}
	s.pinned = append(s.pinned, h)
	return ptr
}

func truth(value bool) C.cohort_bool {
	if value {
		return 1
	}
	return 0
}

// ---- results

func goText(from *C.char) string {
	if from == nil {
		return ""
	}
	return C.GoString(from)
}

// names reads a list of names by count and index.
func names(num int, at func(i C.size_t, out **C.char) *C.cohort_error) ([]string, error) {
	found := make([]string, 0, num)
	for i := 0; i < num; i++ {
		var name *C.char
		if err := call(func() *C.cohort_error { return at(C.size_t(i), &name) }); err != nil {
			return nil, err
		}
		found = append(found, goText(name))
	}
	return found, nil
}

func checkLengths(first, second int, what string) error {
	if first == second {
		return nil
	}
	return newError(ErrorClassInvalidArgument, what, "%s: expected %d, found %d", what, first, second)
}

// describe returns a value for a message, shortened.
func describe(value any) string {
	shown := fmt.Sprint(value)
	if len(shown) > 60 {
		shown = shown[:60] + "..."
	}
	return fmt.Sprintf("%T %s", value, shown)
}
