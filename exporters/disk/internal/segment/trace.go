package segment

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Traces = (*Segment)(nil)

// Trace visits the rows of a trace. Most segments have nothing of it, which the trace index alone tells. Where that is damaged it looks for
// the trace in all blocks.
func (s *Segment) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	ids := [1]otlpdata.TraceID{id}
	return s.Traces(ctx, tenant, ids[:], func(b source.Block, _ int, rows []int32) error { return visit(b, rows) })
}

// Traces visits the rows of several traces. It opens each block once, however many of them it has.
func (s *Segment) Traces(ctx context.Context, tenant string, ids []otlpdata.TraceID,
	visit func(b source.Block, which int, rows []int32) error) error {
	var found [8]place
	places, err := s.findTraces(found[:0], tenant, ids)
	if err == nil && len(places) == 0 {
		return nil
	}
	b, loadErr := s.load()
	if loadErr != nil {
		return loadErr
	}
	if err != nil {
		places = everywhere(len(b.blocks), len(ids))
	}
	v := visitor{Segment: s, body: b, tenant: tenant, ids: ids, visit: visit}
	var damage damages
	for len(places) > 0 {
		n := 1
		for n < len(places) && places[n].block == places[0].block {
			n++
		}
		if err := damage.add(v.block(ctx, places[:n])); err != nil {
			return err
		}
		places = places[n:]
	}
	return errors.Join(damage...)
}

// damages are the parts that could not be read so far.
type damages []error

// add takes in an error if it is damage. Any other one is returned, with the damage before it.
func (d *damages) add(err error) error {
	if err == nil {
		return nil
	}
	all := append(*d, err)
	if damage := (*source.DamageError)(nil); !errors.As(err, &damage) {
		return errors.Join(all...)
	}
	*d = all
	return nil
}

// place says that a block may have rows of a trace.
type place struct {
	block uint32
	which int // the trace
}

// everywhere returns all places for some traces.
func everywhere(blocks, traces int) []place {
	all := make([]place, 0, blocks*traces)
	for i := range blocks {
		for j := range traces {
			all = append(all, place{uint32(i), j})
		}
	}
	return all
}

// findTraces appends the places that the trace index has, by block.
func (s *Segment) findTraces(dst []place, tenant string, ids []otlpdata.TraceID) ([]place, error) {
	var found [8]uint32
	for i := range ids {
		blocks, err := s.findTrace(found[:0], traceHash(tenant, ids[i]))
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			dst = append(dst, place{b, i})
		}
	}
	slices.SortFunc(dst, func(a, b place) int { return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.which, b.which)) })
	return dst, nil
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

// visitor visits rows of traces.
type visitor struct {
	*Segment
	body   *body
	tenant string
	ids    []otlpdata.TraceID
	visit  func(b source.Block, which int, rows []int32) error
	wanted []int32 // rows of all traces in the block
	shares []share
}

// share is which part of wanted is of a trace.
type share struct{ which, from, to int }

// block visits the rows of the traces of some places, all in one block.
func (v *visitor) block(ctx context.Context, places []place) error {
	o, err := v.openBlock(ctx, v.body, int(places[0].block))
	if err != nil {
		return err
	}
	defer o.Close()
	if err := v.find(o.Block, places); err != nil || len(v.wanted) == 0 {
		return err
	}
	o.Expect(v.wanted)
	var damage damages
	for _, sh := range v.shares {
		if err := damage.add(v.visit(o, sh.which, v.wanted[sh.from:sh.to])); err != nil {
			return err
		}
	}
	return errors.Join(damage...)
}

// find looks for the traces in the trace table of a block.
func (v *visitor) find(o *block.Block, places []place) error {
	traces, err := o.Traces()
	if err != nil {
		return err
	}
	v.wanted, v.shares = v.wanted[:0], v.shares[:0]
	for _, p := range places {
		from := len(v.wanted)
		for i := range traces {
			if traces[i].ID != v.ids[p.which] {
				continue
			}
			if err := v.take(o, &traces[i]); err != nil {
				return err
			}
		}
		if len(v.wanted) > from {
			v.shares = append(v.shares, share{p.which, from, len(v.wanted)})
		}
	}
	return nil
}

// take adds the rows of an entry of the trace table, if they are the tenant's.
func (v *visitor) take(o *block.Block, t *block.Trace) error {
	resources, err := o.Resources()
	if err != nil {
		return err
	}
	if v.body.tables.Resources[resources[t.First]].Tenant != v.tenant {
		return nil
	}
	for i := range t.Rows {
		v.wanted = append(v.wanted, t.First+i)
	}
	return nil
}
