package find

import (
	"cmp"
	"context"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// FindSpans implements tracestore.Reader. It builds each span, but does not encode it.
func (f *Finder) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (tracestore.FoundSpans, error) {
	s := f.store.BeginQuery(ctx)
	defer s.Release()
	m := spanMatcher{traceReader: newTraceReader(s, tenant), matcher: c.Matcher(ctx), origins: make(map[tableOrigin]bool)}
	err := m.eachPart(ctx, id, func(src int, t *rows.Tables, b source.Block, list []int32) error {
		for _, row := range list {
			err := m.examine(src, t, b, int(row))
			if err = s.NoteDamage(src, scan.TracePart(id), 1, err); err != nil {
				return err
			}
		}
		return cmp.Or(m.reserve(), ctx.Err())
	})
	if err != nil {
		return tracestore.FoundSpans{}, err
	}
	return tracestore.FoundSpans{IDs: m.ids(), Spans: m.examined}, s.Damaged()
}

// spanMatcher collects the spans of a trace that match.
type spanMatcher struct {
	*traceReader
	matcher  *tracestore.SpanMatcher
	origins  map[tableOrigin]bool // whether they have the text
	matched  []spanKey
	examined int
	reserved int64 // bytes
}

func (m *spanMatcher) examine(src int, t *rows.Tables, b source.Block, row int) error {
	h := &m.head
	span, err := scan.Assemble(t, b, row, h, &m.cells, &m.assembler)
	if err != nil {
		return err
	}
	m.examined++
	at := tableOrigin{src, h.Resource, t.Shapes[h.Shape].Scope}
	s := tracestore.Span{Resource: &t.Resources[at.resource].Resource, Scope: &t.Scopes[at.scope], Span: span}
	hasText, known := m.origins[at]
	if !known {
		hasText = m.matcher.OriginHasText(s.Resource, s.Scope)
		m.origins[at] = hasText
	}
	if m.matcher.MatchesIn(s, hasText) {
		m.matched = append(m.matched, spanKey{h.Start, h.SpanID})
	}
	return nil
}

// reserve reserves the memory of the matches.
func (m *spanMatcher) reserve() error {
	size := int64(cap(m.matched)) * int64(unsafe.Sizeof(spanKey{})+unsafe.Sizeof(otlpdata.SpanID{}))
	err := m.session.Memory.Grow(size - m.reserved)
	if err == nil {
		m.reserved = size
	}
	return err
}

// ids returns the ids of the matches without duplicates.
func (m *spanMatcher) ids() []otlpdata.SpanID {
	slices.SortFunc(m.matched, spanKey.compare)
	m.matched = slices.Compact(m.matched)
	ids := make([]otlpdata.SpanID, len(m.matched))
	for i := range m.matched {
		ids[i] = m.matched[i].id
	}
	return ids
}
