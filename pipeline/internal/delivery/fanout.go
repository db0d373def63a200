package delivery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// fanOut passes every batch to all branches concurrently. The branches share the batch, which is
// immutable.
type fanOut struct {
	branches  []pipeline.Consumer // edges, which recover from panics
	pipelines []pipeline.ID       // behind a connector: of the branches
}

// Consume passes b to all branches.
func (f *fanOut) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return f.consume(ctx, f.branches, b)
}

// consume calls some of the branches, even if one fails, and returns when all have returned. If
// several fail, it returns the error that is most worth retrying, so that the sender retries as
// long as a retry may help at least one branch. Among equal errors it returns the one with the
// longest delay.
func (f *fanOut) consume(ctx context.Context, some []pipeline.Consumer, b *otlpdata.Batch) error {
	errs := make([]error, len(some))
	var wg sync.WaitGroup
	for i, br := range some[1:] {
		wg.Go(func() { errs[i+1] = br.Consume(ctx, b) })
	}
	errs[0] = some[0].Consume(ctx, b)
	wg.Wait()
	var refusers []pipeline.Consumer // a branch with a partial success did not refuse its batch
	for i, err := range errs {
		if err != nil && retryRank(err) != rankPartial {
			refusers = append(refusers, some[i])
		}
	}
	err := mostRetryable(errs)
	if err == nil || len(refusers) == len(f.branches) || retryRank(err) != rankPermanent {
		return err
	}
	return &branchError{err, f, refusers}
}

// branchError is the error of a fan-out when some branches refused a batch permanently and the
// others accepted it or did not get it.
type branchError struct {
	err      error
	fanOut   *fanOut
	refusers []pipeline.Consumer
}

func (e *branchError) Error() string { return e.err.Error() }
func (e *branchError) Unwrap() error { return e.err }

// refusersIn returns the branches of f that refused the batch: all of them if the error is from
// another fan-out.
func (e *branchError) refusersIn(f *fanOut) []pipeline.Consumer {
	if e.fanOut == f {
		return e.refusers
	}
	return f.branches
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
