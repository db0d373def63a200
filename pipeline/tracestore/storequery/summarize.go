package storequery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Summarize returns the summary of the trace with an id from the spans in batches; duplicates count
// once. It is the reference implementation for stores that compute summaries without reading spans.
// An error means that a batch cannot be read.
func Summarize(id otlpdata.TraceID, batches ...*otlpdata.Batch) (tracestore.Summary, error) {
	s := summarizer{id: id, seen: NewDedup()}
	for _, b := range batches {
		if err := tracestore.WalkSpans(b, s.add); err != nil {
			return tracestore.Summary{}, fmt.Errorf("summarizing trace %s: %w", id, err)
		}
	}
	return SummarizeSpans(id, s.spans), nil
}

type summarizer struct {
	id    otlpdata.TraceID
	seen  *Dedup
	spans []tracestore.SummarySpan
}

func (s *summarizer) add(sp tracestore.Span) error {
	if sp.TraceID != s.id || !s.seen.First(sp) {
		return nil
	}
	s.spans = append(s.spans, summarySpanOf(sp))
	return nil
}

func summarySpanOf(s tracestore.Span) tracestore.SummarySpan {
	ns, _ := s.Duration()
	return tracestore.SummarySpan{
		ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns,
		Service: s.Resource.Service, Name: s.Operation(), Failed: s.StatusCode == otlpdata.StatusError,
	}
}

// SummarizeSpans returns the summary of a trace with these spans, which must not contain
// duplicates. It sorts spans and does not retain their strings.
func SummarizeSpans(id otlpdata.TraceID, spans []tracestore.SummarySpan) tracestore.Summary {
	out := tracestore.Summary{ID: id, Spans: len(spans)}
	if len(spans) == 0 {
		return out
	}
	// In this order the first root span is the earliest, regardless of the order of arrival. Spans
	// without a start time come last: 0 - 1 is the maximum.
	slices.SortFunc(spans, func(a, b tracestore.SummarySpan) int {
		return cmp.Or(cmp.Compare(a.Start-1, b.Start-1), slices.Compare(a.ID[:], b.ID[:]),
			cmp.Compare(a.Service, b.Service), cmp.Compare(a.Name, b.Name))
	})
	out.Start = spans[0].Start
	known := make(map[otlpdata.SpanID]struct{}, len(spans))
	for i := range spans {
		known[spans[i].ID] = struct{}{}
	}
	services := make(map[string]*tracestore.ServiceSummary)
	var root, orphan *tracestore.SummarySpan
	for i := range spans {
		sp := &spans[i]
		if sp.Start > 0 || out.Start == 0 {
			out.End = max(out.End, saturatingAdd(sp.Start, sp.Duration))
		}
		svc := services[sp.Service]
		if svc == nil {
			svc = &tracestore.ServiceSummary{Name: strings.Clone(sp.Service)}
			services[svc.Name] = svc
		}
		svc.Spans++
		if sp.Failed {
			svc.Errors++
			out.Errors++
		}
		if _, stored := known[sp.Parent]; sp.Parent.IsZero() {
			root = cmp.Or(root, sp)
		} else if !stored {
			orphan = cmp.Or(orphan, sp)
			out.Orphans++
		}
	}
	first := cmp.Or(root, orphan, &spans[0])
	out.RootService, out.RootName, out.Root = strings.Clone(first.Service), strings.Clone(first.Name), first.ID
	for _, svc := range services {
		out.Services = append(out.Services, *svc)
	}
	slices.SortFunc(out.Services, func(a, b tracestore.ServiceSummary) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Hosts numbers the hosts of the spans of an outline. The zero value is ready to use. Not safe for
// concurrent use.
type Hosts struct{ numbers map[string]uint32 }

// Number returns the number of the host of a resource: from 1, or 0 if it is unknown.
func (h *Hosts) Number(r *otlpdata.Resource) uint32 {
	host := otlpdata.HostOf(r.Attributes)
	if host == "" {
		return 0
	}
	n, known := h.numbers[host]
	if !known {
		if h.numbers == nil {
			h.numbers = make(map[string]uint32)
		}
		n = uint32(len(h.numbers)) + 1
		h.numbers[strings.Clone(host)] = n
	}
	return n
}

// OutlineSpan returns the fields of a span that an outline needs. It shares strings with s. It is
// the reference implementation for Outline of [tracestore.Reader].
func (h *Hosts) OutlineSpan(s tracestore.Span) tracestore.SummarySpan {
	ns, reversed := s.Duration()
	out := tracestore.SummarySpan{
		ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Service: s.Resource.Service, Name: s.Operation(),
		Failed: s.StatusCode == otlpdata.StatusError, Reversed: reversed, Kind: s.Kind, Host: h.Number(s.Resource),
	}
	if x := (tracestore.SpanExtras{Peer: PeerOf(s.Span), Links: len(s.Links)}); x.Peer != "" || x.Links > 0 || len(s.Events) > 0 {
		for i := range s.Events {
			x.Events = append(x.Events, tracestore.SpanEvent{Time: s.Events[i].Time, Name: s.Events[i].Name})
		}
		out.Extras = &x
	}
	return out
}
