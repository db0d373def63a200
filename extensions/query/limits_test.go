package query

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// allPaths are requests of all kinds.
func allPaths() []string {
	const times = "query.startTimeMin=2024-05-01T09:00:00Z&query.startTimeMax=2024-05-01T11:00:00Z"
	return []string{"/api/services", "/api/operations?service=x", "/api/services/x/operations", "/api/traces/1", "/api/traces?service=web",
		"/api/traces?traceID=1", "/api/dependencies", "/api/v3/services", "/api/v3/operations?service=x", "/api/v3/traces/1",
		"/api/v3/traces?" + times, "/api/v3/trace-summaries?" + times, "/tempo/api/traces/1", "/tempo/api/v2/traces/1", "/tempo/api/search",
		"/tempo/api/v2/search/tag/name/values", "/api/ui/v1/outline/1/spans?ids=0000000000000001",
		"/api/ui/v1/outline/1/find?q=x"}
}

// admitAll admits the maximum number of queries.
func admitAll(t *testing.T, b *core.Backend) (slots []*core.Slot) {
	t.Helper()
	for range b.Limits().Queries {
		slot, err := b.Admit(t.Context(), core.OpGetTrace)
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, slot)
	}
	return slots
}

func TestTooManyQueries(t *testing.T) {
	b, reg := querytest.NewBackend(t, querytest.NewStore(querytest.Shop()))
	routes := routes(b)
	slots := admitAll(t, b)
	for _, path := range allPaths() {
		w := querytest.Ask(t, routes, http.MethodGet, path)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
			!strings.Contains(w.Body.String(), "max_concurrent_queries is 10") {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
	for _, slot := range slots {
		slot.Release()
	}
	if w := querytest.Ask(t, routes, http.MethodGet, "/api/traces/1"); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
	for name, n := range querytest.Counts(t, reg, "tracing_query_requests_total") {
		if strings.HasSuffix(name, "err") && n > 0 {
			t.Errorf("counted as an error: %s", name)
		}
	}
}

// slowClient reads the first part of a response, and nothing more until it disconnects.
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

// Answers to slow clients use a limited amount of memory, which is freed when they disconnect.
func TestSlowReaders(t *testing.T) {
	store := querytest.NewStore(querytest.Big())
	trace, err := otlpdata.Concat(store.Pieces(otlpdata.TraceID{15: 1})...)
	if err != nil {
		t.Fatal(err)
	}
	memory := pipeline.NewQueryBudget(3*core.SlotMemory + int64(trace.Size())*5/2)
	b, _ := querytest.NewBackend(t, store, func(o *core.Options) { o.Limits.Queries, o.Memory = 3, memory })
	routes := routes(b)
	synctest.Test(t, func(t *testing.T) {
		client := &slowClient{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		for range 2 {
			go routes.ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/api/traces/1", nil))
			<-client.takes
		}
		for _, path := range []string{"/api/traces/2", "/api/traces?service=svc", "/api/v3/traces/3"} {
			w := querytest.Ask(t, routes, http.MethodGet, path)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" ||
				!strings.Contains(w.Body.String(), "service.limits.query_memory") {
				t.Errorf("%s: %d %v %.200s", path, w.Code, w.Header(), w.Body)
			}
		}
		if w := querytest.Ask(t, routes, http.MethodGet, "/api/services"); w.Code != http.StatusOK {
			t.Errorf("request without traces: %d %s", w.Code, w.Body)
		}
		close(client.gone)
		synctest.Wait()
	})
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
	for _, slot := range admitAll(t, b) { // no query is left
		slot.Release()
	}
	if w := querytest.Ask(t, routes, http.MethodGet, "/api/traces/2"); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// A query that does not fit into the memory of all queries is refused before the store does
// anything.
func TestRefusedBeforeWork(t *testing.T) {
	memory := pipeline.NewQueryBudget(10 * core.SlotMemory)
	store := querytest.NewStore(querytest.Shop())
	store.OnFind = func(tracestore.Query) { t.Error("the store searches") }
	store.OnTraces = func([]tracestore.TraceRef) { t.Error("the store reads a trace") }
	store.OnMetrics = func(tracestore.MetricsQuery) { t.Error("the store reads metrics") }
	store.Fail = errors.New("store was asked for names")
	h, _ := api(t, store, func(o *core.Options) { o.Memory = memory })
	others, err := memory.Reserve(9*core.SlotMemory + 1)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Release()
	for _, path := range append(allPaths(), "/api/ui/v1/search?q="+url.QueryEscape("{ root } >> { error }"), "/api/ui/v1/outline/1",
		"/api/metrics/calls?service=web") {
		w := querytest.Ask(t, h, http.MethodGet, path)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %d, Retry-After %q, %.200s", path, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
}

// A client that disconnects cancels the context of the store.
func TestCanceledRequestCancelsStore(t *testing.T) {
	for _, path := range allPaths() {
		synctest.Test(t, func(t *testing.T) {
			store := querytest.NewStore(querytest.Shop())
			store.Hang = true
			h, _ := api(t, store)
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan *httptest.ResponseRecorder)
			go func() { over <- querytest.Record(h, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)) }()
			synctest.Wait() // the store hangs
			cancel()
			if w := <-over; w.Body.Len() > 0 {
				t.Errorf("%s: %s", path, w.Body)
			}
		})
	}
}
