package live

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestTailConfig(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c = Config{MaxClients: -1}
	var keys []string
	for _, err := range c.Validate().(interface{ Unwrap() []error }).Unwrap() {
		var key *pipeline.KeyError
		if errors.As(err, &key) {
			keys = append(keys, key.Key)
		}
	}
	if want := []string{"max_spans_per_second", "max_examined_per_second", "max_queue_size", "max_duration", "quiet", "max_wait",
		"max_traces_per_second", "max_traces", "max_trace_spans", "max_clients"}; !slices.Equal(keys, want) {
		t.Errorf("errors for %v, want %v", keys, want)
	}
}

func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		_, h := newAPI(t, store, nil)
		ctx, cancel := context.WithCancel(t.Context())
		a, ended := watch(ctx, h, "?q=%7Bname=%22yes%22%7D")
		expectEvents(t, a, statusEvent(0, 0, 0))
		if got := a.Header().Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("content type %q", got)
		}
		consume(t, store, namedSpans("no", 3))
		consume(t, store, namedSpans("yes", 1))
		expectEvents(t, a, "event: span\ndata: "+
			`{"traceID":"00000000000000000000000000000001","spanID":"0000000000000001","parentID":"","service":"web",`+
			`"name":"yes","kind":"","start":"1714557600000000000","duration":100000000,"error":false}`+"\n\n")
		time.Sleep(interval)
		expectEvents(t, a, statusEvent(1, 0, 0))
		time.Sleep(2 * keepAlive)
		expectEvents(t, a, ":\n\n:\n\n")
		cancel()
		<-ended
		expectEvents(t, a, "")
	})
}

func TestTailIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		_, h := newAPI(t, store, func(c *Config) { c.MaxRate, c.MaxExamined = 10, 50 })
		ctx, cancel := context.WithCancel(t.Context())
		a, ended := watch(ctx, h, "")
		expectEvents(t, a, statusEvent(0, 0, 0))
		consume(t, store, namedSpans("x", 30))
		consume(t, store, namedSpans("y", 30))
		consume(t, store, namedSpans("z", 30))
		if n := strings.Count(a.received(), "event: span"); n != 10 {
			t.Errorf("%d spans, want 10", n)
		}
		time.Sleep(interval)
		expectEvents(t, a, statusEvent(10, 40, 40))
		consume(t, store, namedSpans(strings.Repeat("ä", 200), 1))
		if got := a.received(); !strings.Contains(got, `"name":"`+strings.Repeat("ä", 128)+`",`) {
			t.Errorf("in the next interval: %s", got)
		}
		cancel()
		<-ended
	})
}

func TestTailEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tails, h := newAPI(t, querytest.FilledMemory(t, querytest.Shop()), func(c *Config) {
			c.MaxClients, c.MaxDuration = 1, pipeline.Duration(90*time.Second)
		})
		a, ended := watch(t.Context(), h, "")
		synctest.Wait()
		if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/tail"); w.Code != http.StatusTooManyRequests {
			t.Errorf("client beyond max_clients: %d %s", w.Code, w.Body)
		}
		<-ended
		if got := a.received(); !strings.HasSuffix(got, "event: end\ndata: {\"reason\":\"max_duration (1m30s) reached\"}\n\n") {
			t.Errorf("received %q", got)
		}
		a, ended = watch(t.Context(), h, "")
		expectEvents(t, a, statusEvent(0, 0, 0))
		tails.Close()
		<-ended
		expectEvents(t, a, statusEvent(0, 0, 0)+"event: end\ndata: {\"reason\":\"server is shutting down\"}\n\n")
	})
}

// A client address leaves live tails for others.
func TestOneClientDoesNotTakeAllTails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tails, h := newAPI(t, querytest.FilledMemory(t, querytest.Shop()), func(c *Config) { c.MaxClients = 4 })
		from := func(ip string) context.Context {
			return server.WithClient(t.Context(), netip.MustParseAddr(ip))
		}
		greedy, polite := from("192.0.2.1"), from("192.0.2.2")
		_, _ = watch(greedy, h, "")
		_, _ = watch(greedy, h, "")
		synctest.Wait()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(greedy, http.MethodGet, "/api/ui/v1/tail", nil))
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "client 192.0.2.1 already uses 2 of tail.max_clients (4)") {
			t.Errorf("the third tail of a client: %d %s", w.Code, w.Body)
		}
		a, _ := watch(polite, h, "")
		expectEvents(t, a, statusEvent(0, 0, 0))
		tails.Close()
		synctest.Wait()
		if n := tails.clients.Running(); n != 0 {
			t.Errorf("%d clients are still admitted", n)
		}
	})
}

func TestTailReservesMemory(t *testing.T) {
	_, h := newAPI(t, querytest.FilledMemory(t, querytest.Shop()), nil, func(o *core.Options) { o.Memory = pipeline.NewQueryBudget(1 << 20) })
	if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/tail"); w.Code != http.StatusTooManyRequests ||
		!strings.Contains(w.Body.String(), "service.limits.query_memory") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// pipeListener is a listener with connections in memory, so that deadlines use the fake clock.
type pipeListener struct{ conns chan net.Conn }

func (p pipeListener) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipeListener) Close() error { return nil }

func (p pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// connect serves h with the timeouts of a listener and sends one request. The response is read from
// conn.
func connect(t *testing.T, h http.Handler) (conn net.Conn, stop func()) {
	t.Helper()
	ln := pipeListener{make(chan net.Conn)}
	srv := &http.Server{Handler: h, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(ln) }) //nolint:errcheck // returns when the server is closed
	ours, theirs := net.Pipe()
	ln.conns <- theirs
	if _, err := ours.Write([]byte("GET /api/ui/v1/tail HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	return ours, func() {
		ours.Close()
		close(ln.conns)
		srv.Close()
		serving.Wait()
	}
}

// The timeouts of the listener do not end the response.
func TestTailExtendsDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		_, h := newAPI(t, store, nil)
		conn, stop := connect(t, h)
		defer stop()
		go func() {
			time.Sleep(10 * time.Minute)
			store.Consume(context.Background(), namedSpans("late", 1)) //nolint:errcheck // then no event is received
		}()
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"name":"late"`) {
				return
			}
		}
		t.Error("the answer ended before the span was stored")
	})
}

// A client that does not read misses spans and is disconnected in the end. Consume does not wait
// for it.
func TestTailDoesNotBlockStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		tails, h := newAPI(t, store, func(c *Config) { c.MaxQueue = 4 << 10 })
		_, stop := connect(t, h)
		defer stop()
		synctest.Wait()
		began := time.Now()
		for range 1000 {
			consume(t, store, namedSpans("x", 100))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Consume waited for %s", took)
		}
		time.Sleep(2 * writeTimeout)
		synctest.Wait()
		if n := tails.clients.Running(); n != 0 {
			t.Errorf("%d clients are still admitted", n)
		}
	})
}
