package multistore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// answer is the answer of one store.
type answer[A any] struct {
	store string // name
	value A
}

// ask calls a method of all stores concurrently. It returns the answers of those that answered, in
// the order of the stores, and what is missing. It returns an error if no store answered, or if one
// returned an error that is the caller's.
//
// What a call returns together with a DamagedError counts as an answer.
func ask[T, A any](
	ctx context.Context, s *Store, tenant string, call func(ctx context.Context, store T) (A, error),
) (answers []answer[A], missing gaps, err error) {
	type reply struct {
		value A
		err   error
	}
	limited, cancel := limitTime(ctx)
	defer cancel()
	replies := each(s.stores, func(n Named) (r reply) {
		store, ok := tracestore.As[T](limited, tenant, n.Store)
		if !ok {
			return reply{err: fmt.Errorf("%w: store %s has no such method", tracestore.ErrUnsupported, n.Name)}
		}
		r.value, r.err = call(limited, store)
		return r
	})
	var failures []error
	for i, r := range replies {
		name := s.stores[i].Name
		var damaged *tracestore.DamagedError
		switch {
		case r.err == nil:
			answers = append(answers, answer[A]{name, r.value})
		case isOfCaller(ctx, r.err):
			return nil, nil, cause(ctx, r.err)
		case errors.As(r.err, &damaged):
			answers = append(answers, answer[A]{name, r.value})
			missing.add(name, damaged.Error())
		default:
			failures = append(failures, r.err)
			missing.add(name, r.err.Error())
		}
	}
	if len(answers) == 0 {
		return nil, nil, noAnswer(missing, failures)
	}
	return answers, missing, nil
}

// each calls f with every store concurrently and returns the results in the order of the stores.
func each[R any](stores []Named, f func(Named) R) []R {
	results := make([]R, len(stores))
	var calls sync.WaitGroup
	for i, n := range stores {
		calls.Go(func() { results[i] = f(n) })
	}
	calls.Wait()
	return results
}

// limitTime returns a context that leaves a tenth of the remaining time to answer without a store
// that is silent.
func limitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-time.Until(end)/10))
}

// isOfCaller reports whether an error of a store is about the request or the caller, not about the
// store: no answer of other stores can make up for it.
func isOfCaller(ctx context.Context, err error) bool {
	return ctx.Err() != nil || tracestore.IsOutOfMemory(err) || pipeline.IsAboutData(err) || errors.Is(err, tracestore.ErrUnsupported) ||
		errors.Is(err, tracestore.ErrNotAllowed) || errors.Is(err, tracestore.ErrBadDeletion)
}

// cause returns the error of ctx if that has ended, and otherwise err.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// noAnswer is the error of a request that no store answered. It has the class of the first failure.
func noAnswer(missing gaps, failures []error) error {
	return &unanswered{missing.reason(), failures[0]}
}

type unanswered struct {
	text  string
	first error
}

func (e *unanswered) Error() string { return e.text }
func (e *unanswered) Unwrap() error { return e.first }

// gaps collects what is missing of an answer. If it is empty, nothing is.
type gaps []string

// add adds what is missing of a store.
func (g *gaps) add(store, reason string) { *g = append(*g, "store "+store+": "+reason) }

// reason describes for users what is missing, or is "".
func (g gaps) reason() string { return strings.Join(g, "; ") }

// damage returns a DamagedError if something is missing, for answers that have no other way to say
// so.
func (g gaps) damage() error {
	if len(g) == 0 {
		return nil
	}
	return &tracestore.DamagedError{Reason: g.reason()}
}
