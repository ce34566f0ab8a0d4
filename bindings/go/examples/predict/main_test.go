// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program of the README is this one, and runs with a checkpoint written by MXNet 1.9.1.
func TestTheProgramOfTheREADMEPredicts(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, program, _ := strings.Cut(read("main.go"), "\n\n")
	if !strings.Contains(read("../../README.md"), "```go\n"+program+"```") {
		t.Error("the README has another program")
	}
	golden, here := "../../../../tests/golden/group/lenet_2dev", t.TempDir()
	if err := os.Mkdir(filepath.Join(here, "model"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, name := range map[string]string{"symbol.json": "digits-symbol.json", "init.params": "digits-0006.params"} {
		if err := os.WriteFile(filepath.Join(here, "model", name), []byte(read(filepath.Join(golden, from))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(here); err != nil {
		t.Fatal(err)
	}
	main()
	if err := os.Chdir(before); err != nil {
		t.Fatal(err)
	}
}
