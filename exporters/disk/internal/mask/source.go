package mask

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Source shows the rows of another source that no rule hides. The other one must not change. Safe for concurrent use.
type Source struct {
	src   source.Source
	rules []*Rule // all of them
	fresh []*Rule // those that base knows nothing of

	surveying sync.Mutex // held while the source is surveyed
	base      *survey    // guarded by surveying; nil: nothing is known
	done      atomic.Pointer[survey]
	filters   atomic.Pointer[filters]
	tables    atomic.Pointer[weak.Pointer[cutTables]]
	blocks    sync.Pool // of *block
}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Catalog = (*Source)(nil)
)

// New hides what rules hide in src. What an earlier mask of the same source has found out is used, and its rules hold on; nil: there was none.
func New(src source.Source, rules []*Rule, before *Source) *Source {
	s := &Source{src: src, rules: rules, fresh: rules}
	s.blocks.New = func() any { return new(block) }
	if before == nil {
		return s
	}
	if v := before.done.Load(); v != nil && v.complete() {
		s.base = v
		s.rules = slices.Concat(v.rules, rules)
		return s
	}
	s.rules = slices.Concat(before.rules, rules)
	s.fresh = s.rules
	return s
}

// Survey finds out what is hidden, unless that is known. Other methods do so when they need it. After an error nothing is lost but time.
func (s *Source) Survey(ctx context.Context) error {
	_, err := s.survey(ctx)
	return err
}

func (s *Source) survey(ctx context.Context) (*survey, error) {
	if v := s.done.Load(); v != nil {
		return v, nil
	}
	s.surveying.Lock()
	defer s.surveying.Unlock()
	if v := s.done.Load(); v != nil {
		return v, nil
	}
	v, err := newSurvey(ctx, s.src, s.fresh, s.base)
	if err != nil {
		return nil, err
	}
	s.done.Store(v)
	s.base = nil
	return v, nil
}

// Hidden returns how many rows are hidden. It is not known before a survey, nor while a block cannot be read.
func (s *Source) Hidden() (rows int, known bool) {
	v := s.done.Load()
	if v == nil || !v.complete() {
		return 0, false
	}
	return v.hidden, true
}

// HiddenBy returns how many rows are hidden by the rule of a mark and by none before it, as far as that is known.
func (s *Source) HiddenBy(number uint64) int {
	if v := s.done.Load(); v != nil {
		return v.by[number]
	}
	return 0
}

// Idle reports that it is known that the rules that came with this mask hide nothing more than the earlier mask did.
func (s *Source) Idle() bool {
	if _, known := s.Hidden(); !known {
		return false
	}
	return !slices.ContainsFunc(s.fresh, func(r *Rule) bool { return s.HiddenBy(r.Number) > 0 })
}

// Oldest returns when the oldest mark that hides something was made, as far as that is known.
func (s *Source) Oldest() (oldest time.Time) {
	for i, r := range s.Rules() {
		if i == 0 || r.Made.Before(oldest) {
			oldest = r.Made
		}
	}
	return oldest
}

// Rules returns the rules that hide something, or may do so. The list must not be changed.
func (s *Source) Rules() []*Rule {
	if v := s.done.Load(); v != nil && v.complete() {
		return v.rules
	}
	return s.rules
}

// Name returns the name of the source.
func (s *Source) Name() string { return s.src.Name() }

// Bounds returns the bounds of the source, hidden rows included. They count as rows until they are known.
func (s *Source) Bounds() (rows int, minStart, maxStart uint64) {
	rows, minStart, maxStart = s.src.Bounds()
	if v := s.done.Load(); v != nil {
		rows -= v.hidden
	}
	return rows, minStart, maxStart
}

// Blocks describes the blocks: their rows without those that are hidden, everything else with them.
func (s *Source) Blocks() ([]source.BlockInfo, error) {
	v, err := s.survey(context.Background())
	if err != nil {
		return nil, err
	}
	infos, err := s.src.Blocks()
	if err != nil || v.hidden == 0 {
		return infos, err
	}
	left := slices.Clone(infos)
	for i, b := range v.blocks {
		left[i].Rows -= b.n
	}
	return left, nil
}

// Open opens a block without its hidden rows.
func (s *Source) Open(ctx context.Context, number int) (source.Block, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return nil, err
	}
	m := v.blocks[number]
	if m == nil {
		return s.src.Open(ctx, number)
	}
	if m.unread {
		if m, err = v.again(ctx, s.src, number); err != nil {
			return nil, err
		}
	}
	below, err := s.src.Open(ctx, number)
	if err != nil {
		return nil, err
	}
	b := s.blocks.Get().(*block)
	b.open(s, below, m)
	return b, nil
}

// BlockShapes, HoldsIntegers and MayHold tell what the source tells: a filter that knows hidden rows as well errs on the safe side.

// BlockShapes appends the shapes of a block, of hidden rows as well.
func (s *Source) BlockShapes(dst []source.BlockShape, block int) (shapes []source.BlockShape, known bool) {
	return s.src.BlockShapes(dst, block)
}

// HoldsIntegers reports whether MayHold may also be asked about integers.
func (s *Source) HoldsIntegers() bool { return s.src.HoldsIntegers() }

// MayHold reports whether a row of a block may have an attribute.
func (s *Source) MayHold(block int, key, text string) bool { return s.src.MayHold(block, key, text) }

// Constant returns what all rows of a shape have in common.
func (s *Source) Constant(shape uint32, position int) (rows.Cell, bool) {
	return s.src.Constant(shape, position)
}

// Words knows nothing: the dictionary of the source may have words that only hidden rows have.
func (s *Source) Words(uint32) (words []string, complete bool) { return nil, false }

// Distinct reports whether the source is known to hold no duplicates.
func (s *Source) Distinct() bool {
	_, counted := s.src.(source.Statistics)
	return counted
}
