package native

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// kv parses "key=value": true and false become booleans, 1n an integer, anything else a string.
func kv(s string) otlpdata.KeyValue {
	key, v, _ := strings.Cut(s, "=")
	out := otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(v)}
	var n int64
	switch {
	case v == "true" || v == "false":
		out.Value = otlpdata.BoolValue(v == "true")
	case strings.HasSuffix(v, "n"):
		if _, err := fmt.Sscanf(v, "%dn", &n); err == nil {
			out.Value = otlpdata.IntValue(n)
		}
	}
	return out
}

func TestPromoteTags(t *testing.T) {
	f := func(want string, tags ...string) {
		t.Helper()
		var s otlpdata.Span
		for _, tag := range tags {
			s.Attributes = append(s.Attributes, kv(tag))
		}
		scope, version := PromoteTags(&s)
		got := fmt.Sprintf("%d %d", s.Kind, s.StatusCode)
		for _, field := range []string{s.StatusMessage, s.TraceState, scope, version} {
			got += "|" + field
		}
		for _, a := range s.Attributes {
			got += " " + a.Key + "=" + a.Value.AsString()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", tags, got, want)
		}
	}
	f("0 0||||")
	f("0 0|||| a=b", "a=b")
	f("1 0||||", "span.kind=internal")
	f("2 0||||", "span.kind=server")
	f("3 0||||", "span.kind=client")
	f("4 0||||", "span.kind=producer")
	f("5 0||||", "span.kind=consumer")
	f("0 0||||", "span.kind=Server")         // unknown
	f("0 0|||| span.kind=2", "span.kind=2n") // not a string
	f("3 0|||| span.kind=server a=1 b=2", "span.kind=server", "a=1", "span.kind=client", "b=2")
	f("0 0||a=b,c||", "w3c.tracestate=a=b,c")
	f("0 0|||n|1 x=y", "otel.scope.version=1", "x=y", "otel.scope.name=n")
	f("0 0|||| otel.scope.version=1", "otel.scope.version=1")
	f("0 0|||n| otel.scope.name=m", "otel.scope.name=n", "otel.scope.name=m")

	f("0 2||||", "error=true")
	f("0 0|||| error=false", "error=false")
	f("0 0|||| error=yes error=1", "error=yes", "error=1n")
	f("0 0|||| error=true error=false", "error=true", "error=false")
	f("0 2|||| error=false", "error=false", "error=true")
	f("0 2|d||| http.status_message=m", "error=true", "otel.status_description=d", "http.status_message=m")
	f("0 2|m||| http.status_message=m", "error=true", "http.status_message=m")
	f("0 2||||", "error=true", "otel.status_code=OK") // the tag error wins
	f("0 1||||", "otel.status_code=ok")
	f("0 1|d||| error=false", "otel.status_code=OK", "error=false", "otel.status_description=d")
	f("0 2|||| http.status_message=m", "otel.status_code=Error", "http.status_message=m")
	f("0 0|d|||", "otel.status_code=UNSET", "otel.status_description=d")
	f("0 0|||| otel.status_description=d http.status_message=m", "otel.status_description=d", "http.status_message=m")
	f("0 1|||| http.status_code=500", "otel.status_code=OK", "http.status_code=500n")

	for code, want := range map[string]int{"99n": 2, "100n": 0, "200n": 0, "398n": 0, "399n": 2, "400n": 2, "499n": 2, "500n": 2, "-1n": 2,
		"404": 2, "200": 0, "abc": 0, "": 0} {
		f(fmt.Sprint("0 ", want, "|||| http.status_code=", strings.TrimSuffix(code, "n")), "http.status_code="+code)
	}
	f("2 0|||| http.status_code=404 http.status_message=m", "http.status_code=404n", "http.status_message=m", "span.kind=server")
	f("3 2|m||| http.status_code=404 http.status_message=m", "http.status_code=404n", "http.status_message=m", "span.kind=client")
	f("2 2|||| http.status_code=503", "http.status_code=503", "span.kind=server")
	f("2 2|d|t|n|v a=1 b=2", "a=1", "span.kind=server", "error=true", "otel.status_code=x", "b=2", "otel.status_description=d",
		"w3c.tracestate=t", "otel.scope.name=n", "otel.scope.version=v")
}
