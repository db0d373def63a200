package tracestore

import (
	"context"
	"math"
	"time"
)

// UsageReporter is implemented by stores that know how much they hold.
type UsageReporter interface {
	// Usage returns what the store holds for all tenants together. Callers must not show it to
	// single tenants. The tenant is the one on whose behalf the caller asks.
	Usage(ctx context.Context, tenant string) (Usage, error)
}

// Usage describes what a store holds.
type Usage struct {
	// Oldest is about the time when the oldest stored span arrived, which may be long after the
	// span started. It is zero if nothing is stored.
	Oldest time.Time
	// OldestStart and NewestStart are about the starts of the oldest and the newest stored span, in
	// nanoseconds since the Unix epoch. They are as clients said: long before the arrival, if spans
	// were sent later, or in the future. 0 is unknown, or nothing is stored.
	OldestStart, NewestStart uint64
	// Bytes is what the store takes on disk or, if it has no files, in memory, as last measured.
	Bytes int64
	// MaxBytes and Retention are the limits above which the oldest spans are deleted. 0 is no
	// limit.
	MaxBytes  int64
	Retention time.Duration
	// Reasons says why not everything is counted, for example because a store of several cannot be
	// reached.
	Reasons
}

// OldestTime returns OldestStart as a time, which is zero if it is unknown.
func (u *Usage) OldestTime() time.Time {
	if u.OldestStart == 0 || u.OldestStart > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(u.OldestStart)).UTC()
}

// AddStarts includes other spans. oldest and newest are the starts of the first and the last one;
// newest is 0 without other spans.
func (u *Usage) AddStarts(oldest, newest uint64) {
	if newest == 0 {
		return
	}
	if u.NewestStart == 0 || oldest < u.OldestStart {
		u.OldestStart = oldest
	}
	u.NewestStart = max(u.NewestStart, newest)
}
