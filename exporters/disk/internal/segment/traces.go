package segment

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var (
	_ source.Traces         = (*Segment)(nil)
	_ source.TraceParts     = (*Segment)(nil)
	_ source.Statistics     = (*Segment)(nil)
	_ source.SelectiveTrace = (*Segment)(nil)
	_ source.Versioned      = (*Segment)(nil)
)

// Trace visits the rows of a trace. The trace index shows whether the segment holds the trace; most
// segments do not. If the index is damaged, Trace searches all blocks.
func (s *Segment) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	return s.TraceIn(ctx, tenant, id, nil, visit)
}

// TraceIn implements source.SelectiveTrace.
func (s *Segment) TraceIn(ctx context.Context, tenant string, id otlpdata.TraceID, enter func(block int) bool,
	visit func(b source.Block, rows []int32) error) error {
	ids := [1]otlpdata.TraceID{id}
	return s.visitTraces(ctx, tenant, ids[:], enter, func(b source.Block, _ int, rows []int32) error { return visit(b, rows) })
}

// Traces visits the rows of several traces. It opens each block once, even if the block has rows of
// several of the traces.
func (s *Segment) Traces(ctx context.Context, tenant string, ids []otlpdata.TraceID,
	visit func(b source.Block, which int, rows []int32) error) error {
	return s.visitTraces(ctx, tenant, ids, nil, visit)
}

// visitTraces visits the rows of traces in the blocks for which enter, if it is not nil, returns
// true.
func (s *Segment) visitTraces(ctx context.Context, tenant string, ids []otlpdata.TraceID, enter func(block int) bool,
	visit func(b source.Block, which int, rows []int32) error) error {
	var found [8]candidate
	candidates, err := s.findTraces(found[:0], tenant, ids)
	if err == nil && len(candidates) == 0 {
		return nil
	}
	b, loadErr := s.load()
	if loadErr != nil {
		return loadErr
	}
	if err != nil {
		candidates = allCandidates(len(b.blocks), len(ids))
	}
	v := visitor{segment: s, essentials: b, tenant: tenant, ids: ids, visit: visit}
	var damage damageList
	for len(candidates) > 0 {
		n := 1
		for n < len(candidates) && candidates[n].block == candidates[0].block {
			n++
		}
		if enter == nil || enter(int(candidates[0].block)) {
			if err := damage.add(v.block(ctx, candidates[:n])); err != nil {
				return err
			}
		}
		candidates = candidates[n:]
	}
	return errors.Join(damage...)
}

// damageList collects the damage found so far.
type damageList []error

// add adds an error about damage. It returns any other error, joined with the damage so far.
func (d *damageList) add(err error) error {
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

// candidate says that a block may have rows of a trace.
type candidate struct {
	block uint32
	which int // index of the trace
}

// allCandidates returns all combinations of blocks and traces.
func allCandidates(blocks, traces int) []candidate {
	all := make([]candidate, 0, blocks*traces)
	for i := range blocks {
		for j := range traces {
			all = append(all, candidate{uint32(i), j})
		}
	}
	return all
}

// findTraces appends the candidates from the trace index, sorted by block.
func (s *Segment) findTraces(dst []candidate, tenant string, ids []otlpdata.TraceID) ([]candidate, error) {
	var found [8]uint32
	for i := range ids {
		blocks, err := s.findTrace(found[:0], source.TraceHash(tenant, ids[i]))
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			dst = append(dst, candidate{b, i})
		}
	}
	slices.SortFunc(dst, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.which, b.which)) })
	return dst, nil
}

// findTrace appends the blocks of a hash.
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

// visitor visits the rows of traces.
type visitor struct {
	segment    *Segment
	essentials *essentials
	tenant     string
	ids        []otlpdata.TraceID
	visit      func(b source.Block, which int, rows []int32) error
	rows       []int32 // rows of all traces in the block
	traceRows  []traceRows
}

// traceRows is the range of visitor.rows that belongs to a trace.
type traceRows struct{ which, from, to int }

// block visits the rows of candidates that have the same block.
func (v *visitor) block(ctx context.Context, candidates []candidate) error {
	o, err := v.segment.openBlock(ctx, v.essentials, int(candidates[0].block))
	if err != nil {
		return err
	}
	defer o.Close()
	if err := v.find(o.Block, candidates); err != nil || len(v.rows) == 0 {
		return err
	}
	o.Expect(v.rows)
	var damage damageList
	for _, sh := range v.traceRows {
		if err := damage.add(v.visit(o, sh.which, v.rows[sh.from:sh.to])); err != nil {
			return err
		}
	}
	return errors.Join(damage...)
}

// find looks up the traces in the trace table of a block.
func (v *visitor) find(o *block.Block, candidates []candidate) error {
	traces, err := o.Traces()
	if err != nil {
		return err
	}
	v.rows, v.traceRows = v.rows[:0], v.traceRows[:0]
	for _, p := range candidates {
		from := len(v.rows)
		for i := range traces {
			if traces[i].ID != v.ids[p.which] {
				continue
			}
			if err := v.addTrace(o, &traces[i]); err != nil {
				return err
			}
		}
		if len(v.rows) > from {
			v.traceRows = append(v.traceRows, traceRows{p.which, from, len(v.rows)})
		}
	}
	return nil
}

// addTrace adds the rows of an entry of the trace table if they belong to the tenant.
func (v *visitor) addTrace(o *block.Block, t *block.Trace) error {
	resources, err := o.Resources()
	if err != nil {
		return err
	}
	if v.essentials.tables.Resources[resources[t.First]].Tenant != v.tenant {
		return nil
	}
	for i := range t.Rows {
		v.rows = append(v.rows, t.First+i)
	}
	return nil
}

// TraceBlocks implements source.Statistics. It reads each page of the trace index once, regardless
// of the number of traces.
func (s *Segment) TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error) {
	list, err := s.loadPages()
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(ids))
	for i, id := range ids {
		hashes[i] = source.TraceHash(tenant, id)
	}
	slices.Sort(hashes)
	found := make([]bool, s.info.Blocks)
	for i := range list {
		from, _ := slices.BinarySearch(hashes, list[i].first)
		// Entries of one hash may extend over several pages.
		if from == len(hashes) || i+1 < len(list) && hashes[from] > list[i+1].first {
			continue
		}
		if err := s.markBlocks(found, &list[i], hashes[from:]); err != nil {
			return nil, err
		}
	}
	var out []int
	for number, is := range found {
		if is {
			out = append(out, number)
		}
	}
	return out, nil
}

// markBlocks marks the blocks of hashes in a page. hashes ascend, and none precedes the page.
func (s *Segment) markBlocks(found []bool, p *indexPage, hashes []uint64) error {
	page := s.buffer(p.length)
	defer s.release(page)
	if err := s.readAt(*page, s.dir[kindIndex].offset+p.offset); err != nil {
		return err
	}
	b := (*page)[4:]
	if checksum(b) != binary.LittleEndian.Uint32(*page) {
		return errChecksum
	}
	at := p.first
	for i := 0; i < len(b) && len(hashes) > 0; {
		step, number, next := postingAt(b, i)
		if i = next; number >= uint64(len(found)) || i > len(b) {
			return errPosting
		}
		at += step
		for len(hashes) > 0 && hashes[0] < at {
			hashes = hashes[1:]
		}
		if len(hashes) > 0 && hashes[0] == at {
			found[number] = true
		}
	}
	return nil
}

// TraceVersion implements source.Versioned. The rows of a segment never change, so the number is 1
// if the trace index has the trace.
func (s *Segment) TraceVersion(tenant string, id otlpdata.TraceID) (number uint64, stored time.Time, err error) {
	var found [8]uint32
	blocks, err := s.findTrace(found[:0], source.TraceHash(tenant, id))
	if len(blocks) > 0 {
		number = 1
	}
	return number, time.Time{}, err
}
