package memory

import (
	"context"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.Deleter = (*exporter)(nil)

// Delete implements tracestore.Deleter. A running query may still return deleted spans. The memory
// of a partly deleted block is released when the rest is dropped.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	if !e.allowDelete {
		return tracestore.Deleted{}, pipeline.Permanent(tracestore.ErrNotAllowed)
	}
	if err := d.Check(); err != nil {
		return tracestore.Deleted{}, pipeline.Permanent(err)
	}
	if err := ctx.Err(); err != nil {
		return tracestore.Deleted{}, err
	}
	if d.DryRun {
		return tracestore.Deleted{Spans: e.countCovered(tenant, &d)}, nil
	}
	n := e.deleteSpans(tenant, &d)
	e.log.Info("deleted spans on request", zap.String("tenant", tenant), zap.Stringer("what", &d), zap.Int("spans", n))
	return tracestore.Deleted{Spans: n}, nil
}

// countCovered returns the number of spans that a deletion covers.
func (e *exporter) countCovered(tenant string, d *tracestore.Deletion) (spans int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.tenants[tenant]
	if t == nil {
		return 0
	}
	c := newCovered(t, d)
	for tr := range c.traces {
		for _, b := range tr.blocks {
			for i := range b.rows {
				if c.has(&b.rows[i]) {
					spans++
				}
			}
		}
	}
	return spans
}

func (e *exporter) deleteSpans(tenant string, d *tracestore.Deletion) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.tenants[tenant]
	if t == nil {
		return 0
	}
	c := newCovered(t, d)
	spans, emptied := 0, false
	for tr := range c.traces {
		spans += e.deleteFromTrace(tr, c)
		emptied = emptied || len(tr.blocks) == 0
	}
	if emptied {
		e.unlinkEmpty()
	}
	if len(t.traces) == 0 {
		delete(e.tenants, t.name)
		e.usage.bytes -= costTenant
	}
	e.metrics.set(e.usage)
	return spans
}

// covered describes the rows of a tenant that a deletion covers.
type covered struct {
	traces   map[*trace]struct{}
	whole    bool     // the traces are deleted as a whole
	service  *service // nil for all services
	from, to uint64
}

func newCovered(t *tenant, d *tracestore.Deletion) *covered {
	c := &covered{traces: make(map[*trace]struct{}), whole: len(d.Traces) > 0}
	for _, id := range d.Traces {
		if tr := t.traces[id]; tr != nil {
			c.traces[tr] = struct{}{}
		}
	}
	if c.whole {
		return c
	}
	rows := &t.all
	if d.Service != "" {
		if c.service = t.services[d.Service]; c.service == nil {
			return c
		}
		rows = &c.service.rows
	}
	c.from, c.to, _ = d.Window()
	for _, b := range rows.blocks {
		for _, r := range b {
			if c.has(r) {
				c.traces[r.trace] = struct{}{}
			}
		}
	}
	return c
}

// has reports whether a row of one of the traces is covered.
func (c *covered) has(r *row) bool {
	return c.whole || c.from <= r.start && r.start <= c.to && (c.service == nil || c.service == r.origin.service)
}

// deleteFromTrace removes the covered rows from a trace and returns their number. The rest of a
// block is split into runs of its rows, because indexes point to the rows and readers may hold the
// block.
func (e *exporter) deleteFromTrace(tr *trace, c *covered) int {
	var left []block
	n := 0
	for _, b := range tr.blocks {
		first, cost := 0, b.cost
		run := func(end int) {
			if end > first {
				left = append(left, block{rows: b.rows[first:end:end], cost: cost, stored: b.stored})
				cost = 0
			}
			first = end + 1
		}
		for i := range b.rows {
			if c.has(&b.rows[i]) {
				e.dropper.drop(tr.tenant, &b.rows[i])
				run(i)
				n++
			}
		}
		run(len(b.rows))
		e.usage.bytes -= cost // 0 if the first run took it
	}
	tr.blocks = left
	e.usage.spans -= n
	if len(left) == 0 {
		delete(tr.tenant.traces, tr.id)
		e.usage.traces--
		e.usage.bytes -= costTrace
	}
	return n
}

// unlinkEmpty removes traces without spans from the order of eviction.
func (e *exporter) unlinkEmpty() {
	at := e.oldest
	e.oldest, e.newest = nil, nil
	for at != nil {
		tr := at
		at, tr.next = tr.next, nil
		if len(tr.blocks) == 0 {
			continue
		}
		if e.newest == nil {
			e.oldest = tr
		} else {
			e.newest.next = tr
		}
		e.newest = tr
	}
}
