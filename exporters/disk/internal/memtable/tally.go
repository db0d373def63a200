package memtable

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Tally = (*snapshot)(nil)

const (
	// maxTallyCells is the maximum number of cells of series (see stats.Collector.Cells), about 8
	// MiB. A table whose spans have arbitrary times exceeds this and is not counted.
	maxTallyCells = 1 << 16
	// tallyStep is the number of rows that are counted before the context is checked again.
	tallyStep = 1 << 14
)

// tally counts the rows of a table, and the calls that they stand for, by series and minute.
// Duplicates count once. Counting starts with the first call of Tally and continues with the new
// rows in later calls.
type tally struct {
	mu             sync.Mutex // held while rows are counted and while the result is read
	rows           int        // number of counted rows
	failed         bool       // a row cannot be counted, or there are too many cells
	collector      *stats.Collector
	shapes         []tallyShape
	filter         *rows.DuplicateFilter // of the counted rows
	oldest, newest uint64                // bounds of the starts of the counted rows

	candidateRows []int // rows of this step that may be duplicates of earlier rows
	cells         []rows.Cell
	assembler     rows.Assembler
	content       []byte
}

// tallyShape holds the properties of a shape for counting.
type tallyShape struct {
	series uint32 // 1 + id of its series; 0: unknown, or depends on the row
	state  uint32 // 1 + position of the tracestate; 0: there is none, or series is unknown
}

// Tally implements source.Tally. The first call takes some 100 ns per row.
func (s *snapshot) Tally(ctx context.Context, look func(c *stats.Collector, oldest, newest uint64)) (bool, error) {
	t := &s.table.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.collector == nil && !t.failed {
		t.collector, t.filter, t.oldest = stats.NewCollector(), rows.NewDuplicateFilter(s.table.options.MaxRows), ^uint64(0)
	}
	for t.rows < s.rows && !t.failed {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if !t.step(s, min(t.rows+tallyStep, s.rows)) {
			t.collector, t.filter, t.shapes, t.failed = nil, nil, nil, true
		}
	}
	if t.failed {
		return false, nil
	}
	look(t.collector, t.oldest, t.newest)
	return true, nil
}

// step counts the rows before end.
func (t *tally) step(s *snapshot, end int) bool {
	t.candidateRows = t.candidateRows[:0]
	var h rows.Head
	for row := t.rows; row < end; row++ {
		cells, err := rows.ReadHead(s.row(row), &h)
		if err != nil || int(h.Shape) >= len(s.tables.Shapes) {
			return false
		}
		if t.filter.Seen(t.filter.Hash(&h)) {
			t.candidateRows = append(t.candidateRows, row)
		} else if !t.count(s.tables, &h, cells) {
			return false
		}
		t.oldest, t.newest = min(t.oldest, h.Start), max(t.newest, h.Start)
	}
	if len(t.candidateRows) > 0 && !t.countCandidates(s) {
		return false
	}
	t.rows = end
	return t.collector.Dropped() == 0 && t.collector.Cells() <= maxTallyCells
}

// count counts a row.
func (t *tally) count(tables *rows.Tables, h *rows.Head, cells []byte) bool {
	if int(h.Shape) >= len(t.shapes) {
		t.shapes = append(t.shapes, make([]tallyShape, len(tables.Shapes)-len(t.shapes))...)
	}
	known := t.shapes[h.Shape]
	if known.series == 0 {
		shape := &tables.Shapes[h.Shape]
		if shape.Service == "" { // the shape was lost
			return false
		}
		name, ok := t.name(tables, shape, cells)
		if !ok {
			return false
		}
		span := otlpdata.Span{Name: name, Kind: shape.Kind}
		known.series = 1 + t.collector.SeriesID(stats.Series{Tenant: shape.Tenant, Service: shape.Service, Operation: span.Operation(),
			Kind: span.KindName(), Error: shape.Status == otlpdata.StatusError})
		known.state = uint32(1 + tables.TraceStateOf(shape))
		if !shape.NameInRow {
			t.shapes[h.Shape] = known
		}
	}
	t.collector.AddSpan(known.series-1, h.Start, h.Duration())
	return known.state == 0 || t.countUnsampled(tables, h, cells, known)
}

// countUnsampled counts the unsampled calls that a row with a tracestate stands for.
func (t *tally) countUnsampled(tables *rows.Tables, h *rows.Head, cells []byte, of tallyShape) bool {
	columns := tables.Shapes[h.Shape].Columns[:of.state]
	var err error
	if t.cells, _, err = tables.ReadFirstCells(cells, columns, t.cells[:0]); err != nil {
		return false
	}
	tracestate := tables.Text(columns[len(columns)-1], t.cells[len(columns)-1])
	if n := otlpdata.AdjustedCount(tracestate, h.TraceID, h.SpanID); n > 1 {
		t.collector.AddUnsampled(of.series-1, h.Start, h.Duration(), n-1)
	}
	return true
}

// name returns the name of a span.
func (t *tally) name(tables *rows.Tables, shape *rows.Shape, cells []byte) (_ string, ok bool) {
	if !shape.NameInRow {
		return shape.Name, true
	}
	var err error
	if t.cells, err = tables.ReadCells(cells, shape.Columns, t.cells[:0]); err != nil {
		return "", false
	}
	for i, column := range shape.Columns {
		if tables.Columns[column].Place == rows.Name {
			return tables.Text(column, t.cells[i]), true
		}
	}
	return "", true
}

// duplicateKey holds the properties that candidates for duplicates have in common.
type duplicateKey struct {
	tenantTrace
	id    otlpdata.SpanID
	start uint64
}

type tenantTrace struct {
	tenant string
	trace  otlpdata.TraceID
}

func (s *snapshot) duplicateKey(h *rows.Head) (duplicateKey, bool) {
	if int(h.Resource) >= len(s.tables.Resources) {
		return duplicateKey{}, false
	}
	return duplicateKey{tenantTrace{s.tables.Resources[h.Resource].Tenant, h.TraceID}, h.SpanID, h.Start}, true
}

// countCandidates counts the candidate rows that are not duplicates. It compares them with all
// earlier rows of their traces, which it visits once.
func (t *tally) countCandidates(s *snapshot) bool {
	keys, traces := make(map[duplicateKey]struct{}), make(map[tenantTrace]int) // last candidate of each trace
	var h rows.Head
	for _, row := range t.candidateRows {
		if _, err := rows.ReadHead(s.row(row), &h); err != nil {
			return false
		}
		key, ok := s.duplicateKey(&h)
		if !ok {
			return false
		}
		keys[key], traces[key.tenantTrace] = struct{}{}, row
	}
	for trace, last := range traces {
		if !t.countCandidatesOfTrace(s, trace, last, keys) {
			return false
		}
	}
	return true
}

// countCandidatesOfTrace counts the candidate rows of one trace.
func (t *tally) countCandidatesOfTrace(s *snapshot, trace tenantTrace, last int, keys map[duplicateKey]struct{}) bool {
	var all []int // rows with the key of a candidate, the latest first
	var h rows.Head
	for at := uint32(last) + 1; at > 0; {
		row := int(at - 1)
		at = s.blocks[row/s.size].prev[row%s.size]
		if _, err := rows.ReadHead(s.row(row), &h); err != nil {
			return false
		}
		key, ok := s.duplicateKey(&h)
		if _, is := keys[key]; ok && is && key.tenantTrace == trace {
			all = append(all, row)
		}
	}
	slices.Reverse(all)
	seen := make(map[[sha256.Size]byte]struct{}, len(all))
	for _, row := range all {
		cells, sum, ok := t.read(s, row, &h)
		if !ok {
			return false
		}
		_, again := seen[sum]
		seen[sum] = struct{}{}
		if _, held := slices.BinarySearch(t.candidateRows, row); held && !again && !t.count(s.tables, &h, cells) {
			return false
		}
	}
	return true
}

// read returns the cells of a row, and a hash of the content that duplicates have in common.
func (t *tally) read(s *snapshot, row int, h *rows.Head) (cells []byte, sum [sha256.Size]byte, ok bool) {
	cells, err := rows.ReadHead(s.row(row), h)
	if err == nil {
		t.cells, err = s.tables.ReadRow(s.row(row), h, t.cells[:0])
	}
	if err != nil {
		return nil, sum, false
	}
	span, err := t.assembler.Span(s.tables, h, t.cells)
	if err != nil {
		return nil, sum, false
	}
	resource, scope := &s.tables.Resources[h.Resource].Resource, &s.tables.Scopes[s.tables.Shapes[h.Shape].Scope]
	t.content = otlpdata.AppendResourceSpans(t.content[:0], resource, scope, otlpdata.AppendSpan(nil, span))
	return cells, sha256.Sum256(t.content), true
}
