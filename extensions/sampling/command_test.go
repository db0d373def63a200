package sampling

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// run runs a command with the clock at 12:30.
func run(t *testing.T, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return time.Date(2026, 1, 2, 12, 30, 0, 0, time.UTC) }
	it := tool{env, func(string) string { return "" }}
	tools := map[string]func(*flag.FlagSet) func(context.Context, commands.Invocation) error{"explain": it.explain, "check": it.check}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f := tools[name](fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	var out, warnings bytes.Buffer
	err = f(t.Context(), commands.Invocation{Args: fs.Args(), Stdout: &out, Stderr: &warnings})
	return out.String(), warnings.String(), err
}

func TestCheckCommand(t *testing.T) {
	out, warnings, err := run(t, "check", "testdata/strategies.json")
	if err != nil || out != "strategies are valid: 4 services have their own strategy\n" ||
		strings.Count(warnings, "unknown member ignored") != 2 {
		t.Errorf("%q %q %v", out, warnings, err)
	}
	for _, args := range [][]string{{"testdata/bad/param-text.json"}, {"--strict", "testdata/bad/unknown-type.json"},
		{"testdata/none.json"}, {}, {"a", "b"}} {
		if out, _, err := run(t, "check", args...); err == nil || out != "" {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
	out, warnings, err = run(t, "check", "testdata/bad/limit-with-operations.json")
	if err != nil || !strings.HasPrefix(out, "strategies are valid: ") || !strings.HasPrefix(warnings, "warning: testdata/bad/limit-with-") {
		t.Errorf("file that clients cannot follow: %q %q %v", out, warnings, err)
	}
}

// unknown is an explanation without a strategy.
const unknown = `{"service":"cart","sampler":{"type":"","param":0},
	"origin":{"source":"remote","place":"host:14250","rule":"collector not available","problem":"no route to host"},"strategy":null,"askers":[
	{"address":"10.0.0.1","client":"sdk","transport":"http","at":"2026-01-02T12:29:50Z","told":"error: no route to host",
		"current":false,"failed":true,
		"kept":"probabilistic 0.2"},
	{"address":"10.0.0.2","transport":"grpc","at":"2026-01-02T11:30:00Z","told":"error: no route to host","current":false,"failed":true},
	{"address":"10.0.0.3","transport":"grpc","at":"2026-01-02T10:30:00Z","told":"probabilistic 1","current":false}]}`

const explanation = `{"service":"cart","operation":"GET /","sampler":{"type":"probabilistic","param":0.2,"ofOperation":true},
	"origin":{"source":"file","place":"s.json:17","rule":"entry of the service","since":"2026-01-02T12:00:00Z",
		"problem":"s.json:1:1: one mistake\ns.json:2:1: another"},
	"strategy":{"strategyType":"PROBABILISTIC"},"askers":[
	{"address":"10.0.0.1","client":"sdk\u001b[2J","transport":"http","at":"2026-01-02T12:29:50Z","told":"probabilistic 0.2","current":true},
	{"address":"10.0.0.2","transport":"grpc","at":"2026-01-02T11:30:00Z","told":"probabilistic 1","current":false}],"notes":["Note this."]}`

func TestExplainCommand(t *testing.T) {
	answer := explanation
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") != "acme" {
			http.Error(w, "missing tenant header", http.StatusForbidden)
			return
		}
		if r.URL.String() != "/api/sampling/explain?operation=GET+%2F&service=cart" {
			t.Errorf("requested %s", r.URL)
		}
		w.Write([]byte(answer))
	}))
	defer srv.Close()
	args := []string{"--operation=GET /", "--url=" + srv.URL + "/", "--header=X-Tenant: acme", "cart"}
	out, _, err := run(t, "explain", args...)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "explain.golden", out)
	answer = unknown
	if out, _, err = run(t, "explain", args...); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "unknown.golden", out)
	answer = explanation
	if out, _, err = run(t, "explain", append([]string{"--json"}, args...)...); err != nil || out != explanation {
		t.Errorf("%q, %v", out, err)
	}
	if _, _, err := run(t, "explain", slices.Delete(slices.Clone(args), 2, 3)...); err == nil ||
		!strings.HasSuffix(err.Error(), ": 403 Forbidden: missing tenant header") {
		t.Errorf("%v", err)
	}
	for want, args := range map[string][]string{
		"expected one service, got 0":          {},
		`--url: "localhost:1" is not a URL`:    {"--url=localhost:1", "cart"},
		"cannot connect to http://127.0.0.1:1": {"--url=http://127.0.0.1:1", "cart"},
	} {
		if _, _, err := run(t, "explain", args...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
