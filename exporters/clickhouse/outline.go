package clickhouse

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

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
