package connectors_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// program is a running configuration with a query API for each of its stores.
type program struct {
	*harness.Process
	t *testing.T
}

// run starts the executable with stores in memory, the given connectors and pipelines, and more
// exporters.
func run(t *testing.T, stores []string, yaml string, more ...string) *program {
	t.Helper()
	return &program{harness.RunYAML(t, configuration(stores, more, yaml)), t}
}

// configuration adds to a configuration a receiver otlp, for each store an exporter and a query
// API, and more exporters.
func configuration(stores, more []string, yaml string) string {
	var exporters, queries, ids []string
	for _, s := range stores {
		exporters = append(exporters, fmt.Sprintf("memory/%s: ", s))
		queries = append(queries, fmt.Sprintf("query/%s: {storage: memory/%s, http: {endpoint: 127.0.0.1:0}}", s, s))
		ids = append(ids, "query/"+s)
	}
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: 127.0.0.1:0, include_metadata: true}}}}
exporters: {%s}
extensions: {%s, admin: {endpoint: 127.0.0.1:0}}
%s`, strings.Join(append(exporters, more...), ", "), strings.Join(queries, ", "),
		strings.ReplaceAll(yaml, "EXTENSIONS", strings.Join(append(ids, "admin"), ", ")))
}

// trace is a trace of one span.
type trace struct {
	number      int
	environment string // of the resource
	tenant      string // in a header of the request
}

func (tr trace) id() string {
	return fmt.Sprintf("%016x%016x", tr.number+1, 0x9e3779b97f4a7c15*uint64(tr.number+1))
}

// traces returns n traces of an environment.
func traces(from, n int, environment string) (all []trace) {
	for i := range n {
		all = append(all, trace{number: from + i, environment: environment})
	}
	return all
}

// send sends traces in requests of 50, and fails the test unless all are acknowledged.
func (p *program) send(all []trace) {
	p.t.Helper()
	for some := range slices.Chunk(all, 50) {
		if status, answer := p.post(some); status != http.StatusOK {
			p.t.Fatalf("trace %d: %d %s", some[0].number, status, answer)
		}
	}
}

// post sends traces in one request, with the tenant of the first one.
func (p *program) post(all []trace) (status int, answer string) {
	p.t.Helper()
	now := time.Now().UnixNano()
	var resources []string
	for _, tr := range all {
		resources = append(resources, fmt.Sprintf(`{"resource":{"attributes":[
			{"key":"service.name","value":{"stringValue":"shop"}},
			{"key":"deployment.environment","value":{"stringValue":%q}}]},
			"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"00000000000000aa","name":"GET /","kind":2,
			"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}`, tr.environment, tr.id(), now-int64(time.Millisecond), now))
	}
	header := []string{"Content-Type", "application/json"}
	if all[0].tenant != "" {
		header = append(header, "X-Tenant-ID", all[0].tenant)
	}
	return harness.Request(p.t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces",
		`{"resourceSpans":[`+strings.Join(resources, ",")+`]}`, header...)
}

// stored returns the sorted ids of the traces in a store.
func (p *program) stored(store string) []string {
	p.t.Helper()
	status, body := harness.Fetch(p.t, "http://"+p.Address("query/"+store, "http")+"/api/traces?service=shop&limit=1500&lookback=1h")
	var answer struct {
		Data []struct {
			TraceID string `json:"traceID"`
			Spans   []any  `json:"spans"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		p.t.Fatalf("%s: %d %s: %v", store, status, body, err)
	}
	ids := map[string]bool{}
	for _, tr := range answer.Data {
		if len(tr.Spans) != 1 {
			p.t.Errorf("%s: trace %s has %d spans", store, tr.TraceID, len(tr.Spans))
		}
		ids[tr.TraceID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// counts returns the numbers of traces in stores, written `a:1 b:2`.
func (p *program) counts(stores ...string) string {
	p.t.Helper()
	var out []string
	for _, s := range stores {
		out = append(out, fmt.Sprintf("%s:%d", s, len(p.stored(s))))
	}
	return strings.Join(out, " ")
}
