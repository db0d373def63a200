package deployment

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// explainAnswer is the data of GET /api/ui/v1/sampling/explain.
type explainAnswer struct {
	Service   string `json:"service"`
	Operation string `json:"operation"`
	Trace     string `json:"trace"` // 32 hex digits, or ""
	Tenant    string `json:"tenant"`
	Stored    stored `json:"stored"`
	// Verdict is `stored`, `drops` if a stage certainly drops the trace, `depends`, or `keeps` if
	// no stage drops it.
	Verdict string `json:"verdict"`
	// Deciding is the stage that causes `drops` or `depends`, by process and stage; otherwise null.
	Deciding  *stageRef                          `json:"deciding"`
	Peers     int                                `json:"peers"`
	Hidden    bool                               `json:"hidden"`
	Processes []process[processview.Explanation] `json:"processes"`
	Causes    []cause                            `json:"causes"`
	Changes   []change                           `json:"changes"`
}

// stageRef identifies a stage in the list of processes.
type stageRef struct {
	Process int `json:"process"`
	Stage   int `json:"stage"`
}

// stored holds the store's information about the trace and the service.
type stored struct {
	Trace    string   `json:"trace"`    // `found`, `missing`, `unreadable`, or "" without a trace id
	Spans    int      `json:"spans"`    // of the trace
	Services []string `json:"services"` // of the trace, by number of spans, descending
	Service  string   `json:"service"`  // `known`, `unknown`, `unreadable`, or "" without a name
	Similar  []string `json:"similar"`  // stored services with similar names
	Known    int      `json:"known"`    // number of stored services
}

// maxShown is the maximum number of services in a list.
const maxShown = 10

// explain parses GET /api/ui/v1/sampling/explain.
func (a *API) explain(ctx context.Context, v url.Values) (route.Query, error) {
	q, err := processview.ParseQuestion(v)
	if err != nil {
		return nil, err
	}
	if q.Service == "" && q.Trace == (sampling.TraceID{}) {
		return nil, errors.New("'service' or 'trace' must be set")
	}
	q.Tenant = server.Tenant(ctx)
	return func(slot *core.Slot) (any, tracestore.Reasons, error) { return a.answer(slot, q) }, nil
}

func (a *API) answer(slot *core.Slot, q processview.Question) (any, tracestore.Reasons, error) {
	ctx := slot.Context()
	out := &explainAnswer{Service: q.Service, Operation: q.Operation, Tenant: q.Tenant, Causes: []cause{}, Changes: []change{}}
	if q.Trace != (sampling.TraceID{}) {
		out.Trace = hex.EncodeToString(q.Trace[:])
	}
	var incomplete tracestore.Reasons
	var err error
	if out.Stored, incomplete, err = lookUp(slot, q); err != nil {
		return nil, nil, err
	}
	var states []answer[status.Details]
	var both sync.WaitGroup
	both.Go(func() { states = ask[status.Details](ctx, a.peers, processview.PathStatus, nil) })
	others := ask[processview.Explanation](ctx, a.peers, processview.PathExplain, q.Values())
	both.Wait()
	if err := errors.Join(hold(slot, states), hold(slot, others)); err != nil {
		return nil, nil, err
	}
	own := func() processview.Explanation { return processview.Explain(ctx, a.self, q) }
	processes, missing := collect(a, own, others, hideExplanation)
	out.Peers, out.Hidden, out.Processes = processes.Peers, processes.Hidden, processes.Processes
	out.dropRepeatedClients()
	out.judge()
	out.Changes = out.changes()
	details, _ := collect(a, func() status.Details { return a.self.Details(ctx) }, states, func(*status.Details) {})
	out.Causes = out.causes(details.Processes, a.tenancy)
	incomplete.Add(missing...)
	return out, incomplete, nil
}

// lookUp queries the store for the trace and the service. incomplete says what cannot be read.
func lookUp(slot *core.Slot, q processview.Question) (s stored, incomplete tracestore.Reasons, err error) {
	s.Services, s.Similar = []string{}, []string{}
	if q.Trace != (sampling.TraceID{}) {
		if incomplete, err = s.findTrace(slot, otlpdata.TraceID(q.Trace)); err != nil {
			return s, nil, err
		}
	}
	missing, err := s.findService(slot, q.Service)
	incomplete.Add(missing...)
	return s, incomplete, err
}

// findService looks for a service, unless the name is empty, and for similar names. The list of all
// services is limited and may lack the name, so findService also lists by prefix. damage says what
// the store could not read.
func (s *stored) findService(slot *core.Slot, service string) (damage tracestore.Reasons, _ error) {
	names, err := slot.Services(tracestore.NameQuery{})
	if err != nil {
		return nil, err
	}
	s.Known, damage = len(names.List), names.Damage
	if service == "" {
		return damage, nil
	}
	known := slices.Contains(names.List, service)
	if !known && names.Cut {
		exact, err := slot.Services(tracestore.NameQuery{Prefix: service, Limit: 1})
		if err != nil {
			return nil, err
		}
		known = slices.Contains(exact.List, service)
		damage.Add(exact.Damage...)
	}
	switch {
	case known:
		s.Service = "known"
		return damage, nil
	case !damage.Complete():
		s.Service = "unreadable"
	default:
		s.Service = "unknown"
	}
	for _, name := range names.List {
		if len(s.Similar) < maxShown && similar(name, service) {
			s.Similar = append(s.Similar, name)
		}
	}
	return damage, nil
}

// findTrace looks for a trace, and says which parts cannot be read.
func (s *stored) findTrace(slot *core.Slot, id otlpdata.TraceID) (incomplete tracestore.Reasons, _ error) {
	pieces, incomplete, err := slot.Trace(tracestore.TraceRef{ID: id})
	switch {
	case errors.Is(err, core.ErrTraceDamaged):
		s.Trace = "unreadable"
		return tracestore.DamageOf(err)
	case err != nil:
		return nil, err
	}
	spans := map[string]int{}
	for _, p := range pieces {
		s.Spans += p.Len()
		for _, of := range p.Services() {
			spans[of.Service] += of.Spans
		}
	}
	if s.Trace = "missing"; s.Spans > 0 {
		s.Trace = "found"
	}
	for name := range spans {
		s.Services = append(s.Services, name)
	}
	slices.SortFunc(s.Services, func(a, b string) int { return cmp.Or(spans[b]-spans[a], cmp.Compare(a, b)) })
	s.Services = s.Services[:min(len(s.Services), maxShown)]
	return incomplete, nil
}

// similar reports whether names differ only in case or separators, or one is part of the other.
func similar(a, b string) bool {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "", " ", "", "/", "").Replace(s))
	}
	x, y := plain(a), plain(b)
	const least = 3 // shorter parts occur in many names
	return x == y || len(x) >= least && strings.Contains(y, x) || len(y) >= least && strings.Contains(x, y)
}

// dropRepeatedClients removes the strategies of agents that pass on the strategies of a collector,
// if the collector is also shown.
func (out *explainAnswer) dropRepeatedClients() {
	own := false
	for _, p := range out.Processes {
		own = own || p.Data != nil && slices.ContainsFunc(p.Data.Strategies,
			func(s processview.Strategy) bool { return s.Origin.Source != "remote" })
	}
	if !own {
		return
	}
	for _, p := range out.Processes {
		if p.Data == nil {
			continue
		}
		remote := func(component string) bool {
			return slices.ContainsFunc(p.Data.Strategies, func(s processview.Strategy) bool {
				return s.Component == component && s.Origin.Source == "remote"
			})
		}
		p.Data.Stages = slices.DeleteFunc(p.Data.Stages, func(s sampling.Stage) bool { return s.Kind == "client" && remote(s.Component) })
	}
}

// judge sets Verdict: by the first stage that drops the trace, or else by the first that may.
func (out *explainAnswer) judge() {
	if out.Stored.Trace == "found" {
		out.Verdict = "stored"
		return
	}
	for _, v := range []sampling.Verdict{sampling.Drops, sampling.Depends} {
		for i, p := range out.Processes {
			if p.Data == nil {
				continue
			}
			at := slices.IndexFunc(p.Data.Stages, func(s sampling.Stage) bool { return s.Verdict == v })
			if at >= 0 {
				out.Verdict, out.Deciding = string(v), &stageRef{i, at}
				return
			}
		}
	}
	out.Verdict = string(sampling.Keeps)
}
