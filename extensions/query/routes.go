package query

import (
	"net/http"
	"slices"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/jaegerapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/tempo"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/baseline"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/errorgroups"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/explain"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/servicemap"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/spangroups"
	"github.com/tracing-backend/tracing/extensions/query/internal/v3"
	"github.com/tracing-backend/tracing/internal/docsite"
)

// docsPath is the prefix of the documentation's paths.
const docsPath = "/docs"

// newRoutes returns the HTTP APIs, the given other routes, the documentation and the web UI, below
// the base path of the UI.
func newRoutes(b *core.Backend, pages *ui, o uiapi.Options, tails *live.API, others ...httpapi.Route) *http.ServeMux {
	base := pages.base
	mux := httpapi.NewMux(base, apiRoutes(b, o, tails, others))
	mux.HandleFunc(base+"/tempo/", tempo.NotFound)
	if pages.documents != nil {
		documentation := docsite.Handler(base+docsPath, pages.documents)
		mux.Handle("GET "+base+docsPath, documentation)
		mux.Handle("GET "+base+docsPath+"/", documentation)
	}
	mux.Handle(pages.pattern(), pages)
	return mux
}

// apiRoutes returns the routes of the HTTP APIs and others. docs/openapi.json lists all.
func apiRoutes(b *core.Backend, o uiapi.Options, tails *live.API, others []httpapi.Route) []httpapi.Route {
	return slices.Concat(
		jaegerapi.New(b).Routes(),
		v3.New(b).Routes(),
		uiapi.New(b, o).Routes(),
		tails.Routes(),
		servicemap.New(b).Routes(),
		baseline.New(b).Routes(),
		spangroups.New(b).Routes(),
		explain.Routes(b),
		errorgroups.New(b).Routes(),
		tempo.New(b, o.Version).Routes(),
		others,
	)
}
