// Package adjust prepares the spans of a trace for display. It corrects known errors and confusing
// data, and describes the corrections in warnings; stored data does not change. The HTTP and gRPC
// query APIs read traces with [Walk].
//
// The adjustments, in this order:
//  1. Duplicates (equal spans, apart from the order of attributes) are left out.
//  2. A server span that shares its id with a client span, as in Zipkin, gets its own id and
//     becomes the child of the client span.
//  3. Clock differences between hosts are corrected, or described in a warning
//     (Options.MaxClockSkew).
//  4. IPv4 addresses that were sent as numbers are formatted, and attributes that name the tracing
//     library move from spans to their resource.
//  5. Links with an empty trace id are removed.
//  6. Attributes are sorted by key.
//
// Warnings are stored in the attribute [WarningsKey] of their span. Options.Raw returns the trace
// as stored, with the recorded times.
package adjust

import (
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// WarningsKey is the attribute with the warnings of a span, an array of strings.
const WarningsKey = "@jaeger@warnings"

// Options configure how a trace is shown.
type Options struct {
	// Raw disables all adjustments except names for spans without one.
	Raw bool
	// Part is true if the batches hold only some spans of the trace. Adjustments 2 and 3, which
	// depend on other spans, are then left out.
	Part bool
	// MaxSpans is the maximum number of spans shown. 0 disables the limit. A trace with more spans
	// is truncated, with a warning on its first span, and otherwise shown as stored, because
	// adjustments need all spans.
	MaxSpans int
	// MaxClockSkew is the maximum correction of times. 0 disables the correction; warnings then
	// describe the calculated correction.
	MaxClockSkew time.Duration
}

// Walk calls v for the spans of one trace, which the batches hold in order, like otlpdata.Walk.
// Adjusted resources, scopes and spans have no Raw. Resources and scopes without spans are left
// out, and the same resource or scope may be passed repeatedly. An error of v ends the walk and is
// returned. Any other error means that a batch cannot be read; it is returned before the first call
// of v, except for raw traces.
//
// A span without a name gets the name by which it is found, see otlpdata.Span.Operation, so that
// all formats show the same name.
func Walk(opt Options, v otlpdata.Visitor, batches ...*otlpdata.Batch) error {
	v = namer{v}
	spans := count(batches)
	switch {
	case opt.cuts(spans):
		c := &cutter{Visitor: v, left: opt.MaxSpans, limit: opt.MaxSpans}
		if err := walkAll(batches, c); !errors.Is(err, errCut) {
			return err
		}
		return nil
	case opt.Raw:
		return walkAll(batches, v)
	}
	p := plans.Get().(*plan)
	defer p.release()
	if err := p.make(opt, spans, batches); err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	p.emit.beginPlan(p, v)
	return walkAll(batches, &p.emit)
}

// AsStored reports whether Walk shows the trace as stored, either because Raw is set or because the
// trace is truncated.
func (o Options) AsStored(batches ...*otlpdata.Batch) bool { return o.Raw || o.cuts(count(batches)) }

func (o Options) cuts(spans int) bool { return o.MaxSpans > 0 && spans > o.MaxSpans }

func count(batches []*otlpdata.Batch) (spans int) {
	for _, b := range batches {
		spans += b.Len()
	}
	return spans
}

func walkAll(batches []*otlpdata.Batch, v otlpdata.Visitor) error {
	for _, b := range batches {
		if err := b.Walk(v); err != nil {
			return err
		}
	}
	return nil
}

// namer names spans without a name.
type namer struct{ otlpdata.Visitor }

// Span passes on a span with a name.
func (n namer) Span(s *otlpdata.Span) error {
	if s.Name != "" {
		return n.Visitor.Span(s)
	}
	named := *s
	named.Name, named.Raw = s.Operation(), nil
	return n.Visitor.Span(&named)
}

// errCut ends the walk of a truncated trace.
var errCut = errors.New("trace is cut")

// cutter passes on the first spans of a trace. The first of them gets a warning.
type cutter struct {
	otlpdata.Visitor
	left, limit int
	attributes  []otlpdata.KeyValue
}

// Span passes on a span until the limit is reached.
func (c *cutter) Span(s *otlpdata.Span) error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	if c.left != c.limit-1 {
		return c.Visitor.Span(s)
	}
	first := *s
	first.Raw = nil
	first.Attributes = addWarnings(append(c.attributes, s.Attributes...),
		[]string{fmt.Sprintf("trace has more than %d spans, showing first %d spans only", c.limit, c.limit)})
	return c.Visitor.Span(&first)
}
