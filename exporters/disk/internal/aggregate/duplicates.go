package aggregate

import (
	"context"
	"crypto/sha256"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// duplicates recognizes duplicates in a source that may have some. Rows with the same key are
// compared by their content.
type duplicates struct {
	keys    map[scan.SpanKey]struct{}
	seen    map[[sha256.Size]byte]struct{} // hashes of contents that were counted
	content scan.ContentReader
}

// findDuplicates finds the rows in some blocks of the source that may be duplicates of each other.
// Damage is recorded.
func (s *rowScan) findDuplicates(ctx context.Context, blocks []sampledBlock) (*duplicates, error) {
	t := &duplicates{keys: make(map[scan.SpanKey]struct{}), seen: make(map[[sha256.Size]byte]struct{})}
	n := countRows(blocks)
	shares := uint64(n/scan.MaxSieveRows + 1)
	v := rows.NewDuplicateFilter(n / int(shares))
	for share := range shares {
		v.Reset()
		for i := range blocks {
			err := s.agg.session.OpenBlock(ctx, s.src, blocks[i].block, func(b source.Block) error {
				return s.sieve(b, v, share, shares, t.keys)
			})
			err = s.agg.session.NoteDamage(s.src, scan.BlockPart(blocks[i].block), blocks[i].info.Rows, err)
			if err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// sieve adds the keys of rows in a block that the filter v has already seen. It divides the rows
// into a number of shares and examines only the given share.
func (s *rowScan) sieve(b source.Block, v *rows.DuplicateFilter, share, shares uint64, of map[scan.SpanKey]struct{}) error {
	shapes, err := b.Shapes()
	if err != nil {
		return err
	}
	p := s.filter.Plan
	for row, shape := range shapes {
		if !p.MayMatch(shape) || !s.sample.examines(row) {
			continue
		}
		if err := b.Head(row, &s.head); err != nil {
			return err
		}
		if hash := v.Hash(&s.head); hash%shares == share && s.window.Contains(s.head.Start) && v.Seen(hash) {
			of[scan.KeyOf(&s.head)] = struct{}{}
		}
	}
	return nil
}

// dropRepeated removes rows from set that are duplicates of counted rows.
func (t *duplicates) dropRepeated(f *scan.Filter, set []int32) ([]int32, error) {
	kept := set[:0]
	var h rows.Head
	for _, row := range set {
		if err := f.Block.Head(int(row), &h); err != nil {
			return nil, err
		}
		if _, is := t.keys[scan.KeyOf(&h)]; is {
			content, err := t.content.Read(f.Plan.Tables, f.Block, int(row), &h)
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
