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

// collector is a server whose answers a test decides.
type collector struct {
	api_v2.UnimplementedSamplingManagerServer
	addr  string
	calls atomic.Int32

	mu     sync.Mutex
	answer func(service, tenant string) (*api_v2.SamplingStrategyResponse, error)
}

func (c *collector) GetSamplingStrategy(ctx context.Context, p *api_v2.SamplingStrategyParameters) (*api_v2.SamplingStrategyResponse, error) {
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

// limit answers with a limit of traces per second.
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
	c.addr = pipelinetest.StartHop(t, "127.0.0.1:0", func(srv *grpc.Server) { wire.Register(srv, &api_v2.SamplingManager_ServiceDesc, c) }).Addr
	return c
}

// agent is an extension that asks a collector, with a clock that a test turns.
type agent struct {
	*extension
	reports reports
	clock   atomic.Int64
}

func (a *agent) pass(d time.Duration) { a.clock.Add(int64(d)) }

func startAgent(t *testing.T, addr string, change ...func(*RemoteConfig)) *agent {
	t.Helper()
	remote := defaultRemote()
	remote.Endpoint, remote.TLS.Insecure, remote.WaitForReady = addr, true, true
	for _, f := range change {
		f(&remote)
	}
	c := listening(defaults())
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

// An answer is fresh for a while, then asked for again; stale while the collector fails; and at last an error.
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
	a.pass(9 * time.Second)
	c.answers(fails)
	step(200, seven, 0)
	a.pass(2 * time.Second)
	step(200, seven, 1)
	step(200, seven, 0) // not asked again at once
	a.pass(59 * time.Minute)
	step(200, seven, 1)
	a.pass(2 * time.Second)
	step(200, seven, 1)
	x, err := a.Explain(t.Context(), "", "cart", "")
	if err != nil || !strings.Contains(x.Origin.Problem, "is what it said 59m13s ago: rpc error") || x.Origin.Place != c.addr || len(x.Askers) != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	if a.reports.get() == "" {
		t.Error("the collector is away, and nothing is reported")
	}
	a.pass(time.Minute)
	step(500, failed, 1)
	step(500, failed, 0)
	x, err = a.Explain(t.Context(), "", "cart", "GET /")
	if err != nil || x.Strategy != nil || x.Sampler.Type != "" || x.Origin.Problem+"\n" != strings.TrimPrefix(failed, "collector error: ") ||
		!strings.HasSuffix(x.Origin.Rule, "has said nothing in the last 1h0m0s") || x.Origin.Place != c.addr || len(x.Askers) != 1 ||
		!x.Askers[0].Failed || x.Askers[0].Kept != "7 traces per second" || !strings.Contains(strings.Join(x.Notes, "\n"), "keep what they were told before") {
		t.Errorf("%+v, %v", x, err)
	}
	c.answers(limit(7))
	a.pass(time.Minute)
	step(200, seven, 1)
	if x, err = a.Explain(t.Context(), "", "cart", ""); err != nil || !x.Origin.Since.Equal(begin) || x.Origin.Problem != "" || a.reports.get() != "" {
		t.Errorf("%+v, %v, reported %q", x, err, a.reports.get())
	}
}

// Tenants have strategies of their own, which is what the collector is asked for.
func TestRemoteTenants(t *testing.T) {
	c := startCollector(t)
	c.answers(func(_, tenant string) (*api_v2.SamplingStrategyResponse, error) {
		return limit(int32(len(tenant)))("", "")
	})
	a := startAgent(t, c.addr)
	for _, tenant := range []string{"", "acme", "acme", "a"} {
		got, err := a.Strategy(t.Context(), sampling.Question{Tenant: tenant, Service: "cart"})
		if err != nil || *got.Strategy.Limit != int32(len(tenant)) {
			t.Errorf("%q: %v, %v", tenant, got.Strategy, err)
		}
	}
	if n := c.calls.Load(); n != 3 {
		t.Errorf("%d calls", n)
	}
}

// Nothing that a collector answers is passed on unless it is a strategy.
func TestBadAnswers(t *testing.T) {
	c := startCollector(t)
	a := startAgent(t, c.addr, func(r *RemoteConfig) { r.MaxAnswer = 1000 })
	f := func(m *api_v2.SamplingStrategyResponse, want string) {
		t.Helper()
		c.answers(func(string, string) (*api_v2.SamplingStrategyResponse, error) { return m, nil })
		_, err := a.Strategy(t.Context(), sampling.Question{Service: "cart"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f(&api_v2.SamplingStrategyResponse{}, "failed to get sampling strategy: the answer of "+c.addr+": sampling strategy is empty")
	f(&api_v2.SamplingStrategyResponse{StrategyType: 9}, "unknown type 9")
	f(&api_v2.SamplingStrategyResponse{OperationSampling: &api_v2.PerOperationSamplingStrategies{PerOperationStrategies: []*api_v2.OperationSamplingStrategy{
		{Operation: strings.Repeat("x", 2000), ProbabilisticSampling: &api_v2.ProbabilisticSamplingStrategy{}}}}}, "received message larger than max")
}

// A name that is no text is one of a service that is not known; it does not make the collector look as if it were away.
func TestNameIsNoText(t *testing.T) {
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

// Of many who ask at once, one asks the collector; who gives up does not take the answer from the others.
func TestOneAsks(t *testing.T) {
	c := startCollector(t)
	asked, release := make(chan struct{}), make(chan struct{})
	c.answers(func(string, string) (*api_v2.SamplingStrategyResponse, error) {
		close(asked)
		<-release
		return limit(7)("", "")
	})
	a := startAgent(t, c.addr, func(r *RemoteConfig) { r.Timeout = pipeline.Duration(time.Minute) })
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 10)
	ask := func(ctx context.Context) {
		_, err := a.Strategy(ctx, sampling.Question{Service: "cart"})
		results <- err
	}
	go ask(ctx) // the one who asks
	<-asked
	cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	ask(gone)
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	for range 8 {
		go ask(t.Context())
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

// The memory for answers is bounded; those asked for last stay.
func TestCacheIsBounded(t *testing.T) {
	c, now := newCache(64<<10), time.Unix(1, 0)
	put := func(service string, s *sampling.Strategy, err error) answer {
		key := askedFor{"", service}
		c.begin(key, now, 0)
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
	if c.used > c.most || c.used < c.most/2 || len(c.byKey) != c.recent.Len() || len(c.asking) != 0 {
		t.Errorf("%d bytes, %d and %d answers, %d questions", c.used, len(c.byKey), c.recent.Len(), len(c.asking))
	}
	if _, ok := c.byKey[askedFor{"", "kept"}]; !ok {
		t.Error("the answer asked for last is gone")
	}
	large := &sampling.Strategy{Operations: &sampling.Operations{Each: []sampling.Operation{{Name: strings.Repeat("x", 70<<10)}}}}
	if a := put("large", large, nil); a.entry.strategy != large || len(c.byKey) != 0 || c.used != 0 {
		t.Errorf("%d answers, %d bytes", len(c.byKey), c.used)
	}
}

// An agent that asks a collector of this project passes on byte for byte what that says, whatever the shape.
func TestAgentAndCollector(t *testing.T) {
	collector, _ := start(t, listening(ofFile("testdata/strategies.json")))
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
