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
	refusers := f.refusers(errs)
	err := mostPatient(errs)
	if err == nil || len(refusers) == len(f.branches) || patience(err) != patiencePermanent {
		return err
	}
	return &refusedBy{err, f, refusers}
}

// refusers returns the branches that did not take their batch. One with a partial success took it.
func (f *fanOut) refusers(errs []error) []Consumer {
	var refusers []Consumer
	for i, err := range errs {
		if err != nil && patience(err) != patiencePartial {
			refusers = append(refusers, f.branches[i])
		}
	}
	return refusers
}

// refusedBy is the error of a fan-out of which some branches refused a batch for good and the others took it.
type refusedBy struct {
	err      error
	of       *fanOut
	refusers []Consumer
}

func (e *refusedBy) Error() string { return e.err.Error() }
func (e *refusedBy) Unwrap() error { return e.err }

// refusersOf returns the part of next that refused a batch with err, so that the parts of that batch are sent there again, and branches which
// took it do not get its spans twice. It is next itself, unless next is a fan-out.
func refusersOf(next Consumer, err error) Consumer {
	switch n := next.(type) {
	case *guarded:
		return &guarded{refusersOf(n.next, err), n.log}
	case *link:
		return n.refusers(err)
	case *linkPart:
		return &linkPart{n.link, n.turn, refusersOf(n.part, err)}
	}
	var by *refusedBy
	if f, ok := next.(*fanOut); ok && errors.As(err, &by) && by.of == f {
		return newFanOut(by.refusers, f.log)
	}
	return next
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

// What the sender is asked to do, in the order of patience.
const (
	patiencePartial   = iota // take a partial success
	patiencePermanent        // give up
	patienceRetry            // try again
	patienceLater            // try again later
)

func patience(err error) int {
	var partial *Partial
	if errors.As(err, &partial) {
		return patiencePartial
	}
	switch c := classify(err); {
	case c.permanent():
		return patiencePermanent
	case c.code == codes.ResourceExhausted:
		return patienceLater
	}
	return patienceRetry
}
