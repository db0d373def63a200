package remotestore

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Split gives the spans of the segments of a batch to send as ExportTraceServiceRequests (which TracesData are, too) of about limit bytes at
// most, in their order. A span that is larger by itself makes one of its own; no spans make no request. A request belongs to send, an error
// of which ends the work and is returned.
func Split(segments [][]byte, limit int, send func(request []byte, spans int) error) error {
	s := splitter{limit: limit, send: send}
	for _, segment := range segments {
		if err := otlpdata.Walk(segment, &s); err != nil {
			return err
		}
	}
	return s.finish()
}

// splitter puts spans together again until they are too many bytes.
type splitter struct {
	limit int
	send  func([]byte, int) error

	resource otlpdata.Resource // Raw and SchemaURL only, as of scope
	scope    otlpdata.Scope
	pending  [][]byte // spans of the scope that are not in out yet
	size     int      // of pending
	out      []byte
	spans    int // in out and pending
}

// fieldCost is what a field takes at most besides its content, in bytes.
const fieldCost = 6

// Resource makes the resource the one of the spans that follow.
func (s *splitter) Resource(r *otlpdata.Resource) error {
	s.write()
	s.resource = otlpdata.Resource{Raw: r.Raw, SchemaURL: r.SchemaURL}
	return nil
}

// Scope makes the scope the one of the spans that follow.
func (s *splitter) Scope(sc *otlpdata.Scope) error {
	s.write()
	s.scope = otlpdata.Scope{Raw: sc.Raw, SchemaURL: sc.SchemaURL}
	return nil
}

// Span adds the span, to a request of its own where it would make the open one too large.
func (s *splitter) Span(sp *otlpdata.Span) error {
	size := len(sp.Raw) + fieldCost
	if s.spans > 0 && len(s.out)+s.head()+s.size+size > s.limit {
		if err := s.finish(); err != nil {
			return err
		}
	}
	s.pending = append(s.pending, sp.Raw)
	s.size += size
	s.spans++
	return nil
}

// head is what the resource and the scope take.
func (s *splitter) head() int {
	return len(s.resource.Raw) + len(s.resource.SchemaURL) + len(s.scope.Raw) + len(s.scope.SchemaURL) + 6*fieldCost
}

func (s *splitter) write() {
	if len(s.pending) == 0 {
		return
	}
	if s.out == nil {
		s.out = make([]byte, 0, s.head()+s.size)
	}
	s.out = otlpdata.AppendResourceSpans(s.out, &s.resource, &s.scope, s.pending...)
	s.pending, s.size = s.pending[:0], 0
}

func (s *splitter) finish() error {
	s.write()
	if s.spans == 0 {
		return nil
	}
	out, spans := s.out, s.spans
	s.out, s.spans = nil, 0
	return s.send(out, spans)
}
