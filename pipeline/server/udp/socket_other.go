//go:build !linux

package udp

import "net"

// dontWait is used on Linux only.
const dontWait = 0

// socketDrops is supported on Linux only.
func socketDrops(*net.UDPConn) (uint32, bool) { return 0, false }

// grantedBuffer is supported on Linux only.
func grantedBuffer(*net.UDPConn) (int, bool) { return 0, false }
