package segment

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// survey is the first pass over the rows of an Input: what they share, and their order.
type survey struct {
	in      Input
	planner *planner
	order   *order
	info    Info
	lossy   bool // some rows may refer to definitions that were lost
	scratch []rows.Cell
}

func newSurvey(in Input) *survey {
	return &survey{in: in, planner: newPlanner(in.Tables), order: newOrder(in.Tables, in.Rows), lossy: in.Tables.Lost() > 0}
}

// together is how many rows are looked at before the next step is done with them: memory that a step does not find in the cache is then
// fetched for several rows at a time.
const together = 64

// entrant is a row that the survey looks at.
type entrant struct {
	head         rows.Head
	row          int
	bytes, cells int
}

func (s *survey) run() {
	var entrants [together]entrant
	for from := 0; from < s.in.Rows; from += together {
		n := 0
		for i := from; i < min(from+together, s.in.Rows); i++ {
			e := &entrants[n]
			if e.row = i; s.read(e) {
				n++
			} else {
				s.info.Unreadable++
				s.order.traceOf[i] = noTrace
			}
		}
		for i := range entrants[:n] {
			e := &entrants[i]
			s.order.traceOf[e.row] = s.order.add(&e.head, e.bytes, e.cells)
		}
	}
	s.planner.finish()
	s.order.sort()
}

// read reads a row, and reports whether it can be read.
func (s *survey) read(e *entrant) bool {
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
	e.cells, ok = s.planner.add(&e.head, cells)
	return ok
}
