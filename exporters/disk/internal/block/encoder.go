package block

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Encoder encodes blocks and reuses its memory. It is not safe for concurrent use.
type Encoder struct {
	column *column.Encoder

	// The current input.
	l     *Layout
	heads []rows.Head
	cells []rows.Cell
	first []int32

	dir  directory
	body []byte

	hinted *Layout       // layout to which the hints belong
	hints  []column.Hint // by column
	ofHead [headParts]column.Hint

	parents   parentResolver
	resources resourceCoder
	index     index
	values    values
	columns   []uint32
	longest   []uint64 // by shape: maximum duration; zero between blocks

	// Scratch buffers of the head parts.
	codes        []uint32
	newResources []uint32
	runs         []uint64
	high, low    []uint64
	ids          []byte
	firsts       []int64
	steps        []int64
	durations    []int64
}

// Zone summarizes a block so that searches can skip it without reading it.
type Zone struct {
	source.BlockInfo
	Shapes []source.BlockShape // ascending
}

// NewEncoder returns an Encoder that compresses at the given level.
func NewEncoder(level column.Level) *Encoder {
	return &Encoder{column: column.NewEncoder(level), parents: newParentResolver()}
}

// Encode appends a block to dst. Rows must be in their final order: the rows of a trace of a tenant
// adjacent, the earliest start first. Ids refer to the tables of the layout. The cells of row i
// start at cells[first[i]]: those for which the layout has no constant and whose kind is not empty,
// in the order of the columns of the shape.
//
// The result depends on the input and on the blocks of the same layout that were encoded before,
// because the hints of columns carry over. There must be 1 to [MaxRows] rows and at most [MaxCells]
// varying cells; Encode panics otherwise, because the block could not be decoded.
func (e *Encoder) Encode(dst []byte, l *Layout, heads []rows.Head, cells []rows.Cell, first []int32) ([]byte, Zone) {
	if len(heads) == 0 || len(heads) > MaxRows {
		panic(fmt.Sprintf("BUG: a block of %d rows", len(heads)))
	}
	e.l, e.heads, e.cells, e.first = l, heads, cells, first
	e.dir.rows, e.dir.columns = len(heads), e.dir.columns[:0]
	e.body = e.body[:0]
	if e.hinted != l {
		e.hinted, e.ofHead = l, [headParts]column.Hint{}
		e.hints = make([]column.Hint, len(l.tables.Columns))
	}

	e.encodeTraces()
	e.encodeHeads()
	e.encodeCells()
	zone := e.zone()

	dst = e.dir.append(dst)
	dst = append(dst, e.body...)
	e.l, e.heads, e.cells, e.first = nil, nil, nil, nil
	return dst, zone
}

// end returns the entry of the part that was appended after body[:from].
func (e *Encoder) end(from int) entry {
	part := e.body[from:]
	return entry{length: uint32(len(part)), crc: crc32.Checksum(part, castagnoli)}
}

// encodeTraces determines the runs of rows of each trace, and writes the trace table.
func (e *Encoder) encodeTraces() {
	e.runs, e.high, e.low = e.runs[:0], e.high[:0], e.low[:0]
	from := 0
	for i := 1; i <= len(e.heads); i++ {
		if i < len(e.heads) && e.sameTrace(i-1, i) {
			continue
		}
		id := &e.heads[from].TraceID
		e.runs = append(e.runs, uint64(i-from))
		e.high = append(e.high, binary.BigEndian.Uint64(id[:8]))
		e.low = append(e.low, binary.BigEndian.Uint64(id[8:]))
		from = i
	}
	e.dir.traces = len(e.runs)
	e.uint64s(partRuns, e.runs)
	e.uint64s(partHigh, e.high)
	e.uint64s(partLow, e.low)
}

func (e *Encoder) sameTrace(i, j int) bool {
	a, b := &e.heads[i], &e.heads[j]
	if a.TraceID != b.TraceID {
		return false
	}
	return a.Resource == b.Resource || e.l.tables.Resources[a.Resource].Tenant == e.l.tables.Resources[b.Resource].Tenant
}

func (e *Encoder) uint64s(part int, v []uint64) {
	from := len(e.body)
	e.body = e.column.Uint64s(e.body, v)
	e.dir.heads[part] = e.end(from)
}

func (e *Encoder) int64s(part int, v []int64) {
	from := len(e.body)
	e.body = e.column.Int64s(e.body, v)
	e.dir.heads[part] = e.end(from)
}

func (e *Encoder) fixed(part int, v []byte) {
	from := len(e.body)
	e.body = e.column.Fixed(e.body, v, idLength)
	e.dir.heads[part] = e.end(from)
}

func (e *Encoder) code(part int, v []uint32) {
	from := len(e.body)
	e.body = e.column.HintedCodes(e.body, v, &e.ofHead[part])
	e.dir.heads[part] = e.end(from)
}

// encodeHeads writes the parts with one value per row. encodeTraces must be done.
func (e *Encoder) encodeHeads() {
	e.codes = resize(e.codes, len(e.heads))
	for i := range e.heads {
		e.codes[i] = e.heads[i].Shape
	}
	e.index.rankRows(e.l, e.codes)
	e.code(partShapes, e.codes)

	e.ids = e.ids[:0]
	for i := range e.heads {
		e.ids = append(e.ids, e.heads[i].SpanID[:]...)
	}
	e.fixed(partSpans, e.ids)

	e.parents.resolve(e.heads, e.runs)
	e.encodeParents()
	e.encodeResources()
	e.encodeTimes()
}

func (e *Encoder) encodeParents() {
	e.ids = e.ids[:0]
	for i, p := range e.parents.parents {
		e.codes[i] = parentCode(i, p)
		if p == parentExplicit {
			e.ids = append(e.ids, e.heads[i].ParentID[:]...)
		}
	}
	e.code(partParents, e.codes)
	e.fixed(partExplicit, e.ids)
}

// encodeTimes writes starts and durations. The rows of a trace ascend by start, so the difference
// from the preceding row is smaller than the difference from the parent.
func (e *Encoder) encodeTimes() {
	e.firsts, e.steps, e.durations = e.firsts[:0], e.steps[:0], e.durations[:0]
	row, last := 0, uint64(0)
	for _, n := range e.runs {
		run := e.heads[row:][:n]
		e.firsts = append(e.firsts, int64(run[0].Start-last))
		last = run[0].Start
		for i := 1; i < len(run); i++ {
			e.steps = append(e.steps, int64(run[i].Start-run[i-1].Start))
		}
		row += len(run)
	}
	for i := range e.heads {
		e.durations = append(e.durations, int64(e.heads[i].End-e.heads[i].Start))
	}
	e.int64s(partFirst, e.firsts)
	e.int64s(partSteps, e.steps)
	e.int64s(partDurations, e.durations)
}
