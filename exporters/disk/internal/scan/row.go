package scan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ErrReference is the error of a row that refers to an entry that the vocabulary does not have. It
// matches rows.ErrCorrupt.
var ErrReference = fmt.Errorf("%w: row refers to an undefined vocabulary entry", rows.ErrCorrupt)

// Readable reports whether everything that a shape refers to is in the vocabulary.
func Readable(t *rows.Tables, s *rows.Shape) bool {
	return int(s.Scope) < len(t.Scopes) && !slices.ContainsFunc(s.Columns, func(c uint32) bool { return int(c) >= len(t.Columns) })
}

// Assemble reads a whole row. It uses h, cells and a as scratch memory; the span is valid until
// they are reused.
func Assemble(t *rows.Tables, b source.Block, row int, h *rows.Head, cells *[]rows.Cell, a *rows.Assembler) (*otlpdata.Span, error) {
	if err := b.Head(row, h); err != nil {
		return nil, err
	}
	if int(h.Shape) >= len(t.Shapes) || int(h.Resource) >= len(t.Resources) || !Readable(t, &t.Shapes[h.Shape]) {
		return nil, ErrReference
	}
	var err error
	if *cells, err = b.Cells((*cells)[:0], row); err != nil {
		return nil, err
	}
	return a.Span(t, h, *cells)
}

// SpanName returns the name in a row, which stays valid after the block is closed. It is "" if rows
// of the shape have no name.
func SpanName(t *rows.Tables, shape *rows.Shape, b source.Block, row int) (string, error) {
	for i, id := range shape.Columns {
		if int(id) < len(t.Columns) && t.Columns[id].Place == rows.Name {
			c, err := b.Cell(row, i)
			if err != nil {
				return "", err
			}
			return strings.Clone(t.Text(id, c)), nil
		}
	}
	return "", nil
}
