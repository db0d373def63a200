package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// blockPlace is where a block is. The first one follows the header, and each the one before.
type blockPlace struct {
	offset int64
	length int
	rows   int
}

// blockList is a section of the file:
//
//	list of blocks  blocks, (length, rows)*, stripes, (0 if it has no filter, or 1 + lines of the filter)*
//
// All numbers are varints. Without it blocks could not be found, which is why it is short.
type blockList struct {
	blocks  []blockPlace
	stripes []stripe // of stripeBlocks blocks each
}

// stripe is where the filter of a run of blocks is.
type stripe struct {
	lines  int   // -1: there is no filter
	offset int64 // in the section of filters
}

func (l *blockList) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(l.blocks)))
	for _, b := range l.blocks {
		dst = binary.AppendUvarint(dst, uint64(b.length))
		dst = binary.AppendUvarint(dst, uint64(b.rows))
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.stripes)))
	for _, s := range l.stripes {
		dst = binary.AppendUvarint(dst, uint64(s.lines+1))
	}
	return dst
}

// readBlockList reads the list of a file whose blocks end at limit.
func readBlockList(b []byte, limit int64) (*blockList, error) {
	r := reader{b: b}
	n := r.int()
	if n > len(b) {
		return nil, errShort
	}
	l := &blockList{blocks: make([]blockPlace, n)}
	at := int64(headerSize)
	for i := range l.blocks {
		p := blockPlace{offset: at, length: r.int(), rows: r.int()}
		if int64(p.length) > limit-at || p.rows > math.MaxInt32 {
			return nil, cmp.Or(r.err, errors.New("a block is outside of the file"))
		}
		at += int64(p.length)
		l.blocks[i] = p
	}
	if m := r.int(); r.err == nil && m != (n+stripeBlocks-1)/stripeBlocks {
		return nil, errors.New("it has stripes for other blocks")
	}
	l.stripes = make([]stripe, (n+stripeBlocks-1)/stripeBlocks)
	offset := int64(0)
	for i := range l.stripes {
		lines := int(r.id(maxStripeValues)) - 1
		l.stripes[i] = stripe{lines: lines, offset: offset}
		offset += int64(filterBytes(max(lines, 0)))
	}
	return l, r.end()
}

// appendZone appends what a search needs to know of a block without reading it. A section has those of all blocks:
//
//	zones  blocks, (earliest start [8], latest start - earliest, shapes, (shape - shape before)*, duration [shapes])*
//
// Shapes ascend; the first one counts from 0. A duration is a source.Step that no row of the shape exceeds.
func appendZone(dst []byte, z *source.BlockInfo) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, z.MinStart)
	dst = binary.AppendUvarint(dst, z.MaxStart-z.MinStart)
	dst = binary.AppendUvarint(dst, uint64(len(z.Shapes)))
	before := uint32(0)
	for _, s := range z.Shapes {
		dst = binary.AppendUvarint(dst, uint64(s.Shape-before))
		before = s.Shape
	}
	for _, s := range z.Shapes {
		dst = append(dst, byte(s.Longest))
	}
	return dst
}

// readZones reads the zones of the blocks of a list. shapes is how many shapes there are.
func readZones(b []byte, blocks []blockPlace, shapes int) ([]source.BlockInfo, error) {
	r := reader{b: b}
	if r.int() != len(blocks) {
		return nil, errors.New("it is of other blocks")
	}
	zones := make([]source.BlockInfo, len(blocks))
	for i := range zones {
		z := &zones[i]
		z.Rows = blocks[i].rows
		if start := r.take(8); start != nil {
			z.MinStart = binary.LittleEndian.Uint64(start)
		}
		z.MaxStart = z.MinStart + r.uvarint()
		n := r.int()
		if n > len(r.b) {
			return nil, errShort
		}
		z.Shapes = make([]source.BlockShape, n)
		at := uint64(0)
		for j := range z.Shapes {
			at += r.uvarint()
			if at >= uint64(shapes) {
				return nil, errors.New("a shape does not exist")
			}
			z.Shapes[j].Shape = uint32(at)
		}
		for j, step := range r.take(n) {
			z.Shapes[j].Longest = source.Step(step)
		}
	}
	return zones, r.end()
}
