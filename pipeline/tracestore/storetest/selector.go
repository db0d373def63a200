package storetest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkSelectedSpans sends random requests, some of them twice, and selects spans of each trace.
func checkSelectedSpans(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 21))}
	s.sendRandom(&g, 20)
	for _, tenant := range tenants() {
		for id, spans := range s.sent.tenant(tenant).traces {
			ids := []otlpdata.SpanID{{7: 77}}
			for _, sp := range spans {
				if g.IntN(3) == 0 {
					ids = append(ids, sp.SpanID)
				}
				for _, l := range sp.Links {
					if g.IntN(3) == 0 {
						ids = append(ids, l.SpanID)
					}
				}
			}
			s.checkSelection(tenant, id, ids)
			s.checkSelection(tenant, id, nil)
		}
	}
	for _, err := range s.store.SelectSpans(s.ctx, "", traceID(1<<40), []otlpdata.SpanID{{}}) {
		s.Errorf("spans of an unknown trace: %v", err)
	}
	if s.Failed() {
		s.Fatalf("failed with %s=%d", seedVariable, seed)
	}
}

// checkSelection compares the selected spans with the spans of the whole trace.
func (s *suite) checkSelection(tenant string, id otlpdata.TraceID, ids []otlpdata.SpanID) {
	s.Helper()
	set := make(map[otlpdata.SpanID]struct{})
	for _, id := range ids {
		set[id] = struct{}{}
	}
	var want []string
	all := s.describeSpans(id, s.store.Traces(s.ctx, tenant, []tracestore.TraceRef{{ID: id}}), func(sp tracestore.Span) {
		if tracestore.SelectsSpan(sp.Span, set) {
			want = append(want, describeSpan(sp))
		}
	})
	got := s.describeSpans(id, s.store.SelectSpans(s.ctx, tenant, id, ids), func(tracestore.Span) {})
	for _, sp := range got {
		if _, is := slices.BinarySearch(all, sp); !is {
			s.Errorf("spans of trace %s: %s is not in the trace", id, sp)
		}
	}
	for i, sp := range got {
		if i > 0 && got[i-1] == sp {
			s.Errorf("spans of trace %s: %s is returned twice", id, sp)
		}
	}
	for _, sp := range want {
		if _, is := slices.BinarySearch(got, sp); !is {
			s.Errorf("spans of trace %s with ids %v: %s is missing", id, ids, sp)
		}
	}
}

// describeSpans returns the sorted descriptions of the spans of a trace, and passes them to visit.
func (s *suite) describeSpans(
	id otlpdata.TraceID, traces iter.Seq2[tracestore.Trace, error], visit func(tracestore.Span),
) (out []string) {
	s.Helper()
	for tr, err := range traces {
		if err == nil && tr.ID != id {
			err = fmt.Errorf("got trace %s", tr.ID)
		}
		if err == nil {
			err = tracestore.WalkSpans(tr.Spans, func(sp tracestore.Span) error {
				out = append(out, describeSpan(sp))
				visit(sp)
				return nil
			})
		}
		if err != nil {
			s.Errorf("spans of trace %s: %v", id, err)
			break
		}
	}
	slices.Sort(out)
	return out
}

func describeSpan(sp tracestore.Span) string {
	return fmt.Sprintf("%x %x %x", sp.Resource.Raw, sp.Scope.Raw, otlpdata.AppendSpan(nil, sp.Span))
}

// checkFoundSpans sends random requests, some of them twice, and finds spans of each trace by
// conditions and texts.
func checkFoundSpans(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 25))}
	s.sendRandom(&g, 20)
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
