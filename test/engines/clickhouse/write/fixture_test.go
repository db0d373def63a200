package write

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// fixture is an empty database with its tables.
type fixture struct {
	*testing.T
	server   *engine.Server
	database string
	protocol string
}

// eachProtocol runs a test over both protocols.
func eachProtocol(t *testing.T, test func(f *fixture)) {
	t.Helper()
	for _, protocol := range []string{"native", "http"} {
		t.Run(protocol, func(t *testing.T) {
			s := engine.Shared(t)
			test(&fixture{T: t, server: s, database: s.Database(t), protocol: protocol})
		})
	}
}

// exporter is one started exporter.
type exporter struct {
	pipeline.Consumer
	mu       sync.Mutex
	reported []error
}

// report records what the exporter reports.
func (e *exporter) report(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reported = append(e.reported, err)
}

// reports returns what the exporter has reported since the last call.
func (e *exporter) reports() []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.reported
	e.reported = nil
	return out
}

// start starts an exporter, which is stopped at the end of the test.
func (f *fixture) start(edit ...func(*clickhouse.Config, *pipeline.Settings)) *exporter {
	f.Helper()
	factory := clickhouse.Factory()
	c := factory.Defaults().(*clickhouse.Config)
	c.Protocol, c.Database, c.Endpoints = f.protocol, f.database, []string{f.address()}
	e := &exporter{}
	set := pipeline.Settings{ID: pipeline.ID{Type: "clickhouse"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(),
		Env: pipeline.SystemEnv(), Budget: pipeline.NewBudget(1 << 30), QueryMemory: pipeline.NewBudget(1 << 30), Report: e.report}
	for _, change := range edit {
		change(c, &set)
	}
	component, err := factory.Build(set, c, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := component.(pipeline.Starter).Start(context.Background()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := component.(pipeline.Stopper).Stop(context.Background()); err != nil {
			f.Error(err)
		}
	})
	e.Consumer = component.(pipeline.Consumer)
	return e
}

func (f *fixture) address() string {
	if f.protocol == "http" {
		return f.server.HTTPAddr()
	}
	return f.server.NativeAddr()
}

// query returns the output of a query, in which {db} stands for the database.
func (f *fixture) query(sql string) string {
	f.Helper()
	return strings.TrimSpace(f.server.Exec(f.T, strings.ReplaceAll(sql, "{db}", f.database)))
}

// counts returns the contents of the tables that a repeated insert must not change.
func (f *fixture) counts() string {
	f.Helper()
	var out []string
	for _, sql := range []string{
		"SELECT count(), uniqExact(trace_id, start) FROM {db}.spans",
		"SELECT count(), uniqExact(ids) FROM {db}.payload",
		"SELECT sum(spans) FROM {db}.bounds",
		"SELECT sum(spans), sum(calls), sum(duration) FROM {db}.minutes",
		"SELECT sum(spans) FROM {db}.hours",
		"SELECT count() FROM (SELECT DISTINCT tenant, service, name, kind FROM {db}.operations)",
	} {
		out = append(out, sql[strings.LastIndexByte(sql, '.')+1:]+" "+strings.ReplaceAll(f.query(sql), "\t", " "))
	}
	return strings.Join(out, "\n")
}

// today returns the start of the current day.
func today() time.Time { return time.Now().UTC().Truncate(24 * time.Hour) }

// spansOf returns a batch of n spans with distinct ids.
func spansOf(t testing.TB, n int, first uint64, start func(i int) uint64) *otlpdata.Batch {
	t.Helper()
	var b otlpdata.Builder
	b.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue("cart")}})
	b.Scope("lib", "v1", nil)
	for i := range n {
		s := otlpdata.Span{Name: fmt.Sprint("operation ", i%7), Kind: otlpdata.KindServer, Start: start(i), Attributes: []otlpdata.KeyValue{
			{Key: "http.route", Value: otlpdata.StringValue("/cart")}, {Key: "size", Value: otlpdata.IntValue(int64(i))}}}
		s.End = s.Start + uint64(i)*1000
		binary.BigEndian.PutUint64(s.TraceID[8:], first+uint64(i)/5)
		binary.BigEndian.PutUint64(s.SpanID[:], first+uint64(i))
		b.Span(&s)
	}
	batch, err := otlpdata.FromOTLP(b.Bytes(), otlpdata.Meta{Tenant: "acme", Received: time.Now()}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// soon returns start times of today.
func soon(i int) uint64 { return uint64(today().UnixNano()) + uint64(i)*uint64(time.Millisecond) }

// must stores a batch.
func (f *fixture) must(e *exporter, b *otlpdata.Batch) {
	f.Helper()
	if err := e.Consume(context.Background(), b); err != nil {
		f.Fatal(err)
	}
}
