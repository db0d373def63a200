package storequery

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

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
