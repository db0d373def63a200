//go:build !unix

package host

import (
	"errors"
	"io"
)

// copySocket is supported on Unix only: elsewhere, the socket of a component is closed before its
// replacement opens the same port.
func copySocket(io.Closer) (io.Closer, error) { return nil, errors.ErrUnsupported }
