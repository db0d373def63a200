package aggregate

import "math"

// spread describes how the counted spans are spread over the blocks of a sample: sums over the
// blocks, for the error of an estimate. Spans of a trace lie in one block, and similar traces in
// few, so a rare condition holds for many spans of some blocks and for none of the others.
type spread struct {
	blocks     float64
	rows       float64
	spans      float64
	rowsRows   float64 // sums of products
	spansRows  float64
	spansSpans float64
}

// add adds a block in which the given number of spans was counted, out of the given number of rows.
func (s *spread) add(spans, rows int) {
	c, r := float64(spans), float64(rows)
	s.blocks++
	s.rows += r
	s.spans += c
	s.rowsRows += r * r
	s.spansRows += c * r
	s.spansSpans += c * c
}

// scale multiplies the number of blocks without counted spans.
func (s *spread) scale(factor float64) {
	s.blocks *= factor
	s.rows *= factor
	s.rowsRows *= factor
}

func (s *spread) merge(o spread) {
	s.blocks += o.blocks
	s.rows += o.rows
	s.spans += o.spans
	s.rowsRows += o.rowsRows
	s.spansRows += o.spansRows
	s.spansSpans += o.spansSpans
}

// With fewer than fewBlocks blocks, their differences say little about other blocks.
const fewBlocks = 8

// relativeError returns the relative standard error of the number of counted spans / share, at most
// 1. It is the error of a ratio, spans per row, estimated from whole blocks. Because a few blocks
// may be alike by chance, the error for few blocks is at least the error of a sample that contains
// each block with the probability share.
func (s *spread) relativeError(share float64) float64 {
	switch {
	case share >= 1 || s.spans > 0 && s.spans == s.rows:
		return 0
	case s.spans == 0:
		return 1
	}
	var squares float64
	if s.blocks > 1 {
		ratio := s.spans / s.rows
		squares = (s.spansSpans - 2*ratio*s.spansRows + ratio*ratio*s.rowsRows) * s.blocks / (s.blocks - 1)
	}
	if s.blocks < fewBlocks {
		squares = max(squares, s.spansSpans)
	}
	return min(math.Sqrt((1-share)*max(squares, 0))/s.spans, 1)
}
