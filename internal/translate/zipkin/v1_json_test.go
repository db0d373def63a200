package zipkin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// v1 are the first members of each span.
const v1 = `"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","timestamp":1500000000000001,"duration":7,`

const v1Host1 = `"endpoint":{"serviceName":"a","ipv4":"10.0.0.1","port":80}`

// v1Rules has an example for each rule of the translation of v1 spans that come as JSON, and for
// what clients send that is not quite what it should be.
var v1Rules = []struct{ name, body string }{
	{"no spans", `[]`},
	{"null", `null`},
	{"64 and 128 bits", `[{"traceId":"463ac35c9f6413ad48485a3953bb6124","parentId":"000000000000000A","id":"ABCDEF0123456789",
		"name":"GET /Cart"},
		{"traceId":"48485a3953bb6124","parentId":"","id":"48485a3953bb6124"}]`},
	{"kinds", `[{` + v1 + `"annotations":[{"value":"cs"}]},{` + v1 + `"annotations":[{"value":"cr"}]},
		{` + v1 + `"annotations":[{"value":"sr"}]},
		{` + v1 + `"annotations":[{"value":"ss"}]},{` + v1 + `"annotations":[{"value":"ms"}]},{` + v1 + `"annotations":[{"value":"mr"}]},
		{` + v1 + `"annotations":[{"value":"CS"}]}]`},
	{"client and server in one", `[{` + v1 + `"annotations":[{"timestamp":2,"value":"sr"},{"timestamp":1,"value":"cs"}]}]`},
	{"services, by name and address", `[{` + v1 + `"annotations":[{"value":"x","endpoint":{"serviceName":"none"}},{"value":"cs"},
			{"value":"cs","endpoint":{"serviceName":""}},{"value":"cr",` + v1Host1 + `},
				{"value":"cr","endpoint":{"serviceName":"late"}}]},
		{` + v1 + `"annotations":[{"value":"sr",` + v1Host1 + `}]},
		{` + v1 + `"annotations":[{"value":"sr","endpoint":{"serviceName":"a","ipv4":"10.0.0.1","port":81}}]},
		{` + v1 + `"annotations":[{"value":"sr","endpoint":{"serviceName":"a","ipv6":"2001:db8::1"}}]},
		{` + v1 + `"annotations":[{"value":"sr",` + v1Host1 + `}]}]`},
	{"services of binary annotations, the last one", `[{` + v1 + `"binaryAnnotations":[
		{"key":"a","value":"","endpoint":{"serviceName":"first"}},
		{"key":"b","value":"",` + v1Host1 + `},{"key":"c","value":"","endpoint":{"serviceName":""}},{"key":"lc","value":"component"}]}]`},
	{"the local component as service", `[{` + v1 + `"binaryAnnotations":[{"key":"lc","value":"c"}]}]`},
	{"an unknown service", `[{` + v1 + `"annotations":[{"value":"x",` + v1Host1 + `}]}]`},
	{"events", `[{` + v1 + `"annotations":[{"timestamp":1500000000000002,"value":"ws"},{"value":"no time"},{"timestamp":3,"value":""},
		{"timestamp":3,"value":null},{},null,{"timestamp":-4,"value":"{\"a\":1}"},{"timestamp":5,"value":6,"endpoint":null}]}]`},
	{"times", `[{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","timestamp":5},
		{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","timestamp":5,"duration":-2},
		{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","annotations":[{"timestamp":9,"value":"x"},{"timestamp":7,"value":"cs"},
			{"timestamp":11,"value":"cr"}]},
		{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","annotations":[{"value":"no time"},{"timestamp":9,"value":"sr"},
			{"timestamp":-5,"value":"before"},{"timestamp":11,"value":"ss"}]},
		{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","timestamp":-1,"annotations":[{"timestamp":9,"value":"sr"}]},
		{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","duration":2},
		{"traceId":"48485a3953bb6124","id":"463ac35c9f6413ad","timestamp":9223372036854775807,"duration":9223372036854775807}]`},
	{"attributes", `[{` + v1 + `"binaryAnnotations":[{"key":"http.path","value":"/api"},{"key":"twice","value":"1"},
		{"key":"twice","value":"2"},
		{"key":"sa","value":true,` + v1Host1 + `},{"key":"ca","value":true},{"key":"n","value":-7},{"key":"f","value":1.50},
			{"key":"z","value":null},
		{"key":"none"},{"key":"text","value":"007","type":"I64"},{"value":"keyless"},null,{"key":"l","value":[1, 2]},
			{"key":"@tracing@flags","value":2}]}]`},
	{"errors", `[{` + v1 + `"binaryAnnotations":[{"key":"error","value":"timeout"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"error","value":false}]},
		{` + v1 + `"binaryAnnotations":[{"key":"error","value":""},{"key":"otel.status_description","value":"o"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"error","value":""},{"key":"otel.status_description","value":"o"},
			{"key":"census.status_description","value":"c"}]}]`},
	{"census", `[{` + v1 + `"binaryAnnotations":[{"key":"census.status_code","value":"0"},{"key":"error","value":"x"},
		{"key":"otel.status_code","value":"2"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"census.status_code","value":13},
			{"key":"opencensus.status_description","value":"internal"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"census.status_code","value":"x"},
			{"key":"census.status_description","value":"lost without a code"}]}]`},
	{"status", `[{` + v1 + `"binaryAnnotations":[{"key":"otel.status_code","value":"1"},{"key":"otel.status_description","value":"d"},
		{"key":"error","value":"x"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"otel.status_code","value":"OK"}]},
			{` + v1 + `"binaryAnnotations":[{"key":"otel.status_code","value":"4294967296"}]}]`},
	{"status by HTTP", `[{` + v1 + `"binaryAnnotations":[{"key":"http.status_code","value":"200"},
		{"key":"http.status_message","value":"OK"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"http.status_code","value":"404"},{"key":"http.status_message","value":"Not Found"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"http.status_code","value":99}]},
			{` + v1 + `"binaryAnnotations":[{"key":"http.status_code","value":"399"}]},
		{` + v1 + `"binaryAnnotations":[{"key":"http.status_code","value":true}]}]`},
	{"debug", `[{` + v1 + `"debug":true},{` + v1 + `"debug":false}]`},
	{"members twice", `[{` + v1 + `"name":"1","name":"2","annotations":[{"value":"1"}],"annotations":[{"value":"2"}],
		"binaryAnnotations":[{"key":"1"}],"binaryAnnotations":[{"key":"1","key":"2"}],"unknown":[{"a":{}}]}]`},
	{"text", `[{` + v1 + `"name":"\u00e9\ud83d\ude00\ud800\n","binaryAnnotations":[{"key":"\"k\"","value":"` + "\xff" + `"}]}]`},
	{"null for a span", `[null]`},
	{"trace id too long", `[{"traceId":"463ac35c9f6413ad48485a3953bb61240","id":"463ac35c9f6413ad"}]`},
	{"trace id with another digit", `[{"traceId":"463ac35c9f6413ax","id":"463ac35c9f6413ad"}]`},
	{"zero trace id", `[{"traceId":"0000000000000000","id":"463ac35c9f6413ad"}]`},
	{"no span id", `[{"traceId":"463ac35c9f6413ad"}]`},
	{"span id with another digit", `[{"traceId":"463ac35c9f6413ad","id":"463ac35c9f6413-d"}]`},
	{"zero span id", `[{"traceId":"463ac35c9f6413ad","id":"0000000000000000"}]`},
	{"parent id too short", `[{"traceId":"463ac35c9f6413ad","id":"463ac35c9f6413ad","parentId":"1"}]`},
	{"zero parent id", `[{"traceId":"463ac35c9f6413ad","id":"463ac35c9f6413ad","parentId":"0000000000000000"}]`},
	{"no JSON", `xyz`},
	{"end of the input", `[{"traceId":`},
	{"wrong type", `[{"traceId":1}]`},
}

func v1Options() Options { return Options{Now: time.Unix(1600000000, 5)} }

func TestV1JSONRules(t *testing.T) {
	var got strings.Builder
	for _, r := range v1Rules {
		got.WriteString("# " + r.name + "\n" + dumped(FromV1JSON([]byte(r.body), v1Options())))
	}
	golden.Check(t, "testdata/v1-json.golden", got.String())
}

func TestV1ParseStringTags(t *testing.T) {
	body := `[{` + v1 + `"binaryAnnotations":[{"key":"a","value":"1"},{"key":"b","value":"1.5"},{"key":"c","value":"true"},
		{"key":"d","value":"x"},
		{"key":"e","value":"007"},{"key":"f","value":2},{"key":"http.status_code","value":"500"}]}]`
	got := dumped(FromV1JSON([]byte(body), Options{ParseStringTags: true}))
	golden.Check(t, "testdata/v1-parsed-tags.golden", got)
}

func TestV1DebugHeader(t *testing.T) {
	if got := dumped(FromV1JSON([]byte(`[{`+v1+`"debug":false}]`), Options{Debug: true})); !strings.Contains(got, "@tracing@flags=3") {
		t.Errorf("no flags attribute in\n%s", got)
	}
}

// TestV1Limits: exceeding a limit is an error that names the limit.
func TestV1Limits(t *testing.T) {
	span := `{` + v1 + `"annotations":[{"value":"a"},{"value":"b"}],"binaryAnnotations":[{"key":"a"},{"key":"b"}]}`
	for limits, ok := range map[otlpdata.Limits]bool{
		{Items: 2, Spans: 2}: true, {Items: 1}: false, {Spans: 1}: false,
	} {
		_, err := FromV1JSON([]byte("["+span+","+span+"]"), Options{Limits: limits})
		var limit *otlpdata.LimitError
		if errors.As(err, &limit) == ok {
			t.Errorf("%+v: %v", limits, err)
		}
	}
}
