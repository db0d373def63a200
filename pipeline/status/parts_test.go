package status_test

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/status"
)

// Arrivals become parts of equal length whose sum is right, gaps, and what retention deletes next.
func TestSetArrivals(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	ago := func(h float64) time.Time { return now.Add(-time.Duration(h * float64(time.Hour))) }
	s := status.Store{Retention: 56 * time.Hour}
	s.SetArrivals([]status.Arrivals{
		{First: ago(20), Last: ago(10), Spans: 1000, Bytes: 100},
		{First: ago(56), Last: ago(55.5), Spans: 10, Bytes: 7},
		{First: ago(55), Last: ago(40), Spans: 1500, Bytes: 150},
		{First: ago(3), Last: ago(3)}, // empty
		{First: ago(9), Last: now, Spans: 900, Bytes: 90},
	}, now)
	if s.Spans != 3410 || !s.Oldest.Equal(ago(56)) || len(s.Parts) != status.MaxParts {
		t.Fatalf("%d spans since %s in %d parts", s.Spans, s.Oldest, len(s.Parts))
	}
	var sum int64
	for _, p := range s.Parts {
		sum += p.Spans
	}
	if sum != s.Spans || s.Parts[0].Spans != 10 || s.Parts[2].Spans != 100 || s.Parts[20].Spans != 0 || s.Parts[40].Spans != 100 {
		t.Errorf("sum %d of %+v", sum, s.Parts)
	}
	if len(s.Gaps) != 3 || !s.Gaps[1].From.Equal(ago(40)) || !s.Gaps[1].To.Equal(ago(20)) {
		t.Errorf("gaps %+v", s.Gaps)
	}
	if len(s.Expiring) != 2 || s.Expiring[0].Spans != 10 || s.Expiring[0].Bytes != 7 || s.Expiring[1].Spans != 1510 {
		t.Errorf("expiring %+v", s.Expiring)
	}
	s = status.Store{}
	s.SetArrivals(nil, now)
	if s.Parts == nil || s.Gaps == nil || s.Expiring == nil || len(s.Parts) != 0 {
		t.Errorf("empty store %+v", s)
	}
}
