package uiapi

import (
	"context"
	"net/http"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/linktemplate"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// configAnswer is the data of GET /api/ui/v1/config: the data that the UI needs before its first
// query.
type configAnswer struct {
	Version         httpapi.Version      `json:"version"`
	Capabilities    capabilities         `json:"capabilities"`
	DefaultLookback int64                `json:"defaultLookback"`
	Limits          limits               `json:"limits"`
	Language        language             `json:"language"`
	Links           []linktemplate.ForUI `json:"links"`
}

// capabilities say which features the store and the configuration support.
type capabilities struct {
	Aggregates   bool `json:"aggregates"`
	Archive      bool `json:"archive"`
	Metrics      bool `json:"metrics"`
	Dependencies bool `json:"dependencies"`
	Attributes   bool `json:"attributes"` // the store lists keys and values
	Tail         bool `json:"tail"`
	Tenancy      bool `json:"tenancy"`
	Demo         bool `json:"demo"` // demo data can be loaded into an empty store
}

// limits are the limits of queries.
type limits struct {
	Traces      int   `json:"traces"`    // in one response
	TraceSize   int   `json:"traceSize"` // spans shown of a trace
	Scanned     int   `json:"scannedSpans"`
	Aggregated  int   `json:"aggregatedSpans"`
	Timeout     int64 `json:"queryTimeout"`
	Columns     int   `json:"columns"`
	Exemplars   int   `json:"exemplars"`
	Facets      int   `json:"facets"`
	FacetValues int   `json:"facetValues"`
	SearchText  int   `json:"searchText"` // bytes
	TailRate    int   `json:"tailSpansPerSecond"`
}

// language is the data with which the UI helps users to write searches.
type language struct {
	Fields        []property `json:"fields"`
	Scopes        []string   `json:"scopes"`
	Comparisons   []string   `json:"comparisons"`
	Logical       []string   `json:"logical"`    // between conditions
	Structural    []string   `json:"structural"` // between pairs of braces
	DurationUnits []string   `json:"durationUnits"`
}

// config serves GET /api/ui/v1/config.
func (a *API) config(w http.ResponseWriter, r *http.Request) {
	l := a.backend.Limits()
	answer := configAnswer{
		Version: a.version, Capabilities: a.capabilities(r.Context()), DefaultLookback: route.DefaultLookback.Nanoseconds(), Links: a.links,
		Limits: limits{
			Traces: l.Traces, TraceSize: l.TraceSize, Scanned: l.Scanned, Aggregated: l.Aggregated,
			Timeout: l.Timeout.Nanoseconds(), Columns: tracestore.MaxColumns, Exemplars: tracestore.MaxExemplars,
			Facets: tracestore.MaxFacets, FacetValues: tracestore.MaxFacetValues, SearchText: traceql.MaxText,
			TailRate: a.tail.MaxRate,
		},
		Language: language{
			Fields: properties(), Comparisons: []string{"=", "!=", "<", "<=", ">", ">=", "=~", "!~"}, Logical: []string{"&&", "||", "!"},
			Structural: []string{">>", ">", "&&", "||"}, DurationUnits: []string{"ns", "us", "ms", "s", "m", "h", "d"},
		},
	}
	for _, p := range tracestore.Places() {
		if p.Place.HasKey() {
			answer.Language.Scopes = append(answer.Language.Scopes, p.Name)
		}
	}
	route.WriteData(a.backend, w, r, &answer, nil)
}

func (a *API) capabilities(ctx context.Context) capabilities {
	c := capabilities{Archive: a.backend.HasArchive(), Tenancy: a.tenancy, Demo: a.demo != nil && a.demo()}
	_, c.Aggregates = core.StoreAs[tracestore.Aggregator](ctx, a.backend)
	_, c.Metrics = core.StoreAs[tracestore.Metrics](ctx, a.backend)
	_, c.Dependencies = core.StoreAs[tracestore.Edges](ctx, a.backend)
	c.Attributes = c.Aggregates // see tracestore.Catalog
	_, c.Tail = core.StoreAs[tracestore.Follower](ctx, a.backend)
	c.Tail = c.Tail && a.tail.MaxClients > 0
	return c
}
