package memory

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// evict drops the traces that were created first until the store is below its limit again. Readers that hold rows of such a trace may
// go on reading them.
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
	e.oldest, tr.next = tr.next, nil // a reader that still has tr must not keep all that came later
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

// dropper reads rows once more to find the index entries that they have. Entries are not kept beside rows: they would take more memory
// than the rows do.
type dropper struct {
	reader otlpdata.SpanReader
	terms  termReader
	span   stagedSpan
	values []term
}

func (d *dropper) drop(t *tenant, r *row) {
	if s, err := d.reader.Read(r.raw); err == nil { // it was read before, so there is no error
		d.values = d.terms.span(d.values[:0], s)
		d.span = stagedSpan{name: s.Operation(), kind: s.KindName(), failed: s.StatusCode == otlpdata.StatusError}
	}
	t.unindex(r, r.origin.identify(d.terms.seed, r.raw), &d.span, d.values)
}
