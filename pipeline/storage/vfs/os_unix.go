//go:build linux || darwin

package vfs

import (
	"errors"
	"math"
	"os"
	"syscall"
)

const errNotDir = syscall.ENOTDIR

// syncDir is the only place that syncs a directory.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // opened for reading: Close has nothing to report
	return d.Sync()
}

// lockFile uses flock, which belongs to the open file: it also excludes a second Lock in this
// process, and is released when the process ends.
func lockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			if lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB); lockErr != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if lockErr == syscall.EWOULDBLOCK {
		return ErrLocked
	}
	return lockErr
}

func freeBytes(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	block := uint64(st.Bsize)
	if block == 0 || st.Bavail > math.MaxInt64/block {
		return math.MaxInt64, nil // some network and virtual volumes report this if they have no limit
	}
	return int64(st.Bavail * block), nil
}

// isNoSpace reports whether the volume or the user's quota is full.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
