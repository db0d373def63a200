// Package sysmem finds out how much memory the process may use.
package sysmem

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// unknownLimit is the limit that Limit returns if it finds none. Every machine has that much.
const unknownLimit = 1 << 30

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
