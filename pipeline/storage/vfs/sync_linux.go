package vfs

import (
	"io/fs"
	"os"
	"syscall"
)

// syncFile is the only place that syncs a file. fdatasync omits metadata that is not needed to read
// the bytes, such as the modification time: overwriting a preallocated file then costs no journal
// commit.
func syncFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		for {
			if syncErr = syscall.Fdatasync(int(fd)); syncErr != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		syncErr = fs.ErrClosed // Control fails for nothing else
	}
	if syncErr != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: syncErr}
	}
	return nil
}
