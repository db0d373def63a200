package search

import (
	"context"
	"crypto/sha256"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// twins tell duplicates in a source that may have some. Of rows that look the same the content is compared.
type twins struct {
	of   map[twin]struct{}
	seen map[[sha256.Size]byte]struct{} // contents of those that were met
	contentReader
}

// findTwins notes which rows of some blocks of the source may have duplicates among them. Damage is noted.
func (s *rowScan) findTwins(ctx context.Context, blocks []frameBlock) (*twins, error) {
	t := &twins{of: make(map[twin]struct{}), seen: make(map[[sha256.Size]byte]struct{})}
	n := rowsOf(blocks)
	shares := uint64(n/maxSieved + 1)
	v := rows.NewDuplicateFilter(n / int(shares))
	for share := range shares {
		v.Reset()
		for i := range blocks {
			err := s.open(ctx, s.src, blocks[i].block, func(b source.Block) error {
				return s.sieve(b, v, share, shares, t.of)
			})
			err = s.damage.note(s.sources[s.src], blockName(blocks[i].block), blocks[i].info.Rows, err)
			if err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// sieve adds the rows of a block that the sieve has seen before; of all rows one share.
func (s *rowScan) sieve(b source.Block, v *rows.DuplicateFilter, share, shares uint64, of map[twin]struct{}) error {
	shapes, err := b.Shapes()
	if err != nil {
		return err
	}
	p := s.fit.plan
	for row, shape := range shapes {
		if int(shape) >= len(p.programs) || p.bound(shape) == &p.never || !s.frame.examines(row) {
			continue
		}
		if err := b.Head(row, &s.head); err != nil {
			return err
		}
		if hash := v.Hash(&s.head); hash%shares == share && s.window.has(s.head.Start) && v.Seen(hash) {
			of[twinOf(&s.head)] = struct{}{}
		}
	}
	return nil
}

// once removes the rows from set whose duplicates were met before.
func (t *twins) once(f *filter, set []int32) ([]int32, error) {
	kept := set[:0]
	var h rows.Head
	for _, row := range set {
		if err := f.block.Head(int(row), &h); err != nil {
			return nil, err
		}
		if _, is := t.of[twinOf(&h)]; is {
			content, err := t.readContent(f.tables, f.block, int(row), &h)
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(content)
			if _, again := t.seen[sum]; again {
				continue
			}
			t.seen[sum] = struct{}{}
		}
		kept = append(kept, row)
	}
	return kept, nil
}
