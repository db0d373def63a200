package otlpdata

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func toJSON(t testing.TB, protobuf []byte) []byte {
	t.Helper()
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalProto(protobuf); err != nil {
		t.Fatal(err)
	}
	b, err := req.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFromJSON(t *testing.T) {
	text := `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"cart"}}]},"scopeSpans":[{"scope":` +
		`{"name":"lib"},"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174","name":"a \" } b","kind":2,` +
		`"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":1544712661000000000,"unknown":[{}],` +
		`"attributes":[{"key":"n","value":{"intValue":"7"}},{"key":"empty","value":{"stringValue":""}}]}]}]}]}`
	b, err := FromJSON([]byte(" \r\n\t"+text+"\n"), Meta{Tenant: "t"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Services(); b.Len() != 1 || len(got) != 1 || got[0] != (ServiceCount{Service: "cart", Spans: 1, Roots: 1}) ||
		b.Meta().Tenant != "t" {
		t.Errorf("got %d spans, %+v, %+v", b.Len(), got, b.Meta())
	}
	encoded, err := b.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	diffText(t, "spans", dumpBytes(t, encoded), `resource "cart" {"service.name"="cart" } dropped 0 schema ""
 scope "lib" "" {} dropped 0 schema ""
  span 5b8efff798038103d269b633813fc60c eee19b7ec3c1b174 0000000000000000 "" "a \" } b" kind 2 status 0 "" flags 0 `+
		`times 1544712660000000000 1544712661000000000 dropped 0 0 0 {"n"=7 "empty"="" }
`)
}

func TestFromJSONInvalid(t *testing.T) {
	for text, want := range map[string]error{
		"":                               errJSONStart,
		" \n":                            errJSONStart,
		"null":                           errJSONStart,
		"[]":                             errJSONStart,
		`"{}"`:                           errJSONStart,
		"}":                              errJSONStart,
		"\xef\xbb\xbf{}":                 errJSONStart,
		"{":                              errJSONCut,
		`{"`:                             errJSONCut,
		`{""`:                            errJSONCut,
		`{"resourceSpans`:                errJSONCut,
		`{"resourceSpans":[`:             errJSONCut,
		`{"a":"\"}`:                      errJSONCut,
		`{"a":"\`:                        errJSONCut,
		"{}{}":                           errJSONTail,
		`{} {"resourceSpans":[]}`:        errJSONTail,
		"{},":                            errJSONTail,
		"{}]":                            errJSONTail,
		"{} x":                           errJSONTail,
		`{"":1}`:                         errJSONName,
		`{"" : 1, "resourceSpans":[{}]}`: errJSONName,
		`{"resourceSpans":[{"":1}]}`:     errJSONName,
	} {
		if _, err := FromJSON([]byte(text), Meta{}, Limits{}); !errors.Is(err, want) {
			t.Errorf("%q: got error %v, want %v", text, err, want)
		}
	}
	for _, text := range []string{`{]`, `{"resourceSpans":{}}`, `{"resourceSpans":[}]`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xy"}]}]}]}`,
		`{"resourceSpans":1}`, `{resourceSpans:[]}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0011"}]}]}]}`} {
		if _, err := FromJSON([]byte(text), Meta{}, Limits{}); err == nil || !strings.HasPrefix(err.Error(), "otlp: JSON: ") {
			t.Errorf("%q: got error %v", text, err)
		}
	}
}

func TestJSONErrorsAreShort(t *testing.T) {
	text := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"` + strings.Repeat("x", 1<<20) + `"}]}]}]}`
	_, err := FromJSON([]byte(text), Meta{}, Limits{})
	if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), "xxx") {
		t.Errorf("got %.500v", err)
	}
}

func TestFromJSONWithoutSpans(t *testing.T) {
	for _, text := range []string{"{}", `{"resourceSpans":[]}`, `{"resourceSpans":null}`, `{"partial":""}`, `{"x":["",":"]}`} {
		if b, err := FromJSON([]byte(text), Meta{}, Limits{}); err != nil || b.Len() != 0 {
			t.Errorf("%q: got %v, %v, want no spans", text, b, err)
		}
	}
}

// FuzzFromJSON checks that accepted requests have the content that pdata reads.
func FuzzFromJSON(f *testing.F) {
	for _, b := range quirks() {
		req := ptraceotlp.NewExportRequest()
		if req.UnmarshalProto(b) == nil {
			f.Add(toJSON(f, b))
		}
	}
	f.Add([]byte(`{"":1,"resourceSpans":[{}]}`))
	f.Add([]byte(`{"resource_spans":[{"scope_spans":[{"spans":[{"name":"x","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1"}]}]}]} `))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		b, err := FromJSON(text, Meta{}, Limits{})
		if !bytes.Equal(before, text) {
			t.Fatal("the request was changed")
		}
		if err != nil {
			return
		}
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(text)
		if err != nil {
			t.Fatalf("pdata: %v", err)
		}
		encoded, err := b.Encoded()
		if err != nil {
			t.Fatal(err)
		}
		diffText(t, "spans", dumpBytes(t, encoded), dumpTraces(td))
		checkCounts(t, b, FromTraces(td, Meta{}))
	})
}
