package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
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
