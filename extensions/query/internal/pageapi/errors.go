package pageapi

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/page"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultErrorGroups = 50
	maxErrorGroups     = 1000
	errorPoints        = 30 // parts of the time range
	// errorPage is the number of traces that are requested from the store at once.
	errorPage = 500
	// errorGroupMemory is the approximate maximum memory of a group in bytes.
	errorGroupMemory = 4*storequery.MaxFacetText + 8*errorPoints + 256
)

// errorsAnswer is the data of GET /api/ui/v1/errors: the newest spans with the status error, in
// groups with the same service, type and operation.
type errorsAnswer struct {
	Examined int           `json:"examined"` // error spans
	Complete bool          `json:"complete"` // all error spans of the range were examined
	Since    page.Nanos    `json:"since"`    // all error spans that start after this were examined
	Omitted  int           `json:"omitted"`  // groups that are left out because of the limit
	Groups   []*errorGroup `json:"groups"`   // those with the most spans first
}

type errorGroup struct {
	Service   string     `json:"service"`
	Operation string     `json:"operation"`
	Type      string     `json:"type"` // see errorType
	Message   string     `json:"message"`
	Count     int        `json:"count"`
	First     page.Nanos `json:"first"`
	Last      page.Nanos `json:"last"`
	Points    []int      `json:"points"`
	TraceID   string     `json:"traceID"` // of the newest span, as are Message and SpanID
	SpanID    string     `json:"spanID"`
}

// errors parses GET /api/ui/v1/errors. It reads the traces of the newest error spans until
// Limits.Errors error spans or maxMatchedSpans spans were read.
func (a *API) errors(_ context.Context, v url.Values) (page.Query, error) {
	w, err := page.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	limit, err := page.CountParam(v, "limit", defaultErrorGroups, maxErrorGroups)
	if err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, string, error) {
		e, err := newErrorReader(slot, w)
		if err != nil {
			return nil, "", err
		}
		defer e.memory.Release()
		incomplete, err := e.read()
		if err != nil {
			return nil, "", err
		}
		return e.answer(limit), incomplete, nil
	}, nil
}

// errorReader groups the newest error spans.
type errorReader struct {
	slot     *core.Slot
	window   core.Window
	from, to uint64
	memory   *tracestore.Memory // of the groups
	examined int                // error spans
	scanned  int                // all spans of their traces
	since    uint64
	complete bool
	groups   map[errorKey]*errorGroup
}

// errorKey identifies a group.
type errorKey struct{ service, operation, errorType string }

func newErrorReader(slot *core.Slot, w core.Window) (*errorReader, error) {
	e := &errorReader{slot: slot, window: w, groups: make(map[errorKey]*errorGroup)}
	e.from, e.to, _ = tracestore.Query{From: w.From, To: w.To}.Window()
	e.since = e.to
	var err error
	e.memory, err = tracestore.Reserve(slot.Context(), 0)
	return e, err
}

// errErrorsRead ends the search when enough spans were read.
var errErrorsRead = errors.New("enough error spans were read")

// read reads error spans, newest first. incomplete says which ones are missing for other reasons
// than the limits.
func (e *errorReader) read() (incomplete string, _ error) {
	q := tracestore.Query{
		Tenant: e.slot.Tenant(), From: e.window.From, To: e.window.To, Limit: errorPage, Budget: e.slot.Budget(),
		Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Status}, Op: tracestore.Eq, Value: tracestore.Text("error")},
	}
	for {
		o, err := e.slot.Find(q, nil, e.trace)
		if errors.Is(err, errErrorsRead) {
			return incomplete, nil
		}
		if err != nil {
			return "", err
		}
		if !o.Complete && incomplete == "" {
			incomplete = o.Reason
		}
		if !o.Next.Set || o.Next == q.After || !o.Complete {
			if e.complete = o.Complete; e.complete {
				e.since = e.from
			}
			return incomplete, nil
		}
		q.After = o.Next
	}
}

// trace adds the error spans of a trace.
func (e *errorReader) trace(_ otlpdata.TraceID, spans *otlpdata.Batch) error {
	if e.examined >= e.slot.Limits().Errors || e.scanned > 0 && e.scanned+spans.Len() > maxMatchedSpans {
		return errErrorsRead
	}
	e.scanned += spans.Len()
	newest := uint64(0)
	err := tracestore.WalkSpans(spans, func(s tracestore.Span) error {
		if s.StatusCode != otlpdata.StatusError || s.Start < e.from || s.Start > e.to {
			return nil
		}
		newest = max(newest, s.Start)
		return e.add(s)
	})
	e.since = min(e.since, newest)
	return err
}

// add counts an error span.
func (e *errorReader) add(s tracestore.Span) error {
	e.examined++
	kind, message := errorType(s.Span)
	key := errorKey{s.Resource.Service, storequery.FacetText(s.Operation()), storequery.FacetText(kind)}
	g := e.groups[key]
	if g == nil {
		if err := e.memory.Grow(errorGroupMemory); err != nil {
			return err
		}
		key = errorKey{strings.Clone(key.service), strings.Clone(key.operation), strings.Clone(key.errorType)}
		g = &errorGroup{Service: key.service, Operation: key.operation, Type: key.errorType, First: page.Nanos(s.Start),
			Points: make([]int, errorPoints)}
		e.groups[key] = g
	}
	g.Count++
	g.First = min(g.First, page.Nanos(s.Start))
	g.Points[e.part(s.Start)]++
	if g.TraceID == "" || page.Nanos(s.Start) > g.Last {
		g.Last, g.Message = page.Nanos(s.Start), strings.Clone(storequery.FacetText(message))
		g.TraceID, g.SpanID = hex.EncodeToString(s.TraceID[:]), hex.EncodeToString(s.SpanID[:])
	}
	return nil
}

// part returns the part of the time range to which a start belongs.
func (e *errorReader) part(start uint64) int {
	length := (e.to-e.from)/errorPoints + 1
	return int((start - e.from) / length)
}

// answer returns the groups with the most spans.
func (e *errorReader) answer(limit int) *errorsAnswer {
	out := &errorsAnswer{Examined: e.examined, Complete: e.complete, Since: page.Nanos(e.since), Groups: make([]*errorGroup, 0, len(e.groups))}
	for _, g := range e.groups {
		out.Groups = append(out.Groups, g)
	}
	slices.SortFunc(out.Groups, func(a, b *errorGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Last, a.Last), strings.Compare(a.Service, b.Service),
			strings.Compare(a.Operation, b.Operation), strings.Compare(a.Type, b.Type))
	})
	out.Omitted = max(len(out.Groups)-limit, 0)
	out.Groups = out.Groups[:len(out.Groups)-out.Omitted]
	return out
}
