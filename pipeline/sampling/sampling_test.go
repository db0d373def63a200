package sampling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forms holds all forms of responses, by name.
var forms = map[string]struct {
	strategy *Strategy
	json     string
}{
	"probabilistic": {NewProbabilistic(0.5), `{"strategyType":"PROBABILISTIC","probabilisticSampling":{"samplingRate":0.5}}`},
	"nothing":       {NewProbabilistic(0), `{"strategyType":"PROBABILISTIC","probabilisticSampling":{"samplingRate":0}}`},
	"tiny":          {NewProbabilistic(1e-7), `{"strategyType":"PROBABILISTIC","probabilisticSampling":{"samplingRate":1e-7}}`},
	"rate limiting": {NewRateLimiting(5), `{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":5}}`},
	"per operation": {
		&Strategy{Probability: new(0.8), Operations: &Operations{Default: 0.8, PerOperation: []Operation{{"op1", 0.2}}}},
		`{"strategyType":"PROBABILISTIC","probabilisticSampling":{"samplingRate":0.8},"operationSampling":{"defaultSamplingProbability":0.8,` +
			`"defaultLowerBoundTracesPerSecond":0,"perOperationStrategies":[{"operation":"op1","probabilisticSampling":{"samplingRate":0.2}}],` +
			`"defaultUpperBoundTracesPerSecond":0}}`,
	},
	"adaptive": {
		&Strategy{Operations: &Operations{Default: 0.001, LowerBound: 1. / 60}},
		`{"strategyType":"PROBABILISTIC","operationSampling":{"defaultSamplingProbability":0.001,` +
			`"defaultLowerBoundTracesPerSecond":0.016666666666666666,"perOperationStrategies":[],"defaultUpperBoundTracesPerSecond":0}}`,
	},
	"rate limiting with operations": {
		&Strategy{Type: RateLimiting, Limit: new(int32(5)),
			Operations: &Operations{Default: 0.001, PerOperation: []Operation{{"<op>", 1}}}},
		`{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":5},"operationSampling":{"defaultSamplingProbability":0.001,` +
			`"defaultLowerBoundTracesPerSecond":0,"perOperationStrategies":[{"operation":"\u003cop\u003e","probabilisticSampling":{"samplingRate":1}}],` +
			`"defaultUpperBoundTracesPerSecond":0}}`,
	},
}

// provider always returns the same response and records the request.
type provider struct {
	strategy *Strategy
	err      error
	request  Request
}

func (p *provider) Strategy(_ context.Context, r Request) (Answer, error) {
	p.request = r
	return Answer{Strategy: p.strategy}, p.err
}

// get sends a request to a handler.
func get(p Provider, handler func(Handlers) http.HandlerFunc, method, query string) *httptest.ResponseRecorder {
	always := func(s string) func(context.Context) string { return func(context.Context) string { return s } }
	h := Handlers{Provider: p, Tenant: always("acme"), Client: always("192.0.2.1")}
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/x"+query, nil)
	r.Header.Set("User-Agent", "sdk/1")
	handler(h)(w, r)
	return w
}

var (
	standard = func(h Handlers) http.HandlerFunc { return h.Strategy }
	legacy   = func(h Handlers) http.HandlerFunc { return h.LegacyStrategy }
	explain  = func(h Handlers) http.HandlerFunc { return h.Explain }
	baggage  = func(h Handlers) http.HandlerFunc { return h.Baggage("baggage not implemented") }
)

func TestForms(t *testing.T) {
	for name, c := range forms {
		w := get(&provider{strategy: c.strategy}, standard, "GET", "?service=a")
		if w.Code != 200 || w.Body.String() != c.json || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v\ngot  %s\nwant %s", name, w.Code, w.Header(), w.Body, c.json)
		}
		want := strings.NewReplacer(`"PROBABILISTIC"`, "0", `"RATE_LIMITING"`, "1").Replace(c.json)
		if w := get(&provider{strategy: c.strategy}, legacy, "GET", "?service=a"); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s, legacy: %d\ngot  %s\nwant %s", name, w.Code, w.Body, want)
		}
	}
}

func TestRequest(t *testing.T) {
	p := &provider{strategy: NewProbabilistic(1)}
	get(p, standard, "GET", "?service=a%20b&other=1")
	if want := (Request{"acme", "a b", Client{"192.0.2.1", "sdk/1", "http"}}); p.request != want {
		t.Errorf("request %+v, want %+v", p.request, want)
	}
	if w := get(p, legacy, "GET", "?service="); w.Code != 200 || p.request.Service != "" || p.request.Client.Transport != "legacy" {
		t.Errorf("empty name: %d, request %+v", w.Code, p.request)
	}
}

// A service name must not keep the whole query in memory.
func TestNamesAreCopies(t *testing.T) {
	const size = 1 << 20
	var names []string
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 32 {
		p := &provider{strategy: NewProbabilistic(1)}
		get(p, standard, "GET", fmt.Sprintf("?service=%d&pad=%s", i, strings.Repeat("x", size)))
		names = append(names, p.request.Service)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8*size || len(names) != 32 {
		t.Errorf("%d names take %d bytes", len(names), grown)
	}
	runtime.KeepAlive(names)
}

func TestErrors(t *testing.T) {
	good := &provider{strategy: NewProbabilistic(1)}
	f := func(p Provider, handler func(Handlers) http.HandlerFunc, method, query string, code int, body string) {
		t.Helper()
		if w := get(p, handler, method, query); w.Code != code || w.Body.String() != body {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body, code, body)
		}
	}
	const once = "'service' parameter must be provided once\n"
	for _, handler := range []func(Handlers) http.HandlerFunc{standard, legacy, explain, baggage} {
		f(good, handler, "GET", "", 400, once)
		f(good, handler, "GET", "?service=a&service=a", 400, once)
		f(good, handler, "POST", "?service=a", 405, "")
		f(good, handler, "HEAD", "?service=a", 405, "")
	}
	f(good, baggage, "GET", "?service=a", 500, "collector error: baggage not implemented\n")
	f(good, explain, "GET", "?service=a", 404, "sampling provider does not support explanations\n")
	f(&provider{err: errors.New("gone")}, standard, "GET", "?service=a", 500, "collector error: gone\n")
	f(&provider{strategy: NewProbabilistic(math.NaN())}, standard, "GET", "?service=a", 500, "cannot marshall to JSON\n")
	f(&provider{strategy: NewRateLimiting(32768)}, legacy, "GET", "?service=a", 500, "cannot marshall to JSON\n")
	f(&provider{strategy: NewRateLimiting(32767)}, legacy, "GET", "?service=a", 200,
		`{"strategyType":1,"rateLimitingSampling":{"maxTracesPerSecond":32767}}`)
}

// explaining is a provider with explanations.
type explaining struct{ provider }

func (p *explaining) Explain(_ context.Context, tenant, service, operation string) (*Explanation, error) {
	return &Explanation{Service: tenant + "/" + service, Operation: operation, Strategy: p.strategy,
		Sampler: p.strategy.Sampler(operation)}, p.err
}

func TestExplain(t *testing.T) {
	p := &explaining{provider{strategy: forms["per operation"].strategy}}
	w := get(p, explain, "GET", "?service=a&operation=op1")
	var got struct {
		Service, Operation string
		Sampler            Sampler
		Strategy           json.RawMessage
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	if got.Service != "acme/a" || got.Operation != "op1" ||
		got.Sampler != (Sampler{Type: "probabilistic", Param: 0.2, PerOperation: true}) {
		t.Errorf("%+v", got)
	}
	p.err = errors.New("gone")
	if w := get(p, explain, "GET", "?service=a"); w.Code != 500 || w.Body.String() != "collector error: gone\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Clients prefer operation strategies to everything else.
func TestSampler(t *testing.T) {
	f := func(s *Strategy, operation, want string, sampler Sampler) {
		t.Helper()
		if got := s.Sampler(operation); got != sampler {
			t.Errorf("%s: %+v, want %+v", s, got, sampler)
		}
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
	f(NewProbabilistic(0.001), "op", "probabilistic 0.001", Sampler{Type: "probabilistic", Param: 0.001})
	f(NewRateLimiting(1000000), "op", "1000000 traces per second", Sampler{Type: "ratelimiting", Param: 1e6})
	f(forms["per operation"].strategy, "other", "probabilistic 0.8; 1 operation strategies", Sampler{Type: "probabilistic", Param: 0.8})
	f(forms["adaptive"].strategy, "op", "probabilistic 0.001", Sampler{Type: "probabilistic", Param: 0.001, LowerBound: 1. / 60})
	f(forms["rate limiting with operations"].strategy, "<op>", "probabilistic 0.001; 1 operation strategies",
		Sampler{Type: "probabilistic", Param: 1, PerOperation: true})
	f(&Strategy{}, "op", "probabilistic 0", Sampler{Type: "probabilistic"})
}

func TestEqual(t *testing.T) {
	for a, x := range forms {
		for b, y := range forms {
			if x.strategy.Equal(y.strategy) != (a == b) {
				t.Errorf("%s and %s", a, b)
			}
		}
	}
	if !NewRateLimiting(5).Equal(NewRateLimiting(5)) || !NewProbabilistic(1).Equal(NewProbabilistic(1)) {
		t.Error("copies differ")
	}
}
