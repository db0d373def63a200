package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// record returns a service manager that records messages.
func record(watchdog time.Duration) (m serviceManager, messages *[]string) {
	messages = &[]string{}
	return serviceManager{watchdog: watchdog, send: func(s string) { *messages = append(*messages, s) }}, messages
}

// Signs of life are sent while the check returns, and no more when it does not.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, messages := record(20 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		stuck, checks := make(chan struct{}), 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.keepAlive(ctx, func() {
				if checks++; checks > 3 {
					<-stuck
				}
			})
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := strings.Join(*messages, " "); got != "WATCHDOG=1 WATCHDOG=1 WATCHDOG=1" {
			t.Errorf("messages of an hour in which the fourth check does not return: %s", got)
		}
		close(stuck)
		time.Sleep(65 * time.Second)
		cancel()
		<-done
		if n := len(*messages); n != 11 { // 3, the delayed one, a buffered tick, and 6 of a minute
			t.Errorf("%d messages after another minute in which all checks return, want 11", n)
		}
	})
}

func TestNoServiceManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	m := newServiceManager(nil) // a message would be logged, which panics
	m.ready()
	m.keepAlive(t.Context(), func() { t.Error("a check without a watchdog") })
}

func TestStatusLine(t *testing.T) {
	m, messages := record(0)
	m.failed("cannot start", errors.New("first line\nREADY=1\tthird"))
	m.failed("cannot start", errors.New(strings.Repeat("é", maxStatus)))
	if got := (*messages)[0]; got != "STATUS=cannot start: first line READY=1 third" {
		t.Errorf("an error of several lines is %q", got)
	}
	if got := (*messages)[1]; len(got) > maxStatus+20 || !strings.HasSuffix(got, "é ...") {
		t.Errorf("a long error is %d bytes and ends in %q", len(got), got[len(got)-8:])
	}
}
