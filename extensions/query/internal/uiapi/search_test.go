package uiapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// stepStore finds one trace per call, and gives a reason for being incomplete.
type stepStore struct {
	*querytest.Store
	now     *time.Time
	takes   time.Duration        // per step
	reasons []tracestore.Reasons // per step; the last is for all further steps
	budgets []int
	long    bool // each trace has several times the spans of a step
}

func (s *stepStore) Find(_ context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	all := s.Matches(tracestore.Query{Limit: 100})
	for i, r := range all {
		if q.After.Set && r.Start == q.After.Start && r.ID == q.After.ID {
			all = all[i+1:]
			break
		}
	}
	var o tracestore.Outcome
	if len(all) > 0 {
		all = all[:1]
		o = tracestore.Outcome{Scanned: 70_000, Reasons: s.reasons[min(len(s.budgets), len(s.reasons)-1)],
			Next: tracestore.Cursor{Start: all[0].Start, ID: all[0].ID, Set: true}}
	}
	if s.long {
		o.Scanned *= 10
	}
	s.budgets = append(s.budgets, q.Budget.Spans)
	*s.now = s.now.Add(s.takes)
	return &tracestore.Results{Outcome: func() tracestore.Outcome { return o }, All: func(yield func(tracestore.Result, error) bool) {
		if len(all) > 0 {
			yield(s.Fill(all[0], want))
		}
	}}, nil
}

const shopSearch = "/api/ui/v1/search?start=1714557600000000000&end=1714557660000000000"

func TestSearchSteps(t *testing.T) {
	const budgetText = "stopped after examining 70000 spans; narrow the search or the time range"
	budget := tracestore.BudgetSpent(70_000)
	f := func(takes time.Duration, scanned int, reasons []tracestore.Reasons, target string, budgets []int, want ...string) {
		t.Helper()
		now := querytest.Noon
		s := &stepStore{Store: querytest.NewStore(querytest.Shop()), now: &now, takes: takes, reasons: reasons}
		h := api(t, s, func(o *core.Options) {
			o.Now = func() time.Time { return now }
			o.Limits.Scanned = scanned
		})
		var got []string
		for line := range strings.Lines(querytest.Ask(t, h, http.MethodGet, target).Body.String()) {
			if strings.HasPrefix(line, `{"trace"`) {
				line = "trace"
			}
			got = append(got, strings.TrimSpace(line))
		}
		if !slices.Equal(got, want) || !slices.Equal(s.budgets, budgets) {
			t.Errorf("budgets %v, answer\n%s", s.budgets, strings.Join(got, "\n"))
		}
	}
	const begun = `{"progress":{"scanned":0}}`
	f(time.Second, 1e6, []tracestore.Reasons{budget}, shopSearch, []int{100_000, 100_000, 100_000}, begun, "trace",
		`{"progress":{"scanned":70000}}`, "trace",
		`{"progress":{"scanned":140000}}`, `{"outcome":{"complete":true,"reason":"","traces":2,"scanned":140000,"next":""}}`)
	f(time.Millisecond, 1e6, []tracestore.Reasons{budget}, shopSearch, []int{100_000, 200_000, 400_000}, begun, "trace", "trace",
		`{"outcome":{"complete":true,"reason":"","traces":2,"scanned":140000,"next":""}}`)
	f(0, 90_000, []tracestore.Reasons{budget}, shopSearch, []int{90_000, 20_000}, begun, "trace", "trace",
		`{"outcome":{"complete":false,"reason":"stopped after examining 140000 spans; narrow the search or the time range","traces":2,`+
			`"scanned":140000,"next":"1714557600001000000.00000000000000000000000000000001"}}`)
	damaged := tracestore.Because(tracestore.ReasonDamage, "a file is damaged; narrow the search or the time range")
	f(0, 1e6, []tracestore.Reasons{slices.Concat(budget, damaged), budget}, shopSearch, []int{100_000, 200_000, 400_000}, begun,
		"trace", "trace",
		`{"outcome":{"complete":false,"reason":"a file is damaged; narrow the search or the time range","traces":2,"scanned":140000,"next":""}}`)
	const downText = "store b: connection refused"
	down := tracestore.Because(tracestore.ReasonUnavailable, "connection refused").Of("b")
	for _, all := range []tracestore.Reasons{
		slices.Concat(down, budget.Of("a")), slices.Concat(budget.Of("a"), down), slices.Concat(down, budget, budget.Of("c")),
	} {
		f(0, 1e6, []tracestore.Reasons{all, budget}, shopSearch, []int{100_000, 200_000, 400_000}, begun, "trace", "trace",
			`{"outcome":{"complete":false,"reason":"`+downText+`","traces":2,"scanned":140000,"next":""}}`)
	}
	f(0, 90_000, []tracestore.Reasons{slices.Concat(down, budget.Of("a"))}, shopSearch, []int{90_000, 20_000}, begun, "trace", "trace",
		`{"outcome":{"complete":false,"reason":"stopped after examining 140000 spans; narrow the search or the time range; `+downText+
			`","traces":2,"scanned":140000,"next":"1714557600001000000.00000000000000000000000000000001"}}`)
	f(0, 1e6, []tracestore.Reasons{slices.Concat(down, budget.Of("a"))}, shopSearch+"&limit=2", []int{100_000, 200_000}, begun,
		"trace", "trace",
		`{"outcome":{"complete":false,"reason":"`+downText+"; store a: "+budgetText+`","traces":2,"scanned":140000,`+
			`"next":"1714557600001000000.00000000000000000000000000000001"}}`)
	f(0, 1e6, []tracestore.Reasons{budget}, shopSearch+"&limit=1", []int{100_000}, begun, "trace",
		`{"outcome":{"complete":false,"reason":"`+budgetText+`","traces":1,"scanned":70000,`+
			`"next":"1714557602000000000.ab000000000000000000000000000002"}}`)
}

// Steps grow when a trace is longer than a step, so that its spans are not examined again and
// again.
func TestStepsOfLongTraces(t *testing.T) {
	now := querytest.Noon
	s := &stepStore{Store: querytest.NewStore(querytest.Shop()), now: &now, takes: time.Second,
		reasons: []tracestore.Reasons{tracestore.BudgetSpent(1)}, long: true}
	h := api(t, s, func(o *core.Options) {
		o.Now = func() time.Time { return now }
		o.Limits.Scanned = 1e7
	})
	querytest.Ask(t, h, http.MethodGet, shopSearch)
	if want := []int{100_000, 200_000, 400_000}; !slices.Equal(s.budgets, want) {
		t.Errorf("budgets %v, want %v", s.budgets, want)
	}
}

// borderStore ends each search after one trace and counts how often it reads each trace.
type borderStore struct {
	*querytest.Store
	reads    map[otlpdata.TraceID]int
	searches int
}

func (s *borderStore) Find(_ context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	s.searches++
	all := slices.DeleteFunc(s.Matches(q), func(r tracestore.Result) bool {
		_, skip := q.Skip[r.ID]
		return skip
	})
	o := tracestore.Outcome{Scanned: 10}
	if len(all) > 1 {
		all, o.Reasons = all[:1], tracestore.BudgetSpent(1)
		o.Next = tracestore.Cursor{Start: all[0].Start, ID: all[0].ID, Set: true}
	}
	return &tracestore.Results{Outcome: func() tracestore.Outcome { return o }, All: func(yield func(tracestore.Result, error) bool) {
		for _, r := range all {
			s.reads[r.ID]++
			yield(s.Fill(r, want))
		}
	}}, nil
}

// A search that evaluates whole traces reads each trace once, however many of its steps end within
// the trace.
func TestStepsReadTracesOnce(t *testing.T) {
	s := &borderStore{Store: querytest.NewStore(querytest.Shop()), reads: map[otlpdata.TraceID]int{}}
	h := api(t, s)
	body := querytest.Ask(t, h, http.MethodGet, shopSearch+"&q="+url.QueryEscape(`{ } >> { }`)).Body.String()
	traces := len(s.Matches(tracestore.Query{}))
	if len(s.reads) != traces || s.searches < traces || !strings.Contains(body, `"complete":true`) {
		t.Errorf("%d of %d traces were read in %d steps, answer\n%s", len(s.reads), traces, s.searches, body)
	}
	for id, n := range s.reads {
		if n != 1 {
			t.Errorf("trace %s was read %d times", id, n)
		}
	}
}

// A search that times out returns a cursor.
func TestSearchRunsOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := querytest.NewStore(querytest.Shop())
		s.FailAt, s.Hang = 1, true
		h := api(t, s)
		w := querytest.Ask(t, h, http.MethodGet, shopSearch)
		want := `{"outcome":{"complete":false,"reason":"the store did not finish within query_timeout (1m0s); narrow the query","traces":1,"scanned":0,` +
			`"next":"1714557602000000000.ab000000000000000000000000000002"}}`
		if lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n"); len(lines) != 3 || lines[2] != want {
			t.Errorf("answer %s", w.Body)
		}
	})
}

// The first line is sent before the store finds anything, and a client that disconnects cancels the
// store.
func TestSearchStreams(t *testing.T) {
	s := querytest.NewStore(querytest.Shop())
	s.FailAt, s.Hang = 1, true
	ended := make(chan struct{})
	h := api(t, s)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+shopSearch, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for _, want := range []string{"progress", "trace"} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"`+want+`"`) {
			t.Fatalf("line %q, want %s", lines.Text(), want)
		}
	}
	cancel()
	<-ended // or the test times out
}

// All pages together are the whole answer.
func TestSearchPages(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, querytest.Shop()))
	var ids []string
	for cursor := "-"; cursor != ""; {
		target := shopSearch + "&limit=1"
		if cursor != "-" {
			target += "&cursor=" + cursor
		}
		for line := range strings.Lines(querytest.Ask(t, h, http.MethodGet, target).Body.String()) {
			var l struct {
				Trace   struct{ TraceID string }
				Outcome *struct{ Next string }
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			if l.Trace.TraceID != "" {
				ids = append(ids, l.Trace.TraceID)
			}
			if l.Outcome != nil {
				cursor = l.Outcome.Next
			}
		}
	}
	if want := []string{"ab000000000000000000000000000002", fmt.Sprintf("%032d", 1)}; !slices.Equal(ids, want) {
		t.Errorf("traces %v", ids)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("1714557602000000000.ab000000000000000000000000000002")
	f.Add("1.")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if again, e := parseCursor(formatCursor(c)); err == nil && (e != nil || again != c) {
			t.Errorf("%q: %v, then %v %v", text, c, again, e)
		}
	})
}
