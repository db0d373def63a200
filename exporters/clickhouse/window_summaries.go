package clickhouse

import (
	"context"
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ storequery.WindowSummarizer = (*exporter)(nil)

// EachInWindow implements storequery.WindowSummarizer. The server summarizes the traces that begin
// and end within the window and have a root span. Others are summarized here.
func (e *exporter) EachInWindow(
	ctx context.Context, q tracestore.Query, take func(*tracestore.Summary) error,
) (done bool, missing tracestore.Reasons, err error) {
	w := windowSummaries{store: e, query: q, take: take, crossing: make(map[otlpdata.TraceID]struct{})}
	from, to, ok := q.Window()
	c := e.conditionOf(q, tracestore.WithContext(ctx, q.Where))
	if !ok || c.Never() {
		return true, nil, ctx.Err()
	}
	if !c.Exact {
		return false, nil, nil
	}
	if few, err := e.hasFew(ctx, &q, from, to); err != nil || !few {
		return false, nil, err
	}
	w.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer w.memory.Release()
	w.window = where.Tenant(q.Tenant) + " AND " + where.Window(from, to)
	if !c.Always() {
		w.matching = " AND trace_id IN (SELECT trace_id FROM " + e.db.Table("spans") + " WHERE " + w.window + " AND (" + c.SQL + "))"
	}
	local := db.WithSettings(ctx, db.Settings{"distributed_product_mode": "local"}) // a trace is on one shard
	if err = w.findCrossing(local, from, to); err == nil {
		err = w.summarize(local)
	}
	if err == nil {
		err = w.summarizeOthers(ctx)
	}
	if !w.taken && serverLimit(err) != nil && ctx.Err() == nil {
		return false, nil, nil
	}
	missing, err = tracestore.DamageOf(err)
	missing.Add(e.missingShards(ctx)...)
	return true, missing, err
}

// windowSummaries is a running call of EachInWindow.
type windowSummaries struct {
	store    *exporter
	query    tracestore.Query
	take     func(*tracestore.Summary) error
	memory   *tracestore.Memory
	window   string // condition on spans
	matching string // further condition on the trace ids, after AND, or ""
	crossing map[otlpdata.TraceID]struct{}
	others   []otlpdata.TraceID // traces that the server does not summarize
	taken    bool
}

// findCrossing finds the traces that have spans before or after the window. It may also find traces
// without spans in the window, and traces whose other spans are deleted.
func (w *windowSummaries) findCrossing(ctx context.Context, from, to uint64) error {
	if from == 0 && to == math.MaxUint64 {
		return nil
	}
	ids := w.matching
	if ids == "" {
		ids = " AND trace_id IN (SELECT trace_id FROM " + w.store.db.Table("bounds") + " WHERE " + where.Tenant(w.query.Tenant) + " AND " +
			where.Days(from, to) + " AND first <= " + where.Uint(to) + " AND last >= " + where.Uint(from) + ")"
	}
	var id string
	return w.store.eachScanned(ctx, "SELECT trace_id FROM "+w.store.db.Table("bounds")+" WHERE "+where.Tenant(w.query.Tenant)+ids+
		" GROUP BY trace_id HAVING min(first) < "+where.Uint(from)+" OR max(last) > "+where.Uint(to), []any{&id},
		func() error {
			var crossing otlpdata.TraceID
			copy(crossing[:], id)
			w.crossing[crossing] = struct{}{}
			return w.memory.Grow(doneMemory)
		})
}

// summarize passes on the summaries of the traces that the server can summarize, and adds all
// others to others: crossing traces, and traces without a root span, with spans without a start, or
// with spans that may be duplicates.
func (w *windowSummaries) summarize(ctx context.Context) error {
	const isRoot = "substring(ids, 9) = unhex('0000000000000000')"
	const end = "if(start + duration < start, 18446744073709551615, start + duration)"
	sql := fmt.Sprintf("SELECT trace_id, first_start, last_end, n, failures, substring(tupleElement(root, 2), 1, 8), tupleElement(root, 3), "+
		"tupleElement(root, 4), toUInt8(roots = 0 OR first_start = 0 OR arrayUniq(hashes) != n) AS other FROM ("+
		"SELECT trace_id, min(start) AS first_start, max(%s) AS last_end, count() AS n, countIf(failed = 1) AS failures, countIf(%s) AS roots, "+
		"minIf((start, ids, toString(service), toString(name)), %s) AS root, groupArray(cityHash64(ids, start)) AS hashes "+
		"FROM %s WHERE %s%s GROUP BY trace_id)", end, isRoot, isRoot, w.store.db.Table("payload"), w.window, w.matching)
	var id, span, service, name string
	var first, last, n, failures uint64
	var other uint8
	return w.store.eachScanned(ctx, sql, []any{&id, &first, &last, &n, &failures, &span, &service, &name, &other}, func() error {
		s := &tracestore.Summary{RootService: service, RootName: name, Start: first, End: last, Spans: int(n), Errors: int(failures)}
		copy(s.ID[:], id)
		if _, crosses := w.crossing[s.ID]; crosses || other != 0 {
			w.others = append(w.others, s.ID)
			return w.memory.Grow(int64(len(s.ID)))
		}
		copy(s.Root[:], span)
		w.taken = true
		return w.take(s)
	})
}

// summarizeOthers passes on the summaries of the other traces.
func (w *windowSummaries) summarizeOthers(ctx context.Context) error {
	return w.store.EachHeads(ctx, w.query.Tenant, w.others, 0, func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error {
		s := storequery.SummarizeSpans(id, spans)
		w.taken = true
		return w.take(&s)
	})
}
