// Package uiapi serves /api/ui/v1, the API of the project's own web UI. It changes together with
// the UI.
//
// Times are decimal nanoseconds since the Unix epoch; in responses they are strings, because
// JavaScript numbers cannot represent them. Durations are written like `1.5s` in parameters and are
// numbers of nanoseconds in responses. Ids are hex digits in full length. Lists of many objects
// with the same members are columns: one object with a list for each member, all of the same
// length.
package uiapi

import (
	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/linktemplate"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// API is the handlers.
type API struct {
	backend *core.Backend
	version httpapi.Version
	tail    live.Config
	tenancy bool
	links   []linktemplate.ForUI
	intake  func() status.Intake // nil: this process receives nothing
	demo    func() bool          // nil: no demo data
}

// Options configure an API.
type Options struct {
	Version httpapi.Version
	Tail    live.Config
	Tenancy bool // requests must name their tenant
	// Links are link templates, which the UI fills in.
	Links []linktemplate.Template
	// Intake returns what this process has received. nil means that it receives nothing.
	Intake func() status.Intake
	// Demo reports whether demo data can be loaded. nil means that it cannot.
	Demo func() bool
}

// New returns the API over a backend.
func New(b *core.Backend, o Options) *API {
	a := &API{backend: b, version: o.Version, tail: o.Tail, tenancy: o.Tenancy, links: []linktemplate.ForUI{}, intake: o.Intake,
		demo: o.Demo}
	for _, l := range o.Links {
		a.links = append(a.links, l.ForUI())
	}
	return a
}

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/config", Handler: a.config},
		{Pattern: "GET /api/ui/v1/search", Handler: a.search},
		{Pattern: "GET /api/ui/v1/critical", Handler: route.Handler(a.backend, core.OpExplain, a.critical)},
		{Pattern: "GET /api/ui/v1/heatmap", Handler: route.Handler(a.backend, core.OpAggregate, a.heatmap)},
		{Pattern: "GET /api/ui/v1/facets", Handler: route.Handler(a.backend, core.OpAggregate, a.facets)},
		{Pattern: "GET /api/ui/v1/compare", Handler: route.Handler(a.backend, core.OpAggregate, a.compare)},
		{Pattern: "GET /api/ui/v1/services", Handler: route.Handler(a.backend, core.OpGetPerformance, a.services)},
		{Pattern: "GET /api/ui/v1/service", Handler: route.Handler(a.backend, core.OpGetPerformance, a.service)},
		{Pattern: "GET /api/ui/v1/incidents", Handler: route.Handler(a.backend, core.OpGetPerformance, a.incidents)},
		{Pattern: "GET /api/ui/v1/changes", Handler: route.Handler(a.backend, core.OpGetChanges, a.changes)},
		{Pattern: "GET /api/ui/v1/ingest", Handler: route.Handler(a.backend, core.OpGetUsage, a.ingest)},
		{Pattern: "GET /api/ui/v1/keys", Handler: route.Handler(a.backend, core.OpGetTags, a.keys)},
		{Pattern: "GET /api/ui/v1/values", Handler: route.Handler(a.backend, core.OpGetTagValues, a.values)},
		{Pattern: "GET /api/ui/v1/outline/{id}", Handler: a.outline},
		{Pattern: "GET /api/ui/v1/outline/{id}/spans", Handler: a.spans},
		{Pattern: "GET /api/ui/v1/outline/{id}/find", Handler: a.find},
		{Pattern: "GET /api/ui/v1/outline/{id}/keys", Handler: a.traceKeys},
		{Pattern: "GET /api/ui/v1/outline/{id}/values", Handler: a.traceValues},
	}
}
