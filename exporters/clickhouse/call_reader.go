package clickhouse

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// callReach is the time between two spans of a trace within which calls between them are found.
	// Spans that are further apart are still connected if one of them was stored outside of its day
	// because it was too old or in the future.
	callReach = 24 * time.Hour
	// maxCallSpans is the maximum number of spans of one trace among which calls are found. The
	// spans that start first are used.
	maxCallSpans = 2_000_000
	// callSpanCost is the memory in bytes for a span of the current trace, including the memory of
	// finders.
	callSpanCost = 256
)

// countWindows counts the calls whose spans start within windows, which are sorted and disjoint. It
// reads all spans between the first and the last window in the order of their traces, and the other
// spans of traces that begin before or end after that. If service is not "", it leaves out traces
// without calls of the service.
func (e *exporter) countWindows(
	ctx context.Context, tenant, service string, windows []*callWindow,
) (missing missingCalls, err error) {
	from, to := windows[0].from, windows[len(windows)-1].to
	within, near := where.Window(from, to), where.Never
	if from > 0 || to < math.MaxUint64 {
		near = e.crossing(tenant, from, to)
	}
	if service != "" {
		within += " AND " + where.Any(e.involving(tenant, service, within), near)
	}
	m, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return missing, err
	}
	defer m.Release()
	inner, err := e.callSpans(ctx, tenant, within)
	if err != nil {
		return missing, err
	}
	defer inner.close()
	outer := &callSpans{done: true}
	if near != where.Never {
		if outer, err = e.callSpans(ctx, tenant, outside(from, to)+" AND "+near); err != nil {
			return missing, err
		}
		defer outer.close()
	}
	t := traceMerger{parts: [2]*callSpans{inner, outer}, finder: callFinder{windows: windows}, memory: m}
	err = t.run(ctx)
	missing.spans = t.omitted
	for _, w := range windows {
		missing.peers = missing.peers || w.table.omitted
	}
	return missing, err
}

// aroundWindow returns the first and the last time within callReach of a window.
func aroundWindow(from, to uint64) (first, last uint64) {
	reach := uint64(callReach)
	return from - min(from, reach), to + min(math.MaxUint64-to, reach)
}

// outside returns the condition on spans that start outside of a window, but within callReach of
// it.
func outside(from, to uint64) string {
	return where.Window(aroundWindow(from, to)) + " AND (start < " + where.Uint(from) + " OR start > " + where.Uint(to) + ")"
}

// crossing returns the condition on spans whose trace may have spans both within a window and
// outside of it.
func (e *exporter) crossing(tenant string, from, to uint64) string {
	f, t := where.Uint(from), where.Uint(to)
	return "trace_id IN (SELECT trace_id FROM " + e.db.Table("bounds") + " WHERE " + where.Tenant(tenant) + " AND " +
		where.Days(aroundWindow(from, to)) + " GROUP BY trace_id HAVING min(first) <= " + t + " AND max(last) >= " + f +
		" AND (min(first) < " + f + " OR max(last) > " + t + "))"
}

// involving returns the condition on spans whose trace has a span of a service, or a span that may
// name it as its peer, within a window.
func (e *exporter) involving(tenant, service, window string) string {
	name := where.Text(service)
	return "trace_id IN (SELECT trace_id FROM " + e.db.Table("payload") + " WHERE " + where.Tenant(tenant) + " AND " + window +
		" AND (service = " + name + " OR endsWith(call, " + name + ")))"
}

// callSpans are the spans that a condition selects, in the order of their traces.
type callSpans struct {
	rows  db.Rows
	names map[string]string // one copy of each service and peer name
	done  bool              // there is no current span
	trace otlpdata.TraceID  // of the current span
	span  storequery.CallSpan

	// The other columns of the current row. The ids are valid until the next row.
	traceID, ids []byte
	failed       uint8
	call         string
	columns      []any // pointers to the columns, in the order of callColumns
}

// callColumns are the columns of the table "payload" that scan reads.
const callColumns = "trace_id, ids, start, duration, service, failed, call"

func (e *exporter) callSpans(ctx context.Context, tenant, condition string) (*callSpans, error) {
	rs, err := e.db.Select(ctx, "SELECT "+callColumns+" FROM "+e.db.Table("payload")+" WHERE "+where.Tenant(tenant)+
		" AND "+condition+" ORDER BY trace_id, start SETTINGS optimize_read_in_order = 1, distributed_product_mode = 'local'")
	if err != nil {
		return nil, err
	}
	c := &callSpans{rows: rs, names: make(map[string]string)}
	c.columns = []any{&c.traceID, &c.ids, &c.span.Start, &c.span.Duration, &c.span.Service, &c.failed, &c.call}
	if err := c.next(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *callSpans) close() { _ = c.rows.Close() }

// next reads the next span.
func (c *callSpans) next() error {
	if !c.rows.Next() {
		c.done = true
		return c.rows.Err()
	}
	if err := c.rows.Scan(c.columns...); err != nil {
		return fmt.Errorf("reading spans: %w", err)
	}
	if len(c.traceID) != len(c.trace) {
		return fmt.Errorf("table %q: trace id of %d bytes", "payload", len(c.traceID))
	}
	copy(c.trace[:], c.traceID)
	s := &c.span
	var err error
	if s.ID, s.Parent, err = rows.SplitIDs(c.ids); err != nil {
		return fmt.Errorf("table %q: %w", "payload", err)
	}
	call, err := rows.ParseCall(c.call)
	if err != nil {
		return fmt.Errorf("table %q: %w", "payload", err)
	}
	s.Service, s.Peer = c.name(s.Service), c.name(call.Peer)
	s.Kind, s.Failed, s.Connection = call.Kind, c.failed != 0, tracestore.Connection(call.Connection)
	return nil
}

// name returns a copy of a name. Equal names share a copy.
func (c *callSpans) name(s string) string {
	if s == "" {
		return ""
	}
	if known, ok := c.names[s]; ok {
		return known
	}
	const maxNames = 1 << 14 // peers are named by attributes, whose values are unlimited
	if len(c.names) >= maxNames {
		clear(c.names)
	}
	s = strings.Clone(s)
	c.names[s] = s
	return s
}

// traceMerger counts the calls of traces whose spans come in two parts.
type traceMerger struct {
	parts   [2]*callSpans
	finder  callFinder
	memory  *tracestore.Memory
	spans   []storequery.CallSpan // of the current trace
	omitted bool                  // spans of a trace were left out
}

// run reads both parts to their ends.
func (m *traceMerger) run(ctx context.Context) error {
	const checked = 1 << 10 // traces between two checks of memory and ctx
	for n := 0; ; n++ {
		if n%checked == 0 {
			if err := m.check(ctx); err != nil {
				return err
			}
		}
		trace, ok := m.first()
		if !ok {
			return ctx.Err()
		}
		m.spans = m.spans[:0]
		for _, p := range m.parts {
			if err := m.read(ctx, p, trace); err != nil {
				return err
			}
		}
		m.finder.count(m.spans)
	}
}

// first returns the first trace that is left.
func (m *traceMerger) first() (trace otlpdata.TraceID, ok bool) {
	for _, p := range m.parts {
		if !p.done && (!ok || bytes.Compare(p.trace[:], trace[:]) < 0) {
			trace, ok = p.trace, true
		}
	}
	return trace, ok
}

// read adds the spans of a trace from a part.
func (m *traceMerger) read(ctx context.Context, p *callSpans, trace otlpdata.TraceID) error {
	for !p.done && p.trace == trace {
		switch {
		case len(m.spans) >= maxCallSpans:
			m.omitted = true
		case len(m.spans) == cap(m.spans) && len(m.spans) > 0:
			if err := m.check(ctx); err != nil {
				return err
			}
			fallthrough
		default:
			m.spans = append(m.spans, p.span)
		}
		if err := p.next(); err != nil {
			return err
		}
	}
	return nil
}

// check reserves memory for what is in use, and for twice the spans of the current trace.
func (m *traceMerger) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.memory.Resize(2*int64(cap(m.spans))*callSpanCost + m.finder.bytes())
}
