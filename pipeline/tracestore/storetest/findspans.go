package storetest

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkFoundSpans sends random requests, some of them twice, and finds spans of each trace by
// conditions and texts.
func checkFoundSpans(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 25))}
	var sent []*otlpdata.Batch
	for range 20 {
		b := s.encode(g.tenant(), g.request())
		s.maybeResend(&g, sent)
		s.consume(b)
		sent = append(sent, b)
	}
	for _, tenant := range tenants() {
		for id, spans := range s.sent.tenant(tenant).traces {
			s.checkFound(tenant, id, spans, tracestore.SpanCondition{})
			s.checkFound(tenant, id, spans, tracestore.SpanCondition{Where: g.expr(2)})
			s.checkFound(tenant, id, spans, tracestore.SpanCondition{Text: strings.ToUpper(g.text())})
			s.checkFound(tenant, id, spans, tracestore.SpanCondition{Text: g.key(), Where: g.expr(1)})
		}
	}
	found, err := s.store.FindSpans(s.ctx, "", traceID(1<<40), tracestore.SpanCondition{})
	if err != nil || len(found.IDs) > 0 || found.Spans > 0 {
		s.Errorf("spans of an unknown trace: %+v, %v", found, err)
	}
	if s.Failed() {
		s.Fatalf("failed with %s=%d", seedVariable, seed)
	}
}

// checkFound compares the ids of the spans that a store finds with the ids of the matching spans.
func (s *suite) checkFound(tenant string, id otlpdata.TraceID, spans []tracestore.Span, c tracestore.SpanCondition) {
	s.Helper()
	var want []string
	m := c.Matcher(s.ctx)
	for _, sp := range spans {
		if m.Matches(sp) {
			want = append(want, sp.SpanID.String())
		}
	}
	found, err := s.store.FindSpans(s.ctx, tenant, id, c)
	var got []string
	for _, id := range found.IDs {
		got = append(got, id.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	got, want = slices.Compact(got), slices.Compact(want)
	if err != nil || !slices.Equal(got, want) || found.Spans < len(spans) {
		s.Errorf("spans of trace %s with %+v: %v of %d, %v; want %v", id, c, got, found.Spans, err, want)
	}
}
