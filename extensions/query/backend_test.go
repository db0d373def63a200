package query

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// allPaths are questions of every kind.
func allPaths() []string {
	const times = "query.startTimeMin=2024-05-01T09:00:00Z&query.startTimeMax=2024-05-01T11:00:00Z"
	return []string{"/api/services", "/api/operations?service=x", "/api/services/x/operations", "/api/traces/1", "/api/traces?service=web",
		"/api/traces?traceID=1", "/api/dependencies", "/api/v3/services", "/api/v3/operations?service=x", "/api/v3/traces/1",
		"/api/v3/traces?" + times, "/api/v3/trace-summaries?" + times, "/tempo/api/traces/1", "/tempo/api/v2/traces/1", "/tempo/api/search",
		"/tempo/api/v2/search/tag/name/values"}
}

func TestTooManyQueries(t *testing.T) {
	var h *handler
	routes, reg := api(t, newFakeStore(shop()), func(made *handler) { h = made })
	var turns []*turn
	for range h.limits.queries {
		turn, err := h.admit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turn)
	}
	for _, path := range allPaths() {
		w := ask(t, routes, http.MethodGet, path)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "max_concurrent_queries (10)") {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
	for _, turn := range turns {
		turn.done()
	}
	if w := ask(t, routes, http.MethodGet, "/api/traces/1"); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
	for name, n := range gather(t, reg, "tracing_query_requests_total") {
		if strings.HasSuffix(name, "err") && n > 0 {
			t.Errorf("counted as a failure: %s", name)
		}
	}
}

// slowClient takes the first part of an answer, and nothing more until it goes.
type slowClient struct {
	*httptest.ResponseRecorder
	takes chan struct{}
	gone  chan struct{}
}

func (s *slowClient) Write(p []byte) (int, error) {
	s.takes <- struct{}{}
	<-s.gone
	return 0, net.ErrClosed
}

// What slow clients make the process hold is bounded, and is given back when they go.
func TestSlowReaders(t *testing.T) {
	store := newFakeStore(big())
	trace, err := otlpdata.Concat(store.pieces(otlpdata.TraceID{15: 1})...)
	if err != nil {
		t.Fatal(err)
	}
	var h *handler
	routes, _ := api(t, store, func(made *handler) {
		h = made
		h.limits.queries = 100
		h.memory = pipeline.NewBudget(int64(trace.Size()) * 5 / 2)
	})
	synctest.Test(t, func(t *testing.T) {
		client := &slowClient{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		for range 2 {
			go routes.ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/api/traces/1", nil))
			<-client.takes
		}
		for _, path := range []string{"/api/traces/2", "/api/traces?service=svc", "/api/v3/traces/3"} {
			w := ask(t, routes, http.MethodGet, path)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "max_answer_memory") {
				t.Errorf("%s: %d %v %.200s", path, w.Code, w.Header(), w.Body)
			}
		}
		if w := ask(t, routes, http.MethodGet, "/api/services"); w.Code != http.StatusOK {
			t.Errorf("what holds nothing: %d %s", w.Code, w.Body)
		}
		close(client.gone)
		synctest.Wait()
	})
	if used := h.memory.Used(); used != 0 || h.running.Load() != 0 {
		t.Errorf("%d bytes are still held, %d queries run", used, h.running.Load())
	}
	if w := ask(t, routes, http.MethodGet, "/api/traces/2"); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// A client that goes away ends the work of the store.
func TestStoreIsToldThatTheClientIsGone(t *testing.T) {
	for _, path := range allPaths() {
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore(shop())
			store.hang = true
			h, _ := api(t, store)
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan *httptest.ResponseRecorder)
			go func() { over <- record(h, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)) }()
			synctest.Wait() // the store hangs
			cancel()
			if w := <-over; w.Body.Len() > 0 {
				t.Errorf("%s: %s", path, w.Body)
			}
		})
	}
}

func TestArchiveTakesWhatIsStored(t *testing.T) {
	archive := archiveOf(t, "empty")
	h, _ := api(t, newFakeStore(shop()), func(h *handler) { h.archive, h.limits.traceSize = archive, 1 })
	if w := ask(t, h, http.MethodPost, "/api/archive/1"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var services []string
	for _, b := range archive.took {
		for _, s := range b.Services() {
			services = append(services, s.Service)
		}
	}
	if !slices.Equal(services, []string{"web", "a/b"}) {
		t.Errorf("archived spans of %v", services)
	}
	again := archiveOf(t, "shop")
	h, _ = api(t, newFakeStore(big()), func(h *handler) { h.archive = again })
	if w := ask(t, h, http.MethodPost, "/api/archive/ab000000000000000000000000000002"); w.Code != http.StatusOK || len(again.took) > 0 {
		t.Errorf("a trace of the archive was archived: %d %s", w.Code, w.Body)
	}
}

// An answer that is torn in the middle of a trace must not look whole.
func TestTornAnswer(t *testing.T) {
	l := newList(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	err := l.add(func(dst []byte) ([]byte, error) { return append(dst, "half"...), io.ErrUnexpectedEOF })
	if err != io.ErrUnexpectedEOF || string(l.buf) != `{"data":` {
		t.Errorf("error %v, left %s", err, l.buf)
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v", v)
		}
	}()
	err = l.add(func(dst []byte) ([]byte, error) {
		b, err := l.spill(append(dst, make([]byte, flushAt)...))
		if err != nil {
			return b, err
		}
		return b, io.ErrUnexpectedEOF
	})
	t.Errorf("went on with %v", err)
}
