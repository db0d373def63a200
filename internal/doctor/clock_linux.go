package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// synchronization returns what the kernel knows about the clock. Reading needs no privilege.
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
