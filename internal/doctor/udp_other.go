//go:build !linux

package doctor

import "errors"

// grantedBuffer is supported on Linux only.
func grantedBuffer(int) (int, error) { return 0, errors.ErrUnsupported }
