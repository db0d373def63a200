package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/semconv"
)

// renamed are attributes with their new and their old name.
var renamed = [][2]string{
	{"http.request.method", "http.method"}, {"http.response.status_code", "http.status_code"}, {"url.full", "http.url"},
	{"url.scheme", "http.scheme"}, {"user_agent.original", "http.user_agent"}, {"client.address", "http.client_ip"},
	{"http.request.body.size", "http.request_content_length"}, {"http.response.body.size", "http.response_content_length"},
	{"server.address", "net.host.name"}, {"server.port", "net.host.port"}, {"network.protocol.name", "net.protocol.name"},
	{"db.system.name", "db.system"}, {"db.query.text", "db.statement"}, {"db.operation.name", "db.operation"},
	{"db.namespace", "db.name"}, {"gen_ai.provider.name", "gen_ai.system"}, {"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
	{"code.function.name", "code.function"}, {"messaging.destination.name", "messaging.destination"}, {"rpc.system.name", "rpc.system"},
}

const migrationSpans = 60

// migrationSpan adds the attributes of span number i and returns the value that each attribute has
// in the end, or "". Each span is a trace of its own.
func migrationSpan(to pcommon.Map, i int) (value string) {
	value = fmt.Sprint("v", i/5%3)
	for _, names := range renamed {
		switch i % 5 {
		case 0:
			to.PutStr(names[1], value)
		case 1:
			to.PutStr(names[0], value)
		case 2:
			to.PutStr(names[1], value)
			to.PutStr(names[0], value)
		case 3:
			to.PutStr(names[1], "former")
			to.PutStr(names[0], value)
		}
	}
	switch i % 5 {
	case 0:
		to.PutInt("code.lineno", migrationLine)
	case 1:
		to.PutInt("code.line.number", migrationLine)
	case 4:
		return ""
	}
	return value
}

// migrationLine is a number that differs from the next ones only as an integer. Two of five spans
// have it.
const migrationLine = 1 << 53

// TestMigratedNames compares searches, facets, groups and metrics of renamed attributes with the
// spans that were stored, by each of their names.
func TestMigratedNames(t *testing.T) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "web")
	want := make(map[string]uint64)
	for i := range migrationSpans {
		sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{15: byte(i + 1)})
		sp.SetSpanID(pcommon.SpanID{7: 1})
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(querytest.Noon.Add(-time.Minute - time.Duration(i)*time.Second)))
		if value := migrationSpan(sp.Attributes(), i); value != "" {
			want[value]++
		}
	}
	names, err := semconv.New(semconv.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	h, _ := api(t, querytest.FilledMemory(t, td), func(o *core.Options) { o.Names = names })
	m := migration{t, h}
	for _, names := range renamed {
		for _, name := range names {
			for what, got := range map[string]map[string]uint64{
				"search": m.search(name), "tags": m.tags(name), "filter": m.filter(name),
				"facet": m.facet(name), "group": m.group(name), "metric": m.metric(name),
			} {
				if !maps.Equal(got, want) {
					t.Errorf("%s by %s: %v, want %v", what, name, got, want)
				}
			}
		}
	}
	m.checkLines()
	m.checkFilters()
	m.checkCompletion()
	m.checkComparison(want)
}

// migration asks the APIs.
type migration struct {
	*testing.T
	api http.Handler
}

func (m migration) get(path string, params url.Values, to any) {
	m.Helper()
	w := querytest.Ask(m, m.api, http.MethodGet, path+"?"+params.Encode())
	if err := json.Unmarshal(w.Body.Bytes(), to); err != nil || w.Code != http.StatusOK {
		m.Fatalf("%s %v: %d %.500s", path, params, w.Code, w.Body)
	}
}

func (m migration) traces(params url.Values) uint64 {
	m.Helper()
	var found struct{ Data []any }
	params.Set("limit", "1000")
	m.get("/api/traces", params, &found)
	return uint64(len(found.Data))
}

// migrationValues are all values of attributes. "former" is only a value of older names of spans
// that also have the newest one.
var migrationValues = []string{"former", "v0", "v1", "v2"}

// search returns the number of traces by value.
func (m migration) search(name string) map[string]uint64 {
	m.Helper()
	out := make(map[string]uint64)
	for _, value := range migrationValues {
		if n := m.traces(url.Values{"q": {fmt.Sprintf("{ .%s = %q }", name, value)}}); n > 0 {
			out[value] = n
		}
	}
	has, hasNot := m.traces(url.Values{"q": {"{ span." + name + " != nil }"}}), m.traces(url.Values{"q": {"{ !exists(span." + name + ") }"}})
	if has+hasNot != migrationSpans || has != migrationSpans*4/5 {
		m.Errorf("%d spans with %s, %d without", has, name, hasNot)
	}
	return out
}

func (m migration) tags(name string) map[string]uint64 {
	m.Helper()
	out := make(map[string]uint64)
	for _, value := range migrationValues {
		if n := m.traces(url.Values{"service": {"web"}, "tag": {name + ":" + value}}); n > 0 {
			out[value] = n
		}
	}
	return out
}

// filter searches by the structured filters of Jaeger.
func (m migration) filter(name string) map[string]uint64 {
	m.Helper()
	out := make(map[string]uint64)
	for _, value := range migrationValues {
		if n := m.summaries(fmt.Sprintf(`{"op":"eq","args":[{"attr":{"key":%q}},{"scalar":{"value":%q}}]}`, name, value)); n > 0 {
			out[value] = n
		}
	}
	return out
}

func (m migration) summaries(filter string) uint64 {
	m.Helper()
	var found struct{ Summaries []any }
	m.get("/api/v3/trace-summaries", url.Values{
		"query.startTimeMin": {querytest.Noon.Add(-time.Hour).Format(time.RFC3339)},
		"query.startTimeMax": {querytest.Noon.Format(time.RFC3339)},
		"query.filter":       {filter},
	}, &found)
	return uint64(len(found.Summaries))
}

// checkFilters checks comparisons of structured filters that are evaluated on whole traces.
func (m migration) checkFilters() {
	m.Helper()
	for i := range 2 {
		equal := fmt.Sprintf(`{"op":"eq","args":[{"attr":{"key":%q}},{"attr":{"key":%q}}]}`, renamed[0][i], renamed[1][1-i])
		if n := m.summaries(equal); n != migrationSpans*4/5 {
			m.Errorf("%s: %d", equal, n)
		}
		large := fmt.Sprintf(`{"op":"eq","args":[{"attr":{"key":%q}},{"scalar":{"type":"int","value":"%d"}}]}`,
			[]string{"code.line.number", "code.lineno"}[i], migrationLine)
		if n := m.summaries(large); n != migrationSpans*2/5 {
			m.Errorf("%s: %d", large, n)
		}
	}
}

// window is the time range of the spans, in nanoseconds.
func window(params url.Values) url.Values {
	params.Set("start", fmt.Sprint(querytest.Noon.Add(-time.Hour).UnixNano()))
	params.Set("end", fmt.Sprint(querytest.Noon.UnixNano()))
	return params
}

type migratedFacets struct {
	Data struct {
		Facets []struct {
			Field  string
			Names  []string
			Values struct {
				Text  []string
				Count []uint64
			}
		}
	}
}

func (m migration) facet(name string) map[string]uint64 {
	m.Helper()
	var a migratedFacets
	m.get("/api/ui/v1/facets", window(url.Values{"fields": {"span." + name}}), &a)
	out := make(map[string]uint64)
	for i, text := range a.Data.Facets[0].Values.Text {
		out[text] = a.Data.Facets[0].Values.Count[i]
	}
	return out
}

func (m migration) group(name string) map[string]uint64 {
	m.Helper()
	var a struct {
		Data struct {
			Groups struct {
				Values [][]*string
				Count  []uint64
			}
		}
	}
	m.get("/api/ui/v1/groups", window(url.Values{"by": {"span." + name}}), &a)
	out := make(map[string]uint64)
	for i, text := range a.Data.Groups.Values[0] {
		if text != nil {
			out[*text] = a.Data.Groups.Count[i]
		}
	}
	return out
}

func (m migration) metric(name string) map[string]uint64 {
	m.Helper()
	var a struct {
		Series []struct {
			Labels []struct{ Value struct{ StringValue string } }
			Value  float64
		}
	}
	params := url.Values{"q": {"{ span." + name + " != nil } | count_over_time() by (span." + name + ")"}}
	params.Set("start", fmt.Sprint(querytest.Noon.Add(-time.Hour).Unix()))
	params.Set("end", fmt.Sprint(querytest.Noon.Unix()))
	m.get("/tempo/api/metrics/query", params, &a)
	out := make(map[string]uint64)
	for _, s := range a.Series {
		for _, l := range s.Labels {
			if l.Value.StringValue != "" {
				out[l.Value.StringValue] = uint64(s.Value)
			}
		}
	}
	return out
}

// checkLines checks that facets and completion list each attribute once, by its new name.
func (m migration) checkLines() {
	m.Helper()
	var a migratedFacets
	m.get("/api/ui/v1/facets", window(url.Values{}), &a)
	var keys struct{ Data struct{ Names []string } }
	m.get("/api/ui/v1/keys", url.Values{"prefix": {"span."}, "limit": {"1000"}}, &keys)
	var fields []string
	for _, f := range a.Data.Facets {
		fields = append(fields, f.Field)
	}
	for _, names := range renamed {
		for what, list := range map[string][]string{"facets": fields, "keys": keys.Data.Names} {
			if !slices.Contains(list, "span."+names[0]) || slices.Contains(list, "span."+names[1]) {
				m.Errorf("%s: %q", what, list)
			}
		}
	}
}

// checkCompletion checks the values that searches complete, and the tags of Tempo's API.
func (m migration) checkCompletion() {
	m.Helper()
	var tags struct{ TagNames []string }
	m.get("/tempo/api/search/tags", url.Values{}, &tags)
	for _, names := range renamed {
		if !slices.Contains(tags.TagNames, names[0]) || slices.Contains(tags.TagNames, names[1]) {
			m.Errorf("tags: %q", tags.TagNames)
		}
		for _, name := range names {
			var all, some struct{ Data struct{ Names []string } }
			m.get("/api/ui/v1/values", url.Values{"key": {"span." + name}}, &all)
			m.get("/api/ui/v1/values", window(url.Values{"key": {"span." + name}, "q": {`{ service = "web" }`}}), &some)
			if !slices.Equal(all.Data.Names, migrationValues) || !slices.Equal(some.Data.Names, migrationValues[1:]) {
				m.Errorf("values of %s: %q and %q", name, all.Data.Names, some.Data.Names)
			}
		}
	}
}

// checkComparison compares the spans with one value with the others.
func (m migration) checkComparison(want map[string]uint64) {
	m.Helper()
	var a struct {
		Series []struct {
			Labels []struct {
				Key   string
				Value struct{ StringValue string }
			}
			Value float64
		}
	}
	params := url.Values{"q": {`{} | compare({ span.http.method = "v0" })`}}
	params.Set("start", fmt.Sprint(querytest.Noon.Add(-time.Hour).Unix()))
	params.Set("end", fmt.Sprint(querytest.Noon.Unix()))
	m.get("/tempo/api/metrics/query", params, &a)
	got := make(map[string]uint64)
	for _, s := range a.Series {
		got[fmt.Sprint(s.Labels)] = uint64(s.Value)
	}
	for _, names := range renamed {
		for value, n := range want {
			side := "baseline"
			if value == "v0" {
				side = "selection"
			}
			labels := func(key string) string { return fmt.Sprintf("[{__meta_type {%s}} {span.%s {%s}}]", side, key, value) }
			if got[labels(names[0])] != n || got[labels(names[1])] != 0 {
				m.Errorf("comparison of %s: %v", names[0], got)
			}
		}
	}
}
