package pipelinetest

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// form is a way in which spans become a Batch. build does not change td.
type form struct {
	name  string
	build builder
}

type builder = func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error)

// forms returns the forms of a Batch that receivers and the batch processor make. A component must
// treat them alike.
func forms() []form {
	return append([]form{
		{"objects", func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
			return otlpdata.FromTraces(copyOf(td), meta), nil
		}},
		{"one chunk", encode},
	}, joinedForms()...)
}

// joinedForms returns the forms with several chunks. The first chunk has only some of the spans,
// possibly none, and its resource is not the resource of all spans.
func joinedForms() []form {
	return []form{
		{"joined, two chunks", func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
			spans := singles(td)
			half := (len(spans) + 1) / 2
			return join(meta, encode, merged(spans[:half]), merged(spans[half:]))
		}},
		{"joined, a chunk for each span", func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
			return join(meta, encode, singles(td)...)
		}},
		{"joined, with chunks without spans", func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
			parts := slices.Insert(singles(td), 1, ptrace.NewTraces(), withoutSpans())
			return join(meta, encode, append([]ptrace.Traces{ptrace.NewTraces()}, append(parts, withoutSpans())...)...)
		}},
		{"joined objects", func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
			objects := func(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
				return otlpdata.FromTraces(td, meta), nil
			}
			return join(meta, objects, singles(td)...)
		}},
	}
}

// emptyForms returns forms without spans. They ignore td.
func emptyForms() []form {
	all := []form{{"joined chunks without spans", func(_ ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
		return join(meta, encode, ptrace.NewTraces(), withoutSpans(), ptrace.NewTraces())
	}}}
	for _, f := range forms()[:2] {
		for name, td := range map[string]ptrace.Traces{"nothing": ptrace.NewTraces(), "a resource without spans": withoutSpans()} {
			all = append(all, form{f.name + " of " + name, func(_ ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
				return f.build(td, meta)
			}})
		}
	}
	return all
}

// encode returns an encoded Batch of one chunk.
func encode(td ptrace.Traces, meta otlpdata.Meta) (*otlpdata.Batch, error) {
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return otlpdata.FromOTLP(enc, meta, otlpdata.Limits{})
}

// join returns a Batch that joins parts, as made by the batch processor.
func join(meta otlpdata.Meta, build builder, parts ...ptrace.Traces) (*otlpdata.Batch, error) {
	var batches []*otlpdata.Batch
	for _, p := range parts {
		b, err := build(p, meta)
		if err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	return otlpdata.Concat(batches...)
}

// singles returns each span of td with copies of its resource and scope.
func singles(td ptrace.Traces) (parts []ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				part := ptrace.NewTraces()
				to := part.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(to.Resource())
				to.SetSchemaUrl(rs.SchemaUrl())
				scope := to.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(scope.Scope())
				scope.SetSchemaUrl(ss.SchemaUrl())
				span.CopyTo(scope.Spans().AppendEmpty())
				parts = append(parts, part)
			}
		}
	}
	return parts
}

func merged(parts []ptrace.Traces) ptrace.Traces {
	all := ptrace.NewTraces()
	for _, p := range parts {
		p.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return all
}

// withoutSpans returns a resource and a scope without spans.
func withoutSpans() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "without spans")
	rs.ScopeSpans().AppendEmpty().Scope().SetName("without spans")
	return td
}
