package zipkin

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const (
	oneV2 = `[{"traceId":"1","id":"2","name":"get","timestamp":1500000000000000,"duration":5,"localEndpoint":{"serviceName":"cart"}}]`
	oneV1 = `[{"traceId":"0000000000000001","id":"0000000000000002","name":"get","timestamp":1500000000000000,"duration":5,` +
		`"annotations":[{"timestamp":1500000000000000,"value":"sr","endpoint":{"serviceName":"cart"}}]}]`
	// oneThrift is a list of one struct, the same span in the binary protocol.
	oneThrift = "\x0c\x00\x00\x00\x01" +
		"\x0a\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01" + "\x0b\x00\x03\x00\x00\x00\x03get" +
		"\x0a\x00\x04\x00\x00\x00\x00\x00\x00\x00\x02" +
		"\x0f\x00\x06\x0c\x00\x00\x00\x01" + "\x0a\x00\x01\x00\x05\x54\x3d\xf7\x29\xc0\x00" + "\x0b\x00\x02\x00\x00\x00\x02sr" +
		"\x0c\x00\x03\x0b\x00\x03\x00\x00\x00\x04cart\x00" + "\x00" +
		"\x0a\x00\x0a\x00\x05\x54\x3d\xf7\x29\xc0\x00" + "\x0a\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x05" + "\x00"
)

func oneProto(t *testing.T) string {
	b, err := proto.Marshal(&pb.ListOfSpans{Spans: []*pb.Span{
		{TraceId: []byte{7: 1}, Id: []byte{7: 2}, Name: "get", Timestamp: 1500000000000000, Duration: 5,
			LocalEndpoint: &pb.Endpoint{ServiceName: "cart"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// spanVisitor stores the only span of a batch.
type spanVisitor struct {
	service string
	span    otlpdata.Span
}

func (v *spanVisitor) Resource(r *otlpdata.Resource) error { v.service = r.Service; return nil }
func (v *spanVisitor) Scope(*otlpdata.Scope) error         { return nil }
func (v *spanVisitor) Span(s *otlpdata.Span) error {
	v.span = *s
	v.span.Attributes = slices.Clone(s.Attributes) // the walker reuses the slice
	return nil
}

func visit(t *testing.T, b *otlpdata.Batch) *spanVisitor {
	t.Helper()
	var v spanVisitor
	if err := b.Walk(&v); err != nil || b.Len() != 1 {
		t.Fatalf("%d spans: %v", b.Len(), err)
	}
	return &v
}

func TestFormats(t *testing.T) {
	f := start(t, nil, testBudget)
	for name, r := range map[string]request{
		"v2 JSON":              {path: "/api/v2/spans", body: oneV2, header: []string{"Content-Type", "application/json"}},
		"v2 without a type":    {path: "/api/v2/spans", body: oneV2},
		"v2 of any other type": {path: "/api/v2/spans", body: oneV2, header: []string{"Content-Type", ";;"}},
		"v2 with a prefix":     {path: "/zipkin/api/v2/spans/", body: oneV2},
		"v2 protobuf":          {path: "/api/v2/spans", body: oneProto(t), header: []string{"Content-Type", "application/x-protobuf"}},
		"v2 protobuf, a parameter": {path: "/api/v2/spans", body: oneProto(t),
			header: []string{"Content-Type", "Application/X-Protobuf; v=1"}},
		"v1 JSON": {path: "/api/v1/spans", body: oneV1,
			header: []string{"Content-Type", "application/json; charset=utf-8"}},
		"v1 Thrift": {path: "/api/v1/spans", body: oneThrift, header: []string{"Content-Type", "application/x-thrift"}},
		"v1 Thrift, a parameter": {path: "/api/v1/spans", body: oneThrift,
			header: []string{"Content-Type", "application/x-thrift; charset=utf-8"}},
	} {
		resp, body := f.do(t, r)
		if resp.StatusCode != http.StatusAccepted || body != "" {
			t.Errorf("%s: %s %q", name, resp.Status, body)
			continue
		}
		b := f.last(t)
		want := otlpdata.Meta{Format: "zipkin", Transport: "http", Received: time.Unix(1_700_000_000, 0)}
		if b.Meta() != want {
			t.Errorf("%s: %+v", name, b.Meta())
		}
		v := visit(t, b)
		if v.service != "cart" || v.span.Name != "get" || v.span.SpanID != (otlpdata.SpanID{7: 2}) || v.span.Start != 1500000000000000000 ||
			v.span.End != v.span.Start+5000 || v.span.NativeFlags()&otlpdata.FlagDebug != 0 {
			t.Errorf("%s: %s %+v", name, v.service, v.span)
		}
		r.header = append(r.header, "X-B3-Flags", "1")
		f.do(t, r)
		if v := visit(t, f.last(t)); v.span.NativeFlags()&otlpdata.FlagDebug == 0 {
			t.Errorf("%s: debug flag not set", name)
		}
	}
	if len(f.refused(t)) != 0 {
		t.Errorf("refused: %v", f.refused(t))
	}
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s)) //nolint:errcheck // into memory
	w.Close()          //nolint:errcheck // into memory
	return b.String()
}

// Status, headers and body of all kinds of responses.
func TestResponses(t *testing.T) {
	f := start(t, func(c *config) { c.MaxRequestBodySize, c.MaxSpans, c.MaxItems = 1<<20, 3, 5 }, testBudget)
	for name, c := range map[string]struct {
		request
		err   error
		code  int
		body  string
		retry string
	}{
		"spans":             {request: request{path: "/api/v2/spans", body: oneV2}, code: 202},
		"no spans":          {request: request{path: "/api/v2/spans", body: `[]`}, code: 202},
		"health":            {request: request{method: "GET", path: "/health"}, code: 200, body: `{"status":"UP"}`},
		"health, head only": {request: request{method: "HEAD", path: "/health"}, code: 200},
		"gzip": {request: request{path: "/api/v2/spans", body: zipped(oneV2), header: []string{"Content-Encoding", "gzip"}},
			code: 202},
		"other path":     {request: request{method: "GET", path: "/zipkin"}, code: 404, body: "404 page not found\n"},
		"post to health": {request: request{path: "/health"}, code: 404, body: "404 page not found\n"},
		"get":            {request: request{method: "GET", path: "/api/v2/spans"}, code: 405, body: "Method Not Allowed\n"},
		"no JSON": {request: request{path: "/api/v2/spans", body: `xyz`}, code: 400,
			body: "invalid character 'x' looking for beginning of value\n"},
		"empty":      {request: request{path: "/api/v2/spans"}, code: 400, body: "unexpected end of JSON input\n"},
		"no span id": {request: request{path: "/api/v2/spans", body: `[{}]`}, code: 400, body: "valid span id required\n"},
		"v1 trace id": {request: request{path: "/api/v1/spans", body: `[{"traceId":"1","id":"0000000000000002"}]`}, code: 400,
			body: "zipkinV1 span traceId: hex traceId span has wrong length (expected 16 or 32)\n"},
		"bad gzip": {request: request{path: "/api/v2/spans", body: "0123456789", header: []string{"Content-Encoding", "gzip"}}, code: 400,
			body: "gzip: invalid header\n"},
		"unknown encoding": {request: request{path: "/api/v2/spans", body: oneV2, header: []string{"Content-Encoding", "br"}}, code: 400,
			body: "unsupported Content-Encoding: br\n"},
		"too large": {request: request{path: "/api/v2/spans", body: strings.Repeat(" ", 1<<20) + "[]"}, code: 413,
			body: "http: request body too large\n"},
		"too many spans": {request: request{path: "/api/v2/spans", body: `[{"id":"1"},{"id":"2"},{"id":"3"},{"id":"4"}]`}, code: 413,
			body: "otlp: spans in one request: more than 3\n"},
		"spans of as many services": {request: request{path: "/api/v2/spans", body: `[{"id":"1","localEndpoint":{"serviceName":"a"}},` +
			`{"id":"2","localEndpoint":{"serviceName":"b"}},{"id":"3"}]`}, code: 202},
		"as many tags as there may be": {request: request{path: "/api/v2/spans",
			body: `[{"id":"1","localEndpoint":{"ipv4":"1.2.3.4","port":1},` +
				`"tags":{"a":1,"b":1,"c":1,"d":1,"e":1}}]`}, code: 202},
		"too many tags": {request: request{path: "/api/v2/spans", body: `[{"id":"1","tags":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}}]`},
			code: 400,
			body: "otlp: tags or annotations of one span: more than 5\n"},
		"permanent": {request: request{path: "/api/v2/spans", body: oneV2}, err: pipeline.Permanent(errors.New("no")),
			code: 400, body: `"Bad Request"`},
		"overloaded": {request: request{path: "/api/v2/spans", body: oneV2},
			err:  pipeline.Overloaded(errors.New("busy"), 1500*time.Millisecond),
			code: 429, body: "busy\n", retry: "2"},
		"transient": {request: request{path: "/api/v2/spans", body: oneV2}, err: errors.New("disk full \xff"), code: 503,
			body: "disk full \uFFFD\n", retry: "1"},
		"partial": {request: request{path: "/api/v2/spans", body: oneV2},
			err: &pipeline.Partial{Rejected: 1, Err: errors.New("no")}, code: 202},
	} {
		f.setError(c.err)
		resp, body := f.do(t, c.request)
		if resp.StatusCode != c.code || body != c.body || resp.Header.Get("Retry-After") != c.retry {
			t.Errorf("%s: %d %q, Retry-After %q", name, resp.StatusCode, body, resp.Header.Get("Retry-After"))
		}
		if allow := resp.Header.Get("Allow"); (allow == "POST") != (c.code == 405) {
			t.Errorf("%s: Allow is %q", name, allow)
		}
	}
	want := map[string]float64{"path": 2, "method": 1, "undecodable": 5, "encoding": 2, "too_large": 2}
	got := f.refused(t)
	for reason, n := range want {
		if got[reason] != n {
			t.Errorf("%s: counted %v, want %v", reason, got[reason], n)
		}
	}
}

func TestDebugLine(t *testing.T) {
	f := start(t, nil, testBudget)
	f.Logs.TakeAll() // discard the lines of Start
	for processed, err := range map[int64]error{2: nil, 1: &pipeline.Partial{Rejected: 1}, 0: errors.New("no")} {
		f.setError(err)
		f.do(t, request{path: "/api/v2/spans", body: `[{"id":"1"},{"id":"2"}]`})
		lines := f.Logs.TakeAll()
		if len(lines) != 1 || lines[0].Message != "Zipkin span batch processed by the collector." ||
			lines[0].ContextMap()["received-span-count"] != int64(2) || lines[0].ContextMap()["processed-span-count"] != processed {
			t.Errorf("%v: got %v", err, lines)
		}
	}
}

func TestTenants(t *testing.T) {
	f := start(t, func(c *config) {
		c.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant", Tenants: []string{"a"}})
	}, testBudget)
	if resp, body := f.do(t, request{path: "/api/v2/spans", body: oneV2}); resp.StatusCode != 403 || body != "missing tenant header\n" {
		t.Errorf("without a header: %d %q", resp.StatusCode, body)
	}
	resp, _ := f.do(t, request{path: "/api/v2/spans", body: oneV2, header: []string{"X-Tenant", "a"}})
	if resp.StatusCode != 202 || f.last(t).Meta().Tenant != "a" {
		t.Errorf("got %d for %q", resp.StatusCode, f.last(t).Meta().Tenant)
	}
}

func TestParseStringTags(t *testing.T) {
	f := start(t, func(c *config) { c.ParseStringTags = true }, testBudget)
	f.do(t, request{path: "/api/v2/spans", body: `[{"id":"1","timestamp":1,"tags":{"n":"5"}}]`})
	if v, _ := otlpdata.Get(visit(t, f.last(t)).span.Attributes, "n"); v.Int() != 5 {
		t.Errorf("got %v", v.AsString())
	}
}

func TestValidate(t *testing.T) {
	c := defaults()
	if err := errors.Join(c.HTTPConfig.Validate(), c.RequestLimits.Validate()); err != nil {
		t.Error(err)
	}
	c.MaxSpans, c.MaxItems = 0, 1<<40
	err := errors.Join(c.HTTPConfig.Validate(), c.RequestLimits.Validate())
	for _, want := range []string{"from 1 to 2147483647, not 0", "from 1 to 2147483647, not 1099511627776"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
