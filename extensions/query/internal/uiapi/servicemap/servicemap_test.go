package servicemap

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func routes(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b).Routes()) }

func TestAPI(t *testing.T) {
	g := querytest.Golden{Routes: routes, Store: querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"}}
	g.Run(t, "testdata/*.txt")
}

// mapJSON is what tests read of a response.
type mapJSON struct {
	Data struct {
		Nodes struct {
			Name       []string
			Peer       []bool
			Connection []string
			Requests   []int
		}
		Edges struct {
			Parent, Child, Calls, Errors []int
			P95                          []*int64
			Connections                  [][]string
		}
	}
	Errors []struct{ Msg string }
}

// text returns the edges of a response, one per element.
func (m *mapJSON) text() (out []string) {
	for i, calls := range m.Data.Edges.Calls {
		names := m.Data.Nodes.Name
		out = append(out, fmt.Sprintf("%s>%s %d/%d", names[m.Data.Edges.Parent[i]], names[m.Data.Edges.Child[i]],
			m.Data.Edges.Errors[i], calls))
	}
	return out
}

func ask(t *testing.T, h http.Handler, params string) (m mapJSON) {
	t.Helper()
	target := fmt.Sprintf("/api/ui/v1/map?start=%d&end=%d%s", querytest.Start.UnixNano(), querytest.Noon.UnixNano(), params)
	w := querytest.Ask(t, h, http.MethodGet, target)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", params, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// chain returns calls a > b > ... > f, f > c, and one from each service to itself and to a
// database; a and f also call host x. Calls of d fail.
func chain() ptrace.Traces {
	td := ptrace.NewTraces()
	names := []string{"a", "b", "c", "d", "e", "f", "c"}
	for i, name := range names {
		ss := querytest.AddService(td, name)
		server := querytest.AddSpan(ss, pcommon.TraceID{1}, byte(10*i+10), byte(10*i+5), "serve", 0)
		server.SetKind(ptrace.SpanKindServer)
		querytest.AddSpan(ss, pcommon.TraceID{1}, byte(10*i+11), byte(10*i+10), "inner", 0)
		client := querytest.AddSpan(ss, pcommon.TraceID{1}, byte(10*i+15), byte(10*i+11), "call", 0)
		client.SetKind(ptrace.SpanKindClient)
		client.Attributes().PutStr("http.request.method", "GET")
		query := querytest.AddSpan(ss, pcommon.TraceID{1}, byte(10*i+16), byte(10*i+11), "select", 0)
		query.SetKind(ptrace.SpanKindClient)
		query.Attributes().PutStr("db.system", "sql")
		if name == "d" {
			server.Status().SetCode(ptrace.StatusCodeError)
		}
		if name == "f" {
			host := querytest.AddSpan(ss, pcommon.TraceID{1}, 201, byte(10*i+11), "call x", 0)
			host.SetKind(ptrace.SpanKindClient)
			host.Attributes().PutStr("server.address", "x.example.org")
			host.Attributes().PutInt("http.status_code", 200)
		}
	}
	return td
}

func TestSurroundings(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, chain()))
	h := routes(b)
	for _, c := range []struct{ params, want string }{
		{"", "[a>b 0/1 a>sql 0/1 b>c 0/1 b>sql 0/1 c>d 1/1 c>sql 0/2 d>e 0/1 d>sql 0/1 e>f 0/1 e>sql 0/1 f>c 0/1 f>sql 0/1 f>x.example.org 0/1]"},
		{"&service=d", "[c>d 1/1 d>e 0/1 d>sql 0/1]"},
		{"&service=d&depth=2", "[b>c 0/1 c>d 1/1 d>e 0/1 d>sql 0/1 e>f 0/1 e>sql 0/1 f>c 0/1]"},
		{"&service=sql", "[a>sql 0/1 b>sql 0/1 c>sql 0/2 d>sql 0/1 e>sql 0/1 f>sql 0/1]"},
		{"&service=unknown", "[]"},
		{"&service=d&depth=2&limit=2", "[c>d 1/1]"},
	} {
		m := ask(t, h, c.params)
		if got := fmt.Sprint(m.text()); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.params, got, c.want)
		}
	}
}

// Types of connections and peers come from attributes of either side.
func TestConnections(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, chain()))
	m := ask(t, routes(b), "")
	if got, want := fmt.Sprint(m.Data.Nodes.Name, m.Data.Nodes.Peer, m.Data.Nodes.Connection),
		"[a b c d e f sql x.example.org] [false false false false false false true true] [      database http]"; got != want {
		t.Errorf("nodes %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(m.Data.Edges.Connections[:3]), "[[http] [database] [http]]"; got != want {
		t.Errorf("connections %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(m.Data.Nodes.Requests), "[1 1 2 1 1 1 7 1]"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
}

func TestLimit(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, chain()))
	m := ask(t, routes(b), "&limit=3")
	if len(m.Data.Nodes.Name) != 3 || len(m.Errors) != 1 ||
		m.Errors[0].Msg != "result is incomplete: 5 services with fewer calls are left out (limit is 3)" {
		t.Errorf("%v %v", m.Data.Nodes.Name, m.Errors)
	}
}

// TestLongestDurations checks that durations that no int64 can hold do not become negative.
func TestLongestDurations(t *testing.T) {
	td := chain()
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			s.SetEndTimestamp(math.MaxUint64)
		}
	}
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, td))
	m := ask(t, routes(b), "")
	for i, p95 := range m.Data.Edges.P95 {
		if p95 == nil || *p95 != math.MaxInt64 {
			t.Errorf("edge %d has the duration %v", i, p95)
		}
	}
}
