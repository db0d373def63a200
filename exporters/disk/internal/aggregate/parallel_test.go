package aggregate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// fullAccount grants nothing.
type fullAccount struct{}

func (fullAccount) Grow(n int64) error { return errors.New("full") }
func (fullAccount) Shrink(int64)       {}

func TestCause(t *testing.T) {
	_, full := tracestore.Reserve(tracestore.WithAccount(t.Context(), fullAccount{}), 1)
	real := errors.New("real")
	late := fmt.Errorf("block 3: %w", context.DeadlineExceeded)
	for _, c := range []struct {
		errs []error
		want error
	}{
		{nil, nil},
		{[]error{full, late, context.Canceled}, full},
		{[]error{late, full}, late},
		{[]error{context.Canceled, full, real, errors.New("second")}, real},
	} {
		if got := cause(c.errs); got != c.want {
			t.Errorf("%v: got %v, want %v", c.errs, got, c.want)
		}
	}
}

// brokenBlocks are the blocks of a segment that cannot be opened.
type brokenBlocks struct {
	*segment.Segment
	open func(ctx context.Context) error
}

func (b brokenBlocks) Open(ctx context.Context, _ int) (source.Block, error) { return nil, b.open(ctx) }

// TestErrorStopsParts checks that an error of one part stops the others, and that it is not taken
// for the end of the time.
func TestErrorStopsParts(t *testing.T) {
	broken := errors.New("too many open files")
	s := newRealStore(t, 1, scan.Options{Decoders: 2})
	s.partRows = 1
	started := make(chan struct{})
	for i, open := range []func(context.Context) error{
		func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			return context.DeadlineExceeded
		},
		func(context.Context) error {
			<-started
			return broken
		},
	} {
		s.SegmentOf(t, scantest.SharedIDs(uint64(i), 200))
		s.Segments[i] = &brokenBlocks{s.Segments[i].(*segment.Segment), open}
	}
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 3}}
	if got, err := s.Aggregate(t.Context(), tracestore.Query{}, a); !errors.Is(err, broken) {
		t.Errorf("got %+v, error %v", got, err)
	}
}
