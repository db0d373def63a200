//go:build !linux

package doctor

// inMemory is supported on Linux only.
func inMemory(string) bool { return false }
