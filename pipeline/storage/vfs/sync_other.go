//go:build !linux

package vfs

import "os"

// syncFile is the only place that syncs a file. On macOS File.Sync asks the drive to empty its
// cache too (F_FULLFSYNC).
func syncFile(f *os.File) error { return f.Sync() }
