package callpath

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// shop returns a trace: a web server that calls a database n times.
func shop(n int, failed bool) []tracestore.SummarySpan {
	root := sample{name: "GET /", long: 100 * n, kind: otlpdata.KindServer}
	for i := range n {
		root.children = append(root.children, sample{name: "query", service: "db", at: 100*i + 10, long: 80, kind: otlpdata.KindClient,
			failed: failed})
	}
	return spansOf(root)
}

func TestCounter(t *testing.T) {
	var c Counter
	var tree Tree
	for i, spans := range [][]tracestore.SummarySpan{shop(1, false), shop(3, true), shop(2, false)} {
		tree.Build(spans)
		c.AddTrace(&tree, otlpdata.TraceID{byte(9 - i)}, i == 1)
	}
	got := c.Answer()
	root := tracestore.PathCounts{Traces: 2, Calls: 2, SelfTime: 20 + 40, SelfSquares: 20*20 + 40*40, CallSquares: 2}
	query := tracestore.PathCounts{Traces: 2, Calls: 3, SelfTime: 80 + 160, SelfSquares: 80*80 + 160*160, CallSquares: 1 + 4}
	slowRoot := tracestore.PathCounts{Traces: 1, Calls: 1, SelfTime: 60, SelfSquares: 60 * 60, CallSquares: 1}
	slowQuery := tracestore.PathCounts{Traces: 1, Calls: 3, Errors: 3, SelfTime: 240, SelfSquares: 240 * 240, CallSquares: 9}
	want := tracestore.PathProfile{
		Paths: []tracestore.CallPath{
			{Parent: -1, Service: "web", Name: "GET /", Kind: otlpdata.KindServer, Selected: slowRoot, Rest: root},
			{Parent: 0, Service: "db", Name: "query", Kind: otlpdata.KindClient, Selected: slowQuery, Rest: query}},
		Operations: []tracestore.OperationProfile{{Service: "db", Name: "query", Selected: slowQuery, Rest: query},
			{Service: "web", Name: "GET /", Selected: slowRoot, Rest: root}},
		Selected: tracestore.PathSet{Traces: 1, Failed: 1, Spans: 4, Time: 300, TimeSquares: 300 * 300, Share: 1, IDs: []otlpdata.TraceID{{8}}},
		Rest: tracestore.PathSet{Traces: 2, Spans: 5, Time: 300, TimeSquares: 100*100 + 200*200, Share: 1,
			IDs: []otlpdata.TraceID{{9}, {7}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestAddProfile checks that profiles of parts of the traces add up to the profile of all.
func TestAddProfile(t *testing.T) {
	var all, sum Counter
	var parts [3]Counter
	var tree Tree
	for i := range 12 {
		tree.Build(shop(1+i%4, i%5 == 0))
		if i%6 == 5 {
			tree.Build(spansOf(sample{name: "GET /", long: 5, children: []sample{{name: fmt.Sprint("child ", i), long: 2}}}))
		}
		all.AddTrace(&tree, otlpdata.TraceID{byte(i)}, i%4 == 1)
		parts[i/4].AddTrace(&tree, otlpdata.TraceID{byte(i)}, i%4 == 1)
	}
	for i := range parts {
		p := parts[i].Answer()
		if err := sum.AddProfile(&p); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := sum.Answer(), all.Answer(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, parent := range []int{0, 1, -2} {
		if err := sum.AddProfile(&tracestore.PathProfile{Paths: []tracestore.CallPath{{Parent: parent}}}); err == nil {
			t.Errorf("a first path with the parent %d: no error", parent)
		}
	}
}

// TestCycles checks that the first span of a cycle of parents has no parent.
func TestCycles(t *testing.T) {
	id := func(n byte) otlpdata.SpanID { return otlpdata.SpanID{n} }
	var tree Tree
	var c Counter
	tree.Build([]tracestore.SummarySpan{
		{ID: id(1), Parent: id(3), Start: 20, Duration: 5, Name: "a"}, {ID: id(2), Parent: id(1), Start: 10, Duration: 50, Name: "b"},
		{ID: id(3), Parent: id(2), Start: 30, Duration: 5, Name: "c"}, {ID: id(4), Parent: id(3), Start: 31, Duration: 1, Name: "d"},
		{ID: id(5), Parent: id(5), Start: 40, Duration: 1, Name: "own parent"},
	})
	c.AddTrace(&tree, otlpdata.TraceID{1}, true)
	var got []string
	for _, p := range c.Answer().Paths {
		got = append(got, fmt.Sprint(p.Name, " ", p.Parent))
	}
	if want := []string{"b -1", "c 0", "a 1", "d 1", "own parent -1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
}

// TestManyPaths checks that there are at most MaxCallPaths paths, and that those below one that is
// not counted are not, either.
func TestManyPaths(t *testing.T) {
	var c Counter
	var tree Tree
	for first := 0; first < tracestore.MaxCallPaths+1000; first += 1000 {
		root := sample{name: "root", long: 2000}
		for i := range 1000 {
			root.children = append(root.children, sample{name: fmt.Sprint("op ", first+i), at: i, long: 1, children: []sample{{name: "inner"}}})
		}
		tree.Build(spansOf(root))
		c.AddTrace(&tree, otlpdata.TraceID{byte(first / 1000)}, false)
	}
	p := c.Answer()
	if len(p.Paths) != tracestore.MaxCallPaths || p.Complete() || !strings.Contains(p.Text(), "20000 call paths") {
		t.Errorf("%d paths, complete %t, reason %q", len(p.Paths), p.Complete(), p.Text())
	}
	if p.Rest.Traces != 21 || p.Rest.Time != 21*2000 {
		t.Errorf("set %+v, want all traces", p.Rest)
	}
	for i, one := range p.Paths {
		if one.Parent >= i {
			t.Fatalf("path %d has the parent %d", i, one.Parent)
		}
	}
}

// account has a number of bytes.
type account int64

func (a *account) Grow(n int64) error {
	if n > int64(*a) {
		return errors.New("out of memory")
	}
	*a -= account(n)
	return nil
}

func (a *account) Shrink(n int64) { *a += account(n) }

// TestCounterMemory checks that what does not fit into memory is not counted, and that the result
// says so.
func TestCounterMemory(t *testing.T) {
	left := account(64 << 10)
	m, err := tracestore.Reserve(tracestore.WithAccount(t.Context(), &left), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	var c Counter
	var tree Tree
	c.ChargeTo(m)
	root := sample{name: "root", long: 2000}
	for i := range 1000 {
		root.children = append(root.children, sample{name: fmt.Sprint("op ", i), at: i, long: 1})
	}
	tree.Build(spansOf(root))
	c.AddTrace(&tree, otlpdata.TraceID{1}, true)
	p := c.Answer()
	if p.Complete() || !strings.Contains(p.Text(), "memory") || len(p.Paths) == 0 || len(p.Paths) > 200 || p.Selected.Spans != 1001 {
		t.Errorf("%d paths, complete %t, reason %q", len(p.Paths), p.Complete(), p.Text())
	}
}
