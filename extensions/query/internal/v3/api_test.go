package v3

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAPI(t *testing.T) {
	g := querytest.Golden{
		Routes: func(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b).Routes()) }, Store: querytest.ShopStore,
		Headers: []string{"Content-Type", "X-Content-Type-Options"},
	}
	g.Run(t, "testdata/*.txt")
}
