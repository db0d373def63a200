package multistore

import (
	"context"
	"errors"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// answer is the result of one store.
type answer[A any] struct {
	store string // name
	value A
}

// ask calls a method of all stores concurrently. It returns the results of the stores that
// responded, in the order of the stores, and what is missing. It returns an error if no store
// responded, or if one returned an error of the caller; see [isOfCaller].
//
// A result together with a DamagedError counts as a response.
func ask[T, A any](
	ctx context.Context, s *Store, tenant string, method func(ctx context.Context, store T) (A, error),
) (answers []answer[A], missing tracestore.Reasons, err error) {
	type reply struct {
		value A
		err   error
	}
	replies := each(s.stores, func(m *member) (r reply) {
		c := m.newCall(ctx)
		defer c.release()
		r.err = c.wait(func() (err error) {
			store, ok := tracestore.As[T](c.ctx, tenant, m.Store)
			if !ok {
				return unsupported(m.Name)
			}
			r.value, err = method(c.ctx, store)
			return err
		})
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
		if r.err == nil || isDamaged(r.err) {
			answers = append(answers, answer[A]{name, r.value})
		}
	}
	if lost.allFailed() {
		return nil, nil, lost.noAnswer()
	}
	return answers, lost.missing, nil
}

// each calls f with every store concurrently and returns the results in the order of the stores.
func each[R any](stores []*member, f func(*member) R) []R {
	results := make([]R, len(stores))
	concurrently(len(stores), func(i int) { results[i] = f(stores[i]) })
	return results
}

// concurrently calls f with each number below n, and returns when all calls have returned.
func concurrently(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { f(i) })
	}
	calls.Wait()
}

// isOfCaller reports whether an error concerns the request or the caller, not the store: results of
// other stores cannot make up for it.
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

// losses records the stores that fail during a request.
type losses struct {
	total   int // stores
	missing tracestore.Reasons
	failed  []error // of stores that failed entirely
}

// note records an error of a store. It returns the error if the whole request fails because of it;
// see [isOfCaller].
func (l *losses) note(ctx context.Context, store string, err error) error {
	kind := tracestore.ReasonUnavailable
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isDamaged(err):
		kind = tracestore.ReasonDamage
	case isOfCaller(ctx, err):
		return err
	default:
		l.failed = append(l.failed, err)
	}
	l.missing.Add(tracestore.Reason{Kind: kind, Store: store, Text: err.Error()})
	return nil
}

// allFailed reports whether all stores have failed.
func (l *losses) allFailed() bool { return len(l.failed) == l.total }

// noAnswer is the error of a request for which all stores failed. It has the class of the first
// failure.
func (l *losses) noAnswer() error { return &unanswered{l.missing.Text(), l.failed[0]} }

type unanswered struct {
	text  string
	first error
}

func (e *unanswered) Error() string { return e.text }
func (e *unanswered) Unwrap() error { return e.first }

// damage returns a DamagedError if something is missing, for results that cannot express it
// otherwise.
func damage(missing tracestore.Reasons) error {
	if missing.Complete() {
		return nil
	}
	return &tracestore.DamagedError{Reasons: missing}
}

// wrong is the reason for a store whose result cannot be used.
func wrong(store, text string) tracestore.Reason {
	return tracestore.Reason{Kind: tracestore.ReasonDamage, Store: store, Text: text}
}
