package otlpdata

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// grouped collects the groups of a request.
type grouped struct {
	services, scopes, names []string
	attributes              int
}

func (g *grouped) Resource(r *Resource) error { g.services = append(g.services, r.Service); return nil }
func (g *grouped) Scope(s *Scope) error {
	g.scopes = append(g.scopes, s.Name+"/"+s.Version)
	g.attributes += len(s.Attributes)
	return nil
}
func (g *grouped) Span(s *Span) error {
	g.names = append(g.names, g.services[len(g.services)-1]+":"+g.scopes[len(g.scopes)-1]+":"+s.Name)
	return nil
}

// A built request can be read, whatever number of bytes its lengths take.
func TestBuilder(t *testing.T) {
	var b Builder
	for _, n := range []int{0, 1, 50, 127, 128, 500, 16<<10 - 1, 16 << 10, 20 << 10, 1<<21 + 1} {
		b.Reset()
		long := strings.Repeat("x", n)
		b.Resource([]KeyValue{{"service.name", StringValue("a")}})
		b.Span(&Span{Name: "1" + long})
		b.Scope("lib", "2", []KeyValue{{"k", IntValue(1)}})
		b.Span(&Span{Name: "2"})
		b.Span(&Span{Name: "3", StatusMessage: long})
		b.Resource(nil)
		b.Resource([]KeyValue{{"service.name", StringValue("b" + long)}})
		b.Scope("", "", nil)
		b.Span(&Span{Name: "4"})
		var g grouped
		request := bytes.Clone(b.Bytes())
		if err := Walk(request, &g); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		want := "a:/:1" + long + " a:lib/2:2 a:lib/2:3 b" + long + ":/:4"
		if got := strings.Join(g.names, " "); got != want || len(g.services) != 3 || g.attributes != 1 {
			t.Errorf("%d: got %.100q, %d services, %d attributes of scopes", n, got, len(g.services), g.attributes)
		}
		batch := fromOTLP(t, request, Meta{})
		if td, err := batch.Traces(); err != nil || td.SpanCount() != 4 {
			t.Fatalf("%d: pdata cannot read the request: %v", n, err)
		}
	}
}

func TestEmptyBuilder(t *testing.T) {
	var b Builder
	if got := b.Bytes(); len(got) != 0 {
		t.Errorf("got %x", got)
	}
}

func TestBuilderAllocatesNothingPerSpan(t *testing.T) {
	var b Builder
	resource := []KeyValue{{"service.name", StringValue("a")}}
	s := &Span{TraceID: TraceID{1}, SpanID: SpanID{2}, Name: "op", Start: 1, End: math.MaxUint64,
		Attributes: []KeyValue{{"k", StringValue("v")}},
		Links:      []Link{{TraceID: TraceID{1}, Attributes: resource}}, Events: []Event{{Name: "e", Attributes: resource}}}
	allocs := testing.AllocsPerRun(10, func() {
		b.Reset()
		b.Resource(resource)
		for range 100 {
			b.Span(s)
		}
		b.Bytes()
	})
	if allocs > 0 {
		t.Errorf("%v allocations for 100 spans", allocs)
	}
}
