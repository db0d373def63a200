package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func secureSettings(now func() time.Time) pipeline.Settings {
	env := pipeline.SystemEnv()
	env.Now = now
	return pipeline.Settings{ID: pipeline.ID{Type: "test"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: env,
		Budget: pipeline.NewBudget(1 << 30), Report: func(error) {}}
}

// startHTTP starts an HTTP server that responds with the tenant.
func startHTTP(t *testing.T, set pipeline.Settings, change func(*server.HTTPConfig)) string {
	t.Helper()
	cfg := server.DefaultHTTPConfig("localhost:0")
	change(&cfg)
	s, err := server.NewHTTP(set, "http", cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "tenant "+server.Tenant(r.Context())) //nolint:errcheck // a test
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) }) //nolint:errcheck // a test
	return "localhost" + s.Addr()[strings.LastIndexByte(s.Addr(), ':'):]
}

// startGRPC starts a gRPC server. Tests call its reflection service, as an example of any service.
func startGRPC(t *testing.T, set pipeline.Settings, change func(*server.GRPCConfig)) string {
	t.Helper()
	cfg := server.DefaultGRPCConfig("localhost:0")
	change(&cfg)
	s, err := server.NewGRPC(set, "grpc", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) }) //nolint:errcheck // a test
	return "localhost" + s.Addr()[strings.LastIndexByte(s.Addr(), ':'):]
}

func callGRPC(t *testing.T, addr string, creds credentials.TransportCredentials, md ...string) error {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil &&
		status.Code(err) != codes.Unavailable {
		t.Errorf("health check: %v", err) // needs no credentials
	}
	stream, err := grpc_reflection_v1.NewServerReflectionClient(c).ServerReflectionInfo(
		metadata.AppendToOutgoingContext(t.Context(), md...))
	if err != nil {
		return err
	}
	stream.Send(&grpc_reflection_v1.ServerReflectionRequest{ //nolint:errcheck // Recv returns the error
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{ListServices: "*"}})
	if _, err = stream.Recv(); err == nil {
		stream.CloseSend() //nolint:errcheck // a test
	}
	return err
}

func callHTTP(t *testing.T, url string, config *tls.Config, header ...string) (status int, body string, h http.Header, err error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header, err
}

// keyPair loads a certificate.
func keyPair(t *testing.T, f certstest.Files) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// authority returns a new certificate authority, the files of a server certificate named "before",
// a pool with the authority, and a client certificate.
func authority(t *testing.T) (ca *certstest.Authority, files certstest.Files, pool *x509.CertPool, client tls.Certificate) {
	t.Helper()
	ca = certstest.New(t)
	files = ca.Issue(t, t.TempDir(), "before")
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return ca, files, pool, keyPair(t, ca.Issue(t, t.TempDir(), "client"))
}

// Clients need a certificate signed by the authority. New connections use a replaced server
// certificate.
func TestMutualTLS(t *testing.T) {
	ca, files, pool, client := authority(t)
	stranger := keyPair(t, certstest.New(t).Issue(t, t.TempDir(), "stranger"))

	var clockOffset atomic.Int64
	set := secureSettings(func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) })
	secure := func(c *server.SecurityConfig) {
		tc := server.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.CA, MinVersion: "1.2",
			ReloadInterval: pipeline.Duration(time.Minute)}
		if err := tc.Validate(); err != nil {
			t.Fatal(err)
		}
		c.TLS = pipeline.Present(tc)
	}
	web := startHTTP(t, set, func(c *server.HTTPConfig) { secure(&c.SecurityConfig) })
	rpc := startGRPC(t, set, func(c *server.GRPCConfig) { secure(&c.SecurityConfig) })

	for who, c := range map[string]struct {
		cert []tls.Certificate
		in   bool
	}{"with certificate": {[]tls.Certificate{client}, true}, "without": {nil, false},
		"of another authority": {[]tls.Certificate{stranger}, false}} {
		config := &tls.Config{RootCAs: pool, Certificates: c.cert, ServerName: certstest.Host}
		if code, _, _, err := callHTTP(t, "https://"+web, config); (err == nil && code == 200) != c.in {
			t.Errorf("HTTP, %s: %d %v", who, code, err)
		}
		if err := callGRPC(t, rpc, credentials.NewTLS(config)); (err == nil) != c.in {
			t.Errorf("gRPC, %s: %v", who, err)
		}
	}
	if code, _, _, err := callHTTP(t, "http://"+web, nil); err == nil && code == 200 {
		t.Error("plaintext request succeeded")
	}
	expectCertificate := func(addr, want string) {
		t.Helper()
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}, ServerName: certstest.Host,
			NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("%s: certificate %q, want %q", addr, got, want)
		}
	}
	expectCertificate(web, "before")
	expectCertificate(rpc, "before")
	ca.Issue(t, filepath.Dir(files.Cert), "after")
	clockOffset.Store(int64(2 * time.Minute))
	expectCertificate(web, "after")
	expectCertificate(rpc, "after")
}

func TestTLSFilesMissing(t *testing.T) {
	cfg := server.DefaultHTTPConfig("localhost:0")
	cfg.TLS = pipeline.Present(server.TLSConfig{CertFile: "no-such.pem", KeyFile: "no-such.key"})
	s, err := server.NewHTTP(secureSettings(time.Now), "http", cfg, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "http.tls: ") ||
		!strings.Contains(err.Error(), "no-such.pem") {
		t.Errorf("%v", err)
	}
}

// authConfig returns a config with the given files, "" for none.
func authConfig(tokens, users string) server.AuthConfig {
	c := server.DefaultAuthConfig()
	c.BearerTokensFile, c.HtpasswdFile = tokens, users
	return c
}

func TestAuthentication(t *testing.T) {
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte("pass:word"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	tokens, users := filepath.Join(dir, "tokens"), filepath.Join(dir, "users")
	if err := os.WriteFile(tokens, []byte("# tokens\nsecret-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, []byte("ann:"+string(hash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const basicAnn, basicWrong = "Basic YW5uOnBhc3M6d29yZA==", "Basic YW5uOnBhc3M=" // ann:pass:word, ann:pass
	for _, c := range []struct {
		name   string
		config server.AuthConfig
		header string
		want   string // error, "" if allowed
	}{
		{"token", authConfig(tokens, ""), "Bearer secret-token", ""},
		{"no token", authConfig(tokens, ""), "", "no bearer auth provided"},
		{"wrong token", authConfig(tokens, ""), "Bearer secret", "invalid credentials"},
		{"comment as token", authConfig(tokens, ""), "Bearer # tokens", "invalid credentials"},
		{"password instead of token", authConfig(tokens, ""), basicAnn, "no bearer auth provided"},
		{"password", authConfig("", users), basicAnn, ""},
		{"no password", authConfig("", users), "", "no basic auth provided"},
		{"wrong password", authConfig("", users), basicWrong, "invalid credentials"},
		{"not base64", authConfig("", users), "Basic ???", "invalid credentials"},
		{"both, by token", authConfig(tokens, users), "Bearer secret-token", ""},
		{"both, by password", authConfig(tokens, users), basicAnn, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := startHTTP(t, secureSettings(time.Now), func(h *server.HTTPConfig) { h.Auth = pipeline.Present(c.config) })
			rpc := startGRPC(t, secureSettings(time.Now), func(g *server.GRPCConfig) { g.Auth = pipeline.Present(c.config) })
			var header []string
			if c.header != "" {
				header = []string{"Authorization", c.header}
			}
			for range 2 { // the second request uses the cache of verified credentials
				code, body, h, err := callHTTP(t, "http://"+web, nil, header...)
				if err != nil || c.want == "" && code != 200 ||
					c.want != "" && (code != 401 || body != c.want || h.Get("WWW-Authenticate") == "") {
					t.Errorf("HTTP: %d %q %v", code, body, err)
				}
				err = callGRPC(t, rpc, insecure.NewCredentials(), header...)
				if c.want == "" && err != nil ||
					c.want != "" && (status.Code(err) != codes.Unauthenticated || status.Convert(err).Message() != c.want) {
					t.Errorf("gRPC: %v", err)
				}
			}
		})
	}
}

// A reload of the file keeps proven passwords: they are not compared again.
func TestProvenPasswordsSurviveAReload(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ann:" + string(hash) + "\n")
	var clockOffset atomic.Int64
	f := newFixture(t, 1<<30)
	f.set.Env.Now = func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }
	web := startHTTP(t, f.set, func(h *server.HTTPConfig) { h.Auth = pipeline.Present(authConfig("", file)) })
	expect := func(step, user string, wantStatus int, wantChecks float64) {
		t.Helper()
		clockOffset.Add(int64(time.Minute))
		code, _, _, err := callHTTP(t, "http://"+user+":secret@"+web, nil)
		if checks := f.metric("tracing_server_password_checks_total", ""); err != nil || code != wantStatus || checks != wantChecks {
			t.Errorf("%s: %d %v, %v checks; want %d, %v", step, code, err, checks, wantStatus, wantChecks)
		}
	}
	expect("first", "ann", 200, 1)
	expect("again", "ann", 200, 1)
	write("bob:" + string(hash) + "\nann:" + string(hash) + "\n")
	expect("after a reload", "ann", 200, 1)
	expect("new user", "bob", 200, 2)
	write("bob:" + string(hash) + "\n")
	expect("removed user", "ann", 401, 3)
}

// A client address that has sent too many wrong passwords gets 429 or ResourceExhausted, with the
// delay, until it may try again.
func TestPasswordDelay(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("ann:"+string(hash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := authConfig("", file)
	c.PasswordChecks.AllowedFailures, c.PasswordChecks.MinDelay, c.PasswordChecks.MaxDelay = 0, 30e9, 30e9
	web := startHTTP(t, secureSettings(time.Now), func(h *server.HTTPConfig) { h.Auth = pipeline.Present(c) })
	rpc := startGRPC(t, secureSettings(time.Now), func(g *server.GRPCConfig) { g.Auth = pipeline.Present(c) })
	const wrong, right = "Basic YW5uOng=", "Basic YW5uOnNlY3JldA==" // ann:x, ann:secret

	if code, _, _, err := callHTTP(t, "http://"+web, nil, "Authorization", wrong); err != nil || code != 401 {
		t.Errorf("HTTP, wrong password: %d %v", code, err)
	}
	code, body, h, err := callHTTP(t, "http://"+web, nil, "Authorization", right)
	if delay, _ := strconv.Atoi(h.Get("Retry-After")); err != nil || code != 429 || delay < 1 || delay > 30 ||
		!strings.Contains(body, "too many wrong passwords") || h.Get("WWW-Authenticate") != "" {
		t.Errorf("HTTP, delayed: %d %q %v %v", code, body, h, err)
	}
	if err := callGRPC(t, rpc, insecure.NewCredentials(), "authorization", wrong); status.Code(err) != codes.Unauthenticated {
		t.Errorf("gRPC, wrong password: %v", err)
	}
	err = callGRPC(t, rpc, insecure.NewCredentials(), "authorization", right)
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Fatalf("gRPC, delayed: %v %v", err, s.Details())
	}
	delay := s.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
	if delay <= 0 || delay > 30*time.Second {
		t.Errorf("gRPC, delay %v", delay)
	}
}

func TestBadCredentialFiles(t *testing.T) {
	for content, want := range map[string]string{"": "no client could authenticate",
		"ann:plain\n": "users:1: not a user with a bcrypt hash"} {
		file := filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := server.DefaultHTTPConfig("localhost:0")
		cfg.Auth = pipeline.Present(authConfig("", file))
		s, err := server.NewHTTP(secureSettings(time.Now), "http", cfg, http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestTenancy(t *testing.T) {
	open := server.TenancyConfig{Enabled: true, Header: "x-tenant"}
	closed := server.TenancyConfig{Enabled: true, Header: "X-Org", Tenants: []string{"acme"}}
	for _, c := range []struct {
		name   string
		config server.TenancyConfig
		header []string
		want   string
		denied bool
	}{
		{"any tenant", open, []string{"x-tenant", "acme"}, "tenant acme", false},
		{"none", open, nil, "missing tenant header", true},
		{"empty", open, []string{"x-tenant", ""}, "missing tenant header", true},
		{"two", open, []string{"x-tenant", "a", "x-tenant", "b"}, "extra tenant header", true},
		{"listed", closed, []string{"x-org", "acme"}, "tenant acme", false},
		{"not listed", closed, []string{"x-org", "other"}, "unknown tenant", true},
		{"too long", open, []string{"x-tenant", strings.Repeat("a", 257)}, "unknown tenant", true},
		{"off", server.TenancyConfig{Header: "x-tenant"}, nil, "tenant ", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := startHTTP(t, secureSettings(time.Now), func(h *server.HTTPConfig) { h.Tenancy = pipeline.Present(c.config) })
			rpc := startGRPC(t, secureSettings(time.Now), func(g *server.GRPCConfig) { g.Tenancy = pipeline.Present(c.config) })
			code, body, _, err := callHTTP(t, "http://"+web, nil, c.header...)
			if err != nil || body != c.want || (code == 401) != c.denied {
				t.Errorf("HTTP: %d %q %v", code, body, err)
			}
			err = callGRPC(t, rpc, insecure.NewCredentials(), c.header...)
			if c.denied && (status.Code(err) != codes.PermissionDenied || status.Convert(err).Message() != c.want) ||
				!c.denied && err != nil {
				t.Errorf("gRPC: %v", err)
			}
		})
	}
}

// Tenant names that gRPC cannot send are also refused over HTTP and in the configuration.
func TestInvalidTenantNames(t *testing.T) {
	c := server.TenancyConfig{Enabled: true, Header: "x-tenant"}
	web := startHTTP(t, secureSettings(time.Now), func(h *server.HTTPConfig) { h.Tenancy = pipeline.Present(c) })
	code, body, _, err := callHTTP(t, "http://"+web, nil, c.Header, "f\xc3\xbcr")
	if err != nil || code != http.StatusUnauthorized || body != "unknown tenant" {
		t.Errorf("%d %q %v", code, body, err)
	}
	for _, name := range []string{"f\xc3\xbcr", "", "a\n", " a", "a ", "\xff", strings.Repeat("a", 257)} {
		c.Tenants = []string{"acme", name}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "printable ASCII") {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	if c.Tenants = []string{"acme", "a b/c=~"}; c.Validate() != nil {
		t.Error(c.Validate())
	}
}

func TestCORS(t *testing.T) {
	web := startHTTP(t, secureSettings(time.Now), func(h *server.HTTPConfig) {
		h.CORS = pipeline.Present(server.CORSConfig{AllowedOrigins: []string{"https://*.example.com"}, AllowedHeaders: []string{"x-app"}})
		h.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	})
	for origin, allowed := range map[string]string{"https://app.example.com": "https://app.example.com", "https://example.org": ""} {
		_, _, h, err := callHTTP(t, "http://"+web, nil, "Origin", origin)
		if err != nil || h.Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("%s: %v %v", origin, h, err)
		}
	}
	req, err := http.NewRequest(http.MethodOptions, "http://"+web, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://app.example.com")
	req.Header.Set("Access-Control-Request-Method", "POST")
	req.Header.Set("Access-Control-Request-Headers", "x-app")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Access-Control-Allow-Headers") == "" {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
}
