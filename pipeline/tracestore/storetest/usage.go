package storetest

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkUsage checks that a store reports what it holds for all tenants together.
func checkUsage(s *suite) {
	store, ok := optional[tracestore.UsageReporter](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.UsageReporter")
	}
	usage := func() tracestore.Usage {
		u, err := store.Usage(s.ctx, "")
		if err != nil || u.Bytes < 0 || u.MaxBytes < 0 || u.Retention < 0 {
			s.Fatalf("usage %+v, error %v", u, err)
		}
		return u
	}
	if u := usage(); !u.Oldest.IsZero() || u.OldestStart != 0 || u.NewestStart != 0 {
		s.Errorf("empty store: %+v", u)
	}
	r := newRequest("a")
	r.span(1, 1, "old", 1) // started long before it arrived
	s.send("other", r.traces)
	stored := usage()
	if stored.Oldest.Year() < 2000 || stored.Bytes == 0 { // the store may have a clock of its own
		s.Errorf("one span that started in 1970 and arrived now: %+v", stored)
	}
	if stored.OldestStart != 1 || stored.NewestStart != 1 {
		s.Errorf("one span that started at 1: the oldest started at %d, the newest at %d", stored.OldestStart, stored.NewestStart)
	}
	now := uint64(time.Now().UnixNano())
	r = newRequest("a")
	r.span(2, 2, "new", now)
	r.span(3, 3, "between", now-uint64(time.Hour))
	s.send("", r.traces)
	u := usage()
	if !u.Oldest.Equal(stored.Oldest) {
		s.Errorf("a later span changed the arrival of the oldest one from %s to %s", stored.Oldest, u.Oldest)
	}
	if u.OldestStart != 1 || u.NewestStart != now {
		s.Errorf("spans started from 1 to %d: the oldest started at %d, the newest at %d", now, u.OldestStart, u.NewestStart)
	}
}
