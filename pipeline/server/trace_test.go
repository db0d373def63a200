package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// traced turns self-tracing on, and returns the spans that have ended.
func (f *fixture) traced() *tracetest.SpanRecorder {
	spans := tracetest.NewSpanRecorder()
	f.set.Tracer = &selftrace.Tracer{}
	f.set.Tracer.TurnOn(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), propagation.TraceContext{})
	return spans
}

// An exporter refuses a batch with a text that is not UTF-8, so a client must not be able to cause
// one.
func TestTracedRequestLine(t *testing.T) {
	f := newFixture(t, 0)
	spans := f.traced()
	s, _, _ := f.http(httpConfig(), func(http.ResponseWriter, *http.Request) {})
	const limit = 1024
	cutInRune := strings.Repeat("a", limit-1) + "ä"
	for _, target := range []string{"/%ff?q=\xff", "/" + cutInRune + "?" + cutInRune, "/%C3%A4/%2F?" + strings.Repeat("b", 2*limit)} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		path, query, _ := strings.Cut(target, "?")
		if err := r.URL.UnmarshalBinary([]byte(path)); err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = query
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	var paths, queries []string
	for _, span := range spans.Ended() {
		for _, a := range span.Attributes() {
			text := a.Value.String()
			if !utf8.ValidString(text) {
				t.Errorf("%s is %q", a.Key, text)
			}
			switch a.Key {
			case "url.path":
				paths = append(paths, text)
			case "url.query":
				queries = append(queries, text)
			}
		}
	}
	if want := []string{"/%ff", "/" + strings.Repeat("a", limit-1), "/%C3%A4/%2F"}; !slices.Equal(paths, want) {
		t.Errorf("paths %q", paths)
	}
	if want := []string{"q=\uFFFD", strings.Repeat("a", limit-1) + "\uFFFD", strings.Repeat("b", limit)}; !slices.Equal(queries, want) {
		t.Errorf("queries %q", queries)
	}
}

// The spans of calls whose handlers panic, and of calls that fail, have failed.
func TestTracedFailures(t *testing.T) {
	f := newFixture(t, 0)
	f.clientsOfPanics()
	spans := f.traced()
	failing := false
	conn, stop := f.grpc(grpcConfig(), func(context.Context, int) error {
		if failing {
			return status.Error(grpccodes.Internal, "disk \xff")
		}
		panic("boom")
	})
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Echo/Stream")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(wrapperspb.Bytes(nil)); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != grpccodes.Internal {
		t.Errorf("stream: %v", err)
	}
	for range 2 {
		if err := call(t.Context(), conn, "Raw", 1); status.Code(err) != grpccodes.Internal {
			t.Errorf("call: %v", err)
		}
		failing = true
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, span := range spans.Ended() {
		if span.Status().Code != codes.Error {
			t.Errorf("%s has status %v", span.Name(), span.Status())
		}
		got = append(got, span.Name()+": "+span.Status().Description)
	}
	want := []string{"test.Echo/Stream: internal error", "test.Echo/Raw: internal error", "test.Echo/Raw: disk \uFFFD"}
	if !slices.Equal(got, want) {
		t.Errorf("spans %q", got)
	}
}
