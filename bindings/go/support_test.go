// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cohort.example/cohort"
)

// The source tree that this package is in.
var root = filepath.Join("..", "..")

// alone checks that a test leaves nothing behind: the garbage collector frees objects that it did not close.
func alone(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := cohort.WaitAll(); err != nil {
			t.Log(err)
		}
		left := func() int { return cohort.LiveHandles() + cohort.LiveCallbacks() }
		for end := time.Now().Add(30 * time.Second); left() != 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			runtime.GC()
		}
		if left() != 0 {
			t.Errorf("%d handles and %d callbacks are left", cohort.LiveHandles(), cohort.LiveCallbacks())
		}
	})
}

// ok returns the value of a call that must succeed.
func ok[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func done(err error) {
	if err != nil {
		panic(err)
	}
}

// refused checks for an error of a class, whose single line contains these words.
func refused(t *testing.T, err, class error, words string) {
	t.Helper()
	if !errors.Is(err, class) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
		t.Errorf("expected %v with '%s', found %v", class, words, err)
	}
}

func floats(values []float32, shape ...int) *cohort.NDArray {
	return ok(cohort.FromSlice(values, shape...))
}

func full(value float32, shape ...int) *cohort.NDArray {
	array := ok(cohort.Zeros(shape, cohort.DtypeFloat32, cohort.CPU(0)))
	done(array.Fill(float64(value)))
	return array
}

func near(t *testing.T, array *cohort.NDArray, expected ...float32) {
	t.Helper()
	found := ok(array.Float32s())
	same := len(found) == len(expected)
	for i := 0; same && i < len(found); i++ {
		same = math.Abs(float64(found[i]-expected[i])) <= 1e-5*(1+math.Abs(float64(expected[i])))
	}
	if !same {
		t.Errorf("expected %v, found %v", expected, found)
	}
}

// linear is out = data * w', without a loss.
func linear() *cohort.Symbol {
	data := ok(cohort.Variable("data"))
	return ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 1, "no_bias": true}, cohort.Inputs(data), cohort.Named("fc")))
}

// mlp is data (B, 4) -> fc (3) -> softmax.
func mlp() *cohort.Symbol {
	data := ok(cohort.Variable("data"))
	fc := ok(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 3}, cohort.Inputs(data), cohort.Named("fc")))
	return ok(cohort.Node("SoftmaxOutput", cohort.Inputs(fc), cohort.Named("softmax")))
}

var twoDevices = []cohort.Context{cohort.CPU(0), cohort.CPU(1)}

func desc(name string, shape ...int) cohort.Desc { return cohort.Desc{Name: name, Shape: shape} }

func linearGroup(options ...cohort.Option) *cohort.Group {
	return ok(cohort.NewGroup(linear(), twoDevices, []cohort.Desc{desc("data", 4, 2)}, nil, options...))
}

// checkpoint copies a network and its parameters, written by MXNet 1.9.1, into a folder of the test's; it returns the prefix.
func checkpoint(t *testing.T, epoch string) string {
	golden, to := filepath.Join(root, "tests", "golden", "group", "lenet_2dev"), t.TempDir()
	for from, name := range map[string]string{"symbol.json": "net-symbol.json", "init.params": "net-" + epoch + ".params"} {
		done(os.WriteFile(filepath.Join(to, name), ok(os.ReadFile(filepath.Join(golden, from))), 0o600))
	}
	return filepath.Join(to, "net")
}
