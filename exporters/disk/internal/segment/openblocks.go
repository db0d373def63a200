package segment

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// openBlocks keeps some blocks open that were used last, because the next traces have rows in them, too.
type openBlocks struct {
	inputs []input
	blocks []inputBlock
	list   []*heldBlock
	clock  uint64
}

// heldBlock is a block that is open. One that is in use is not closed.
type heldBlock struct {
	source.Block
	varied varied // nil: it gives all cells only
	number uint32 // among the blocks of all inputs
	users  int
	used   uint64
}

// varied is implemented by blocks that give the cells of a row that are not Source.Constant in less time than all.
type varied interface {
	VaryingCells(dst []rows.Cell, row int) ([]rows.Cell, error)
}

// cells appends the cells of a row: all, or those that vary.
func (b *heldBlock) cells(dst []rows.Cell, row int) (cells []rows.Cell, all bool, err error) {
	if b.varied != nil {
		cells, err = b.varied.VaryingCells(dst, row)
		return cells, false, err
	}
	cells, err = b.Cells(dst, row)
	return cells, true, err
}

// take opens a block, and keeps it open until done.
func (o *openBlocks) take(number uint32) (*heldBlock, error) {
	o.clock++
	for _, b := range o.list {
		if b.number == number {
			b.used = o.clock
			b.users++
			return b, nil
		}
	}
	at := o.blocks[number]
	opened, err := o.inputs[at.input].Open(context.Background(), int(at.number))
	if err != nil {
		return nil, err
	}
	b := &heldBlock{Block: opened, number: number, users: 1, used: o.clock}
	b.varied, _ = opened.(varied)
	if oldest := o.oldest(); oldest != nil && len(o.list) >= maxOpenBlocks {
		oldest.Close()
		*oldest = *b
		return oldest, nil
	}
	o.list = append(o.list, b)
	return b, nil
}

// oldest returns the block that is longest out of use; nil if all are in use.
func (o *openBlocks) oldest() *heldBlock {
	var found *heldBlock
	for _, b := range o.list {
		if b.users == 0 && (found == nil || b.used < found.used) {
			found = b
		}
	}
	return found
}

func (o *openBlocks) done(b *heldBlock) { b.users-- }

func (o *openBlocks) close() {
	for _, b := range o.list {
		b.Close()
	}
	o.list = nil
}
