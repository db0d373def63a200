package scan

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// twin is what duplicates have in common, and other spans hardly ever.
type SpanKey struct {
	TraceID otlpdata.TraceID
	SpanID  otlpdata.SpanID
	Start   uint64
}

// KeyOf returns the key of a row.
func KeyOf(h *rows.Head) SpanKey { return SpanKey{h.TraceID, h.SpanID, h.Start} }

// maxSieved is how many rows are in a sieve at once, about, which takes 16 MiB. What has more rows is read several times.
const MaxSieveRows = 1 << 21

// tracesAtOnce is how many traces of a memtable are read each time that a place among the decoders is taken.
const TracesPerDecode = 64

// contentReader reads what only duplicates have in common.
type ContentReader struct {
	cells     []rows.Cell
	assembler rows.Assembler
	span      []byte
	content   []byte
}

// readContent returns the content of a row, whose head it reads into h. It is valid until the next call.
func (c *ContentReader) Read(t *rows.Tables, b source.Block, row int, h *rows.Head) ([]byte, error) {
	s, err := Assemble(t, b, row, h, &c.cells, &c.assembler)
	if err != nil {
		return nil, err
	}
	c.span = otlpdata.AppendSpan(c.span[:0], s)
	r, sc := &t.Resources[h.Resource].Resource, &t.Scopes[t.Shapes[h.Shape].Scope]
	c.content = otlpdata.AppendResourceSpans(c.content[:0], r, sc, c.span)
	return c.content, nil
}

// distinct reports whether a source is known to hold no duplicates.
func IsDeduplicated(src source.Source) bool {
	if d, ok := src.(source.Distinct); ok {
		return d.Distinct()
	}
	_, counted := src.(source.Statistics)
	return counted
}
