package query_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// foundTraces is what the lines of /api/ui/v1/search say together.
type foundTraces struct {
	traces, failed, spans int
	complete              bool
}

// explore runs a search of the web UI to its end.
func explore(p *inprocess.Program, params string) (found foundTraces) {
	p.T.Helper()
	status, body := harness.Fetch(p.T, p.QueryURL()+"/api/ui/v1/search?matched=1&limit=10000&"+params)
	if status != http.StatusOK {
		p.T.Fatalf("search %s: %d %s", params, status, body)
	}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		var line struct {
			Trace *struct {
				Errors  int
				Matched *struct{ Spans int }
			}
			Outcome *struct{ Complete bool }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			p.T.Fatalf("%v: %s", err, lines.Bytes())
		}
		switch {
		case line.Trace != nil && line.Trace.Matched == nil:
			p.T.Fatalf("search %s: no matching spans in %s", params, lines.Bytes())
		case line.Trace != nil:
			found.traces++
			found.spans += line.Trace.Matched.Spans
			found.failed += min(line.Trace.Errors, 1)
		case line.Outcome != nil:
			found.complete = line.Outcome.Complete
		}
	}
	return found
}

// TestCountsAgreeWithSearch checks that heatmaps and facets count the spans and traces that a
// search finds, with every store and after a restart, and that completions occur on them.
func TestCountsAgreeWithSearch(t *testing.T) {
	soak.SkipIfRaced(t)
	spans := 10_000
	if testing.Short() {
		spans = 2_000
	}
	start := time.Now().Add(-10 * time.Minute)
	data := bench.New(11, start)
	service := data.Services()[2]
	searches := []string{`{ }`, `{ status = error }`, `{ service = "` + service + `" }`, `{ trace.duration > 50ms && kind = server }`,
		`{ kind = server } >> { status = error }`, `{ kind = client } > { kind = server }`,
		`{ status = error } && { service = "` + service + `" }`}
	testDataset(t, data, spans, func(p *inprocess.Program) {
		for _, q := range searches {
			checkCounts(p, fmt.Sprintf("start=%d&end=%d&q=%s", start.Add(-time.Minute).UnixNano(), start.Add(time.Hour).UnixNano(),
				url.QueryEscape(q)))
		}
	})
}

func checkCounts(p *inprocess.Program, params string) {
	p.T.Helper()
	found := explore(p, params)
	if !found.complete || found.traces == 0 {
		p.T.Errorf("search %s: %+v", params, found)
	}
	type counts struct {
		Data struct {
			Spans, Errors, EstimatedSpans int
			Share                         float64
			Facets                        []struct{ Values struct{ Text []string } }
		}
	}
	var ofTraces, ofSpans, facets counts
	page(p, "heatmap?of=traces&"+params, &ofTraces)
	page(p, "heatmap?"+params, &ofSpans)
	page(p, "facets?fields=service&values=1000&"+params, &facets)
	if d := ofTraces.Data; d.Share != 1 || d.Spans != found.traces || d.EstimatedSpans != found.traces || d.Errors != found.failed {
		p.T.Errorf("heatmap of traces %s: %+v, found %+v", params, d, found)
	}
	if ofSpans.Data.Spans != found.spans || facets.Data.Spans != found.spans {
		p.T.Errorf("%s: heatmap of %d spans, facets of %d, found %+v", params, ofSpans.Data.Spans, facets.Data.Spans, found)
	}
	var services struct {
		Data struct {
			Names      []string
			Restricted bool
		}
	}
	for range 10 { // a busy machine may need more than the time that completions have
		if page(p, "values?key=service&limit=1000&"+params, &services); services.Data.Restricted {
			break
		}
	}
	want := facets.Data.Facets[0].Values.Text
	for _, name := range services.Data.Names { // for structures, names of some further spans
		if i := slices.Index(want, name); i >= 0 {
			want = slices.Delete(want, i, i+1)
		} else if !strings.Contains(params, "%3E+%7B") && !strings.Contains(params, "%26%26") {
			p.T.Errorf("%s: service %s does not occur on the spans", params, name)
		}
	}
	if !services.Data.Restricted || len(want) > 0 {
		p.T.Errorf("%s: services %+v, missing %v", params, services.Data, want)
	}
}

// TestCountsOfSamples checks that heatmaps of traces are estimates with a stated share and error if
// there are more spans than the limit, also from a store in another process.
func TestCountsOfSamples(t *testing.T) {
	soak.SkipIfRaced(t)
	const limit = "extensions::query::max_aggregated_spans=10000"
	s := startSplit(t, limit)
	start := time.Now().Add(-10 * time.Minute)
	data := bench.New(13, start)
	s.send(t, data, 10_000)
	traces := data.Traces(10_000)
	window := fmt.Sprintf("start=%d&end=%d", start.UnixNano(), start.Add(time.Second).UnixNano())
	queries := []string{`{ } >> { kind = client }`, `{ }`, `{ trace.duration > 1ms }`}
	if testing.Short() {
		queries = queries[:1]
	}
	for _, q := range queries {
		// The samples of the two processes differ if the machine is slow, because their time is
		// limited.
		for _, p := range []*inprocess.Program{s.collector, s.query} {
			found := explore(p, window+"&q="+url.QueryEscape(q))
			var heatmap struct {
				Data struct {
					Spans, EstimatedSpans int
					Share, RelativeError  float64
				}
				Errors []any
			}
			status, body := harness.Fetch(t, p.QueryURL()+"/api/ui/v1/heatmap?of=traces&"+window+"&q="+url.QueryEscape(q))
			if err := json.Unmarshal(body, &heatmap); err != nil || status != http.StatusOK {
				t.Fatalf("%s: %d %v %s", q, status, err, body)
			}
			d := heatmap.Data
			off := math.Abs(float64(d.EstimatedSpans)/float64(found.traces) - 1)
			if d.Share >= 1 || d.Share <= 0 || d.RelativeError <= 0 || off > max(4*d.RelativeError, 0.1) || heatmap.Errors != nil {
				t.Errorf("%s: %+v, errors %v, found %+v of %d traces", q, d, heatmap.Errors, found, traces)
			}
		}
	}
}
