package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Warm finds out ahead of queries for calls what they would have to find out themselves: where the parents are of spans whose own segment
// does not have them. It does so for the tenants that were asked about before, the one that was asked about longest ago first, and for the
// one without a name where none was.
//
// It works on one segment after the other, of those that there are then, and calls pace after each, holding nothing, with the time that it
// has worked. A query that needs what it is working on waits for it; one that has waited for maxPatience makes it give up that segment.
// Damage is not reported: queries do that. An error is that of pace or ctx.
func (e *Builder) Warm(ctx context.Context, pace func(worked time.Duration) error) error {
	tenants, err := e.caches.tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		done := make(map[source.Source]bool)
		for more := true; more; {
			began := time.Now()
			if more, err = e.warmNext(ctx, tenant, done); err == nil && more {
				err = pace(time.Since(began))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tenants returns whom ledgers are of, the one that was used longest ago first.
func (a *edgeCaches) tenants(ctx context.Context) ([]string, error) {
	if err := a.acquire(ctx); err != nil {
		return nil, err
	}
	defer a.release()
	if len(a.byTenant) == 0 {
		return []string{""}, nil
	}
	names := make([]string, 0, len(a.byTenant))
	for name := range a.byTenant {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(a.byTenant[x].used, a.byTenant[y].used) })
	return names, nil
}

// warmNext brings the book of a segment up to date, the next that is not done, and reports whether there was one.
func (e *Builder) warmNext(ctx context.Context, tenant string, done map[source.Source]bool) (more bool, _ error) {
	all := &e.caches
	if err := all.acquire(ctx); err != nil {
		return false, err
	}
	defer all.release()
	mine, giveUp := context.WithCancel(ctx)
	defer giveUp()
	all.cancelWarm.Store(&giveUp)
	defer all.cancelWarm.Store(nil)

	s := e.store.Begin()
	defer s.Release()
	s.IgnoreDamage()
	c := &callReader{session: s, caches: all, tenant: tenant, to: math.MaxUint64}
	l := c.cache()
	defer all.trim(s.Options.Memory)
	for src, of := range c.session.Sources {
		sh, ok := c.shareOf(src)
		if b := l.entries[of]; !ok || !sh.split.HasMinutes || done[of] || b != nil && b.searchedUpTo == l.last {
			continue
		}
		done[of] = true
		if err := c.updateCache(mine, l, []sourceShare{sh}); err != nil && mine.Err() == nil {
			return false, err
		}
		return true, ctx.Err()
	}
	return false, nil
}

// maxPatience is how long a query waits for Warm: longer than that takes for a segment, usually.
const maxWarmWait = 100 * time.Millisecond

// acquire waits for the lock.
func (a *edgeCaches) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case a.lock <- struct{}{}:
		return nil
	default:
	}
	patience := time.NewTimer(maxWarmWait)
	defer patience.Stop()
	for {
		select {
		case a.lock <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			if giveUp := a.cancelWarm.Load(); giveUp != nil {
				(*giveUp)()
			}
		}
	}
}

func (a *edgeCaches) release() { <-a.lock }
