// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"cohort.example/cohort"
)

// peakResident returns the most memory that this process has had, in MiB.
func peakResident() (mib int) {
	for _, line := range strings.Split(string(ok(os.ReadFile("/proc/self/status"))), "\n") {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &mib); err == nil {
			return mib / 1024
		}
	}
	panic("/proc/self/status has no VmHWM")
}

// inProcess runs a test in a process of its own, whose memory no other test uses.
func inProcess(t *testing.T, body func()) {
	const sign = "COHORT_TEST_IN_PROCESS"
	if os.Getenv(sign) == t.Name() {
		body()
		return
	}
	run := exec.Command(ok(os.Executable()), "-test.run=^"+t.Name()+"$", "-test.v")
	run.Env = append(os.Environ(), sign+"="+t.Name())
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func numCollections() int {
	var found runtime.MemStats
	runtime.ReadMemStats(&found)
	return int(found.NumForcedGC)
}

func dropArrays(num int) {
	for i := 0; i < num; i++ {
		ok(cohort.Zeros([]int{1 << 18}, cohort.DtypeFloat32, cohort.CPU(0))) // 1 MiB
	}
}

func TestArraysThatAreDroppedDoNotFillMemory(t *testing.T) {
	inProcess(t, func() {
		dropArrays(6000)
		if peak := peakResident(); peak > 600 {
			t.Errorf("the process has used %d MiB", peak)
		}
	})
}

func TestExecutorsAndGroupsThatAreDroppedDoNotFillMemory(t *testing.T) {
	inProcess(t, func() {
		for i := 0; i < 80; i++ { // 9 MiB each: data, and outputs
			ok(cohort.SimpleBind(linear(), cohort.CPU(0), map[string][]int{"data": {1 << 18, 8}}, cohort.WithGradReq(cohort.GradReqNull)))
			ok(cohort.NewGroup(linear(), twoDevices, []cohort.Desc{desc("data", 1<<18, 8)}, nil, cohort.ForInference()))
		}
		if peak := peakResident(); peak > 600 {
			t.Errorf("the process has used %d MiB", peak)
		}
	})
}

func TestDroppedArraysAreFreedBeforeThereIsNoRoom(t *testing.T) {
	inProcess(t, func() {
		device := cohort.CPU(0)
		kept := full(1, 1<<18)
		done(device.LimitMemory(ok(device.Memory()).Used + 16<<20)) // less than what the collector is run at
		dropArrays(200)
		near(t, ok(kept.Slice(0, 2)), 1, 1)
		held := []*cohort.NDArray{}
		for {
			array, err := cohort.Zeros([]int{1 << 18}, cohort.DtypeFloat32, device)
			if err != nil {
				refused(t, err, cohort.ErrOutOfMemory, "no room")
				break
			}
			held = append(held, array)
		}
		if len(held) < 12 || len(held) > 17 {
			t.Errorf("there was room for %d arrays", len(held))
		}
	})
}

func TestArraysInUseAreNotCollectedAgainAndAgain(t *testing.T) {
	inProcess(t, func() {
		var held []*cohort.NDArray
		for i := 0; i < 512; i++ {
			held = append(held, full(1, 1<<18))
		}
		if runs := numCollections(); runs < 3 || runs > 5 { // at 64, 128, 256 and 512 MiB
			t.Errorf("the collector ran %d times", runs)
		}
		for _, array := range held {
			array.Close()
		}
	})
}
