package multistore

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestGraphs adds up calls.
func TestGraphs(t *testing.T) {
	a := &canned{graph: tracestore.Graph{Edges: []tracestore.Edge{
		{Parent: "shop", Child: "cart", Calls: 3, Errors: 1, Duration: 30},
		{Parent: "web", Child: "shop", Calls: 1, Duration: math.MaxUint64 - 1}}}}
	b := &canned{graph: tracestore.Graph{Reasons: tracestore.Because(tracestore.ReasonDamage, "damaged file"), Edges: []tracestore.Edge{
		{Parent: "shop", Child: "cart", Calls: 4, Errors: 2, Duration: 40},
		{Parent: "shop", Child: "cart", Messaging: true, Calls: 1, Duration: 5}, {Parent: "web", Child: "shop", Calls: 1, Duration: 2}}}}
	want := tracestore.Graph{Reasons: tracestore.Because(tracestore.ReasonDamage, "damaged file").Of("b"), Edges: []tracestore.Edge{
		{Parent: "shop", Child: "cart", Calls: 7, Errors: 3, Duration: 70},
		{Parent: "shop", Child: "cart", Messaging: true, Calls: 1, Duration: 5},
		{Parent: "web", Child: "shop", Calls: 2, Duration: math.MaxUint64}}}
	for name, call := range map[string]func(*Store) (tracestore.Graph, error){
		"Dependencies": func(s *Store) (tracestore.Graph, error) {
			return s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		},
		"Peers": func(s *Store) (tracestore.Graph, error) { return s.Peers(t.Context(), "", time.Time{}, time.Time{}) },
	} {
		if got, err := call(over(a, b)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	a = &canned{edges: tracestore.EdgeGraph{Edges: []tracestore.CallEdge{
		{Parent: "shop", Child: "db", Peer: true, Connection: tracestore.ConnectionDatabase, Calls: 2, Errors: 1, Durations: histogram(10, 20)},
		{Parent: "web", Child: "db", Calls: 1, Durations: histogram(5)}}}}
	b = &canned{edges: tracestore.EdgeGraph{Edges: []tracestore.CallEdge{
		{Parent: "shop", Child: "db", Peer: true, Connection: tracestore.ConnectionDatabase, Calls: 1, Durations: histogram(10)},
		{Parent: "shop", Child: "db", Calls: 4}}}}
	got, err := over(a, b).Edges(t.Context(), "", tracestore.EdgeQuery{Service: "shop"})
	wantEdges := tracestore.EdgeGraph{Edges: []tracestore.CallEdge{{Parent: "shop", Child: "db", Calls: 4},
		{Parent: "shop", Child: "db", Peer: true, Connection: tracestore.ConnectionDatabase, Calls: 3, Errors: 1,
			Durations: histogram(10, 20, 10)}}}
	if err != nil || !reflect.DeepEqual(got, wantEdges) {
		t.Errorf("%+v, %v; want %+v", got, err, wantEdges)
	}
}

// TestTooManyPeers checks that the limit on edges to peers holds for all stores together.
func TestTooManyPeers(t *testing.T) {
	var stores []*canned
	for i := range 2 {
		c := &canned{graph: tracestore.Graph{}, edges: tracestore.EdgeGraph{}}
		for n := range storequery.MaxPeerEdges/2 + 1 {
			name := fmt.Sprint(i, "-", n)
			c.graph.Edges = append(c.graph.Edges, tracestore.Edge{Parent: "a", Child: name, Calls: 1})
			c.edges.Edges = append(c.edges.Edges, tracestore.CallEdge{Parent: "a", Child: name, Peer: true, Calls: 1})
		}
		stores = append(stores, c)
	}
	peers, err := over(stores...).Peers(t.Context(), "", time.Time{}, time.Time{})
	if err != nil || len(peers.Edges) != storequery.MaxPeerEdges || !peers.Has(tracestore.ReasonLimit) ||
		!strings.HasPrefix(peers.Text(), "calls to some peers") {
		t.Errorf("%d edges, complete %t, reason %q, error %v", len(peers.Edges), peers.Complete(), peers.Text(), err)
	}
	edges, err := over(stores...).Edges(t.Context(), "", tracestore.EdgeQuery{})
	if err != nil || len(edges.Edges) != storequery.MaxPeerEdges || edges.Complete() || edges.Text() != peers.Text() {
		t.Errorf("%d edges, complete %t, reason %q, error %v", len(edges.Edges), edges.Complete(), edges.Text(), err)
	}
}

// TestMetrics adds up points.
func TestMetrics(t *testing.T) {
	const minute = uint64(time.Minute)
	point := func(start, errors uint64, durations ...uint64) tracestore.MetricPoint {
		return tracestore.MetricPoint{Start: start, Calls: uint64(len(durations)), Errors: errors, Durations: histogram(durations...)}
	}
	a := &canned{metrics: tracestore.MetricsAnswer{Step: 2 * minute, Series: []tracestore.MetricSeries{
		{Service: "shop", Operation: "buy", Points: []tracestore.MetricPoint{point(2*minute, 1, 10, 20), point(4*minute, 0, 30)}},
		{Service: "web", Operation: "GET /", Points: []tracestore.MetricPoint{point(0, 1, 1)}}}}}
	b := &canned{metrics: tracestore.MetricsAnswer{Step: 2 * minute, Series: []tracestore.MetricSeries{
		{Service: "cart", Operation: "get", Points: []tracestore.MetricPoint{point(8*minute, 0, 5)}},
		{Service: "shop", Operation: "buy", Points: []tracestore.MetricPoint{point(2*minute, 0, 40), point(6*minute, 1, 50)}}}}}
	other := &canned{metrics: tracestore.MetricsAnswer{Step: minute, Series: a.metrics.Series}}
	want := tracestore.MetricsAnswer{Step: 2 * minute,
		Reasons: tracestore.Because(tracestore.ReasonDamage, "the points of the response have a different length").Of("c"),
		Series: []tracestore.MetricSeries{b.metrics.Series[0], {Service: "shop", Operation: "buy", Points: []tracestore.MetricPoint{
			point(2*minute, 1, 10, 20, 40), point(4*minute, 0, 30), point(6*minute, 1, 50)}}, a.metrics.Series[1]}}
	got, err := over(a, b, other).Metrics(t.Context(), "", tracestore.MetricsQuery{ByOperation: true, Step: 2 * time.Minute})
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); err != nil || g != w {
		t.Errorf("error %v\n got %s\nwant %s", err, g, w)
	}
}

// TestTooManyPoints checks that the limit on points holds for all stores together.
func TestTooManyPoints(t *testing.T) {
	var stores []*canned
	for i := range 2 {
		s := tracestore.MetricSeries{Service: fmt.Sprint(i)}
		for n := range uint64(storequery.MaxMetricPoints/2 + 1) {
			s.Points = append(s.Points, tracestore.MetricPoint{Start: n * uint64(time.Minute), Calls: 1})
		}
		stores = append(stores, &canned{metrics: tracestore.MetricsAnswer{Step: uint64(time.Minute),
			Series: []tracestore.MetricSeries{s}}})
	}
	got, err := over(stores...).Metrics(t.Context(), "", tracestore.MetricsQuery{})
	points := 0
	for _, s := range got.Series {
		points += len(s.Points)
	}
	if err != nil || points != storequery.MaxMetricPoints || got.Complete() || !strings.HasPrefix(got.Text(), "a response has at most") {
		t.Errorf("%d points, complete %t, reason %q, error %v", points, got.Complete(), got.Text(), err)
	}
}

func TestBaselines(t *testing.T) {
	a := &canned{baselines: tracestore.BaselineAnswer{Durations: []tracestore.Histogram{histogram(1, 2), {}}}}
	b := &canned{baselines: tracestore.BaselineAnswer{Durations: []tracestore.Histogram{histogram(2), histogram(9)}}}
	bad := &canned{baselines: tracestore.BaselineAnswer{Durations: []tracestore.Histogram{histogram(2)}}}
	got, err := over(a, b, bad).Baselines(t.Context(), "", tracestore.BaselineQuery{Operations: make([]tracestore.OperationKey, 2)})
	want := tracestore.BaselineAnswer{Durations: []tracestore.Histogram{histogram(1, 2, 2), histogram(9)},
		Reasons: tracestore.Because(tracestore.ReasonDamage, "the response is for other operations").Of("c")}
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); err != nil || g != w {
		t.Errorf("error %v\n got %s\nwant %s", err, g, w)
	}
}

func TestUsage(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for _, c := range []struct {
		of   []tracestore.Usage
		want tracestore.Usage
	}{
		{[]tracestore.Usage{{Oldest: late, OldestStart: 5, NewestStart: 6, Bytes: 5, MaxBytes: 10, Retention: 3},
			{Oldest: early, OldestStart: 4, NewestStart: 5, Bytes: 6, MaxBytes: 20, Retention: 2}},
			tracestore.Usage{Oldest: early, OldestStart: 4, NewestStart: 6, Bytes: 11, MaxBytes: 30, Retention: 3}},
		{[]tracestore.Usage{{Bytes: 5, MaxBytes: 10}, {Oldest: late, OldestStart: 5, NewestStart: 6, Retention: 2}, {MaxBytes: 7, Retention: 1,
			Reasons: tracestore.Because(tracestore.ReasonUnavailable, "down").Of("x")}},
			tracestore.Usage{Oldest: late, OldestStart: 5, NewestStart: 6, Bytes: 5,
				Reasons: tracestore.Because(tracestore.ReasonUnavailable, "store x: down").Of("c")}},
	} {
		var stores []*canned
		for _, u := range c.of {
			stores = append(stores, &canned{usage: u})
		}
		if got, err := over(stores...).Usage(t.Context(), ""); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: got %+v, %v; want %+v", c.of, got, err, c.want)
		}
	}
}

// profile returns the profile of some of n traces that do not belong to the selection, each with
// two calls of one operation, and one fails.
func profile(n, all int) func(int) tracestore.PathProfile {
	return func(limit int) tracestore.PathProfile {
		examined := min(n, limit)
		traces := uint64(examined)
		counts := tracestore.PathCounts{Traces: traces, Calls: 2 * traces, Errors: traces, SelfTime: 100 * traces,
			SelfSquares: 10000 * float64(traces), CallSquares: 4 * float64(traces)}
		return tracestore.PathProfile{Scanned: examined, Selected: tracestore.PathSet{Share: 1},
			Rest: tracestore.PathSet{Traces: traces, Failed: traces, Spans: 2 * traces, Time: 100 * traces, TimeSquares: 10000 * float64(traces),
				Share: float64(examined) / float64(all), IDs: make([]otlpdata.TraceID, examined)},
			Paths:      []tracestore.CallPath{{Parent: -1, Service: "web", Name: "GET /", Rest: counts}},
			Operations: []tracestore.OperationProfile{{Service: "web", Name: "GET /", Rest: counts}}}
	}
}

// TestProfilePaths checks how traces are divided among stores, and the weights of samples.
func TestProfilePaths(t *testing.T) {
	for _, c := range []struct {
		about  string
		limit  int
		stores []*canned
		asked  [][]int
		traces uint64
		share  float64
		counts tracestore.PathCounts
	}{
		{"all traces are examined", 0, []*canned{{profiles: profile(10, 10)}, {profiles: profile(30, 30)}}, [][]int{{1000}, {1000}}, 40, 1,
			tracestore.PathCounts{Traces: 40, Calls: 80, Errors: 40, SelfTime: 4000, SelfSquares: 400_000, CallSquares: 160}},
		{"both have more", 20, []*canned{{profiles: profile(50, 50)}, {profiles: profile(50, 50)}}, [][]int{{10}, {10}}, 20, 0.2,
			tracestore.PathCounts{Traces: 20, Calls: 40, Errors: 20, SelfTime: 2000, SelfSquares: 200_000, CallSquares: 80}},
		// 10 of 10 and 10 of 20 traces; 40 are wanted, but a budget stops the second store. The
		// traces of the first stand for 2/3, traces of the second for 4/3 traces of the sample.
		{"different shares", 40, []*canned{{profiles: profile(10, 10)}, {profiles: profile(10, 20)}}, [][]int{{20}, {20}}, 20, 20.0 / 30,
			tracestore.PathCounts{Traces: 20, Calls: 40, Errors: 20, SelfTime: 2000, SelfSquares: 200_000, CallSquares: 80}},
		// The first store leaves 38 traces to the second.
		{"one has few", 40, []*canned{{profiles: profile(2, 2)}, {profiles: profile(100, 100)}}, [][]int{{20}, {20, 38}}, 40, 40.0 / 102,
			tracestore.PathCounts{Traces: 40, Calls: 80, Errors: 40, SelfTime: 4000, SelfSquares: 400_000, CallSquares: 160}},
		{"fewer traces than stores", 1, []*canned{{profiles: profile(9, 9)}, {profiles: profile(9, 9)}}, [][]int{{1}, {1}}, 2, 2.0 / 18,
			tracestore.PathCounts{Traces: 2, Calls: 4, Errors: 2, SelfTime: 200, SelfSquares: 20_000, CallSquares: 8}},
	} {
		options := tracestore.PathOptions{Traces: c.limit}
		got, err := over(c.stores...).ProfilePaths(t.Context(), tracestore.Query{}, tracestore.Selection{}, options)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range c.stores {
			if !slices.Equal(s.asked, c.asked[i]) {
				t.Errorf("%s: store %d was asked for %d traces, want %d", c.about, i, s.asked, c.asked[i])
			}
		}
		r := got.Rest
		if r.Traces != c.traces || math.Abs(r.Share-c.share) > 1e-9 || len(r.IDs) != int(c.traces) || r.Failed != r.Traces || !got.Complete() ||
			math.Abs(float64(r.Spans)-2*float64(c.traces)) > 1 || math.Abs(float64(r.Time)-100*float64(c.traces)) > 1 || got.Selected.Share != 1 {
			t.Errorf("%s: rest %+v", c.about, r)
		}
		for of, n := range map[string]tracestore.PathCounts{"path": got.Paths[0].Rest, "operation": got.Operations[0].Rest} {
			n.SelfSquares, n.CallSquares = math.Round(n.SelfSquares), math.Round(n.CallSquares)
			if n != c.counts {
				t.Errorf("%s: %s %+v, want %+v", c.about, of, n, c.counts)
			}
		}
	}
}

// TestWrongPaths checks that a profile with paths in the wrong order is counted as far as possible.
func TestWrongPaths(t *testing.T) {
	bad := profile(1, 1)(1)
	bad.Paths = append(bad.Paths, tracestore.CallPath{Parent: 7})
	s := over(&canned{profiles: profile(1, 1)}, &canned{profiles: func(int) tracestore.PathProfile { return bad }})
	got, err := s.ProfilePaths(t.Context(), tracestore.Query{}, tracestore.Selection{}, tracestore.PathOptions{})
	if err != nil || got.Complete() || got.Text() != "store b: call path 1 of 2 has the parent 7" || got.Paths[0].Rest.Traces != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}
