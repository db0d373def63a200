package segment

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// Part is a share of a file.
type Part struct {
	// Section is the name of a section, or "blocks".
	Section string
	// Name is what of the heads of rows a part of blocks holds. It is "" for sections, and for columns.
	Name string
	// Column is the column that a part of blocks holds, or nil.
	Column *rows.Column
	Bytes  int64
}

// Sizes tells what the bytes of the file are for: together the parts make its size. One part of blocks comes for each block. It reads all
// blocks and decodes none. An error is that of ctx, or a *source.DamageError.
func (s *Segment) Sizes(ctx context.Context, visit func(p Part)) error {
	rest := s.size
	add := func(p Part) {
		rest -= p.Bytes
		visit(p)
	}
	for k := kind(1); k < kinds; k++ {
		if e := &s.dir[k]; e.kind != 0 {
			add(Part{Section: k.String(), Bytes: e.length})
		}
	}
	b, err := s.load()
	if err != nil {
		return err
	}
	for i := range b.blocks {
		o, err := s.openBlock(ctx, b, i)
		if err != nil {
			return err
		}
		o.Sizes(func(name string, n int) { add(Part{Section: "blocks", Name: name, Bytes: int64(n)}) },
			func(id uint32, n int) { add(Part{Section: "blocks", Column: &b.tables.Columns[id], Bytes: int64(n)}) })
		o.Close()
	}
	visit(Part{Section: "header, directory, trailer", Bytes: rest})
	return nil
}
