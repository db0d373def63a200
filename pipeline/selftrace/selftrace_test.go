package selftrace_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// newTracer returns a tracer that is on, and its spans that have ended.
func newTracer(sampler sdktrace.Sampler) (*selftrace.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	var t selftrace.Tracer
	t.TurnOn(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sampler)), propagation.TraceContext{})
	return &t, spans
}

// batchOf returns a batch with one span in each of the named instrumentation scopes.
func batchOf(tb testing.TB, scopes ...string) *otlpdata.Batch {
	tb.Helper()
	text := `{"resourceSpans":[{"scopeSpans":[`
	for i, s := range scopes {
		if i > 0 {
			text += ","
		}
		text += `{"scope":{"name":"` + s + `"},"spans":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","name":"a"}]}`
	}
	b, err := otlpdata.FromJSON([]byte(text+`]}]}`), otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestIsOwn(t *testing.T) {
	f := func(want bool, scopes ...string) {
		t.Helper()
		if got := selftrace.IsOwn(batchOf(t, scopes...)); got != want {
			t.Errorf("spans of %q: %t", scopes, got)
		}
	}
	f(false)
	f(false, "shop")
	f(false, "")
	f(true, selftrace.Scope)
	f(true, selftrace.Scope, selftrace.Scope)
	f(false, selftrace.Scope, "shop")
	f(false, "shop", selftrace.Scope)
}

// serve does what listeners and edges do with a request, and returns the header of the response.
func serve(t *selftrace.Tracer, headers http.Header, b *otlpdata.Batch, failure error) (response string) {
	ctx, r := t.Request(context.Background(), "POST", time.Now(), propagation.HeaderCarrier(headers))
	r.MarkRead(time.Now())
	ctx, deliver := t.StartIntake(ctx, "deliver", b, time.Now)
	exported, span := t.StartBatch(ctx, "export", b)
	out := http.Header{}
	t.Inject(exported, propagation.HeaderCarrier(out))
	selftrace.End(span, failure)
	selftrace.End(deliver, failure)
	if r != nil {
		response = r.Response()
		r.End("POST /v1/traces", "")
	}
	return response
}

func names(spans []sdktrace.ReadOnlySpan) (list []string) {
	for _, s := range spans {
		list = append(list, s.Name())
	}
	return list
}

func TestRequest(t *testing.T) {
	tracer, spans := newTracer(sdktrace.AlwaysSample())
	serve(tracer, http.Header{}, batchOf(t, "shop"), errors.New("disk full"))
	ended := spans.Ended()
	if len(ended) != 5 || ended[2].Name() != "export" || ended[2].Status() != (sdktrace.Status{Code: codes.Error, Description: "disk full"}) {
		t.Errorf("spans %v", names(ended))
	}
	for _, s := range ended {
		if s.InstrumentationScope().Name != selftrace.Scope {
			t.Errorf("span %s in scope %q", s.Name(), s.InstrumentationScope().Name)
		}
	}
}

func TestOwnSpansAreNotTraced(t *testing.T) {
	tracer, spans := newTracer(sdktrace.AlwaysSample())
	if got := serve(tracer, http.Header{}, batchOf(t, selftrace.Scope), nil); got != "" {
		t.Errorf("traceresponse %q", got)
	}
	marked := http.Header{}
	marked.Set(selftrace.OwnHeader, "true")
	ctx, r := tracer.Request(t.Context(), "POST", time.Now(), propagation.HeaderCarrier(marked))
	if r != nil {
		t.Error("marked request is traced")
	}
	_, span := tracer.StartBatch(ctx, "export", batchOf(t, selftrace.Scope)) // as after a queue
	span.End()
	if ended := spans.Ended(); len(ended) > 0 {
		t.Errorf("spans %v", names(ended))
	}
}

func TestResponse(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	f := func(sampler sdktrace.Sampler, flags string) {
		t.Helper()
		tracer, _ := newTracer(sampler)
		got := serve(tracer, http.Header{"Traceparent": {"00-" + trace + "-" + parent + "-01"}}, batchOf(t, "shop"), nil)
		if len(got) != 55 || got[:36] != "00-"+trace+"-" || got[36:52] == parent || got[52:] != "-"+flags {
			t.Errorf("traceresponse %q", got)
		}
	}
	f(sdktrace.AlwaysSample(), "01")
	f(sdktrace.NeverSample(), "00")
}

func TestLinks(t *testing.T) {
	tracer, spans := newTracer(sdktrace.AlwaysSample())
	first, a := tracer.StartRoot(t.Context(), "first")
	second, b := tracer.StartRoot(t.Context(), "second")
	ctx := selftrace.WithLinks(context.Background(), first, second, t.Context())
	_, joined := tracer.StartBatch(ctx, "export", batchOf(t, "shop"))
	joined.End()
	links := spans.Ended()[0].Links()
	if len(links) != 2 || !links[0].SpanContext.Equal(a.SpanContext()) || !links[1].SpanContext.Equal(b.SpanContext()) {
		t.Errorf("links %v", links)
	}
}

// TestOffAllocatesNothing checks that a tracer that is off costs a request no memory.
func TestOffAllocatesNothing(t *testing.T) {
	b, headers := batchOf(t, "shop"), http.Header{}
	for name, tracer := range map[string]*selftrace.Tracer{"none": nil, "off": {}} {
		if n := testing.AllocsPerRun(100, func() { passOff(t.Context(), tracer, headers, b) }); n != 0 {
			t.Errorf("tracer %s: %v allocations", name, n)
		}
	}
}

// passOff calls what the intake path calls of a tracer that is off.
func passOff(ctx context.Context, t *selftrace.Tracer, headers http.Header, b *otlpdata.Batch) {
	if t.On() {
		t.Inject(ctx, propagation.HeaderCarrier(headers))
	}
	ctx, deliver := t.StartIntake(ctx, "deliver", b, time.Now)
	ctx, process := t.Start(ctx, "process")
	_, export := t.StartBatch(ctx, "export", b)
	selftrace.End(export, nil)
	selftrace.End(process, nil)
	selftrace.End(deliver, nil)
}

// BenchmarkOff measures what a tracer that is off costs a request.
func BenchmarkOff(b *testing.B) {
	batch, ctx := batchOf(b, "shop"), b.Context()
	var t selftrace.Tracer
	b.ReportAllocs()
	for b.Loop() {
		passOff(ctx, &t, nil, batch)
	}
}
