package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/status"
)

// serviceManager reports the state of the process to the service manager of the operating system
// (systemd), if the manager has requested it with NOTIFY_SOCKET and WATCHDOG_USEC. Its zero value
// does nothing.
type serviceManager struct {
	send     func(message string) // nil: there is no service manager
	watchdog time.Duration        // maximum time between two signs of life; 0: none are expected
}

// newServiceManager returns the service manager that the environment describes.
func newServiceManager(log *zap.Logger) serviceManager {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("no watchdog messages are sent", zap.Error(err))
	}
	return serviceManager{watchdog: watchdog, send: func(message string) {
		if _, err := daemon.SdNotify(false, message); err != nil {
			log.Warn("cannot notify the service manager", zap.Error(err))
		}
	}}
}

// tell sends assignments as one message.
func (m serviceManager) tell(assignments ...string) {
	if m.send != nil {
		m.send(strings.Join(assignments, "\n"))
	}
}

// ready reports that the process has started or has finished a reload.
func (m serviceManager) ready() { m.tell(daemon.SdNotifyReady) }

// reloading reports that a reload begins. ready ends it.
func (m serviceManager) reloading() {
	m.tell(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()), statusLine("reloading"))
}

// stopGrace is the time that a process may need in addition to its stop timeout before the service
// manager kills it.
const stopGrace = 10 * time.Second

// stopping reports that the process is stopping, and how long that may take.
func (m serviceManager) stopping(timeout time.Duration) {
	m.tell(daemon.SdNotifyStopping, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (timeout+stopGrace).Microseconds()),
		statusLine(fmt.Sprintf("stopping within %v", timeout)))
}

// failed reports why the process could not start, reload or stop.
func (m serviceManager) failed(what string, err error) { m.tell(statusLine(what + ": " + err.Error())) }

// health reports whether the process is ready, unless it is starting or stopping.
func (m serviceManager) health(h status.Health) {
	switch {
	case h.Ready:
		m.tell(statusLine("ready"))
	case h.Reason != "":
		m.tell(statusLine("not ready: " + h.Reason))
	}
}

// maxStatus is the maximum number of bytes of a status, which is for people.
const maxStatus = 1000

// statusLine returns the assignment of a text that the service manager shows.
func statusLine(text string) string {
	text = strings.Join(strings.Fields(text), " ") // a message has a line for each assignment
	if len(text) > maxStatus {
		text = strings.ToValidUTF8(text[:maxStatus], "") + " ..."
	}
	return "STATUS=" + text
}

// keepAlive sends signs of life until ctx ends: two in each period of the watchdog, after check has
// returned. If check does not return, the service manager restarts the process.
func (m serviceManager) keepAlive(ctx context.Context, check func()) {
	if m.watchdog <= 0 {
		return
	}
	ticker := time.NewTicker(m.watchdog / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			check()
			m.tell(daemon.SdNotifyWatchdog)
		}
	}
}
