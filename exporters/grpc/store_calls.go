package grpc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// AttributeKeys implements tracestore.Catalog.
func (e *exporter) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	return ask[tracestore.Catalog, []string](ctx, e, tenant, "AttributeKeys",
		&storewire.Attributes{Prefix: prefix, Limit: limit})
}

// AttributeValues implements tracestore.Catalog.
func (e *exporter) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	return ask[tracestore.Catalog, []string](ctx, e, tenant, "AttributeValues",
		&storewire.Attributes{Key: key, Prefix: prefix, Limit: limit})
}

// Aggregate implements tracestore.Aggregator.
func (e *exporter) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := a.Check(q); err != nil {
		return tracestore.Aggregate{}, err
	}
	return ask[tracestore.Aggregator, tracestore.Aggregate](ctx, e, q.Tenant, "Aggregate", &storewire.Aggregate{Query: q, What: a})
}

// Peers implements tracestore.Edges.
func (e *exporter) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	return ask[tracestore.Edges, tracestore.Graph](ctx, e, tenant, "Peers", &storewire.Window{From: from, To: to})
}

// Edges implements tracestore.Edges.
func (e *exporter) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	return ask[tracestore.Edges, tracestore.EdgeGraph](ctx, e, tenant, "Edges", &q)
}

// Metrics implements tracestore.Metrics.
func (e *exporter) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return ask[tracestore.Metrics, tracestore.MetricsAnswer](ctx, e, tenant, "Metrics", &q)
}

// Baselines implements tracestore.Metrics.
func (e *exporter) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	a, err := ask[tracestore.Metrics, tracestore.BaselineAnswer](ctx, e, tenant, "Baselines", &q)
	if err == nil && len(a.Durations) != len(q.Operations) {
		return tracestore.BaselineAnswer{}, fmt.Errorf("remote storage server sent durations of %d operations, %d were requested",
			len(a.Durations), len(q.Operations))
	}
	return a, err
}

// ProfilePaths implements tracestore.PathProfiler.
func (e *exporter) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	if err := o.Check(); err != nil {
		return tracestore.PathProfile{}, err
	}
	return ask[tracestore.PathProfiler, tracestore.PathProfile](ctx, e, q.Tenant, "ProfilePaths",
		&storewire.ProfilePaths{Query: q, Selection: sel, Options: o})
}

// Delete implements tracestore.Deleter. The server must allow deletions, and so must its store.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	return ask[tracestore.Deleter, tracestore.Deleted](ctx, e, tenant, "Delete", &d)
}

// FindSpans implements tracestore.Reader.
func (e *exporter) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (tracestore.FoundSpans, error) {
	if own, err := e.storeService(e.withReadMetadata(ctx, tenant)); err != nil {
		return tracestore.FoundSpans{}, err
	} else if !own {
		return storequery.WholeTraces{Of: e}.FindSpans(ctx, tenant, id, c)
	}
	return askNow[tracestore.FoundSpans](e.withReadMetadata(ctx, tenant), e, "FindSpans", &storewire.FindSpans{Trace: id, Condition: c})
}

// TraceVersion implements tracestore.Reader.
func (e *exporter) TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (tracestore.TraceVersion, error) {
	return ask[tracestore.Reader, tracestore.TraceVersion](ctx, e, tenant, "TraceVersion", &storewire.Trace{ID: id})
}

// TraceSpans implements tracestore.Reader. It does not query the server, because that takes as long
// as reading a small trace.
func (*exporter) TraceSpans(context.Context, string, otlpdata.TraceID) (int, error) { return 0, nil }

// Usage implements tracestore.UsageReporter.
func (e *exporter) Usage(ctx context.Context, tenant string) (tracestore.Usage, error) {
	return ask[tracestore.UsageReporter, tracestore.Usage](ctx, e, tenant, "Usage", &storewire.Usage{})
}

// SelectSpans implements tracestore.Reader.
func (e *exporter) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		if own, err := e.storeService(e.withReadMetadata(ctx, tenant)); err != nil {
			yield(tracestore.Trace{}, err)
			return
		} else if !own {
			storequery.WholeTraces{Of: e}.SelectSpans(ctx, tenant, id, spans)(yield)
			return
		}
		traceStream(e.withReadMetadata(ctx, tenant), e, tenant, "SelectSpans", &storewire.SelectSpans{Trace: id, Spans: spans},
			[]tracestore.TraceRef{{ID: id}}, yield)
	}
}

// Outline implements tracestore.Reader.
func (e *exporter) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, textBytes int) error, take func([]tracestore.SummarySpan) error,
) error {
	if own, err := e.storeService(e.withReadMetadata(ctx, tenant)); err != nil {
		return err
	} else if !own {
		return storequery.WholeTraces{Of: e}.Outline(ctx, tenant, id, limit, hold, take)
	}
	ctx = e.withReadMetadata(ctx, tenant)
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	var spans []tracestore.SummarySpan
	var stopped error
	var texts int64 // memory of the texts of all messages
	textBytes := 0  // names and extras, as the caller counts them
	err = receiveStore(ctx, e.store, "Outline", &storewire.Outline{Trace: id, Limit: limit}, func(message []byte) error {
		if err := memory.Resize(texts + int64(len(message))); err != nil {
			return err
		}
		var part []tracestore.SummarySpan
		d := storewire.NewAnswer(message, memory)
		if err := storewire.Only(d, &part); err != nil {
			return err
		}
		for i := range part {
			textBytes += len(part[i].Name) + part[i].Extras.Size()
		}
		spans, texts = append(spans, part...), texts+d.TextBytes
		stopped = hold(len(spans), textBytes)
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	err = e.storeError(ctx, err)
	var damaged *tracestore.DamagedError
	if err != nil && !errors.As(err, &damaged) || len(spans) == 0 {
		return err
	}
	if err := take(spans); err != nil {
		return err
	}
	return err
}
