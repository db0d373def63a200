package uiapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// sampleStore answers aggregations with a part of what it could count.
type sampleStore struct {
	querytest.FullStore
	share float64 // 0: no response before the end of the context
}

func (s sampleStore) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if s.share == 0 {
		<-ctx.Done()
		return tracestore.Aggregate{}, ctx.Err()
	}
	found, err := s.FullStore.Aggregate(ctx, q, a)
	found.Share = s.share
	return found, err
}

// Completions come from the lists of all spans if reading the matching spans takes too long, or if
// a sample of them has none.
func TestCompletionsFallBack(t *testing.T) {
	const window = "start=1714557600000000000&end=1714557660000000000&q="
	f := func(share float64, target, q, want string, takes time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h := api(t, sampleStore{querytest.FullStore{Store: querytest.NewStore(querytest.Shop())}, share})
			began := time.Now()
			body := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/"+target+"&"+window+url.QueryEscape(q)).Body.String()
			if took := time.Since(began); !strings.Contains(body, want) || took != takes {
				t.Errorf("%s of %s in a share of %g: %s after %s, want %s after %s", target, q, share, body, took, want, takes)
			}
		})
	}
	f(1, "values?key=span.db", `{ name = "SELECT" }`, `"names":["\u003cx\u003e"],"more":false,"restricted":true`, 0)
	f(1, "values?key=span.db", `{ name = "cron" }`, `"names":[],"more":false,"restricted":true`, 0)
	f(0.5, "values?key=span.db", `{ name = "SELECT" }`, `"names":["\u003cx\u003e"],"more":true,"restricted":true`, 0)
	f(0.5, "values?key=span.db", `{ name = "cron" }`, `"names":["\u003cx\u003e"],"more":false,"restricted":false`, 0)
	f(0, "values?key=span.db", `{ name = "SELECT" }`, `"names":["\u003cx\u003e"],"more":false,"restricted":false`, completionTime)
	f(1, "keys?prefix=span.", `{ name = "SELECT" }`, `"names":["span.db"],"more":false,"restricted":true`, 0)
	f(0.5, "keys?prefix=span.", `{ name = "SELECT" }`, `"names":["span.db"],"more":true,"restricted":true`, 0)
	f(0.5, "keys?prefix=span.", `{ name = "none" }`, `"restricted":false`, 0)
	f(0, "keys?prefix=span.", `{ name = "SELECT" }`, `"restricted":false`, completionTime)
}

// A query that ends while completions are restricted fails; it does not read the other lists.
func TestCompletionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := api(t, sampleStore{querytest.FullStore{Store: querytest.NewStore(querytest.Shop())}, 0}, func(o *core.Options) {
			o.Limits.Timeout = completionTime / 2
		})
		if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/keys?q="+url.QueryEscape("{ }")); w.Code != http.StatusGatewayTimeout {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// Text that is not valid UTF-8 begins no pattern.
func TestNamesInUTF8(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, ptrace.NewTraces()))
	paths := []string{"values?key=service&prefix=%ff&q={}", "values?key=name&text=a%ff&q={error}", "keys?text=%ff", "keys?prefix=%c3"}
	for _, path := range paths {
		w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/"+path)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "must be valid UTF-8") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
