package query

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/internal/webui"
	"github.com/tracing-backend/tracing/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api returns the routes over a store, with low limits.
func api(t testing.TB, store Store, change ...func(*core.Options)) (http.Handler, *prometheus.Registry) {
	t.Helper()
	b, reg := querytest.NewBackend(t, store, change...)
	return routes(b), reg
}

// routes returns the routes with the placeholder of the web UI.
func routes(b *core.Backend) http.Handler {
	u := &ui{boot: boot{Auth: []string{}}}
	var err error
	if u.site, err = u.newSite(webui.Placeholder()); err != nil {
		panic("BUG: " + err.Error())
	}
	return httpapi.Compress(newRoutes(b, u, uiapi.Options{Tail: live.DefaultConfig()}, live.New(b, live.DefaultConfig())))
}

func TestRoutes(t *testing.T) {
	g := querytest.Golden{
		Routes: routes, Store: querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"},
	}
	g.Run(t, "testdata/*.txt")
}

// Names and values that are too long for users to choose from are not listed.
func TestLongTextsAreNotListed(t *testing.T) {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "web")
	for i, text := range []string{"short", strings.Repeat("x", core.MaxListedText), strings.Repeat("y", core.MaxListedText+1)} {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(i+1), 0, text, 0)
		s.Attributes().PutStr("key", text)
		s.Attributes().PutStr(text, "value")
	}
	h, _ := api(t, querytest.FilledMemory(t, td))
	for _, target := range []string{
		"/api/ui/v1/keys?prefix=span.", "/api/ui/v1/values?key=span.key", "/api/ui/v1/values?key=name&service=web",
		"/tempo/api/search/tags", "/tempo/api/v2/search/tag/span.key/values", "/tempo/api/v2/search/tag/name/values",
	} {
		w := querytest.Ask(t, h, http.MethodGet, target)
		if got := w.Body.String(); w.Code != http.StatusOK || strings.Count(got, "x") < core.MaxListedText || strings.Contains(got, "yy") {
			t.Errorf("%s: %d %s", target, w.Code, got)
		}
	}
	if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/values?key=span.key&limit=2"); !strings.Contains(w.Body.String(), `"more":true`) {
		t.Errorf("more is not set: %s", w.Body)
	}
}

// The memory of responses, and of the aggregations for them, counts toward
// service.limits.query_memory.
func TestAnswersReserveMemory(t *testing.T) {
	memory := pipeline.NewQueryBudget(100 << 20)
	h, _ := api(t, querytest.FilledMemory(t, querytest.Shop()), func(o *core.Options) { o.Memory = memory })
	others, err := memory.Reserve(99 << 20)
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{
		"/api/ui/v1/facets", "/api/ui/v1/compare?sel_min=1ms", "/api/ui/v1/heatmap?columns=2000",
		"/tempo/api/v2/search/tags", "/tempo/api/v2/search/tag/statusMessage/values",
	}
	for _, target := range targets {
		w := querytest.Ask(t, h, http.MethodGet, target)
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "service.limits.query_memory") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	others.Release()
	for _, target := range targets {
		if w := querytest.Ask(t, h, http.MethodGet, target); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}
