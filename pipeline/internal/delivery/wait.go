package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
)

// WaitLimit is the maximum time until a receiver responds to a request, and the setting that it
// comes from. A Max of 0 means no limit.
type WaitLimit struct {
	Max     time.Duration
	Setting string
}

// before returns the limit for a request: l, but at most nine tenths of the time until the client's
// deadline.
func (l WaitLimit) before(ctx context.Context) WaitLimit {
	deadline, ok := ctx.Deadline()
	if !ok {
		return l
	}
	left := max(time.Until(deadline)*9/10, 1)
	if l.Max > 0 && l.Max <= left {
		return l
	}
	return WaitLimit{left, "nine tenths of the deadline of the client"}
}

// waitError is the cause of contexts that end at the maximum wait.
type waitError struct{ limit WaitLimit }

func (e *waitError) Error() string {
	return fmt.Sprintf("not accepted within %s (%s)", e.limit.Max.Round(time.Millisecond), e.limit.Setting)
}

func (e *waitError) Unwrap() error { return context.DeadlineExceeded }

// lateError names the component in which a request waited until the maximum wait ended.
type lateError struct {
	component Component
	wait      *waitError
	err       error // of the component
}

func (e *lateError) Error() string {
	text := e.err.Error()
	var wait *waitError
	switch {
	case errors.As(e.err, &wait): // the text says it
	case e.err == context.DeadlineExceeded:
		text = e.wait.Error()
	default:
		text = e.wait.Error() + ": " + text
	}
	return fmt.Sprintf("%s %s: %s", e.component.Kind, e.component.Name(), text)
}

func (e *lateError) Unwrap() error { return e.err }

// nameLate adds the component to its error if ctx ended at the maximum wait. The innermost
// component counts, because the components before it wait for it.
func nameLate(ctx context.Context, c Component, err error) error {
	if err == nil || ctx.Err() == nil || errclass.Of(err).Code != codes.DeadlineExceeded {
		return err
	}
	var wait *waitError
	var late *lateError
	if !errors.As(context.Cause(ctx), &wait) || errors.As(err, &late) {
		return err
	}
	return &lateError{c, wait, err}
}
