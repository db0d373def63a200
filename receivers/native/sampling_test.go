package native

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// fakeProvider returns a rate limit equal to the length of service and tenant. It fails for the
// service `lost`.
type fakeProvider struct{ asked []sampling.Request }

func (s *fakeProvider) Strategy(_ context.Context, q sampling.Request) (sampling.Answer, error) {
	s.asked = append(s.asked, q)
	if q.Service == "lost" {
		return sampling.Answer{}, errors.New("no strategies today")
	}
	return sampling.Answer{Strategy: sampling.NewRateLimiting(int32(len(q.Service) + len(q.Tenant)))}, nil
}

func (s *fakeProvider) Explain(_ context.Context, tenant, service, operation string) (*sampling.Explanation, error) {
	return &sampling.Explanation{Service: tenant + service + operation, Strategy: sampling.NewProbabilistic(1)}, nil
}

// startSampling starts a receiver with tenancy.
func startSampling(t *testing.T, p sampling.Provider) *fixture {
	c := testConfig(func(g *server.GRPCConfig, h *server.HTTPConfig) {
		tenancy := pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
		g.Tenancy, h.Tenancy = tenancy, tenancy
	})
	if p != nil {
		c.Sampling = pipeline.BoundRef(p)
	}
	return start(t, c, 64<<20, &pipelinetest.Sink{})
}

func (f *fixture) get(t *testing.T, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+f.Addr("http")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Tenant", "acme")
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

func TestSamplingOverHTTP(t *testing.T) {
	f := startSampling(t, &fakeProvider{})
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/api/sampling?service=cart", 200, `{"strategyType":"RATE_LIMITING","rateLimitingSampling":{"maxTracesPerSecond":8}}`},
		{"GET", "/api/sampling?service=lost", 500, "collector error: no strategies today\n"},
		{"GET", "/api/sampling", 400, "'service' parameter must be provided once\n"},
		{"POST", "/api/sampling?service=cart", 405, ""},
		{"GET", "/api/baggageRestrictions?service=cart", 500, "collector error: baggage restrictions not implemented\n"},
		{"GET", "/sampling?service=cart", 404, "404 page not found\n"},
	} {
		if code, body := f.get(t, c.method, c.path); code != c.code || body != c.body {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, code, body, c.code, c.body)
		}
	}
	if code, body := f.get(t, "GET", "/api/sampling/explain?service=cart&operation=x"); code != 200 ||
		!strings.Contains(body, `"service": "acmecartx"`) {
		t.Errorf("%d %s", code, body)
	}
}

func TestSamplingOverGRPC(t *testing.T) {
	s := &fakeProvider{}
	f := startSampling(t, s)
	conn := f.dial(t)
	for _, name := range []string{"tracing", "jaeger"} {
		method := "/" + name + ".api_v2.SamplingManager/GetSamplingStrategy"
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme")
		var r api_v2.SamplingStrategyResponse
		if err := conn.Invoke(ctx, method, &api_v2.SamplingStrategyParameters{}, &r); err != nil ||
			r.GetRateLimitingSampling().GetMaxTracesPerSecond() != 4 {
			t.Errorf("%s: %v, %v", name, &r, err)
		}
		err := conn.Invoke(ctx, method, &api_v2.SamplingStrategyParameters{ServiceName: "lost"}, &r)
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no strategies today") {
			t.Errorf("%s: %v", name, err)
		}
		if err := conn.Invoke(t.Context(), method, &api_v2.SamplingStrategyParameters{}, &r); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s without a tenant: %v", name, err)
		}
	}
	if a := s.asked[0].Client; a.Transport != "grpc" || a.Address != "127.0.0.1" || !strings.Contains(a.UserAgent, "grpc-go") {
		t.Errorf("client: %+v", a)
	}
}

func TestWithoutSamplingProvider(t *testing.T) {
	f := startSampling(t, nil)
	if code, _ := f.get(t, "GET", "/api/sampling?service=cart"); code != 404 {
		t.Errorf("%d", code)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme")
	err := f.dial(t).Invoke(ctx, "/jaeger.api_v2.SamplingManager/GetSamplingStrategy", &api_v2.SamplingStrategyParameters{},
		&api_v2.SamplingStrategyResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("%v", err)
	}
}
