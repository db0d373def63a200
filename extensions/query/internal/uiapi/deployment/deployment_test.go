package deployment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeProcess is a fake of a process.
type fakeProcess struct {
	details    status.Details
	components []pipeline.Running
}

func (p *fakeProcess) Status() status.Report                  { return p.details.Report }
func (p *fakeProcess) Details(context.Context) status.Details { return newProcess().details }
func (p *fakeProcess) Components() []pipeline.Running         { return p.components }

// provider is a fake of an extension that provides strategies.
type provider struct{ fail bool }

func (p provider) List(_ context.Context, tenant string, _ int) (*sampling.Overview, error) {
	if p.fail {
		return nil, errors.New("no strategies")
	}
	client := sampling.Client{Address: "10.0.0.1", Transport: "http"}
	asked := &sampling.ServedRequest{Client: client, At: querytest.Noon, Answer: "probabilistic 0.1", Current: true}
	file := sampling.Origin{Source: "file", Place: "strategies.json:3", Rule: "entry of the service",
		Problem: "strategies.json:9: secret of another tenant"}
	out := &sampling.Overview{Services: []sampling.ServiceStrategy{
		{Service: "shop", Sampler: sampling.Sampler{Type: "probabilistic", Param: 0.1}, Origin: file, Clients: 1, Last: asked},
		{Service: "secret", Sampler: sampling.Sampler{Type: "probabilistic", Param: 1}, Origin: file},
	}}
	if tenant != "" {
		out.Services[0].Service += " of " + tenant
	}
	return out, nil
}

func (p provider) Explain(_ context.Context, _, service, operation string) (*sampling.Explanation, error) {
	x := &sampling.Explanation{Service: service, Operation: operation, Origin: sampling.Origin{Source: "file", Place: "strategies.json:3"},
		Sampler: sampling.Sampler{Type: "probabilistic", Param: 0.1}, Notes: []string{"a fact"}, Clients: []sampling.ServedRequest{}}
	if service != "shop" {
		x.Clients = append(x.Clients, sampling.ServedRequest{Client: sampling.Client{Address: "10.0.0.1"}, At: querytest.Noon,
			Answer: "probabilistic 0.1"})
	}
	return x, nil
}

// stage is a fake of a processor.
type stage struct{ sampling.Stage }

func (s stage) ExplainTrace(id sampling.TraceID) (sampling.Stage, bool) {
	out := s.Stage
	if out.Probability != nil {
		out.Decide(*out.Probability, sampling.NeedsConsistent(id), id)
	}
	return out, true
}

func newProcess() *fakeProcess {
	half, traces := 0.5, []string{"traces"}
	at := querytest.Noon
	member := func(kind, id string) status.Component {
		return status.Component{Component: id, Kind: kind, State: status.OK, Since: at}
	}
	slow := member("exporter", "disk")
	slow.State, slow.Reason = status.Degraded, "disk is 97 % full"
	p := &fakeProcess{details: status.Details{
		Process: "host-1", Build: status.Build{Version: "1.2"}, Now: at, Since: querytest.Start,
		Report: status.Report{State: status.Degraded, Beside: []status.Component{member("extension", "query")},
			Pipelines: []status.Pipeline{{Pipeline: "traces", State: status.Degraded, Components: []status.Component{
				member("receiver", "otlp"), member("processor", "probabilistic_sampler"), member("processor", "tail_sampling"), slow}}},
			Configuration: status.Reload{Since: at, Problem: "line 3: unknown key"}},
		Intake: status.Intake{Since: querytest.Start, Dropped: 2, Receivers: []status.Receiver{{Component: "otlp", Transport: "http",
			Addresses: []string{"127.0.0.1:4318"}, Received: 100, Refused: 7, Refusal: &status.Refusal{Reason: "too large", At: at}}}},
		Accounts: []status.Account{
			{Component: "otlp", Kind: "receiver", In: 100, Accepted: 93, Refused: 7,
				Reasons: []status.Outcome{{Outcome: "refused", Reason: "too_large", Spans: 7}}},
			{Component: "tail_sampling", Kind: "processor", In: 93, Sent: 50, Dropped: 40, Lost: 2, Held: 3,
				Reasons: []status.Outcome{{Outcome: "dropped", Reason: "policy", Spans: 38}, {Outcome: "dropped", Reason: "evicted", Spans: 2}}},
			{Component: "disk", Kind: "exporter", In: 50, Sent: 50, Reasons: []status.Outcome{}},
		},
		Queues: []status.Queue{{Component: "otlp", Storage: "disk", Spans: 12, MaxBytes: 1 << 30, Age: 3 * time.Second}},
		Stores: []status.Store{{Component: "disk", Place: "data/disk", Spans: 50, Bytes: 1 << 20, Retention: 72 * time.Hour,
			Oldest: querytest.Start, Parts: []status.Part{{Start: querytest.Start, Spans: 50}}, Gaps: []status.Gap{}, Expiring: []status.Expiry{}}},
		Limits:        []status.Limit{{Key: "service.limits.inflight", Used: 1, Peak: 2, Max: 1 << 20}},
		Configuration: "exporters:\n  disk: # secret\n",
	}, components: []pipeline.Running{
		{Kind: pipeline.KindExtension, ID: pipeline.ID{Type: "sampling"}, Component: provider{}},
		{Kind: pipeline.KindProcessor, ID: pipeline.ID{Type: "tail_sampling"}, Pipelines: traces, Component: stage{sampling.Stage{
			Kind: "processor", Method: sampling.MethodPolicies, Verdict: sampling.Depends, Key: "policies", Wait: 5e9, Rules: []sampling.Rule{
				{Name: "errors", Type: "status_code", Text: "a span with status ERROR", Verdict: sampling.Depends}}}}},
		{Kind: pipeline.KindProcessor, ID: pipeline.ID{Type: "probabilistic_sampler"}, Pipelines: traces, Component: stage{sampling.Stage{
			Kind:   "processor",
			Method: sampling.MethodConsistent, Key: "sampling_percentage", Probability: &half}}},
	}}
	p.details.Balances = status.Balances(status.BalanceInput{Pipelines: p.details.Report.Pipelines, Accounts: p.details.Accounts,
		Stores: map[string]bool{"disk": true}})
	return p
}

// admin serves a process as the admin extension does.
func admin(t *testing.T, p processview.Process, token string) string {
	t.Helper()
	h := processview.Handlers{Process: p}
	mux := http.NewServeMux()
	mux.HandleFunc(processview.PathStatus, h.Status)
	mux.HandleFunc(processview.PathSampling, h.Sampling)
	mux.HandleFunc(processview.PathExplain, h.Explain)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func peersOf(t *testing.T, change func(*PeersConfig)) *Peers {
	t.Helper()
	c := DefaultPeersConfig()
	change(&c)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := NewPeers(querytest.Settings(t), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background()) }) //nolint:errcheck // closes connections
	return p
}

func api(t *testing.T, self processview.Process, peers *Peers, tenancy bool) http.Handler {
	t.Helper()
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, querytest.Shop()))
	return httpapi.NewMux("", New(b, self, peers, tenancy).Routes())
}

// missing is a trace that the consistent sampler drops at 50 %: its number is 0.25.
const missing = "00000000000000010040000000000000"

func TestAnswers(t *testing.T) {
	alone := api(t, newProcess(), nil, false)
	tenants := api(t, newProcess(), nil, true)
	unknown := api(t, nil, nil, false)
	for file, c := range map[string]struct {
		h      http.Handler
		target string
	}{
		"status":           {alone, "/api/ui/v1/status"},
		"status-tenants":   {tenants, "/api/ui/v1/status"},
		"status-unknown":   {unknown, "/api/ui/v1/status"},
		"sampling":         {alone, "/api/ui/v1/sampling"},
		"sampling-tenants": {tenants, "/api/ui/v1/sampling"},
		"explain":          {alone, "/api/ui/v1/sampling/explain?service=shop&operation=GET%20/&trace=" + missing},
		"explain-service":  {alone, "/api/ui/v1/sampling/explain?service=FrontEnd"},
		"explain-stored":   {alone, "/api/ui/v1/sampling/explain?service=other&trace=1"},
		"explain-tenants":  {tenants, "/api/ui/v1/sampling/explain?service=shop&trace=" + missing},
		"explain-nothing":  {alone, "/api/ui/v1/sampling/explain"},
		"explain-bad":      {alone, "/api/ui/v1/sampling/explain?trace=xyz"},
	} {
		w := querytest.Ask(t, c.h, http.MethodGet, c.target)
		golden.Check(t, "testdata/"+file+".txt", fmt.Sprintf("GET %s\n---\n%d\n\n%s", c.target, w.Code, w.Body))
	}
}

// Without tenants, a text that only other tenants may know is shown; with them, it is not.
func TestTenantsSeeNothingOfOthers(t *testing.T) {
	for _, target := range []string{"/api/ui/v1/status", "/api/ui/v1/sampling", "/api/ui/v1/sampling/explain?service=shop&trace=" + missing} {
		w := querytest.Ask(t, api(t, newProcess(), nil, true), http.MethodGet, target)
		for _, secret := range []string{"secret", "too large", "unknown key", "97 %", "2024-05-01T10:00:00Z\",\"duration", `:100`, "a span with status"} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s contains %q: %s", target, secret, w.Body)
			}
		}
	}
}

// The responses of all processes are shown, with those that do not answer and why.
func TestPeers(t *testing.T) {
	good := admin(t, newProcess(), "Bearer x")
	other := admin(t, newProcess(), "Bearer y")
	none := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(none.Close)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }))
	t.Cleanup(broken.Close)
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	t.Cleanup(strange.Close)
	peers := peersOf(t, func(c *PeersConfig) {
		c.Endpoints = []string{good + "/", other, none.URL, broken.URL, strange.URL, "http://127.0.0.1:1"}
		c.Headers = map[string]pipeline.Secret{"authorization": "Bearer x"}
		c.Timeout = pipeline.Duration(time.Minute)
	})
	h := api(t, newProcess(), peers, false)
	w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/status")
	for _, want := range []string{`"peers":6`, "response does not come from the admin extension", "refused the credentials of peers (401)",
		"no status at this address", "decoding the response", "connection refused", "5 of 7 processes did not respond"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is missing: %s", want, w.Body)
		}
	}
	if n := strings.Count(w.Body.String(), `"process":"host-1"`); n != 2 {
		t.Errorf("%d processes answered, want 2", n)
	}
	w = querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/sampling/explain?service=shop&trace="+missing)
	if !strings.Contains(w.Body.String(), `"deciding":{"process":0,"stage":1}`) || strings.Count(w.Body.String(), `"no_answer"`) != 5 {
		t.Errorf("explain: %s", w.Body)
	}
}

func TestPeerHangs(t *testing.T) {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)
	h := api(t, newProcess(), peersOf(t, func(c *PeersConfig) {
		c.Endpoints, c.Timeout = []string{hangs.URL}, pipeline.Duration(50*time.Millisecond)
	}), false)
	for target, want := range map[string]string{"status": "no response within 50ms",
		"sampling/explain?service=shop&trace=" + missing: `"no_answer"`} {
		if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/"+target); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %q is missing: %s", target, want, w.Body)
		}
	}
}

func TestBadPeers(t *testing.T) {
	for want, change := range map[string]func(*PeersConfig){
		"\"collector:14269\" is not a valid URL": func(c *PeersConfig) { c.Endpoints = []string{"collector:14269"} },
		"without ? and #":                        func(c *PeersConfig) { c.Endpoints = []string{"http://a/?x"} },
		"not printable ASCII":                    func(c *PeersConfig) { c.Headers = map[string]pipeline.Secret{"x-token": "a\nb"} },
		"must be above 0":                        func(c *PeersConfig) { c.Timeout = 0 },
		"must be from 1 to 64MiB":                func(c *PeersConfig) { c.MaxAnswer = 0 },
		"must not be more than 100":              func(c *PeersConfig) { c.Endpoints = slices.Repeat([]string{"http://a"}, 101) },
	} {
		c := DefaultPeersConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A strategy that an agent passes on is a stage of the collector that decides, not of the agent.
func TestRepeatedClients(t *testing.T) {
	of := func(source string) *processview.Explanation {
		return &processview.Explanation{Stages: []sampling.Stage{{Kind: "client", Component: "sampling"}, {Kind: "processor", Component: "p"}},
			Strategies: []processview.Strategy{{Component: "sampling",
				Explanation: sampling.Explanation{Origin: sampling.Origin{Source: source}}}}}
	}
	out := explainAnswer{Processes: []process[processview.Explanation]{{Data: of("remote")}, {Error: "gone"}, {Data: of("file")}}}
	out.dropRepeatedClients()
	if len(out.Processes[0].Data.Stages) != 1 || len(out.Processes[2].Data.Stages) != 2 {
		t.Errorf("%+v %+v", out.Processes[0].Data, out.Processes[2].Data)
	}
	out = explainAnswer{Processes: []process[processview.Explanation]{{Data: of("remote")}}}
	out.dropRepeatedClients()
	if len(out.Processes[0].Data.Stages) != 2 {
		t.Errorf("agent alone: %+v", out.Processes[0].Data)
	}
}

func TestSimilar(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"front-end", "FrontEnd", true}, {"checkout", "checkout-service", true}, {"db", "dbx", false},
		{"cart", "payment", false}, {"a.b", "a/b", true}} {
		if got := similar(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %t", c.a, c.b, got)
		}
	}
}

// A store that fails makes the response fail, because a missing trace must not be reported as such.
func TestExplainOfBrokenStore(t *testing.T) {
	s := querytest.NewStore(querytest.Shop())
	s.Fail = querytest.ErrStore
	b, _ := querytest.NewBackend(t, core.Store(s))
	w := querytest.Ask(t, httpapi.NewMux("", New(b, newProcess(), nil, false).Routes()),
		http.MethodGet, "/api/ui/v1/sampling/explain?trace=1")
	if w.Code < 500 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A service beyond the limit of lists is known, and the damage of a trace is said.
func TestExplainOfPartialStore(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, querytest.Shop()), func(o *core.Options) { o.Limits.Names = 1 })
	h := httpapi.NewMux("", New(b, newProcess(), nil, false).Routes())
	for service, want := range map[string]string{"web": "known", "zzz": "unknown"} {
		w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/sampling/explain?service="+service)
		if !strings.Contains(w.Body.String(), fmt.Sprintf(`"service":%q,"similar"`, want)) {
			t.Errorf("%s is not %s: %s", service, want, w.Body)
		}
	}
	b, _ = querytest.NewBackend(t, querytest.Partial(querytest.FilledMemory(t, querytest.Shop())))
	h = httpapi.NewMux("", New(b, newProcess(), nil, false).Routes())
	for query, want := range map[string][2]string{
		"trace=1&service=web":  {`"trace":"found"`, `"service":"known"`},
		"trace=77&service=zzz": {`"trace":"unreadable"`, `"service":"unreadable"`},
	} {
		text := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/sampling/explain?"+query).Body.String()
		stored, unknown := strings.Contains(text, `"verdict":"stored"`), strings.Contains(text, `"code":"unknown"`)
		if !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]) || stored != (query[6] == '1') || unknown ||
			strings.Count(text, querytest.PartialReason) != 1 {
			t.Errorf("%s: %s", query, text)
		}
	}
	s := querytest.NewStore(querytest.Shop())
	s.Damage = "file is damaged"
	b, _ = querytest.NewBackend(t, core.Store(s))
	h = httpapi.NewMux("", New(b, newProcess(), nil, false).Routes())
	w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/sampling/explain?trace=1")
	if !strings.Contains(w.Body.String(), "incomplete") || !strings.Contains(w.Body.String(), "file is damaged") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Queries that run are listed with their searches, except requests for the state, and not shown to
// tenants.
func TestRunningQueries(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, querytest.Shop()))
	slot, err := b.Admit(server.WithClient(t.Context(), netip.MustParseAddr("192.0.2.1")), core.OpAggregate)
	if err != nil {
		t.Fatal(err)
	}
	slot.Describe("{ error }")
	slot.SetScanned(7)
	ask := func(tenancy bool) string {
		mux := httpapi.NewMux("", New(b, newProcess(), nil, tenancy).Routes())
		return querytest.Ask(t, mux, http.MethodGet, "/api/ui/v1/status").Body.String()
	}
	const want = `"text":"{ error }","client":"192.0.2.1","scanned":7,"held":1048576}],"maxQueries":10`
	if got := ask(false); !strings.Contains(got, `"queries":[{"operation":"aggregate","since":"`) || !strings.Contains(got, want) {
		t.Errorf("no %s in %s", want, got)
	}
	if got := ask(true); !strings.Contains(got, `"queries":[],"maxQueries":10`) {
		t.Errorf("tenants see queries: %s", got)
	}
	slot.Release()
	if got := ask(false); !strings.Contains(got, `"queries":[],"maxQueries":10`) {
		t.Errorf("a query that has ended: %s", got)
	}
}
