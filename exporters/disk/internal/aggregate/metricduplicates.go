package aggregate

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// mayBeDuplicate reports whether other rows of the source have the key of this row.
func (s *metricsScan) mayBeDuplicate(h *rows.Head) bool {
	_, is := s.duplicates[scan.KeyOf(h)]
	return is
}

// findDuplicates finds the keys that several rows within the window have.
func (s *metricsScan) findDuplicates(ctx context.Context) error {
	n := 0
	for i := range s.blocks {
		if s.window.Touches(&s.blocks[i]) {
			n += s.blocks[i].Rows
		}
	}
	s.duplicates = make(map[scan.SpanKey]struct{})
	shares := uint64(n/scan.MaxSieveRows + 1)
	v := rows.NewDuplicateFilter(n / int(shares))
	for share := range shares {
		v.Reset()
		err := s.eachBlock(ctx, func(b source.Block) (int, error) {
			var h rows.Head
			for row := range b.Len() {
				if err := b.Head(row, &h); err != nil {
					return 0, err
				}
				hash := v.Hash(&h)
				if hash%shares != share || !s.window.Contains(h.Start) || !s.wants(h.Shape) {
					continue
				}
				if v.Seen(hash) {
					s.duplicates[scan.KeyOf(&h)] = struct{}{}
				}
			}
			return 0, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *metricsScan) wants(shape uint32) bool {
	m := s.shape(shape)
	return m != nil && m.use != skipped
}

// countDuplicates counts the spans that block left out. Rows with the same key are compared by
// their content.
func (s *metricsScan) countDuplicates(ctx context.Context) error {
	traces := make(map[otlpdata.TraceID]struct{})
	var ids []otlpdata.TraceID
	for t := range s.duplicates {
		if _, known := traces[t.TraceID]; !known {
			traces[t.TraceID] = struct{}{}
			ids = append(ids, t.TraceID)
		}
	}
	for some := range slices.Chunk(ids, scan.TracesPerDecode) {
		err := s.reader.session.Decode(ctx, func() error {
			for _, id := range some {
				if err := s.countDuplicatesOf(ctx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// countDuplicatesOf counts the spans of one trace that block left out.
func (s *metricsScan) countDuplicatesOf(ctx context.Context, id otlpdata.TraceID) error {
	seen := make(map[[sha256.Size]byte]struct{})
	err := s.reader.session.Sources[s.src].Trace(ctx, s.reader.tenant, id, func(b source.Block, list []int32) error {
		for _, row := range list {
			err := s.countDuplicate(b, int(row), seen)
			if err = s.reader.session.NoteDamage(s.src, scan.TracePart(id), 1, err); err != nil {
				return err
			}
		}
		return nil
	})
	return s.reader.session.NoteDamage(s.src, scan.TracePart(id), 0, err)
}

func (s *metricsScan) countDuplicate(b source.Block, row int, seen map[[sha256.Size]byte]struct{}) error {
	var h rows.Head
	if err := b.Head(row, &h); err != nil || !s.mayBeDuplicate(&h) || !s.wants(h.Shape) {
		return err
	}
	content, err := s.content.Read(s.tables, b, row, &h)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if _, again := seen[sum]; again {
		return nil
	}
	seen[sum] = struct{}{}
	return s.count(b, row, h.Shape, h.Start, h.End)
}
