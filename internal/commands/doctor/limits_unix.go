//go:build unix

package doctor

import "golang.org/x/sys/unix"

// ownFileLimit returns the hard limit on open files of this command.
func ownFileLimit() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return uint64(limit.Max), nil //nolint:unconvert // signed on some platforms
}
