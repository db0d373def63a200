package delivery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// fanOut passes every batch to all branches concurrently. The branches share the batch, which is
// immutable.
type fanOut struct {
	branches []pipeline.Consumer
	log      *zap.Logger
}

// NewFanOut returns a Consumer that passes every batch to all branches concurrently: the branch
// itself if there is only one.
func NewFanOut(branches []pipeline.Consumer, log *zap.Logger) pipeline.Consumer {
	if len(branches) == 1 {
		return branches[0]
	}
	return &fanOut{branches, log}
}

// Consume calls all branches, even if one fails, and returns when all have returned. If several
// fail, it returns the error that is most worth retrying, so that the sender retries as long as a
// retry may help one branch; among equal errors, the one with the longest delay.
func (f *fanOut) Consume(ctx context.Context, b *otlpdata.Batch) error {
	errs := make([]error, len(f.branches))
	var wg sync.WaitGroup
	for i, br := range f.branches[1:] {
		wg.Go(func() { errs[i+1] = consumeSafely(ctx, br, b, f.log) })
	}
	errs[0] = consumeSafely(ctx, f.branches[0], b, f.log)
	wg.Wait()
	refusers := f.refusers(errs)
	err := mostRetryable(errs)
	if err == nil || len(refusers) == len(f.branches) || retryRank(err) != rankPermanent {
		return err
	}
	return &branchError{err, f, refusers}
}

// refusers returns the branches that refused their batch. A branch with a partial success did not.
func (f *fanOut) refusers(errs []error) []pipeline.Consumer {
	var refusers []pipeline.Consumer
	for i, err := range errs {
		if err != nil && retryRank(err) != rankPartial {
			refusers = append(refusers, f.branches[i])
		}
	}
	return refusers
}

// Refusing returns the branches that refused a batch with err, or all if err is the error of all.
func (f *fanOut) Refusing(err error) pipeline.Consumer {
	if by := (*branchError)(nil); errors.As(err, &by) && by.fanOut == f {
		return NewFanOut(by.refusers, f.log)
	}
	return f
}

// branchError is the error of a fan-out of which some branches refused a batch permanently and the
// others accepted it.
type branchError struct {
	err      error
	fanOut   *fanOut
	refusers []pipeline.Consumer
}

func (e *branchError) Error() string { return e.err.Error() }
func (e *branchError) Unwrap() error { return e.err }

// refusing returns the part of next that refused a batch with err: next itself, unless it leads to
// a fan-out.
func refusing(next pipeline.Consumer, err error) pipeline.Consumer {
	if n, ok := next.(interface{ Refusing(error) pipeline.Consumer }); ok {
		return n.Refusing(err)
	}
	return next
}

func mostRetryable(errs []error) error {
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return slices.MaxFunc(failed, func(a, b error) int {
		return cmp.Or(cmp.Compare(retryRank(a), retryRank(b)), cmp.Compare(errclass.Of(a).RetryAfter, errclass.Of(b).RetryAfter))
	})
}

// Ranks of errors by what the sender should do, from giving up to retrying later.
const (
	rankPartial   = iota // accept the partial success
	rankPermanent        // give up
	rankRetry            // retry
	rankLater            // retry after a delay
)

func retryRank(err error) int {
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		return rankPartial
	}
	switch c := errclass.Of(err); {
	case c.Permanent():
		return rankPermanent
	case c.Code == codes.ResourceExhausted:
		return rankLater
	}
	return rankRetry
}
