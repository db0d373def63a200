package tracestore

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The text of a condition is found in all parts of a span, whatever the case of its letters.
func TestSpanCondition(t *testing.T) {
	attribute := func(key, value string) []otlpdata.KeyValue {
		return []otlpdata.KeyValue{{Key: key, Value: otlpdata.StringValue(value)}}
	}
	s := Span{
		Resource: &otlpdata.Resource{Service: "Shop", Attributes: attribute("host.name", "A1")},
		Scope:    &otlpdata.Scope{Name: "http", Version: "v2", Attributes: attribute("short", "y")},
		Span: &otlpdata.Span{
			Name: "GET /Kasse", StatusMessage: "Überlauf", Attributes: []otlpdata.KeyValue{{Key: "Code", Value: otlpdata.IntValue(503)}},
			Events: []otlpdata.Event{{Name: "retry", Attributes: attribute("try", "3rd")}},
		},
	}
	f := func(text string, want bool) {
		t.Helper()
		for _, text := range []string{text, strings.ToUpper(text), strings.ToLower(text)} {
			m := SpanCondition{Text: text}.Matcher(t.Context())
			for range 2 { // the second time, with what the matcher remembers
				if m.Matches(s) != want || m.MatchesIn(s, m.OriginHasText(s.Resource, s.Scope)) != want {
					t.Errorf("%q: found %t", text, !want)
				}
			}
		}
	}
	for _, text := range []string{"", "shop", "host.name=a1", "http", "v2", "short=y", "get /kasse", "überlauf",
		"code=503", "503", "retry", "try=3rd"} {
		f(text, true)
	}
	for _, text := range []string{"shophost", "a1 ", "überlaufcode", "=503=", "ü ", "\xff", "\ufffd"} {
		f(text, false)
	}
	where := Cond{Field: Field{Place: Service}, Op: Eq, Value: Text("Shop")}
	if m := (SpanCondition{Where: Not{where}, Text: "shop"}).Matcher(t.Context()); m.Matches(s) {
		t.Error("a span matches without the condition")
	}
}
