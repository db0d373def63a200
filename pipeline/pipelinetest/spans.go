package pipelinetest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// What requests are made of.
const (
	spansPerRequest = 3
	serviceName     = "pipelinetest"
	startNanos      = 1_700_000_000_000_000_000
)

// request is a number of spans to send, all of one trace.
type request struct {
	number int
	names  []string
	traces ptrace.Traces
}

func (s *subject) requestSpans() int { return cmp.Or(s.spans, spansPerRequest) }

// request makes a request whose span names no other request of this check has.
func (s *suite) request() request {
	s.mu.Lock()
	s.made++
	r := request{number: s.made, traces: ptrace.NewTraces()}
	s.mu.Unlock()
	rs := r.traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", serviceName)
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range s.sub.requestSpans() {
		name := fmt.Sprintf("span-%d-%d", r.number, i)
		r.names = append(r.names, name)
		sp := spans.AppendEmpty()
		sp.SetName(name)
		sp.SetTraceID(pcommon.TraceID(binary.BigEndian.AppendUint64(make([]byte, 8), uint64(r.number))))
		sp.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(i+1))))
		start := startNanos + uint64(r.number*spansPerRequest+i)*1_000_000
		sp.SetStartTimestamp(pcommon.Timestamp(start))
		sp.SetEndTimestamp(pcommon.Timestamp(start + 500_000))
		sp.Attributes().PutStr("request", name)
	}
	return r
}

// batch returns the request as a Batch, every other one as objects, and remembers what it looked like.
func (s *suite) batch(r request) *otlpdata.Batch {
	s.Helper()
	meta := otlpdata.Meta{Tenant: r.tenant(), Format: "pipelinetest", Transport: "none"}
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(r.traces)
	if err != nil {
		s.Fatalf("encoding a request: %v", err)
	}
	b := otlpdata.FromTraces(r.traces, meta)
	if r.number%2 == 0 {
		if b, err = otlpdata.FromOTLP(bytes.Clone(enc), meta, otlpdata.Limits{}); err != nil {
			s.Fatalf("reading a request: %v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, kept{b, image{encoded: enc, decoded: enc}})
	return b
}

// Tenants returns the tenants that the spans of the suite belong to, in turn; the first is the default one.
func Tenants() []string { return []string{"", "tenant-a", "tenant-b"} }

func (r request) tenant() string { return Tenants()[r.number%len(Tenants())] }

// image is what a Batch holds, in both forms.
type image struct{ encoded, decoded []byte }

// imageOf reads the forms of b. It copies: the image stays when b changes.
func imageOf(b *otlpdata.Batch) (image, error) {
	chunks, err := b.Chunks()
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
	return image{encoded: bytes.Join(chunks, nil), decoded: dec}, nil
}

// kept is a Batch and what it looked like when it was passed from one to another.
type kept struct {
	batch  *otlpdata.Batch
	before image
}

// changed says what has happened to the batch since, or "".
func (k kept) changed() string {
	now, err := imageOf(k.batch)
	switch {
	case err != nil:
		return fmt.Sprintf("it cannot be read any more: %v", err)
	case !bytes.Equal(now.encoded, k.before.encoded):
		return "its bytes are not those that it had"
	case !bytes.Equal(now.decoded, k.before.decoded):
		return "its objects are not those that it had"
	}
	return ""
}

// namesIn returns the names of the spans of b.
func namesIn(b *otlpdata.Batch) ([]string, error) {
	chunks, err := b.Chunks()
	if err != nil {
		return nil, err
	}
	var n nameReader
	for _, chunk := range chunks {
		if err := otlpdata.Walk(chunk, &n); err != nil {
			return nil, fmt.Errorf("reading the spans of a batch: %w", err)
		}
	}
	return n.names, nil
}

type nameReader struct{ names []string }

// Resource does nothing.
func (*nameReader) Resource(*otlpdata.Resource) error { return nil }

// Scope does nothing.
func (*nameReader) Scope(*otlpdata.Scope) error { return nil }

// Span notes the name, in memory of its own.
func (n *nameReader) Span(s *otlpdata.Span) error {
	n.names = append(n.names, strings.Clone(s.Name))
	return nil
}
