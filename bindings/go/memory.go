// SPDX-License-Identifier: Apache-2.0

package cohort

/*
#include <cohort/cohort.h>

// The bytes of a context that are in use; 0 if the library cannot tell.
static size_t used_bytes(const cohort_context *context)
{
    cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;
    cohort_error_free(cohort_device_memory(context, &info));
    return info.used_bytes;
}

static size_t used_beside(const cohort_ndarray *array, cohort_context *context)
{
    cohort_error *failed = cohort_ndarray_context(array, context);
    if (!failed) return used_bytes(context);
    cohort_error_free(failed);
    return 0;
}
*/
import "C"

import (
	"errors"
	"runtime"
	"sync"
	"time"
)

// The garbage collector sees a few words of an object whose arrays take gigabytes. So this file runs it when the memory that the library
// uses on a context has doubled since the last run, and before a call that creates objects fails for want of memory.

// Below this many bytes of a context, the collector's own pace is good enough.
const leastBytesToCollect = 64 << 20

// A freed object's finalizer may have to wait for a call that is running; nobody waits for it longer than this.
const longestWaitForFinalizers = time.Second

var garbage = struct {
	limits     sync.Mutex
	collectAt  map[Context]uint64 // guarded by limits
	collecting sync.Mutex
}{collectAt: map[Context]uint64{}}

// collectBeside is called with each new handle on an array.
func collectBeside(array *C.cohort_ndarray) {
	var place C.cohort_context
	if used := uint64(C.used_beside(array, &place)); used >= leastBytesToCollect {
		collectAbove(contextOf(place), used)
	}
}

// collectOn is called with each new executor, group or manager.
func collectOn(contexts ...Context) {
	for _, one := range contexts {
		collectAbove(one, one.usedBytes())
	}
}

func (c Context) usedBytes() uint64 {
	place := c.raw()
	return uint64(C.used_bytes(&place))
}

func collectAbove(context Context, used uint64) {
	if used < garbageLimit(context) {
		return
	}
	garbage.collecting.Lock()
	defer garbage.collecting.Unlock()
	if context.usedBytes() < garbageLimit(context) { // another goroutine has collected meanwhile
		return
	}
	collectGarbage()
	garbage.limits.Lock()
	garbage.collectAt[context] = 2 * context.usedBytes()
	garbage.limits.Unlock()
}

func garbageLimit(context Context) uint64 {
	garbage.limits.Lock()
	defer garbage.limits.Unlock()
	if limit := garbage.collectAt[context]; limit > leastBytesToCollect {
		return limit
	}
	return leastBytesToCollect
}

// collectGarbage runs the collector and lets the finalizers run, which the runtime calls one after another in a goroutine of its own.
func collectGarbage() {
	begun := make(chan struct{})
	leaveGarbage(begun)
	runtime.GC()
	end := time.NewTimer(longestWaitForFinalizers)
	defer end.Stop()
	select {
	case <-begun:
	case <-end.C:
	}
	for left := LiveHandles(); ; { // finalizers run in any order: wait as long as they free objects
		time.Sleep(time.Millisecond)
		now := LiveHandles()
		if now >= left {
			return
		}
		left = now
	}
}

// leaveGarbage leaves an object without references, whose finalizer closes the channel.
//
//go:noinline
func leaveGarbage(finalized chan struct{}) {
	runtime.SetFinalizer(&struct{ finalized chan struct{} }{finalized}, func(*struct{ finalized chan struct{} }) { close(finalized) })
}

// withRoom makes a call that creates objects. If there is no memory for them, it collects garbage and makes the call once more. The
// caller holds no lock that a finalizer needs.
func withRoom(create func() error) error {
	err := create()
	var failed *Error
	if errors.As(err, &failed) && failed.Class == ErrorClassOutOfMemory {
		garbage.collecting.Lock()
		// The runtime takes finalizers in batches and says when it has run one, not when it has run all of a batch. At most two batches
		// have finalizers of the first run, so that these are done when one of the third run is.
		for i := 0; i < 3; i++ {
			collectGarbage()
		}
		garbage.collecting.Unlock()
		err = create()
	}
	return err
}
