package search

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// listed reports whether a trace was a result before the cursor: whether it matches there, too.
func (s *search) listed(ctx context.Context, id otlpdata.TraceID) (bool, error) {
	if !s.query.After.Set {
		return false, nil
	}
	for src := range s.sources {
		if found, err := s.listedBy(ctx, src, id); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (s *search) listedBy(ctx context.Context, src int, id otlpdata.TraceID) (found bool, _ error) {
	if rows, oldest, newest := s.sources[src].Bounds(); rows == 0 || newest < s.query.After.Start || oldest > s.to {
		return false, nil // all that is here is behind the cursor
	}
	err := s.decode(ctx, func() error {
		return s.sources[src].Trace(ctx, s.query.Tenant, id, func(b source.Block, list []int32) error {
			if found {
				return nil
			}
			p, err := s.plan(src) // only now: most sources do not have the trace
			if err != nil || p == nil {
				return err
			}
			found, err = s.listedIn(ctx, p, b, list)
			return s.damage.note(p.source, partOfTrace(id), len(list), err)
		})
	})
	if s.left[src] == 0 {
		s.plans[src] = nil // see visit
	}
	return found, s.damage.note(s.sources[src], partOfTrace(id), 0, err)
}

func partOfTrace(id otlpdata.TraceID) string { return "trace " + id.String() }

func (s *search) listedIn(ctx context.Context, p *plan, b source.Block, list []int32) (bool, error) {
	p.enterAny()
	f := &s.examiner.filter
	f.use(ctx, p, b)
	one := make([]int32, 1)
	for _, row := range list {
		var h rows.Head
		if err := b.Head(int(row), &h); err != nil {
			return false, err
		}
		if h.Start > s.to || h.Start < s.from || (match{h.Start, h.TraceID}).behind(s.query.After) {
			continue
		}
		s.outcome.Scanned++
		pr := p.program(h.Shape, anyLength)
		if pr == nil {
			return false, errReference
		}
		one[0] = row
		matched, err := f.narrow(&pr.root, one)
		if err != nil || len(matched) > 0 {
			return len(matched) > 0, err
		}
	}
	return false, nil
}
