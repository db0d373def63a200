package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	zipkinexporter "github.com/tracing-backend/tracing/exporters/zipkin"
	translate "github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/soak"
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

func zipkinExporter(t *testing.T) {
	type decoder = func([]byte, translate.Options) ([]byte, error)
	for format, from := range map[string]decoder{"json": translate.FromV2JSON, "proto": translate.FromV2Proto} {
		t.Run(format, func(t *testing.T) {
			if format != "json" {
				soak.SkipIfRaced(t)
			}
			pipelinetest.Exporter(t, zipkinexporter.Factory(), pipelinetest.ExporterOptions{
				NoPartialSuccess: true,
				Normalize:        sentToZipkin,
				Config: func(tb testing.TB, next pipeline.Consumer) string {
					srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { zipkinHop(w, r, from, next) }))
					tb.Cleanup(srv.Close)
					return fmt.Sprintf("{endpoint: %q, compression: none, format: %s, %s}", srv.URL+"/api/v2/spans", format, patient)
				},
			})
		})
	}
}

// zipkinHop passes a request on to next and answers with the outcome.
func zipkinHop(w http.ResponseWriter, r *http.Request, from func([]byte, translate.Options) ([]byte, error), next pipeline.Consumer) {
	body, err := io.ReadAll(r.Body)
	var otlp []byte
	if err == nil {
		otlp, err = from(body, translate.Options{})
	}
	var b *otlpdata.Batch
	if err == nil {
		b, err = otlpdata.FromOTLP(otlp, otlpdata.Meta{Tenant: r.Header.Get("X-Tenant")}, otlpdata.Limits{})
	}
	if err == nil {
		err = next.Consume(r.Context(), b)
	}
	if err != nil {
		http.Error(w, err.Error(), server.ErrorStatus(w.Header(), err))
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// sentToZipkin removes what Zipkin's format does not have: types of attributes, the difference
// between those of resource, scope and span, nanoseconds, and fields without a tag.
func sentToZipkin(td ptrace.Traces) {
	eachSpan(td, func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) {
		for _, v := range s.Attributes().All() {
			v.SetStr(v.AsString())
		}
		for _, m := range []pcommon.Map{rs.Resource().Attributes(), ss.Scope().Attributes()} {
			for k, v := range m.All() {
				if _, own := s.Attributes().Get(k); !own && k != "service.name" {
					s.Attributes().PutStr(k, v.AsString())
				}
			}
		}
		countToTag(s, "attributes", s.DroppedAttributesCount(), s.SetDroppedAttributesCount)
		countToTag(s, "events", s.DroppedEventsCount(), s.SetDroppedEventsCount)
		countToTag(s, "links", s.DroppedLinksCount(), s.SetDroppedLinksCount)
		for _, l := range s.Links().All() {
			l.SetFlags(0)
		}
		s.SetFlags(0)
		toMicroseconds(s)
	})
	eachSpan(td, func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, _ ptrace.Span) {
		rs.Resource().Attributes().RemoveIf(func(k string, _ pcommon.Value) bool { return k != "service.name" })
		rs.Resource().SetDroppedAttributesCount(0)
		rs.SetSchemaUrl("")
		ss.Scope().Attributes().Clear()
		ss.Scope().SetDroppedAttributesCount(0)
		ss.SetSchemaUrl("")
	})
}

func countToTag(s ptrace.Span, what string, n uint32, set func(uint32)) {
	if n > 0 {
		s.Attributes().PutStr("otel.dropped_"+what+"_count", fmt.Sprint(n))
	}
	set(0)
}
