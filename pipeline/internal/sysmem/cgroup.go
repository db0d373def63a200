package sysmem

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// CgroupLimit returns the memory limit in bytes of the process's cgroup (version 2 or 1) and its
// parent groups, or math.MaxInt64 if there is none.
func CgroupLimit() int64 { return cgroupLimit(os.DirFS("/")) }

// cgroupLimit is CgroupLimit for the file system root. In a container, the root of /sys/fs/cgroup
// is the group of the container. A systemd service is in a group below the root, such as
// system.slice/tracing-all-in-one.service.
func cgroupLimit(root fs.FS) int64 {
	unified, memory := cgroups(root)
	return min(smallestLimit(root, "sys/fs/cgroup", unified, "memory.max"),
		smallestLimit(root, "sys/fs/cgroup/memory", memory, "memory.limit_in_bytes"))
}

// cgroups returns the paths of the process's groups of version 2, and of version 1 for memory; "/"
// if they are unknown.
func cgroups(root fs.FS) (unified, memory string) {
	unified, memory = "/", "/"
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return unified, memory
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0" && f[1] == "":
			unified = f[2]
		case f[1] == "memory":
			memory = f[2]
		}
	}
	return unified, memory
}

// smallestLimit returns the smallest limit of a group and its parent groups. Groups outside the
// container of the process are not visible.
func smallestLimit(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for group = path.Join("/", group); ; group = path.Dir(group) {
		if b, err := fs.ReadFile(root, mount+path.Join("/", group, file)); err == nil {
			// Version 1 writes a number close to MaxInt64 for "no limit".
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < math.MaxInt64/2 {
				limit = min(limit, n)
			}
		}
		if group == "/" {
			return limit
		}
	}
}
