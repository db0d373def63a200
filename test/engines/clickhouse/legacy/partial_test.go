package legacy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/legacy"
)

// store is what the test needs of the exporter.
type store interface {
	pipeline.Consumer
	pipeline.Starter
	pipeline.Stopper
	tracestore.Reader
	tracestore.Edges
}

// open returns the exporter in this process.
func (i *installation) open() store {
	i.t.Helper()
	f := clickhouse.FactoryFor(legacy.Dialect())
	c := f.Defaults().(*clickhouse.Config)
	c.Endpoints, c.Cluster = i.Addrs(), clickhouse.ClusterConfig{Name: cluster.Name, Sharded: true}
	set := pipeline.Settings{Logger: zaptest.NewLogger(i.t), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(),
		Report: func(error) {}}
	e, err := f.Build(set, c, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	s := e.(store)
	if err := s.Start(i.t.Context()); err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// TestPartialAnswers checks that answers without a shard say so, and that the traces of the other
// shard are still found.
func TestPartialAnswers(t *testing.T) {
	i := install(t)
	s := i.open()
	set := bench.New(3, time.Now())
	for r := range set.Requests(500, 100) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		if err == nil {
			err = s.Consume(t.Context(), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, outcome := i.find(s)
	if !outcome.Complete() || len(all) == 0 {
		t.Fatalf("%d traces, outcome %+v", len(all), outcome)
	}
	i.waitSynced()
	calls := i.calls(s, "")
	for _, n := range i.Shard(2) {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	const missing = "1 of 2 shards of cluster " + cluster.Name // 18.16 cannot tell which
	some, outcome := i.find(s)
	if outcome.Complete() || !strings.Contains(outcome.Text(), missing) {
		t.Errorf("outcome %+v, want one that names the shard", outcome)
	}
	if len(some) == 0 || len(some) >= len(all) {
		t.Errorf("%d of %d traces without a shard", len(some), len(all))
	}
	if n := i.calls(s, missing); n == 0 || n >= calls {
		t.Errorf("%d of %d calls without a shard", n, calls)
	}
	if b, err := otlpdata.FromOTLP(nil, otlpdata.Meta{}, otlpdata.Limits{}); err != nil {
		t.Error(err)
	} else if err := s.Consume(t.Context(), b); !pipeline.IsTemporary(err) {
		t.Errorf("storing without a shard: %v, want a temporary error", err)
	}
	for id := range all {
		var damaged *tracestore.DamagedError
		spans, err := 0, error(nil)
		for tr, e := range s.Traces(t.Context(), "", []tracestore.TraceRef{{ID: id}}) {
			if err = e; err == nil {
				spans += tr.Spans.Len()
			}
		}
		if some[id] && (err != nil || spans == 0) || !some[id] && (!errors.As(err, &damaged) || spans > 0) {
			t.Errorf("trace %s, found %t: %d spans, %v", id, some[id], spans, err)
		}
	}
}

// calls returns the number of calls between services. It checks that the response is complete if
// missing is "", or else has it as reason.
func (i *installation) calls(s store, missing string) (n uint64) {
	i.t.Helper()
	g, err := s.Dependencies(i.t.Context(), "", time.Time{}, time.Time{})
	if err != nil || g.Complete() != (missing == "") || !strings.Contains(g.Text(), missing) {
		i.t.Errorf("calls: %v, complete is %t, reason %q", err, g.Complete(), g.Text())
	}
	for _, e := range g.Edges {
		n += e.Calls
	}
	return n
}

// find returns all traces.
func (i *installation) find(s store) (map[otlpdata.TraceID]bool, tracestore.Outcome) {
	i.t.Helper()
	found, err := s.Find(i.t.Context(), tracestore.Query{}, tracestore.WantSummaries)
	if err != nil {
		i.t.Fatal(err)
	}
	ids := make(map[otlpdata.TraceID]bool)
	for r, err := range found.All {
		if err != nil {
			i.t.Fatal(err)
		}
		ids[r.ID] = true
	}
	return ids, found.Outcome()
}
