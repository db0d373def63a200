package query

import (
	"net/http"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// configAnswer is the data of GET /api/ui/v1/config: what a page must know before it asks anything.
type configAnswer struct {
	Version         uiVersion       `json:"version"`
	Capabilities    abilities       `json:"capabilities"`
	DefaultLookback int64           `json:"defaultLookback"`
	Limits          uiLimits        `json:"limits"`
	Language        languageOutline `json:"language"`
}

// abilities is what there is behind the page.
type abilities struct {
	Aggregates   bool `json:"aggregates"`
	Archive      bool `json:"archive"`
	Metrics      bool `json:"metrics"`
	Dependencies bool `json:"dependencies"`
	Attributes   bool `json:"attributes"` // keys and values are listed
	Tail         bool `json:"tail"`
	Tenancy      bool `json:"tenancy"`
}

type uiLimits struct {
	Traces      int   `json:"traces"`    // in one answer
	TraceSize   int   `json:"traceSize"` // spans that are shown of a trace
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

// languageOutline is what a page needs to help people to write searches.
type languageOutline struct {
	Fields        []property `json:"fields"`
	Scopes        []string   `json:"scopes"`
	Comparisons   []string   `json:"comparisons"`
	Logical       []string   `json:"logical"`    // between conditions
	Structural    []string   `json:"structural"` // between pairs of braces
	DurationUnits []string   `json:"durationUnits"`
}

// uiConfig answers GET /api/ui/v1/config.
func (h *handler) uiConfig(w http.ResponseWriter, r *http.Request) {
	answer := configAnswer{
		Version: h.ui.version, Capabilities: h.abilities(), DefaultLookback: uiLookback.Nanoseconds(),
		Limits: uiLimits{
			Traces: h.limits.traces, TraceSize: h.limits.traceSize, Scanned: h.limits.scanned, Aggregated: h.limits.aggregated,
			Timeout: h.limits.timeout.Nanoseconds(), Columns: tracestore.MaxColumns, Exemplars: tracestore.MaxExemplars,
			Facets: tracestore.MaxFacets, FacetValues: tracestore.MaxFacetValues, SearchText: traceql.MaxText, TailRate: h.tails.config.MaxRate,
		},
		Language: languageOutline{
			Fields: properties(), Comparisons: []string{"=", "!=", "<", "<=", ">", ">=", "=~", "!~"}, Logical: []string{"&&", "||", "!"},
			Structural: []string{">>", ">", "&&", "||"}, DurationUnits: []string{"ns", "us", "ms", "s", "m", "h", "d"},
		},
	}
	for _, s := range attributeScopes() {
		answer.Language.Scopes = append(answer.Language.Scopes, s.prefix)
	}
	h.answerData(w, r, &answer, "")
}

func (h *handler) abilities() abilities {
	a := abilities{Archive: h.archive != nil, Tenancy: h.tenancy}
	_, a.Aggregates = h.store.(tracestore.Aggregator)
	_, a.Metrics = h.store.(tracestore.Metrics)
	_, a.Dependencies = h.store.(tracestore.Dependencies)
	_, a.Attributes = h.store.(tracestore.AttributeCatalog)
	_, a.Tail = h.store.(tracestore.Follower)
	a.Tail = a.Tail && h.tails.config.MaxClients > 0
	return a
}
