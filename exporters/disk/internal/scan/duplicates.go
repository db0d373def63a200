package scan

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// SpanKey is equal for duplicates, and rarely for other spans.
type SpanKey struct {
	TraceID otlpdata.TraceID
	SpanID  otlpdata.SpanID
	Start   uint64
}

// KeyOf returns the key of a row.
func KeyOf(h *rows.Head) SpanKey { return SpanKey{h.TraceID, h.SpanID, h.Start} }

// MaxSieveRows is the approximate number of rows in a rows.DuplicateFilter, which then takes 16
// MiB. A source with more rows is read several times.
const MaxSieveRows = 1 << 21

// TracesPerDecode is the number of traces of a memtable that are read within one Session.Decode.
const TracesPerDecode = 64

// ContentReader reads rows in a form in which only duplicates are equal.
type ContentReader struct {
	cells     []rows.Cell
	assembler rows.Assembler
	span      []byte
	content   []byte
}

// Read returns the content of a row and reads its head into h. The content is valid until the next
// call.
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

// IsDeduplicated reports whether a source is known to hold no duplicates.
func IsDeduplicated(src source.Source) bool { return source.ClustersOf(src) != nil }
