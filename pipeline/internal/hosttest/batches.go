package hosttest

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// OneSpan returns a batch with one span.
func OneSpan(name string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
	return otlpdata.FromTraces(td, otlpdata.Meta{Format: "otlp"})
}

// NameOf returns the name of the first span.
func NameOf(b *otlpdata.Batch) string {
	td, err := b.Traces()
	if err != nil {
		return err.Error()
	}
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name()
}

// Spans returns a batch with a root and a number of children for each service.
func Spans(children int, services ...string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	for i, service := range services {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		ss := rs.ScopeSpans().AppendEmpty().Spans()
		for j := range children + 1 {
			s := ss.AppendEmpty()
			s.SetTraceID(pcommon.TraceID{1, byte(i)})
			s.SetSpanID(pcommon.SpanID{2, byte(i), byte(j)})
			if j > 0 {
				s.SetParentSpanID(pcommon.SpanID{2, byte(i), 0})
			}
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Format: "otlp", Transport: "grpc"})
}

// BatchFor returns an encoded batch with one span of a tenant's service.
func BatchFor(tenant, service string) *otlpdata.Batch {
	var request otlpdata.Builder
	request.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue(service)}})
	request.Span(&otlpdata.Span{Name: "op"})
	b, err := otlpdata.FromOTLP(request.Bytes(), otlpdata.Meta{Tenant: tenant, Format: "zipkin", Transport: "udp",
		Received: time.Unix(1, 0)}, otlpdata.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}
