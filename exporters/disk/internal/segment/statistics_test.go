package segment

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// call is a span for tests of statistics.
type call struct {
	service    string
	kind       ptrace.SpanKind
	id, parent byte
	failed     bool
}

// segmentOfCalls writes the spans of one trace, each in its own request.
func segmentOfCalls(t *testing.T, calls ...call) *Segment {
	t.Helper()
	in := rowstest.New()
	for i, c := range calls {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", c.service)
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID([16]byte{1})
		s.SetSpanID([8]byte{c.id})
		s.SetParentSpanID([8]byte{c.parent})
		s.SetKind(c.kind)
		s.SetStartTimestamp(pcommon.Timestamp(1000 + i))
		s.SetEndTimestamp(pcommon.Timestamp(2000 + i))
		if c.failed {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
		in.Add(otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "t"}))
	}
	seg, _ := writeSample(t, &sample{in: inputOf(in)}, 2)
	return seg
}

// edgesOf returns calls and errors between services. Orphans are calls from an empty service.
func edgesOf(t *testing.T, seg *Segment) map[string]string {
	t.Helper()
	edges := map[string]string{}
	e, err := seg.Edges()
	if err != nil {
		t.Fatal(err)
	}
	for p := range e.Points(0, math.MaxUint64) {
		of := e.Edges[p.Edge]
		edges[of.Parent+" > "+of.Child] = fmt.Sprintf("kind %d: %d, %d failed", of.Kind, p.Calls, p.Errors)
	}
	o, err := seg.Orphans()
	if err != nil {
		t.Fatal(err)
	}
	for orphan := range o.Orphans(0, math.MaxUint64) {
		edges[fmt.Sprintf("%d > %s", orphan.ParentID[0], orphan.Service)] = fmt.Sprintf("kind %d", orphan.Kind)
	}
	return edges
}

func TestEdges(t *testing.T) {
	const client, server = ptrace.SpanKindClient, ptrace.SpanKindServer
	for _, c := range []struct {
		name  string
		calls []call
		want  map[string]string
	}{
		{"chain", []call{{"a", server, 1, 0, false}, {"a", client, 2, 1, false}, {"b", server, 3, 2, true}},
			map[string]string{"a > a": "kind 2: 1, 0 failed", "a > b": "kind 0: 1, 1 failed"}},
		{"parent that comes later", []call{{"b", server, 3, 2, false}, {"a", client, 2, 0, false}},
			map[string]string{"a > b": "kind 0: 1, 0 failed"}},
		{"absent parent", []call{{"b", ptrace.SpanKindConsumer, 3, 2, false}}, map[string]string{"2 > b": "kind 5"}},
		{"message", []call{{"a", ptrace.SpanKindProducer, 1, 0, false}, {"b", ptrace.SpanKindConsumer, 2, 1, false}},
			map[string]string{"a > b": "kind 5: 1, 0 failed"}},
		{"own parent", []call{{"a", server, 1, 1, false}}, map[string]string{"1 > a": "kind 2"}},
		{"shared span id", []call{{"a", server, 1, 0, false}, {"a", client, 2, 1, false}, {"b", server, 2, 1, false},
			{"b", client, 3, 2, false}, {"c", server, 4, 2, false}},
			map[string]string{"a > a": "kind 2: 1, 0 failed", "a > b": "kind 0: 1, 0 failed", "b > b": "kind 2: 1, 0 failed",
				"b > c": "kind 0: 1, 0 failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := edgesOf(t, segmentOfCalls(t, c.calls...)); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestManySharedIDs checks that a trace whose spans all have the same id does not take longer.
func TestManySharedIDs(t *testing.T) {
	calls := make([]call, 3000)
	for i := range calls {
		calls[i] = call{"a", ptrace.SpanKindServer, 1, 0, false}
	}
	calls = append(calls, call{"b", ptrace.SpanKindServer, 2, 1, false})
	got := edgesOf(t, segmentOfCalls(t, calls...))
	if want := map[string]string{"a > b": "kind 0: 1, 0 failed"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSeries checks that each stored span is counted once under its name.
func TestSeries(t *testing.T) {
	for seed := range uint64(6) {
		s := randomSample(t, seed, 30)
		seg, _ := writeSample(t, s, 20)
		series, err := seg.Series()
		if err != nil {
			t.Fatal(err)
		}
		total := uint64(0)
		for p := range series.Points(0, math.MaxUint64) {
			total += p.Durations.Count()
			if of := series.Series[p.Series]; of.Operation < "operation 0" || of.Operation > "operation 2" {
				t.Errorf("operation %q", of.Operation)
			}
		}
		if total != uint64(len(s.spans)) {
			t.Errorf("%d spans, %d were stored", total, len(s.spans))
		}
	}
}

// sampledSpans returns spans. Some represent further calls because they were sampled. All spans of
// an operation have the same tracestate, or each has its own, as a word or in the row.
func sampledSpans(requests int) (spans []otlpdata.Span, batches []*otlpdata.Batch) {
	r := rand.New(rand.NewPCG(1, 5))
	states := []string{"", "a=b", "ot=th:0", "ot=th:e666", "ot=th:b333", "ot=th:8", "ot=th:z"}
	for range requests {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		service := fmt.Sprint("service ", r.IntN(2))
		rs.Resource().Attributes().PutStr("service.name", service)
		list := rs.ScopeSpans().AppendEmpty().Spans()
		for range 1 + r.IntN(10) {
			s := list.AppendEmpty()
			operation := r.IntN(8)
			s.SetName(fmt.Sprint("operation ", operation))
			s.SetTraceID([16]byte{byte(r.IntN(20)), 7, 9: byte(r.Uint32())})
			s.SetSpanID([8]byte{byte(r.Uint32()), byte(r.Uint32()), 1})
			s.SetStartTimestamp(pcommon.Timestamp(1_700_000_000_000_000_000 + r.Uint64N(3*60e9)))
			s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(r.Uint64N(1e9)))
			s.Status().SetCode(ptrace.StatusCode(r.IntN(2) * 2))
			switch {
			case operation < len(states):
				s.TraceState().FromRaw(states[operation])
			case r.IntN(2) == 0:
				s.TraceState().FromRaw(states[r.IntN(len(states))])
			default:
				s.TraceState().FromRaw(fmt.Sprintf("x=y,ot=rv:%014x;th:%x", r.Uint64N(1<<56), 1+r.IntN(0xffff)))
			}
			if r.IntN(3) == 0 {
				s.Attributes().PutInt("size", r.Int64N(3)) // before the tracestate
			}
			spans = append(spans, otlpdata.Span{TraceID: otlpdata.TraceID(s.TraceID()), SpanID: otlpdata.SpanID(s.SpanID()), Name: s.Name(),
				StatusCode: int32(s.Status().Code()), Start: uint64(s.StartTimestamp()), End: uint64(s.EndTimestamp()),
				TraceState: s.TraceState().AsRaw(), StatusMessage: service})
		}
		batches = append(batches, otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "t"}))
	}
	return spans, batches
}

// TestUnsampledSeries checks the unsampled series of written and merged segments, for all encodings
// of tracestates and names.
func TestUnsampledSeries(t *testing.T) {
	spans, batches := sampledSpans(60)
	want := map[string]*tracestore.Histogram{}
	add := func(s *otlpdata.Span, extra bool, n uint64) {
		if n == 0 {
			return
		}
		k := fmt.Sprint(stats.MinuteOf(s.Start), stats.Series{Tenant: "t", Service: s.StatusMessage, Operation: s.Operation(), Kind: s.KindName(),
			Error: s.StatusCode == otlpdata.StatusError, Unsampled: extra})
		if want[k] == nil {
			want[k] = &tracestore.Histogram{}
		}
		duration, _ := s.Duration()
		want[k].ObserveN(duration, n)
	}
	for i := range spans {
		add(&spans[i], false, 1)
		add(&spans[i], true, spans[i].AdjustedCount()-1)
	}
	for _, words := range []int{0, 5, 100} {
		for _, named := range []bool{false, true} {
			in := rowstest.New()
			in.MaxWords, in.NameInRow = words, func(string) bool { return named }
			for _, b := range batches {
				in.Add(b)
				in.Add(b) // duplicates
			}
			s := &sample{in: inputOf(in)}
			written, _ := writeSample(t, s, 20)
			checkUnsampled(t, fmt.Sprintf("written with %d words, names in rows %t", words, named), written, want)
			fsys := writeDir(t)
			inputs := split(t, fsys, s, 3, rand.New(rand.NewPCG(uint64(words), 2)))
			if _, err := Merge(fsys, "d/s", inputs, testMeta, MergeOptions{blockRows: 10}); err != nil {
				t.Fatal(err)
			}
			checkUnsampled(t, fmt.Sprintf("merged with %d words, names in rows %t", words, named), openTest(t, fsys, "d/s"), want)
		}
	}
}

func checkUnsampled(t *testing.T, what string, seg *Segment, want map[string]*tracestore.Histogram) {
	t.Helper()
	series, err := seg.Series()
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for p := range series.Points(0, math.MaxUint64) {
		points++
		h := want[fmt.Sprint(p.Minute, series.Series[p.Series])]
		if h == nil || h.Count() != p.Durations.Count() || h.Sum != p.Durations.Sum || h.Quantile(0.5) != p.Durations.Quantile(0.5) {
			t.Fatalf("%s: %+v is %+v, want %+v", what, series.Series[p.Series], p.Durations, h)
		}
	}
	if points != len(want) || !series.Unsampled {
		t.Errorf("%s: %d points, want %d", what, points, len(want))
	}
	if err := seg.Verify(t.Context(), func(part string, err error) {
		if err != nil {
			t.Errorf("%s: %s: %v", what, part, err)
		}
	}); err != nil {
		t.Error(err)
	}
}
