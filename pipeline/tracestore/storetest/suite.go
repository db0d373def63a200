package storetest

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// suite is the state of one check: the store, and an oracle with the same spans.
type suite struct {
	testing.TB
	ctx     context.Context
	store   Subject
	sent    *oracle
	sends   int
	convert func(testing.TB, *otlpdata.Batch) *otlpdata.Batch // see LossyStore; may be nil
	plan    planner
	// patience is how long a feed may take to deliver spans: a store in another process delivers
	// them later than Consume returns.
	patience time.Duration
}

func newSuite(tb testing.TB, store Subject) *suite {
	return &suite{TB: tb, ctx: tb.Context(), store: store, sent: newOracle(), plan: storequery.Find, patience: 30 * time.Second}
}

// optional returns a store as an optional interface, if the store supports it.
func optional[T any](s *suite, store any) (T, bool) {
	return tracestore.As[T](s.ctx, "", store)
}

// request builds a request with one resource and one scope.
type request struct {
	traces ptrace.Traces
	scope  ptrace.ScopeSpans
}

func newRequest(service string) *request {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	return &request{td, rs.ScopeSpans().AppendEmpty()}
}

// span adds a span with a duration of one microsecond.
func (r *request) span(trace, id uint64, name string, start uint64) ptrace.Span {
	s := r.scope.Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID(traceID(trace)))
	s.SetSpanID(pcommon.SpanID(spanID(id)))
	s.SetName(name)
	s.SetStartTimestamp(pcommon.Timestamp(start))
	s.SetEndTimestamp(pcommon.Timestamp(start + 1000))
	return s
}

func traceID(n uint64) (id otlpdata.TraceID) {
	putUint(id[8:], n)
	return id
}

func spanID(n uint64) (id otlpdata.SpanID) {
	putUint(id[:], n)
	return id
}

func putUint(b []byte, n uint64) {
	for i := range 8 {
		b[i] = byte(n >> (56 - 8*i))
	}
}

// send sends a request to the store, alternately as bytes and as pdata objects.
func (s *suite) send(tenant string, td ptrace.Traces) {
	s.Helper()
	b := s.encode(tenant, td)
	if s.sends++; s.sends%2 == 0 && s.convert == nil {
		b = otlpdata.FromTraces(td, b.Meta())
	}
	s.consume(b)
}

// encode returns the batch of a request and adds it to the oracle.
func (s *suite) encode(tenant string, td ptrace.Traces) *otlpdata.Batch {
	s.Helper()
	b := encodeRequest(s.TB, tenant, td)
	if s.convert != nil {
		b = s.convert(s.TB, b)
	}
	s.sent.add(b)
	return b
}

func encodeRequest(tb testing.TB, tenant string, td ptrace.Traces) *otlpdata.Batch {
	tb.Helper()
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatalf("encoding a request: %v", err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
	if err != nil {
		tb.Fatalf("parsing a request: %v", err)
	}
	return b
}

// sendRandom sends n random requests, some of them twice.
func (s *suite) sendRandom(g *generator, n int) {
	s.Helper()
	var sent []*otlpdata.Batch
	for range n {
		b := s.encode(g.tenant(), g.request())
		s.maybeResend(g, sent)
		s.consume(b)
		sent = append(sent, b)
	}
}

// maybeResend sometimes resends one of the given requests, like a client that did not receive the
// response.
func (s *suite) maybeResend(g *generator, sent []*otlpdata.Batch) {
	if len(sent) > 0 && g.IntN(4) == 0 {
		again := sent[g.IntN(len(sent))]
		s.sent.add(again)
		s.consume(again)
	}
}

func (s *suite) consume(b *otlpdata.Batch) {
	s.Helper()
	if err := s.store.Consume(s.ctx, b); err != nil {
		s.Fatalf("Consume: %v", err)
	}
}

// read returns the ids of the traces that the store returns, in that order, and their spans in
// canonical form.
func (s *suite) read(tenant string, refs ...tracestore.TraceRef) (ids []otlpdata.TraceID, spans [][]string) {
	s.Helper()
	for tr, err := range s.store.Traces(s.ctx, tenant, refs) {
		if err != nil {
			s.Fatalf("Traces: %v", err)
		}
		if len(ids) == 0 || ids[len(ids)-1] != tr.ID {
			ids, spans = append(ids, tr.ID), append(spans, nil)
		}
		last := &spans[len(spans)-1]
		*last = append(*last, s.canonicalTrace(tenant, tr.ID, tr.Spans)...)
	}
	return ids, spans
}

// canonicalTrace returns the spans of b in canonical form. All of them must belong to the trace.
func (s *suite) canonicalTrace(tenant string, id otlpdata.TraceID, b *otlpdata.Batch) []string {
	s.Helper()
	if b == nil || b.Len() == 0 {
		s.Errorf("trace %s: batch without spans", id)
		return nil
	}
	if got := b.Meta().Tenant; got != tenant {
		s.Errorf("trace %s: tenant of the batch is %q, want %q", id, got, tenant)
	}
	var out []string
	count := make(map[string]otlpdata.ServiceCount)
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		if sp.TraceID != id {
			s.Errorf("trace %s: contains a span of trace %s", id, sp.TraceID)
		}
		out = append(out, canonical(sp))
		c := count[sp.Resource.Service]
		c.Service = sp.Resource.Service
		c.Add(sp.ParentID.IsZero(), sp.NativeFlags()&otlpdata.FlagDebug != 0)
		count[c.Service] = c
		return nil
	})
	if err != nil {
		s.Errorf("trace %s: %v", id, err)
	}
	for _, c := range b.Services() {
		if c != count[c.Service] {
			s.Errorf("trace %s: Services of the batch returns %+v, want %+v", id, c, count[c.Service])
		}
	}
	return out
}

// checkTraces compares the spans of traces with those sent.
func (s *suite) checkTraces(tenant string, ids ...otlpdata.TraceID) {
	s.Helper()
	for _, id := range ids {
		gotIDs, got := s.read(tenant, tracestore.TraceRef{ID: id})
		if len(gotIDs) != 1 {
			s.Errorf("trace %s: returned as %d traces, want 1", id, len(gotIDs))
			continue
		}
		s.sameSpans(id, got[0], s.sent.trace(tenant, id))
	}
}

// sameSpans compares canonical spans as multisets.
func (s *suite) sameSpans(id otlpdata.TraceID, got, want []string) {
	s.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			s.Errorf("trace %s: %d spans, want %d; first difference:\n got %s\nwant %s", id, len(got), len(want), got[i], want[i])
			return
		}
	}
	s.Errorf("trace %s: %d spans, want %d", id, len(got), len(want))
}

// find runs a query to its end.
func (s *suite) find(q tracestore.Query, want tracestore.Want) ([]tracestore.Result, tracestore.Outcome) {
	s.Helper()
	res, err := s.store.Find(s.ctx, q, want)
	return s.results(describe(q), res, err)
}

// results reads all results of a query.
func (s *suite) results(query string, res *tracestore.Results, err error) ([]tracestore.Result, tracestore.Outcome) {
	s.Helper()
	if err != nil {
		s.Fatalf("Find(%s): %v", query, err)
	}
	var out []tracestore.Result
	scanned := 0
	for r, err := range res.All {
		if err != nil {
			s.Fatalf("Find(%s): after %d results: %v", query, len(out), err)
		}
		out = append(out, r)
		scanned = res.Outcome().Scanned
	}
	o := res.Outcome()
	if o.Scanned < scanned {
		s.Errorf("Find(%s): %d spans examined before the last result, %d at the end", query, scanned, o.Scanned)
	}
	return out, o
}

// checkFind compares the results of a query with the oracle and returns them.
func (s *suite) checkFind(q tracestore.Query, want tracestore.Want) []tracestore.Result {
	s.Helper()
	got, outcome := s.find(q, want)
	if !outcome.Complete() {
		s.Errorf("Find(%s): incomplete although there is no budget: %s", describe(q), outcome.Text())
	}
	s.sameResults(describe(q), got, s.sent.find(q))
	for _, r := range got {
		s.checkResult(q.Tenant, r, want)
	}
	return got
}

// sameResults compares ids, starts and order.
func (s *suite) sameResults(query string, got, want []tracestore.Result) {
	s.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			s.Errorf("Find(%s): %d results, want %d; first missing result: %s", query, len(got), len(want), key(want[i]))
		case i >= len(want):
			s.Errorf("Find(%s): %d results, want %d; first extra result: %s", query, len(got), len(want), key(got[i]))
		case key(got[i]) != key(want[i]):
			s.Errorf("Find(%s): result %d is %s, want %s", query, i, key(got[i]), key(want[i]))
		default:
			continue
		}
		return
	}
}

// checkResult checks that a result contains what the query requested.
func (s *suite) checkResult(tenant string, r tracestore.Result, want tracestore.Want) {
	s.Helper()
	switch want {
	case tracestore.WantFull:
		s.sameSpans(r.ID, s.canonicalTrace(tenant, r.ID, r.Spans), s.sent.trace(tenant, r.ID))
	case tracestore.WantSummaries:
		wanted := s.sent.summary(s, tenant, r.ID)
		if r.Summary == nil || !reflect.DeepEqual(*r.Summary, wanted) {
			s.Errorf("trace %s: summary\n got %+v\nwant %+v", r.ID, r.Summary, wanted)
		}
	}
}

// comparePages runs a query in pages and compares all results with the oracle.
func (s *suite) comparePages(q tracestore.Query, size int) {
	s.Helper()
	s.comparePagesOf(q, size, s.sent.find(q), func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
		return s.find(q, tracestore.WantIDs)
	})
}

// comparePagesOf runs a query with find in pages and compares all results with want.
func (s *suite) comparePagesOf(
	q tracestore.Query, size int, want []tracestore.Result, find func(tracestore.Query) ([]tracestore.Result, tracestore.Outcome),
) {
	s.Helper()
	q.Limit = size
	var all []tracestore.Result
	for range len(want) + 2 {
		page, outcome := find(q)
		if len(page) > size {
			s.Errorf("Find(%s): page with %d results", describe(q), len(page))
		}
		all = append(all, page...)
		if !outcome.Next.Set {
			s.sameResults(describe(q), all, want)
			return
		}
		q.After = outcome.Next
	}
	s.Errorf("Find(%s): pages of %d do not end: %d results, want %d", describe(q), size, len(all), len(want))
}
