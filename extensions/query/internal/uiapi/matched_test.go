package uiapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// The first spans and values do not depend on the order of arrival, and equal the results of a
// naive calculation.
func TestMatchedSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fields := []tracestore.Field{{Place: tracestore.Name}}
	for range 200 {
		spans := make([]tracestore.Span, r.IntN(30))
		for i := range spans {
			spans[i].Span = &otlpdata.Span{}
			spans[i].SpanID, spans[i].Start = otlpdata.SpanID{byte(i)}, r.Uint64N(20)
			spans[i].Name = fmt.Sprint("n", r.IntN(6))
		}
		m := match{fields: make([][]fieldValue, 1)}
		for _, i := range r.Perm(len(spans)) {
			m.addSpan(spans[i], fields)
		}
		slices.SortFunc(spans, func(a, b tracestore.Span) int {
			return route.SpanKey{Start: a.Start, ID: a.SpanID}.Compare(route.SpanKey{Start: b.Start, ID: b.SpanID})
		})
		var ids, wantIDs []otlpdata.SpanID
		var texts, wantTexts []string
		for _, s := range spans {
			if len(wantIDs) < route.MaxMatchedIDs {
				wantIDs = append(wantIDs, s.SpanID)
			}
			if len(wantTexts) < maxFieldValues && !slices.Contains(wantTexts, s.Name) {
				wantTexts = append(wantTexts, s.Name)
			}
		}
		for _, k := range m.spans.First {
			ids = append(ids, k.ID)
		}
		for _, v := range m.fields[0] {
			texts = append(texts, v.text)
		}
		if m.spans.Spans != len(spans) || !slices.Equal(ids, wantIDs) || !slices.Equal(texts, wantTexts) {
			t.Fatalf("%d of %d spans, ids %v, want %v, values %q, want %q", m.spans.Spans, len(spans), ids, wantIDs, texts, wantTexts)
		}
	}
}

// Traces that do not fit into the memory of queries are listed without their matching spans.
func TestMatchedMemory(t *testing.T) {
	td := querytest.Shop()
	span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.Attributes().PutStr("text", strings.Repeat("x", 4<<20))
	h := api(t, querytest.NewStore(td), func(o *core.Options) { o.Memory = pipeline.NewQueryBudget(2 << 20) })
	body := querytest.Ask(t, h, http.MethodGet, shopSearch+"&matched=1").Body.String()
	if strings.Count(body, `"trace":`) != 2 || strings.Count(body, `"matched":`) != 1 || !strings.Contains(body, `"complete":true`) {
		t.Errorf("answer\n%s", body)
	}
}

// Traces that are too long to be read are listed without their matching spans.
func TestMatchedOfLongTraces(t *testing.T) {
	store := querytest.FilledMemory(t, querytest.Shop())
	for size, want := range map[int]int{1: 0, 2: 2} {
		h := api(t, store, func(o *core.Options) { o.Limits.TraceSize = size })
		body := querytest.Ask(t, h, http.MethodGet, shopSearch+"&matched=1").Body.String()
		if got := strings.Count(body, `"matched":`); got != want || strings.Count(body, `"trace":`) != 2 {
			t.Errorf("traces with up to %d spans: %d with matching spans, want %d\n%s", size, got, want, body)
		}
	}
	m := matchReader{read: maxMatchedSpans - 1}
	if found, err := m.find(&core.Slot{}, []*tracestore.Summary{{Spans: 2}}); err != nil || found[0] != nil || m.read != maxMatchedSpans-1 {
		t.Errorf("beyond the spans of a search: %v, %v", found, err)
	}
}

// Critical paths of traces that are too long to be read are left out, and the response says so.
func TestCriticalPathsOfLongTraces(t *testing.T) {
	store := querytest.FilledMemory(t, querytest.Shop())
	for size, want := range map[int]int{1: 0, 100: 1} {
		h := api(t, store, func(o *core.Options) { o.Limits.TraceSize = size })
		body := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/critical?ids=1").Body.String()
		says := strings.Contains(body, fmt.Sprintf("of 1 traces are left out (limit is %d spans for a trace, and 200000 for a request)", size))
		if got := strings.Count(body, `"services":`); got != want || says != (want == 0) {
			t.Errorf("traces with up to %d spans: %d paths, want %d\n%s", size, got, want, body)
		}
	}
}
