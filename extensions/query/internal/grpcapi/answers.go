package grpcapi

import (
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// spanWriter sends spans as messages. Finish ends the current message, so that the next trace
// begins a new one.
type spanWriter interface {
	otlpdata.Visitor
	Finish() error
}

// write sends one trace.
func (c Calls) write(out spanWriter, raw bool, pieces ...*otlpdata.Batch) error {
	if err := adjust.Walk(c.backend.Adjustment(raw), out, pieces...); err != nil {
		return err
	}
	return out.Finish()
}

// sendTrace sends a trace and returns the number of traces: 1, or 0 if the trace does not exist.
func (c Calls) sendTrace(slot *core.Slot, ref tracestore.TraceRef, raw bool, out spanWriter) (int, error) {
	pieces, incomplete, err := slot.Trace(ref)
	if err != nil || len(pieces) == 0 {
		return 0, err
	}
	Warn(slot.Context(), core.IncompleteMessage(incomplete))
	return 1, c.write(out, raw, pieces...)
}

// sendFound sends the traces that match a search and returns their number.
func (c Calls) sendFound(slot *core.Slot, s *core.Search, out spanWriter) (n int, err error) {
	q := slot.SearchQuery(s)
	outcome, err := slot.Find(q, s.Set, func(_ otlpdata.TraceID, trace *otlpdata.Batch) error {
		n++
		return c.write(out, s.Raw, trace)
	})
	if err == nil {
		Warn(slot.Context(), s.Incomplete(&outcome, q.Limit))
	}
	return n, err
}

// summaries returns summaries of the traces that match a search, at most max_limit of them, and the
// token of the next page.
func (c Calls) summaries(slot *core.Slot, s *core.Search) (found []*tracestore.Summary, next string, err error) {
	q := slot.SearchQuery(s)
	outcome, err := slot.FindSummaries(q, s.Set, func(sum *tracestore.Summary) { found = append(found, sum) })
	if err == nil {
		Warn(slot.Context(), s.Incomplete(&outcome, q.Limit))
	}
	return found, s.NextPage(q.Tenant, &outcome), err
}

// services returns service names as valid UTF-8, because clients reject whole messages with invalid
// strings.
func (c Calls) services(slot *core.Slot) ([]string, error) {
	names, err := slot.Services(tracestore.NameQuery{})
	Warn(slot.Context(), core.IncompleteMessage(names.Incomplete))
	out := make([]string, len(names.List))
	for i, name := range names.List {
		out[i] = validText(name)
	}
	return out, err
}

// operations returns operations with names in valid UTF-8.
func (c Calls) operations(slot *core.Slot, service, kind string) ([]tracestore.Operation, error) {
	ops, err := slot.Operations(service, kind, tracestore.NameQuery{})
	Warn(slot.Context(), core.IncompleteMessage(ops.Incomplete))
	out := make([]tracestore.Operation, len(ops.List))
	for i, op := range ops.List {
		out[i] = tracestore.Operation{Name: validText(op.Name), Kind: op.Kind}
	}
	return out, err
}

// links returns the calls between services in a time range, both ends inclusive, with names in
// valid UTF-8.
func (c Calls) links(slot *core.Slot, from, to time.Time) ([]core.Link, error) {
	store, ok := core.SlotAs[tracestore.Edges](slot)
	if !ok {
		return nil, core.ErrNoDependencies
	}
	g, err := store.Dependencies(slot.Context(), slot.Tenant(), from, to)
	if err == nil {
		Warn(slot.Context(), core.IncompleteMessage(g.Reasons))
	}
	out := core.Links(g.Edges, "")
	for i := range out {
		out[i].Parent, out[i].Child = validText(out[i].Parent), validText(out[i].Child)
	}
	return out, err
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
