// SPDX-License-Identifier: Apache-2.0

package cohort

import "sync/atomic"

// LiveCallbacks says how many functions the library could still call.
func LiveCallbacks() int { return int(atomic.LoadInt32(&numCells)) }

// Kept says for how many shapes a predictor keeps executors.
func (p *Predictor) Kept() int { return len(p.idle) }
