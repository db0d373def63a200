package sampling

import (
	"context"
	"net/http"

	"github.com/tracing-backend/tracing/internal/translate/strategies"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// reasonPath is the reason under which requests for unknown paths are counted.
const reasonPath = "path"

// listen creates the listeners.
func (e *extension) listen(c Config) error {
	if cfg, on := c.HTTP.Get(); on {
		s, err := newHTTPServer(e.set, cfg, e)
		if err != nil {
			return err
		}
		e.listeners["http"] = s
	}
	if cfg, on := c.GRPC.Get(); on {
		s, err := server.NewGRPC(e.set, "grpc", cfg)
		if err != nil {
			return err
		}
		wire.Register(s, &api_v2.SamplingManager_ServiceDesc, &manager{provider: e})
		s.AddDescriptors(wire.Originals())
		e.listeners["grpc"] = s
	}
	return nil
}

// httpServer serves strategies over HTTP, like Jaeger's agent.
type httpServer struct {
	*server.HTTP
	routes map[string]http.HandlerFunc
}

func newHTTPServer(set pipeline.Settings, cfg server.HTTPConfig, p sampling.Provider) (*httpServer, error) {
	handlers := sampling.Handlers{Provider: p, Tenant: server.Tenant, Client: server.ClientAddress}
	s := &httpServer{routes: map[string]http.HandlerFunc{
		"/":                     handlers.LegacyStrategy,
		"/sampling":             handlers.Strategy,
		"/api/sampling":         handlers.Strategy,
		"/api/sampling/explain": handlers.Explain,
		"/baggageRestrictions":  handlers.Baggage("baggage not implemented"),
	}}
	var err error
	if s.HTTP, err = server.NewHTTP(set, "http", cfg, s); err != nil {
		return nil, err
	}
	s.OnDenied(server.DenyWithStatus)
	s.SetUnsafe(func(*http.Request) bool { return true }) // requests are remembered as clients' requests
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, ok := s.routes[r.URL.Path]
	if !ok {
		s.CountRefused(reasonPath)
		http.NotFound(w, r)
		return
	}
	r.Pattern = r.URL.Path // the listener names the request's span after it
	route(w, r)
}

// manager serves strategies over gRPC.
type manager struct {
	api_v2.UnimplementedSamplingManagerServer
	provider sampling.Provider
}

// GetSamplingStrategy implements api_v2.SamplingManagerServer.
func (m *manager) GetSamplingStrategy(ctx context.Context, p *api_v2.SamplingStrategyParameters) (*api_v2.SamplingStrategyResponse, error) {
	client := strategies.Client(ctx, server.ClientAddress(ctx))
	a, err := m.provider.Strategy(ctx, sampling.Request{Tenant: server.Tenant(ctx), Service: p.ServiceName, Client: client})
	if err != nil {
		return nil, pipeline.GRPCStatus(err).Err()
	}
	return strategies.ToProto(a.Strategy), nil
}
