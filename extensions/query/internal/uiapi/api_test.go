package uiapi

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/linktemplate"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func routes(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b, Options{}).Routes()) }

func api(t testing.TB, store core.Store, change ...func(*core.Options)) http.Handler {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, change...)
	return routes(b)
}

func TestAPI(t *testing.T) {
	g := querytest.Golden{
		Routes: func(b *core.Backend) http.Handler {
			return httpapi.NewMux("", New(b, Options{Tail: live.DefaultConfig(), Intake: testIntake, Links: testLinks()}).Routes())
		},
		Store: querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"},
	}
	g.Run(t, "testdata/*.txt")
}

func testLinks() []linktemplate.Template {
	return []linktemplate.Template{
		{Name: "Logs", URL: "https://logs.example.com/?q={traceId}"},
		{Name: "Host", URL: "https://hosts.example.com/{resource.host.name}", On: linktemplate.OnAttribute, Key: "host.name", Requires: []string{"attribute.a"}},
	}
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		counted uint64
		share   float64
		want    uint64
	}{{10, 1, 10}, {10, 0.5, 20}, {1, 0.3, 3}, {0, 0.1, 0}, {7, 0, 7}, {1 << 60, 1e-9, 1 << 63}} {
		if got := route.Estimate(c.counted, c.share); got != c.want {
			t.Errorf("%d of a share of %v: %d, want %d", c.counted, c.share, got, c.want)
		}
	}
}

// A HEAD request for a stream is answered immediately, without running the query.
func TestHeadOfSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := querytest.NewStore(querytest.Shop())
		s.Hang = true
		h := api(t, s)
		began := time.Now()
		w := querytest.Ask(t, h, http.MethodHead, shopSearch)
		if took := time.Since(began); w.Code != http.StatusOK || w.Header().Get("Content-Type") != ndjson || took > 0 {
			t.Errorf("%d %v after %s", w.Code, w.Header(), took)
		}
	})
}
