package segment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Estimates of memory, in bytes.
const (
	indexPageMemory = int64(unsafe.Sizeof(indexPage{}))
	infoMemory      = int64(unsafe.Sizeof(source.BlockInfo{}))
)

// words finds the words of a string column by their text.
type words struct {
	list   []string
	sorted cached[[]uint32] // words in the order of their texts
}

// has reports whether a text is a word.
func (w *words) has(text string) bool {
	sorted, _ := w.sorted.get(func() (*[]uint32, error) {
		order := make([]uint32, len(w.list))
		for i := range order {
			order[i] = uint32(i)
		}
		slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(w.list[a], w.list[b]) })
		return &order, nil
	}, func() {})
	_, found := slices.BinarySearchFunc(*sorted, text, func(i uint32, t string) int { return cmp.Compare(w.list[i], t) })
	return found
}

// load returns what reading blocks takes.
func (s *Segment) load() (*body, error) {
	s.cache.use(s)
	return s.body.get(s.readBody, s.keep)
}

// keep is called when something was read that is kept.
func (s *Segment) keep() { s.cache.grown(s) }

func (s *Segment) readBody() (*body, error) {
	raw, err := s.section(kindTables, maxSection)
	if err != nil {
		return nil, err
	}
	tables, err := readTables(raw)
	if err != nil {
		return nil, s.damage(kindTables.String(), err)
	}
	b := &body{keys: map[string][]*words{}}
	if raw, err = s.section(kindLayout, maxSection); err != nil {
		return nil, err
	}
	if b.layout, err = readLayout(tables, raw); err != nil {
		return nil, s.damage(kindLayout.String(), err)
	}
	if raw, err = s.section(kindBlocks, maxSection); err != nil {
		return nil, err
	}
	if b.blockList, err = readBlockList(raw, s.dir.begin()); err != nil {
		return nil, s.damage(kindBlocks.String(), err)
	}
	if len(b.blocks) != s.info.Blocks {
		return nil, s.damage(kindBlocks.String(), fmt.Errorf("it has %d blocks instead of %d", len(b.blocks), s.info.Blocks))
	}
	b.complete()
	return b, nil
}

// begin returns where the first section begins, which is where blocks end.
func (d *directory) begin() int64 {
	begin := int64(math.MaxInt64)
	for i := range d {
		if d[i].kind != 0 {
			begin = min(begin, d[i].offset)
		}
	}
	return begin
}

// complete indexes the columns and estimates the memory.
func (b *body) complete() {
	const ofColumn, ofWord = 128, 4
	t := b.tables
	for i, c := range t.Columns {
		if c.Kind == otlpdata.ValueString && (c.Place == rows.Attribute || c.Place == rows.EventAttribute) {
			b.keys[c.Key] = append(b.keys[c.Key], &words{list: t.Words[i]})
		}
		b.memory += ofColumn + int64(len(t.Words[i]))*ofWord
	}
	b.memory += t.Memory() + b.block.Memory()
	b.memory += int64(len(b.blocks))*int64(unsafe.Sizeof(blockPlace{})) + int64(len(b.stripes))*int64(unsafe.Sizeof(stripe{}))
}

// loadPages returns the directory of the trace index.
func (s *Segment) loadPages() ([]indexPage, error) {
	p, err := s.pages.get(func() (*pages, error) {
		raw, err := s.section(kindIndexPages, maxSection)
		if err != nil {
			return nil, err
		}
		list, err := readIndexPages(raw, s.dir[kindIndex].length)
		if err != nil {
			return nil, s.damage(kindIndexPages.String(), err)
		}
		return &pages{list}, nil
	}, func() {})
	if err != nil {
		return nil, err
	}
	return p.list, nil
}
