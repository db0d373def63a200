package segment

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// call is a span for tests of what is said of services.
type call struct {
	service    string
	kind       ptrace.SpanKind
	id, parent byte
	failed     bool
}

// segmentOfCalls writes the spans of one trace, each in a request of its own.
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

// edgesOf returns calls and errors between services, and orphans as calls of nobody.
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
			map[string]string{"a > a": "kind 0: 1, 0 failed", "a > b": "kind 0: 1, 1 failed"}},
		{"parent that comes later", []call{{"b", server, 3, 2, false}, {"a", client, 2, 0, false}},
			map[string]string{"a > b": "kind 0: 1, 0 failed"}},
		{"absent parent", []call{{"b", ptrace.SpanKindConsumer, 3, 2, false}}, map[string]string{"2 > b": "kind 1"}},
		{"message", []call{{"a", ptrace.SpanKindProducer, 1, 0, false}, {"b", ptrace.SpanKindConsumer, 2, 1, false}},
			map[string]string{"a > b": "kind 1: 1, 0 failed"}},
		{"own parent", []call{{"a", server, 1, 1, false}}, map[string]string{"1 > a": "kind 0"}},
		{"shared span id", []call{{"a", server, 1, 0, false}, {"a", client, 2, 1, false}, {"b", server, 2, 1, false},
			{"b", client, 3, 2, false}, {"c", server, 4, 2, false}},
			map[string]string{"a > a": "kind 0: 1, 0 failed", "a > b": "kind 0: 1, 0 failed", "b > b": "kind 0: 1, 0 failed",
				"b > c": "kind 0: 1, 0 failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := edgesOf(t, segmentOfCalls(t, c.calls...)); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestManySharedIDs: a trace whose spans all have one id takes no longer than another.
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

// TestSeries: series count each span that is stored once, under its name.
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
