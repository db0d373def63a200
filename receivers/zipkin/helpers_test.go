package zipkin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
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
	*pipelinetest.Fixture
	*sink
	budget *pipeline.Budget
}

const testBudget = 256 << 20

func start(t *testing.T, change func(*config), budget int64) *fixture {
	t.Helper()
	c := defaults()
	c.Endpoint = "127.0.0.1:0"
	if change != nil {
		change(&c)
	}
	f := &fixture{Fixture: pipelinetest.NewFixture("zipkin", budget), sink: &sink{}}
	f.budget, f.Settings.Env.Now = f.Settings.Budget, pipelinetest.FixedTime
	f.receiver, _ = pipelinetest.StartReceiver(t, f.Fixture, f.sink, func(set pipeline.Settings, next pipeline.Consumer) (*receiver, error) {
		return newReceiver(set, c, next)
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
	return f.Samples(t, "tracing_server_refused_requests_total", "reason")
}
