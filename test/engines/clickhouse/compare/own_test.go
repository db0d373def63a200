package compare

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// own is the exporter of this program: two inserts for each batch, with deduplication tokens, into
// a table for searches and a table for reading traces.
type own struct {
	store interface {
		pipeline.Consumer
		tracestore.Reader
		tracestore.Metrics
		tracestore.Aggregator
	}
}

func newOwn(tb testing.TB, s *server) subject {
	f := clickhouse.Factory()
	c := f.Defaults().(*clickhouse.Config)
	c.Endpoints, c.Protocol, c.Database = []string{s.addr}, "http", s.database
	set := pipeline.Settings{ID: pipeline.ID{Type: "clickhouse"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(),
		Env: pipeline.SystemEnv(), Budget: pipeline.NewBudget(1 << 30), QueryMemory: pipeline.NewBudget(1 << 30), Report: func(error) {}}
	component, err := f.Build(set, c, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := component.(pipeline.Starter).Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := component.(pipeline.Stopper).Stop(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	o := &own{}
	store, ok := component.(interface {
		pipeline.Consumer
		tracestore.Reader
		tracestore.Metrics
		tracestore.Aggregator
	})
	if !ok {
		tb.Fatal("the exporter lacks an interface")
	}
	o.store = store
	return o
}

func (o *own) write(ctx context.Context, b batch) error { return o.store.Consume(ctx, b.own) }

func (o *own) trace(ctx context.Context, id otlpdata.TraceID) (spans int, err error) {
	for t, err := range o.store.Traces(ctx, "", []tracestore.TraceRef{{ID: id}}) {
		if err != nil {
			return 0, err
		}
		spans += t.Spans.Len()
	}
	return spans, nil
}

func (q search) query() tracestore.Query {
	field, value := tracestore.Field{Place: tracestore.Service}, q.service
	if q.user != "" {
		field, value = tracestore.Field{Place: tracestore.SpanAttribute, Key: "enduser.id"}, q.user
	}
	return tracestore.Query{From: q.from, To: q.to, Limit: q.limit, Where: tracestore.Cond{Field: field, Value: tracestore.Text(value)}}
}

func (o *own) find(ctx context.Context, q search, want tracestore.Want) (found []otlpdata.TraceID, err error) {
	results, err := o.store.Find(ctx, q.query(), want)
	if err != nil {
		return nil, err
	}
	for r, err := range results.All {
		if err != nil {
			return nil, err
		}
		found = append(found, r.ID)
	}
	return found, nil
}

func (o *own) newest(ctx context.Context, q search) ([]otlpdata.TraceID, error) {
	return o.find(ctx, q, tracestore.WantIDs)
}

func (o *own) summaries(ctx context.Context, q search) (traces int, err error) {
	found, err := o.find(ctx, q, tracestore.WantSummaries)
	return len(found), err
}

func (o *own) red(ctx context.Context, q search) (calls uint64, err error) {
	answer, err := o.store.Metrics(ctx, "", tracestore.MetricsQuery{Services: []string{q.service}, From: q.from,
		To: q.to.Add(-time.Nanosecond), Step: time.Minute})
	for _, s := range answer.Series {
		for _, p := range s.Points {
			calls += p.Calls
		}
	}
	return calls, err
}

func (o *own) heatmap(ctx context.Context, q search) (spans uint64, err error) {
	query := q.query()
	query.To = q.to.Add(-time.Nanosecond)
	answer, err := o.store.Aggregate(ctx, query, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}})
	return answer.Spans, err
}
