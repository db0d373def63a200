package clickhouse

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Number of time intervals. In each, the server picks one span of each heatmap bucket.
const (
	minExemplarIntervals = 16
	maxExemplarIntervals = 128
)

// pick offers spans of rows as exemplars: one of each heatmap bucket in each of several time
// intervals, chosen by a hash.
func (a *aggregation) pick(ctx context.Context, set spanRows) error {
	counted := set.counted()
	first, last, n := a.first, a.last, a.totals.spans
	if a.heatmap == nil {
		err := a.one(ctx, "SELECT min(start), max(start), count() FROM "+a.table+" WHERE "+counted, &first, &last, &n)
		if err != nil {
			return err
		}
	}
	if n == 0 || first > last {
		return nil
	}
	intervals := uint64(min(max(a.want.Exemplars, minExemplarIntervals), maxExemplarIntervals))
	sql := fmt.Sprintf("SELECT tupleElement(span, 1), tupleElement(span, 2), tupleElement(span, 3), "+
		"tupleElement(span, 4), tupleElement(span, 5), tupleElement(span, 6) FROM ("+
		"SELECT argMin((trace_id, start, duration, toString(service), toString(name), status = 'error'), "+
		"cityHash64(trace_id, start, duration, service, name, status)) AS span FROM %s WHERE %s "+
		"GROUP BY %s, intDiv(start - %d, %d))", a.table, counted, where.HeatBucket("duration"), first, (last-first)/intervals+1)
	var row exemplarRow
	return a.each(ctx, sql, row.targets(), func() error {
		a.picks.Offer(row.exemplar())
		return nil
	})
}

// offer offers an examined span as an exemplar.
func (a *aggregation) offer(s tracestore.Span) {
	if e := exemplarOf(s); a.picks.Wants(e.Start, e.Duration, e.TraceID, e.SpanID) {
		a.picks.Offer(e)
	}
}

// exemplarOf returns a span as an exemplar without its id, because the table of spans does not have
// the id.
func exemplarOf(s tracestore.Span) tracestore.Exemplar {
	duration, _ := s.Duration()
	return tracestore.Exemplar{TraceID: s.TraceID, Start: s.Start, Duration: duration, Service: s.Resource.Service,
		Name: s.Operation(), Failed: s.StatusCode == otlpdata.StatusError}
}

// exemplarRow is a result row: an exemplar without its id.
type exemplarRow struct {
	trace           string
	start, duration uint64
	service, name   string
	failed          uint8
}

func (r *exemplarRow) targets() []any {
	return []any{&r.trace, &r.start, &r.duration, &r.service, &r.name, &r.failed}
}

func (r *exemplarRow) exemplar() (e tracestore.Exemplar) {
	e = tracestore.Exemplar{Start: r.start, Duration: r.duration, Service: r.service, Name: r.name, Failed: r.failed != 0}
	copy(e.TraceID[:], r.trace)
	return e
}

// identify adds the ids of picked spans, and removes spans that were deleted meanwhile.
func (a *aggregation) identify(ctx context.Context, picked []tracestore.Exemplar) ([]tracestore.Exemplar, error) {
	if len(picked) == 0 {
		return nil, nil
	}
	ids, err := a.exemplarIDs(ctx, picked)
	if err != nil {
		return nil, err
	}
	kept := picked[:0]
	for _, e := range picked {
		if id, ok := ids[e]; ok {
			e.SpanID = id
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// exemplarIDs returns the ids of spans that look like exemplars without ids. If several spans look
// like an exemplar, it returns the id of one that matches.
func (a *aggregation) exemplarIDs(ctx context.Context, picked []tracestore.Exemplar) (map[tracestore.Exemplar]otlpdata.SpanID, error) {
	ids := make(map[tracestore.Exemplar]otlpdata.SpanID, len(picked))
	several := make(map[tracestore.Exemplar]struct{})
	sql := "SELECT DISTINCT trace_id, start, duration, toString(service), toString(name), failed, ids FROM " +
		a.store.db.Table("payload") + " WHERE " + where.Tenant(a.query.Tenant) + " AND " + where.Window(a.from, a.to) + " AND " +
		positionsOf(picked)
	var row exemplarRow
	var both string
	err := a.each(ctx, sql, append(row.targets(), &both), func() error {
		e := shortened(row.exemplar())
		id, _, err := rows.SplitIDs(both)
		if known, again := ids[e]; again && known != id {
			several[e] = struct{}{}
		}
		ids[e] = id
		return err
	})
	if err != nil || len(several) == 0 {
		return ids, err
	}
	for e := range several {
		delete(ids, e)
	}
	err = a.store.eachSpan(ctx, a.query.Tenant, positionsOf(slices.Collect(maps.Keys(several))), func(s tracestore.Span) error {
		e := shortened(exemplarOf(s))
		known, again := ids[e]
		if tracestore.Match(a.query.Where, s) && (!again || bytes.Compare(s.SpanID[:], known[:]) < 0) {
			ids[e] = s.SpanID
		}
		return nil
	})
	_, err = tracestore.DamageOf(err) // the others are known
	return ids, err
}

// positionsOf returns the condition for spans with the trace id and start of an exemplar.
func positionsOf(picked []tracestore.Exemplar) string {
	hits := make([]hit, len(picked))
	for i, e := range picked {
		hits[i] = hit{start: e.Start, id: e.TraceID}
	}
	return atPositions(hits)
}

// shortened returns an exemplar as ExemplarPicker does.
func shortened(e tracestore.Exemplar) tracestore.Exemplar {
	e.Service, e.Name = storequery.FacetText(e.Service), storequery.FacetText(e.Name)
	return e
}
