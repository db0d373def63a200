package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// joinedFaults are components that are correct for batches of one chunk. They lose, change or
// repeat spans of joined batches.
func joinedFaults() []fault {
	const check = "joined batches arrive whole"
	return []fault{
		{"exporter sends only the first chunk", sending(func(_ *otlpdata.Batch, chunks [][]byte) [][]byte { return chunks[:1] }),
			check, "did not arrive"},
		{"exporter sends only the last chunk", sending(func(_ *otlpdata.Batch, chunks [][]byte) [][]byte { return chunks[len(chunks)-1:] }),
			check, "did not arrive"},
		{"exporter takes a chunk without spans for the end", sending(func(_ *otlpdata.Batch, chunks [][]byte) [][]byte {
			if end := slices.IndexFunc(chunks, func(c []byte) bool { return len(c) == 0 }); end >= 0 {
				return chunks[:end]
			}
			return chunks
		}), check, "did not arrive"},
		{"exporter sends at most 16 chunks", sending(func(_ *otlpdata.Batch, chunks [][]byte) [][]byte { return chunks[:min(16, len(chunks))] }),
			check, "did not arrive"},
		{"exporter resends a chunk that fills its buffer", sending(func(_ *otlpdata.Batch, chunks [][]byte) [][]byte {
			if len(chunks) > 6 {
				return append(chunks, chunks[5])
			}
			return chunks
		}), check, "arrived 2 times"},
		{"exporter reads all chunks into one buffer", sending(func(_ *otlpdata.Batch, chunks [][]byte) (out [][]byte) {
			for range chunks {
				out = append(out, chunks[len(chunks)-1])
			}
			return out
		}), check, "did not arrive"},
		{"exporter sends all spans with the first resource", editing(func(td ptrace.Traces) {
			for _, rs := range td.ResourceSpans().All() {
				td.ResourceSpans().At(0).Resource().CopyTo(rs.Resource())
			}
		}), check, "resource attributes: sent"},
		{"exporter sends all spans with the first scope", editing(func(td ptrace.Traces) {
			for _, rs := range td.ResourceSpans().All() {
				td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().CopyTo(rs.ScopeSpans().At(0).Scope())
			}
		}), check, "scope name: sent"},
		{"exporter loses the links of later chunks", editing(func(td ptrace.Traces) {
			for i, rs := range td.ResourceSpans().All() {
				if i > 1 {
					rs.ScopeSpans().At(0).Spans().At(0).Links().RemoveIf(func(ptrace.SpanLink) bool { return true })
				}
			}
		}), check, "links: sent"},
		{"exporter ignores errors of all chunks but the last", eachChunk(func(errs []error) error { return errs[len(errs)-1] }),
			"concurrent callers", "acknowledged, but"},
		{"exporter resends all chunks if one was refused", eachChunk(func(errs []error) error { return errors.Join(errs...) }),
			"concurrent callers", "would be resent"},
		{"exporter counts rejected spans of one chunk only", eachChunk(func(errs []error) error {
			return errs[max(slices.IndexFunc(errs, func(err error) bool { return err != nil }), 0)]
		}), "some spans are rejected", "rejected, but the sender got"},
		{"processor counts the spans of the first chunk", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
			first, err := otlpdata.FromOTLP(collect(b)[0], b.Meta(), otlpdata.Limits{})
			if err != nil {
				return err
			}
			encoded, err := b.Encoded()
			return errors.Join(err, next.Consume(ctx, otlpdata.FromStored(encoded, b.Meta(), first.Services()...)))
		}), check, "but Len returns"},
		{"processor moves all spans to the first chunk", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
			changed, err := b.Edit(func(td ptrace.Traces) error {
				for i, rs := range td.ResourceSpans().All() {
					if i > 0 {
						rs.ScopeSpans().At(0).Spans().MoveAndAppendTo(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans())
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			return next.Consume(ctx, changed)
		}), check, "scope name: sent"},
		{"processor panics on a chunk without spans", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
			for _, c := range collect(b) {
				_ = c[0]
			}
			return next.Consume(ctx, b)
		}), check, "internal error"},
		{"store keeps only the first chunk", store(func() *firstChunkStore { return &firstChunkStore{} }), check, "did not arrive"},
	}
}

func collect(b *otlpdata.Batch) [][]byte {
	chunks, err := b.Chunks()
	if err != nil {
		panic(err)
	}
	return slices.Collect(chunks)
}

// sending returns a subject for an exporter that sends the chunks that pick returns, as one
// request.
func sending(pick func(b *otlpdata.Batch, chunks [][]byte) [][]byte) *subject {
	return sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		request, err := otlpdata.FromOTLP(bytes.Join(pick(b, collect(b)), nil), b.Meta(), otlpdata.Limits{})
		if err != nil {
			return pipeline.Permanent(err)
		}
		return hop.Consume(ctx, request)
	})
}

// eachChunk returns a subject for an exporter that sends each chunk as a request of its own.
func eachChunk(outcome func(errs []error) error) *subject {
	return sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		var errs []error
		for _, c := range collect(b) {
			request, err := otlpdata.FromOTLP(c, b.Meta(), otlpdata.Limits{})
			if err != nil {
				return pipeline.Permanent(err)
			}
			errs = append(errs, hop.Consume(ctx, request))
		}
		return outcome(errs)
	})
}

// editing returns a subject for an exporter that sends changed spans.
func editing(change func(td ptrace.Traces)) *subject {
	return sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		changed, err := b.Edit(func(td ptrace.Traces) error {
			td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool { return rs.ScopeSpans().At(0).Spans().Len() == 0 })
			change(td)
			return nil
		})
		if err != nil {
			return pipeline.Permanent(err)
		}
		return hop.Consume(ctx, changed)
	})
}

// eachSpan is editing for an exporter that changes each span.
func eachSpan(change func(s ptrace.Span)) *subject {
	return editing(func(td ptrace.Traces) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					change(s)
				}
			}
		}
	})
}

// firstChunkStore is a store that reads one chunk of each batch.
type firstChunkStore struct{ memoryStore }

func (s *firstChunkStore) Consume(ctx context.Context, b *otlpdata.Batch) error {
	first, err := otlpdata.FromOTLP(collect(b)[0], b.Meta(), otlpdata.Limits{})
	if err != nil {
		return err
	}
	return s.memoryStore.Consume(ctx, first)
}
