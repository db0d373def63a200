//go:build !unix

package doctor

import "errors"

// ownFileLimit is supported on Unix only.
func ownFileLimit() (uint64, error) { return 0, errors.ErrUnsupported }
