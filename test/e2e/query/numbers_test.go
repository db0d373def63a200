package query_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestNumbersOfTheUI recalculates numbers that the pages of the web UI show from the spans as they
// are exported: in the overview, a service, the map, Explore and Errors.
func TestNumbersOfTheUI(t *testing.T) {
	spans := 20_000
	if testing.Short() {
		spans = 2_000
	}
	start := time.Now().Add(-10 * time.Minute)
	testDataset(t, bench.New(17, start), spans, func(p *inprocess.Program) {
		c := &recalculation{p: p, spans: exported(p, start), window: fmt.Sprintf("start=%d&end=%d", start.UnixNano(), time.Now().UnixNano())}
		c.overview()
		c.service()
		c.servicemap()
		c.explore()
		c.groups()
		c.errors()
		c.ingest()
		if c.compared < 30 {
			t.Errorf("compared %d numbers, want 30", c.compared)
		}
	})
}

// recalculation compares numbers of the UI with numbers from exported spans.
type recalculation struct {
	p        *inprocess.Program
	spans    []exportedSpan
	window   string
	compared int
}

// exportedSpan is a span as its trace is downloaded.
type exportedSpan struct {
	ptrace.Span
	service, parentService string // parentService is empty without a parent
}

func (s exportedSpan) duration() float64 {
	if s.EndTimestamp() <= s.StartTimestamp() {
		return 1
	}
	return float64(s.EndTimestamp() - s.StartTimestamp())
}

func (s exportedSpan) failed() bool { return s.Status().Code() == ptrace.StatusCodeError }

func (s exportedSpan) isRequest() bool {
	return s.Kind() == ptrace.SpanKindServer || s.Kind() == ptrace.SpanKindConsumer
}

// exported downloads all traces.
func exported(p *inprocess.Program, start time.Time) []exportedSpan {
	p.T.Helper()
	params := url.Values{"query.start_time_min": {start.Add(-time.Minute).UTC().Format(time.RFC3339)}, "query.raw_traces": {"true"},
		"query.start_time_max": {time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}, "query.num_traces": {"10000"}}
	code, body := harness.Fetch(p.T, p.QueryURL()+"/api/v3/traces?"+params.Encode())
	if code != http.StatusOK {
		p.T.Fatalf("export: %d %.300s", code, body)
	}
	var all []exportedSpan
	for documents := json.NewDecoder(bytes.NewReader(body)); documents.More(); {
		var answer struct{ Result json.RawMessage }
		if err := documents.Decode(&answer); err != nil {
			p.T.Fatalf("export: %v", err)
		}
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(answer.Result)
		if err != nil {
			p.T.Fatalf("export: %v", err)
		}
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					all = append(all, exportedSpan{Span: s, service: service.AsString()})
				}
			}
		}
	}
	type key struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	services := make(map[key]string)
	for _, s := range all {
		services[key{s.TraceID(), s.SpanID()}] = s.service
	}
	for i := range all {
		all[i].parentService = services[key{all[i].TraceID(), all[i].ParentSpanID()}]
	}
	return all
}

// chosen returns the spans for which a condition holds.
func (c *recalculation) chosen(is func(exportedSpan) bool) (some []exportedSpan) {
	for _, s := range c.spans {
		if is(s) {
			some = append(some, s)
		}
	}
	return some
}

func failures(spans []exportedSpan) (n int) {
	for _, s := range spans {
		if s.failed() {
			n++
		}
	}
	return n
}

func sum(spans []exportedSpan) (ns float64) {
	for _, s := range spans {
		ns += s.duration()
	}
	return ns
}

// equal compares a number with the right one.
func (c *recalculation) equal(what string, got, want float64) {
	c.p.T.Helper()
	if c.compared++; got != want {
		c.p.T.Errorf("%s: %v, want %v", what, got, want)
	}
}

// percentile compares a percentile with the right one, than which it may be lower by the width of a
// bucket.
func (c *recalculation) percentile(what string, got *float64, spans []exportedSpan, q float64) {
	c.p.T.Helper()
	c.compared++
	if len(spans) == 0 {
		if got != nil {
			c.p.T.Errorf("%s: %v of no spans", what, *got)
		}
		return
	}
	all := make([]float64, len(spans))
	for i, s := range spans {
		all[i] = s.duration()
	}
	slices.Sort(all)
	want := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
	if got == nil {
		c.p.T.Errorf("%s: no number, want %v", what, want)
	} else if *got > want || *got < want*(1-0.0215)-1 {
		c.p.T.Errorf("%s: %v, want at most 2.2 %% less than %v", what, *got, want)
	}
}

// red is what pages say about calls.
type red struct {
	Calls, Errors float64
	P50, P95, P99 *float64
}

func (c *recalculation) red(what string, r red, spans []exportedSpan) {
	c.p.T.Helper()
	c.equal(what+": calls", r.Calls, float64(len(spans)))
	c.equal(what+": errors", r.Errors, float64(failures(spans)))
	c.percentile(what+": p50", r.P50, spans, 0.5)
	c.percentile(what+": p95", r.P95, spans, 0.95)
	c.percentile(what+": p99", r.P99, spans, 0.99)
}

func (c *recalculation) overview() {
	type series struct {
		Name    string
		Summary red
	}
	var a struct {
		Data struct {
			Total    series
			Services []series
		}
	}
	page(c.p, "services?"+c.window, &a)
	withRequests := make(map[string]bool)
	for _, s := range c.spans {
		withRequests[s.service] = withRequests[s.service] || s.isRequest()
	}
	ofService := func(s exportedSpan) bool { return s.isRequest() || !withRequests[s.service] }
	c.red("overview", a.Data.Total.Summary, c.chosen(ofService))
	c.equal("overview: services", float64(len(a.Data.Services)), float64(len(withRequests)))
	for _, of := range a.Data.Services {
		c.red("overview, "+of.Name, of.Summary, c.chosen(func(s exportedSpan) bool { return s.service == of.Name && ofService(s) }))
	}
}

// busiest returns the service with the most requests, and the number of its spans.
func (c *recalculation) busiest() string {
	requests := make(map[string]int)
	best := ""
	for _, s := range c.spans {
		if s.isRequest() {
			requests[s.service]++
		}
		if n := requests[s.service]; n > requests[best] || n == requests[best] && s.service < best {
			best = s.service
		}
	}
	return best
}

func (c *recalculation) service() {
	name := c.busiest()
	var a struct {
		Data struct {
			Roles []struct {
				Role       string
				Operations []struct {
					Name    string
					Time    float64
					Summary red
				}
			}
		}
	}
	page(c.p, "service?limit=1000&service="+url.QueryEscape(name)+"&"+c.window, &a)
	for _, role := range a.Data.Roles {
		for _, o := range role.Operations {
			spans := c.chosen(func(s exportedSpan) bool {
				call := s.Kind() == ptrace.SpanKindClient || s.Kind() == ptrace.SpanKindProducer
				ofRole := map[string]bool{"requests": s.isRequest(), "calls": call, "internal": !s.isRequest() && !call}[role.Role]
				return s.service == name && s.Name() == o.Name && ofRole
			})
			what := name + ", " + role.Role + ", " + o.Name
			c.red(what, o.Summary, spans)
			c.equal(what+": time", o.Time, sum(spans))
		}
	}
}

func (c *recalculation) servicemap() {
	var a struct {
		Data struct {
			Nodes struct {
				Name []string
				Peer []bool
			}
			Edges struct {
				Parent, Child []int
				Calls, Errors []float64
				P50, P95      []*float64
			}
		}
	}
	page(c.p, "map?"+c.window, &a)
	nodes, edges := a.Data.Nodes, a.Data.Edges
	for i := range edges.Calls {
		parent, child := nodes.Name[edges.Parent[i]], nodes.Name[edges.Child[i]]
		if nodes.Peer[edges.Child[i]] || parent == child {
			continue
		}
		calls := c.chosen(func(s exportedSpan) bool { return s.parentService == parent && s.service == child })
		what := "map, " + parent + " to " + child
		c.equal(what+": calls", edges.Calls[i], float64(len(calls)))
		c.equal(what+": errors", edges.Errors[i], float64(failures(calls)))
		c.percentile(what+": p50", edges.P50[i], calls, 0.5)
		c.percentile(what+": p95", edges.P95[i], calls, 0.95)
	}
}

func (c *recalculation) explore() {
	traces, failed := make(map[pcommon.TraceID]bool), 0
	for _, s := range c.spans {
		traces[s.TraceID()] = traces[s.TraceID()] || s.failed()
	}
	for _, bad := range traces {
		if bad {
			failed++
		}
	}
	type totals struct {
		Data struct {
			Spans, Errors float64
			Cells         struct{ Bucket, Count, Errors []float64 }
			Facets        []struct {
				Field    string
				Spans    float64
				Distinct float64
				Values   struct {
					Text            []string
					Count, Selected []float64
				}
			}
		}
	}
	var ofTraces, ofSpans, facets totals
	page(c.p, "heatmap?of=traces&"+c.window, &ofTraces)
	c.equal("heatmap: traces", ofTraces.Data.Spans, float64(len(traces)))
	c.equal("heatmap: failed traces", ofTraces.Data.Errors, float64(failed))
	page(c.p, "heatmap?"+c.window, &ofSpans)
	c.equal("heatmap: spans", ofSpans.Data.Spans, float64(len(c.spans)))
	c.equal("heatmap: failed spans", ofSpans.Data.Errors, float64(failures(c.spans)))
	rows, want := make(map[float64]float64), make(map[float64]float64)
	for i, bucket := range ofSpans.Data.Cells.Bucket {
		rows[bucket] += ofSpans.Data.Cells.Count[i]
	}
	for _, s := range c.spans {
		want[math.Floor(8*math.Log2(s.duration()))]++
	}
	for bucket, n := range want {
		c.equal(fmt.Sprintf("heatmap: spans in bucket %v", bucket), rows[bucket], n)
	}
	page(c.p, "compare?fields=service,name,kind&values=1000&sel_q="+url.QueryEscape("{ error }")+"&"+c.window, &facets)
	c.equal("facets: spans", facets.Data.Spans, float64(len(c.spans)))
	for _, f := range facets.Data.Facets {
		of := map[string]func(s exportedSpan) string{"service": func(s exportedSpan) string { return s.service },
			"name": func(s exportedSpan) string { return s.Name() }}[f.Field]
		if of == nil {
			continue
		}
		for i, text := range f.Values.Text {
			spans := c.chosen(func(s exportedSpan) bool { return of(s) == text })
			c.equal("facets, "+f.Field+" "+text+": spans", f.Values.Count[i], float64(len(spans)))
			c.equal("facets, "+f.Field+" "+text+": errors", f.Values.Selected[i], float64(failures(spans)))
		}
	}
}

func (c *recalculation) groups() {
	var a struct {
		Data struct {
			Distinct float64
			All      struct{ P50, P95, P99, Time *float64 }
			Groups   struct {
				Values              [][]string
				Count, Errors, Time []float64
				P50, P95, P99       []*float64
			}
		}
	}
	page(c.p, "groups?by=service&limit=1000&"+c.window, &a)
	c.red("groups", red{float64(len(c.spans)), float64(failures(c.spans)), a.Data.All.P50, a.Data.All.P95, a.Data.All.P99}, c.spans)
	c.equal("groups: time", *a.Data.All.Time, sum(c.spans))
	g := a.Data.Groups
	c.equal("groups: number", a.Data.Distinct, float64(len(g.Count)))
	for i, name := range g.Values[0] {
		spans := c.chosen(func(s exportedSpan) bool { return s.service == name })
		c.red("groups, "+name, red{g.Count[i], g.Errors[i], g.P50[i], g.P95[i], g.P99[i]}, spans)
		c.equal("groups, "+name+": time", g.Time[i], sum(spans))
	}
}

func (c *recalculation) errors() {
	var a struct {
		Data struct {
			Spans  float64
			Groups []struct {
				Service     string
				Count       float64
				First, Last string
				TraceID     string
			}
		}
	}
	page(c.p, "errors?limit=1000&"+c.window, &a)
	failed := c.chosen(exportedSpan.failed)
	c.equal("errors: spans", a.Data.Spans, float64(len(failed)))
	counts := make(map[string]float64)
	first := make(map[string]string)
	for _, g := range a.Data.Groups {
		if counts[g.Service] += g.Count; first[g.Service] == "" || g.First < first[g.Service] {
			first[g.Service] = g.First
		}
	}
	for service, n := range counts {
		spans := c.chosen(func(s exportedSpan) bool { return s.failed() && s.service == service })
		c.equal("errors, "+service, n, float64(len(spans)))
		earliest := slices.MinFunc(spans, func(a, b exportedSpan) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
		c.equal("errors, "+service+": first", number(c, first[service]), float64(earliest.StartTimestamp()))
	}
}

func (c *recalculation) ingest() {
	var a struct {
		Data struct{ OldestStart, NewestStart string }
	}
	page(c.p, "ingest", &a)
	compare := func(a, b exportedSpan) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) }
	c.equal("oldest span", number(c, a.Data.OldestStart), float64(slices.MinFunc(c.spans, compare).StartTimestamp()))
	c.equal("newest span", number(c, a.Data.NewestStart), float64(slices.MaxFunc(c.spans, compare).StartTimestamp()))
}

func number(c *recalculation, text string) float64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		c.p.T.Error(err)
	}
	return float64(n)
}
