package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestSDK sends a trace with the OpenTelemetry SDK and checks that every field of it is read back.
func TestSDK(t *testing.T) {
	for _, c := range []struct {
		name     string
		exporter func(ctx context.Context, p *inprocess.Program) (sdktrace.SpanExporter, error)
	}{
		{"gRPC", func(ctx context.Context, p *inprocess.Program) (sdktrace.SpanExporter, error) {
			return otlptracegrpc.New(ctx, otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(p.OTLPGRPC()))
		}},
		{"gRPC gzip", func(ctx context.Context, p *inprocess.Program) (sdktrace.SpanExporter, error) {
			return otlptracegrpc.New(ctx, otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(p.OTLPGRPC()),
				otlptracegrpc.WithCompressor("gzip"))
		}},
		{"HTTP protobuf gzip", func(ctx context.Context, p *inprocess.Program) (sdktrace.SpanExporter, error) {
			return otlptracehttp.New(ctx, otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(p.OTLPHTTP()),
				otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := inprocess.Start(t)
			exporter, err := c.exporter(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			sent := sendShop(t, exporter)
			id := sent[0].SpanContext().TraceID().String()
			got := inprocess.Ask[[]harness.UITrace](p, "/api/traces/"+id)
			if len(got) != 1 || got[0].TraceID != id || len(got[0].Spans) != len(sent) {
				t.Fatalf("%d spans were sent, got %+v", len(sent), got)
			}
			for _, s := range sent {
				checkSpan(t, got[0], s)
			}
			checkSearches(t, p, sent)
			harness.CheckAccounting(t, p.AdminURL())
		})
	}
}

// sendShop sends one trace that uses every field of a span, and returns the spans as the SDK
// recorded them.
func sendShop(t *testing.T, exporter sdktrace.SpanExporter) []sdktrace.ReadOnlySpan {
	t.Helper()
	ctx := t.Context()
	recorder := tracetest.NewSpanRecorder()
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "shop"), attribute.String("host.name", "h1"),
		attribute.Int("process.pid", 42)))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSpanProcessor(recorder), sdktrace.WithResource(res))
	tracer := provider.Tracer("shop/lib", trace.WithInstrumentationVersion("1.2"))

	ctx, root := tracer.Start(ctx, "GET /cart", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", "GET"), attribute.Int("http.response.status_code", 200), attribute.Bool("cached", true),
		attribute.Float64("ratio", 0.25), attribute.Int64("big", 1<<60), attribute.StringSlice("tags", []string{"a", `"b"`}),
		attribute.String("unicode", "żółw 🐢\n")))
	linked := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9: 9}, SpanID: trace.SpanID{7: 7}, Remote: true})
	_, db := tracer.Start(ctx, "SELECT", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(trace.Link{SpanContext: linked}))
	db.AddEvent("retry", trace.WithAttributes(attribute.Int("attempt", 2)))
	db.RecordError(errors.New("no connection"))
	db.SetStatus(codes.Error, "gave up")
	db.End()
	_, inner := tracer.Start(ctx, "render")
	inner.SetStatus(codes.Ok, "")
	inner.End()
	_, out := tracer.Start(ctx, "publish", trace.WithSpanKind(trace.SpanKindProducer))
	out.End()
	root.End()
	if err := provider.Shutdown(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	return recorder.Ended()
}

// checkSpan checks that a trace contains a span as it was sent.
func checkSpan(t *testing.T, tr harness.UITrace, want sdktrace.ReadOnlySpan) {
	t.Helper()
	i := slices.IndexFunc(tr.Spans, func(s harness.UISpan) bool { return s.SpanID == want.SpanContext().SpanID().String() })
	if i < 0 {
		t.Errorf("span %s %q is missing", want.SpanContext().SpanID(), want.Name())
		return
	}
	got := tr.Spans[i]
	check := func(what string, got, want any) {
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			t.Errorf("%s: %s:\n got %s\nwant %s", want, what, g, w)
		}
	}
	check("trace id", got.TraceID, want.SpanContext().TraceID())
	check("name", got.OperationName, want.Name())
	check("start", got.StartTime, want.StartTime().UnixNano()/1000)
	check("duration", got.Duration, want.EndTime().Sub(want.StartTime()).Nanoseconds()/1000)
	check("references", got.References, references(want))
	check("tags", harness.TagStrings(got.Tags), expectedTags(want))
	check("number of logs", len(got.Logs), len(want.Events()))
	for i, e := range want.Events() {
		check("log time", got.Logs[i].Timestamp, e.Time.UnixNano()/1000)
		fields := append([]string{"event:string=" + harness.Quote(e.Name)}, tagsOf(e.Attributes)...)
		slices.Sort(fields)
		check("log fields", harness.TagStrings(got.Logs[i].Fields), fields)
	}
	process := tr.Processes[got.ProcessID]
	check("service", process.ServiceName, "shop")
	check("process tags", harness.TagStrings(process.Tags), []string{`host.name:string="h1"`, `process.pid:int64=42`})
	check("warnings", len(got.Warnings), 0)
}

func references(s sdktrace.ReadOnlySpan) []harness.UIReference {
	refs := []harness.UIReference{}
	if s.Parent().SpanID().IsValid() {
		refs = append(refs, harness.UIReference{RefType: "CHILD_OF", TraceID: s.SpanContext().TraceID().String(),
			SpanID: s.Parent().SpanID().String()})
	}
	for _, l := range s.Links() {
		id := strings.TrimPrefix(l.SpanContext.TraceID().String(), strings.Repeat("0", 16))
		refs = append(refs, harness.UIReference{RefType: "FOLLOWS_FROM", TraceID: id, SpanID: l.SpanContext.SpanID().String()})
	}
	return refs
}

func expectedTags(s sdktrace.ReadOnlySpan) []string {
	tags := append(tagsOf(s.Attributes()), `otel.scope.name:string="shop/lib"`, `otel.scope.version:string="1.2"`,
		"span.kind:string="+harness.Quote(s.SpanKind().String()))
	switch s.Status().Code {
	case codes.Error:
		tags = append(tags, `otel.status_code:string="ERROR"`, `error:bool=true`, "otel.status_description:string="+harness.Quote(s.Status().Description))
	case codes.Ok:
		tags = append(tags, `otel.status_code:string="OK"`)
	}
	slices.Sort(tags)
	return tags
}

func tagsOf(attrs []attribute.KeyValue) []string {
	var tags []string
	for _, a := range attrs {
		v := a.Value
		switch v.Type() {
		case attribute.STRING:
			tags = append(tags, string(a.Key)+":string="+harness.Quote(v.AsString()))
		case attribute.BOOL:
			tags = append(tags, fmt.Sprintf("%s:bool=%t", a.Key, v.AsBool()))
		case attribute.FLOAT64:
			tags = append(tags, fmt.Sprintf("%s:float64=%v", a.Key, v.AsFloat64()))
		case attribute.INT64:
			n := fmt.Sprint(v.AsInt64())
			if v.AsInt64() >= 1<<53 {
				n = harness.Quote(n) // JSON numbers lose precision
			}
			tags = append(tags, fmt.Sprintf("%s:int64=%s", a.Key, n))
		case attribute.STRINGSLICE:
			list, _ := json.Marshal(v.AsStringSlice())
			tags = append(tags, fmt.Sprintf("%s:string=%s", a.Key, harness.Quote(string(list))))
		}
	}
	return tags
}

// checkSearches checks which searches find the trace.
func checkSearches(t *testing.T, p *inprocess.Program, sent []sdktrace.ReadOnlySpan) {
	t.Helper()
	id := sent[0].SpanContext().TraceID().String()
	root := sent[len(sent)-1]
	for _, c := range []struct {
		params []string
		found  bool
	}{
		{[]string{"service", "shop"}, true},
		{[]string{"service", "shops"}, false},
		{[]string{"service", "shop", "operation", "SELECT"}, true},
		{[]string{"service", "shop", "operation", "select"}, false},
		{[]string{"service", "shop", "tag", "http.response.status_code:200"}, true},
		{[]string{"service", "shop", "tag", "http.response.status_code:201"}, false},
		{[]string{"service", "shop", "tags", `{"cached":"true","ratio":"0.25"}`}, true},
		{[]string{"service", "shop", "tags", `{"cached":"true","attempt":"2"}`}, false}, // on two spans
		{[]string{"service", "shop", "tag", "error:true"}, true},
		{[]string{"service", "shop", "operation", "render", "tag", "error:true"}, false},
		{[]string{"service", "shop", "tag", "host.name:h1"}, true},
		{[]string{"service", "shop", "tag", "attempt:2"}, true},
		{[]string{"service", "shop", "maxDuration", "1h"}, true},
		{[]string{"service", "shop", "minDuration", "1h"}, false},
		{[]string{"service", "shop", "end", fmt.Sprint(root.StartTime().UnixMicro() - 1)}, false},
		{[]string{"service", "shop", "start", fmt.Sprint(root.StartTime().UnixMicro() + 10_000_000)}, false},
	} {
		got := p.Search(c.params...)
		if found := slices.Equal(got, []string{id}); found != c.found || !found && len(got) > 0 {
			t.Errorf("search %v: %v", c.params, got)
		}
	}
	if got := inprocess.Ask[[]string](p, "/api/services"); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("services: %v", got)
	}
	got := inprocess.Ask[[]string](p, "/api/services/shop/operations")
	slices.Sort(got)
	if !slices.Equal(got, []string{"GET /cart", "SELECT", "publish", "render"}) {
		t.Errorf("operations: %v", got)
	}
	type operation struct{ Name, SpanKind string }
	clientOperations := inprocess.Ask[[]operation](p, "/api/operations?service=shop&spanKind=client")
	if !slices.Equal(clientOperations, []operation{{"SELECT", "client"}}) {
		t.Errorf("client operations: %v", clientOperations)
	}
}
