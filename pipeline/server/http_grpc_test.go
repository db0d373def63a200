package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// both starts an HTTP server that also serves gRPC.
func (f *fixture) both(cfg server.HTTPConfig, handle func(context.Context, int) error) (*server.HTTP, func(context.Context) error) {
	f.t.Helper()
	s, err := server.NewHTTP(f.set, "http", cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto) //nolint:errcheck // a test
	}))
	if err != nil {
		f.t.Fatal(err)
	}
	g, err := s.AddGRPC(1)
	if err != nil {
		f.t.Fatal(err)
	}
	g.RegisterService(echoDesc(handle), nil)
	return s, f.run(s)
}

func (f *fixture) connect(s *server.HTTP, creds credentials.TransportCredentials) *grpc.ClientConn {
	f.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.Addr(), grpc.WithTransportCredentials(creds), grpc.WithContextDialer(f.dial))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return conn
}

// One port serves HTTP/1.1 and gRPC with the same credentials and tenants, and counts the
// connections of both.
func TestGRPCOnAnHTTPPort(t *testing.T) {
	f := newFixture(t, 8<<20)
	cfg := httpConfig()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth := server.DefaultAuthConfig()
	auth.BearerTokensFile = tokens
	cfg.Auth, cfg.MaxConnections = pipeline.Present(auth), 2
	cfg.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	tenant := ""
	s, _ := f.both(cfg, func(ctx context.Context, _ int) error {
		tenant = server.Tenant(ctx)
		return nil
	})
	conn := f.connect(s, insecure.NewCredentials())
	with := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "x-tenant", "a")
	}
	for range 2 {
		if err := call(with("token"), conn, "Message", 1000); err != nil || tenant != "a" {
			t.Errorf("tenant %q: %v", tenant, err)
		}
	}
	if err := call(with("wrong"), conn, "Message", 1); status.Code(err) != codes.Unauthenticated {
		t.Errorf("wrong token: %v", err)
	}
	if err := call(with("token"), conn, "Message", 2<<20); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("long message: %v", err)
	}
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "test.Echo"}); err != nil {
		t.Errorf("health: %v", err)
	}
	code, body, _, err := callHTTP(t, "http://"+s.Addr(), nil, "Authorization", "Bearer token", "X-Tenant", "a")
	if code != 200 || body != "HTTP/1.1" {
		t.Errorf("%d %q %v", code, body, err)
	}
	for f.metric("tracing_server_open_connections", "") != 1 {
		time.Sleep(time.Millisecond)
	}
	other := f.connect(s, insecure.NewCredentials())
	if err := call(with("token"), other, "Message", 1); err != nil {
		t.Errorf("second connection: %v", err)
	}
	if conn := dialAdmitted(t, s.Addr()); conn != nil {
		t.Error("a third connection was admitted")
		conn.Close()
	}
	if n := f.refused(server.ReasonUnauthenticated); n != 1 {
		t.Errorf("%v calls counted as refused, want 1", n)
	}
}

// TestGRPCOnAnHTTPPortWithTLS checks that a client uses gRPC if it offers only HTTP/2, and HTTP/1.1
// if it offers both, such as a browser.
func TestGRPCOnAnHTTPPortWithTLS(t *testing.T) {
	_, files, pool, client := authority(t)
	f := newFixture(t, 8<<20)
	cfg := httpConfig()
	cfg.TLS = pipeline.Present(server.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.CA, MinVersion: "1.2"})
	s, _ := f.both(cfg, noop)
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}, ServerName: certstest.Host}
	conn := f.connect(s, credentials.NewTLS(config))
	if err := call(t.Context(), conn, "Message", 1000); err != nil {
		t.Error(err)
	}
	transport := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "HTTP/1.1" {
		t.Errorf("protocol %q: %v", body, err)
	}
	anonymous := f.connect(s, credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: certstest.Host}))
	if err := call(t.Context(), anonymous, "Message", 1); err == nil {
		t.Error("a call without a client certificate succeeded")
	}
	plain := f.connect(s, insecure.NewCredentials())
	if err := call(t.Context(), plain, "Message", 1); err == nil {
		t.Error("a call without TLS succeeded")
	}
}

// A stopping or replaced server answers running calls and accepts no others.
func TestStopGRPCOnAnHTTPPort(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*server.HTTP)
		late   bool // whether the call ends after the time to stop
		want   codes.Code
	}{
		{"stop", func(*server.HTTP) {}, false, codes.OK},
		{"hand over", func(s *server.HTTP) { go s.HandOver(context.Background()) }, false, codes.OK},
		{"too late", func(*server.HTTP) {}, true, codes.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 8<<20).inMemory()
				entered, leave := make(chan bool), make(chan bool)
				s, stop := f.both(httpConfig(), func(context.Context, int) error {
					entered <- true
					<-leave
					return nil
				})
				conn := f.connect(s, insecure.NewCredentials())
				answer, stopped := make(chan error, 1), make(chan error, 1)
				go func() { answer <- call(t.Context(), conn, "Message", 10) }()
				<-entered
				time.Sleep(time.Minute) // longer than all deadlines of HTTP
				c.before(s)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				go func() { stopped <- stop(ctx) }()
				time.Sleep(time.Second)
				select {
				case err := <-stopped:
					t.Fatalf("stopped during a call: %v", err)
				default:
				}
				if c.late {
					<-ctx.Done()
					synctest.Wait()
				}
				close(leave)
				if err := <-answer; status.Code(err) != c.want {
					t.Errorf("call: %v, want %v", err, c.want)
				}
				if err := <-stopped; (err != nil) != c.late || c.late && !strings.Contains(err.Error(), "1 calls aborted") {
					t.Errorf("stop: %v", err)
				}
			})
		})
	}
}

// A server can be stopped while connections wait for their first bytes.
func TestStopWithSilentConnections(t *testing.T) {
	f := newFixture(t, 8<<20)
	s, stop := f.both(httpConfig(), noop)
	conn, err := f.dial(t.Context(), s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}
