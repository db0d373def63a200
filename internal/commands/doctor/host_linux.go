package doctor

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// synchronization returns what the kernel knows about the clock. Reading it needs no privileges.
func synchronization() Finding {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return newFinding("this host", Skipped, "cannot read the state of the clock: %v", err)
	}
	if state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return newFinding("this host", Warning, "kernel says that no NTP client synchronizes the clock").
			advise("run chrony, systemd-timesyncd or ntpd on the host; ignore this if the hypervisor sets the clock")
	}
	return newFinding("this host", OK, "synchronized; estimated error %s", roundTime(time.Duration(t.Esterror)*time.Microsecond))
}

// inMemory reports whether a folder is in a file system without a disk.
func inMemory(folder string) bool {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return false
	}
	kind := int64(s.Type) //nolint:unconvert // 32 bits on some platforms
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC
}

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
