// Package deployment serves the state of a deployment for operators: its processes, their sampling
// strategies, and why a trace is missing.
//
// Unlike in other responses of /api/ui/v1, times are in RFC 3339 format, as in the responses of the
// `admin` extension, from which the data of other processes comes.
package deployment

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// API is the handlers.
type API struct {
	backend *core.Backend
	self    processview.Process // nil: unknown
	peers   *Peers              // nil: none are configured
	tenancy bool
}

// New returns the API over a backend. self is this process, or nil; peers are the others, or nil.
// With tenancy, requests must name their tenant, and responses contain nothing that depends on the
// data of others.
func New(b *core.Backend, self processview.Process, peers *Peers, tenancy bool) *API {
	return &API{backend: b, self: self, peers: peers, tenancy: tenancy}
}

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/status", Handler: route.Handler(a.backend, core.OpGetStatus, a.status)},
		{Pattern: "GET /api/ui/v1/sampling", Handler: route.Handler(a.backend, core.OpGetStatus, a.sampling)},
		{Pattern: "GET /api/ui/v1/sampling/explain", Handler: route.Handler(a.backend, core.OpGetStatus, a.explain)},
	}
}

// process is the part of a response about one process.
type process[T any] struct {
	Address string `json:"address"` // "" for this process
	Error   string `json:"error,omitempty"`
	Data    *T     `json:"data"` // null if the process did not respond
}

// processesAnswer is the data of GET /api/ui/v1/status and /sampling.
type processesAnswer[T any] struct {
	// Peers is the number of configured processes. If it is 0, the response is about this process
	// only.
	Peers     int          `json:"peers"`
	Hidden    bool         `json:"hidden"` // data of all tenants is left out
	Processes []process[T] `json:"processes"`
}

// statusAnswer is the data of GET /api/ui/v1/status.
type statusAnswer struct {
	processesAnswer[status.Details]
	// Queries are the running queries of this process, except requests for its state.
	Queries    []runningQuery `json:"queries"`
	MaxQueries int            `json:"maxQueries"` // that can run at the same time
}

// runningQuery is a query that runs.
type runningQuery struct {
	Operation core.Operation `json:"operation"`
	Since     time.Time      `json:"since"`
	Text      string         `json:"text,omitempty"`    // search
	Client    string         `json:"client,omitempty"`  // address or network
	Scanned   int64          `json:"scanned,omitempty"` // examined spans, if known
	Held      int64          `json:"held"`              // bytes of memory
}

// maxListedQueries is the maximum number of running queries in a response.
const maxListedQueries = 100

func runningQueries(b *core.Backend) []runningQuery {
	list := []runningQuery{}
	for _, q := range b.RunningQueries() {
		if q.Operation != core.OpGetStatus && len(list) < maxListedQueries {
			list = append(list, runningQuery(q))
		}
	}
	return list
}

// collect joins the data of this process and of the others, and says how many did not respond.
func collect[T any](a *API, own func() T, others []answer[T], hide func(*T)) (out processesAnswer[T], missing tracestore.Reasons) {
	out = processesAnswer[T]{Peers: len(others), Hidden: a.tenancy, Processes: []process[T]{}}
	failed := 0
	add := func(p process[T]) {
		if p.Data != nil && a.tenancy {
			hide(p.Data)
		}
		if p.Data == nil && a.tenancy {
			p.Error = "no response"
		}
		out.Processes = append(out.Processes, p)
	}
	for i := range others {
		p := process[T]{Address: others[i].address, Data: &others[i].data}
		if others[i].err != nil {
			p.Data, p.Error = nil, others[i].err.Error()
			failed++
		}
		add(p)
	}
	if a.self != nil {
		data := own()
		add(process[T]{Data: &data})
	}
	switch {
	case failed > 0:
		missing = tracestore.Because(tracestore.ReasonUnavailable,
			fmt.Sprintf("%d of %d processes did not respond", failed, len(out.Processes)))
	case a.tenancy:
		missing = tracestore.Because(tracestore.ReasonOther, hiddenFromTenants)
	}
	return out, missing
}

// status parses GET /api/ui/v1/status.
func (a *API) status(context.Context, url.Values) (route.Query, error) {
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		ctx := slot.Context()
		others := ask[status.Details](ctx, a.peers, processview.PathStatus, nil)
		if err := hold(slot, others); err != nil {
			return nil, nil, err
		}
		var out statusAnswer
		var missing tracestore.Reasons
		out.processesAnswer, missing = collect(a, func() status.Details { return a.self.Details(ctx) }, others, hideStatus)
		out.MaxQueries = slot.Limits().Queries
		if out.Queries = []runningQuery{}; !a.tenancy {
			out.Queries = runningQueries(a.backend)
		}
		return &out, missing, nil
	}, nil
}

// sampling parses GET /api/ui/v1/sampling.
func (a *API) sampling(ctx context.Context, _ url.Values) (route.Query, error) {
	tenant := server.Tenant(ctx)
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		q := processview.Question{Tenant: tenant}
		others := ask[processview.Strategies](slot.Context(), a.peers, processview.PathSampling, q.Values())
		if err := hold(slot, others); err != nil {
			return nil, nil, err
		}
		own := func() processview.Strategies { return processview.Sampling(slot.Context(), a.self, tenant) }
		out, missing := collect(a, own, others, hideStrategies)
		return &out, missing, nil
	}, nil
}
