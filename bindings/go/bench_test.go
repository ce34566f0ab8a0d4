// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"testing"

	"cohort.example/cohort"
)

// A training step so small that the measured time is that of the calls.
func BenchmarkStep(b *testing.B) {
	group, sgd := linearGroup(), ok(cohort.NewOptimizer("sgd", nil))
	data, grad := []*cohort.NDArray{full(1, 4, 2)}, full(1, 4, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		done(group.Forward(data, nil, true))
		done(group.Backward(grad))
		done(group.Update(sgd, cohort.UpdateModeOnStore))
	}
	done(group.Wait())
}

func BenchmarkRead(b *testing.B) {
	array, into := full(1, 16), make([]float32, 16)
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		done(cohort.Read(array, into))
	}
}
