package tracestore

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Summarize returns the summary of the spans with an id in batches; duplicates count once. It is the reference for stores that know
// summaries without reading spans. The error says that a batch cannot be read.
func Summarize(id otlpdata.TraceID, batches ...*otlpdata.Batch) (Summary, error) {
	s := summarizer{id: id, seen: NewDedup(), spanIDs: make(map[otlpdata.SpanID]struct{})}
	for _, b := range batches {
		if err := WalkSpans(b, s.add); err != nil {
			return Summary{}, fmt.Errorf("summarizing trace %s: %w", id, err)
		}
	}
	return s.summary(), nil
}

type summarizer struct {
	id      otlpdata.TraceID
	seen    *Dedup
	spanIDs map[otlpdata.SpanID]struct{}
	spans   []summarySpan
}

// summarySpan is what a summary needs of a span. Its strings alias the batch.
type summarySpan struct {
	id, parent    otlpdata.SpanID
	start, end    uint64
	service, name string
	failed        bool
}

func (s *summarizer) add(sp Span) error {
	if sp.TraceID != s.id || !s.seen.First(sp) {
		return nil
	}
	s.spanIDs[sp.SpanID] = struct{}{}
	s.spans = append(s.spans, summarySpan{
		id: sp.SpanID, parent: sp.ParentID, start: sp.Start, end: mendedEnd(sp.Span),
		service: sp.Resource.Service, name: sp.Operation(), failed: sp.StatusCode == otlpdata.StatusError,
	})
	return nil
}

// mendedEnd is the start plus otlpdata.Span.Duration, or the greatest time there is.
func mendedEnd(s *otlpdata.Span) uint64 {
	ns, _ := s.Duration()
	if s.Start > math.MaxUint64-ns {
		return math.MaxUint64
	}
	return s.Start + ns
}

func (s *summarizer) summary() Summary {
	out := Summary{ID: s.id, Spans: len(s.spans)}
	if len(s.spans) == 0 {
		return out
	}
	// In this order the first root is the earliest, whatever order the spans came in.
	slices.SortFunc(s.spans, func(a, b summarySpan) int {
		return cmp.Or(cmp.Compare(a.start, b.start), slices.Compare(a.id[:], b.id[:]),
			cmp.Compare(a.service, b.service), cmp.Compare(a.name, b.name))
	})
	out.Start = s.spans[0].start
	services := make(map[string]*ServiceSummary)
	var root, orphan *summarySpan
	for i := range s.spans {
		sp := &s.spans[i]
		out.End = max(out.End, sp.end)
		svc := services[sp.service]
		if svc == nil {
			svc = &ServiceSummary{Name: strings.Clone(sp.service)}
			services[sp.service] = svc
		}
		svc.Spans++
		if sp.failed {
			svc.Errors++
			out.Errors++
		}
		if _, known := s.spanIDs[sp.parent]; sp.parent.IsZero() {
			root = cmp.Or(root, sp)
		} else if !known {
			orphan = cmp.Or(orphan, sp)
			out.Orphans++
		}
	}
	first := cmp.Or(root, orphan, &s.spans[0])
	out.RootService, out.RootName = strings.Clone(first.service), strings.Clone(first.name)
	for _, svc := range services {
		out.Services = append(out.Services, *svc)
	}
	slices.SortFunc(out.Services, func(a, b ServiceSummary) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
