// SPDX-License-Identifier: Apache-2.0

package cohort

import "sync/atomic"

// LiveCallbacks says how many functions the library could still call.
func LiveCallbacks() int { return int(atomic.LoadInt32(&numCells)) }
