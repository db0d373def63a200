package jaegerapi

import (
	"net/http"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func api(t testing.TB, store core.Store, change ...func(*core.Options)) http.Handler {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, change...)
	return httpapi.NewMux("", New(b).Routes())
}

func TestAPI(t *testing.T) {
	g := querytest.Golden{
		Routes: func(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b).Routes()) }, Store: querytest.ShopStore,
		Headers: []string{"Content-Type", "X-Content-Type-Options", WarningHeader},
	}
	g.Run(t, "testdata/*.txt")
}

func TestArchiveCopiesStoredSpans(t *testing.T) {
	archive := querytest.NewArchive(t, "empty")
	h := api(t, querytest.NewStore(querytest.Shop()), func(o *core.Options) { o.Archive, o.Limits.TraceSize = archive, 1 })
	if w := querytest.Ask(t, h, http.MethodPost, "/api/archive/1"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var services []string
	for _, b := range archive.Consumed {
		for _, s := range b.Services() {
			services = append(services, s.Service)
		}
	}
	if !slices.Equal(services, []string{"web", "a/b"}) {
		t.Errorf("archived spans of %v", services)
	}
	again := querytest.NewArchive(t, "shop")
	h = api(t, querytest.NewStore(querytest.Big()), func(o *core.Options) { o.Archive = again })
	if w := querytest.Ask(t, h, http.MethodPost, "/api/archive/ab000000000000000000000000000002"); w.Code != http.StatusOK ||
		len(again.Consumed) > 0 {
		t.Errorf("a trace that is only in the archive was archived again: %d %s", w.Code, w.Body)
	}
}
