package server

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout of what SO_MEMINFO returns, from linux/sock_diag.h.
const (
	memInfoDrops = 8 // SK_MEMINFO_DROPS
	memInfoVars  = 9 // SK_MEMINFO_VARS
)

// dontWait is the flag of a read that returns at once when there is nothing.
const dontWait = unix.MSG_DONTWAIT

// socketDrops returns how many datagrams the system has dropped because the socket's buffer was full, modulo 2^32. Kernels before 4.12 do not
// tell.
func socketDrops(conn *net.UDPConn) (uint32, bool) {
	var info [memInfoVars]uint32
	size := uint32(unsafe.Sizeof(info))
	told := false
	control(conn, func(fd uintptr) {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		told = errno == 0 && size == uint32(unsafe.Sizeof(info))
	})
	return info[memInfoDrops], told
}

// grantedBuffer returns the size of the socket's receive buffer. The system doubles what it is asked for, for its own bookkeeping.
func grantedBuffer(conn *net.UDPConn) (size int, ok bool) {
	control(conn, func(fd uintptr) {
		v, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		size, ok = v/2, err == nil
	})
	return size, ok
}

func control(conn *net.UDPConn, f func(fd uintptr)) {
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(f) //nolint:errcheck // f is not called on a closed socket, and nothing is known then
	}
}
