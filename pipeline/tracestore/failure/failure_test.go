package failure_test

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
)

func TestOf(t *testing.T) {
	exception := func(s ptrace.Span, kind, message string) {
		e := s.Events().AppendEmpty()
		e.SetName("exception")
		if kind != "" {
			e.Attributes().PutStr("exception.type", kind)
		}
		e.Attributes().PutStr("exception.message", message)
	}
	for want, change := range map[string]func(s ptrace.Span){
		"; ": func(ptrace.Span) {},
		"OutOfStock; none left": func(s ptrace.Span) {
			exception(s, "First", "retried")
			exception(s, "OutOfStock", "none left")
			s.Events().AppendEmpty().SetName("log")
			s.Attributes().PutStr("error.type", "other")
			s.Status().SetMessage("failed")
		},
		"timeout; no answer": func(s ptrace.Span) {
			exception(s, "", "no answer")
			s.Attributes().PutStr("error.type", "timeout")
			s.Attributes().PutInt("http.response.status_code", 504)
		},
		"HTTP 504; ":       func(s ptrace.Span) { s.Attributes().PutInt("http.response.status_code", 504) },
		"HTTP 500; failed": func(s ptrace.Span) { s.Attributes().PutStr("http.status_code", "500"); s.Status().SetMessage("failed") },
		"gRPC Unavailable; ": func(s ptrace.Span) {
			s.Attributes().PutInt("http.status_code", 200)
			s.Attributes().PutInt("rpc.grpc.status_code", 14)
		},
		"gRPC Code(99); ": func(s ptrace.Span) { s.Attributes().PutInt("rpc.grpc.status_code", 99) },
		"bad code; bad code": func(s ptrace.Span) {
			s.Attributes().PutStr("http.status_code", "-1")
			s.Status().SetMessage("bad code")
		},
		"order <n> of decade failed after <n>s at <id>; order 17 of decade failed after 1.5s at 550e8400-e29b-cafe1": func(s ptrace.Span) {
			s.Status().SetMessage("order 17 of decade failed after 1.5s at 550e8400-e29b-cafe1")
		},
	} {
		td := ptrace.NewTraces()
		change(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
		err := tracestore.WalkSpans(otlpdata.FromTraces(td, otlpdata.Meta{}), func(s tracestore.Span) error {
			if f := failure.Of(s.Span); failure.Title(s.Span)+"; "+f.Message != want {
				t.Errorf("got %q; %q, want %q", failure.Title(s.Span), f.Message, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Spans that fail in the same way have one id, whatever varies in their messages.
func TestGroup(t *testing.T) {
	span := func(name, message string) *otlpdata.Span { return &otlpdata.Span{Name: name, StatusMessage: message} }
	var g failure.Grouper
	ids := make(map[string]string)
	for _, c := range []struct {
		what, service string
		span          *otlpdata.Span
	}{
		{"order", "shop", span("a", "order 17 failed")}, {"order", "shop", span("b", "order 18 failed")},
		{"service", "web", span("a", "order 17 failed")}, {"message", "shop", span("a", "refused")},
		{"a", "shop", span("a", "")}, {"b", "shop", span("b", "")}, {"a", "shop", span("a", "\n")},
	} {
		id := g.Group(c.service, c.span)
		if id != failure.Group(c.service, c.span) || len(id) != 16 || ids[c.what] != "" && ids[c.what] != id {
			t.Errorf("%s: %s", c.what, id)
		}
		ids[c.what] = id
	}
	seen := make(map[string]string)
	for what, id := range ids {
		if other := seen[id]; other != "" {
			t.Errorf("%s and %s have the same id", what, other)
		}
		seen[id] = what
	}
}
