package aggregate

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// exemplarBlocks is the number of blocks that are searched for exemplars if they are also read for
// something else, not counting blocks without matches. Decoding ids costs as much as decoding times
// and shapes together.
const exemplarBlocks = 24

// shouldPick reports whether to pick exemplars from a block of the sample. Blocks with exemplars
// are spread over all blocks with matches.
func (s *rowScan) shouldPick(at int) bool {
	if !s.everywhere && s.agg.pickedBlocks > exemplarBlocks*at/len(s.sample.blocks) {
		return false
	}
	s.agg.pickedBlocks++
	return true
}

// pick offers matching rows as exemplars.
func (s *rowScan) pick() error {
	const enough = 2 // candidates for each exemplar
	step := max(1, len(s.matched)/(enough*s.agg.want.Exemplars))
	t := s.filter.Plan.Tables
	for i := 0; i < len(s.matched); i += step {
		row, h := int(s.matched[i]), &s.head
		if err := s.filter.Block.Head(row, h); err != nil {
			return err
		}
		if !s.to.picks.Wants(h.Start, h.Duration(), h.TraceID, h.SpanID) {
			continue
		}
		shape := &t.Shapes[h.Shape]
		name := otlpdata.Span{Name: shape.Name}
		if shape.NameInRow {
			var err error
			if name.Name, err = scan.SpanName(t, shape, s.filter.Block, row); err != nil {
				return err
			}
		}
		s.to.picks.Offer(tracestore.Exemplar{TraceID: h.TraceID, SpanID: h.SpanID, Start: h.Start, Duration: h.Duration(),
			Service: shape.Service, Name: name.Operation(), Failed: shape.Status == otlpdata.StatusError})
	}
	return nil
}

// pickWithoutScan picks exemplars if no rows are read otherwise: from a few blocks, spread over the
// window, that have matching spans.
func (a *aggregation) pickWithoutScan(ctx context.Context) error {
	if a.targets.picks == nil || a.targets.heat.total.spans == 0 {
		return nil
	}
	f, err := a.blocksIn(a.matchWindows)
	if err != nil {
		return err
	}
	read, opened := 0, 0
	for _, at := range scattered(len(f.blocks)) {
		s, err := a.rowScan(f, f.blocks[at].src, targets{picks: a.targets.picks})
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		s.everywhere = true
		before := a.scanned
		if err := s.block(ctx, at); err != nil {
			return err
		}
		if a.scanned > before {
			read += f.blocks[at].info.Rows
			opened++
		}
		budget := a.query.Budget.Spans
		spent := budget > 0 && read >= budget && (a.pickedBlocks > 0 || opened >= exemplarBlocks)
		if a.pickedBlocks >= exemplarBlocks || spent {
			break
		}
	}
	return nil
}

// scattered returns the numbers below n in an order in which every prefix is spread over the whole
// range.
func scattered(n int) []int {
	const golden = 0.6180339887498949
	step := max(1, int(float64(n)*golden))
	for step > 1 && gcd(step, n) > 1 {
		step--
	}
	out := make([]int, n)
	for i, at := 0, n/2; i < n; i++ {
		out[i] = at
		at = (at + step) % n
	}
	return out
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
