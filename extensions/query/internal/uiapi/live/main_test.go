package live

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newAPI returns an API with changed settings, and its handler.
func newAPI(t testing.TB, store core.Store, config func(*Config), change ...func(*core.Options)) (*API, http.Handler) {
	t.Helper()
	c := DefaultConfig()
	if config != nil {
		config(&c)
	}
	b, _ := querytest.NewBackend(t, store, change...)
	a := New(b, c)
	return a, httpapi.NewMux("", a.Routes())
}

// client records the events that it receives.
type client struct {
	querytest.Discard
	mu     sync.Mutex
	events strings.Builder
}

func (a *client) Flush() {}

func (a *client) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.events.Write(p)
}

// received returns the events since the last call.
func (a *client) received() string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.events.Reset()
	return a.events.String()
}

// watch sends a request. ended is closed when the response ends.
func watch(ctx context.Context, h http.Handler, query string) (a *client, ended chan struct{}) {
	a, ended = &client{Discard: querytest.NewDiscard()}, make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(a, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/ui/v1/tail"+query, nil))
	}()
	return a, ended
}

// namedSpans returns a batch of n spans.
func namedSpans(name string, n int) *otlpdata.Batch {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "web")
	for i := range n {
		querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(1+i), 0, name, 0)
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

func consume(t *testing.T, store pipeline.Consumer, b *otlpdata.Batch) {
	t.Helper()
	if err := store.Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func expectEvents(t *testing.T, a *client, want string) {
	t.Helper()
	if got := a.received(); got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

func statusEvent(shown, leftOut, missed int) string {
	return fmt.Sprintf("event: status\ndata: {\"shown\":%d,\"leftOut\":%d,\"missed\":%d}\n\n", shown, leftOut, missed)
}

func TestErrors(t *testing.T) {
	g := querytest.Golden{
		Routes: func(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b, DefaultConfig()).Routes()) },
		Store:  querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"},
	}
	g.Run(t, "testdata/*.txt")
}

// A HEAD request is answered immediately, without a client.
func TestHead(t *testing.T) {
	_, h := newAPI(t, querytest.FilledMemory(t, querytest.Shop()), nil)
	w := querytest.Ask(t, h, http.MethodHead, "/api/ui/v1/tail?of=traces")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != eventStream {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
