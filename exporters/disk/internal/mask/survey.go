package mask

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// survey is what rules hide in a source. It does not change once it is made.
type survey struct {
	rules     []*Rule          // that hide something, or may do so
	hits      []*hit           // of fresh rules; kept while a block is unread
	blocks    map[int]*masked  // those with hidden rows, and those that could not be read
	hidden    int              // rows
	unread    int              // blocks
	by        map[uint64]int   // rows by the number of the first mark that hides them
	shapes    []bool           // by shape: some row that is left has it; nil: nothing is hidden
	resources []bool           // by resource: likewise
	services  []source.Service // of rows that are left; nil: too many to be kept, or not known
}

// masked is a block with hidden rows.
type masked struct {
	n      int      // how many are hidden
	bits   []uint64 // which; nil: all are, or none is
	unread bool     // fresh rules were not applied, because the block could not be read
	// What rows that are left have, and resources that only hidden rows have, each once. Blocks without rows that were not read know of none.
	shapes, resources, gone []uint32
}

func (m *masked) has(row int) bool { return m.bits[row/64]>>(row%64)&1 == 1 }

func (v *survey) complete() bool { return v.unread == 0 }

// newSurvey adds what fresh rules hide to what is known already; base may be nil.
func newSurvey(ctx context.Context, src source.Source, fresh []*Rule, base *survey) (*survey, error) {
	var hits []*hit
	for _, r := range fresh {
		h, err := find(ctx, r, src)
		if err != nil {
			return nil, err
		}
		if h != nil {
			hits = append(hits, h)
		}
	}
	switch {
	case len(hits) > 0:
	case base != nil:
		return base, nil
	default:
		return &survey{blocks: map[int]*masked{}, by: map[uint64]int{}}, nil
	}
	t, err := src.Tables()
	if err != nil {
		return nil, err
	}
	infos, err := src.Blocks()
	if err != nil {
		return nil, err
	}
	v := &survey{hits: hits, blocks: map[int]*masked{}, by: map[uint64]int{}}
	if base != nil {
		v.rules, v.blocks, v.by, v.hidden = slices.Clip(base.rules), maps.Clone(base.blocks), maps.Clone(base.by), base.hidden
	}
	for i := range infos {
		if err := v.block(ctx, src, t, i, &infos[i]); err != nil {
			return nil, err
		}
	}
	for _, h := range v.hits {
		if v.unread > 0 || v.by[h.rule.Number] > 0 {
			v.rules = append(v.rules, h.rule)
		}
	}
	if v.unread == 0 {
		v.hits = nil
	}
	err = v.vocabulary(ctx, src, t, infos)
	return v, err
}

// block applies the fresh rules to a block.
func (v *survey) block(ctx context.Context, src source.Source, t *rows.Tables, number int, info *source.BlockInfo) error {
	touching, zone := v.touching(src, number, info)
	if len(touching) == 0 {
		return nil
	}
	before := v.blocks[number]
	if before == nil {
		before = &masked{}
	}
	if before.n == info.Rows {
		return nil
	}
	if h := touching[0]; h.empties(zone) { // another one may do so too, and it would not be known how much the first one hides
		v.count(h, info.Rows-before.n)
		v.blocks[number] = &masked{n: info.Rows}
		return nil
	}
	m, err := examine(ctx, src, t, number, before, touching, v.count)
	if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
		unread := *before
		unread.unread = true
		v.unread++
		v.blocks[number] = &unread
		return nil
	}
	if err == nil && m.n > 0 {
		v.blocks[number] = m
	}
	return err
}

// touching returns the hits that may be in a block: few of many, since each is looked for in all of its rows. The shapes of the block are
// read if times alone do not rule out all of them.
func (v *survey) touching(src source.Source, number int, info *source.BlockInfo) (list []*hit, zone blockZone) {
	zone.BlockInfo = info
	if !slices.ContainsFunc(v.hits, func(h *hit) bool { return h.meets(info) }) {
		return nil, zone
	}
	zone.shapes, zone.known = src.BlockShapes(nil, number)
	for _, h := range v.hits {
		if h.touches(zone) {
			list = append(list, h)
		}
	}
	return list, zone
}

func (v *survey) count(h *hit, n int) {
	v.by[h.rule.Number] += n
	v.hidden += n
}

// again examines a block that could not be read before. Nothing is kept of it: the next survey does that.
func (v *survey) again(ctx context.Context, src source.Source, number int) (*masked, error) {
	t, err := src.Tables()
	if err != nil {
		return nil, err
	}
	return examine(ctx, src, t, number, v.blocks[number], v.hits, func(*hit, int) {})
}

// examine reads a block, hides rows in addition to those that are hidden, and tells count how many.
func examine(ctx context.Context, src source.Source, t *rows.Tables, number int, before *masked, hits []*hit,
	count func(h *hit, n int)) (*masked, error) {
	b, err := src.Open(ctx, number)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	e := examiner{name: src.Name(), block: b, tables: t, hits: hits}
	if err := e.read(); err != nil {
		return nil, err
	}
	m := &masked{n: before.n, bits: make([]uint64, (b.Len()+63)/64)}
	copy(m.bits, before.bits)
	hiding := make([]int, len(hits))
	for row := range b.Len() {
		if m.has(row) {
			continue
		}
		i, err := e.hiddenBy(row)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			m.bits[row/64] |= 1 << (row % 64)
			m.n++
			hiding[i]++
		}
	}
	for i, n := range hiding {
		if n > 0 {
			count(hits[i], n)
		}
	}
	e.sum(m)
	return m, nil
}

// examiner tells which rows of a block are hidden.
type examiner struct {
	name              string // of the source
	block             source.Block
	tables            *rows.Tables
	hits              []*hit
	shapes, resources []uint32
	starts            []uint64
}

func (e *examiner) read() (err error) {
	if e.shapes, err = e.block.Shapes(); err != nil {
		return err
	}
	if e.starts, err = e.block.Starts(); err != nil {
		return err
	}
	if e.resources, err = e.block.Resources(); err != nil {
		return err
	}
	for row, shape := range e.shapes {
		if int(shape) >= len(e.tables.Shapes) || int(e.resources[row]) >= len(e.tables.Resources) {
			return &source.DamageError{File: e.name, Part: "a block", Err: fmt.Errorf("row %d refers to what is not defined", row)}
		}
	}
	return nil
}

// hiddenBy returns the index of the hit that hides a row, -1 if none does.
func (e *examiner) hiddenBy(row int) (int, error) {
	for i, h := range e.hits {
		if !h.maybe(e.shapes[row], e.starts[row]) {
			continue
		}
		if h.shapes != nil {
			return i, nil
		}
		var head rows.Head
		if err := e.block.Head(row, &head); err != nil {
			return -1, err
		}
		if h.rule.hides(&e.tables.Shapes[head.Shape], head.Start, &head.TraceID) {
			return i, nil
		}
	}
	return -1, nil
}

// sum notes what hidden rows and others have.
func (e *examiner) sum(m *masked) {
	shapes, resources, gone := map[uint32]struct{}{}, map[uint32]struct{}{}, map[uint32]struct{}{}
	for row := range e.shapes {
		if m.has(row) {
			gone[e.resources[row]] = struct{}{}
			continue
		}
		shapes[e.shapes[row]] = struct{}{}
		resources[e.resources[row]] = struct{}{}
	}
	for r := range resources {
		delete(gone, r)
	}
	m.shapes, m.resources, m.gone = slices.Collect(maps.Keys(shapes)), slices.Collect(maps.Keys(resources)), slices.Collect(maps.Keys(gone))
}
