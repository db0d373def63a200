package tracestore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Deleter is implemented by stores from which an operator may delete spans before their time.
type Deleter interface {
	// Delete hides the spans that d covers and that the tenant had stored before: no call that begins after Delete has returned sees
	// them, also not after a crash. What comes later stays, a deleted span that is sent again included. The space is given back when the
	// store sees fit.
	//
	// Errors match [ErrNotAllowed] and [ErrBadDeletion] where these apply; after any other one the spans may be deleted or not, and the
	// caller repeats the call.
	Delete(ctx context.Context, tenant string, d Deletion) (Deleted, error)
}

// Deletion says which spans go. Exactly one of Traces, Service and the range alone is given.
type Deletion struct {
	// Traces are the ids of whole traces, at most [MaxDeletedTraces].
	Traces []otlpdata.TraceID
	// Service is a service.name: its spans go, within the range if there is one. Traces that others have spans in are partial after that.
	Service string
	// From and To bound the start of a span, both inclusive, as in Query.Window. A zero time does not bound. Without Traces and Service one
	// of them is given.
	From, To time.Time
}

// Deleted is what a deletion did.
type Deleted struct {
	// Spans is how many spans are hidden that were not before. A duplicate that the store keeps several times may count each time.
	Spans int
}

// MaxDeletedTraces bounds the ids of one Deletion.
const MaxDeletedTraces = 10_000

var (
	// ErrNotAllowed is matched by the error of a store whose configuration does not allow deletions.
	ErrNotAllowed = errors.New("deleting spans is not allowed: set allow_delete: true in the configuration of the store")
	// ErrBadDeletion is matched by errors that say what is wrong with a Deletion.
	ErrBadDeletion = errors.New("the deletion is not valid")
)

// Check returns an error, which matches [ErrBadDeletion], unless d says what to delete in one of the three ways.
func (d *Deletion) Check() error {
	ranged := !d.From.IsZero() || !d.To.IsZero()
	switch {
	case len(d.Traces) > 0 && (d.Service != "" || ranged):
		return fmt.Errorf("%w: traces are deleted as a whole, without a service or a range", ErrBadDeletion)
	case len(d.Traces) > MaxDeletedTraces:
		return fmt.Errorf("%w: %d traces, %d are allowed at once", ErrBadDeletion, len(d.Traces), MaxDeletedTraces)
	case len(d.Traces) == 0 && d.Service == "" && !ranged:
		return fmt.Errorf("%w: it names no traces, no service and no range", ErrBadDeletion)
	}
	if _, _, ok := d.Window(); !ok {
		return fmt.Errorf("%w: no time lies between from and to", ErrBadDeletion)
	}
	return nil
}

// Window returns the bounds on starts, as Query.Window does.
func (d *Deletion) Window() (from, to uint64, ok bool) { return Query{From: d.From, To: d.To}.Window() }

// String says what is deleted, for logs: `2 traces`, `service "cart" to 2026-11-21T18:00:00Z`, `range from 2026-11-21T17:00:00Z`.
func (d *Deletion) String() string {
	text := "range"
	switch {
	case len(d.Traces) > 0:
		return strconv.Itoa(len(d.Traces)) + " traces"
	case d.Service != "":
		text = "service " + strconv.Quote(d.Service)
	}
	if !d.From.IsZero() {
		text += " from " + d.From.UTC().Format(time.RFC3339Nano)
	}
	if !d.To.IsZero() {
		text += " to " + d.To.UTC().Format(time.RFC3339Nano)
	}
	return text
}

// Covers reports whether a span of the tenant goes. It is the reference for stores.
func (d *Deletion) Covers(s Span) bool {
	for _, id := range d.Traces {
		if id == s.TraceID {
			return true
		}
	}
	if len(d.Traces) > 0 || d.Service != "" && d.Service != s.Resource.Service {
		return false
	}
	from, to, ok := d.Window()
	return ok && from <= s.Start && s.Start <= to
}
