package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Warm fills the edge caches ahead of queries: it searches for the parents of spans whose own
// segment does not have the parent. It does so for the tenants that were queried before, the least
// recently queried first, or for the tenant "" if there are none.
//
// Warm works on one existing segment after the other. After each, it releases everything and calls
// pace with its working time. A query waits while Warm works on a segment; after maxWarmWait, it
// makes Warm abandon the segment. Warm does not report damage, because queries do. It returns the
// errors of pace and ctx.
func (b *Builder) Warm(ctx context.Context, pace func(worked time.Duration) error) error {
	tenants, err := b.caches.tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		done := make(map[source.Source]bool)
		for more := true; more; {
			began := time.Now()
			if more, err = b.warmNext(ctx, tenant, done); err == nil && more {
				err = pace(time.Since(began))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tenants returns the tenants with a cache, the least recently used first.
func (c *edgeCaches) tenants(ctx context.Context) ([]string, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.release()
	if len(c.byTenant) == 0 {
		return []string{""}, nil
	}
	names := make([]string, 0, len(c.byTenant))
	for name := range c.byTenant {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(c.byTenant[x].used, c.byTenant[y].used) })
	return names, nil
}

// warmNext updates the entry of the next segment that is not in done, and reports whether there was
// one.
func (b *Builder) warmNext(ctx context.Context, tenant string, done map[source.Source]bool) (more bool, _ error) {
	all := &b.caches
	if err := all.acquire(ctx); err != nil {
		return false, err
	}
	defer all.release()
	warmCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.cancelWarm.Store(&cancel)
	defer all.cancelWarm.Store(nil)

	s := b.store.Begin()
	defer s.Release()
	s.IgnoreDamage()
	c := &callReader{session: s, caches: all, tenant: tenant, to: math.MaxUint64}
	cache := c.cache()
	defer all.trim(s.Options.Memory)
	for src, of := range c.session.Sources {
		sh, ok := c.shareOf(src)
		if entry := cache.entries[of]; !ok || !sh.split.HasMinutes || done[of] || entry != nil && entry.searchedUpTo == cache.last {
			continue
		}
		done[of] = true
		if err := c.updateCache(warmCtx, cache, []sourceShare{sh}); err != nil && warmCtx.Err() == nil {
			return false, err
		}
		return true, ctx.Err()
	}
	return false, nil
}

// maxWarmWait is the maximum time that a query waits for Warm. Usually Warm needs less for a
// segment.
const maxWarmWait = 100 * time.Millisecond

// acquire waits for the lock.
func (c *edgeCaches) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.lock <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(maxWarmWait)
	defer timer.Stop()
	for {
		select {
		case c.lock <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if cancel := c.cancelWarm.Load(); cancel != nil {
				(*cancel)()
			}
		}
	}
}

func (c *edgeCaches) release() { <-c.lock }
