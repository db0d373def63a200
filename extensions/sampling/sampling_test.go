package sampling

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// reports records the health that a component reports.
type reports struct {
	mu   sync.Mutex
	last string // "" means healthy
}

func (r *reports) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ""
	if err != nil {
		r.last = err.Error()
	}
}

func (r *reports) get() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func settings(r *reports) pipeline.Settings {
	return pipeline.Settings{ID: pipeline.ID{Type: "sampling"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(),
		Env:    pipeline.SystemEnv(),
		Budget: pipeline.NewBudget(64 << 20), Report: r.report}
}

// fileConfig returns a configuration with a strategies file.
func fileConfig(path string, change ...func(*FileConfig)) Config {
	file := defaultFile()
	file.Path, file.ReloadInterval = path, 0
	for _, f := range change {
		f(&file)
	}
	c := defaults()
	c.File = pipeline.Present(file)
	return c
}

// withListeners adds listeners on free ports.
func withListeners(c Config) Config {
	c.HTTP, c.GRPC = pipeline.Present(server.DefaultHTTPConfig("127.0.0.1:0")), pipeline.Present(server.DefaultGRPCConfig("127.0.0.1:0"))
	return c
}

func start(t *testing.T, c Config) (*extension, *reports) {
	t.Helper()
	r := &reports{}
	e, err := newExtension(settings(r), c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e, r
}

// write writes a strategies file with the default probability p.
func write(t *testing.T, file, p string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(`{"default_strategy": {"type": "probabilistic", "param": `+p+`}}`), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (e *extension) get(t *testing.T, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+e.Addr("http")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAgentPort(t *testing.T) {
	e, _ := start(t, withListeners(fileConfig("testdata/strategies.json")))
	f := func(method, path string, code int, want string) {
		t.Helper()
		if got, body := e.get(t, method, path); got != code || body != want {
			t.Errorf("%s %s: %d %q\nwant %d %q", method, path, got, body, code, want)
		}
	}
	f("GET", "/sampling?service=limited", 200, `{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":7}}`)
	f("GET", "/api/sampling?service=limited", 200, `{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":7}}`)
	f("GET", "/?service=limited", 200, `{"strategyType":1,"rateLimitingSampling":{"maxTracesPerSecond":7}}`)
	f("GET", "/sampling", 400, "'service' parameter must be provided once\n")
	f("POST", "/sampling?service=limited", 405, "")
	f("GET", "/baggageRestrictions?service=limited", 500, "collector error: baggage not implemented\n")
	f("GET", "/credits?service=limited", 404, "404 page not found\n")
}

// The gRPC service is available under both service names, and accepts an empty service name.
func TestGRPC(t *testing.T) {
	e, _ := start(t, withListeners(fileConfig("testdata/strategies.json")))
	conn, err := grpc.NewClient(e.Addr("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, name := range []string{"tracing", "jaeger"} {
		for service, want := range map[string]string{"limited": "7 traces per second", "": "probabilistic 0.8; 2 operation strategies"} {
			var r api_v2.SamplingStrategyResponse
			err := conn.Invoke(t.Context(), "/"+name+".api_v2.SamplingManager/GetSamplingStrategy",
				&api_v2.SamplingStrategyParameters{ServiceName: service}, &r)
			if err != nil || (service == "limited") != (r.GetRateLimitingSampling().GetMaxTracesPerSecond() == 7) {
				t.Errorf("%s: %v, %v, want %s", name, &r, err, want)
			}
		}
	}
	if got := e.clients.of("", "limited", nil); len(got) != 1 || got[0].Transport != "grpc" || got[0].Address != "127.0.0.1" ||
		!strings.Contains(got[0].UserAgent, "grpc-go") {
		t.Errorf("clients: %+v", got)
	}
}

// The clients of an explanation are those behind trusted proxies, with the whole address.
func TestExplainShowsClientsBehindProxies(t *testing.T) {
	c := withListeners(fileConfig("testdata/strategies.json"))
	web, rpc := server.DefaultHTTPConfig("127.0.0.1:0"), server.DefaultGRPCConfig("127.0.0.1:0")
	web.TrustedProxies, rpc.TrustedProxies = []string{"127.0.0.1"}, []string{"127.0.0.1"}
	c.HTTP, c.GRPC = pipeline.Present(web), pipeline.Present(rpc)
	e, _ := start(t, c)
	req, err := http.NewRequest(http.MethodGet, "http://"+e.Addr("http")+"/sampling?service=limited", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "2001:db8::7")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	conn, err := grpc.NewClient(e.Addr("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "198.51.100.1")
	p := &api_v2.SamplingStrategyParameters{ServiceName: "limited"}
	if _, err := api_v2.NewSamplingManagerClient(conn).GetSamplingStrategy(ctx, p); err != nil {
		t.Fatal(err)
	}
	x, err := e.Explain(t.Context(), "", "limited", "")
	if err != nil || len(x.Clients) != 2 || x.Clients[0].Address != "198.51.100.1" || x.Clients[1].Address != "2001:db8::7" {
		t.Errorf("%+v, %v", x.Clients, err)
	}
}

// An explanation contains the line of the strategy, the time since when it is unchanged, and the
// answers to clients.
func TestExplain(t *testing.T) {
	e, _ := start(t, withListeners(fileConfig("testdata/strategies.json")))
	e.get(t, "GET", "/sampling?service=cart")
	e.get(t, "GET", "/?service=cart")
	f := func(query string, check func(x sampling.Explanation) bool) {
		t.Helper()
		code, body := e.get(t, "GET", "/api/sampling/explain?"+query)
		var x sampling.Explanation // without the strategy, which can only be encoded
		if err := json.Unmarshal([]byte(body), &x); err != nil || code != 200 || !check(x) {
			t.Errorf("%s: %d %v %s", query, code, err, body)
		}
	}
	f("service=cart&operation=health", func(x sampling.Explanation) bool {
		return x.Sampler == sampling.Sampler{Type: "probabilistic", PerOperation: true} && x.Origin.Source == "file" &&
			x.Origin.Place == "testdata/strategies.json:8" &&
			x.Origin.Rule == "entry of the operation in default_strategy" && !x.Origin.Since.IsZero() && len(x.Notes) == 1 &&
			len(x.Clients) == 2 && x.Clients[0].Transport == "legacy" && x.Clients[1].Transport == "http" && x.Clients[1].Current &&
			x.Clients[1].Answer == "probabilistic 0.5; 3 operation strategies"
	})
	f("service=cart&operation=unknown", func(x sampling.Explanation) bool {
		return x.Sampler.Param == 0.5 && x.Origin.Place == "testdata/strategies.json:12"
	})
	f("service=limited", func(x sampling.Explanation) bool {
		return x.Sampler.Type == "ratelimiting" && len(x.Clients) == 0 &&
			strings.Contains(strings.Join(x.Notes, "\n"), "applies to each process") &&
			strings.Contains(strings.Join(x.Notes, "\n"), "No client has requested")
	})
}

// A client that requests a form that cannot represent its strategy gets an error, and the error is
// recorded.
func TestExplainLegacyError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	strategies := `{"service_strategies": [{"service": "cart", "type": "ratelimiting", "param": 32768}]}`
	if err := os.WriteFile(file, []byte(strategies), 0o600); err != nil {
		t.Fatal(err)
	}
	e, _ := start(t, withListeners(fileConfig(file)))
	e.get(t, "GET", "/sampling?service=cart")
	if code, body := e.get(t, "GET", "/?service=cart"); code != 500 || body != "cannot marshall to JSON\n" {
		t.Errorf("%d %q", code, body)
	}
	x, err := e.Explain(t.Context(), "", "cart", "")
	if err != nil || len(x.Clients) != 2 || !x.Clients[0].Failed || x.Clients[0].Current ||
		!strings.HasPrefix(x.Clients[0].Answer, "error: ") ||
		x.Clients[1].Failed || !x.Clients[1].Current {
		t.Errorf("%+v, %v", x, err)
	}
	for query, want := range map[string]int{"service=cart&operation=a": 200, "service=cart&operation=a&operation=b": 400,
		"operation=a": 400} {
		if code, body := e.get(t, "GET", "/api/sampling/explain?"+query); code != want {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}

func TestWithoutFile(t *testing.T) {
	e, _ := start(t, fileConfig(""))
	a, err := e.Strategy(t.Context(), sampling.Request{Service: "a"})
	if err != nil || a.Strategy.String() != "probabilistic 0.001" || a.Origin.Source != "built-in" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Strategies that cannot be read at start are an error with their position.
func TestBadStart(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.json")
	write(t, large, "0."+strings.Repeat("1", 5000))
	for want, c := range map[string]Config{
		"file::path: open testdata/none.json: no such file or directory": fileConfig("testdata/none.json"),
		"file::path: " + dir + " is a folder, not a file":                fileConfig(dir),
		"file::path: file is too large: " + large + " is larger than 4KiB; increase file::max_size": fileConfig(large,
			func(f *FileConfig) { f.MaxSize = 4 << 10 }),
		"file::path: testdata/bad/param-text.json:2:58: param must be a number, not the string \"0.5\"; " +
			"expected a probability from 0 to 1": fileConfig("testdata/bad/param-text.json"),
	} {
		e, err := newExtension(settings(&reports{}), withListeners(c))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestBadConfig(t *testing.T) {
	both := fileConfig("")
	both.Remote = pipeline.Present(defaultRemote())
	none := defaults()
	many := fileConfig("")
	many.RememberedServices = -1
	for want, c := range map[string]*Config{
		"no source of strategies; configure file, remote or adaptive (an empty file: {} gives all services the same probability)": &none,
		"file and remote cannot be combined; delete one of them":                                                                  &both,
		"must be from 0 to 100000, not -1":                                                                                        &many,
	} {
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	file := FileConfig{Path: "http://user:secret@host/s.json", DefaultProbability: 1.5}
	if err := file.Validate(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v", err)
	}
	remote := defaultRemote()
	remote.Timeout, remote.StaleFor, remote.CacheSize, remote.MaxAnswer = 0, 1, 0, 0
	if err := remote.Validate(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v", err)
	}
}

// The numbers of services and of clients for each service are limited, and so are the lengths of
// names.
func TestRecentClientsAreLimited(t *testing.T) {
	a, now, strategy := newRecentClients(2), time.Unix(1, 0), sampling.NewProbabilistic(1)
	request := func(service, client string) {
		a.remember(sampling.Request{Service: service, Client: sampling.Client{Address: "h", UserAgent: client}}, now, strategy, nil)
	}
	for i := range 20 {
		request("a", strings.Repeat("c", i+1))
	}
	request("a", "c")
	if got := a.of("", "a", strategy); len(got) != clientsPerService || got[0].UserAgent != "c" ||
		got[1].UserAgent != strings.Repeat("c", 20) || !got[0].Current {
		t.Errorf("%+v", got)
	}
	request("b", "c")
	request("a", strings.Repeat("x", 10_000))
	request("c", "c")
	request(strings.Repeat("y", 10_000), "c")
	if len(a.services) != 2 || a.recent.Len() != 2 || len(a.of("", "b", strategy)) != 0 {
		t.Errorf("recorded %d services, want 2", len(a.services))
	}
	if got := a.of("", "a", sampling.NewRateLimiting(1)); len(got[0].UserAgent) != maxRemembered || got[0].Current {
		t.Errorf("%+v", got[0])
	}
	a.remember(sampling.Request{Service: "d"}, now, strategy, nil)
	if len(a.of("", "d", strategy)) != 0 || len(newRecentClients(0).of("", "a", strategy)) != 0 {
		t.Error("recorded a request without a client, or with the limit 0")
	}
}
