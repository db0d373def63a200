package bench

import (
	"bytes"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// census counts what is hostile in requests.
type census struct {
	spans, requests          int
	names, keys, traces, ids map[string]bool
	services, instances      map[string]bool
	roots, misdated, large   int    // spans
	begin                    uint64 // start of the data set
}

func (c *census) Resource(r *otlpdata.Resource) error {
	c.services[r.Service] = true
	id, _ := otlpdata.Get(r.Attributes, "service.instance.id")
	c.instances[id.Str()] = true
	return nil
}

func (c *census) Scope(*otlpdata.Scope) error { return nil }

func (c *census) Span(s *otlpdata.Span) error {
	c.spans++
	c.names[s.Name], c.traces[s.TraceID.String()], c.ids[s.SpanID.String()] = true, true, true
	if s.ParentID.IsZero() {
		c.roots++
	}
	if s.Start < c.begin || s.Start > c.begin+100e9 {
		c.misdated++
	}
	for _, kv := range s.Attributes {
		c.keys[kv.Key] = true
		if len(kv.Value.Str()) == largeValue {
			c.large++
		}
	}
	return nil
}

func takeCensus(t *testing.T, d *Dataset, kind Hostile, spans, perRequest int) *census {
	t.Helper()
	c := &census{names: map[string]bool{}, keys: map[string]bool{}, traces: map[string]bool{}, ids: map[string]bool{},
		services: map[string]bool{}, instances: map[string]bool{}, begin: uint64(d.start.UnixNano())}
	for r := range d.Hostile(kind, spans, perRequest) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil || b.Len() != r.Spans || r.Spans > perRequest {
			t.Fatalf("request with %d spans: decoded %d, %v", r.Spans, b.Len(), err)
		}
		if err := otlpdata.Walk(r.Body, c); err != nil {
			t.Fatal(err)
		}
		c.requests++
	}
	return c
}

func TestHostileKinds(t *testing.T) {
	const spans = 3000
	for kind, check := range map[Hostile]func(*census) bool{
		UniqueNames:     func(c *census) bool { return len(c.names) == c.spans },
		SomeKeys:        func(c *census) bool { return len(c.keys) > 1024 && len(c.keys) < 1100 },
		AllKeys:         func(c *census) bool { return len(c.keys) > 8*c.spans },
		LargeValues:     func(c *census) bool { return c.large == c.spans },
		WrongClocks:     func(c *census) bool { return c.misdated > spans/11 && c.misdated < spans/9 },
		OneTrace:        func(c *census) bool { return len(c.traces) == 1 && c.roots == 1 },
		UniqueServices:  func(c *census) bool { return len(c.services) == c.spans },
		UniqueResources: func(c *census) bool { return len(c.instances) == c.requests },
	} {
		t.Run(kind.String(), func(t *testing.T) {
			d, n := testSet(7), spans
			if kind == LargeValues {
				n = 10
			}
			c := takeCensus(t, d, kind, n, 20)
			if !check(c) || len(c.ids) != c.spans || c.spans < n {
				t.Errorf("%d spans (%d ids, %d roots, %d misdated, %d large) in %d requests: "+
					"%d names, %d keys, %d traces, %d services, %d instances",
					c.spans, len(c.ids), c.roots, c.misdated, c.large, c.requests, len(c.names), len(c.keys), len(c.traces), len(c.services),
					len(c.instances))
			}
		})
	}
}

func TestHostileKindsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for _, k := range HostileKinds() {
		names[k.String()] = true
	}
	if len(names) != len(HostileKinds()) {
		t.Errorf("got %v", names)
	}
}

func TestHostileRequestsAreAPureFunction(t *testing.T) {
	for _, kind := range HostileKinds() {
		if kind == LargeValues {
			continue // built like SomeKeys, and large
		}
		var all [2][]byte
		for i := range all {
			for r := range testSet(7).Hostile(kind, 500, 50) {
				all[i] = append(all[i], r.Body...)
			}
		}
		if !bytes.Equal(all[0], all[1]) {
			t.Errorf("%s differs from run to run", kind)
		}
		n := 0
		for range testSet(7).Hostile(kind, 500, 50) { // a break stops the iteration
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s: got %d requests before the break", kind, n)
		}
	}
}
