package pipeline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// fanOut gives every batch to all branches at once. A Batch is immutable, so they share it.
type fanOut struct {
	branches []Consumer
	log      *zap.Logger
}

// newFanOut returns the consumer for some branches; one branch needs no fan-out.
func newFanOut(branches []Consumer, log *zap.Logger) Consumer {
	if len(branches) == 1 {
		return branches[0]
	}
	return &fanOut{branches, log}
}

// Consume calls all branches, also when one fails, and returns once all have. The answer is that of the most patient class among those
// that failed: as long as trying again may help one branch, the sender is told to. Of several in that class the longest delay counts.
func (f *fanOut) Consume(ctx context.Context, b *otlpdata.Batch) error {
	errs := make([]error, len(f.branches))
	var wg sync.WaitGroup
	for i, br := range f.branches[1:] {
		wg.Go(func() { errs[i+1] = guard(ctx, br, b, f.log) })
	}
	errs[0] = guard(ctx, f.branches[0], b, f.log)
	wg.Wait()
	return mostPatient(errs)
}

func mostPatient(errs []error) error {
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return slices.MaxFunc(failed, func(a, b error) int {
		return cmp.Or(cmp.Compare(patience(a), patience(b)), cmp.Compare(classify(a).after, classify(b).after))
	})
}

// patience orders errors by what the sender is asked to do: take a partial success, give up, try again, try again later.
func patience(err error) int {
	var partial *Partial
	if errors.As(err, &partial) {
		return 0
	}
	switch c := classify(err); {
	case c.permanent():
		return 1
	case c.code == codes.ResourceExhausted:
		return 3
	}
	return 2
}
