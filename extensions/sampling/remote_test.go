package sampling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// collector is a server whose answers are set by the test.
type collector struct {
	api_v2.UnimplementedSamplingManagerServer
	addr  string
	calls atomic.Int32

	mu     sync.Mutex
	answer func(service, tenant string) (*api_v2.SamplingStrategyResponse, error)
}

func (c *collector) GetSamplingStrategy(ctx context.Context, p *api_v2.SamplingStrategyParameters) (*api_v2.SamplingStrategyResponse,
	error) {
	c.calls.Add(1)
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	return answer(p.ServiceName, strings.Join(metadata.ValueFromIncomingContext(ctx, "x-tenant"), ","))
}

func (c *collector) answers(f func(service, tenant string) (*api_v2.SamplingStrategyResponse, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// limit returns a response with a limit of traces per second.
func limit(n int32) func(string, string) (*api_v2.SamplingStrategyResponse, error) {
	return func(string, string) (*api_v2.SamplingStrategyResponse, error) {
		return &api_v2.SamplingStrategyResponse{StrategyType: api_v2.SamplingStrategyType_RATE_LIMITING,
			RateLimitingSampling: &api_v2.RateLimitingSamplingStrategy{MaxTracesPerSecond: n}}, nil
	}
}

func fails(string, string) (*api_v2.SamplingStrategyResponse, error) {
	return nil, status.Error(codes.Unavailable, "on holiday")
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.addr = pipelinetest.StartHop(t, "127.0.0.1:0", func(srv *grpc.Server) {
		wire.Register(srv, &api_v2.SamplingManager_ServiceDesc,
			c)
	}).Addr
	return c
}

// agent is an extension with a remote collector and a manual clock.
type agent struct {
	*extension
	reports reports
	clock   atomic.Int64
}

func (a *agent) advance(d time.Duration) { a.clock.Add(int64(d)) }

func startAgent(t *testing.T, addr string, change ...func(*RemoteConfig)) *agent {
	t.Helper()
	remote := defaultRemote()
	remote.Endpoint, remote.TLS.Insecure, remote.WaitForReady = addr, true, true
	for _, f := range change {
		f(&remote)
	}
	c := withListeners(defaults())
	c.Remote = pipeline.Present(remote)
	a := &agent{}
	a.clock.Store(time.Now().UnixNano())
	set := settings(&a.reports)
	set.Env.Now = func() time.Time { return time.Unix(0, a.clock.Load()) }
	var err error
	if a.extension, err = newExtension(set, c); err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, a)
	return a
}

// A response is cached while it is fresh. After that it is requested anew; if the collector fails,
// the cached response is used until it is too old.
func TestRemote(t *testing.T) {
	c := startCollector(t)
	a := startAgent(t, c.addr)
	step := func(code int, body string, calls int32) {
		t.Helper()
		c.calls.Store(0)
		gotCode, got := a.get(t, "GET", "/sampling?service=cart")
		if gotCode != code || got != body || c.calls.Load() != calls {
			t.Errorf("%d %q after %d calls, want %d %q after %d", gotCode, got, c.calls.Load(), code, body, calls)
		}
	}
	const seven = `{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":7}}`
	const failed = "collector error: failed to get sampling strategy: rpc error: code = Unavailable desc = on holiday\n"
	c.answers(fails)
	step(500, failed, 1)
	step(500, failed, 1)
	c.answers(limit(7))
	step(200, seven, 1)
	begin := time.Unix(0, a.clock.Load())
	a.advance(999 * time.Millisecond)
	c.answers(fails)
	step(200, seven, 0)
	a.advance(10001 * time.Millisecond)
	step(200, seven, 1)
	step(200, seven, 0) // no immediate retry
	a.advance(59 * time.Minute)
	step(200, seven, 1)
	a.advance(2 * time.Second)
	step(200, seven, 1)
	x, err := a.Explain(t.Context(), "", "cart", "")
	if err != nil || !strings.Contains(x.Origin.Problem, "using its response from 59m13s ago: rpc error") || x.Origin.Place != c.addr ||
		len(x.Clients) != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	if a.reports.get() == "" {
		t.Error("failure of the collector is not reported")
	}
	a.advance(time.Minute)
	step(500, failed, 1)
	step(500, failed, 0)
	x, err = a.Explain(t.Context(), "", "cart", "GET /")
	if err != nil || x.Strategy != nil || x.Sampler.Type != "" ||
		x.Origin.Problem+"\n" != strings.TrimPrefix(failed, "collector error: ") ||
		!strings.HasSuffix(x.Origin.Rule, "no response in the last 1h0m0s") || x.Origin.Place != c.addr || len(x.Clients) != 1 ||
		!x.Clients[0].Failed || x.Clients[0].Previous != "7 traces per second" ||
		!strings.Contains(strings.Join(x.Notes, "\n"), "keep their previous strategy") {
		t.Errorf("%+v, %v", x, err)
	}
	c.answers(limit(7))
	a.advance(time.Minute)
	step(200, seven, 1)
	if x, err = a.Explain(t.Context(), "", "cart", ""); err != nil || !x.Origin.Since.Equal(begin) || x.Origin.Problem != "" ||
		a.reports.get() != "" {
		t.Errorf("%+v, %v, reported %q", x, err, a.reports.get())
	}
}

// A changed strategy reaches the clients of an agent after one second, and many clients of a
// service cause one request per second.
func TestRemoteChange(t *testing.T) {
	c := startCollector(t)
	a := startAgent(t, c.addr)
	c.answers(limit(7))
	for range 100 {
		a.get(t, "GET", "/sampling?service=cart")
	}
	if calls := c.calls.Load(); calls != 1 {
		t.Errorf("%d requests to the collector", calls)
	}
	c.answers(limit(8))
	a.advance(time.Second)
	const eight = `{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":8}}`
	if code, got := a.get(t, "GET", "/sampling?service=cart"); code != 200 || got != eight {
		t.Errorf("after a second: %d %s", code, got)
	}
}

// Each tenant has its own strategies: the collector is requested for each.
func TestRemoteTenants(t *testing.T) {
	c := startCollector(t)
	c.answers(func(_, tenant string) (*api_v2.SamplingStrategyResponse, error) {
		return limit(int32(len(tenant)))("", "")
	})
	a := startAgent(t, c.addr)
	for _, tenant := range []string{"", "acme", "acme", "a"} {
		got, err := a.Strategy(t.Context(), sampling.Request{Tenant: tenant, Service: "cart"})
		if err != nil || *got.Strategy.Limit != int32(len(tenant)) {
			t.Errorf("%q: %v, %v", tenant, got.Strategy, err)
		}
	}
	if n := c.calls.Load(); n != 3 {
		t.Errorf("%d calls", n)
	}
}

// Answers that are not valid strategies are errors.
func TestBadAnswers(t *testing.T) {
	c := startCollector(t)
	a := startAgent(t, c.addr, func(r *RemoteConfig) { r.MaxAnswer = 1000 })
	f := func(m *api_v2.SamplingStrategyResponse, want string) {
		t.Helper()
		c.answers(func(string, string) (*api_v2.SamplingStrategyResponse, error) { return m, nil })
		_, err := a.Strategy(t.Context(), sampling.Request{Service: "cart"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f(&api_v2.SamplingStrategyResponse{}, "failed to get sampling strategy: response of "+c.addr+": sampling strategy is empty")
	f(&api_v2.SamplingStrategyResponse{StrategyType: 9}, "unknown type 9")
	large := []*api_v2.OperationSamplingStrategy{
		{Operation: strings.Repeat("x", 2000), ProbabilisticSampling: &api_v2.ProbabilisticSamplingStrategy{}}}
	f(&api_v2.SamplingStrategyResponse{OperationSampling: &api_v2.PerOperationSamplingStrategies{PerOperationStrategies: large}},
		"received message larger than max")
}

// A service name that is not valid UTF-8 belongs to an unknown service, and is not reported as a
// failure of the collector.
func TestInvalidServiceName(t *testing.T) {
	c := startCollector(t)
	c.answers(func(service, _ string) (*api_v2.SamplingStrategyResponse, error) {
		return limit(int32(len(service)))("", "")
	})
	a := startAgent(t, c.addr)
	for range 5 {
		if code, got := a.get(t, "GET", "/sampling?service=a%ff"); code != 200 || !strings.Contains(got, `"maxTracesPerSecond":4`) {
			t.Errorf("%d %s", code, got)
		}
	}
	if r := a.reports.get(); r != "" {
		t.Errorf("reported %s", r)
	}
}

// Concurrent callers share one request. Canceling one caller does not affect the others.
func TestSharedRequest(t *testing.T) {
	c := startCollector(t)
	requested, release := make(chan struct{}), make(chan struct{})
	c.answers(func(string, string) (*api_v2.SamplingStrategyResponse, error) {
		close(requested)
		<-release
		return limit(7)("", "")
	})
	a := startAgent(t, c.addr, func(r *RemoteConfig) { r.Timeout = pipeline.Duration(time.Minute) })
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 10)
	request := func(ctx context.Context) {
		_, err := a.Strategy(ctx, sampling.Request{Service: "cart"})
		results <- err
	}
	go request(ctx) // the caller that sends the request
	<-requested
	cancel()
	canceled, cancelNow := context.WithCancel(t.Context())
	cancelNow()
	request(canceled)
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled caller got %v", err)
	}
	for range 8 {
		go request(t.Context())
	}
	close(release)
	for range 9 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := c.calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// The memory of the cache is limited. The most recently used answers stay.
func TestCacheIsLimited(t *testing.T) {
	c, now := newCache(64<<10), time.Unix(1, 0)
	put := func(service string, s *sampling.Strategy, err error) answer {
		key := serviceKey{"", service}
		c.beginCall(key, now, 0)
		a := answer{at: now, tried: now, err: err}
		if err == nil {
			a.entry = &entry{strategy: s, since: now}
		}
		return c.end(key, a)
	}
	for i := range 1000 {
		put(fmt.Sprint("service", i), sampling.NewProbabilistic(1), nil)
		put("kept", sampling.NewProbabilistic(1), nil)
		put(fmt.Sprint("failed", i), nil, errors.New("no"))
	}
	if c.used > c.maxBytes || c.used < c.maxBytes/2 || len(c.byKey) != c.recent.Len() || len(c.calls) != 0 {
		t.Errorf("%d bytes, %d and %d answers, %d calls", c.used, len(c.byKey), c.recent.Len(), len(c.calls))
	}
	if _, ok := c.byKey[serviceKey{"", "kept"}]; !ok {
		t.Error("most recently used answer was removed")
	}
	large := &sampling.Strategy{Operations: &sampling.Operations{PerOperation: []sampling.Operation{{Name: strings.Repeat("x", 70<<10)}}}}
	if a := put("large", large, nil); a.entry.strategy != large || len(c.byKey) != 0 || c.used != 0 {
		t.Errorf("%d answers, %d bytes", len(c.byKey), c.used)
	}
}

// An agent passes on the responses of a collector unchanged, in all forms.
func TestAgentAndCollector(t *testing.T) {
	collector, _ := start(t, withListeners(fileConfig("testdata/strategies.json")))
	a := startAgent(t, collector.Addr("grpc"), func(r *RemoteConfig) { r.Compression = client.CompressionNone })
	for _, path := range []string{"/sampling", "/"} {
		for _, service := range []string{"cart", "plain", "limited", "unknown", ""} {
			_, want := collector.get(t, "GET", path+"?service="+service)
			if code, got := a.get(t, "GET", path+"?service="+service); code != 200 || got != want {
				t.Errorf("%s of %q: %d %s, want %s", path, service, code, got, want)
			}
		}
	}
}
