package search

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// twin is what duplicates have in common, and other spans hardly ever.
type twin struct {
	trace otlpdata.TraceID
	id    otlpdata.SpanID
	start uint64
}

func twinOf(h *rows.Head) twin { return twin{h.TraceID, h.SpanID, h.Start} }

// isTwin reports whether the source has several rows that may be duplicates of a row.
func (s *metricsScan) isTwin(h *rows.Head) bool {
	_, is := s.twins[twinOf(h)]
	return is
}

// maxSieved is how many rows are in a sieve at once, about, which takes 16 MiB. What has more rows is read several times.
const maxSieved = 1 << 21

// findTwins notes which spans that start within the window may have duplicates in the source.
func (s *metricsScan) findTwins(ctx context.Context) error {
	n := 0
	for i := range s.blocks {
		if s.window.touches(&s.blocks[i]) {
			n += s.blocks[i].Rows
		}
	}
	s.twins = make(map[twin]struct{})
	shares := uint64(n/maxSieved + 1)
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
				if hash%shares != share || !s.window.has(h.Start) || !s.wants(h.Shape) {
					continue
				}
				if v.Seen(hash) {
					s.twins[twinOf(&h)] = struct{}{}
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
	return m != nil && m.use != passed
}

// countTwins counts the spans that were left out. What looks the same is compared as a whole.
func (s *metricsScan) countTwins(ctx context.Context) error {
	traces := make(map[otlpdata.TraceID]struct{})
	var ids []otlpdata.TraceID
	for t := range s.twins {
		if _, known := traces[t.trace]; !known {
			traces[t.trace] = struct{}{}
			ids = append(ids, t.trace)
		}
	}
	for some := range slices.Chunk(ids, tracesAtOnce) {
		err := s.decode(ctx, func() error {
			for _, id := range some {
				if err := s.countTwinsOf(ctx, id); err != nil {
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

// countTwinsOf counts those of a trace.
func (s *metricsScan) countTwinsOf(ctx context.Context, id otlpdata.TraceID) error {
	seen := make(map[[sha256.Size]byte]struct{})
	err := s.sources[s.src].Trace(ctx, s.tenant, id, func(b source.Block, list []int32) error {
		for _, row := range list {
			err := s.countTwin(b, int(row), seen)
			if err = s.damage.note(s.sources[s.src], partOfTrace(id), 1, err); err != nil {
				return err
			}
		}
		return nil
	})
	return s.damage.note(s.sources[s.src], partOfTrace(id), 0, err)
}

func (s *metricsScan) countTwin(b source.Block, row int, seen map[[sha256.Size]byte]struct{}) error {
	var h rows.Head
	if err := b.Head(row, &h); err != nil || !s.isTwin(&h) || !s.wants(h.Shape) {
		return err
	}
	content, err := s.readContent(s.tables, b, row, &h)
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

// contentReader reads what only duplicates have in common.
type contentReader struct {
	cells     []rows.Cell
	assembler rows.Assembler
	span      []byte
	content   []byte
}

// readContent returns the content of a row, whose head it reads into h. It is valid until the next call.
func (c *contentReader) readContent(t *rows.Tables, b source.Block, row int, h *rows.Head) ([]byte, error) {
	s, err := assemble(t, b, row, h, &c.cells, &c.assembler)
	if err != nil {
		return nil, err
	}
	c.span = otlpdata.AppendSpan(c.span[:0], s)
	r, sc := &t.Resources[h.Resource].Resource, &t.Scopes[t.Shapes[h.Shape].Scope]
	c.content = otlpdata.AppendResourceSpans(c.content[:0], r, sc, c.span)
	return c.content, nil
}
