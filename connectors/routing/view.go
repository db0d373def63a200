package routing

import (
	"context"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// selection says for each span of a batch, in its order, whether it is selected.
type selection []bool

// newSelection returns a selection of all spans.
func newSelection(spans int) selection {
	s := make(selection, spans)
	for i := range s {
		s[i] = true
	}
	return s
}

func (s selection) add(o selection) {
	for i, is := range o {
		s[i] = s[i] || is
	}
}

func (s selection) remove(o selection) {
	for i, is := range o {
		s[i] = s[i] && !is
	}
}

func (s selection) len() (n int) {
	for _, is := range s {
		if is {
			n++
		}
	}
	return n
}

// view is a batch on which conditions are evaluated. It decodes spans when they are needed.
type view struct{ batch *otlpdata.Batch }

// met returns the spans of a selection that meet a condition. failed is called with evaluation
// errors; it returns the error if the batch fails because of it.
func (v *view) met(ctx context.Context, c *condition, of selection, failed func(error) error) (selection, error) {
	out := make(selection, len(of))
	if of.len() == 0 {
		return out, nil
	}
	if c.request != nil {
		if c.request(v.batch.Meta().Metadata) {
			copy(out, of)
		}
		return out, nil
	}
	td, err := v.batch.Traces()
	if err != nil {
		return nil, err
	}
	at := 0
	for _, rs := range td.ResourceSpans().All() {
		from := at
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if c.span != nil && of[at] {
					met, err := c.span(ctx, rs, ss, s)
					if err := failed(err); err != nil {
						return nil, err
					}
					out[at] = met && err == nil
				}
				at++
			}
		}
		if c.resource != nil && of[from:at].len() > 0 {
			met, err := c.resource(ctx, rs)
			if err := failed(err); err != nil {
				return nil, err
			}
			if met && err == nil {
				copy(out[from:at], of[from:at])
			}
		}
	}
	return out, nil
}

// part returns the selected spans, or the batch itself if all are selected.
func (v *view) part(spans selection) (*otlpdata.Batch, error) {
	if spans.len() == len(spans) {
		return v.batch, nil
	}
	return v.batch.Edit(func(td ptrace.Traces) error {
		at := 0
		td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
			rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
				ss.Spans().RemoveIf(func(ptrace.Span) bool {
					at++
					return !spans[at-1]
				})
				return ss.Spans().Len() == 0
			})
			return rs.ScopeSpans().Len() == 0
		})
		return nil
	})
}
