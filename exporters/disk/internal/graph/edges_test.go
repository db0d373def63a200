package graph

import (
	"math"
	"os"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Statistics that were written before calls were measured give counts without durations, and no
// calls within a service.
func TestEdgesOfOldStatistics(t *testing.T) {
	section, err := os.ReadFile("../stats/testdata/edges-1.golden")
	if err != nil {
		t.Fatal(err)
	}
	edges, err := stats.DecodeEdges(section)
	if err != nil {
		t.Fatal(err)
	}
	c := callReader{edges: storequery.NewEdgeCounter(&tracestore.EdgeQuery{})}
	want := make(map[[2]string]uint64)
	for p := range edges.Points(0, math.MaxUint64) {
		c.addMeasured(edges, &p)
		if e := &edges.Edges[p.Edge]; e.Parent != e.Child {
			want[[2]string{e.Parent, e.Child}] += p.Calls
		}
	}
	got := make(map[[2]string]uint64)
	for _, e := range c.edges.Graph().Edges {
		got[[2]string{e.Parent, e.Child}] += e.Calls
		if e.Durations.Count() > 0 || e.Connection > tracestore.ConnectionMessaging {
			t.Errorf("edge %+v has durations or a connection", e)
		}
	}
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("%d edges, want %d", len(got), len(want))
	}
	for name, calls := range want {
		if got[name] != calls {
			t.Errorf("%v: %d calls, want %d", name, got[name], calls)
		}
	}
}
