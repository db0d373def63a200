// Package sysmem finds out how much memory the process may use.
package sysmem

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// unknownLimit is what Limit returns if it finds no limit. Every machine has this much memory.
const unknownLimit = 1 << 30

// cgroupShare is the fraction of the cgroup's memory that the process may use. The rest is for the
// kernel's memory of connections and files.
const cgroupShare = 0.9

// Allowed returns the memory limit in bytes from the environment: GOMEMLIMIT, or nine tenths of the
// cgroup's limit. Without a limit, it returns math.MaxInt64.
func Allowed() int64 {
	if os.Getenv("GOMEMLIMIT") != "" {
		return debug.SetMemoryLimit(-1)
	}
	if cgroup := CgroupLimit(); cgroup < math.MaxInt64 {
		return int64(float64(cgroup) * cgroupShare)
	}
	return math.MaxInt64
}

// Available returns Allowed, but at most the memory of the machine.
func Available() int64 { return min(Allowed(), Limit()) }

// Limit returns the number of bytes that the process may use: the limit of its cgroup or the memory
// of the machine, whichever is smaller. If neither is known, it returns 1 GiB.
func Limit() int64 {
	limit := min(CgroupLimit(), machineMemory())
	if limit == math.MaxInt64 {
		return unknownLimit
	}
	return limit
}

// machineMemory returns the memory of the machine in bytes, or math.MaxInt64 if it is unknown.
func machineMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" {
			if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return math.MaxInt64
}
