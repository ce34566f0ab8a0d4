// SPDX-License-Identifier: Apache-2.0

package cohort

import "sync/atomic"

// LiveCallbacks returns the number of functions that the library could still call.
func LiveCallbacks() int { return int(atomic.LoadInt32(&numCells)) }

// Kept returns the number of shapes for which a predictor keeps executors.
func (p *Predictor) Kept() int { return len(p.idle) }
