//go:build !linux

package server

import "net"

// dontWait is for systems that are read in batches.
const dontWait = 0

// socketDrops is not known here.
func socketDrops(*net.UDPConn) (uint32, bool) { return 0, false }

// grantedBuffer is not known here.
func grantedBuffer(*net.UDPConn) (int, bool) { return 0, false }
