package zipkin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a consumer that returns err and stores batches while err is nil.
type sink struct {
	mu      sync.Mutex
	err     error
	batches []*otlpdata.Batch
}

func (s *sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.batches = append(s.batches, b)
	}
	return s.err
}

func (s *sink) setError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// last returns the last stored batch.
func (s *sink) last(t *testing.T) *otlpdata.Batch {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		t.Fatal("no batch received")
	}
	return s.batches[len(s.batches)-1]
}

// fixture is a running receiver on a free port.
type fixture struct {
	*receiver
	*sink
	reg    *prometheus.Registry
	budget *pipeline.Budget
	logs   *observer.ObservedLogs
}

const testBudget = 256 << 20

func start(t *testing.T, change func(*config), budget int64) *fixture {
	t.Helper()
	c := defaults()
	c.Endpoint = "127.0.0.1:0"
	if change != nil {
		change(&c)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	f := &fixture{sink: &sink{}, reg: prometheus.NewRegistry(), budget: pipeline.NewBudget(budget), logs: logs}
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	var err error
	f.receiver, err = newReceiver(pipeline.Settings{ID: pipeline.ID{Type: "zipkin"}, Logger: zap.New(core), Metrics: f.reg, Env: env, Budget: f.budget,
		Report: func(err error) { t.Errorf("reported: %v", err) }}, c, f.sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := f.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if used := f.budget.Used(); used != 0 {
			t.Errorf("%d bytes of the budget are still reserved", used)
		}
	})
	return f
}

// request is an HTTP request. The default method is POST.
type request struct {
	method, path, body string
	header             []string // alternating names and values
}

// http returns the request without a host.
func (r request) http(t *testing.T) *http.Request {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
	}
	return req
}

func (f *fixture) do(t *testing.T, r request) (*http.Response, string) {
	t.Helper()
	req := r.http(t)
	req.URL.Scheme, req.URL.Host = "http", f.Addr("http")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, body.String()
}

// refused returns the number of refused requests by reason.
func (f *fixture) refused(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "tracing_server_refused_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" {
					out[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}
