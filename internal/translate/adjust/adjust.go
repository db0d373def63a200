// Package adjust prepares the spans of a trace for people: it corrects what is known to be wrong or confusing, says so in warnings, and
// changes nothing that is stored. What shows traces, over HTTP and gRPC, goes over them with [Walk].
//
// In this order:
//  1. duplicates, which say the same down to the order of attributes, are left out;
//  2. a server span that shares its id with a client span, as Zipkin's do, gets an id of its own and becomes its child;
//  3. clocks that disagree between hosts are evened out, or the difference is told (Options.MaxClockSkew);
//  4. IPv4 addresses that came as numbers are written out, and what names the tracing library moves from spans to their resource;
//  5. links that lead to no trace are removed;
//  6. attributes are sorted by key.
//
// Warnings travel in the attribute [WarningsKey] of their span. The stored trace, with the times as they were recorded, is to be had with
// Options.Raw.
package adjust

import (
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// WarningsKey is the attribute, an array of strings, that carries the warnings of a span.
const WarningsKey = "@jaeger@warnings"

// Options say how a trace is shown.
type Options struct {
	// Raw leaves spans as they are stored.
	Raw bool
	// MaxSpans is how many spans of the trace are shown; 0 shows all. A trace that has more is cut, with a warning on its first span, and is
	// otherwise left as it is stored: without all spans there is nothing to correct the others by.
	MaxSpans int
	// MaxClockSkew is by how much times may be moved to even out clocks. 0 moves none; warnings say what would have been done.
	MaxClockSkew time.Duration
}

// Walk calls v for the spans of one trace, which the batches hold in order, as otlpdata.Walk does. Adjusted resources, scopes and spans
// have no Raw; a resource or scope is there only for spans that follow, and may come repeatedly. An error of v ends the walk and is
// returned; another one says that a batch cannot be read. Unless the trace is shown raw, that comes before v is called at all.
func Walk(opt Options, v otlpdata.Visitor, pieces ...*otlpdata.Batch) error {
	spans := count(pieces)
	switch {
	case opt.cuts(spans):
		c := &cutter{Visitor: v, left: opt.MaxSpans, most: opt.MaxSpans}
		if err := walkAll(pieces, c); !errors.Is(err, errCut) {
			return err
		}
		return nil
	case opt.Raw:
		return walkAll(pieces, v)
	}
	p := plans.Get().(*plan)
	defer p.release()
	if err := p.make(opt, spans, pieces); err != nil {
		return fmt.Errorf("reading a trace: %w", err)
	}
	p.emit.begin(p, v)
	return walkAll(pieces, &p.emit)
}

// AsStored reports whether Walk shows the trace as it is stored: because that is asked for, or because the trace is cut.
func (o Options) AsStored(pieces ...*otlpdata.Batch) bool { return o.Raw || o.cuts(count(pieces)) }

func (o Options) cuts(spans int) bool { return o.MaxSpans > 0 && spans > o.MaxSpans }

func count(pieces []*otlpdata.Batch) (spans int) {
	for _, b := range pieces {
		spans += b.Len()
	}
	return spans
}

func walkAll(pieces []*otlpdata.Batch, v otlpdata.Visitor) error {
	for _, b := range pieces {
		segments, err := b.Segments()
		if err != nil {
			return err
		}
		for _, s := range segments {
			if err := otlpdata.Walk(s, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// errCut ends a walk where the trace is cut.
var errCut = errors.New("trace is cut")

// cutter passes on the first spans, and a warning with the very first.
type cutter struct {
	otlpdata.Visitor
	left, most int
	attributes []otlpdata.KeyValue
}

// Span passes on a span.
func (c *cutter) Span(s *otlpdata.Span) error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	if c.left != c.most-1 {
		return c.Visitor.Span(s)
	}
	first := *s
	first.Raw = nil
	first.Attributes = addWarnings(append(c.attributes, s.Attributes...),
		[]string{fmt.Sprintf("trace has more than %d spans, showing first %d spans only", c.most, c.most)})
	return c.Visitor.Span(&first)
}
