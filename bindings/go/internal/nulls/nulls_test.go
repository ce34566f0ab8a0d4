// SPDX-License-Identifier: Apache-2.0

package nulls

import "testing"

func TestNULLIsRefused(t *testing.T) {
	classes := Classes()
	if len(classes) < 150 {
		t.Errorf("%d functions", len(classes))
	}
	for name, class := range classes {
		if class < 1 || class > 11 { // 0: no error; 12: a defect in the library
			t.Errorf("%s: class %d", name, class)
		}
	}
}
