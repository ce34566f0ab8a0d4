// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"context"
	"errors"
	"io"
)

// A Source returns the batches of an epoch one by one; io.EOF ends it, and the next call starts another.
type Source interface {
	Next(ctx context.Context) (*Batch, error)
}

// A SourceFunc is a function that is a Source.
type SourceFunc func(ctx context.Context) (*Batch, error)

// Next calls the function.
func (f SourceFunc) Next(ctx context.Context) (*Batch, error) { return f(ctx) }

// Progress is the state of a fit. At the end of an epoch EpochEnds is true, and Batch the number of batches.
type Progress struct {
	Epoch, Batch int
	EpochEnds    bool
	Metric       *Metric // nil if there is none
}

type fitting struct {
	epochs int
	mode   UpdateMode
	metric *Metric
	watch  []func(p Progress) error
}

// A FitOption is a setting of Fit.
type FitOption func(f *fitting)

// Epochs sets the number of passes over the source; the default is one.
func Epochs(num int) FitOption { return func(f *fitting) { f.epochs = num } }

// UpdatesBy sets how the devices' gradients are combined; the default is one update from the sum.
func UpdatesBy(mode UpdateMode) FitOption { return func(f *fitting) { f.mode = mode } }

// Measuring resets a metric at each epoch and updates it with each batch.
func Measuring(metric *Metric) FitOption { return func(f *fitting) { f.metric = metric } }

// Watching calls a function after each batch and at the end of each epoch. An error of the function ends the fit, which returns it.
func Watching(function func(p Progress) error) FitOption {
	return func(f *fitting) { f.watch = append(f.watch, function) }
}

// Fit trains: forward, backward, update, batch by batch. When the context ends it stops between two batches, waits for queued work, and
// returns the context's error; the parameters are those of the last complete update.
//
// The arrays of a batch belong to the source, and are used until its next call.
func (g *Group) Fit(ctx context.Context, source Source, optimizer *Optimizer, options ...FitOption) error {
	return fit(ctx, source, options, func(batch *Batch, f *fitting) error {
		if err := g.Forward(batch.Data, batch.Label, true); err != nil {
			return err
		}
		if err := g.Backward(); err != nil {
			return err
		}
		if err := g.Update(optimizer, f.mode); err != nil {
			return err
		}
		if f.metric == nil {
			return nil
		}
		return g.UpdateMetric(f.metric, batch.Label...)
	}, g.Wait)
}

// Fit trains like [Group.Fit], in the bucket of each batch.
func (m *Manager) Fit(ctx context.Context, source Source, optimizer *Optimizer, options ...FitOption) error {
	wait := func() error {
		group, err := m.MainGroup()
		if err != nil {
			return err
		}
		defer group.Close()
		return group.Wait()
	}
	return fit(ctx, source, options, func(batch *Batch, f *fitting) error {
		if err := m.Load(batch); err != nil {
			return err
		}
		if err := m.Forward(true); err != nil {
			return err
		}
		if err := m.Backward(); err != nil {
			return err
		}
		if err := m.Update(optimizer, f.mode); err != nil {
			return err
		}
		if f.metric == nil {
			return nil
		}
		return m.UpdateMetric(f.metric, batch.Label...)
	}, wait)
}

func fit(ctx context.Context, source Source, options []FitOption, step func(batch *Batch, f *fitting) error, wait func() error) error {
	f := &fitting{epochs: 1}
	for _, option := range options {
		if option != nil {
			option(f)
		}
	}
	if source == nil {
		return newError(ErrorClassInvalidArgument, "source", "source: expected one, found nil")
	}
	for epoch := 0; epoch < f.epochs; epoch++ {
		if err := f.epoch(ctx, epoch, source, step); err != nil {
			if failed := wait(); failed != nil && ctx.Err() == nil {
				return failed
			}
			return err
		}
	}
	return wait()
}

func (f *fitting) epoch(ctx context.Context, epoch int, source Source, step func(batch *Batch, f *fitting) error) error {
	if f.metric != nil {
		if err := f.metric.Reset(); err != nil {
			return err
		}
	}
	for num := 0; ; num++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := source.Next(ctx)
		if errors.Is(err, io.EOF) {
			return f.tell(Progress{epoch, num, true, f.metric})
		}
		if err != nil {
			return err
		}
		if batch == nil {
			return newError(ErrorClassInvalidArgument, "source", "source: expected a batch or io.EOF, found neither")
		}
		if err := step(batch, f); err != nil {
			return err
		}
		if err := f.tell(Progress{epoch, num, false, f.metric}); err != nil {
			return err
		}
	}
}

func (f *fitting) tell(p Progress) error {
	for _, watch := range f.watch {
		if err := watch(p); err != nil {
			return err
		}
	}
	return nil
}
