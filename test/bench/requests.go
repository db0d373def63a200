package bench

import (
	"iter"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Spans returns the number of spans of a benchmark: normal, or a tenth with -short, as in `make
// bench-once`, which checks that each benchmark runs.
func Spans(normal int) int {
	if testing.Short() {
		return normal / 10
	}
	return normal
}

// Request is one encoded ExportTraceServiceRequest.
type Request struct {
	Resource int // index in Dataset.Resources; all spans have the same resource
	Spans    int
	Body     []byte
}

// Requests iterates over the requests with all spans of the first Traces(spans) traces. Like the
// batches of an SDK, each request holds perRequest spans of one resource. The last request of each
// resource may hold fewer.
func (d *Dataset) Requests(spans, perRequest int) iter.Seq[Request] {
	return d.requests(spans, perRequest, edits{})
}

// edits are functions that change what is sent. A nil function changes nothing.
type edits struct {
	// span changes span n, counted in the order of traces.
	span func(n int, s *Span)
	// resource returns the attributes of the resource of request n. It must not change its
	// argument.
	resource func(n int, of []otlpdata.KeyValue) []otlpdata.KeyValue
}

func (d *Dataset) requests(spans, perRequest int, e edits) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		q := requests{Dataset: d, edits: e, pending: make([]group, len(d.resources))}
		for i, done := 0, 0; done < spans; i++ {
			for _, s := range d.Trace(i) {
				if e.span != nil {
					e.span(done, &s)
				}
				done++
				g := &q.pending[s.Resource]
				g.add(&s)
				if g.spans == perRequest && !yield(q.flush(s.Resource)) {
					return
				}
			}
		}
		for i := range q.pending {
			if q.pending[i].spans > 0 && !yield(q.flush(i)) {
				return
			}
		}
	}
}

// requests collects spans until there are enough for a request.
type requests struct {
	*Dataset
	edits
	pending []group // by resource
	made    int     // number of requests so far
}

// group holds the encoded spans of one resource by scope.
type group struct {
	scopes [scopeCount][]byte
	spans  int
}

func (g *group) add(s *Span) {
	g.scopes[s.Scope] = appendMessage(g.scopes[s.Scope], 2, encodeSpan(s))
	g.spans++
}

func (q *requests) flush(resource int) Request {
	g := &q.pending[resource]
	attributes := q.resources[resource].Attributes
	if q.resource != nil {
		attributes = q.resource(q.made, attributes)
	}
	content := appendMessage(nil, 1, appendAttributes(nil, 1, attributes))
	for i, spans := range g.scopes {
		if len(spans) == 0 {
			continue
		}
		of := Scopes()[i]
		scope := appendMessage(nil, 1, appendText(appendText(nil, 1, of.Name), 2, of.Version))
		content = appendMessage(content, 2, append(scope, spans...))
		g.scopes[i] = spans[:0]
	}
	r := Request{Resource: resource, Spans: g.spans, Body: appendMessage(nil, 1, content)}
	g.spans = 0
	q.made++
	return r
}
