package loadbalancing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// answer is a response of a name server.
type answer struct {
	hosts []string
	err   error
}

func (e *exporter) addresses() []string {
	t := e.backends.acquire()
	defer t.release()
	var all []string
	for _, b := range t.backends {
		all = append(all, b.address)
	}
	return all
}

// The backends follow the responses of DNS, in any order; a failure changes nothing.
func TestDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next atomic.Pointer[answer]
		f := fixture()
		f.Settings.Env.LookupHost = func(ctx context.Context, host string) ([]string, error) {
			if host != "gateways.test" {
				t.Errorf("looked up %s", host)
			}
			a := next.Load()
			if a == nil {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return a.hosts, a.err
		}
		f.Settings.Env.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		next.Store(&answer{[]string{"10.0.0.2", "10.0.0.1", "10.0.0.2"}, nil})
		e, err := newExporter(f.Settings, dnsOnly(t))
		if err != nil {
			t.Fatal(err)
		}
		stop := pipelinetest.Start(t, e)
		expect := func(outcomes, reports string, want ...string) {
			t.Helper()
			if got := e.addresses(); !slices.Equal(got, want) {
				t.Errorf("backends %q, want %q", got, want)
			}
			s := f.Samples(t, "tracing_load_balancing_resolutions_total", "outcome")
			if got := fmt.Sprint(s["changed"], s["unchanged"], s["failed"]); got != outcomes {
				t.Errorf("changed, unchanged and failed resolutions: %s, want %s", got, outcomes)
			}
			if n := f.Samples(t, "tracing_load_balancing_backends")[""]; int(n) != len(want) {
				t.Errorf("%v backends counted", n)
			}
			last := "healthy"
			if r := f.Reports(); len(r) > 0 && r[len(r)-1] != nil {
				last = r[len(r)-1].Error()
			}
			if last != reports {
				t.Errorf("reported %s, want %s", last, reports)
			}
		}
		later := func(a *answer) {
			next.Store(a)
			time.Sleep(30 * time.Second)
			synctest.Wait()
		}
		expect("1 0 0", "healthy", "10.0.0.1:4317", "10.0.0.2:4317")
		first := e.backends.current.backends[1]
		later(&answer{[]string{"10.0.0.1", "10.0.0.2"}, nil})
		expect("1 1 0", "healthy", "10.0.0.1:4317", "10.0.0.2:4317")
		later(&answer{[]string{"fd00::1", "10.0.0.2"}, nil})
		expect("2 1 0", "healthy", "10.0.0.2:4317", "[fd00::1]:4317")
		if e.backends.current.backends[0] != first {
			t.Error("connection of a backend that stays was replaced")
		}
		const stays = "; using the backends of the last response (2)"
		later(&answer{nil, errors.New("server misbehaving")})
		expect("2 1 1", "resolving gateways.test: server misbehaving"+stays, "10.0.0.2:4317", "[fd00::1]:4317")
		later(&answer{})
		expect("2 1 2", "resolving gateways.test: response has no addresses"+stays, "10.0.0.2:4317", "[fd00::1]:4317")
		later(&answer{[]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, nil})
		expect("2 1 3", "resolving gateways.test: response has 4 addresses; max_backends is 3"+stays, "10.0.0.2:4317", "[fd00::1]:4317")
		later(nil)
		time.Sleep(2 * time.Second) // longer than the timeout
		expect("2 1 4", "resolving gateways.test: context deadline exceeded"+stays, "10.0.0.2:4317", "[fd00::1]:4317")
		later(&answer{[]string{"10.0.0.3"}, nil})
		expect("3 1 4", "healthy", "10.0.0.3:4317")
		if n := f.Logs.FilterMessage(msgUnresolved).Len(); n == 0 || n > 4 {
			t.Errorf("%d log lines", n)
		}
		stop()
	})
}

func dnsOnly(t *testing.T) config {
	c := defaults()
	c.MaxBackends = 3
	c.Protocol.OTLP.TLS.Insecure = true
	d := c.Resolver.DNS.TurnOn().(*dnsConfig)
	d.Hostname = "gateways.test"
	d.Interval *= 6 // 30s
	for _, err := range []error{c.Validate(), c.Resolver.Validate(), d.Validate()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestStaticPorts(t *testing.T) {
	f := fixture()
	f.Settings.Env.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
	e := start(t, f, func(c *config) {
		c.Resolver.Static.TurnOn().(*staticConfig).Hostnames = []string{"b.test:55690", "a.test", "[::1]"}
	})
	if got := strings.Join(e.addresses(), " "); got != "[::1]:4317 a.test:4317 b.test:55690" {
		t.Errorf("backends %s", got)
	}
}
