package multistore

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// distinct returns the spans of a batch that seen has not seen, or nil if it has seen all. seen
// retains the bytes of the batch.
func distinct(b *otlpdata.Batch, seen *storequery.Dedup) (*otlpdata.Batch, error) {
	var d distinctSpans
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if seen.First(s) {
			d.add(s)
		}
		return nil
	})
	switch {
	case err != nil || d.spans == 0:
		return nil, err
	case d.spans == b.Len():
		return b, nil
	}
	d.flush()
	return otlpdata.FromStored(d.chunk, otlpdata.Meta{Tenant: b.Meta().Tenant}, d.counts...), nil
}

// distinctSpans builds a chunk. Spans that follow each other share their resource and scope.
type distinctSpans struct {
	chunk    []byte
	resource otlpdata.Resource // of group
	scope    otlpdata.Scope
	group    [][]byte
	count    otlpdata.ServiceCount
	counts   []otlpdata.ServiceCount
	spans    int
}

func (d *distinctSpans) add(s tracestore.Span) {
	if len(d.group) > 0 && !d.inGroup(s) {
		d.flush()
	}
	if len(d.group) == 0 {
		d.resource, d.scope = *s.Resource, *s.Scope
		d.count = otlpdata.ServiceCount{Service: s.Resource.Service}
	}
	d.group = append(d.group, s.Raw)
	d.count.Add(s.ParentID.IsZero(), s.NativeFlags()&otlpdata.FlagDebug != 0)
	d.spans++
}

func (d *distinctSpans) inGroup(s tracestore.Span) bool {
	return string(d.resource.Raw) == string(s.Resource.Raw) && d.resource.SchemaURL == s.Resource.SchemaURL &&
		string(d.scope.Raw) == string(s.Scope.Raw) && d.scope.SchemaURL == s.Scope.SchemaURL
}

func (d *distinctSpans) flush() {
	d.chunk = otlpdata.AppendResourceSpans(d.chunk, &d.resource, &d.scope, d.group...)
	d.counts = append(d.counts, d.count)
	d.group = nil
}
