package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ callpath.PartFinder = (*exporter)(nil)

// summaryMemory is the approximate number of bytes that it takes to summarize a span, without
// texts.
const summaryMemory = 300

// headsPerStatement is the maximum number of traces whose heads one statement reads.
const headsPerStatement = 4096

// EachHeads implements callpath.HeadReader. It reads only the columns that it needs, except for
// traces that may contain duplicates.
func (e *exporter) EachHeads(
	ctx context.Context, tenant string, ids []otlpdata.TraceID, limit int,
	take func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error,
) error {
	var damage error
	for part := range slices.Chunk(ids, headsPerStatement) {
		if err := e.heads(ctx, tenant, part, limit, take); keepDamage(&damage, err) != nil {
			return err
		}
	}
	return damage
}

// keepDamage returns an error, unless it is a DamagedError, which it stores in damage instead.
func keepDamage(damage *error, err error) error {
	var damaged *tracestore.DamagedError
	if !errors.As(err, &damaged) {
		return err
	}
	*damage = err
	return nil
}

// heads calls take once for each given trace that exists, with the heads of its spans in the order
// of their starts, without duplicates. If limit is above 0, it reads only a part of traces with
// more than limit spans; the part has more than limit spans. The spans are valid only during the
// call. An error of take is returned. With a DamagedError, other spans cannot be read.
func (e *exporter) heads(
	ctx context.Context, tenant string, ids []otlpdata.TraceID, limit int,
	take func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error,
) error {
	s := headScan{limit: limit, take: take}
	s.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer s.memory.Release()
	sql := "SELECT trace_id, start, ids, duration, service, name, failed, call FROM " + e.db.Table("payload") +
		" WHERE " + where.Tenant(tenant) + " AND " + ofTraces(ids) + " ORDER BY tenant, trace_id, start"
	to := []any{&s.traceID, &s.span.Start, &s.ids, &s.span.Duration, &s.span.Service, &s.span.Name, &s.failed, &s.call}
	if err := e.eachScanned(ctx, sql, to, s.row); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	var damage error
	for part := range slices.Chunk(s.doubtful, tracesPerStatement) {
		if err := e.exactHeads(ctx, tenant, part, limit, take); keepDamage(&damage, err) != nil {
			return err
		}
	}
	return damage
}

// headScan collects the heads of traces from rows in the order of trace id and start.
type headScan struct {
	limit  int
	exact  bool // there are no duplicates
	memory *tracestore.Memory
	take   func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error

	id    otlpdata.TraceID // of spans
	spans []tracestore.SummarySpan
	texts knownTexts
	bytes int // of texts
	// Duplicates have the same start and are equal in all columns. same holds the other spans with
	// the start of the last span.
	same     map[tracestore.SummarySpan]struct{}
	twice    bool
	doubtful []otlpdata.TraceID // traces with spans that may be duplicates

	// The columns of the current row. The ids are valid until the next row.
	traceID, ids []byte
	span         tracestore.SummarySpan
	failed       uint8
	call         string
}

func (s *headScan) row() (err error) {
	if len(s.traceID) != len(s.id) {
		return errors.New("reading spans: trace id has the wrong length")
	}
	if s.span.ID, s.span.Parent, err = rows.SplitIDs(s.ids); err != nil {
		return fmt.Errorf("reading spans: %w", err)
	}
	call, err := rows.ParseCall(s.call)
	if err != nil {
		return fmt.Errorf("reading spans: %w", err)
	}
	s.span.Failed, s.span.Kind = s.failed != 0, call.Kind
	return s.add(otlpdata.TraceID(s.traceID), &s.span)
}

// add adds the head of a span of a trace. It keeps no texts of it.
func (s *headScan) add(id otlpdata.TraceID, span *tracestore.SummarySpan) error {
	if s.id != id {
		if err := s.end(); err != nil {
			return err
		}
		s.id = id
	}
	if s.limit > 0 && len(s.spans) > s.limit {
		return nil
	}
	span.Service, span.Name = s.text(span.Service), s.text(span.Name)
	if !s.exact {
		s.compare(span)
	}
	s.spans = append(s.spans, *span)
	return s.memory.Resize(int64(len(s.spans)*summaryMemory + s.bytes))
}

// compare records whether a span may be a duplicate of an earlier one.
func (s *headScan) compare(span *tracestore.SummarySpan) {
	n := len(s.spans)
	if n == 0 || s.spans[n-1].Start != span.Start {
		clear(s.same)
		return
	}
	if s.same == nil {
		s.same = make(map[tracestore.SummarySpan]struct{})
	}
	s.same[s.spans[n-1]] = struct{}{}
	_, again := s.same[*span]
	s.twice = s.twice || again
}

// text returns a copy of a text, which equal texts of a trace share.
func (s *headScan) text(t string) string {
	known, isNew := s.texts.copyOf(t)
	if isNew {
		s.bytes += len(t)
	}
	return known
}

// end ends a trace.
func (s *headScan) end() (err error) {
	switch {
	case s.twice:
		s.doubtful = append(s.doubtful, s.id)
	case len(s.spans) > 0:
		err = s.take(s.id, s.spans)
	}
	s.spans, s.bytes, s.twice = s.spans[:0], 0, false
	clear(s.same)
	clear(s.texts)
	return err
}

// exactHeads is like heads. It reads whole spans, without duplicates.
func (e *exporter) exactHeads(
	ctx context.Context, tenant string, ids []otlpdata.TraceID, limit int,
	take func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error,
) error {
	s := headScan{limit: limit, exact: true, take: take}
	s.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer s.memory.Release()
	var damage error
	err := e.eachSpan(ctx, tenant, ofTraces(ids), func(span tracestore.Span) error {
		ns, _ := span.Duration()
		return s.add(span.TraceID, &tracestore.SummarySpan{ID: span.SpanID, Parent: span.ParentID, Start: span.Start, Duration: ns,
			Service: span.Resource.Service, Name: span.Operation(), Failed: span.StatusCode == otlpdata.StatusError, Kind: span.Kind})
	})
	if keepDamage(&damage, err) != nil {
		return err
	}
	return cmp.Or(s.end(), damage)
}

// summaries returns the summaries of existing traces. With a DamagedError, the summaries cover what
// can be read.
func (e *exporter) summaries(
	ctx context.Context, tenant string, ids []otlpdata.TraceID,
) (map[otlpdata.TraceID]*tracestore.Summary, error) {
	out := make(map[otlpdata.TraceID]*tracestore.Summary, len(ids))
	err := e.EachHeads(ctx, tenant, ids, 0, func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error {
		sum := storequery.SummarizeSpans(id, spans)
		out[id] = &sum
		return nil
	})
	return out, err
}

// FindParts implements callpath.PartFinder. The server groups all matching spans by trace.
func (e *exporter) FindParts(
	ctx context.Context, q tracestore.Query, without *tracestore.Query, starts []uint64, limit int,
) (*callpath.FoundParts, error) {
	found := &callpath.FoundParts{Traces: make([][]tracestore.Cursor, len(starts))}
	from, to, ok := q.Window()
	c := e.conditionOf(q, q.Where)
	if !ok || c.Never() {
		return found, ctx.Err()
	}
	if few, err := e.hasFew(ctx, &q, from, to); err != nil || !few || !c.Exact {
		return nil, err
	}
	having := ""
	if without != nil {
		if first, last, ok := without.Window(); ok {
			having = " HAVING countIf(" + where.Window(first, last) + " AND (" + e.conditionOf(*without, without.Where).Sure + ")) = 0"
		}
	}
	bounds := make([]string, len(starts))
	for i, s := range starts {
		bounds[i] = where.Uint(s)
	}
	memory, _ := tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	sql := fmt.Sprintf("SELECT trace_id, newest, toUInt32(arrayCount(x -> x <= newest, [%s])) AS part FROM ("+
		"SELECT trace_id, max(start) AS newest FROM %s WHERE %s AND %s AND (%s) GROUP BY trace_id%s) "+
		"ORDER BY newest DESC, trace_id DESC LIMIT %d BY part",
		strings.Join(bounds, ", "), e.db.Table("spans"), where.Tenant(q.Tenant), where.Window(from, to), c.SQL, having, limit)
	var id string
	var part uint32
	at := tracestore.Cursor{Set: true}
	err := e.eachScanned(ctx, sql, []any{&id, &at.Start, &part}, func() error {
		if len(id) != len(at.ID) || part < 1 || int(part) > len(starts) {
			return fmt.Errorf("reading results: trace id of %d bytes in part %d of %d", len(id), part, len(starts))
		}
		copy(at.ID[:], id)
		found.Traces[part-1] = append(found.Traces[part-1], at)
		return memory.Grow(hitMemory)
	})
	if serverLimit(err) != nil && ctx.Err() == nil {
		return nil, nil
	}
	found.Reasons = e.missingShards(ctx)
	return found, err
}
