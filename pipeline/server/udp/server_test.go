package udp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

func testConfig() udp.Config { return udp.DefaultConfig("127.0.0.1:0") }

// recorder has a handler that copies datagrams.
type recorder struct {
	mu   sync.Mutex
	got  []string
	from map[netip.AddrPort]bool
	sets int // calls of the handler
}

func (r *recorder) handle(_ context.Context, d *udp.Datagrams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sets++
	for from, b := range d.All() {
		r.got = append(r.got, string(b))
		if r.from == nil {
			r.from = map[netip.AddrPort]bool{}
		}
		r.from[from] = true
	}
}

func dialUDP(t *testing.T, addr string) *net.UDPConn {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.UDPConn)
}

func send(t *testing.T, c *net.UDPConn, datagrams ...string) {
	t.Helper()
	for _, d := range datagrams {
		if _, err := c.Write([]byte(d)); err != nil {
			t.Fatal(err)
		}
	}
}

// All datagrams sent before Stop are handled unchanged or, if they are invalid, refused.
func TestDatagrams(t *testing.T) {
	f := newFixture(t)
	logs := f.observeLogs(zap.DebugLevel)
	var in recorder
	s, stop := f.start(testConfig(), in.handle)
	c := dialUDP(t, s.Addr())
	good := []string{"a", strings.Repeat("b", 1400), strings.Repeat("c", 65_000), "d"}
	send(t, c, append(good, "", strings.Repeat("e", 65_001), strings.Repeat("f", 65_507))...)
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(in.got)
	if !slices.Equal(in.got, good) {
		t.Errorf("%d datagrams arrived", len(in.got))
	}
	if want := c.LocalAddr().(*net.UDPAddr).AddrPort(); !in.from[want] || len(in.from) != 1 {
		t.Errorf("senders %v, want %v", in.from, want)
	}
	f.checkCounts(7, 4)
	if f.refused(server.ReasonTooLarge) != 2 || f.refused(udp.ReasonEmpty) != 1 {
		t.Error("too large or empty datagrams not counted by reason")
	}
	var sizes []int64
	for _, e := range logs.FilterMessage("Span(s) received by the agent").All() {
		sizes = append(sizes, e.ContextMap()["bytes-received"].(int64))
	}
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int64{0, 1, 1, 1400, 65_000, 65_000, 65_000}) {
		t.Errorf("sizes in debug lines: %v", sizes)
	}
	failed := logs.FilterMessage("Processor failed").All()
	if len(failed) != 3 || failed[0].Level != zap.ErrorLevel || failed[0].ContextMap()["error"] == nil ||
		failed[0].ContextMap()["sender"] != c.LocalAddr().String() {
		t.Errorf("log of bad datagrams: %v", failed)
	}
}

// Clients may resolve localhost to 127.0.0.1 or ::1.
func TestIPv4AndIPv6(t *testing.T) {
	for _, endpoint := range []pipeline.Endpoint{"localhost:0", "[::]:0"} {
		f := newFixture(t)
		cfg := testConfig()
		cfg.Endpoint = endpoint
		var in recorder
		s, stop := f.start(cfg, in.handle)
		_, port, err := net.SplitHostPort(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := net.ListenPacket("udp6", "[::1]:0"); err != nil {
			t.Skip("no IPv6 loopback")
		} else {
			c.Close()
		}
		four, six := dialUDP(t, "127.0.0.1:"+port), dialUDP(t, "[::1]:"+port)
		send(t, four, "four")
		send(t, six, "six")
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(in.got)
		if !slices.Equal(in.got, []string{"four", "six"}) {
			t.Errorf("%s: arrived: %q", endpoint, in.got)
		}
		for _, c := range []*net.UDPConn{four, six} {
			if from := c.LocalAddr().(*net.UDPAddr).AddrPort(); !in.from[from] {
				t.Errorf("%s: senders %v, want %v", endpoint, in.from, from)
			}
		}
	}
}

// Datagrams are dropped only when the queue is full. A worker takes all waiting datagrams together.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		c := f.inMemory()
		cfg := testConfig()
		cfg.QueueSize, cfg.Workers = 1<<20, 1
		gate := make(chan struct{})
		var in recorder
		_, stop := f.start(cfg, func(ctx context.Context, d *udp.Datagrams) {
			<-gate
			in.handle(ctx, d)
		})
		const n = 30_000
		for range n {
			c.in <- bytes.Repeat([]byte("x"), 100)
		}
		synctest.Wait()
		close(gate)
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.checkCounts(n, float64(len(in.got)))
		if dropped := f.refused(udp.ReasonQueueFull); dropped == 0 || len(in.got)*(100+50) < 1<<20 {
			t.Errorf("%d datagrams: %d handled, %v dropped", n, len(in.got), dropped)
		}
		if in.sets > 20 {
			t.Errorf("handler called %d times", in.sets)
		}
	})
}

func TestStopAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		c := f.inMemory()
		cfg := testConfig()
		cfg.Workers = 1
		_, stop := f.start(cfg, func(ctx context.Context, d *udp.Datagrams) {
			<-ctx.Done()
			for from := range d.All() {
				d.Refuse(from, "late", ctx.Err())
			}
		})
		c.in <- []byte("active")
		synctest.Wait()
		c.in <- []byte("waits")
		c.in <- []byte("waits 2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "compact: 2 datagrams") {
			t.Errorf("Stop: %v", err)
		}
		f.checkCounts(3, 0)
		if f.refused(server.ReasonStopping) != 2 || f.refused("late") != 1 {
			t.Error("remaining datagrams not counted")
		}
	})
}

func TestHandlerPanics(t *testing.T) {
	f := newFixture(t)
	s, stop := f.start(testConfig(), func(_ context.Context, d *udp.Datagrams) {
		for _, b := range d.All() {
			if string(b) == "bad" {
				panic("oops")
			}
		}
	})
	c := dialUDP(t, s.Addr())
	for range 3 {
		send(t, c, "bad")
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.checkCounts(3, 0)
	if f.metric("tracing_server_panics_total", "") == 0 || f.refused(udp.ReasonPanic) != 3 {
		t.Error("panics not counted")
	}
}

// A failed read is retried. A closed socket is reported.
func TestReadErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var reported error
		f.set.Report = func(err error) { reported = err }
		c := f.inMemory()
		var in recorder
		s, stop := f.start(testConfig(), in.handle)
		for i := range 100 {
			c.errs <- fmt.Errorf("error %d", i)
		}
		c.in <- []byte("after errors")
		synctest.Wait()
		if len(in.got) != 1 || s.Stats().ReadErrors != 100 || reported != nil {
			t.Errorf("got %q, stats %+v, reported %v", in.got, s.Stats(), reported)
		}
		c.Close()
		synctest.Wait()
		if !errors.Is(reported, net.ErrClosed) {
			t.Errorf("reported: %v", reported)
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestErrorLinesAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		logs := f.observeLogs(zap.InfoLevel)
		c := f.inMemory()
		f.start(testConfig(), func(_ context.Context, d *udp.Datagrams) {
			for from := range d.All() {
				d.Refuse(from, "strange", errors.New("strange"))
			}
		})
		for range 500 {
			c.in <- []byte("?")
		}
		synctest.Wait()
		time.Sleep(time.Second)
		c.in <- []byte("?")
		synctest.Wait()
		lines := logs.FilterMessage("Processor failed").All()
		if len(lines) != 11 || f.refused("strange") != 501 {
			t.Fatalf("%d lines for %v datagrams, want 11 for 501", len(lines), f.refused("strange"))
		}
		if last := lines[10].ContextMap(); last["suppressed"] != int64(490) || last["sender"] != sender.String() {
			t.Errorf("last line: %v", last)
		}
	})
}

func TestKernelDrops(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("kernel drops are reported on Linux only")
	}
	f := newFixture(t)
	cfg := testConfig()
	cfg.SocketBuffer = 1 // the kernel raises it to a few KiB
	var in recorder
	s, stop := f.start(cfg, in.handle)
	c := dialUDP(t, s.Addr())
	const n = 5000
	for range n {
		send(t, c, strings.Repeat("x", 1000))
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.Stats()
	if got.Processed+got.KernelDrops != n || f.metric("tracing_server_kernel_dropped_datagrams_total", "") != float64(got.KernelDrops) {
		t.Errorf("%d sent, %+v", n, got)
	}
	f.checkCounts(float64(got.Processed), float64(got.Processed))
}

func TestStartFails(t *testing.T) {
	f := newFixture(t)
	first, _ := f.start(testConfig(), nil)
	cfg := testConfig()
	cfg.Endpoint = pipeline.Endpoint(first.Addr())
	other := newFixture(t)
	s, err := udp.NewServer(other.set, "binary", cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "binary.endpoint: cannot listen on 127.0.0.1:") ||
		!strings.Contains(err.Error(), "another process uses this port") {
		t.Errorf("Start: %v", err)
	}
}

func TestConfigValidation(t *testing.T) {
	bad := udp.Config{MaxPacketSize: 70_000, QueueSize: 1000, SocketBuffer: -1}
	text := fmt.Sprint(bad.Validate())
	for _, want := range []string{"must be set", "from 1 to 65527", "from 1048576 to", "from 1 to 1000, not 0", "not -1"} {
		if !strings.Contains(text, want) {
			t.Errorf("error %q does not contain %q", text, want)
		}
	}
	good := testConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
