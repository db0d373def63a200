package memtable

import (
	"fmt"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// similarSpans returns modifications of a span that the key of the shape cache does not cover.
func similarSpans() map[string]func(r *otlpdata.Resource, s *otlpdata.Span) {
	return map[string]func(*otlpdata.Resource, *otlpdata.Span){
		"none":            func(*otlpdata.Resource, *otlpdata.Span) {},
		"head of a key":   func(_ *otlpdata.Resource, s *otlpdata.Span) { s.Attributes[1].Key = "tttp.route" },
		"head of another": func(_ *otlpdata.Resource, s *otlpdata.Span) { s.Attributes[4].Key = "xser_agent.original" },
	}
}

// TestShapeCacheMisses alternates spans that share a cache entry but have different shapes, so that
// each prediction is wrong.
func TestShapeCacheMisses(t *testing.T) {
	var kinds []func(*otlpdata.Resource, *otlpdata.Span)
	for _, change := range similarSpans() {
		kinds = append(kinds, change)
	}
	spread := map[*uint32]bool{}
	var g shapeCache
	for _, change := range kinds {
		s := otlpdata.Span{Attributes: usualAttributes(0)}
		change(nil, &s)
		spread[g.of(originIDs{}, &s, false, nil)] = true
	}
	if len(spread) != 1 {
		t.Fatalf("spans have %d cache entries, want 1: the test proves nothing", len(spread))
	}
	table := New(Options{})
	batches := hostile(t, 6, 60, func(_, i int, r *otlpdata.Resource, s *otlpdata.Span) {
		s.Name = "GET /"
		kinds[i%len(kinds)](r, s)
	})
	records := fill(t, table, batches)
	want := contentOf(t, batches...)
	checkContent(t, table.Source(), want)
	checkContent(t, replayAll(t, Options{}, records).Source(), want)
	if n := len(table.tables.Shapes); n != len(kinds) {
		t.Errorf("%d shapes, want %d", n, len(kinds))
	}
}

// TestShapeCacheDistinguishesShapes alternates spans that differ in one property of their shapes,
// and counts the shapes.
func TestShapeCacheDistinguishesShapes(t *testing.T) {
	event := otlpdata.Event{Name: "e", Attributes: []otlpdata.KeyValue{text("k", "v")}}
	for name, change := range map[string]func(i int, r *otlpdata.Resource, s *otlpdata.Span){
		"service": func(i int, r *otlpdata.Resource, _ *otlpdata.Span) { r.Raw = resourceRaw(fmt.Sprint("cart-", i%2), 0) },
		"name": func(i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			s.Name = fmt.Sprint("GET /", i%2, "/items/and/more")
		},
		"kind":       func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.Kind = int32(i % 2) },
		"status":     func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.StatusCode = int32(i % 2) },
		"flags":      func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.Flags = uint32(i % 2) },
		"key":        func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.Attributes[0].Key = fmt.Sprint("key-", i%2) },
		"value":      func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.Attributes[0] = kinds(i % 2) },
		"attributes": func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.Attributes = s.Attributes[i%2:] },
		"events":     func(i int, _ *otlpdata.Resource, s *otlpdata.Span) { s.Events = []otlpdata.Event{event, event}[i%2:] },
	} {
		table := New(Options{})
		batches := hostile(t, 2, 50, func(_, i int, r *otlpdata.Resource, s *otlpdata.Span) {
			s.Name = "GET /"
			change(i, r, s)
		})
		fill(t, table, batches)
		checkContent(t, table.Source(), contentOf(t, batches...))
		if n := len(table.tables.Shapes); n != 2 {
			t.Errorf("%s: %d shapes, want 2", name, n)
		}
	}
}

func kinds(i int) otlpdata.KeyValue {
	return []otlpdata.KeyValue{text("k", "v"), {Key: "k", Value: otlpdata.IntValue(7)}}[i]
}
