package pageapi

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/page"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func routes(b *core.Backend, tails *Tails) http.Handler {
	return httpapi.NewMux("", New(b, Options{Tails: tails}).Routes())
}

func api(t testing.TB, store core.Store, change ...func(*core.Options)) http.Handler {
	t.Helper()
	return apiWithTails(t, store, NewTails(DefaultTailConfig()), change...)
}

func apiWithTails(t testing.TB, store core.Store, tails *Tails, change ...func(*core.Options)) http.Handler {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, change...)
	return routes(b, tails)
}

func TestAPI(t *testing.T) {
	g := querytest.Golden{
		Routes: func(b *core.Backend) http.Handler {
			return httpapi.NewMux("", New(b, Options{Tails: NewTails(DefaultTailConfig()), Intake: testIntake}).Routes())
		},
		Store: querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"},
	}
	g.Run(t, "testdata/*.txt")
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		counted uint64
		share   float64
		want    uint64
	}{{10, 1, 10}, {10, 0.5, 20}, {1, 0.3, 3}, {0, 0.1, 0}, {7, 0, 7}, {1 << 60, 1e-9, 1 << 63}} {
		if got := page.Estimate(c.counted, c.share); got != c.want {
			t.Errorf("%d of a share of %v: %d, want %d", c.counted, c.share, got, c.want)
		}
	}
}

// HEAD requests for streams are answered at once, without running the query.
func TestHeadOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := querytest.NewStore(querytest.Shop())
		s.Hang = true
		for target, want := range map[string]string{"/api/ui/v1/tail": eventStream, shopSearch: ndjson} {
			store := core.Store(s)
			if want == eventStream {
				store = querytest.FilledMemory(t, querytest.Shop())
			}
			h := api(t, store)
			began := time.Now()
			w := querytest.Ask(t, h, http.MethodHead, target)
			if took := time.Since(began); w.Code != http.StatusOK || w.Header().Get("Content-Type") != want || took > 0 {
				t.Errorf("HEAD %s: %d %v after %s", target, w.Code, w.Header(), took)
			}
		}
	})
}
