//go:build unix

package host

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// copySocket returns another net.Listener or net.PacketConn for the same socket of the operating
// system, which stays open until both are closed. It does not use conn.File, which would make
// non-blocking reads block for a moment.
func copySocket(conn io.Closer) (io.Closer, error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, os.NewSyscallError("fcntl", dupErr)
	}
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close() //nolint:errcheck // the listener has its own copy
	if _, ok := conn.(net.Listener); ok {
		return net.FileListener(file)
	}
	return net.FilePacketConn(file)
}
