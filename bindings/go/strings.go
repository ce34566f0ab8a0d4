// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"fmt"
	"strings"
)

// shown describes an object in one line. details are asked only of open objects; their error stands in their place.
func shown(name string, h *handle, details func() (string, error)) string {
	h.mutex.Lock()
	isOpen := h.ptr != nil && h.pins >= 0
	h.mutex.Unlock()
	if !isOpen {
		return name + "(closed)"
	}
	if details == nil {
		return name
	}
	text, err := details()
	if err != nil {
		text = err.Error()
	}
	return name + "(" + text + ")"
}

// String returns shape, type and context.
func (a *NDArray) String() string {
	if a == nil {
		return "NDArray(nil)"
	}
	return shown("NDArray", &a.handle, func() (string, error) {
		shape, err := a.Shape()
		if err != nil {
			return "", err
		}
		dtype, err := a.Dtype()
		if err != nil {
			return "", err
		}
		context, err := a.Context()
		return fmt.Sprintf("%v %v on %v", shape, dtype, context), err
	})
}

// String returns the names of the outputs.
func (s *Symbol) String() string {
	if s == nil {
		return "Symbol(nil)"
	}
	return shown("Symbol", &s.handle, func() (string, error) {
		outputs, err := s.Outputs()
		return strings.Join(outputs, ", "), err
	})
}

// String returns the context.
func (e *Executor) String() string {
	if e == nil {
		return "Executor(nil)"
	}
	return shown("Executor", &e.handle, func() (string, error) {
		context, err := e.Context()
		return context.String(), err
	})
}

// String returns the contexts and the size of a batch.
func (g *Group) String() string {
	if g == nil {
		return "Group(nil)"
	}
	return shown("Group", &g.handle, func() (string, error) {
		contexts, err := g.Contexts()
		if err != nil {
			return "", err
		}
		size, err := g.BatchSize()
		return fmt.Sprintf("%v, batches of %d", contexts, size), err
	})
}

// String returns the keys of the buckets.
func (m *Manager) String() string {
	if m == nil {
		return "Manager(nil)"
	}
	return shown("Manager", &m.handle, func() (string, error) {
		buckets, err := m.Buckets()
		return "buckets: " + strings.Join(buckets, ", "), err
	})
}

// String returns the learning rate and the number of updates.
func (o *Optimizer) String() string {
	if o == nil {
		return "Optimizer(nil)"
	}
	return shown("Optimizer", &o.handle, func() (string, error) {
		rate, err := o.Get("learning_rate")
		if err != nil {
			return "", err
		}
		updates, err := o.Get("num_update")
		return fmt.Sprintf("learning rate %v, %v updates", rate, updates), err
	})
}

// String returns the figures since the last reset.
func (m *Metric) String() string {
	if m == nil {
		return "Metric(nil)"
	}
	return shown("Metric", &m.handle, func() (string, error) {
		figures, err := m.Values()
		words := make([]string, len(figures))
		for i, one := range figures {
			words[i] = fmt.Sprintf("%s: %v", one.Name, one.Value)
		}
		return strings.Join(words, ", "), err
	})
}

// String tells whether the tape records.
func (t *Tape) String() string {
	if t == nil {
		return "Tape(nil)"
	}
	return shown("Tape", &t.handle, func() (string, error) {
		isRecording, err := t.IsRecording()
		return map[bool]string{false: "paused", true: "recording"}[isRecording], err
	})
}

// String tells whether the trace runs, and how many events it has.
func (t *Trace) String() string {
	if t == nil {
		return "Trace(nil)"
	}
	return shown("Trace", &t.handle, func() (string, error) {
		info, err := t.Info()
		return fmt.Sprintf("%s, %d events", map[bool]string{false: "stopped", true: "running"}[info.Running], info.NumEvents), err
	})
}

// String tells whether the initializer is open.
func (i *Initializer) String() string {
	if i == nil {
		return "Initializer(nil)"
	}
	return shown("Initializer", &i.handle, nil)
}

// String tells whether the monitor is open.
func (m *Monitor) String() string {
	if m == nil {
		return "Monitor(nil)"
	}
	return shown("Monitor", &m.handle, nil)
}

// String tells whether the calibration is open.
func (c *Calibration) String() string {
	if c == nil {
		return "Calibration(nil)"
	}
	return shown("Calibration", &c.handle, nil)
}

// String tells whether the receiver is open.
func (l *LogReceiver) String() string {
	if l == nil {
		return "LogReceiver(nil)"
	}
	return shown("LogReceiver", &l.handle, nil)
}

// String returns the names of the inputs and the context.
func (p *Predictor) String() string {
	switch {
	case p == nil:
		return "Predictor(nil)"
	case p.isClosed():
		return "Predictor(closed)"
	}
	return fmt.Sprintf("Predictor(%s on %v)", strings.Join(p.inputs, ", "), p.context)
}

// String returns the name that the operator is registered with.
func (r *Registration) String() string {
	if r == nil {
		return "Registration(nil)"
	}
	return "Registration(" + r.opType + ")"
}
