package tracestore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Deleter is implemented by stores from which an operator can delete spans before they expire.
type Deleter interface {
	// Delete hides the tenant's stored spans that d covers: no call that begins after Delete has
	// returned sees them, not even after a crash. Spans that are stored later stay, even if a
	// deleted span is resent. The store frees the space later.
	//
	// Errors match [ErrNotAllowed] or [ErrBadDeletion] if these apply. After any other error the
	// spans may or may not be deleted, and the caller should retry.
	Delete(ctx context.Context, tenant string, d Deletion) (Deleted, error)
}

// Deletion selects the spans to delete: by Traces, by Service with an optional time range, or by a
// time range alone.
type Deletion struct {
	// Traces are the ids of whole traces, at most [MaxDeletedTraces].
	Traces []otlpdata.TraceID
	// Service is a service.name whose spans are deleted, within the time range if one is set.
	// Traces that also have spans of other services remain as partial traces.
	Service string
	// From and To limit the start of a span, both inclusive, as in Query.Window. A zero time sets
	// no limit. At least one of them is required if neither Traces nor Service is set.
	From, To time.Time
	// DryRun counts the spans and hides none.
	DryRun bool
}

// Deleted is the result of a deletion.
type Deleted struct {
	// Spans is the number of spans that this deletion hides, or would hide without DryRun, and that
	// were visible before. A duplicate that the store holds several times may count several times.
	Spans int
}

// MaxDeletedTraces is the maximum number of trace ids in one Deletion.
const MaxDeletedTraces = 10_000

var (
	// ErrNotAllowed is the error of a store whose configuration does not allow deletions.
	ErrNotAllowed = errors.New("deleting spans is not allowed: set allow_delete: true in the configuration of the store")
	// ErrBadDeletion is wrapped by errors that describe what is wrong with a Deletion.
	ErrBadDeletion = errors.New("invalid deletion")
)

// Check returns an error that matches [ErrBadDeletion] unless d selects spans in one of the three
// ways.
func (d *Deletion) Check() error {
	ranged := !d.From.IsZero() || !d.To.IsZero()
	switch {
	case len(d.Traces) > 0 && (d.Service != "" || ranged):
		return fmt.Errorf("%w: traces cannot be combined with a service or a time range", ErrBadDeletion)
	case len(d.Traces) > MaxDeletedTraces:
		return fmt.Errorf("%w: %d traces exceed the maximum of %d", ErrBadDeletion, len(d.Traces), MaxDeletedTraces)
	case len(d.Traces) == 0 && d.Service == "" && !ranged:
		return fmt.Errorf("%w: specify traces, a service or a time range", ErrBadDeletion)
	}
	if _, _, ok := d.Window(); !ok {
		return fmt.Errorf("%w: empty time range between \"from\" and \"to\"", ErrBadDeletion)
	}
	return nil
}

// Window returns the bounds of start times, as Query.Window does.
func (d *Deletion) Window() (from, to uint64, ok bool) { return Query{From: d.From, To: d.To}.Window() }

// String describes the deletion for logs: `2 traces`, `service "cart" to 2026-11-21T18:00:00Z`,
// `range from 2026-11-21T17:00:00Z`.
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

// Covers reports whether the deletion covers a span of the tenant. It is the reference
// implementation for stores.
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
