package memtable

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// hostile generates requests with spans of one resource. change modifies the spans.
func hostile(tb testing.TB, requests, spans int, change func(request, i int, r *otlpdata.Resource, s *otlpdata.Span)) []*otlpdata.Batch {
	tb.Helper()
	var out []*otlpdata.Batch
	for n := range requests {
		var body []byte
		r := otlpdata.Resource{Raw: resourceRaw("cart", n%3)}
		var group [][]byte
		for i := range spans {
			k := n*spans + i
			s := otlpdata.Span{TraceID: otlpdata.TraceID{byte(k >> 4), byte(k >> 12), byte(k >> 20)},
				SpanID: otlpdata.SpanID{byte(k), byte(k >> 8), byte(k >> 16)},
				Name:   fmt.Sprint("GET /", k%7), Kind: otlpdata.KindServer, Start: 1_800_000_000_000_000_000 + uint64(k)*1000,
				Attributes: usualAttributes(k)}
			s.End = s.Start + 1_000_000
			before := string(r.Raw)
			change(n, i, &r, &s)
			if string(r.Raw) != before && len(group) > 0 {
				body, group = otlpdata.AppendResourceSpans(body, &otlpdata.Resource{Raw: []byte(before)}, &otlpdata.Scope{}, group...), nil
			}
			group = append(group, otlpdata.AppendSpan(nil, &s))
		}
		out = append(out, batchOf(tb, otlpdata.AppendResourceSpans(body, &r, &otlpdata.Scope{}, group...), ""))
	}
	return out
}

// resourceRaw encodes a resource, whose attributes are in field 1. The attributes of a span are in
// field 9.
func resourceRaw(service string, instance int) []byte {
	b := otlpdata.AppendAttributes(nil, []otlpdata.KeyValue{text("service.name", service)})
	b[0] = 1<<3 | 2
	second := otlpdata.AppendAttributes(nil, []otlpdata.KeyValue{text("service.instance.id", fmt.Sprint("instance-", instance))})
	second[0] = 1<<3 | 2
	return append(b, second...)
}

func text(key, value string) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)}
}

func usualAttributes(k int) []otlpdata.KeyValue {
	return []otlpdata.KeyValue{text("http.request.method", "GET"), text("http.route", fmt.Sprint("/route/", k%20)),
		{Key: "http.response.status_code", Value: otlpdata.IntValue(200)},
		text("request.id", fmt.Sprintf("%032x", uint64(k)*0x9e3779b97f4a7c15)),
		text("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64) shop/4.2"), {Key: "cache.hit", Value: otlpdata.BoolValue(k%3 == 0)},
		text("cloud.region", "eu-central-1"), text("enduser.id", fmt.Sprint("user-", k%5000))}
}

// attacks returns modifications of spans that lead to many shapes or words, or to large rows.
func attacks() map[string]func(request, i int, r *otlpdata.Resource, s *otlpdata.Span) {
	mix := func(request, i, salt int) uint64 {
		return fold(uint64(request)<<32|uint64(i), fold(uint64(salt)+1, 0x1234567))
	}
	return map[string]func(request, i int, r *otlpdata.Resource, s *otlpdata.Span){
		"none": func(int, int, *otlpdata.Resource, *otlpdata.Span) {},
		"names": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			s.Name = fmt.Sprint("GET /cart/", request, "/", i)
		},
		"three keys of 1024": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			for n := range 3 {
				s.Attributes = append(s.Attributes, text(fmt.Sprint("key.", mix(request, i, n)%1024), "v"))
			}
		},
		"all keys": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			for n := range s.Attributes {
				s.Attributes[n].Key = fmt.Sprint("key.", mix(request, i, n))
			}
		},
		"event keys": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			s.Events = []otlpdata.Event{{Time: s.Start, Name: "e"}}
			s.Events[0].Attributes = []otlpdata.KeyValue{text(fmt.Sprint("key.", mix(request, i, 0)), "v")}
		},
		"names and keys": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			s.Name = fmt.Sprint("GET /", mix(request, i, 0)%1000)
			s.Attributes = append(s.Attributes, text(fmt.Sprint("key.", mix(request, i, 1)%1024), "v"))
		},
		"a service per span": func(request, i int, r *otlpdata.Resource, s *otlpdata.Span) {
			r.Raw = resourceRaw(fmt.Sprint("service-", request, "-", i), 0)
		},
		"services": func(request, _ int, r *otlpdata.Resource, s *otlpdata.Span) {
			r.Raw = resourceRaw(fmt.Sprint("service-", request), 0)
		},
		"resources": func(request, _ int, r *otlpdata.Resource, _ *otlpdata.Span) {
			r.Raw = resourceRaw("cart", 1000+request)
		},
		"one trace": func(_, _ int, _ *otlpdata.Resource, s *otlpdata.Span) { s.TraceID = otlpdata.TraceID{1} },
		"large values": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			if i%100 == 0 {
				s.Attributes = append(s.Attributes, text("large", strings.Repeat(fmt.Sprintf("%016x", mix(request, i, 0)), 1<<12)))
			}
		},
		"texts": func(request, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
			for n := range s.Attributes {
				if s.Attributes[n].Value.Kind() == otlpdata.ValueString {
					s.Attributes[n].Value = otlpdata.StringValue(fmt.Sprintf("%032x", mix(request, i, n)))
				}
			}
		},
	}
}

// TestAttacks checks that limits hold and spans are preserved.
func TestAttacks(t *testing.T) {
	soak.SkipIfRaced(t)
	limits := Limits{Words: 300, Names: 20, KeySets: 10, ServiceShapes: 100, Shapes: 2000, Columns: 500}
	for name, change := range attacks() {
		t.Run(name, func(t *testing.T) {
			batches := hostile(t, 10, 200, change)
			table := New(Options{Limits: limits})
			records := fill(t, table, batches)
			want := contentOf(t, batches...)
			checkContent(t, table.Source(), want)
			checkContent(t, replayAll(t, Options{Limits: limits}, records).Source(), want)
			checkLimits(t, table, limits)
		})
	}
}

func checkLimits(t *testing.T, table *Table, l Limits) {
	t.Helper()
	for i := range table.services {
		s := &table.services[i]
		if s.names.used > l.Names || s.shapes > l.ServiceShapes+3 {
			t.Errorf("service %q has %d names and %d shapes", s.name, s.names.used, s.shapes)
		}
		for _, g := range s.kinds {
			if g != nil && (g.sets.used > 2*l.KeySets+1 || g.events.used > l.KeySets+1) {
				t.Errorf("service %q has %d key sets and %d event sets", s.name, g.sets.used, g.events.used)
			}
		}
	}
	for id, words := range table.tables.Words {
		if len(words) > l.Words {
			t.Errorf("column %q has %d words", table.tables.Columns[id].Key, len(words))
		}
	}
	if len(table.tables.Columns) > l.Columns {
		t.Errorf("%d columns", len(table.tables.Columns))
	}
}

// TestGuardKeepsCommonKeys checks that keys that all spans have stay in shapes when random keys
// leave them.
func TestGuardKeepsCommonKeys(t *testing.T) {
	table := New(Options{Limits: Limits{KeySets: 20}})
	fill(t, table, hostile(t, 10, 100, attacks()["three keys of 1024"]))
	shape := &table.tables.Shapes[len(table.tables.Shapes)-1]
	places := map[rows.Place]int{}
	for _, c := range shape.Columns {
		places[table.tables.Columns[c].Place]++
	}
	if places[rows.Attribute] != len(usualAttributes(0)) || places[rows.Extra] != 1 {
		t.Errorf("last shape has %d attributes and %d extra columns", places[rows.Attribute], places[rows.Extra])
	}
}

// TestDictionary checks that repeated texts become words, and that long texts and columns with
// mostly new texts do not.
func TestDictionary(t *testing.T) {
	table := New(Options{})
	fill(t, table, hostile(t, 20, 200, func(_, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
		s.Attributes = append(s.Attributes, text("long", fmt.Sprintf("%0300d", i%2)))
	}))
	want := map[string]struct {
		words    int
		complete bool
	}{"cloud.region": {1, true}, "http.route": {20, true}, "request.id": {freeWords, false}, "long": {0, false}}
	src := table.Source()
	for id := range table.tables.Columns {
		w, ok := want[table.tables.Columns[id].Key]
		if !ok {
			continue
		}
		if words, complete := src.Words(uint32(id)); len(words) != w.words || complete != w.complete {
			t.Errorf("%s: %d words, complete: %v; want %v", table.tables.Columns[id].Key, len(words), complete, w)
		}
	}
}
