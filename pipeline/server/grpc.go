package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
)

// GRPC serves gRPC: the services registered with it, grpc.health.v1 for each of them and for "", and reflection (v1 and v1alpha), see
// [GRPC.Describe].
// Messages may be compressed with gzip, zstd or snappy.
//
// At the start of a call max_recv_msg_size_mib is taken of the budget, or the call is refused as overloaded; once the request has been
// decoded only its size and that of its headers is held, until the call has ended and its handler has returned. For streams it is the size
// of the latest message. Calls that have not sent their message may hold a part of the budget only, see arrivals. While a message is
// decompressed or copied into one piece gRPC holds it twice, which is not charged: it lasts as long as a core takes for it.
type GRPC struct {
	*base
	maxMsg       int64
	timeout      pipeline.Duration // read_timeout
	srv          *grpc.Server
	health       *health.Server
	healthBudget *pipeline.Budget // for calls of health when the process's budget is used up
	arrivals     *arrivals
	calls        calls
	described    resolvers // for reflection
	// aux is the context of calls that watch the server itself (health, reflection) and would never end by themselves.
	aux    context.Context
	endAux context.CancelFunc
}

var (
	_ pipeline.Starter      = (*GRPC)(nil)
	_ pipeline.Stopper      = (*GRPC)(nil)
	_ reflection.GRPCServer = (*GRPC)(nil)
)

// NewGRPC makes a server that does not listen yet. name is the path of its block below the component, `protocols.grpc`: the metrics'
// label, and what errors call it. opts are added to the options that cfg stands for; interceptors are chained behind the server's own.
func NewGRPC(set pipeline.Settings, name string, cfg GRPCConfig, opts ...grpc.ServerOption) (*GRPC, error) {
	registerCompressors()
	sec, err := newSecurity(set, cfg.SecurityConfig, "h2")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b, err := newBase(set, name, cfg.Endpoint, cfg.MaxConnections, sec)
	if err != nil {
		return nil, err
	}
	g := &GRPC{base: b, maxMsg: int64(cfg.MaxRecvMsgSizeMiB) << 20, timeout: cfg.ReadTimeout, health: health.NewServer()}
	if most := capToBudget(g.maxMsg, set.Budget); most < g.maxMsg {
		b.set.Logger.Warn("max_recv_msg_size_mib is more than service.limits.inflight, which is the limit", zap.Int64("bytes", most))
		g.maxMsg = most
	}
	g.healthBudget, g.arrivals = pipeline.NewBudget(healthCalls*g.maxMsg), newArrivals(g.maxMsg, set.Budget.Limit())
	g.aux, g.endAux = context.WithCancel(context.Background())
	if sec.tls != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(sec.tls.Listener())))
	}
	g.srv = grpc.NewServer(append(g.options(cfg), opts...)...)
	grpc_health_v1.RegisterHealthServer(g, g.health)
	g.registerReflection()
	return g, nil
}

func (g *GRPC) options(cfg GRPCConfig) []grpc.ServerOption {
	params, policy := cfg.Keepalive.ServerParameters, cfg.Keepalive.EnforcementPolicy
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(RawCodec()),
		grpc.InTapHandle(g.admit),
		grpc.ChainUnaryInterceptor(g.unary),
		grpc.ChainStreamInterceptor(g.stream),
		grpc.MaxRecvMsgSize(int(g.maxMsg)),
		grpc.MaxConcurrentStreams(cfg.MaxConcurrentStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(cfg.ConnectionTimeout.Std()),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     params.MaxConnectionIdle.Std(),
			MaxConnectionAge:      params.MaxConnectionAge.Std(),
			MaxConnectionAgeGrace: params.MaxConnectionAgeGrace.Std(),
			Time:                  params.Time.Std(),
			Timeout:               params.Timeout.Std(),
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             policy.MinTime.Std(),
			PermitWithoutStream: policy.PermitWithoutStream,
		}),
	}
}

// RegisterService adds a service; only before Start.
func (g *GRPC) RegisterService(desc *grpc.ServiceDesc, impl any) {
	d := *desc
	d.Methods = slices.Clone(d.Methods)
	for i, m := range d.Methods {
		d.Methods[i].Handler = func(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
			c := callOf(ctx)
			if err := c.enter(); err != nil {
				return nil, err
			}
			defer c.leave()
			return m.Handler(srv, ctx, func(v any) error { return g.received(ctx, v, dec(v)) }, in)
		}
	}
	g.srv.RegisterService(&d, impl)
}

// GetServiceInfo lists the services, for reflection.
func (g *GRPC) GetServiceInfo() map[string]grpc.ServiceInfo { return g.srv.GetServiceInfo() }

// Start listens, and reports every service as healthy. The error names the key to change.
func (g *GRPC) Start(ctx context.Context) error {
	g.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	for name := range g.GetServiceInfo() {
		if !strings.HasPrefix(name, "grpc.") {
			g.health.SetServingStatus(name, grpc_health_v1.HealthCheckResponse_SERVING)
		}
	}
	return g.start(ctx, g.srv.Serve, grpc.ErrServerStopped)
}

// Stop reports NOT_SERVING, accepts no more connections and calls, and lets calls that are being served finish; then it ends calls that
// watch health. When ctx ends first, connections are closed and the error says how many calls were cut off.
func (g *GRPC) Stop(ctx context.Context) error {
	g.health.Shutdown()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		g.srv.GracefulStop()
	}()
	err := g.drain(ctx, stopped)
	g.endAux()
	<-g.served
	return err
}

func (g *GRPC) drain(ctx context.Context, stopped <-chan struct{}) error {
	idle := g.calls.idle()
	for {
		select {
		case <-idle:
			g.endAux()
			idle = nil
		case <-stopped:
			return nil
		case <-ctx.Done():
			err := fmt.Errorf("%s: %d calls were cut off: %w", g.name, g.calls.open(), ctx.Err())
			g.srv.Stop()
			within(hardStopGrace, stopped)
			return err
		}
	}
}

// recover turns a panic of a handler into an error of the call.
func (g *GRPC) recover(method string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	g.metrics.panics.Inc()
	g.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.String("method", method), zap.Stack("stack"))
	*err = status.Error(codes.Internal, "internal error")
}

func (g *GRPC) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer g.recover(info.FullMethod, &err)
	return next(ctx, req)
}

func (g *GRPC) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recover(info.FullMethod, &err)
	c := callOf(ss.Context())
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	return next(srv, &admittedStream{ss, g})
}
