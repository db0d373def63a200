package uiapi

import (
	"cmp"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// maxIncidentTraces is the maximum number of traces in which the errors of an incident are
	// counted: the newest ones with an error of its source.
	maxIncidentTraces = 200
	// maxScannedSpans is the maximum number of spans to read in these traces.
	maxScannedSpans = 100_000
	// maxIncidentSpans is the maximum number of failed spans of a trace that are examined.
	maxIncidentSpans  = 1000
	maxIncidentErrors = 5
	// maxSlowTraces is the maximum number of traces with slow requests whose roots are counted.
	maxSlowTraces = 20
	// maxRootServices is the maximum number of services that start the traces of an incident.
	maxRootServices = 3
	// minErrorTraces is the minimum share of the examined traces with a listed error.
	minErrorTraces = 0.03
)

// incidentError is an error that occurs in the traces of an incident.
type incidentError struct {
	Service   string `json:"service"`
	Title     string `json:"title"`     // see failure.Title; "" if spans say nothing
	Operation string `json:"operation"` // of the outermost span
	Traces    int    `json:"traces"`    // of the examined ones
	// Follows reports whether most of these spans have failed spans below them, and are therefore a
	// consequence.
	Follows bool `json:"follows"`
}

// addErrors reads the newest traces with bad requests of the source, and adds their errors.
func (r *incidentReader) addErrors(c *chain, out *systemIncident) error {
	i := c.source.Incident
	w := r.window(i)
	q := tracestore.Query{Tenant: r.slot.Tenant(), From: w.From, To: w.To, Limit: maxIncidentTraces, Budget: r.slot.Budget()}
	q.Where = tracestore.And{is(tracestore.Service, "", c.source.Name), failedSpan()} // also calls of requests
	bad := tracestore.And{requestOf(c.source), failedSpan()}
	if i.Kind == spanmetrics.Slow {
		bad[1] = core.WhereDuration(tracestore.Duration, tracestore.Ge, time.Duration(i.SlowFrom))
		q.Where, q.Limit = bad, maxSlowTraces
	}
	found := errorCounts{source: c.source.Name, byKey: make(map[errorKey]*errorCount), roots: make(map[rootOperation]int)}
	held := r.slot.Held()
	scanned := 0
	outcome, err := r.slot.Find(q, nil, func(id otlpdata.TraceID, spans *otlpdata.Batch) error {
		if scanned += spans.Len(); scanned > maxScannedSpans {
			return errSampled
		}
		out.Examined++
		if out.SpanID == "" {
			if out.SpanID = newestMatch(spans, w, bad); out.SpanID != "" {
				out.TraceID = hex.EncodeToString(id[:])
			}
		}
		return found.addTrace(spans)
	})
	if err != nil && !errors.Is(err, errSampled) {
		return err
	}
	r.reasons.Add(outcome.Reasons...)
	c.roots = found.sortedRoots()
	if i.Kind == spanmetrics.Errors {
		out.Errors = found.answer(out.Examined)
	}
	return r.slot.SetHeld(held)
}

// newestMatch returns the id of the newest span of a trace in a window for which a condition holds,
// or "".
func newestMatch(spans *otlpdata.Batch, w core.Window, where tracestore.Expr) (id string) {
	from, to := uint64(w.From.UnixNano()), uint64(w.To.UnixNano())
	newest := uint64(0)
	_ = tracestore.WalkSpans(spans, func(s tracestore.Span) error {
		if s.Start >= max(newest, from) && s.Start <= to && tracestore.Match(where, s) {
			newest, id = s.Start, hex.EncodeToString(s.SpanID[:])
		}
		return nil
	})
	return id
}

// errorKey identifies an error, by its operation if it has no title.
type errorKey struct{ service, title, operation string }

type errorCount struct {
	operation    string // of the outermost span
	top          int    // levels of failed spans below that span
	traces       int
	spans, below int // below: sum of the failed levels below
	follows      int // spans with failed spans below
}

// errorCounts counts the errors in traces.
type errorCounts struct {
	source string
	byKey  map[errorKey]*errorCount
	roots  map[rootOperation]int // traces
}

// rootOperation is the operation of a span without a parent.
type rootOperation struct{ service, name string }

// sortedRoots returns the operations that start the traces, the most frequent first.
func (e *errorCounts) sortedRoots() []rootOperation {
	return slices.SortedFunc(maps.Keys(e.roots), func(a, b rootOperation) int {
		return cmp.Or(cmp.Compare(e.roots[b], e.roots[a]), strings.Compare(a.service, b.service), strings.Compare(a.name, b.name))
	})
}

// failedNode is a failed span of a trace.
type failedNode struct {
	key       errorKey
	operation string
	source    bool
	related   bool // it is above, below or among the failed spans of the source
	below     int  // levels of failed spans below it
}

// addTrace counts the errors of a trace that are above or below errors of the source.
func (e *errorCounts) addTrace(spans *otlpdata.Batch) error {
	parents := make(map[otlpdata.SpanID]otlpdata.SpanID)
	failed := make(map[otlpdata.SpanID]*failedNode)
	err := tracestore.WalkSpans(spans, func(s tracestore.Span) error {
		parents[s.SpanID] = s.ParentID
		if s.ParentID.IsZero() {
			e.roots[rootOperation{strings.Clone(s.Resource.Service), strings.Clone(storequery.FacetText(s.Operation()))}]++
		}
		if s.StatusCode == otlpdata.StatusError && len(failed) < maxIncidentSpans {
			n := &failedNode{source: s.Resource.Service == e.source, operation: strings.Clone(storequery.FacetText(s.Operation()))}
			n.key = errorKey{service: strings.Clone(s.Resource.Service), title: strings.Clone(storequery.FacetText(failure.Title(s.Span)))}
			if n.key.title == "" {
				n.key.operation = n.operation
			}
			failed[s.SpanID] = n
		}
		return nil
	})
	for id, n := range failed {
		n.relate(id, parents, failed)
	}
	inTrace := make(map[errorKey]bool)
	for _, n := range failed {
		if !n.related {
			continue
		}
		c := e.byKey[n.key]
		if c == nil {
			c = &errorCount{}
			e.byKey[n.key] = c
		}
		if !inTrace[n.key] {
			inTrace[n.key] = true
			c.traces++
		}
		if c.spans == 0 || n.below > c.top || n.below == c.top && n.operation < c.operation {
			c.operation, c.top = n.operation, n.below
		}
		c.spans++
		c.below += n.below
		if n.below > 0 {
			c.follows++
		}
	}
	return err
}

// relate records a failed span in its failed ancestors: the number of failed levels below them, and
// whether they and the span are on a path with an error of the source.
func (n *failedNode) relate(id otlpdata.SpanID, parents map[otlpdata.SpanID]otlpdata.SpanID, failed map[otlpdata.SpanID]*failedNode) {
	n.related = n.related || n.source
	levels, below := 0, n.source
	for steps := 0; steps < len(parents); steps++ { // parents of broken traces may be circular
		id = parents[id]
		if _, known := parents[id]; !known {
			return
		}
		above := failed[id]
		if above == nil || above == n {
			continue
		}
		levels++
		above.below = max(above.below, levels)
		above.related = above.related || below
		n.related = n.related || above.source
		below = below || above.source
	}
}

// answer returns the most frequent errors, the innermost first.
func (e *errorCounts) answer(traces int) []incidentError {
	keys := make([]errorKey, 0, len(e.byKey))
	for k, c := range e.byKey {
		if c.traces > 1 && float64(c.traces) >= minErrorTraces*float64(traces) || len(e.byKey) == 1 {
			keys = append(keys, k)
		}
	}
	byName := func(a, b errorKey) int {
		return cmp.Or(strings.Compare(a.service, b.service), strings.Compare(a.title, b.title), strings.Compare(a.operation, b.operation))
	}
	slices.SortFunc(keys, func(a, b errorKey) int {
		return cmp.Or(cmp.Compare(e.byKey[b].traces, e.byKey[a].traces), byName(a, b))
	})
	keys = keys[:min(len(keys), maxIncidentErrors)]
	depth := func(k errorKey) float64 { return float64(e.byKey[k].below) / float64(e.byKey[k].spans) }
	slices.SortStableFunc(keys, func(a, b errorKey) int { return cmp.Compare(depth(a), depth(b)) })
	out := []incidentError{}
	for _, k := range keys {
		c := e.byKey[k]
		out = append(out, incidentError{k.service, k.title, c.operation, c.traces, 2*c.follows > c.spans})
	}
	return out
}
