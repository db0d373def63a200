package multistore

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
			return reply{err: unsupported(n.Name)}
		}
		r.value, r.err = call(limited, store)
		return r
	})
	lost := losses{total: len(replies)}
	for i, r := range replies {
		name := s.stores[i].Name
		if r.err != nil {
			if err := lost.note(ctx, name, r.err); err != nil {
				return nil, nil, err
			}
		}
		if damaged := (*tracestore.DamagedError)(nil); r.err == nil || errors.As(r.err, &damaged) {
			answers = append(answers, answer[A]{name, r.value})
		}
	}
	if lost.allFailed() {
		return nil, nil, lost.noAnswer()
	}
	return answers, lost.missing, nil
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

// limitTime returns a context that leaves a twentieth of the remaining time to answer without a
// store that is silent. Searches that end by themselves shortly before their deadline do so
// earlier.
func limitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-time.Until(end)/20))
}

// isOfCaller reports whether an error of a store is about the request or the caller, not about the
// store: no answer of other stores can make up for it.
func isOfCaller(ctx context.Context, err error) bool {
	return ctx.Err() != nil || tracestore.IsOutOfMemory(err) || pipeline.IsAboutData(err) || errors.Is(err, tracestore.ErrUnsupported) ||
		errors.Is(err, tracestore.ErrNotAllowed) || errors.Is(err, tracestore.ErrBadDeletion)
}

// cause returns the error of ctx instead of err if ctx has ended.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// losses records the stores that fail while they answer a request.
type losses struct {
	total   int // stores
	missing gaps
	failed  []error // of stores that failed entirely
}

// note records an error of a store. It returns an error if the request fails for that reason: the
// error is the caller's.
func (l *losses) note(ctx context.Context, store string, err error) error {
	damaged := (*tracestore.DamagedError)(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &damaged):
	case isOfCaller(ctx, err):
		return err
	default:
		l.failed = append(l.failed, err)
	}
	l.missing.add(store, err.Error())
	return nil
}

// allFailed reports whether no store is left that can answer.
func (l *losses) allFailed() bool { return len(l.failed) == l.total }

// noAnswer is the error of a request that no store answered. It has the class of the first failure.
func (l *losses) noAnswer() error { return &unanswered{l.missing.reason(), l.failed[0]} }

type unanswered struct {
	text  string
	first error
}

func (e *unanswered) Error() string { return e.text }
func (e *unanswered) Unwrap() error { return e.first }

// gaps collects what is missing of an answer. If it is empty, nothing is.
type gaps []string

// add adds what is missing of a store, unless that is known.
func (g *gaps) add(store, reason string) {
	if text := "store " + store + ": " + reason; !slices.Contains(*g, text) {
		*g = append(*g, text)
	}
}

// addPart adds what is missing of the answer of a store.
func (g *gaps) addPart(store string, complete bool, reason string) {
	if !complete {
		g.add(store, cmp.Or(reason, "the answer is incomplete"))
	}
}

// addReason adds why the sum of complete answers is not complete.
func (g *gaps) addReason(complete bool, reason string) {
	if !complete && !slices.Contains(*g, reason) {
		*g = append(*g, reason)
	}
}

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
