package uiapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// outlined is an outline as the UI reads it.
type outlined struct {
	Start           string
	Duration        uint64
	Spans, Errors   int
	Cut             bool
	Services, Names []string
	Columns         struct {
		Parent, Start, Duration, Name, Service []int64
		Kind, Flags                            string
		ID                                     []byte
	}
}

// draw returns a line for each span: its name, indented by its depth, the last byte of its id, its
// start and its flags.
func (o *outlined) draw(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	depth, at := make([]int, o.Spans), int64(0)
	for i := range depth {
		if p := o.Columns.Parent[i]; p >= int64(i) {
			t.Fatalf("span %d comes before its parent %d", i, p)
		} else if p >= 0 {
			depth[i] = depth[p] + 1
		}
		at += o.Columns.Start[i]
		fmt.Fprintf(&b, "%s%s %d @%d %c\n", strings.Repeat(" ", depth[i]), o.Names[o.Columns.Name[i]],
			o.Columns.ID[8*i+7], at, o.Columns.Flags[i])
	}
	return b.String()
}

func outlineOf(t *testing.T, h http.Handler) (o outlined, body string) {
	t.Helper()
	w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/outline/1")
	var answer struct{ Data outlined }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return answer.Data, w.Body.String()
}

// testSpan is a span of 10 ns.
type testSpan struct {
	id, parent byte
	start      int
	kind       ptrace.SpanKind
}

func outlineTrace(leaves ...testSpan) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "web")
	for _, l := range leaves {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, l.id, l.parent, "op", 0)
		s.SetStartTimestamp(pcommon.Timestamp(1000 + l.start))
		s.SetEndTimestamp(pcommon.Timestamp(1010 + l.start))
		s.SetKind(l.kind)
	}
	return td
}

func TestOutlineOrder(t *testing.T) {
	f := func(name, want string, leaves ...testSpan) {
		t.Helper()
		h := api(t, querytest.FilledMemory(t, outlineTrace(leaves...)))
		if o, _ := outlineOf(t, h); o.draw(t) != want {
			t.Errorf("%s:\n%swant\n%s", name, o.draw(t), want)
		}
	}
	f("children by their start", "op 1 @0 2\n op 3 @1 0\n  op 4 @3 0\n op 2 @2 0\n",
		testSpan{id: 1}, testSpan{id: 2, parent: 1, start: 2}, testSpan{id: 3, parent: 1, start: 1}, testSpan{id: 4, parent: 3, start: 3})
	f("orphans, roots, and a child that is too early", "op 5 @0 4\nop 1 @3 2\n op 2 @1 8\n",
		testSpan{id: 1, start: 3}, testSpan{id: 2, parent: 1, start: 1}, testSpan{id: 5, parent: 99})
	f("a ring, and what hangs on it", "op 1 @0 4\n op 2 @1 0\n  op 3 @2 0\n   op 4 @3 0\n",
		testSpan{id: 1, parent: 3}, testSpan{id: 2, parent: 1, start: 1}, testSpan{id: 3, parent: 2, start: 2},
		testSpan{id: 4, parent: 3, start: 3})
	f("what hangs on a ring starts before it", "op 1 @5 4\n op 2 @6 0\n  op 4 @0 8\n   op 5 @1 0\n",
		testSpan{id: 1, parent: 2, start: 5}, testSpan{id: 2, parent: 1, start: 6}, testSpan{id: 4, parent: 2},
		testSpan{id: 5, parent: 4, start: 1})
	f("its own parent", "op 1 @0 4\n", testSpan{id: 1, parent: 1})
	f("both sides of a call with one id", "op 1 @0 2\n op 1 @1 0\n",
		testSpan{id: 1, start: 1, kind: ptrace.SpanKindServer}, testSpan{id: 1, kind: ptrace.SpanKindClient})
}

// Deep traces need no deep stack, and truncated ones have a warning.
func TestOutlineOfALongTrace(t *testing.T) {
	const spans = 20_000
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "deep")
	for i := range spans {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, 0, 0, fmt.Sprint("op", i%7), 0)
		s.SetSpanID(pcommon.SpanID{5: byte(i >> 16), 6: byte(i >> 8), 7: byte(i), 0: 1})
		if i > 0 {
			s.SetParentSpanID(pcommon.SpanID{5: byte((i - 1) >> 16), 6: byte((i - 1) >> 8), 7: byte(i - 1), 0: 1})
		}
	}
	store := querytest.FilledMemory(t, td)
	f := func(most, want int, warned bool) {
		t.Helper()
		h := api(t, store, func(o *core.Options) { o.Limits.TraceSize = most })
		o, body := outlineOf(t, h)
		if o.Spans != want || len(o.Columns.ID) != 8*want || o.Cut != warned || strings.Contains(body, "max_trace_size") != warned {
			t.Errorf("%d spans, cut %v: %s", o.Spans, o.Cut, body[len(body)-200:])
		}
	}
	f(spans, spans, false)
	f(spans-1, spans-1, true)
	f(10, 10, true)
}

// Peers are those that storequery finds.
func TestRandomPeers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 3))
	for range 300 {
		td := ptrace.NewTraces()
		ss := querytest.AddService(td, "web")
		var want []storequery.CallSpan
		for i := range 1 + rnd.IntN(8) {
			s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(rnd.IntN(10)), byte(rnd.IntN(10)), "op", time.Duration(i))
			s.SetKind(ptrace.SpanKind(rnd.IntN(6)))
			if rnd.IntN(3) > 0 {
				s.Attributes().PutStr("db.system", fmt.Sprint("db", i))
			}
		}
		b := otlpdata.FromTraces(td, otlpdata.Meta{})
		if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			want = append(want, storequery.CallSpanOf(s))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		calls := make(map[string]bool)
		var finder storequery.PeerCallFinder
		finder.Each(want, func(at int) { calls[want[at].Peer] = true })
		o := newOutline(core.Limits{TraceSize: 100})
		addSpans(t, o, b)
		o.order()
		for i := range o.extras {
			if p := o.extras[i].peer; p >= 0 && !calls[o.services.words[p]] {
				t.Fatalf("%+v: peer %s", want, o.services.words[p])
			} else if p >= 0 {
				delete(calls, o.services.words[p])
			}
		}
		if len(calls) > 0 {
			t.Fatalf("%+v: missing peers %v", want, calls)
		}
	}
}

// addSpans adds the spans of a trace to an outline.
func addSpans(t *testing.T, o *outline, b *otlpdata.Batch) {
	t.Helper()
	var hosts storequery.Hosts
	var spans []tracestore.SummarySpan
	if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		spans = append(spans, hosts.OutlineSpan(s))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	o.addSummaries(spans)
}

// Each span is drawn once, after its parent, whatever the parents are.
func TestRandomOutlines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 1))
	for range 300 {
		leaves := make([]testSpan, 1+rnd.IntN(12))
		for i := range leaves {
			leaves[i] = testSpan{byte(1 + rnd.IntN(8)), byte(rnd.IntN(10)), rnd.IntN(20), ptrace.SpanKind(rnd.IntN(6))}
		}
		o := newOutline(core.Limits{TraceSize: 100})
		addSpans(t, o, otlpdata.FromTraces(outlineTrace(leaves...), otlpdata.Meta{}))
		order := o.order()
		seen := make(map[int32]bool)
		for place, at := range order {
			s := &o.spans[at]
			if seen[at] || int(s.answerIndex) != place || s.parentIndex >= 0 && !seen[s.parentIndex] {
				t.Fatalf("%+v: order %v", leaves, order)
			}
			seen[at] = true
		}
		if len(seen) != len(leaves) {
			t.Fatalf("%+v: order %v", leaves, order)
		}
	}
}

func TestOutlineDictionaries(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, querytest.Shop()))
	o, _ := outlineOf(t, h)
	if want := []string{"web", "a/b"}; !reflect.DeepEqual(o.Services, want) || !reflect.DeepEqual(o.Columns.Service, []int64{0, 1}) {
		t.Errorf("services %v, %v", o.Services, o.Columns.Service)
	}
	if o.Start != "1714557600000000000" || o.Duration != 101_000_000 || o.Columns.Kind != "23" || o.Errors != 1 {
		t.Errorf("outline %+v", o)
	}
}

// longNames is a store whose outlines have names that exceed the memory limit.
type longNames struct{ *querytest.Store }

func (longNames) Outline(
	_ context.Context, _ string, _ otlpdata.TraceID, _ int, hold func(int, int) error, take func([]tracestore.SummarySpan) error,
) error {
	if err := hold(1, 1<<30); err != nil {
		return err
	}
	return take(make([]tracestore.SummarySpan, 1))
}

func TestOutlineReservesMemory(t *testing.T) {
	h := api(t, longNames{querytest.NewStore(querytest.Shop())})
	if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/outline/1"); w.Code != http.StatusTooManyRequests {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
