package delivery_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestReloadsUnderLoad reloads the configuration 30 times while clients send spans on new and on
// open connections, and others send their requests slowly. Every listener and a processor change
// each time. All requests are accepted, also slow ones that are open during a whole reload. It logs
// how long they took with and without reloads.
func TestReloadsUnderLoad(t *testing.T) {
	harness.SkipIfShort(t)
	const reloads, interval = 30, 500 * time.Millisecond
	s := newSockets(t)
	file := filepath.Join(s.dir, "tracing.yaml")
	write := func(generation int) {
		if err := os.WriteFile(file, []byte(s.yaml(generation, "resource_tags, batch")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	p := harness.Run(t, "--config", file)
	p.AwaitReady()

	l := harness.NewSentSpans()
	without := startMixedLoad(t, s, l)
	time.Sleep(reloads * interval)
	without.end("without reloads")
	with := startMixedLoad(t, s, l)
	for generation := 1; generation <= reloads; generation++ {
		write(generation)
		p.Signal(syscall.SIGHUP)
		harness.Poll(t, "a reload", func() bool { return reloadsOf(p) == generation })
		with.reloads.Add(1)
		time.Sleep(interval)
	}
	with.end("with 30 reloads")
	if with.spanned.Load() == 0 {
		t.Error("no slow request was open during a whole reload")
	}
	acked, found := l.Check(t, "http://"+s.query)
	p.Terminate()
	p.Accounting()
	t.Logf("%d spans acknowledged, %d found", acked, found)
	http.DefaultClient.CloseIdleConnections()
}

// reloadsOf returns how many reloads the process has logged.
func reloadsOf(p *harness.Process) (n int) {
	for _, line := range p.LogLines() {
		if line["msg"] == "reloaded configuration" {
			n++
		}
	}
	return n
}

// mixedLoad is load on the OTLP receiver.
type mixedLoad struct {
	t       *testing.T
	stop    chan struct{}
	clients sync.WaitGroup
	refused atomic.Int64
	slow    atomic.Int64
	reloads atomic.Int64 // that have been seen
	spanned atomic.Int64 // slow requests that were open during a whole reload

	mu    sync.Mutex
	times []time.Duration // of requests that are not slow
}

func startMixedLoad(t *testing.T, s *sockets, l *harness.SentSpans) *mixedLoad {
	m := &mixedLoad{t: t, stop: make(chan struct{})}
	for i := range 4 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		m.clients.Go(func() {
			m.send(i, &http.Client{Transport: transport, Timeout: time.Minute}, "http://"+s.otlp+"/v1/traces", l)
		})
	}
	for range 4 {
		m.clients.Go(func() { m.sendSlowly(s) })
	}
	return m
}

// send sends requests until end.
func (m *mixedLoad) send(seed int, c *http.Client, url string, l *harness.SentSpans) {
	defer c.CloseIdleConnections()
	for r := range bench.New(uint64(time.Now().UnixNano()+int64(seed)), time.Now()).Requests(1<<20, 10) {
		if m.pause(5 * time.Millisecond) {
			return
		}
		l.Record(m.t, r.Body, false)
		began := time.Now()
		if err := post(c, url, r.Body); err != nil {
			m.refused.Add(1)
			m.t.Error(err)
			continue
		}
		l.Record(m.t, r.Body, true)
		m.mu.Lock()
		m.times = append(m.times, time.Since(began))
		m.mu.Unlock()
	}
}

// sendSlowly sends requests until end, each for three seconds.
func (m *mixedLoad) sendSlowly(s *sockets) {
	for !m.pause(0) {
		r := startSlowPost(m.t, s.otlp, "/v1/traces", jsonSpan(slowTrace))
		before := m.reloads.Load()
		m.pause(3 * time.Second)
		if m.reloads.Load() >= before+2 { // one may have happened before the request
			m.spanned.Add(1)
		}
		r.finish()
		r.conn.Close()
		m.slow.Add(1)
	}
}

// pause waits and reports whether the load ends.
func (m *mixedLoad) pause(d time.Duration) bool {
	select {
	case <-m.stop:
		return true
	case <-time.After(d):
		return false
	}
}

// end stops the load and logs the times.
func (m *mixedLoad) end(what string) {
	close(m.stop)
	m.clients.Wait()
	if len(m.times) == 0 {
		m.t.Fatalf("%s: no request was accepted, %d were refused", what, m.refused.Load())
	}
	slices.Sort(m.times)
	at := func(q float64) time.Duration { return m.times[int(q*float64(len(m.times)-1))] }
	m.t.Logf("%s: %d requests, %d refused, %d slow ones, %d during reloads; p50 %v, p99 %v, maximum %v", what, len(m.times),
		m.refused.Load(), m.slow.Load(), m.spanned.Load(), at(0.5), at(0.99), at(1))
}
