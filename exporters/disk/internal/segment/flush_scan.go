package segment

import (
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// flushScan is the first pass over the rows of an Input. It determines what they have in common,
// and their order.
type flushScan struct {
	in       Input
	analyzer *analyzer
	order    *traceOrder
	info     Info
	lossy    bool // some rows may refer to lost definitions
	scratch  []rows.Cell
}

func newFlushScan(in Input) *flushScan {
	return &flushScan{in: in, analyzer: newAnalyzer(in.Tables), order: newTraceOrder(in.Tables, in.Rows), lossy: in.Tables.Lost() > 0}
}

// batchRows is the number of rows that are processed together: each operation is done for all of
// them before the next operation, so that their cache misses overlap.
const batchRows = 64

// scannedRow is a row of the current batch.
type scannedRow struct {
	head         rows.Head
	row          int
	bytes, cells int
}

func (s *flushScan) run() {
	var scannedRows [batchRows]scannedRow
	for from := 0; from < s.in.Rows; from += batchRows {
		n := 0
		for i := from; i < min(from+batchRows, s.in.Rows); i++ {
			e := &scannedRows[n]
			if e.row = i; s.read(e) {
				n++
			} else {
				s.info.Unreadable++
				s.order.traceOf[i] = noTrace
			}
		}
		for i := range scannedRows[:n] {
			e := &scannedRows[i]
			s.order.traceOf[e.row] = s.order.add(&e.head, e.bytes, e.cells)
		}
	}
	s.analyzer.finish()
	s.order.sort()
}

// read decodes and analyzes a row. It returns false if the row is unreadable.
func (s *flushScan) read(e *scannedRow) bool {
	t, row := s.in.Tables, s.in.Row(e.row)
	s.info.RowBytes += int64(len(row))
	cells, err := rows.ReadHead(row, &e.head)
	if err != nil || int(e.head.Shape) >= len(t.Shapes) || int(e.head.Resource) >= len(t.Resources) ||
		len(row) > maxRowBytes || len(t.Shapes[e.head.Shape].Columns) > maxRowCells {
		return false
	}
	if s.lossy {
		if s.scratch, err = t.ReadRow(row, &e.head, s.scratch[:0]); err != nil {
			return false
		}
	}
	var ok bool
	e.bytes = len(row)
	e.cells, ok = s.analyzer.add(&e.head, cells)
	return ok
}

// traceOrder collects the rows of each trace, and sorts the traces into the order of the segment.
type traceOrder struct {
	traceTable
	traceOf []uint32 // by row of the input: its trace, or noTrace if the row is left out
	rows    []uint32 // grouped by trace, in the order of arrival
}

const noTrace = math.MaxUint32

func newTraceOrder(t *rows.Tables, n int) *traceOrder {
	return &traceOrder{traceTable: newTraceTable(t), traceOf: make([]uint32, n)}
}

// sort sorts the traces and groups the rows.
func (o *traceOrder) sort() {
	byStart := o.byStart()
	from := uint32(0)
	for _, i := range byStart {
		o.list[i].from, from = from, from+o.list[i].rows
	}
	o.rows = make([]uint32, from)
	for row, i := range o.traceOf {
		if i == noTrace {
			continue
		}
		o.rows[o.list[i].from] = uint32(row)
		o.list[i].from++
	}
	o.traceOf = nil
	arrange(o.list, byStart)
	for i := range o.list {
		o.list[i].from -= o.list[i].rows
	}
}

func (o *traceOrder) rowsOf(t *trace) []uint32 { return o.rows[t.from : t.from+t.rows] }
