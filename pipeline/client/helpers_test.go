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

// world is what a client under test sees of the process: a clock that is moved by hand, and a network of names.
type world struct {
	t       *testing.T
	set     pipeline.Settings
	logs    *observer.ObservedLogs
	reports []error
	clock   atomic.Int64 // seconds

	mu    sync.Mutex
	hosts map[string]string // what is dialled -> where that is; "" refuses
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, hosts: map[string]string{}}
	w.clock.Store(1_000_000)
	core, logs := observer.New(zap.InfoLevel)
	w.logs = logs
	w.set = pipeline.Settings{Logger: zap.New(core), Env: pipeline.SystemEnv(), Report: func(err error) { w.reports = append(w.reports, err) }}
	w.set.Env.Now = func() time.Time { return time.Unix(w.clock.Load(), 0) }
	w.set.Env.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.mu.Lock()
		to, known := w.hosts[addr]
		w.mu.Unlock()
		if !known {
			to = addr
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	}
	return w
}

// move lets addr lead to another listener.
func (w *world) move(addr, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[addr] = to
}

func (w *world) later() { w.clock.Add(60) }

type connection interface {
	pipeline.Starter
	pipeline.Stopper
}

func (w *world) start(c connection) {
	w.t.Helper()
	if err := c.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			w.t.Errorf("Stop: %v", err)
		}
	})
}

func (w *world) grpc(cfg client.GRPCConfig) *client.GRPC {
	w.t.Helper()
	if err := cfg.Validate(); err != nil {
		w.t.Fatal(err)
	}
	c, err := client.NewGRPC(w.set, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.start(c)
	return c
}

func plainGRPC(endpoint string) client.GRPCConfig {
	c := client.DefaultGRPCConfig()
	c.Endpoint, c.TLS.Insecure = endpoint, true
	return c
}

// call makes one call and returns the server that answered.
func call(t *testing.T, c *client.GRPC) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var answer metadata.MD
	_, err := grpc_health_v1.NewHealthClient(c).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "some service"}, grpc.Header(&answer))
	if err != nil {
		return "", err
	}
	return answer.Get("server")[0], nil
}

// grpcServer answers health checks and remembers the latest.
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

// Check answers with the server's name in a header.
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

// HandleRPC remembers the compression of the request.
func (s *grpcServer) HandleRPC(_ context.Context, r stats.RPCStats) {
	if h, ok := r.(*stats.InHeader); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.encoding = h.Compression
	}
}

// mutualTLS returns a server's TLS configuration that follows the files in dir and demands client certificates.
func (w *world) mutualTLS(f certstest.Files, protocols ...string) *tls.Config {
	w.t.Helper()
	s := certs.ForServer(&tls.Config{NextProtos: protocols}, certs.Files{Cert: f.Cert, Key: f.Key, CA: f.CA},
		certs.Options{Interval: time.Second, Now: w.set.Env.Now, Report: func(err error) { w.t.Errorf("server's certificates: %v", err) }})
	if err := s.Load(); err != nil {
		w.t.Fatal(err)
	}
	return s.Listener()
}
