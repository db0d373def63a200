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

// Content of the requests.
const (
	spansPerRequest = 3
	serviceName     = "pipelinetest"
	startNanos      = 1_700_000_000_000_000_000
)

// request is a number of spans of one trace.
type request struct {
	number int
	names  []string
	traces ptrace.Traces
}

func (s *subject) requestSpans() int { return cmp.Or(s.spans, spansPerRequest) }

// request returns a request with span names that are unique in the check.
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

// batch returns the request as a Batch and takes a snapshot of it. Batches are encoded or objects,
// in turn.
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
			s.Fatalf("decoding a request: %v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, snapshot{b, image{encoded: enc, decoded: enc}})
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

// snapshot is a Batch and its content at the time it was passed on.
type snapshot struct {
	batch  *otlpdata.Batch
	before image
}

// changed describes how the batch has changed since, or returns "".
func (s snapshot) changed() string {
	now, err := imageOf(s.batch)
	switch {
	case err != nil:
		return fmt.Sprintf("cannot be decoded any more: %v", err)
	case !bytes.Equal(now.encoded, s.before.encoded):
		return "the encoded spans have changed"
	case !bytes.Equal(now.decoded, s.before.decoded):
		return "the objects have changed"
	}
	return ""
}

// namesIn returns the names of the spans of b.
func namesIn(b *otlpdata.Batch) ([]string, error) {
	var n nameReader
	if err := b.Walk(&n); err != nil {
		return nil, fmt.Errorf("decoding a batch: %w", err)
	}
	return n.names, nil
}

// nameReader collects the names of spans.
type nameReader struct{ names []string }

// Resource does nothing.
func (*nameReader) Resource(*otlpdata.Resource) error { return nil }

// Scope does nothing.
func (*nameReader) Scope(*otlpdata.Scope) error { return nil }

// Span adds a copy of the name.
func (n *nameReader) Span(s *otlpdata.Span) error {
	n.names = append(n.names, strings.Clone(s.Name))
	return nil
}
