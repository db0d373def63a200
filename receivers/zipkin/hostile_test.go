package zipkin

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline"
)

// hostile returns requests with small bodies that need much memory or time if they are not limited.
func hostile() map[string]request {
	v2 := func(body string) request { return request{path: "/api/v2/spans", body: body} }
	protobuf := func(body string) request {
		return request{path: "/api/v2/spans", body: body, header: []string{"Content-Type", "application/x-protobuf"}}
	}
	v1 := func(body string) request { return request{path: "/api/v1/spans", body: body} }
	thrift := func(body string) request {
		return request{path: "/api/v1/spans", body: body, header: []string{"Content-Type", "application/x-thrift"}}
	}
	many := func(n int, before, each, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(each+",", n), ",") + after
	}
	const span = `{"id":"1","timestamp":1`
	const v1Span = `[{"traceId":"0000000000000001","id":"0000000000000001",`
	length := func(n int) string {
		return string([]byte{byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21)})
	}
	return map[string]request{
		"a million tags":          v2(many(1_000_000, `[`+span+`,"tags":{`, `"":1`, `}}]`)),
		"tags within the limit":   v2(many(30_000, `[`+span+`,"tags":{`, `"":1`, `}}]`)),
		"tags for resources":      v2(many(30_000, `[`+span+`,"tags":{`, `"os.":1`, `}},{"id":"2","tags":{"os.a":1}}]`)),
		"a resource in each span": v2(many(10_000, `[`, span+`,"tags":{"os.a":"1","os.b":"2"}}`, `]`)),
		"annotations":             v2(many(30_000, `[`+span+`,"annotations":[`, `{"value":"|"}`, `]}]`)),
		"packed attributes":       v2(many(30_000, `[`+span+`,"annotations":[{"value":"n|{`, `\"\":1`, `}|0"}]}]`)),
		"nested":                  v2(`[{"x":` + strings.Repeat(`[`, 1<<17)),
		"nested in a tag":         v2(`[{"tags":{"x":` + strings.Repeat(`{"a":`, 1<<16)),
		"nested when packed":      v2(`[` + span + `,"annotations":[{"value":"n|{\"a\":` + strings.Repeat(`[`, 1<<17) + `|0"}]}]`),
		"huge numbers": v2(`[{"id":"1","timestamp":` + strings.Repeat("9", 1<<17) + `,"duration":1e` +
			strings.Repeat("9", 1<<16) + `}]`),
		"small spans": v2(many(20_000, `[`, `{"id":"1"}`, `]`)),
		"links":       v2(many(10_000, `[`+span+`,"tags":{`, `"otlp.link.1":"1|1||{}|0"`, `}}]`)),
		"services":    v2(services(5_000)),
		"gzip bomb": {path: "/api/v2/spans", body: zipped(strings.Repeat(" ", 24<<20)),
			header: []string{"Content-Encoding", "gzip"}},
		"small protobuf spans": protobuf(strings.Repeat("\x0a\x0a\x1a\x08\x01\x01\x01\x01\x01\x01\x01\x01", 20_000)),
		"empty protobuf tags": protobuf("\x0a" + length(10+2*30_000) + "\x1a\x08\x01\x01\x01\x01\x01\x01\x01\x01" +
			strings.Repeat("\x5a\x00", 30_000)),
		"protobuf wrong length":    protobuf("\x0a\xff\xff\xff\xff\x0f"),
		"unterminated protobuf":    protobuf(strings.Repeat("\x0b", 1<<17)),
		"Thrift wrong list size":   thrift("\x0c\x7f\xff\xff\xff"),
		"Thrift wrong string size": thrift("\x0c\x00\x00\x00\x01\x0b\x00\x03\x7f\xff\xff\xff"),
		"v1 binary annotations":    v1(many(20_000, v1Span+`"binaryAnnotations":[`, `{"key":"a"}`, `]}]`)),
		"v1 hosts": v1(many(20_000, v1Span+`"annotations":[`,
			`{"value":1,"endpoint":{"port":1}},{"value":1,"endpoint":{"port":2}}`, `]}]`)),
		"v1 small spans":           v1(many(20_000, `[`, `{"traceId":"0000000000000001","id":"0000000000000001"}`, `]`)),
		"v1 nested":                v1(`[{"x":` + strings.Repeat(`[`, 1<<17)),
		"v1 annotations for times": v1(many(10_000, v1Span+`"annotations":[`, `{"value":"a"}`, `]}]`)),
	}
}

// services returns spans of n services.
func services(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"id":"1","localEndpoint":{"serviceName":"%d"}}`, i)
	}
	return "[" + b.String()[1:] + "]"
}

// Every request is accepted, invalid or too large.
func TestHostileBodies(t *testing.T) {
	f := start(t, nil, testBudget)
	for name, r := range hostile() {
		t.Run(name, func(t *testing.T) {
			resp, body := f.do(t, r)
			switch resp.StatusCode {
			case 202, 400, 413:
			default:
				t.Errorf("%s %.200q", resp.Status, body)
			}
		})
	}
}

// The total allocation of a translation is at most a small multiple of the reserved memory.
func TestTranslationMemory(t *testing.T) {
	for name, r := range hostile() {
		f := formatOf(r.http(t))
		if len(r.header) > 0 && r.header[0] == "Content-Encoding" {
			continue
		}
		body := []byte(r.body)
		reserved := f.memory(body, defaults().MaxItems)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.translate(body, zipkin.Options{}) //nolint:errcheck // only the memory matters
		runtime.ReadMemStats(&after)
		// The discarded arrays of a growing slice have about five times the size of the last one;
		// two arrays are in memory at a time.
		const growth = 3
		if total := int64(after.TotalAlloc - before.TotalAlloc); total > growth*reserved {
			t.Errorf("%s: %d bytes allocated, %d reserved for %d bytes of input", name, total, reserved, len(body))
		}
	}
}

// Typical spans do not reserve much more memory than their size, so that many clients can send
// concurrently.
func TestMemoryOfTypicalSpans(t *testing.T) {
	const host = `"endpoint":{"serviceName":"frontend","ipv4":"10.0.0.1","port":8080}`
	const span = `{"traceId":"00000000000000a1","id":"fffffffffffffffe","name":"get /carts","timestamp":1500000000000001,"duration":7,` +
		`"annotations":[{"timestamp":1500000000000001,"value":"sr",` + host +
		`},{"timestamp":1500000000000008,"value":"ss",` + host + `}],` +
		`"binaryAnnotations":[{"key":"http.method","value":"GET",` + host + `},{"key":"http.path","value":"/api/carts/42",` + host + `}]},`
	body := []byte("[" + strings.Repeat(span, 1000) + "null]")
	const maxRatio = 15
	if got := v1JSON.memory(body, defaults().MaxItems); got > maxRatio*int64(len(body)) {
		t.Errorf("%d bytes reserved for %d bytes of input", got, len(body))
	}
}

// A body whose translation can never fit the budget is refused permanently. One that does not fit
// now is refused as overloaded.
func TestBudget(t *testing.T) {
	f := start(t, nil, 1<<20)
	resp, body := f.do(t, request{path: "/api/v2/spans", body: "[" + strings.Repeat(`{"id":"1"},`, 5000) + `{"id":"1"}]`})
	if resp.StatusCode != 413 {
		t.Errorf("got %s %q", resp.Status, body)
	}
	held, err := f.budget.Reserve(f.budget.Limit() - 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	resp, body = f.do(t, request{path: "/api/v2/spans", body: oneV2})
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, pipeline.ErrOverBudget.Error()) {
		t.Errorf("got %s %q", resp.Status, body)
	}
	if got := f.refused(t); got["too_large"] != 1 || got["over_budget"] != 1 {
		t.Errorf("counted %v", got)
	}
}
