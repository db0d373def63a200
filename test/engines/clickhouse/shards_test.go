package clickhouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

// ownPort and deadPort are ports of shards: the server considers ownPort its own, and nothing
// listens on deadPort.
const ownPort, deadPort = 9999, 1

// writeCluster writes the configuration of a server with a cluster "shop", which has a shard for
// each port.
func writeCluster(t *testing.T, file string, ports ...int) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "<clickhouse><tcp_port>%d</tcp_port><remote_servers><shop>", ownPort)
	for _, port := range ports {
		fmt.Fprintf(&b, "<shard><internal_replication>true</internal_replication>"+
			"<replica><host>127.0.0.1</host><port>%d</port></replica></shard>", port)
	}
	b.WriteString("</shop></remote_servers><macros><shard>1</shard><replica>1</replica></macros></clickhouse>")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

var replicatedEngine = regexp.MustCompile(`Replicated(\w*MergeTree)\('[^']*', '\{replica\}'(?:, )?`)

// unreplicated returns a statement for a server without coordination service, which has neither
// replicated tables nor ON CLUSTER.
func unreplicated(sql string) string {
	sql = strings.ReplaceAll(sql, " ON CLUSTER `shop`", "")
	return replicatedEngine.ReplaceAllString(sql, "$1(")
}

// answer is the part of responses that says whether they are complete.
type answer struct {
	complete bool
	reason   string
}

// answersOf returns the responses of a store to queries of the last hours.
func answersOf(t *testing.T, store any, from, to time.Time) map[string]answer {
	t.Helper()
	ctx, all := t.Context(), make(map[string]answer)
	add := func(what string, complete bool, reason string, err error) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		all[what] = answer{complete, reason}
	}
	d, err := as[tracestore.Edges](t, store).Dependencies(ctx, "", from, to)
	add("dependencies", d.Complete(), d.Text(), err)
	p, err := as[tracestore.Edges](t, store).Peers(ctx, "", from, to)
	add("peers", p.Complete(), p.Text(), err)
	e, err := as[tracestore.Edges](t, store).Edges(ctx, "", tracestore.EdgeQuery{From: from, To: to})
	add("edges", e.Complete(), e.Text(), err)
	m, err := as[tracestore.Metrics](t, store).Metrics(ctx, "", tracestore.MetricsQuery{From: from, To: to, Step: time.Hour})
	add("metrics", m.Complete(), m.Text(), err)
	b, err := as[tracestore.Metrics](t, store).Baselines(ctx, "", tracestore.BaselineQuery{From: from, To: to,
		Operations: []tracestore.OperationKey{{Service: "b", Operation: "answer", Kind: "server"}}})
	add("baselines", b.Complete(), b.Text(), err)
	q := tracestore.Query{From: from, To: to, Budget: tracestore.Budget{Spans: 1000}}
	for what, want := range map[string]tracestore.Aggregation{
		"heatmap": {Heatmap: tracestore.HeatmapQuery{Step: time.Hour}},
		"facets":  {Facets: tracestore.FacetQuery{Values: 10}},
		"groups":  {Groups: tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Service}}, Limit: 10}},
	} {
		a, err := as[tracestore.Aggregator](t, store).Aggregate(ctx, q, want)
		add(what, a.Complete(), a.Text(), err)
		if a.Spans != 2 {
			t.Errorf("%s counts %d spans, want 2", what, a.Spans)
		}
	}
	profile, err := as[tracestore.PathProfiler](t, store).ProfilePaths(ctx, q, tracestore.Selection{From: from, To: to},
		tracestore.PathOptions{})
	add("path profile", profile.Complete(), profile.Text(), err)
	return all
}

// TestMissingShard adds a shard to the cluster that does not answer. All answers that can must then
// say so, none may be cached, and what depends on a log that may be on that shard must fail.
func TestMissingShard(t *testing.T) {
	harness.SkipIfShort(t)
	file := filepath.Join(t.TempDir(), "config.xml")
	writeCluster(t, file, ownPort)
	s := engine.Start(t, engine.Options{Config: file})
	database := s.Database(t)
	f := clickhouse.FactoryFor(clickhouse.Dialect{Statement: unreplicated})
	var degraded error
	store := openBy(t, f, s, database, func(c *clickhouse.Config, set *pipeline.Settings) {
		c.Cluster = clickhouse.ClusterConfig{Name: "shop", Sharded: true}
		set.Report = func(err error) { degraded = err }
	})
	hour := time.Now().Truncate(time.Hour).Add(-5 * time.Hour)
	from, to := hour.Add(-time.Hour), hour.Add(2*time.Hour-1)
	start := uint64(hour.Add(time.Minute).UnixNano())
	consume(t, store, batchOf(t, "", span{service: "a", name: "call", trace: 1, id: 1, kind: ptrace.SpanKindClient, start: start},
		span{service: "b", name: "answer", trace: 1, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: start + 1}))
	settle(t, s, database, "_local")
	restart := func(ports ...int) {
		s.Stop()
		writeCluster(t, file, ports...)
		s.Restart(t)
	}
	cached := func() string {
		return strings.TrimSpace(s.Exec(t, "SELECT count() FROM "+database+".edges_local"))
	}

	restart(ownPort, deadPort)
	for what, a := range answersOf(t, store, from, to) {
		if a.complete || !strings.Contains(a.reason, "shard 2 of cluster shop") {
			t.Errorf("%s without a shard: complete is %t, reason %q", what, a.complete, a.reason)
		}
	}
	if n := cached(); n != "0" {
		t.Errorf("%s hours were cached without a shard", n)
	}
	b := batchOf(t, "", span{service: "a", name: "late", trace: 2, id: 1, start: start})
	if err := store.(consumer).Consume(t.Context(), b); !pipeline.IsTemporary(err) {
		t.Errorf("storing without a shard: %v, want a temporary error", err)
	}
	if _, err := as[tracestore.Deleter](t, store).Delete(t.Context(), "", tracestore.Deletion{Service: "a"}); err == nil {
		t.Error("spans were deleted without a shard")
	}
	if c, err := as[sampling.Store](t, store).LatestCalculation(t.Context()); err == nil {
		t.Errorf("the latest calculation without a shard is %v", c)
	}
	// A query service that starts now is degraded, and ready, because it has partial responses.
	first := make(chan error, 1)
	openBy(t, f, s, database, func(c *clickhouse.Config, set *pipeline.Settings) {
		c.Cluster, c.Schema = clickhouse.ClusterConfig{Name: "shop", Sharded: true}, "check"
		set.Report = func(err error) {
			select {
			case first <- err:
			default:
			}
		}
	})
	if err := <-first; err == nil || pipeline.IsNotReady(err) {
		t.Errorf("a query service started without a shard reports %v", err)
	}

	restart(ownPort)
	for what, a := range answersOf(t, store, from, to) {
		if !a.complete {
			t.Errorf("%s: not complete, reason %q", what, a.reason)
		}
	}
	if n := cached(); n == "0" {
		t.Error("no hour was cached")
	}
	consume(t, store, b)
	if degraded != nil {
		t.Errorf("the exporter is still degraded: %v", degraded)
	}
}
