package delivery_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// requests are requests of the data set that are sent again and again as new traces of the current
// time, because making new ones takes as much CPU time as storing them.
type requests struct {
	templates []template
	next      int
}

// template is a request, and where its spans have what changes.
type template struct {
	bench.Request
	spans []positions
}

// positions are the offsets of the trace id, start and end of a span.
type positions struct{ trace, start, end int }

// newRequests returns requests of 512 spans.
func newRequests(tb testing.TB) *requests {
	tb.Helper()
	const spans, perRequest = 100_000, 512
	r := &requests{}
	for q := range bench.New(1, time.Unix(1, 0)).Requests(spans, perRequest) {
		f := &finder{body: q.Body}
		if err := otlpdata.Walk(q.Body, f); err != nil {
			tb.Fatal(err)
		}
		r.templates = append(r.templates, template{q, f.spans})
	}
	return r
}

// fresh returns a request with spans that were not sent before.
func (r *requests) fresh() bench.Request {
	t := r.templates[r.next%len(r.templates)]
	lap := uint64(r.next / len(r.templates))
	r.next++
	body, now := bytes.Clone(t.Body), uint64(time.Now().UnixNano())
	for _, p := range t.spans {
		id := body[p.trace : p.trace+8]
		binary.LittleEndian.PutUint64(id, binary.LittleEndian.Uint64(id)+lap*0x9e3779b97f4a7c15)
		start, end := body[p.start:p.start+8], body[p.end:p.end+8]
		duration := binary.LittleEndian.Uint64(end) - binary.LittleEndian.Uint64(start)
		binary.LittleEndian.PutUint64(start, now-duration)
		binary.LittleEndian.PutUint64(end, now)
	}
	return bench.Request{Resource: t.Resource, Spans: t.Spans, Body: body}
}

// finder finds the positions of spans in a request.
type finder struct {
	body  []byte
	spans []positions
	at    int
}

func (*finder) Resource(*otlpdata.Resource) error { return nil }

func (*finder) Scope(*otlpdata.Scope) error { return nil }

func (f *finder) Span(s *otlpdata.Span) error {
	raw := f.find(s.Raw) // links before it may have the same ids
	end := f.at
	f.at = raw
	trace := f.find(s.TraceID[:])
	start := f.find(binary.LittleEndian.AppendUint64(nil, s.Start))
	f.spans = append(f.spans, positions{trace, start, f.find(binary.LittleEndian.AppendUint64(nil, s.End))})
	f.at = end
	return nil
}

// find returns the position of the next occurrence of bytes, and continues after it.
func (f *finder) find(what []byte) int {
	i := bytes.Index(f.body[f.at:], what)
	if i < 0 {
		panic("the walker found what is not in the request")
	}
	f.at += i + len(what)
	return f.at - len(what)
}

// TestFresh checks that requests of the endurance test have new traces of the current time in every
// round, and that the spans of a trace stay together.
func TestFresh(t *testing.T) {
	r := newRequests(t)
	before := time.Now()
	traces := [2]traceCollector{{}, {}}
	for lap := range traces {
		for range r.templates {
			q := r.fresh()
			if err := otlpdata.Walk(q.Body, traces[lap]); err != nil {
				t.Fatal(err)
			}
			if err := otlpdata.Walk(q.Body, endsAfter{t, before}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(traces[0]) != len(traces[1]) {
		t.Errorf("%d traces, then %d", len(traces[0]), len(traces[1]))
	}
	for id := range traces[0] {
		if traces[1][id] != nil {
			t.Fatalf("trace %s was sent twice", id)
		}
	}
}

// endsAfter checks that spans end after a time.
type endsAfter struct {
	t    *testing.T
	time time.Time
}

func (endsAfter) Resource(*otlpdata.Resource) error { return nil }

func (endsAfter) Scope(*otlpdata.Scope) error { return nil }

func (e endsAfter) Span(s *otlpdata.Span) error {
	if s.End < uint64(e.time.UnixNano()) || s.Start > s.End {
		e.t.Errorf("span %s from %d to %d, want an end after %d", s.SpanID, s.Start, s.End, e.time.UnixNano())
	}
	return nil
}
