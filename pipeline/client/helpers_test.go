package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) {
	server.RegisterCompressors() // before any test serves
	goleak.VerifyTestMain(m)
}

// fixture holds the environment of a client under test, with a manual clock and a name table for
// connections.
type fixture struct {
	t       *testing.T
	set     pipeline.Settings
	logs    *observer.ObservedLogs
	reports []error
	clock   atomic.Int64 // seconds

	mu    sync.Mutex
	hosts map[string]string // address to dial by requested address
}

func newFixture(t *testing.T) *fixture {
	fix := &fixture{t: t, hosts: map[string]string{}}
	fix.clock.Store(1_000_000)
	core, logs := observer.New(zap.InfoLevel)
	fix.logs = logs
	fix.set = pipeline.Settings{Logger: zap.New(core), Env: pipeline.SystemEnv(),
		Report: func(err error) { fix.reports = append(fix.reports, err) }}
	fix.set.Env.Now = func() time.Time { return time.Unix(fix.clock.Load(), 0) }
	fix.set.Env.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		fix.mu.Lock()
		to, redirected := fix.hosts[addr]
		fix.mu.Unlock()
		if !redirected {
			to = addr
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	}
	return fix
}

// redirect makes connections to addr go to another listener.
func (fix *fixture) redirect(addr, to string) {
	fix.mu.Lock()
	defer fix.mu.Unlock()
	fix.hosts[addr] = to
}

func (fix *fixture) advance() { fix.clock.Add(60) }

type connection interface {
	pipeline.Starter
	pipeline.Stopper
}

func (fix *fixture) start(c connection) {
	fix.t.Helper()
	if err := c.Start(fix.t.Context()); err != nil {
		fix.t.Fatal(err)
	}
	fix.t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			fix.t.Errorf("Stop: %v", err)
		}
	})
}

func (fix *fixture) grpc(cfg client.GRPCConfig) *client.GRPC {
	fix.t.Helper()
	if err := cfg.Validate(); err != nil {
		fix.t.Fatal(err)
	}
	c, err := client.NewGRPC(fix.set, cfg)
	if err != nil {
		fix.t.Fatal(err)
	}
	fix.start(c)
	return c
}

func plainGRPC(endpoint string) client.GRPCConfig {
	c := client.DefaultGRPCConfig()
	c.Endpoint, c.TLS.Insecure = endpoint, true
	return c
}

// call makes one call and returns the name of the server that responded.
func call(t *testing.T, c *client.GRPC) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var header metadata.MD
	_, err := grpc_health_v1.NewHealthClient(c).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "some service"},
		grpc.Header(&header))
	if err != nil {
		return "", err
	}
	return header.Get("server")[0], nil
}

// grpcServer responds to health checks and records the last request.
type grpcServer struct {
	grpc_health_v1.UnimplementedHealthServer
	name string
	addr string
	srv  *grpc.Server
	stop func()

	mu       sync.Mutex
	header   metadata.MD
	client   string // common name of the client's certificate
	encoding string
}

func serve(t *testing.T, name string, opts ...grpc.ServerOption) *grpcServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &grpcServer{name: name, addr: ln.Addr().String()}
	s.srv = grpc.NewServer(append(opts, grpc.StatsHandler(s))...)
	grpc_health_v1.RegisterHealthServer(s.srv, s)
	done := make(chan error, 1)
	go func() { done <- s.srv.Serve(ln) }()
	s.stop = sync.OnceFunc(func() {
		s.srv.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// Check sends the name of the server in a header.
func (s *grpcServer) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header, _ = metadata.FromIncomingContext(ctx)
	p, _ := peer.FromContext(ctx)
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		s.client = info.State.PeerCertificates[0].Subject.CommonName
	}
	return &grpc_health_v1.HealthCheckResponse{}, grpc.SetHeader(ctx, metadata.Pairs("server", s.name))
}

func (s *grpcServer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (s *grpcServer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (s *grpcServer) HandleConn(context.Context, stats.ConnStats)                       {}

// HandleRPC records the compression of the request.
func (s *grpcServer) HandleRPC(_ context.Context, r stats.RPCStats) {
	if h, ok := r.(*stats.InHeader); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.encoding = h.Compression
	}
}

// mutualTLS returns the TLS configuration of a server that reloads the files and requires client
// certificates.
func (fix *fixture) mutualTLS(f certstest.Files, protocols ...string) *tls.Config {
	fix.t.Helper()
	s := certs.NewServerTLS(&tls.Config{NextProtos: protocols}, certs.Files{Cert: f.Cert, Key: f.Key, CA: f.CA},
		certs.ReloadOptions{Interval: time.Second, Now: fix.set.Env.Now,
			Report: func(err error) { fix.t.Errorf("server's certificates: %v", err) }})
	if err := s.Load(); err != nil {
		fix.t.Fatal(err)
	}
	return s.Listener()
}
