package tombstone

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

// Filter is a source that shows the rows of an inner source that no rule hides. The inner source
// must not change. Safe for concurrent use.
type Filter struct {
	inner source.Source
	rules []*Rule
	fresh []*Rule // the rules that are not applied in base

	evaluating   sync.Mutex  // held during an evaluation
	base         *evaluation // guarded by evaluating; nil: no earlier result
	result       atomic.Pointer[evaluation]
	traceFilters atomic.Pointer[traceFilters]
	tables       atomic.Pointer[weak.Pointer[visibleTables]]
}

var (
	_ source.Source  = (*Filter)(nil)
	_ source.Catalog = (*Filter)(nil)
)

// NewFilter returns a filter that hides the rows of src that rules match. If previous is not nil,
// it is an earlier filter of the same source: the new filter also applies its rules and reuses its
// result.
func NewFilter(src source.Source, rules []*Rule, previous *Filter) *Filter {
	f := &Filter{inner: src, rules: rules, fresh: rules}
	if previous == nil {
		return f
	}
	if e := previous.result.Load(); e != nil && e.complete() {
		f.base = e
		f.rules = slices.Concat(e.rules, rules)
		return f
	}
	f.rules = slices.Concat(previous.rules, rules)
	f.fresh = f.rules
	return f
}

// Evaluate finds out which rows are hidden, unless that is already known. Other methods call it
// when they need the result. It can be repeated after an error.
func (f *Filter) Evaluate(ctx context.Context) error {
	_, err := f.evaluate(ctx)
	return err
}

func (f *Filter) evaluate(ctx context.Context) (*evaluation, error) {
	if e := f.result.Load(); e != nil {
		return e, nil
	}
	f.evaluating.Lock()
	defer f.evaluating.Unlock()
	if e := f.result.Load(); e != nil {
		return e, nil
	}
	e, err := evaluate(ctx, f.inner, f.fresh, f.base)
	if err != nil {
		return nil, err
	}
	f.result.Store(e)
	f.base = nil
	return e, nil
}

// Hidden returns the number of hidden rows. It is not known before Evaluate, nor if some block was
// unreadable.
func (f *Filter) Hidden() (rows int, known bool) {
	e := f.result.Load()
	if e == nil || !e.complete() {
		return 0, false
	}
	return e.hidden, true
}

// HiddenBy returns the number of rows that the given tombstone hides and no earlier one does, as
// far as known.
func (f *Filter) HiddenBy(number uint64) int {
	if e := f.result.Load(); e != nil {
		return e.hiddenBy[number]
	}
	return 0
}

// Redundant reports whether the rules added by this filter are known to hide nothing that the
// previous filter did not hide.
func (f *Filter) Redundant() bool {
	if _, known := f.Hidden(); !known {
		return false
	}
	return !slices.ContainsFunc(f.fresh, func(r *Rule) bool { return f.HiddenBy(r.Number) > 0 })
}

// OldestDeletion returns the time of the oldest tombstone that hides rows, or that may hide rows as
// long as this is not known.
func (f *Filter) OldestDeletion() (oldest time.Time) {
	for i, r := range f.Rules() {
		if i == 0 || r.Made.Before(oldest) {
			oldest = r.Made
		}
	}
	return oldest
}

// Rules returns the rules that hide rows, or may hide rows. The list must not be changed.
func (f *Filter) Rules() []*Rule {
	if e := f.result.Load(); e != nil && e.complete() {
		return e.rules
	}
	return f.rules
}

// Name returns the name of the inner source.
func (f *Filter) Name() string { return f.inner.Name() }

// Bounds returns the time bounds of the inner source, including hidden rows. The number of rows
// includes hidden ones until Evaluate is done.
func (f *Filter) Bounds() (rows int, minStart, maxStart uint64) {
	rows, minStart, maxStart = f.inner.Bounds()
	if e := f.result.Load(); e != nil {
		rows -= e.hidden
	}
	return rows, minStart, maxStart
}

// Blocks describes the blocks. The numbers of rows exclude hidden rows; the time bounds include
// them.
func (f *Filter) Blocks() ([]source.BlockInfo, error) {
	e, err := f.evaluate(context.Background())
	if err != nil {
		return nil, err
	}
	infos, err := f.inner.Blocks()
	if err != nil || e.hidden == 0 {
		return infos, err
	}
	visible := slices.Clone(infos)
	for i, b := range e.blocks {
		visible[i].Rows -= b.count
	}
	return visible, nil
}

// Open opens a block without its hidden rows.
func (f *Filter) Open(ctx context.Context, number int) (source.Block, error) {
	e, err := f.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	hidden := e.blocks[number]
	if hidden == nil {
		return f.inner.Open(ctx, number)
	}
	if hidden.unread {
		if hidden, err = e.retryBlock(ctx, f.inner, number); err != nil {
			return nil, err
		}
	}
	inner, err := f.inner.Open(ctx, number)
	if err != nil {
		return nil, err
	}
	b := closedBlocks.Get().(*block)
	b.open(inner, hidden)
	return b, nil
}

// The hints of the inner source also cover hidden rows: a hint may select too much but never too
// little.

// BlockShapes appends the shapes of a block, including shapes of hidden rows.
func (f *Filter) BlockShapes(dst []source.BlockShape, block int) (shapes []source.BlockShape, known bool) {
	return f.inner.BlockShapes(dst, block)
}

// MayHaveService implements source.Services.
func (f *Filter) MayHaveService(tenant, service string) bool {
	s, ok := f.inner.(source.Services)
	return !ok || s.MayHaveService(tenant, service)
}

// HoldsIntegers implements source.Hints.
func (f *Filter) HoldsIntegers() bool { return f.inner.HoldsIntegers() }

// HoldsElements implements source.Hints.
func (f *Filter) HoldsElements() bool { return f.inner.HoldsElements() }

// MayHold implements source.Hints.
func (f *Filter) MayHold(block int, key, text string) bool { return f.inner.MayHold(block, key, text) }

// Constant implements source.Hints.
func (f *Filter) Constant(shape uint32, position int) (rows.Cell, bool) {
	return f.inner.Constant(shape, position)
}

// Words returns nothing: the dictionary of the inner source may have words that only hidden rows
// use.
func (f *Filter) Words(uint32) (words []string, complete bool) { return nil, false }

// Clusters implements source.Clustered. It returns the blocks of the inner source: some may have
// only hidden rows of a trace.
func (f *Filter) Clusters() source.Clusters { return source.ClustersOf(f.inner) }
