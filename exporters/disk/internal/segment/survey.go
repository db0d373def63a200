package segment

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// survey is the first pass over the rows: what they share, and their order.
type survey struct {
	in      Input
	planner *planner
	order   *order
	info    Info
}

func newSurvey(in Input) *survey {
	return &survey{in: in, planner: newPlanner(in.Tables), order: newOrder(in.Tables, in.Rows)}
}

func (s *survey) run() {
	var h rows.Head
	var cells []rows.Cell
	for i := range s.in.Rows {
		row := s.in.Row(i)
		s.info.RowBytes += int64(len(row))
		var err error
		if cells, err = s.in.Tables.ReadRow(row, &h, cells[:0]); err != nil || len(row) > maxRowBytes || len(cells) > maxRowCells {
			s.info.Unreadable++
			s.order.skip()
			continue
		}
		s.planner.add(&h, cells)
		s.order.add(&h, len(row), len(cells))
	}
	s.planner.finish()
	s.order.sort()
	d := newDuplicates(s.in)
	for i := range s.order.traces {
		s.info.Duplicates += d.drop(s.order, &s.order.traces[i])
	}
	s.info.Rows = len(s.order.rows) - s.info.Duplicates
	s.info.Traces = len(s.order.traces)
}
