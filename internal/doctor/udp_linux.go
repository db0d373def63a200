package doctor

import (
	"net"

	"golang.org/x/sys/unix"
)

// grantedBuffer returns how much of a receive buffer the kernel grants a UDP socket, in bytes. The
// kernel reports twice the size, because it includes its own overhead.
func grantedBuffer(wanted int) (granted int, err error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // was not used
	if err := conn.SetReadBuffer(wanted); err != nil {
		return 0, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if cerr := raw.Control(func(fd uintptr) { granted, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); cerr != nil {
		return 0, cerr
	}
	return granted / 2, err
}
