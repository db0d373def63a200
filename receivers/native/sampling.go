package native

import (
	"context"
	"net/http"

	"github.com/tracing-backend/tracing/internal/translate/strategies"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// samplingRoutes returns the handlers that serve sampling strategies by path, or nil without a
// provider.
func samplingRoutes(p sampling.Provider) map[string]http.HandlerFunc {
	if p == nil {
		return nil
	}
	handlers := sampling.Handlers{Provider: p, Tenant: server.Tenant, Client: server.ClientAddress}
	return map[string]http.HandlerFunc{
		"/api/sampling":            handlers.Strategy,
		"/api/sampling/explain":    handlers.Explain,
		"/api/baggageRestrictions": handlers.Baggage("baggage restrictions not implemented"),
	}
}

// samplingManager serves sampling strategies over gRPC.
type samplingManager struct {
	api_v2.UnimplementedSamplingManagerServer
	provider sampling.Provider
}

// GetSamplingStrategy implements api_v2.SamplingManagerServer.
func (m *samplingManager) GetSamplingStrategy(ctx context.Context, p *api_v2.SamplingStrategyParameters) (
	*api_v2.SamplingStrategyResponse, error,
) {
	client := strategies.Client(ctx, server.ClientAddress(ctx))
	a, err := m.provider.Strategy(ctx, sampling.Request{Tenant: server.Tenant(ctx), Service: p.ServiceName, Client: client})
	if err != nil {
		return nil, pipeline.GRPCStatus(err).Err()
	}
	return strategies.ToProto(a.Strategy), nil
}
