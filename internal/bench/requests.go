package bench

import "iter"

// Request is one encoded ExportTraceServiceRequest.
type Request struct {
	Resource int // index in Dataset.Resources: all spans are of one
	Spans    int
	Body     []byte
}

// Requests ranges over the requests of the first Traces(spans) traces, complete: as an SDK's batches, each holds spans of one resource,
// perRequest of them, but for the last one of each resource.
func (d *Dataset) Requests(spans, perRequest int) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		pending := make([]group, len(d.resources))
		for i, done := 0, 0; done < spans; i++ {
			trace := d.Trace(i)
			done += len(trace)
			for _, s := range trace {
				g := &pending[s.Resource]
				g.add(&s)
				if g.spans == perRequest && !yield(d.flush(g, s.Resource)) {
					return
				}
			}
		}
		for i := range pending {
			if pending[i].spans > 0 && !yield(d.flush(&pending[i], i)) {
				return
			}
		}
	}
}

// group collects the spans of one resource, encoded, by scope.
type group struct {
	scopes [scopeCount][]byte
	spans  int
}

func (g *group) add(s *Span) {
	g.scopes[s.Scope] = appendMessage(g.scopes[s.Scope], 2, encodeSpan(s))
	g.spans++
}

func (d *Dataset) flush(g *group, resource int) Request {
	content := appendMessage(nil, 1, appendAttributes(nil, 1, d.resources[resource].Attributes))
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
	return r
}
