package doctor

import "golang.org/x/sys/unix"

// inMemory reports whether a folder is in a file system without a disk.
func inMemory(folder string) bool {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return false
	}
	kind := int64(s.Type) //nolint:unconvert // 32 bits on some platforms
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC
}
