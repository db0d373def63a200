package find

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// listedBefore reports whether an earlier page has listed a trace, because the trace also has a
// match before the cursor.
func (s *search) listedBefore(ctx context.Context, id otlpdata.TraceID) (bool, error) {
	if !s.query.After.Set {
		return false, nil
	}
	for src := range s.session.Sources {
		if found, err := s.listedInSource(ctx, src, id); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (s *search) listedInSource(ctx context.Context, src int, id otlpdata.TraceID) (found bool, _ error) {
	if rows, oldest, newest := s.session.Sources[src].Bounds(); rows == 0 || newest < s.query.After.Start || oldest > s.to {
		return false, nil // all rows of the source follow the cursor
	}
	err := s.session.Decode(ctx, func() error {
		return s.session.Sources[src].Trace(ctx, s.query.Tenant, id, func(b source.Block, list []int32) error {
			if found {
				return nil
			}
			p, err := s.plan(src) // only now, because most sources do not have the trace
			if err != nil || p == nil {
				return err
			}
			found, err = s.listedInBlock(ctx, p, b, list)
			return s.session.NoteDamage(src, scan.TracePart(id), len(list), err)
		})
	})
	if s.blocksLeft[src] == 0 {
		s.dropPlan(src) // see visit
	}
	return found, s.session.NoteDamage(src, scan.TracePart(id), 0, err)
}

func (s *search) listedInBlock(ctx context.Context, p *scan.Plan, b source.Block, list []int32) (bool, error) {
	p.EnterUnknownBlock()
	f := &s.examiner.filter
	f.SetBlock(ctx, p, b)
	one := make([]int32, 1)
	for _, row := range list {
		var h rows.Head
		if err := b.Head(int(row), &h); err != nil {
			return false, err
		}
		if h.Start > s.to || h.Start < s.from || (match{h.Start, h.TraceID}).isAfter(s.query.After) {
			continue
		}
		s.outcome.Scanned++
		pr := p.Program(h.Shape, scan.AnyDuration)
		if pr == nil {
			return false, scan.ErrReference
		}
		one[0] = row
		matched, err := f.Narrow(pr, one)
		if err != nil || len(matched) > 0 {
			return len(matched) > 0, err
		}
	}
	return false, nil
}
