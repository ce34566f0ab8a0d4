// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheDigitsAreLearntOverThreeUnevenDevicesInUnder100Lines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if lines := bytes.Count(source, []byte("\n")); err != nil || lines >= 100 {
		t.Errorf("%d lines, %v", lines, err)
	}
	accuracy := train("../../../../examples/data/digits.params", filepath.Join(t.TempDir(), "net"), 5)
	if accuracy <= 0.95 {
		t.Errorf("accuracy %v", accuracy)
	}
}
