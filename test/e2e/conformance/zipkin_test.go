package conformance_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/receivers/zipkin"
)

func zipkinReceiver(t *testing.T) {
	pipelinetest.Receiver(t, zipkin.Factory(), pipelinetest.ReceiverOptions{
		Config:    `endpoint: "localhost:0"`,
		Listener:  "http",
		Normalize: zipkinContent,
		Send:      postZipkin,
	})
}

type zipkinSpan struct {
	TraceID       string             `json:"traceId"`
	ID            string             `json:"id"`
	ParentID      string             `json:"parentId,omitempty"`
	Name          string             `json:"name"`
	Kind          string             `json:"kind,omitempty"`
	Timestamp     uint64             `json:"timestamp"`
	Duration      uint64             `json:"duration"`
	LocalEndpoint map[string]string  `json:"localEndpoint"`
	Annotations   []zipkinAnnotation `json:"annotations"`
	Tags          map[string]string  `json:"tags"`
}

type zipkinAnnotation struct {
	Timestamp uint64 `json:"timestamp"`
	Value     string `json:"value"`
}

// zipkinContent removes what postZipkin does not translate.
func zipkinContent(td ptrace.Traces) {
	thriftContent(td)
	eachSpan(td, func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
		if s.Kind() == ptrace.SpanKindInternal {
			s.SetKind(ptrace.SpanKindUnspecified)
		}
		s.Attributes().RemoveIf(func(_ string, v pcommon.Value) bool { return v.Type() != pcommon.ValueTypeStr })
		s.Links().RemoveIf(func(ptrace.SpanLink) bool { return true })
		for _, e := range s.Events().All() {
			e.Attributes().Clear()
		}
	})
}

// postZipkin sends spans as a Zipkin client does.
func postZipkin(ctx context.Context, addr string, td ptrace.Traces) error {
	spans := []zipkinSpan{}
	eachSpan(td, func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
		service, _ := rs.Resource().Attributes().Get("service.name")
		z := zipkinSpan{TraceID: s.TraceID().String(), ID: s.SpanID().String(), ParentID: s.ParentSpanID().String(), Name: s.Name(),
			Timestamp: uint64(s.StartTimestamp() / 1000), Duration: uint64((s.EndTimestamp() - s.StartTimestamp()) / 1000),
			LocalEndpoint: map[string]string{"serviceName": service.Str()}, Tags: map[string]string{}}
		if s.Kind() != ptrace.SpanKindInternal {
			z.Kind = strings.ToUpper(s.Kind().String())
		}
		for k, v := range s.Attributes().All() {
			if v.Type() == pcommon.ValueTypeStr {
				z.Tags[k] = v.Str()
			}
		}
		for _, e := range s.Events().All() {
			z.Annotations = append(z.Annotations, zipkinAnnotation{uint64(e.Timestamp() / 1000), e.Name()})
		}
		spans = append(spans, z)
	})
	body, err := json.Marshal(spans)
	if err != nil {
		return err
	}
	return post(ctx, "http://"+addr+"/api/v2/spans", "application/json", body)
}
