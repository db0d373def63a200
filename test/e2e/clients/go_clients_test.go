package clients_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	"github.com/opentracing/opentracing-go/log"
	"github.com/openzipkin/zipkin-go"
	"github.com/openzipkin/zipkin-go/model"
	zipkinproto "github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"github.com/openzipkin/zipkin-go/reporter"
	zipkinhttp "github.com/openzipkin/zipkin-go/reporter/http"
	"github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	//lint:ignore SA1019 applications still have it
	jaegerexporter "go.opentelemetry.io/otel/exporters/jaeger"
	//lint:ignore SA1019 applications still have it
	zipkinexporter "go.opentelemetry.io/otel/exporters/zipkin"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func goClients() []client {
	return []client{
		{"jaeger-client-go-udp", func(t *testing.T, d *deployment, start time.Time) sent {
			tr, err := jaeger.NewUDPTransport(d.compact(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return sendJaeger(t, tr, false, start)
		}},
		{"jaeger-client-go-http", func(t *testing.T, d *deployment, start time.Time) sent {
			return sendJaeger(t, transport.NewHTTPTransport(d.nativeHTTP()+"?format=jaeger.thrift"), true, start)
		}},
		{"otel-jaeger-udp", func(t *testing.T, d *deployment, start time.Time) sent {
			host, port, err := net.SplitHostPort(d.compact())
			if err != nil {
				t.Fatal(err)
			}
			e, err := jaegerexporter.New(jaegerexporter.WithAgentEndpoint(jaegerexporter.WithAgentHost(host), jaegerexporter.WithAgentPort(port)))
			return sendOTel(t, e, err, start)
		}},
		{"otel-jaeger-http", func(t *testing.T, d *deployment, start time.Time) sent {
			e, err := jaegerexporter.New(jaegerexporter.WithCollectorEndpoint(jaegerexporter.WithEndpoint(d.nativeHTTP())))
			return sendOTel(t, e, err, start)
		}},
		{"otel-zipkin", func(t *testing.T, d *deployment, start time.Time) sent {
			e, err := zipkinexporter.New(d.zipkin() + "/api/v2/spans")
			return sendOTel(t, e, err, start)
		}},
		{"zipkin-go-json", func(t *testing.T, d *deployment, start time.Time) sent {
			return sendZipkin(t, zipkinhttp.NewReporter(d.zipkin()+"/api/v2/spans"), start)
		}},
		{"zipkin-go-proto", func(t *testing.T, d *deployment, start time.Time) sent {
			return sendZipkin(t, zipkinhttp.NewReporter(d.zipkin()+"/api/v2/spans", zipkinhttp.Serializer(zipkinproto.SpanSerializer{})), start)
		}},
	}
}

func sendJaeger(t *testing.T, tr jaeger.Transport, wide bool, start time.Time) sent {
	t.Helper()
	tracer, closer := jaeger.NewTracer("shop-go", jaeger.NewConstSampler(true), jaeger.NewRemoteReporter(tr),
		jaeger.TracerOptions.Gen128Bit(wide), jaeger.TracerOptions.Tag("app.version", "1.2.3"), jaeger.TracerOptions.Tag("app.cores", 4))
	root := tracer.StartSpan("GET /cart", opentracing.StartTime(start))
	for k, v := range map[string]any{"span.kind": "server", "text": unicodeText, "count": 7, "big": int64(1) << 60,
		"ratio": 0.25, "cached": true,
		"raw": []byte{0, 1, 0xff}, "status": uint16(200)} {
		root.SetTag(k, v)
	}
	linked := jaeger.NewSpanContext(jaeger.TraceID{Low: 9}, 7, 0, true, nil)
	child := tracer.StartSpan("SELECT", opentracing.StartTime(start.Add(childDelay)),
		opentracing.ChildOf(root.Context()), opentracing.FollowsFrom(linked))
	ext.SamplingPriority.Set(child, 1)
	ext.Error.Set(child, true)
	event := func(s opentracing.Span, begin time.Time, duration time.Duration, fields ...log.Field) {
		s.FinishWithOptions(opentracing.FinishOptions{FinishTime: begin.Add(duration),
			LogRecords: []opentracing.LogRecord{{Timestamp: begin.Add(eventDelay), Fields: fields}}})
	}
	event(child, start.Add(childDelay), childDuration, log.String("event", "gave up"), log.Int("attempt", 2), log.Bool("final", true))
	event(root, start, rootDuration, log.String("message", "no event here"))
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	rc, cc := root.Context().(jaeger.SpanContext), child.Context().(jaeger.SpanContext)
	return sent{rc.TraceID().String(), []string{rc.SpanID().String(), cc.SpanID().String()}}
}

func sendOTel(t *testing.T, e sdktrace.SpanExporter, err error, start time.Time) sent {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	res := resource.NewSchemaless(attribute.String("service.name", "shop-otel-go"),
		attribute.String("app.version", "1.2.3"), attribute.Int("app.cores", 4))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(res))
	tracer := provider.Tracer("shop/lib", trace.WithInstrumentationVersion("1.2"))
	ctx, root := tracer.Start(t.Context(), "GET /cart", trace.WithTimestamp(start),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("text", unicodeText), attribute.Int("count", 7), attribute.Int64("big", 1<<60), attribute.Float64("ratio", 0.25),
			attribute.Bool("cached", true), attribute.StringSlice("list", []string{"a", "b"})))
	linked := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9: 9}, SpanID: trace.SpanID{7: 7}, Remote: true})
	_, child := tracer.Start(ctx, "SELECT", trace.WithTimestamp(start.Add(childDelay)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithLinks(trace.Link{SpanContext: linked}))
	child.AddEvent("gave up", trace.WithTimestamp(start.Add(childDelay+eventDelay)), trace.WithAttributes(attribute.Int("attempt", 2)))
	child.SetStatus(codes.Error, "no connection")
	child.End(trace.WithTimestamp(start.Add(childDelay + childDuration)))
	root.AddEvent("retry", trace.WithTimestamp(start.Add(eventDelay)))
	root.End(trace.WithTimestamp(start.Add(rootDuration)))
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sent{root.SpanContext().TraceID().String(), []string{root.SpanContext().SpanID().String(), child.SpanContext().SpanID().String()}}
}

// sendZipkin sends a third span: the other half of the child, which the called service reports with
// the same id.
func sendZipkin(t *testing.T, rep reporter.Reporter, start time.Time) sent {
	t.Helper()
	tracer := func(service, address string) *zipkin.Tracer {
		endpoint, err := zipkin.NewEndpoint(service, address)
		if err != nil {
			t.Fatal(err)
		}
		tracer, err := zipkin.NewTracer(rep, zipkin.WithLocalEndpoint(endpoint), zipkin.WithSharedSpans(true), zipkin.WithTraceID128Bit(true))
		if err != nil {
			t.Fatal(err)
		}
		return tracer
	}
	shop, db := tracer("shop-zipkin-go", "10.1.2.3:8080"), tracer("db", "[2001:db8::7]:5432")
	root := shop.StartSpan("get /cart", zipkin.StartTime(start), zipkin.Kind(model.Server),
		zipkin.Tags(map[string]string{"text": unicodeText, "count": "7"}))
	root.Annotate(start.Add(eventDelay), "retry")
	remote, err := zipkin.NewEndpoint("db", "10.9.8.7:5432")
	if err != nil {
		t.Fatal(err)
	}
	begin := start.Add(childDelay)
	child := shop.StartSpan("select", zipkin.StartTime(begin), zipkin.Kind(model.Client), zipkin.Parent(root.Context()),
		zipkin.RemoteEndpoint(remote))
	child.Annotate(begin.Add(eventDelay), "gave up")
	zipkin.TagError.Set(child, "no connection")
	half := db.StartSpan("select", zipkin.StartTime(begin.Add(eventDelay)), zipkin.Kind(model.Server), zipkin.Parent(child.Context()))
	half.FinishedWithDuration(childDuration / 2)
	child.FinishedWithDuration(childDuration)
	root.FinishedWithDuration(rootDuration)
	if err := rep.Close(); err != nil {
		t.Fatal(err)
	}
	rc, cc := root.Context(), child.Context()
	// The query API gives the second half the smallest free id.
	return sent{rc.TraceID.String(), []string{rc.ID.String(), cc.ID.String(), fmt.Sprintf("%016x", 1)}}
}
