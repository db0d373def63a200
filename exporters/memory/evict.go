package memory

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// evict drops the oldest traces, by creation, until the store is within its limit. Readers may
// still use the rows of dropped traces.
func (e *exporter) evict() {
	for e.usage.bytes > e.maxBytes && e.oldest != nil {
		e.drop(e.oldest)
	}
}

// drop removes the oldest trace.
func (e *exporter) drop(tr *trace) {
	t := tr.tenant
	for _, b := range tr.blocks {
		for i := range b.rows {
			e.dropper.drop(t, &b.rows[i])
		}
		e.usage.bytes -= b.cost
		e.usage.spans -= len(b.rows)
		e.metrics.evictedSpans.Add(float64(len(b.rows)))
	}
	delete(t.traces, tr.id)
	e.oldest, tr.next = tr.next, nil // a reader that holds tr must not keep later traces in memory
	if e.oldest == nil {
		e.newest = nil
	}
	e.usage.traces--
	e.usage.bytes -= costTrace
	e.metrics.evictedTraces.Inc()
	if len(t.traces) == 0 {
		delete(e.tenants, t.name)
		e.usage.bytes -= costTenant
	}
}

// dropper removes rows from the indexes. It rereads the span of a row to find its index entries,
// because storing the entries with the row would take more memory than the row itself.
type dropper struct {
	reader otlpdata.SpanReader
	terms  termReader
	span   stagedSpan
	values []term
}

func (d *dropper) drop(t *tenant, r *row) {
	if s, err := d.reader.Read(r.raw); err == nil { // cannot fail: it was read before
		d.values = d.terms.span(d.values[:0], s)
		d.span = stagedSpan{name: s.Operation(), kind: s.KindName(), failed: s.StatusCode == otlpdata.StatusError}
	}
	t.unindex(r, r.origin.identify(d.terms.seed, r.raw), &d.span, d.values)
}
