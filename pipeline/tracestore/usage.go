package tracestore

import (
	"context"
	"math"
	"time"
)

// UsageReporter is implemented by stores that can report how much they hold.
type UsageReporter interface {
	// Usage returns what the store holds for all tenants together. Callers must not show it to
	// single tenants. The tenant is the one on whose behalf the caller asks.
	Usage(ctx context.Context, tenant string) (Usage, error)
}

// Usage describes what a store holds.
type Usage struct {
	// Oldest is the approximate time when the oldest stored span arrived, which may be long after
	// the span started. It is zero if nothing is stored.
	Oldest time.Time
	// OldestStart and NewestStart are the approximate starts of the oldest and the newest stored
	// span, in nanoseconds since the Unix epoch. Clients set them: they may be long before the
	// arrival or in the future. 0 means unknown or that nothing is stored.
	OldestStart, NewestStart uint64
	// Bytes is the last measured size of the store on disk or, if it has no files, in memory.
	Bytes int64
	// MaxBytes and Retention are the limits above which the oldest spans are deleted. 0 means no
	// limit.
	MaxBytes  int64
	Retention time.Duration
	// Reasons says why the numbers are incomplete, for example because one of several stores cannot
	// be reached.
	Reasons
}

// OldestTime returns OldestStart as a time, which is zero if it is unknown.
func (u *Usage) OldestTime() time.Time {
	if u.OldestStart == 0 || u.OldestStart > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(u.OldestStart)).UTC()
}

// AddStarts includes other spans. oldest and newest are the starts of the first and the last of
// them; newest is 0 if there are none.
func (u *Usage) AddStarts(oldest, newest uint64) {
	if newest == 0 {
		return
	}
	if u.NewestStart == 0 || oldest < u.OldestStart {
		u.OldestStart = oldest
	}
	u.NewestStart = max(u.NewestStart, newest)
}
