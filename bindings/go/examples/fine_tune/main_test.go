// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestACheckpointOfMXNetIsFineTunedAndAStopChangesNoBit(t *testing.T) {
	golden, here := "../../../../tests/golden/group/lenet_2dev", t.TempDir()
	for from, name := range map[string]string{"symbol.json": "net-symbol.json", "init.params": "net-0007.params"} {
		file, err := os.ReadFile(filepath.Join(golden, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(here, name), file, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	accuracy, same := fineTune("../../../../examples/data/digits.params", filepath.Join(here, "net"), 7, 6, here)
	if accuracy < 0.85 || !same {
		t.Errorf("accuracy %v, the same bits: %v", accuracy, same)
	}
}
