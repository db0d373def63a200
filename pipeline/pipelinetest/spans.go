package pipelinetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Content of the requests.
const (
	spansPerRequest    = 6
	spansPerResource   = 3
	spansPerScope      = 2
	tracesPerRequest   = 2
	serviceName        = "pipelinetest"
	startNanos         = 1_700_000_000_000_000_000
	nanosBetweenStarts = 1_000_123
)

// request is a number of spans of two traces.
type request struct {
	number int
	form   form // of the Batch
	traces ptrace.Traces
	names  []string       // of the spans that must arrive
	want   func() []named // what must arrive
}

// String names the request in messages.
func (r request) String() string {
	if r.form.name == "" {
		return fmt.Sprintf("request %d", r.number)
	}
	return fmt.Sprintf("request %d (%s)", r.number, r.form.name)
}

// request returns a request with span names that are unique in the check. Its Batches use the forms
// in turn.
func (s *suite) request() request {
	var f form
	if s.sub.isConsumer() {
		all := forms()
		s.mu.Lock()
		f = all[s.made%len(all)]
		s.mu.Unlock()
	}
	return s.requestOf(f, spansPerRequest)
}

// requestOf is like request with a given form and number of spans.
func (s *suite) requestOf(f form, spans int) request {
	s.mu.Lock()
	s.made++
	r := request{number: s.made, form: f, traces: ptrace.NewTraces()}
	s.mu.Unlock()
	for i := range spans {
		r.addSpan(i)
	}
	want := copyOf(r.traces)
	if s.sub.expect != nil {
		s.sub.expect(want)
	}
	if s.sub.normalize != nil {
		s.sub.normalize(want)
	}
	for _, rs := range want.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				r.names = append(r.names, span.Name())
			}
		}
	}
	// Most requests under load are refused, and then only their names matter.
	r.want = func() []named { return s.sub.contents(want, s.meta(r)) }
	return r
}

// addSpan adds span i. Its name, ids, times, attributes, events and links, and the attributes of
// its resource and scope occur only once.
func (r request) addSpan(i int) {
	if i%spansPerResource == 0 {
		rs := r.traces.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", serviceName)
		rs.Resource().Attributes().PutStr("host.name", fmt.Sprintf("host-%d-%d", r.number, i))
		rs.Resource().SetDroppedAttributesCount(1)
		rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.21.0")
	}
	rs := r.traces.ResourceSpans().At(i / spansPerResource)
	if i%spansPerResource%spansPerScope == 0 {
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(fmt.Sprintf("scope-%d-%d", r.number, i))
		ss.Scope().SetVersion("1.2")
		ss.Scope().Attributes().PutStr("scope.attribute", fmt.Sprint(i))
		ss.Scope().SetDroppedAttributesCount(2)
		ss.SetSchemaUrl("https://opentelemetry.io/schemas/1.22.0")
	}
	r.fill(rs.ScopeSpans().At(rs.ScopeSpans().Len()-1).Spans().AppendEmpty(), i)
}

// fill sets all fields of span i.
func (r request) fill(s ptrace.Span, i int) {
	name := fmt.Sprintf("span-%d-%d", r.number, i)
	s.SetName(name)
	s.SetTraceID(traceID(1, uint64(r.number*tracesPerRequest+i%tracesPerRequest)))
	s.SetSpanID(spanID(i + 1))
	if i >= tracesPerRequest {
		s.SetParentSpanID(spanID(i + 1 - tracesPerRequest))
	}
	s.TraceState().FromRaw(fmt.Sprintf("vendor=%d", i))
	s.SetFlags(0x301)
	s.SetKind(ptrace.SpanKind(1 + i%5))
	start := pcommon.Timestamp(startNanos + (r.number*spansPerRequest+i)*nanosBetweenStarts)
	s.SetStartTimestamp(start)
	s.SetEndTimestamp(start + 500_321)
	if s.Status().SetCode(ptrace.StatusCodeOk); i%2 == 1 {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage("failed " + name)
	}
	fillAttributes(s.Attributes(), name)
	s.SetDroppedAttributesCount(3)
	s.SetDroppedEventsCount(4)
	s.SetDroppedLinksCount(5)
	for j := range 2 {
		e := s.Events().AppendEmpty()
		e.SetName(fmt.Sprintf("event %d", j))
		e.SetTimestamp(start + pcommon.Timestamp(100_111*(j+1)))
		e.Attributes().PutStr("event.attribute", fmt.Sprint(name, j))
		e.SetDroppedAttributesCount(6)
		l := s.Links().AppendEmpty()
		l.SetTraceID(traceID(2, uint64(r.number)))
		l.SetSpanID(spanID(100*i + j + 1))
		l.TraceState().FromRaw(fmt.Sprintf("linked=%d", j))
		l.SetFlags(0x101)
		l.Attributes().PutStr("link.attribute", fmt.Sprint(name, j))
		l.SetDroppedAttributesCount(7)
	}
}

// fillAttributes adds an attribute of each type.
func fillAttributes(m pcommon.Map, name string) {
	m.PutStr("request", name)
	m.PutInt("int", -1<<53-1)
	m.PutDouble("double", 0.1)
	m.PutBool("bool", true)
	m.PutEmptyBytes("bytes").FromRaw([]byte{0, 0xff, 'b'})
	list := m.PutEmptySlice("list")
	list.AppendEmpty().SetStr("a")
	list.AppendEmpty().SetInt(2)
	m.PutEmptyMap("map").PutStr("key", name)
	m.PutStr("empty", "")
}

func traceID(high, low uint64) pcommon.TraceID {
	return pcommon.TraceID(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, high<<56), low))
}

func spanID(n int) pcommon.SpanID {
	return pcommon.SpanID(binary.BigEndian.AppendUint64(nil, 1<<56|uint64(n)))
}

func copyOf(td ptrace.Traces) ptrace.Traces {
	c := ptrace.NewTraces()
	td.CopyTo(c)
	return c
}

// meta returns the metadata of the request.
func (s *suite) meta(r request) otlpdata.Meta {
	if !s.sub.isConsumer() {
		return otlpdata.Meta{} // senders of the suite have no tenant
	}
	return otlpdata.Meta{Tenant: r.tenant(), Format: "pipelinetest", Transport: "none", Received: time.Unix(0, startNanos)}
}

// batch returns the request as a Batch and takes a snapshot of it.
func (s *suite) batch(r request) *otlpdata.Batch {
	s.Helper()
	b, err := r.form.build(r.traces, s.meta(r))
	if err != nil {
		s.Fatalf("%s: %v", r, err)
	}
	same, err := r.form.build(r.traces, s.meta(r)) // decoding b here would hide modifications by the component
	if err != nil {
		s.Fatalf("%s: %v", r, err)
	}
	before, err := imageOf(same)
	if err != nil {
		s.Fatalf("%s: %v", r, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, snapshot{b, before})
	return b
}

// Tenants returns the tenants of the spans, which the suite uses in turn. The first one is the
// default tenant.
func Tenants() []string { return []string{"", "tenant-a", "tenant-b"} }

func (r request) tenant() string { return Tenants()[r.number%len(Tenants())] }

// image is the content of a Batch in both forms.
type image struct{ encoded, decoded []byte }

// imageOf copies the content of b.
func imageOf(b *otlpdata.Batch) (image, error) {
	encoded, err := b.Encoded()
	if err != nil {
		return image{}, err
	}
	td, err := b.Traces()
	if err != nil {
		return image{}, err
	}
	dec, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return image{}, fmt.Errorf("encoding the objects: %w", err)
	}
	return image{encoded: bytes.Clone(encoded), decoded: dec}, nil
}

// snapshot is a Batch and its content when it was passed on.
type snapshot struct {
	batch  *otlpdata.Batch
	before image
}

// changed describes how the batch has changed since, or returns "".
func (s snapshot) changed() string {
	now, err := imageOf(s.batch)
	switch {
	case err != nil:
		return fmt.Sprintf("can no longer be decoded: %v", err)
	case !bytes.Equal(now.encoded, s.before.encoded):
		return "the encoded spans have changed"
	case !bytes.Equal(now.decoded, s.before.decoded):
		return "the objects have changed"
	}
	return ""
}
