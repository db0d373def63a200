//go:build !linux

package doctor

import "errors"

// synchronization is supported on Linux only.
func synchronization() Finding {
	return newFinding("this host", Skipped, "the state of the clock can be read on Linux only")
}

// inMemory is supported on Linux only.
func inMemory(string) bool { return false }

// grantedBuffer is supported on Linux only.
func grantedBuffer(int) (int, error) { return 0, errors.ErrUnsupported }
