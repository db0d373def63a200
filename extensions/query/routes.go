package query

import (
	"net/http"
	"slices"

	"github.com/tracing-backend/tracing/extensions/query/internal/baseline"
	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/errorgroups"
	"github.com/tracing-backend/tracing/extensions/query/internal/explain"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/jaegerapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/live"
	"github.com/tracing-backend/tracing/extensions/query/internal/pageapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/servicemap"
	"github.com/tracing-backend/tracing/extensions/query/internal/spangroups"
	"github.com/tracing-backend/tracing/extensions/query/internal/tempo"
	"github.com/tracing-backend/tracing/extensions/query/internal/v3"
)

// newRoutes returns the HTTP APIs, others among them, and the web UI, below the base path of the
// UI.
func newRoutes(b *core.Backend, pages *ui, o pageapi.Options, tails *live.API, others ...httpapi.Route) *http.ServeMux {
	base := pages.base
	mux := httpapi.NewMux(base, slices.Concat(
		jaegerapi.New(b).Routes(),
		v3.New(b).Routes(),
		pageapi.New(b, o).Routes(),
		tails.Routes(),
		servicemap.New(b).Routes(),
		baseline.New(b).Routes(),
		spangroups.New(b).Routes(),
		[]httpapi.Route{explain.Route(b)},
		errorgroups.New(b).Routes(),
		tempo.New(b, o.Version).Routes(),
		others,
	))
	mux.HandleFunc(base+"/tempo/", tempo.NotFound)
	mux.Handle(pages.pattern(), pages)
	return mux
}
