package sampling

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// answer returns a summary of the strategy that a client gets, or the error.
func (e *extension) answer(t *testing.T) string {
	t.Helper()
	a, err := e.Strategy(t.Context(), sampling.Request{Service: "cart"})
	if err != nil {
		return err.Error()
	}
	return a.Strategy.String()
}

// A changed file becomes active after an interval. Mistakes are reported, and the previous
// strategies stay active.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	write(t, file, "0.5")
	synctest.Test(t, func(t *testing.T) {
		e, r := start(t, fileConfig(file, func(f *FileConfig) { f.ReloadInterval = pipeline.Duration(time.Minute) }))
		begin := time.Now()
		expect := func(answer, report string) {
			t.Helper()
			time.Sleep(time.Minute + time.Second)
			synctest.Wait()
			if got := e.answer(t); got != answer {
				t.Errorf("strategy %s, want %s", got, answer)
			}
			x, err := e.Explain(t.Context(), "", "cart", "")
			if err != nil || x.Origin.Problem != r.get() || r.get() != report {
				t.Errorf("reported %q, %+v, want %q", r.get(), x, report)
			}
		}
		const failed = "loading new sampling strategies: "
		expect("probabilistic 0.5", "")
		write(t, file, "0.25")
		expect("probabilistic 0.25", "")
		write(t, file, `"x"`)
		expect("probabilistic 0.25", failed+file+`:1:57: param must be a number, not the string "x"; expected a probability from 0 to 1`)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		expect("probabilistic 0.25", failed+"open "+file+": no such file or directory")
		write(t, file, "0.25")
		expect("probabilistic 0.25", "")
		x, err := e.Explain(t.Context(), "", "cart", "")
		if since := x.Origin.Since.Sub(begin); err != nil || since < time.Minute || since > 3*time.Minute {
			t.Errorf("active since %s after the start, %v", since, err)
		}
		write(t, file, "1")
		expect("probabilistic 1", "")
	})
}

// Settings that clients cannot follow are reported while the strategies are active, until the file
// is corrected.
func TestWarnings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const limited = `{"default_strategy": {"type": "ratelimiting", "param": 2,
  "operation_strategies": [{"operation": "a", "type": "probabilistic", "param": 1}]}}`
	rewrite(limited)
	e, r := start(t, fileConfig(file))
	expect := func(strategy, report string) {
		t.Helper()
		if report != "" {
			report = "sampling strategies are active, but not all as written: " + file + report
		}
		if got := e.answer(t); got != strategy || !strings.HasPrefix(r.get(), report) || report == "" && r.get() != "" {
			t.Errorf("got %s, %q, want %s, %q", got, r.get(), strategy, report)
		}
	}
	reload := func(text string) {
		t.Helper()
		rewrite(text)
		e.source.(*fileSource).reload(t.Context())
	}
	expect("2 traces per second", ":2:3: clients ignore the rate limit of a service that has operation_strategies")
	reload(`{"service_strategies": [{"service": "cart", "type": "const", "param": 1}]}`)
	expect("probabilistic 0.001", `:1:53: unknown type "const", so the probability 0.001 applies; use "probabilistic" with param 1 or 0`)
	reload("{")
	if !strings.HasPrefix(r.get(), "loading new sampling strategies: ") {
		t.Errorf("reported %q", r.get())
	}
	reload(`{"service_strategies": [{"service": "cart", "type": "const", "param": 1}]}`)
	expect("probabilistic 0.001", `:1:53: unknown type "const"`)
	const cart = `"service_strategies": [{"service": "cart", "type": "const", "param": 1}]}`
	reload(`{"default_strategy": {"type": "probabilistic", "param": 0.5}, ` + cart)
	expect("probabilistic 0.5", `:1:114: unknown type "const", so the probability 0.5 of default_strategy applies; `)
	reload(`{"default_strategy": {"type": "ratelimiting", "param": 3}, ` + cart)
	expect("3 traces per second", `:1:111: unknown type "const", so the limit of 3 traces per second of default_strategy applies; `)
	reload(`{"service_strategies": [{"service": "cart", "type": "probabilistic", "param": 0.25,
  "operation_strategies": [{"operation": "a", "type": "const", "param": 1}]}]}`)
	expect("probabilistic 0.25; 1 operation strategies", `:2:55: unknown type "const", so the probability 0.25 of the enclosing strategy applies; `)
	reload(`{"default_strategy": {"Type": "probabilistic", "param": 0.5, "operation_strategies": [
  {"operation": "a", "type": "ratelimiting", "param": 1}, {"operation": "b", "type": "probabilistic", "param": 1}]}}`)
	expect("probabilistic 0.5; 1 operation strategies", ":2:30: clients do not support rate limits for operations, so this one is left out")
	reload(`{"default_strategy": {"type": "probabilistic", "param": 0.5}}`)
	expect("probabilistic 0.5", "")
}

// The response to a client from before a change is shown as outdated.
func TestOutdatedAnswer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	write(t, file, "0.5")
	e, _ := start(t, fileConfig(file))
	request := func() {
		if _, err := e.Strategy(t.Context(), sampling.Request{Service: "cart", Client: sampling.Client{Address: "h"}}); err != nil {
			t.Fatal(err)
		}
	}
	notes := func() string {
		x, err := e.Explain(t.Context(), "", "cart", "")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(x.Notes, "\n")
	}
	request()
	write(t, file, "0.25")
	e.source.(*fileSource).reload(t.Context())
	const outdated = "The strategy has changed since the last request."
	if n := notes(); !strings.Contains(n, outdated) {
		t.Errorf("notes: %s", n)
	}
	request()
	if n := notes(); strings.Contains(n, outdated) {
		t.Errorf("notes: %s", n)
	}
}

// A service whose entry is deleted gets the default strategy. Its Since is the time of the
// deletion, and earlier answers are outdated.
func TestDeletedEntry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	rewrite := func(services string) {
		t.Helper()
		text := `{"default_strategy": {"type": "probabilistic", "param": 0.5}, "service_strategies": [` + services + `]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(`{"service": "cart", "type": "probabilistic", "param": 1}`)
	synctest.Test(t, func(t *testing.T) {
		e, _ := start(t, fileConfig(file))
		begin := time.Now()
		reload := func() *sampling.Explanation {
			t.Helper()
			time.Sleep(time.Minute)
			e.source.(*fileSource).reload(t.Context())
			x, err := e.Explain(t.Context(), "", "cart", "")
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		if _, err := e.Strategy(t.Context(), sampling.Request{Service: "cart", Client: sampling.Client{Address: "h"}}); err != nil {
			t.Fatal(err)
		}
		rewrite("")
		x := reload()
		if since := x.Origin.Since.Sub(begin); since != time.Minute || x.Clients[0].Current || x.Sampler.Param != 0.5 {
			t.Errorf("since %s, %+v", since, x)
		}
		rewrite(`{"service": "other", "type": "probabilistic", "param": 1}`)
		if since := reload().Origin.Since.Sub(begin); since != time.Minute {
			t.Errorf("after a change of another service: since %s", since)
		}
		write(t, file, "0.25")
		if since := reload().Origin.Since.Sub(begin); since != 3*time.Minute {
			t.Errorf("after a change of the default: since %s", since)
		}
		rewrite(`{"service": "cart", "type": "probabilistic", "param": 1}`)
		if x = reload(); !x.Clients[0].Current {
			t.Errorf("first answer is not current again: %+v", x.Clients)
		}
	})
}

// The process starts while the server of the strategies is not available, and keeps its strategies
// when the server fails.
func TestURL(t *testing.T) {
	var status atomic.Int32
	var body atomic.Value
	status.Store(503)
	body.Store("no strategies today")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" || r.URL.RawQuery != "token=t" {
			t.Errorf("unexpected request: %v, %s", r.Header, r.URL)
		}
		w.WriteHeader(int(status.Load()))
		w.Write([]byte(body.Load().(string)))
	}))
	defer srv.Close()
	e, r := start(t, fileConfig(srv.URL+"/s.json?token=t", func(f *FileConfig) {
		f.Headers, f.DefaultProbability, f.MaxSize = map[string]pipeline.Secret{"X-Key": "k"}, 0.01, 4<<10
	}))
	step := func(code int32, text, strategy, source, report string) {
		t.Helper()
		status.Store(code)
		body.Store(text)
		e.source.(*fileSource).reload(t.Context())
		a, err := e.Strategy(t.Context(), sampling.Request{Service: "cart"})
		if err != nil || a.Strategy.String() != strategy || a.Origin.Source != source {
			t.Errorf("%d %s: %+v, %v", code, text, a, err)
		}
		if got := strings.ReplaceAll(r.get(), srv.URL, "URL"); got != report {
			t.Errorf("%d %s: reported %q, want %q", code, text, got, report)
		}
	}
	const failed = "loading new sampling strategies: "
	const good = `{"default_strategy": {"type": "ratelimiting", "param": 5}}`
	step(503, "", "probabilistic 0.01", "built-in", failed+"reading URL/s.json: unexpected response 503 Service Unavailable")
	step(200, "", "probabilistic 0.01", "built-in", failed+"URL/s.json:1:1: file is empty; "+
		`write {"default_strategy": {"type": "probabilistic", "param": 0.01}}, or null for no strategies`)
	step(200, good, "5 traces per second", "url", "")
	step(302, good, "5 traces per second", "url", failed+"reading URL/s.json: unexpected response 302 Found")
	step(200, "<html>", "5 traces per second", "url", failed+"URL/s.json:1:1: not JSON: invalid character '<' looking for beginning of value")
	step(200, strings.Repeat(" ", 5000), "5 traces per second", "url",
		failed+"reading URL/s.json: response (200 OK) is larger than 4096 bytes")
	step(200, good, "5 traces per second", "url", "")
	step(200, "null", "probabilistic 0.01", "built-in", "")
}
