package sysmem

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestCgroupLimit(t *testing.T) {
	f := func(name string, want int64, files ...string) {
		t.Helper()
		root := fstest.MapFS{}
		for i := 0; i < len(files); i += 2 {
			root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1] + "\n")}
		}
		if got := cgroupLimit(root); got != want {
			t.Errorf("%s: limit %d, want %d", name, got, want)
		}
	}
	const group, two, one = "proc/self/cgroup", "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	f("no files", math.MaxInt64)
	f("container, version 2", 1000, group, "0::/", two+"memory.max", "1000")
	f("container without a limit", math.MaxInt64, group, "0::/", two+"memory.max", "max")
	f("container, version 1", 1000, group, "4:memory:/docker/abc", one+"memory.limit_in_bytes", "1000")
	f("version 1 without a limit", math.MaxInt64, group, "4:memory:/", one+"memory.limit_in_bytes", "9223372036854771712")
	f("service", 1000, group, "0::/system.slice/tracing.service", two+"system.slice/tracing.service/memory.max", "1000")
	f("slice of the service", 500, group, "0::/system.slice/tracing.service", two+"system.slice/tracing.service/memory.max", "1000",
		two+"system.slice/memory.max", "500")
	f("service, version 1", 1000, group, "9:cpu:/\n4:memory:/system.slice/tracing.service\n0::/elsewhere",
		one+"system.slice/tracing.service/memory.limit_in_bytes", "1000")
	f("another service", math.MaxInt64, group, "0::/system.slice/tracing.service", two+"system.slice/other.service/memory.max", "1000")
	f("outside the namespace", 1000, group, "0::/../other", two+"memory.max", "1000")
}
