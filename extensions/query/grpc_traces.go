package query

import (
	"strings"
	"time"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// spanWriter writes spans as messages to a client. Finish ends the message that is being written: the next trace begins another one.
type spanWriter interface {
	otlpdata.Visitor
	Finish() error
}

// write writes one trace.
func (q grpcQuery) write(out spanWriter, raw bool, pieces ...*otlpdata.Batch) error {
	if err := adjust.Walk(q.adjustment(raw), out, pieces...); err != nil {
		return err
	}
	return out.Finish()
}

// writeTrace writes a trace, and returns how many that were: one, or none where it does not exist.
func (q grpcQuery) writeTrace(t *turn, ref tracestore.TraceRef, raw bool, out spanWriter) (int, error) {
	pieces, err := t.trace(server.Tenant(t), ref)
	if err != nil || len(pieces) == 0 {
		return 0, err
	}
	return 1, q.write(out, raw, pieces...)
}

// writeFound writes the traces that a search finds, and returns their number.
func (q grpcQuery) writeFound(t *turn, s *search, out spanWriter) (n int, err error) {
	asked := q.question(t, s)
	outcome, err := t.find(asked, s.set, func(trace *otlpdata.Batch) error {
		n++
		return q.write(out, s.raw, trace)
	})
	if err == nil {
		warn(t, s.incomplete(&outcome, asked.Limit))
	}
	return n, err
}

// question returns what to ask the store. Both ends of the interval are included, to the nanosecond.
func (q grpcQuery) question(t *turn, s *search) tracestore.Query {
	asked := q.query(t, s)
	asked.From, asked.To = s.from, s.to
	return asked
}

// foundSummaries returns the summaries of the traces that a search finds, of which max_limit bounds the number.
func (q grpcQuery) foundSummaries(t *turn, s *search) (found []*tracestore.Summary, err error) {
	asked := q.question(t, s)
	outcome, err := t.summaries(asked, s.set, func(sum *tracestore.Summary) { found = append(found, sum) })
	if err == nil {
		warn(t, s.incomplete(&outcome, asked.Limit))
	}
	return found, err
}

// storedServices returns the names of services as text: strict decoders refuse a list with one that is not UTF-8. So do those below.
func (q grpcQuery) storedServices(t *turn) ([]string, error) {
	names, err := q.store.Services(t, server.Tenant(t))
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = asText(name)
	}
	return out, err
}

func (q grpcQuery) storedOperations(t *turn, service, kind string) ([]tracestore.Operation, error) {
	ops, err := q.store.Operations(t, server.Tenant(t), service, kind)
	out := make([]tracestore.Operation, len(ops))
	for i, op := range ops {
		out[i] = tracestore.Operation{Name: asText(op.Name), Kind: op.Kind}
	}
	return out, err
}

// storedLinks returns the calls between services within an interval, both ends included.
func (q grpcQuery) storedLinks(t *turn, from, to time.Time) ([]link, error) {
	store, ok := q.store.(tracestore.Dependencies)
	if !ok {
		return nil, errNoDependencies
	}
	g, err := store.Dependencies(t, server.Tenant(t), from, to)
	if err == nil && !g.Complete {
		warn(t, "result is incomplete: "+g.Reason)
	}
	out := links(g.Edges, "")
	for i := range out {
		out[i].parent, out[i].child = asText(out[i].parent), asText(out[i].child)
	}
	return out, err
}

func asText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
