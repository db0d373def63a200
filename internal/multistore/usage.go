package multistore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.UsageReporter = (*Store)(nil)

// Usage implements tracestore.UsageReporter. Bytes and MaxBytes add up, the times are the times of
// the oldest and newest span in all stores, and Retention is the longest. A limit is 0 if one of
// the stores does not have it.
func (s *Store) Usage(ctx context.Context, tenant string) (tracestore.Usage, error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, u tracestore.UsageReporter) (tracestore.Usage, error) {
		return u.Usage(ctx, tenant)
	})
	if err != nil {
		return tracestore.Usage{}, err
	}
	var sum tracestore.Usage
	endless, forever := false, false
	for _, a := range answers {
		u := &a.value
		missing.Add(u.Of(a.store)...)
		if sum.Oldest.IsZero() || !u.Oldest.IsZero() && u.Oldest.Before(sum.Oldest) {
			sum.Oldest = u.Oldest
		}
		sum.AddStarts(u.OldestStart, u.NewestStart)
		sum.Bytes += u.Bytes
		sum.MaxBytes += u.MaxBytes
		sum.Retention = max(sum.Retention, u.Retention)
		endless, forever = endless || u.MaxBytes == 0, forever || u.Retention == 0
	}
	if endless {
		sum.MaxBytes = 0
	}
	if forever {
		sum.Retention = 0
	}
	sum.Reasons = missing
	return sum, nil
}
