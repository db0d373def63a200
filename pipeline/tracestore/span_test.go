package tracestore

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestWalkSpansReturnsTheError(t *testing.T) {
	stop := errors.New("stop")
	if err := WalkSpans(newBatch(t, "", true, 2), func(Span) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
}

func TestWindow(t *testing.T) {
	f := func(from, to time.Time, wantFrom, wantTo uint64, wantOK bool) {
		t.Helper()
		gotFrom, gotTo, ok := Query{From: from, To: to}.Window()
		if ok != wantOK || ok && (gotFrom != wantFrom || gotTo != wantTo) {
			t.Errorf("%v..%v: %d..%d, %t, want %d..%d, %t", from, to, gotFrom, gotTo, ok, wantFrom, wantTo, wantOK)
		}
	}
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	at := func(ns uint64) time.Time { return time.Unix(int64(ns/1e9), int64(ns%1e9)) }
	f(time.Time{}, time.Time{}, 0, math.MaxUint64, true)
	f(at(5), at(5), 5, 5, true)
	f(at(6), at(5), 0, 0, false)
	f(at(math.MaxUint64), at(math.MaxUint64), math.MaxUint64, math.MaxUint64, true)
	f(at(math.MaxUint64).Add(1), time.Time{}, 0, 0, false)
	f(at(1), at(math.MaxUint64).Add(1), 1, math.MaxUint64, true)
	f(year(1960), at(1), 0, 1, true)
	f(time.Time{}, year(1960), 0, 0, false)
	f(year(1), year(9999), 0, math.MaxUint64, true)
}
