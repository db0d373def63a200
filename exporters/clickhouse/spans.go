package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// eachSpan calls visit for the spans of the table "payload" that meet a condition on its columns,
// in the order of trace id and start, without duplicates. A span is valid only during the call,
// except for its resource and scope. If visit returns errStop, the read ends without an error; any
// other error ends it and is returned. If rows are damaged, eachSpan visits all others and then
// returns a tracestore.DamagedError.
func (e *exporter) eachSpan(ctx context.Context, tenant, condition string, visit func(tracestore.Span) error) error {
	s := spanScan{visit: visit}
	s.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer s.memory.Release()
	sql := "SELECT " + rows.PayloadColumns + " FROM " + e.db.Table("payload") +
		" WHERE " + where.Tenant(tenant) + " AND " + condition + " ORDER BY tenant, trace_id, start"
	if err := e.eachRow(ctx, sql, s.row); err != nil {
		return err
	}
	return s.damage
}

// spanScan decodes rows of the table "payload" in the order of trace id and start.
type spanScan struct {
	decoder rows.Decoder
	visit   func(tracestore.Span) error
	damage  error // of the first row that cannot be decoded
	memory  *tracestore.Memory

	// Duplicates have the same start, so only the spans with the start of the last one are kept.
	seen  *storequery.Dedup
	id    otlpdata.TraceID
	start uint64
}

// keptSpan is the approximate memory, without its bytes, of a span that is kept to find duplicates.
const keptSpan = 200

func (s *spanScan) row(r db.Rows) error {
	p, err := s.decoder.Scan(r)
	if err != nil {
		return s.damaged(err)
	}
	span, err := s.decoder.Span(p)
	if err != nil {
		return s.damaged(err)
	}
	if s.seen == nil || p.TraceID != s.id || p.Start != s.start {
		s.seen, s.id, s.start = storequery.NewDedup(), p.TraceID, p.Start
		s.memory.Release()
	}
	if !s.seen.First(span) {
		return nil
	}
	if err := s.memory.Grow(int64(len(span.Raw) + keptSpan)); err != nil {
		return err
	}
	return s.visit(span)
}

// damaged keeps the first error of damaged rows, and returns all others.
func (s *spanScan) damaged(err error) error {
	var damaged *tracestore.DamagedError
	if !errors.As(err, &damaged) {
		return fmt.Errorf("reading spans: %w", err)
	}
	s.damage = cmp.Or(s.damage, err)
	return nil
}

// pieceBytes is the size above which a trace is returned in several batches.
const pieceBytes = 4 << 20

// piece holds spans of one trace, grouped by resource and scope.
type piece struct {
	id     otlpdata.TraceID
	shares []share
	index  map[origin]int // of shares
	size   int            // bytes, estimated
}

// origin is the content of a resource and a scope.
type origin struct{ resource, scope, resourceURL, scopeURL string }

// share holds the encoded spans of one origin.
type share struct {
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	spans    [][]byte
	count    otlpdata.ServiceCount
}

func newPiece(id otlpdata.TraceID) *piece { return &piece{id: id, index: make(map[origin]int)} }

// maxFieldHeader is the maximum number of bytes of a field besides its content.
const maxFieldHeader = 6

// add adds a copy of a span. It keeps its resource and scope.
func (p *piece) add(s tracestore.Span) {
	sh := p.share(s)
	sh.spans = append(sh.spans, slices.Clone(s.Raw))
	sh.count.Add(s.ParentID.IsZero(), s.NativeFlags()&otlpdata.FlagDebug != 0)
	p.size += len(s.Raw) + maxFieldHeader
}

// share returns the share of the origin of a span. Most spans have the same origin as the previous
// one.
func (p *piece) share(s tracestore.Span) *share {
	if n := len(p.shares); n > 0 && p.shares[n-1].resource == s.Resource && p.shares[n-1].scope == s.Scope {
		return &p.shares[n-1]
	}
	key := origin{string(s.Resource.Raw), string(s.Scope.Raw), s.Resource.SchemaURL, s.Scope.SchemaURL}
	i, known := p.index[key]
	if !known {
		i = len(p.shares)
		p.index[key] = i
		p.shares = append(p.shares, share{resource: s.Resource, scope: s.Scope, count: otlpdata.ServiceCount{Service: s.Resource.Service}})
		p.size += len(key.resource) + len(key.scope) + len(key.resourceURL) + len(key.scopeURL) + 4*maxFieldHeader
	}
	return &p.shares[i]
}

// batch returns the spans of the piece.
func (p *piece) batch(tenant string) *otlpdata.Batch {
	chunk := make([]byte, 0, p.size)
	counts := make([]otlpdata.ServiceCount, len(p.shares))
	for i := range p.shares {
		s := &p.shares[i]
		chunk = otlpdata.AppendResourceSpans(chunk, s.resource, s.scope, s.spans...)
		counts[i] = s.count
	}
	return otlpdata.FromStored(chunk, otlpdata.Meta{Tenant: tenant}, counts...)
}

// Outline implements tracestore.Reader.
func (e *exporter) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, textBytes int) error, take func([]tracestore.SummarySpan) error,
) error {
	if err := hold(0, 0); err != nil {
		return err
	}
	var out outline
	var damage error
	err := e.eachSpan(e.seek(ctx, 1), tenant, ofTraces([]otlpdata.TraceID{id}), func(s tracestore.Span) error {
		if limit > 0 && len(out.spans) > limit {
			return errStop
		}
		out.add(s)
		return hold(len(out.spans), out.textBytes)
	})
	if keepDamage(&damage, err) != nil {
		return err
	}
	if len(out.spans) == 0 {
		return cmp.Or(damage, e.incomplete(ctx))
	}
	if err := take(out.spans); err != nil {
		return err
	}
	return damage
}

// outline collects the needed fields of spans, in its own memory.
type outline struct {
	hosts     storequery.Hosts
	texts     knownTexts
	spans     []tracestore.SummarySpan
	textBytes int
}

func (o *outline) add(s tracestore.Span) {
	out := o.hosts.OutlineSpan(s)
	o.textBytes += len(out.Name) + out.Extras.Size()
	out.Service, out.Name = o.text(out.Service), o.text(out.Name)
	if x := out.Extras; x != nil {
		x.Peer = o.text(x.Peer)
		for i := range x.Events {
			x.Events[i].Name = o.text(x.Events[i].Name)
		}
	}
	o.spans = append(o.spans, out)
}

func (o *outline) text(s string) string {
	known, _ := o.texts.copyOf(s)
	return known
}

// knownTexts holds a copy of each text that copyOf was called with. The zero value is empty.
type knownTexts map[string]string

// copyOf returns the copy of a text, and whether it is new.
func (k *knownTexts) copyOf(s string) (known string, isNew bool) {
	if known, ok := (*k)[s]; ok {
		return known, false
	}
	if *k == nil {
		*k = make(knownTexts)
	}
	known = strings.Clone(s)
	(*k)[known] = known
	return known, true
}

// FindSpans implements tracestore.Reader.
func (e *exporter) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (found tracestore.FoundSpans, err error) {
	m := c.Matcher(ctx)
	memory, _ := tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	err = e.eachSpan(e.seek(ctx, 1), tenant, ofTraces([]otlpdata.TraceID{id}), func(s tracestore.Span) error {
		found.Spans++
		if !m.Matches(s) {
			return nil
		}
		found.IDs = append(found.IDs, s.SpanID)
		return memory.Resize(int64(2 * cap(found.IDs) * len(s.SpanID)))
	})
	if found.Spans == 0 && err == nil {
		err = e.incomplete(ctx)
	}
	return found, err
}

// TraceSpans implements tracestore.Reader. Duplicates count.
func (e *exporter) TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error) {
	return e.count(ctx, "payload", tenant, "trace_id = "+where.TraceID(id))
}

// TraceVersion implements tracestore.Reader. The number is a checksum of the spans of the trace
// and of the inserts that stored them.
func (e *exporter) TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (v tracestore.TraceVersion, _ error) {
	const columns = "count(), sum(cityHash64(ids, start, batch)), toInt64OrZero(max(stored))"
	var spans, sum uint64
	var stored int64 // milliseconds
	err := e.eachRow(e.seek(ctx, 1), e.ofTrace(columns, tenant, id), func(r db.Rows) error { return r.Scan(&spans, &sum, &stored) })
	if err != nil || spans == 0 {
		return v, cmp.Or(err, e.incomplete(ctx))
	}
	v.Number = max(sum+spans, 1)
	// The clock of the server may be ahead.
	now := e.set.Env.Now()
	if at := time.UnixMilli(stored).Truncate(time.Second); now.Sub(at) < time.Minute {
		v.Stored = at
		if at.After(now) {
			v.Stored = now.Truncate(time.Second)
		}
	}
	return v, nil
}

// ofTrace returns the statement that selects from the rows of a trace.
func (e *exporter) ofTrace(columns, tenant string, id otlpdata.TraceID) string {
	return "SELECT " + columns + " FROM " + e.db.Table("payload") + " WHERE " + where.Tenant(tenant) + " AND trace_id = " + where.TraceID(id)
}
