package zipkin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
)

// s are the first members of each span in rules.
const s = `"traceId":"a1","id":"b2","timestamp":1500000000000001,"duration":7,`

// rules are examples for the rules of the translation of v2 spans, and for the deviations that
// clients send.
var rules = []struct{ name, body string }{
	{"no spans", `[]`},
	{"null", `null`},
	{"null spans", `[null,{"id":"1"},null]`},
	{"grouped by service and scope, each in the order of the request", `[
		{"traceId":"1","id":"1","localEndpoint":{"serviceName":"b"},"tags":{"otel.scope.name":"y"}},
		{"traceId":"1","id":"2","localEndpoint":{"serviceName":"a"}},
		{"traceId":"1","id":"3","localEndpoint":{"serviceName":"b"},"tags":{"otel.scope.name":"x","otel.scope.version":"2"}},
		{"traceId":"1","id":"4","localEndpoint":{"serviceName":"b"},"tags":{"otel.library.name":"y"}},
		{"traceId":"1","id":"5"},
		{"traceId":"1","id":"6","localEndpoint":{"serviceName":"a"}},
		{"traceId":"1","id":"7","localEndpoint":{"serviceName":"b"},"tags":{"otel.scope.name":"x","otel.scope.version":"1"}}]`},
	{"case is kept", `[{` + s + `"name":"GET /Cart","localEndpoint":{"serviceName":"Cart"}}]`},
	{"tags for the resource", `[
		{` + s + `"localEndpoint":{"serviceName":"a"},"tags":{"host.name":"h1","service.version":"1","http.method":"GET","opencensus.starttime":"x"}},
		{` + s + `"localEndpoint":{"serviceName":"a"},"tags":{"host.name":"h2","service.version":"1"}},
		{` + s + `"localEndpoint":{"serviceName":"a"},"tags":{"service.name":"other","k8s.pod.name":"p"}}]`},
	{"a tag that repeats the service, and one that contradicts it", `[
		{` + s + `"localEndpoint":{"serviceName":"a"},"tags":{"service.name":"a","os.type":"linux"}},
		{` + s + `"localEndpoint":{"serviceName":"b"},"tags":{"service.name":"c","os.type":"linux"}}]`},
	{"tags for a resource without a service", `[{` + s + `"tags":{"service.name":"a","faas.name":"f","faas.trigger":"http"}}]`},
	{"the attribute that names the service", `[
		{` + s + `"localEndpoint":{"serviceName":"f"},"tags":{"otlp.service.name.source":"faas.name"}},
		{` + s + `"localEndpoint":{"serviceName":"f"},"tags":{"otlp.service.name.source":"faas.name"}}]`},
	{"no attribute that names the service", `[{` + s + `"localEndpoint":{"serviceName":"f"},"tags":{"otlp.service.name.source":""}}]`},
	{"the name that stands for none", `[{` + s + `"localEndpoint":{"serviceName":"OTLPResourceNoServiceName"},"tags":{"host.name":"h"}},{` + s + `"name":"n"}]`},
	{"a scope's version without a name", `[{` + s + `"tags":{"otel.scope.version":"1"}}]`},
	{"scope beats library", `[{` + s + `"tags":{"otel.library.name":"l","otel.library.version":"1","otel.scope.name":"s","otel.scope.version":"2"}}]`},
	{"kinds", `[{` + s + `"kind":"CLIENT"},{` + s + `"kind":"SERVER"},{` + s + `"kind":"PRODUCER"},{` + s + `"kind":"CONSUMER"},{` + s + `"kind":"server"},
		{` + s + `"kind":"OTHER"},{` + s + `"kind":null},{` + s + `"tags":{"span.kind":"internal"}},{` + s + `"tags":{"span.kind":"client"}},
		{` + s + `"tags":{"span.kind":"other"}},{` + s + `"kind":"CLIENT","tags":{"span.kind":"internal"}}]`},
	{"ids", `[{"traceId":"463ac35c9f6413ad48485a3953bb6124","parentId":"1","id":"ABCDEF0123456789"},{"traceId":"48485a3953bb6124","parentId":"","id":"a"},
		{"traceId":"1234567890abcdef0","id":"0000000000000001"},{"id":"1","parentId":"0000000000000000"}]`},
	{"a span that is its own parent", `[{` + s + `"parentId":"00000000000000b2"}]`},
	{"no span id", `[{"traceId":"1"}]`},
	{"zero span id", `[{"traceId":"1","id":"0000000000000000"}]`},
	{"trace id too long", `[{"traceId":"463ac35c9f6413ad48485a3953bb61240","id":"1"}]`},
	{"trace id with another digit", `[{"traceId":"g","id":"1"}]`},
	{"span id too long", `[{"traceId":"1","id":"00000000000000001"}]`},
	{"errors", `[{` + s + `"tags":{"error":"true"}},{` + s + `"tags":{"error":""}},{` + s + `"tags":{"error":"500"}},{` + s + `"tags":{"error":true}}]`},
	{"status", `[{` + s + `"tags":{"otel.status_code":"OK","otel.status_description":"fine"}},{` + s + `"tags":{"otel.status_code":"STATUS_CODE_ERROR"}},
		{` + s + `"tags":{"otel.status_code":"Unset","otel.status_description":"d"}},{` + s + `"tags":{"otel.status_code":"other"}},
		{` + s + `"tags":{"otel.status_description":"alone"}},{` + s + `"tags":{"error":"x","otel.status_code":"Ok","otel.status_description":"d"}}]`},
	{"trace state", `[{` + s + `"tags":{"w3c.tracestate":"a=1,b=2"}}]`},
	{"links, by their numbers", `[{` + s + `"tags":{"otlp.link.10":"a|a||{}|0","otlp.link.2":"463ac35c9f6413ad48485a3953bb6124|2|k=v|{\"a\":\"x|y\",\"n\":1,\"f\":1.5}|3",
		"otlp.link.0":"1|1||{}|0"}}]`},
	{"links that are none", `[{` + s + `"tags":{"otlp.link.":"1|1||{}|0","otlp.link.128":"1|1||{}|0","otlp.link.1":"1|1|{}|0","otlp.link.2":"x|1||{}|0",
		"otlp.link.3":"1|1||{}|x","otlp.link.4":"1|1||[]|0","otlp.link.5":"1|1||{\"a\":}|0","otlp.link.6":""}}]`},
	{"endpoints", `[{` + s + `"localEndpoint":{"serviceName":"a","ipv4":"10.0.0.1","port":80},
		"remoteEndpoint":{"serviceName":"b","ipv4":"10.0.0.2","ipv6":"2001:DB8:0::1","port":65535}},
		{` + s + `"localEndpoint":{"ipv6":"::ffff:10.0.0.3","port":0},"remoteEndpoint":{"ipv4":"not one","port":"8080"}},
		{` + s + `"localEndpoint":null,"remoteEndpoint":{"serviceName":"","ipv4":"","other":[1]}}]`},
	{"times", `[{"id":"1","timestamp":0,"duration":5},{"id":"1","timestamp":"1500000000000000"},{"id":"1","timestamp":1.5e15,"duration":2.9},
		{"id":"1","timestamp":-1,"duration":-5},{"id":"1","timestamp":99999999999999999999,"duration":9223372036854775807}]`},
	{"annotations", `[{` + s + `"annotations":[{"timestamp":1500000000000002,"value":"ws"},{"value":"no time"},{"timestamp":3,"value":null},{},null,
		{"timestamp":4,"value":"name|{\"a\":1,\"b\":\"x|y\",\"c\":null,\"d\":true,\"e\":[1,\"2\"],\"f\":{\"g\":1},\"h\":1e3,\"i\":1e400}|2"},
		{"timestamp":5,"value":"a|b"},{"timestamp":6,"value":"a|b|c"},{"timestamp":7,"value":"a|{\"x\"}|1"},{"timestamp":8,"value":"|{}|0"}]}]`},
	{"debug", `[{` + s + `"debug":true,"shared":true},{` + s + `"debug":false}]`},
	{"the attribute for flags is not for clients", `[{` + s + `"tags":{"@tracing@flags":"2"}}]`},
	{"tags that are not strings", `[{` + s + `"tags":{"n":1.50,"b":true,"z":null,"l":[1, 2],"o":{"a":"b"}}}]`},
	{"tags twice", `[{` + s + `"tags":{"a":"1","a":"2"}}]`},
	{"members twice", `[{` + s + `"id":"c","tags":{"a":"1"},"tags":{"b":"1"},"annotations":[{"value":"a"}],"annotations":[{"value":"b"}]}]`},
	{"text", `[{` + s + `"name":"\u00e9\ud83d\ude00\ud800\n","tags":{"\"k\"":"` + "\xff" + `"}}]`},
	{"unknown members", `[{` + s + `"x":{"y":[1,{"z":null}]},"name":"n"}]`},
	{"end of the input", `[{"id":"1"`},
	{"empty body", ``},
	{"no JSON", `xyz`},
	{"something behind", `[]]`},
	{"one span", `{"id":"1"}`},
	{"wrong types", `[{"id":1}]`},
	{"list for an endpoint", `[{` + s + `"localEndpoint":[]}]`},
	{"text for a time", `[{"id":"1","timestamp":"now"}]`},
}

func TestV2JSONRules(t *testing.T) {
	var got strings.Builder
	for _, r := range rules {
		got.WriteString("# " + r.name + "\n" + dumped(FromV2JSON([]byte(r.body), Options{})))
	}
	golden.Check(t, "testdata/v2.golden", got.String())
}

func TestV2Captured(t *testing.T) {
	files, err := filepath.Glob("testdata/captured/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, f+".golden", dumped(FromV2JSON(b, Options{})))
	}
}

func TestV2DebugHeader(t *testing.T) {
	for _, body := range []string{`[{"id":"1"}]`, `[{"id":"1","debug":false}]`} {
		if got := dumped(FromV2JSON([]byte(body), Options{Debug: true})); !strings.Contains(got, "@tracing@flags=3") {
			t.Errorf("%s: no flags attribute in\n%s", body, got)
		}
	}
}

func TestParseStringTags(t *testing.T) {
	body := `[{` + s + `"tags":{"a":"1","b":"-2","c":"1.50","d":"true","e":"false","f":"007","g":"1e3","h":"0x10","i":"NaN","j":"1_000","k":"True","l":"-",
		"m":"","n":"9223372036854775808","o":"1.","p":".5","q":"-0.5","r":"1-2","s":"2024-01-02","t":"0","u":"00","v":"Infinity","w":1,"x":true,"y":"1e999"}}]`
	got := dumped(FromV2JSON([]byte(body), Options{ParseStringTags: true}))
	golden.Check(t, "testdata/v2-parsed-tags.golden", got)
}
