package udp

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Layout of the result of SO_MEMINFO, from linux/sock_diag.h.
const (
	memInfoDrops = 8 // SK_MEMINFO_DROPS
	memInfoVars  = 9 // SK_MEMINFO_VARS
)

// dontWait is the flag of a read that does not block.
const dontWait = unix.MSG_DONTWAIT

// socketDrops returns the number of datagrams that the kernel dropped because the receive buffer
// was full, modulo 2^32. Kernels before 4.12 do not report it.
func socketDrops(conn *net.UDPConn) (uint32, bool) {
	var info [memInfoVars]uint32
	size := uint32(unsafe.Sizeof(info))
	ok := false
	control(conn, func(fd uintptr) {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		ok = errno == 0 && size == uint32(unsafe.Sizeof(info))
	})
	return info[memInfoDrops], ok
}

// grantedBuffer returns the size of the receive buffer. The kernel reports twice that size, because
// it includes its own overhead.
func grantedBuffer(conn *net.UDPConn) (size int, ok bool) {
	control(conn, func(fd uintptr) {
		v, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		size, ok = v/2, err == nil
	})
	return size, ok
}

func control(conn *net.UDPConn, f func(fd uintptr)) {
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(f) //nolint:errcheck // f is not called on a closed socket
	}
}
