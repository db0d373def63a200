//go:build !linux

package doctor

// synchronization is supported on Linux only.
func synchronization() Finding {
	return newFinding("this host", Skipped, "the state of the clock can be read on Linux only")
}
