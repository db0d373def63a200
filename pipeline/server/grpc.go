package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// GRPC serves gRPC: registered services, grpc.health.v1 for each of them and for "", and reflection
// (v1 and v1alpha), see [GRPC.AddDescriptors]. Messages may be compressed with gzip, zstd or
// snappy.
//
// When a call starts, the server reserves max_recv_msg_size_mib of the budget or refuses the call
// as overloaded. After the request has been decoded, the reservation shrinks to the size of the
// message and the headers; it is released when the call has ended and its handler has returned. A
// stream holds the size of its latest message. Calls that have not sent a message yet may hold only
// a part of the budget, see arrivals. While gRPC decompresses or copies a message, it briefly holds
// it twice, which is not charged.
type GRPC struct {
	acceptor     *acceptor
	set          pipeline.Settings
	maxMsg       int64             // bytes
	timeout      pipeline.Duration // read_timeout
	srv          *grpc.Server
	health       *health.Server
	healthBudget *pipeline.Budget // for health checks when the budget of the process is exhausted
	arrivals     *arrivals
	active       activeCalls // except health and reflection
	descriptors  resolvers   // for reflection
	// serviceCtx is the context of health and reflection calls, which may run forever.
	serviceCtx      context.Context
	endServiceCalls context.CancelFunc
	gracefulStop    func() (stopped <-chan struct{}) // begins srv.GracefulStop
	keepsHeaders    bool                             // for Metadata
}

var (
	_ pipeline.Starter      = (*GRPC)(nil)
	_ pipeline.Stopper      = (*GRPC)(nil)
	_ pipeline.Replaceable  = (*GRPC)(nil)
	_ reflection.GRPCServer = (*GRPC)(nil)
)

// NewGRPC returns a server that listens after Start. name is the path of its block below the
// component, such as `protocols.grpc`; it is the label listener of the metrics and a prefix of
// errors. opts are added to the options derived from cfg; interceptors run after the server's own.
func NewGRPC(set pipeline.Settings, name string, cfg GRPCConfig, opts ...grpc.ServerOption) (*GRPC, error) {
	registerCompressors()
	sec, err := newSecurity(set, name, cfg.SecurityConfig, protocolHTTP2)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a, err := newAcceptor(set, name, transportGRPC, cfg.Endpoint, cfg.MaxConnections, sec)
	if err != nil {
		return nil, err
	}
	var creds credentials.TransportCredentials = peekCreds{insecure.NewCredentials()}
	if sec.tls != nil {
		creds = credentials.NewTLS(sec.tls.Listener())
	}
	return newGRPC(a, cfg, creds, opts...)
}

// newGRPC returns a server for the connections of an acceptor, with the credentials that secure
// them.
func newGRPC(a *acceptor, cfg GRPCConfig, creds credentials.TransportCredentials, opts ...grpc.ServerOption) (*GRPC, error) {
	set := a.set
	g := &GRPC{acceptor: a, set: set, maxMsg: int64(cfg.MaxRecvMsgSizeMiB) << 20, timeout: cfg.ReadTimeout, health: health.NewServer(),
		keepsHeaders: cfg.IncludeMetadata}
	if limit := capToBudget(g.maxMsg, set.Budget); limit < g.maxMsg {
		g.set.Logger.Warn("max_recv_msg_size_mib exceeds service.limits.inflight; using that limit", zap.Int64("bytes", limit))
		g.maxMsg = limit
	}
	g.healthBudget, g.arrivals = pipeline.NewBudget(healthCalls*g.maxMsg), newArrivals(g.maxMsg, set.Budget.Limit())
	g.serviceCtx, g.endServiceCalls = context.WithCancel(context.Background())
	creds, err := g.watchReads(creds, cfg)
	if err != nil {
		return nil, err
	}
	opts = append(opts, grpc.Creds(creds))
	g.srv = grpc.NewServer(append(g.options(cfg), opts...)...)
	g.gracefulStop = sync.OnceValue(func() <-chan struct{} {
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			g.srv.GracefulStop()
		}()
		return stopped
	})
	grpc_health_v1.RegisterHealthServer(g, g.health)
	g.registerReflection()
	return g, nil
}

// watchReads returns credentials that also limit how long a client may stop reading.
func (g *GRPC) watchReads(creds credentials.TransportCredentials, cfg GRPCConfig) (credentials.TransportCredentials, error) {
	if cfg.WriteTimeout == 0 {
		return creds, nil
	}
	stalled := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tracing_server_stalled_connections_total",
		Help: "Connections closed because the client did not read a response for write_timeout.",
	})
	return readWatchCreds{creds, cfg.WriteTimeout.Std(), int(cfg.MaxConcurrentStreams), stalled.Inc},
		listen.Register(g.set.Metrics, g.acceptor.name, stalled)
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

// RegisterService adds a service. Call it before Start.
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
			decode := func(v any) error { return g.received(ctx, v, dec(v)) }
			return m.Handler(srv, ctx, decode, in)
		}
	}
	g.srv.RegisterService(&d, impl)
}

// GetServiceInfo returns the registered services.
func (g *GRPC) GetServiceInfo() map[string]grpc.ServiceInfo { return g.srv.GetServiceInfo() }

// Addr returns the address of the listener, or "" before Start.
func (g *GRPC) Addr() string { return g.acceptor.addr() }

// Transport returns `grpc`.
func (g *GRPC) Transport() string { return transportGRPC }

// Logger implements [Listener].
func (g *GRPC) Logger() *zap.Logger { return g.set.Logger }

// CountRefused counts a call that the handler refused before it passed on data. Calls that the
// server itself refuses are already counted.
func (g *GRPC) CountRefused(reason string) { g.acceptor.countRefused(reason) }

// Start opens the listener and reports every service as SERVING. The error names the configuration
// key to change.
func (g *GRPC) Start(ctx context.Context) error {
	g.setServing()
	return g.acceptor.start(ctx, g.srv.Serve, grpc.ErrServerStopped)
}

// setServing reports every service as SERVING.
func (g *GRPC) setServing() {
	g.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	for name := range g.GetServiceInfo() {
		if !strings.HasPrefix(name, "grpc.") {
			g.health.SetServingStatus(name, grpc_health_v1.HealthCheckResponse_SERVING)
		}
	}
}

// acceptedWait is how long it takes until gRPC has registered an accepted connection. When gRPC
// stops, it closes connections that it has not registered yet.
const acceptedWait = 100 * time.Millisecond

// HandOver closes the listener and tells clients to use another connection for new calls.
func (g *GRPC) HandOver(ctx context.Context) {
	g.acceptor.stopAccepting()
	listen.Wait(acceptedWait, ctx.Done())
	g.gracefulStop()
}

// Stop reports NOT_SERVING, refuses new connections and calls, and waits until active calls have
// finished. Then it ends health and reflection calls. If ctx ends first, it closes all connections
// and returns an error with the number of aborted calls.
func (g *GRPC) Stop(ctx context.Context) error {
	g.health.Shutdown()
	g.acceptor.security.stop()
	err := g.drain(ctx, g.gracefulStop())
	g.endServiceCalls()
	<-g.acceptor.served
	return err
}

func (g *GRPC) drain(ctx context.Context, stopped <-chan struct{}) error {
	idle := g.active.whenIdle()
	for {
		select {
		case <-idle:
			g.endServiceCalls()
			idle = nil
		case <-stopped: // the last calls may still release their resources
			listen.Wait(listen.StopGrace, g.active.whenIdle())
			return nil
		case <-ctx.Done():
			err := fmt.Errorf("%s: %d calls aborted: %w", g.acceptor.name, g.active.count(), ctx.Err())
			g.srv.Stop()
			listen.Wait(listen.StopGrace, stopped)
			return err
		}
	}
}

// recover turns a panic of a handler into the status Internal.
func (g *GRPC) recover(ctx context.Context, method string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	g.acceptor.metrics.panics.Inc()
	headers, _ := metadata.FromIncomingContext(ctx)
	g.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.String("method", method),
		zap.String("client", g.acceptor.security.proxies.describe(remoteAddress(ctx), headers.Get)), zap.Stack("stack"))
	*err = status.Error(codes.Internal, "internal error")
}

func (g *GRPC) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	ctx, trace := g.beginTrace(ctx, info.FullMethod)
	if trace != nil {
		trace.MarkRead(g.set.Env.Now())
		defer func() { endCall(trace, info.FullMethod, err) }()
	}
	defer g.recover(ctx, info.FullMethod, &err)
	return next(ctx, req)
}

func (g *GRPC) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	c := callOf(ss.Context())
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	ctx, trace := g.beginTrace(ss.Context(), info.FullMethod)
	if trace != nil {
		defer func() { endCall(trace, info.FullMethod, err) }()
	}
	defer g.recover(ss.Context(), info.FullMethod, &err)
	return next(srv, &admittedStream{ServerStream: ss, server: g, ctx: ctx})
}
