package server_test

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
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func udpConfig() server.UDPConfig { return server.DefaultUDPConfig("127.0.0.1:0") }

func (w *world) udp(cfg server.UDPConfig, h func(context.Context, *server.Datagrams)) (*server.UDP, func(context.Context) error) {
	w.t.Helper()
	s, err := server.NewUDP(w.set, "compact", cfg, h)
	if err != nil {
		w.t.Fatal(err)
	}
	return s, w.run(s)
}

// packets replaces the network by one without system calls.
func (w *world) packets() *memPackets {
	c := newMemPackets()
	w.set.Env.ListenPacket = func(context.Context, string, string) (net.PacketConn, error) { return c, nil }
	return c
}

// observe keeps the log.
func (w *world) observe(level zapcore.Level) *observer.ObservedLogs {
	core, logs := observer.New(level)
	w.set.Logger = zap.New(core)
	return logs
}

// law checks that what was received is accounted for.
func (w *world) law(received, handled float64) {
	w.t.Helper()
	r, h := w.metric("tracing_server_received_datagrams_total", ""), w.metric("tracing_server_handled_datagrams_total", "")
	waiting, refused := w.metric("tracing_server_waiting_datagrams", ""), w.refused("")
	if r != received || h != handled || r != h+refused || waiting != 0 {
		w.t.Errorf("received %v (want %v), handled %v (want %v), refused %v, waiting %v", r, received, h, handled, refused, waiting)
	}
}

// inbox is a handler that keeps copies.
type inbox struct {
	mu   sync.Mutex
	got  []string
	from map[netip.AddrPort]bool
	sets int // of datagrams taken at once
}

func (i *inbox) take(_ context.Context, d *server.Datagrams) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sets++
	for from, b := range d.All() {
		i.got = append(i.got, string(b))
		if i.from == nil {
			i.from = map[netip.AddrPort]bool{}
		}
		i.from[from] = true
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

// Everything that was sent before Stop is taken, as it was sent, and what cannot be right is refused.
func TestDatagramsArrive(t *testing.T) {
	w := newWorld(t, 0)
	logs := w.observe(zap.DebugLevel)
	var in inbox
	s, stop := w.udp(udpConfig(), in.take)
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
	w.law(7, 4)
	if w.refused(server.ReasonTooLarge) != 2 || w.refused(server.ReasonEmpty) != 1 {
		t.Error("too large and empty datagrams are not counted by reason")
	}
	var sizes []int64
	for _, e := range logs.FilterMessage("Span(s) received by the agent").All() {
		sizes = append(sizes, e.ContextMap()["bytes-received"].(int64))
	}
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int64{0, 1, 1, 1400, 65_000, 65_000, 65_000}) {
		t.Errorf("sizes told at level debug: %v", sizes)
	}
	failed := logs.FilterMessage("Processor failed").All()
	if len(failed) != 3 || failed[0].Level != zap.ErrorLevel || failed[0].ContextMap()["error"] == nil ||
		failed[0].ContextMap()["sender"] != c.LocalAddr().String() {
		t.Errorf("log of bad datagrams: %v", failed)
	}
}

// Clients send to 127.0.0.1 or to ::1, as their language takes localhost, and do not learn that nobody listens.
func TestBothFamilies(t *testing.T) {
	for _, endpoint := range []pipeline.Endpoint{"localhost:0", "[::]:0"} {
		w := newWorld(t, 0)
		cfg := udpConfig()
		cfg.Endpoint = endpoint
		var in inbox
		s, stop := w.udp(cfg, in.take)
		_, port, err := net.SplitHostPort(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := net.ListenPacket("udp6", "[::1]:0"); err != nil {
			t.Skip("this machine has no ::1")
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

// A worker that waits is no loss until the queue is full, and what gathers meanwhile is taken at once.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		c := w.packets()
		cfg := udpConfig()
		cfg.QueueSize, cfg.Workers = 1<<20, 1
		gate := make(chan struct{})
		var in inbox
		_, stop := w.udp(cfg, func(ctx context.Context, d *server.Datagrams) {
			<-gate
			in.take(ctx, d)
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
		w.law(n, float64(len(in.got)))
		if dropped := w.refused(server.ReasonQueueFull); dropped == 0 || len(in.got)*(100+50) < 1<<20 {
			t.Errorf("of %d datagrams %d were handled and %v dropped", n, len(in.got), dropped)
		}
		if in.sets > 20 {
			t.Errorf("the datagrams were taken in %d sets", in.sets)
		}
	})
}

func TestUDPStopAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		c := w.packets()
		cfg := udpConfig()
		cfg.Workers = 1
		_, stop := w.udp(cfg, func(ctx context.Context, d *server.Datagrams) {
			<-ctx.Done()
			for from := range d.All() {
				d.Refuse(from, "late", ctx.Err())
			}
		})
		c.in <- []byte("worked on")
		synctest.Wait()
		c.in <- []byte("waits")
		c.in <- []byte("waits, too")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "compact: 2 datagrams") {
			t.Errorf("Stop: %v", err)
		}
		w.law(3, 0)
		if w.refused(server.ReasonStopping) != 2 || w.refused("late") != 1 {
			t.Error("what is left is not counted")
		}
	})
}

func TestUDPHandlerPanics(t *testing.T) {
	w := newWorld(t, 0)
	s, stop := w.udp(udpConfig(), func(_ context.Context, d *server.Datagrams) {
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
	w.law(3, 0)
	if w.metric("tracing_server_panics_total", "") == 0 || w.refused(server.ReasonPanic) != 3 {
		t.Error("panics are not counted")
	}
}

// A read that fails is not the end, a socket that somebody closed is, and is told.
func TestReadErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		var reported error
		w.set.Report = func(err error) { reported = err }
		c := w.packets()
		var in inbox
		s, stop := w.udp(udpConfig(), in.take)
		for i := range 100 {
			c.errs <- fmt.Errorf("error %d", i)
		}
		c.in <- []byte("after all")
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

// Nobody can fill the disk with lines about bad datagrams.
func TestLinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		logs := w.observe(zap.InfoLevel)
		c := w.packets()
		w.udp(udpConfig(), func(_ context.Context, d *server.Datagrams) {
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
		if len(lines) != 11 || w.refused("strange") != 501 {
			t.Fatalf("%d lines for %v datagrams", len(lines), w.refused("strange"))
		}
		if last := lines[10].ContextMap(); last["suppressed"] != int64(490) || last["sender"] != memSender.String() {
			t.Errorf("last line: %v", last)
		}
	})
}

// What the system drops is counted, so that no datagram is unaccounted for.
func TestKernelDrops(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	w := newWorld(t, 0)
	cfg := udpConfig()
	cfg.SocketBuffer = 1 // the system makes it a few KiB
	var in inbox
	s, stop := w.udp(cfg, in.take)
	c := dialUDP(t, s.Addr())
	const n = 5000
	for range n {
		send(t, c, strings.Repeat("x", 1000))
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.Stats()
	if got.Processed+got.KernelDrops != n || w.metric("tracing_server_kernel_dropped_datagrams_total", "") != float64(got.KernelDrops) {
		t.Errorf("%d sent, %+v", n, got)
	}
	w.law(float64(got.Processed), float64(got.Processed))
}

func TestUDPStartFails(t *testing.T) {
	w := newWorld(t, 0)
	first, _ := w.udp(udpConfig(), nil)
	cfg := udpConfig()
	cfg.Endpoint = pipeline.Endpoint(first.Addr())
	other := newWorld(t, 0)
	s, err := server.NewUDP(other.set, "binary", cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "binary.endpoint: cannot listen on 127.0.0.1:") ||
		!strings.Contains(err.Error(), "another process uses this port") {
		t.Errorf("Start: %v", err)
	}
}

func TestUDPConfig(t *testing.T) {
	bad := server.UDPConfig{MaxPacketSize: 70_000, QueueSize: 1000, SocketBuffer: -1}
	text := fmt.Sprint(bad.Validate())
	for _, want := range []string{"must be set", "from 1 to 65527", "from 1048576 to", "from 1 to 1000, not 0", "not -1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	good := udpConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
