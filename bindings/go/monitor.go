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

// A Monitor reports a statistic of arrays while networks run, every few batches: Tic before a batch, Toc after it.
type Monitor struct {
	handle
	watched []*callLock
}

// A MonitorOption is a setting of a monitor.
type MonitorOption func(m *monitorSettings)

type monitorSettings struct {
	pattern   string
	sort, all bool
	finite    bool
	filter    filterFunc
	statistic statisticFunc
}

// WithPattern sets a regular expression (RE2's, as Go's) that names have to match from their start.
func WithPattern(pattern string) MonitorOption {
	return func(m *monitorSettings) { m.pattern = pattern }
}

// WithFilter sets a function that selects the names, instead of a pattern.
func WithFilter(chooses func(name string) (bool, error)) MonitorOption {
	return func(m *monitorSettings) { m.filter = chooses }
}

// WithStatistic sets a function of the arrays, instead of the norm divided by the root of the size. The array is closed after it.
func WithStatistic(function func(array *NDArray) ([]*NDArray, error)) MonitorOption {
	return func(m *monitorSettings) { m.statistic = function }
}

// Sorted sorts entries by name, instead of by execution order.
func Sorted() MonitorOption { return func(m *monitorSettings) { m.sort = true } }

// MonitorAll reports the inputs of operators, too.
func MonitorAll() MonitorOption { return func(m *monitorSettings) { m.all = true } }

// MonitorStopIfNotFinite lets a pass fail at the first output or gradient with an infinity or a NaN, whatever the pattern says; the error
// names it.
func MonitorStopIfNotFinite() MonitorOption { return func(m *monitorSettings) { m.finite = true } }

// NewMonitor makes a monitor that reports the first of each so many batches.
func NewMonitor(interval int, options ...MonitorOption) (*Monitor, error) {
	var s monitorSettings
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	var c scratch
	defer c.end()
	with := (*C.cohort_monitor_options)(c.bytes(C.sizeof_cohort_monitor_options))
	C.cohort_monitor_options_init(with, C.sizeof_cohort_monitor_options)
	with.pattern, with.sort, with.monitor_all = c.textOrNull(s.pattern, "pattern"), truth(s.sort), truth(s.all)
	with.stop_if_not_finite = truth(s.finite)
	if c.err != nil {
		return nil, c.err
	}
	var held []*callback
	if s.filter != nil {
		one := newCallback(s.filter)
		held = append(held, one)
		with.filter, with.filter_user_data = filterCallback(), one.cell
	}
	if s.statistic != nil {
		one := newCallback(s.statistic)
		held = append(held, one)
		with.statistic, with.statistic_user_data = statisticCallback(), one.cell
	}
	var raw *C.cohort_monitor
	if err := call(func() *C.cohort_error { return C.cohort_monitor_create(C.int64_t(interval), with, &raw) }); err != nil {
		for _, one := range held {
			one.letGo()
		}
		return nil, err
	}
	made := &Monitor{}
	made.init("monitor", unsafe.Pointer(raw), freeMonitor, nil)
	made.held = held
	runtime.SetFinalizer(made, func(m *Monitor) { finalizer(&m.handle) })
	return made, nil
}

// on makes a call on the monitor while nothing that it watches runs.
func (m *Monitor) on(f func(raw *C.cohort_monitor) *C.cohort_error, more ...*callLock) error {
	ptr, err := m.pin()
	if err != nil {
		return err
	}
	defer m.unpin()
	m.mutex.Lock()
	locks := append(append([]*callLock{m.lock}, m.watched...), more...)
	m.mutex.Unlock()
	return withLocks(locks, "monitor", func() error {
		return call(func() *C.cohort_error { return f((*C.cohort_monitor)(ptr)) })
	})
}

// Close frees the monitor. Objects it was installed on run on without it.
func (m *Monitor) Close() error {
	m.mutex.Lock()
	watched := m.watched
	m.mutex.Unlock()
	if inCallback() {
		return m.handle.Close()
	}
	return withLocks(watched, "monitor", m.handle.Close)
}

// Install watches an executor, a group, or a manager without buckets, which the monitor keeps alive.
func (m *Monitor) Install(target any) error {
	var of *handle
	var install func(raw *C.cohort_monitor, ptr unsafe.Pointer) *C.cohort_error
	switch one := target.(type) {
	case *Executor:
		if one != nil {
			of = &one.handle
		}
		install = func(raw *C.cohort_monitor, ptr unsafe.Pointer) *C.cohort_error {
			return C.cohort_monitor_install_on_executor(raw, (*C.cohort_executor)(ptr))
		}
	case *Group:
		if one != nil {
			of = &one.handle
		}
		install = func(raw *C.cohort_monitor, ptr unsafe.Pointer) *C.cohort_error {
			return C.cohort_monitor_install_on_group(raw, (*C.cohort_group)(ptr))
		}
	case *Manager:
		if one != nil {
			of = &one.handle
		}
		install = func(raw *C.cohort_monitor, ptr unsafe.Pointer) *C.cohort_error {
			return C.cohort_monitor_install_on_manager(raw, (*C.cohort_manager)(ptr))
		}
	default:
		return newError(ErrorClassInvalidArgument, "Install", "Install: expected an executor, a group or a manager, found %T", target)
	}
	var c scratch
	defer c.end()
	ptr := c.pin(of, "Install")
	if c.err != nil {
		return c.err
	}
	err := m.on(func(raw *C.cohort_monitor) *C.cohort_error { return install(raw, ptr) }, of.lock)
	if err == nil {
		m.mutex.Lock()
		m.watched = append(append([]*callLock{}, m.watched...), of.lock)
		m.mutex.Unlock()
	}
	return err
}

// Tic begins a batch.
func (m *Monitor) Tic() error {
	return m.on(func(raw *C.cohort_monitor) *C.cohort_error { return C.cohort_monitor_tic(raw) })
}

// An Entry is an entry of a report: the batch, counted from 1, the name of the array, and the values, each followed by a tab.
type Entry struct {
	Step       int
	Name, Text string
}

// Toc ends a batch and returns the entries of its report; none if the batch was not due.
func (m *Monitor) Toc() ([]Entry, error) {
	var found []Entry
	err := m.on(func(raw *C.cohort_monitor) *C.cohort_error {
		var num C.size_t
		failed := C.cohort_monitor_toc(raw, &num)
		for i := C.size_t(0); i < num && failed == nil; i++ {
			var step C.int64_t
			var name, text *C.char
			failed = C.cohort_monitor_entry(raw, i, &step, &name, &text)
			found = append(found, Entry{int(step), goText(name), goText(text)})
		}
		return failed
	})
	return found, err
}

// Values returns the statistic's values for an entry of the latest Toc.
func (m *Monitor) Values(index int) ([]*NDArray, error) {
	var list *C.cohort_arrays
	if err := m.on(func(raw *C.cohort_monitor) *C.cohort_error {
		return C.cohort_monitor_values(raw, C.size_t(index), &list)
	}); err != nil {
		return nil, err
	}
	defer C.cohort_arrays_free(list)
	return onlyArrays(readArrays(list))
}

// Step returns the number of batches begun.
func (m *Monitor) Step() (int, error) {
	var step C.int64_t
	err := m.on(func(raw *C.cohort_monitor) *C.cohort_error { return C.cohort_monitor_step(raw, &step) })
	return int(step), err
}
