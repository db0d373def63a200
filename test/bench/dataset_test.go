package bench

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func testSet(seed uint64) *Dataset { return New(seed, time.Unix(1_800_000_000, 0)) }

func TestTracesAreAPureFunction(t *testing.T) {
	d := testSet(7)
	want := d.Trace(41)
	for range d.Requests(2000, 512) {
		continue
	}
	if !reflect.DeepEqual(d.Trace(41), want) || !reflect.DeepEqual(testSet(7).Trace(41), want) {
		t.Error("trace 41 depends on earlier calls")
	}
	if reflect.DeepEqual(testSet(8).Trace(41), want) || reflect.DeepEqual(d.Trace(42), want) {
		t.Error("another seed or index gives the same trace")
	}
	if !reflect.DeepEqual(slices.Collect(d.Requests(3000, 100)), slices.Collect(testSet(7).Requests(3000, 100))) {
		t.Error("the requests differ from run to run")
	}
}

func TestTopology(t *testing.T) {
	d := testSet(7)
	names := d.Services()
	slices.Sort(names)
	if len(names) != 40 || len(slices.Compact(names)) != 40 {
		t.Errorf("got %d services", len(names))
	}
	within(t, "instances", float64(len(d.Resources())), 100, 120)
	for _, r := range d.Resources() {
		if len(r.Attributes) != 8 || otlpdata.ServiceName(r.Attributes) != r.Service {
			t.Errorf("resource %+v", r)
		}
	}
}

func within(t *testing.T, what string, got, minimum, maximum float64) {
	t.Helper()
	if math.IsNaN(got) || got < minimum || got > maximum {
		t.Errorf("%s: got %.3f, want %.3f to %.3f", what, got, minimum, maximum)
	}
}

// TestStatistics checks the numbers in the documentation of the package.
func TestStatistics(t *testing.T) {
	d := testSet(7)
	const traces = 3000
	names, shapes, used := map[string]bool{}, map[string]bool{}, map[int]bool{}
	spans, attributes, withEvents, failed, smallest, largest := 0, 0, 0, 0, math.MaxInt, 0
	for i := range traces {
		trace := d.Trace(i)
		smallest, largest = min(smallest, len(trace)), max(largest, len(trace))
		for _, s := range trace {
			spans++
			names[s.Name], shapes[shapeOf(d, &s)], used[s.Resource] = true, true, true
			attributes += len(s.Attributes)
			within(t, "attributes of a span", float64(len(s.Attributes)), 5, 12)
			if len(s.Events) > 0 {
				withEvents++
			}
			if s.StatusCode == otlpdata.StatusError {
				failed++
			}
		}
	}
	within(t, "smallest trace", float64(smallest), 5, 5)
	within(t, "largest trace", float64(largest), 58, 60)
	within(t, "spans of a trace", float64(spans)/traces, 18, 20)
	within(t, "attributes", float64(attributes)/float64(spans), 8, 9)
	within(t, "spans with events", float64(withEvents)/float64(spans), 0.09, 0.11)
	within(t, "failed spans", float64(failed)/float64(spans), 0.027, 0.033)
	within(t, "span names", float64(len(names)), 310, 350)
	within(t, "shapes", float64(len(shapes)), 3000, 3800)
	if len(used) != len(d.Resources()) {
		t.Errorf("%d of %d instances are in use", len(used), len(d.Resources()))
	}
}

// shapeOf returns what the spans of an operation have in common: everything except ids, times and
// values of attributes.
func shapeOf(d *Dataset, s *Span) string {
	shape := fmt.Sprint(d.Resources()[s.Resource].Service, s.Scope, s.Name, s.Kind, s.StatusCode, len(s.Events))
	for _, kv := range s.Attributes {
		shape += " " + kv.Key
	}
	return shape
}

// TestTracesAreTrees checks that every trace is a tree, and that every span lies within the time of
// its parent.
func TestTracesAreTrees(t *testing.T) {
	d := testSet(3)
	for i := range 300 {
		byID := map[otlpdata.SpanID]Span{}
		for n, s := range d.Trace(i) {
			parent, ok := byID[s.ParentID]
			switch {
			case n == 0 && !s.ParentID.IsZero():
				t.Errorf("trace %d: the first span has a parent", i)
			case n > 0 && (!ok || s.Start < parent.Start || s.End > parent.End || s.TraceID != parent.TraceID):
				t.Errorf("trace %d: span %d has no parent in the trace or lies outside of its time", i, n)
			}
			if _, twice := byID[s.SpanID]; twice || s.SpanID.IsZero() || s.TraceID.IsZero() || s.End <= s.Start {
				t.Errorf("trace %d: span %d has an invalid id or no duration", i, n)
			}
			keys := map[string]bool{}
			for _, kv := range s.Attributes {
				keys[kv.Key] = true
			}
			if len(keys) != len(s.Attributes) {
				t.Errorf("trace %d: span %d has duplicate attributes", i, n)
			}
			byID[s.SpanID] = s
		}
	}
	first, later := d.Trace(0)[0], d.Trace(100 * TracesPerSecond)[0]
	within(t, "seconds between traces", float64(later.Start-first.Start)/1e9, 99.9, 100.1)
}

// collector collects the spans of requests by trace, like a server.
type collector struct {
	resources []otlpdata.Resource
	scope     otlpdata.Scope
	traces    map[otlpdata.TraceID][]otlpdata.Span
	services  map[otlpdata.SpanID]string
	scopes    map[otlpdata.SpanID]Scope
}

func (c *collector) Resource(r *otlpdata.Resource) error {
	c.resources = append(c.resources, *r)
	return nil
}

func (c *collector) Scope(s *otlpdata.Scope) error {
	c.scope = *s
	return nil
}

func (c *collector) Span(s *otlpdata.Span) error {
	c.traces[s.TraceID] = append(c.traces[s.TraceID], normalized(s))
	c.services[s.SpanID] = c.resources[len(c.resources)-1].Service
	c.scopes[s.SpanID] = Scope{c.scope.Name, c.scope.Version}
	return nil
}

// normalized returns a copy of a span that is valid after the walk. It has no Raw, and nil for each
// empty list.
func normalized(s *otlpdata.Span) otlpdata.Span {
	out := *s
	out.Raw, out.Attributes, out.Events, out.Links = nil, cloned(s.Attributes), cloned(s.Events), cloned(s.Links)
	for i := range out.Events {
		out.Events[i].Attributes = cloned(out.Events[i].Attributes)
	}
	for i := range out.Links {
		out.Links[i].Attributes = cloned(out.Links[i].Attributes)
	}
	return out
}

func cloned[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}

// TestRequestsHoldTheTraces compares the spans in the requests with Trace.
func TestRequestsHoldTheTraces(t *testing.T) {
	d := testSet(5)
	const spans = 20_000
	c := collector{traces: map[otlpdata.TraceID][]otlpdata.Span{},
		services: map[otlpdata.SpanID]string{}, scopes: map[otlpdata.SpanID]Scope{}}
	total, size := 0, 0
	for r := range d.Requests(spans, 100) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() != r.Spans || r.Spans > 100 || len(b.Services()) != 1 || b.Services()[0].Service != d.Resources()[r.Resource].Service {
			t.Errorf("request of %d spans: holds %d, %+v", r.Spans, b.Len(), b.Services())
		}
		if err := otlpdata.Walk(r.Body, &c); err != nil {
			t.Fatal(err)
		}
		total, size = total+r.Spans, size+len(r.Body)
	}
	within(t, "bytes per span", float64(size)/float64(total), 370, 430)
	within(t, "spans sent", float64(total), spans, spans+60)
	if n := d.Traces(spans); len(c.traces) != n {
		t.Errorf("got %d traces, want %d", len(c.traces), n)
	}
	for i := range d.Traces(spans) {
		want := d.Trace(i)
		byID := map[otlpdata.SpanID]otlpdata.Span{}
		for _, s := range c.traces[want[0].TraceID] {
			byID[s.SpanID] = s
		}
		for n, s := range want {
			if !reflect.DeepEqual(byID[s.SpanID], s.Span) || c.scopes[s.SpanID] != Scopes()[s.Scope] ||
				c.services[s.SpanID] != d.Resources()[s.Resource].Service {
				t.Fatalf("trace %d span %d: got %+v, want %+v", i, n, byID[s.SpanID], s)
			}
		}
	}
}

func TestRequestsAreValidForPdata(t *testing.T) {
	for r := range testSet(5).Requests(5000, 512) {
		req := ptraceotlp.NewExportRequest()
		if err := req.UnmarshalProto(r.Body); err != nil {
			t.Fatal(err)
		}
		if req.Traces().SpanCount() != r.Spans || req.Traces().ResourceSpans().Len() != 1 {
			t.Errorf("got %d spans of %d resources, want %d spans of 1 resource",
				req.Traces().SpanCount(), req.Traces().ResourceSpans().Len(), r.Spans)
		}
	}
}

// TestRequestsStopAtBreak breaks at a full request and at the remainder of a resource.
func TestRequestsStopAtBreak(t *testing.T) {
	for _, perRequest := range []int{10, 1000} {
		n := 0
		for range testSet(5).Requests(1000, perRequest) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("got %d requests", n)
		}
	}
}
