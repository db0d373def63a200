package callpath

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// describe returns the pieces of a critical path from the first to the last, as "name time".
func describe(t *Tree) string {
	var out []string
	t.CriticalPath(func(span int, time uint64) {
		name := "nothing"
		if span >= 0 {
			name = t.spans[span].Name
		}
		out = append(out, fmt.Sprint(name, " ", time))
	})
	return strings.Join(out, ", ")
}

// The cases are the same as in path.test.ts in the web UI.
func TestCriticalPath(t *testing.T) {
	consume := sample{name: "consume", service: "mail", at: 20, long: 79, kind: otlpdata.KindConsumer}
	for _, c := range []struct {
		about, want string
		tops        []sample
	}{
		{"the time of a span is given to its children", "a 10, b 30, c 50, a 10", []sample{
			{name: "a", long: 100, children: []sample{{name: "b", at: 10, long: 30}, {name: "c", at: 40, long: 50}}}}},
		{"of children that overlap, the one that ends last", "a 5, d 15, c 80", []sample{
			{name: "a", long: 100, children: []sample{{name: "b", long: 60}, {name: "c", at: 20, long: 80}, {name: "d", at: 5, long: 15}}}}},
		{"small overlaps are ignored", "b 98, c 102", []sample{
			{name: "a", long: 200, children: []sample{{name: "b", long: 100}, {name: "c", at: 98, long: 102}}}}},
		{"larger overlaps are not", "a 97, c 103", []sample{
			{name: "a", long: 200, children: []sample{{name: "b", long: 100}, {name: "c", at: 97, long: 103}}}}},
		{"time between children is own time", "b 40, a 20, c 40", []sample{
			{name: "a", long: 100, children: []sample{{name: "b", long: 40}, {name: "c", at: 60, long: 40}}}}},
		{"children are cut while their parent runs", "b 10, b 20, a 20, c 50, c 450", []sample{
			{name: "a", at: 10, long: 90, children: []sample{{name: "b", long: 30}, {name: "c", at: 50, long: 500}}}}},
		{"grandchildren, too", "a 50, b 10, c 40, c 50", []sample{
			{name: "a", long: 100, children: []sample{{name: "b", at: 50, long: 100, children: []sample{
				{name: "c", at: 60, long: 90}, {name: "d", at: 120, long: 5}}}}}}},
		{"a server does not wait for a consumer", "a 100", []sample{
			{name: "a", long: 100, kind: otlpdata.KindServer, children: []sample{consume}}}},
		{"a producer does", "a 20, consume 79, a 1", []sample{
			{name: "a", long: 100, kind: otlpdata.KindProducer, children: []sample{consume}}}},
		{"a consumer waits for one of its service", "a 20, consume 79, a 1", []sample{
			{name: "a", service: "mail", long: 100, kind: otlpdata.KindConsumer, children: []sample{consume}}}},
		{"a consumer has the time after the root", "a 40, b 60, nothing 50, consume 50", []sample{
			{name: "a", long: 100, kind: otlpdata.KindServer, children: []sample{{name: "b", at: 40, long: 60},
				{name: "consume", service: "mail", at: 150, long: 50, kind: otlpdata.KindConsumer}}}}},
		{"of spans after the root, the one that started first", "a 5, c 5, c 30, d 40", []sample{
			{name: "a", long: 10, children: []sample{{name: "b", at: 20, long: 20, kind: otlpdata.KindConsumer, service: "b"},
				{name: "c", at: 5, long: 45}, {name: "d", at: 40, long: 40}}}}},
		{"several roots", "a 10, nothing 20, b 10", []sample{{name: "a", long: 10}, {name: "b", at: 30, long: 10}}},
		{"roots that overlap", "a 30, b 70", []sample{{name: "a", long: 50}, {name: "b", at: 30, long: 70}}},
		{"a missing parent beside a root", "a 10, nothing 20, b 10", []sample{
			{name: "a", long: 10}, {name: "b", at: 30, long: 10, orphan: true}}},
		{"a missing parent and no root", "b 10", []sample{{name: "b", at: 30, long: 10, orphan: true}}},
		{"no duration", "", []sample{{name: "a"}}},
	} {
		if got := describe(treeOf(t, c.tops...)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.about, got, c.want)
		}
	}
}

// TestCriticalPathOfManyGaps checks that the work is bounded if a deep chain of spans carries the
// time of many gaps between roots. path.test.ts in the web UI expects the same numbers.
func TestCriticalPathOfManyGaps(t *testing.T) {
	const roots, depth = 3000, 1000
	id := func(n int) (id otlpdata.SpanID) {
		binary.BigEndian.PutUint64(id[:], uint64(n+1))
		return id
	}
	var spans []tracestore.SummarySpan
	for i := range roots {
		spans = append(spans, tracestore.SummarySpan{ID: id(i), Start: uint64(begin + 2*i), Duration: 1})
	}
	for i := range depth { // the first one has a missing parent
		spans = append(spans, tracestore.SummarySpan{ID: id(roots + 1 + i), Parent: id(roots + i), Start: begin, Duration: 2*roots - 1,
			Name: fmt.Sprint(i)})
	}
	var tree Tree
	tree.Build(spans)
	own := make(map[string]uint64)
	tree.CriticalPath(func(span int, time uint64) { own[tree.spans[span].Name] += time })
	if want := (map[string]uint64{"": 3000, "999": 525, "550": 1, "0": 2473}); !maps.Equal(own, want) {
		t.Errorf("own times are %v, want %v", own, want)
	}
}
