package demo

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// noon is when the simulations of the tests begin.
var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// simulate returns the spans of the seconds after noon, with 5 requests per second.
func simulate(t *testing.T, seed uint64, seconds int) tracetest.SpanStubs {
	t.Helper()
	return simulateRate(t, seed, seconds, 5)
}

// simulateRate returns the spans of the seconds after noon. The bad version appears in the middle.
func simulateRate(t *testing.T, seed uint64, seconds int, rate float64) tracetest.SpanStubs {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	sdk := &telemetry{processor: sdktrace.NewSimpleSpanProcessor(exporter), ids: &ids{}}
	s := newShop(&Options{Rate: rate, Seed: seed}, noon.Add(time.Duration(seconds/2)*time.Second), sdk.ids, sdk.tracer)
	for i := range seconds {
		s.second(noon.Add(time.Duration(i) * time.Second))
	}
	return exporter.GetSpans()
}

// attr returns an attribute of a span or its resource as text.
func attr(s *tracetest.SpanStub, key attribute.Key) string {
	for _, kv := range slices.Concat(s.Attributes, s.Resource.Attributes()) {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// The same seed and time give the same spans; another seed gives others.
func TestDeterministic(t *testing.T) {
	type span struct {
		trace.SpanID
		name       string
		start, end time.Time
	}
	of := func(seed uint64) (out []span) {
		for _, s := range simulate(t, seed, 20) {
			out = append(out, span{s.SpanContext.SpanID(), s.Name, s.StartTime, s.EndTime})
		}
		return out
	}
	first := of(1)
	if again := of(1); !slices.Equal(first, again) {
		t.Errorf("%d and %d spans, not the same", len(first), len(again))
	}
	if other := of(2); len(other) == 0 || other[0].SpanID == first[0].SpanID {
		t.Errorf("another seed: %v", other)
	}
}

// Ten services take part, traces are complete, and end before they are sent.
func TestTraces(t *testing.T) {
	spans := simulate(t, 1, 300)
	known := map[trace.SpanID]*tracetest.SpanStub{}
	perService, kinds := map[string]int{}, map[trace.SpanKind]int{}
	for i := range spans {
		s := &spans[i]
		known[s.SpanContext.SpanID()] = s
		perService[attr(s, "service.name")]++
		kinds[s.SpanKind]++
		if begin := s.StartTime.Truncate(time.Second); s.EndTime.Sub(begin) > lag || s.EndTime.Before(s.StartTime) {
			t.Errorf("%s takes %s", s.Name, s.EndTime.Sub(s.StartTime))
		}
	}
	if len(known) != len(spans) || len(perService) != 10 || len(kinds) != 5 {
		t.Errorf("%d of %d span ids, services %v, kinds %v", len(known), len(spans), perService, kinds)
	}
	roots, links := map[string]int{}, 0
	for _, s := range known {
		parent := known[s.Parent.SpanID()]
		switch {
		case !s.Parent.IsValid():
			roots[s.Name]++
		case parent == nil || parent.SpanContext.TraceID() != s.SpanContext.TraceID() || parent.StartTime.After(s.StartTime):
			t.Errorf("%s: parent %v", s.Name, parent)
		case s.Parent.IsRemote() != (attr(parent, "service.name") != attr(s, "service.name")):
			t.Errorf("%s: remote parent %s", s.Name, parent.Name)
		}
		for _, l := range s.Links {
			if p := known[l.SpanContext.SpanID()]; p == nil || p.SpanKind != trace.SpanKindProducer {
				t.Errorf("%s: link to %v", s.Name, p)
			}
			links++
		}
	}
	want := []string{"GET /", "GET /products/{id}", "POST /cart", "POST /checkout", "process orders"}
	if got := slices.Sorted(maps.Keys(roots)); !slices.Equal(got, want) || links < 150 {
		t.Errorf("roots %v, %d links", got, links)
	}
}

// At the maximum rate, spans still end before they are sent, and every order has a link in a batch
// of mails.
func TestMaximumRate(t *testing.T) {
	orders, links, batches := 0, 0, 0
	spans := simulateRate(t, 1, 3, 1000) // mails are sent in the first and third second
	last := noon.Add(2 * time.Second)
	for i := range spans {
		s := &spans[i]
		if s.EndTime.Sub(s.StartTime.Truncate(time.Second)) > lag {
			t.Errorf("%s takes %s", s.Name, s.EndTime.Sub(s.StartTime))
		}
		switch {
		case s.SpanKind == trace.SpanKindProducer && s.EndTime.Before(last):
			orders++
		case len(s.Links) > 0:
			links += len(s.Links)
			batches++
		}
		if s.DroppedLinks > 0 || len(s.Links) > mailBatch {
			t.Errorf("%s: %d links, %d dropped", s.Name, len(s.Links), s.DroppedLinks)
		}
	}
	if orders < 300 || links != orders || batches < orders/mailBatch {
		t.Errorf("%d orders, %d links in %d batches", orders, links, batches)
	}
}

// The variables of the SDK do not change spans.
func TestEnvironment(t *testing.T) {
	describe := func() (all []string) {
		for _, s := range simulate(t, 1, 5) {
			all = append(all, fmt.Sprint(s.Name, s.Resource, s.Attributes, len(s.Events), len(s.Links)))
		}
		return all
	}
	want := describe()
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=birds")
	t.Setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	if got := describe(); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d and %d spans, not the same", len(got), len(want))
	}
}

// The bad version runs on some instances of payment, and fails where its flag is on.
func TestBadVersion(t *testing.T) {
	calls, errs := map[string]int{}, map[string]int{}
	spans := simulate(t, 1, 600)
	for i := range spans {
		s := &spans[i]
		if attr(s, "service.name") != payment || s.SpanKind != trace.SpanKindServer {
			continue
		}
		what := attr(s, "service.version") + attr(s, "feature_flag.result.variant")
		calls[what]++
		if s.Status.Code == codes.Error {
			errs[what]++
			if len(s.Events) != 3 || s.Events[2].Name != "exception" { // after two retries
				t.Errorf("events %v", s.Events)
			}
		}
		if bad := s.StartTime.After(noon.Add(5 * time.Minute)); !bad && attr(s, "service.version") != goodVersion {
			t.Errorf("bad version at %s", s.StartTime)
		}
	}
	if bad := "2.14.0on"; len(calls) != 3 || errs[bad]*2 < calls[bad] || len(errs) != 1 || calls[bad] < 100 {
		t.Errorf("calls %v, errors %v", calls, errs)
	}
}

func TestRelease(t *testing.T) {
	for after, want := range map[time.Duration]string{
		-time.Second: "", 0: "2.14.0", 39 * time.Minute: "2.14.0", 40 * time.Minute: "", 119 * time.Minute: "",
		2 * time.Hour: "2.14.1", 5 * time.Hour: "", 24 * time.Hour: "2.14.12",
	} {
		if got := release(noon, noon.Add(after)); got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
}
