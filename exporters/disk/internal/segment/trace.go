package segment

import (
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Trace visits the rows of a trace. Most segments have nothing of it, which the trace index alone tells. Where that is damaged it looks for
// the trace in all blocks.
func (s *Segment) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	var found [8]uint32
	blocks, indexErr := s.findTrace(found[:0], traceHash(tenant, id))
	if indexErr == nil && len(blocks) == 0 {
		return nil
	}
	b, err := s.load()
	if err != nil {
		return err
	}
	if indexErr != nil {
		blocks = blocks[:0]
		for i := range b.blocks {
			blocks = append(blocks, uint32(i))
		}
	}
	var damage []error
	for _, number := range blocks {
		err := s.visitTrace(ctx, b, int(number), tenant, id, visit)
		var d *source.DamageError
		switch {
		case errors.As(err, &d):
			damage = append(damage, err)
		case err != nil:
			return errors.Join(append(damage, err)...)
		}
	}
	return errors.Join(damage...)
}

// findTrace appends the blocks that the trace index has for a hash.
func (s *Segment) findTrace(dst []uint32, hash uint64) ([]uint32, error) {
	list, err := s.loadPages()
	if err != nil {
		return dst, err
	}
	for _, p := range pagesFor(list, hash) {
		if dst, err = s.lookup(dst, &p, hash, s.info.Blocks); err != nil {
			return dst, err
		}
	}
	return slices.Compact(dst), nil
}

func (s *Segment) lookup(dst []uint32, p *indexPage, hash uint64, blocks int) ([]uint32, error) {
	page := s.buffer(p.length)
	defer s.release(page)
	if err := s.readAt(*page, s.dir[kindIndex].offset+p.offset); err != nil {
		return dst, err
	}
	return p.lookup(dst, *page, hash, blocks)
}

// visitTrace visits the rows of a trace in a block that may have some.
func (s *Segment) visitTrace(ctx context.Context, b *body, number int, tenant string, id otlpdata.TraceID,
	visit func(b source.Block, rows []int32) error) error {
	o, err := s.openBlock(ctx, b, number)
	if err != nil {
		return err
	}
	defer o.Close()
	traces, err := o.Traces()
	if err != nil {
		return err
	}
	var list []int32
	for _, t := range traces {
		if t.ID != id {
			continue
		}
		resources, err := o.Resources()
		if err != nil {
			return err
		}
		if b.tables.Resources[resources[t.First]].Tenant != tenant {
			continue
		}
		list = slices.Grow(list, int(t.Rows))
		for i := range t.Rows {
			list = append(list, t.First+i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return visit(o, list)
}
