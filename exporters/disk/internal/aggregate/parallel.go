package aggregate

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// minPartRows is the minimum number of rows in a part of a sample. Reading fewer rows takes less
// time than adding up the counts of parts.
const minPartRows = 1 << 16

// scanParts is like scan, but counts parts of at least partRows rows concurrently.
func (a *aggregation) scanParts(ctx context.Context, f *blockSample, to targets) error {
	all := countRows(f.blocks)
	n := min(a.session.Options.Decoders, all/a.partRows)
	parts := f.split(n, func(src, block int) bool {
		if !scan.IsDeduplicated(a.session.Sources[src]) {
			return false // it must be searched for duplicates as a whole
		}
		rows, _, _ := a.session.Sources[src].Bounds()
		// Counts of a whole segment are kept, so only large segments are divided.
		return a.counts == nil || block%a.rangeBlocks < f.blockStep && rows/f.blockStep > all/(2*n)
	})
	if len(parts) <= 1 {
		return a.scan(ctx, f, to)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error // in the order in which they occurred
	)
	count := func(one *aggregation, part *blockSample, to targets) {
		if err := one.scan(ctx, part, to); err != nil {
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
			stop()
		}
	}
	a.divideMemory(len(parts))
	forks := make([]*aggregation, 0, len(parts)-1)
	for _, part := range parts[1:] {
		fork := a.fork(ctx, a.query, to)
		fork.divideMemory(len(parts))
		forks = append(forks, fork)
		wg.Go(func() { count(fork, part, fork.targets) })
	}
	count(a, parts[0], to)
	wg.Wait()
	a.divideMemory(1)
	for _, fork := range forks {
		a.merge(fork)
	}
	return cause(errs)
}

// cause returns the first error that is more serious than a query running out of time or memory,
// because the result would hide it otherwise, or else the first error.
func cause(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	i := slices.IndexFunc(errs, func(err error) bool {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !tracestore.IsOutOfMemory(err)
	})
	return errs[max(i, 0)]
}

// divideMemory divides the memory limits of the counters among a number of parts.
func (a *aggregation) divideMemory(parts int) {
	if a.targets.facets != nil {
		a.targets.facets.counter.DivideMemory(parts)
	}
	if a.targets.groups != nil {
		a.targets.groups.counter.DivideMemory(parts)
	}
}

// split divides the blocks into at most n parts with about the same number of rows. Blocks of one
// source stay together unless it is divisible before a block.
func (f *blockSample) split(n int, divisible func(src, block int) bool) (parts []*blockSample) {
	rows, first, all := 0, 0, countRows(f.blocks)
	for i := range f.blocks {
		rows += f.blocks[i].info.Rows
		last := i+1 == len(f.blocks)
		enough := n > 1 && rows >= all/n*(len(parts)+1) && len(parts)+1 < n
		if !last && (!enough || f.blocks[i+1].src == f.blocks[i].src && !divisible(f.blocks[i].src, f.blocks[i+1].block)) {
			continue
		}
		part := *f
		part.blocks = f.blocks[first : i+1]
		parts, first = append(parts, &part), i+1
	}
	return parts
}

// fork returns an aggregation with counters of its own for some targets. q is the query, perhaps
// with a shorter window.
func (a *aggregation) fork(ctx context.Context, q tracestore.Query, to targets) *aggregation {
	f := newAggregation(q, a.want)
	f.window, f.session, f.counts, f.rangeBlocks = a.window, a.session.Fork(ctx), a.counts, a.rangeBlocks
	if to.heat == nil {
		f.targets.heat = nil
	}
	f.chargeMemory()
	return f
}

// merge adds the counts of a fork and releases its memory.
func (a *aggregation) merge(f *aggregation) {
	defer f.session.Memory.Release()
	a.scanned += f.scanned
	a.rowsRead += f.rowsRead
	mine, other := &a.targets, &f.targets
	if other.rest != nil {
		mine.rest.merge(other.rest)
	}
	if other.heat != nil {
		mine.heat.total.merge(&other.heat.total)
		mine.heat.counter.Merge(other.heat.counter)
	}
	if other.facets != nil {
		mine.facets.total.merge(&other.facets.total)
		mine.facets.counter.Merge(other.facets.counter)
	}
	if other.groups != nil {
		mine.groups.total.merge(&other.groups.total)
		mine.groups.counter.Merge(other.groups.counter)
	}
	if other.picks != nil {
		mine.picks.Merge(other.picks)
	}
}

// merge adds the spans of another total.
func (t *total) merge(o *total) {
	t.spans += o.spans
	t.errors += o.errors
	t.spread.merge(o.spread)
}
