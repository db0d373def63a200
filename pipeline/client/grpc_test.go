package client_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
)

func TestGRPCSendsHeadersAndReloadsToken(t *testing.T) {
	fix, srv := newFixture(t), serve(t, "a")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "first\n")
	cfg := plainGRPC(srv.addr)
	cfg.Headers = map[string]pipeline.Secret{"X-Scope": "blue", "api-key": "k"}
	cfg.Auth = pipeline.Present(client.AuthConfig{BearerTokenFile: token})
	c := fix.grpc(cfg)
	expect := func(want ...string) {
		t.Helper()
		if _, err := call(t, c); err != nil {
			t.Fatal(err)
		}
		got := slices.Concat(srv.header["x-scope"], srv.header["api-key"], srv.header["authorization"])
		if !slices.Equal(got, want) {
			t.Errorf("server got %q, want %q", got, want)
		}
	}
	expect("blue", "k", "Bearer first")
	write(t, token, "second")
	expect("blue", "k", "Bearer first")
	fix.advance()
	expect("blue", "k", "Bearer second")
	write(t, token, "two words")
	fix.advance()
	expect("blue", "k", "Bearer second")
	if fix.logs.FilterMessageSnippet("cannot load new tokens").Len() != 1 {
		t.Errorf("logged %v", fix.logs.All())
	}
	if fix.logs.FilterMessageSnippet("plaintext").Len() != 1 {
		t.Error("no warning about a token sent in plaintext")
	}
	if agent := srv.header["user-agent"][0]; !strings.HasPrefix(agent, "tracing ") {
		t.Errorf("user agent %q", agent)
	}
}

func TestGRPCCompression(t *testing.T) {
	fix, srv := newFixture(t), serve(t, "a")
	for _, name := range []string{"gzip", "zstd", "snappy", "none", ""} {
		cfg := plainGRPC("dns:///" + srv.addr)
		cfg.Compression = name
		if _, err := call(t, fix.grpc(cfg)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := strings.TrimSuffix(name, "none"); srv.encoding != want {
			t.Errorf("sent as %q, want %q", srv.encoding, want)
		}
	}
}

func TestGRPCReloadsCertificates(t *testing.T) {
	fix, ca := newFixture(t), certstest.New(t)
	serverDir, clientDir := t.TempDir(), t.TempDir()
	serveTLS := func(name string) *grpcServer {
		s := serve(t, name, grpc.Creds(credentials.NewTLS(fix.mutualTLS(ca.Issue(t, serverDir, name), "h2"))))
		fix.redirect("next.test:4317", s.addr)
		return s
	}
	files := ca.Issue(t, clientDir, "client 1")
	cfg := client.DefaultGRPCConfig()
	// A list is not resolved by DNS.
	cfg.Endpoint, cfg.WaitForReady, cfg.BalancerName = "next.test:4317,next.test:4317", true, "pick_first"
	cfg.TLS.ServerName, cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile = certstest.Host, files.CA, files.Cert, files.Key
	first := serveTLS("server 1")
	c := fix.grpc(cfg)
	if _, err := call(t, c); err != nil || first.client != "client 1" {
		t.Fatalf("client %q, error %v", first.client, err)
	}

	// With another authority on both sides, the open connection stays and a new one uses the new
	// files.
	ca = certstest.New(t)
	ca.Issue(t, clientDir, "client 2")
	fix.advance()
	if _, err := call(t, c); err != nil || first.client != "client 1" {
		t.Fatalf("client %q, error %v", first.client, err)
	}
	second := serveTLS("server 2")
	first.stop()
	eventually(t, c, "server 2")
	if second.client != "client 2" {
		t.Errorf("server saw %q", second.client)
	}
}

func TestGRPCVerifiesTheServer(t *testing.T) {
	fix, ca := newFixture(t), certstest.New(t)
	files := ca.Issue(t, t.TempDir(), "server")
	srv := serve(t, "a", grpc.Creds(credentials.NewTLS(fix.mutualTLS(files, "h2"))))
	f := func(change func(*client.TLSConfig), want string) {
		t.Helper()
		cfg := client.DefaultGRPCConfig()
		cfg.Endpoint = srv.addr
		cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile = files.CA, files.Cert, files.Key
		change(&cfg.TLS)
		_, err := call(t, fix.grpc(cfg))
		if want == "" && err != nil {
			t.Errorf("error %v", err)
		}
		if want != "" && (status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want unavailable: %s", err, want)
		}
	}
	f(func(*client.TLSConfig) {}, "")
	f(func(c *client.TLSConfig) { c.CAFile = "" }, "unknown authority")
	f(func(c *client.TLSConfig) { c.ServerName = "other.test" }, "other.test")
	f(func(c *client.TLSConfig) { c.ServerName, c.InsecureSkipVerify = "other.test", true }, "")
	other := certstest.New(t).Issue(t, t.TempDir(), "stranger")
	// The alert of the server may not arrive.
	f(func(c *client.TLSConfig) { c.CertFile, c.KeyFile = other.Cert, other.Key }, "rpc error")
}

func TestGRPCBalancesAndReconnects(t *testing.T) {
	fix, a, b := newFixture(t), serve(t, "a"), serve(t, "b")
	fix.redirect("a.test:1", a.addr)
	fix.redirect("b.test:1", b.addr)
	cfg := plainGRPC("a.test:1, b.test:1")
	cfg.WaitForReady = true
	c := fix.grpc(cfg)
	eventually(t, c, "a")
	eventually(t, c, "b")
	counts := map[string]int{}
	for range 40 {
		name, err := call(t, c)
		if err != nil {
			t.Fatal(err)
		}
		counts[name]++
	}
	if counts["a"] != 20 || counts["b"] != 20 {
		t.Errorf("40 calls went to %v", counts)
	}

	a.stop()
	eventually(t, c, "b", "b", "b")
	b.stop()
	fix.redirect("a.test:1", serve(t, "new a").addr)
	eventually(t, c, "new a", "new a")
}

// eventually makes calls until these servers have responded in this order.
func eventually(t *testing.T, c *client.GRPC, names ...string) {
	t.Helper()
	var got []string
	for t.Context().Err() == nil && len(got) < 100_000 {
		name, err := call(t, c)
		if err != nil {
			name = status.Code(err).String()
		}
		if got = append(got, name); len(got) >= len(names) && slices.Equal(got[len(got)-len(names):], names) {
			return
		}
	}
	t.Fatalf("no responses from %v in order; last responses: %v", names, got[max(0, len(got)-10):])
}

func TestGRPCStartsWithoutServer(t *testing.T) {
	fix, srv := newFixture(t), serve(t, "a")
	srv.stop()
	if _, err := call(t, fix.grpc(plainGRPC(srv.addr))); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
}

func TestStartErrorNamesTheFile(t *testing.T) {
	fix := newFixture(t)
	missing := filepath.Join(t.TempDir(), "missing")
	f := func(want string, change func(tls *client.TLSConfig, auth *client.AuthConfig)) {
		t.Helper()
		g, h := client.DefaultGRPCConfig(), client.DefaultHTTPConfig()
		g.Endpoint, h.Endpoint = "localhost:4317", "https://localhost:4318"
		var auth client.AuthConfig
		change(&g.TLS, &auth)
		change(&h.TLS, &auth)
		if auth != (client.AuthConfig{}) {
			g.Auth, h.Auth = pipeline.Present(auth), pipeline.Present(auth)
		}
		gc, err := client.NewGRPC(fix.set, g)
		if err != nil {
			t.Fatal(err)
		}
		hc, err := client.NewHTTP(fix.set, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []pipeline.Starter{gc, hc} {
			if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), missing) {
				t.Errorf("%T: error %v, want one with %q and %q", c, err, want, missing)
			}
		}
	}
	f("tls: ", func(c *client.TLSConfig, _ *client.AuthConfig) { c.CAFile = missing })
	f("tls: ", func(c *client.TLSConfig, _ *client.AuthConfig) { c.CertFile, c.KeyFile = missing, missing })
	f("auth::bearer_token_file: ", func(_ *client.TLSConfig, c *client.AuthConfig) { c.BearerTokenFile = missing })
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestGRPCValidate(t *testing.T) {
	f := func(want string, change func(*client.GRPCConfig)) {
		t.Helper()
		c := plainGRPC("localhost:4317")
		change(&c)
		errs := []error{c.Validate(), c.GRPCSettings.Validate(), c.TLS.Validate()}
		if auth, on := c.Auth.Get(); on {
			errs = append(errs, auth.Validate())
		}
		expectErrors(t, want, errs...)
	}
	f("", func(*client.GRPCConfig) {})
	f("", func(c *client.GRPCConfig) { c.Endpoint = "[::1]:4317,b:1" })
	f("", func(c *client.GRPCConfig) { c.Endpoint = "dns:///b.test:4317" })
	f("", func(c *client.GRPCConfig) { c.Endpoint = "http://b.test:4317/" })
	f("", func(c *client.GRPCConfig) { c.Endpoint, c.TLS.Insecure = "https://b.test:4317", false })
	f("endpoint: must be set; write host:port, for example localhost:4317", func(c *client.GRPCConfig) { c.Endpoint = "" })
	f(`endpoint: "localhost" is not a valid address; write host:port, for example localhost:4317`,
		func(c *client.GRPCConfig) { c.Endpoint = "localhost" })
	f(`endpoint: "" is not a valid address; write host:port, for example localhost:4317`,
		func(c *client.GRPCConfig) { c.Endpoint = "a:1," })
	f(`endpoint: "dns:///a" is not a DNS target; write dns:///host:port`, func(c *client.GRPCConfig) { c.Endpoint = "dns:///a" })
	f("endpoint: https:// contradicts tls::insecure: true; write host:port without a scheme",
		func(c *client.GRPCConfig) { c.Endpoint = "https://a:1" })
	f(`balancer_name: unknown balancer "best"; use round_robin or pick_first`, func(c *client.GRPCConfig) { c.BalancerName = "best" })
	f(`compression: unknown compression "lzma"; use gzip, zstd, snappy, none`, func(c *client.GRPCConfig) { c.Compression = "lzma" })
	f("connect_timeout: must be above 0, because an unreachable server would otherwise block requests forever",
		func(c *client.GRPCConfig) { c.ConnectTimeout = 0 })
	f("keepalive::timeout: must be above 0 while pings are enabled", func(c *client.GRPCConfig) { c.Keepalive.Timeout = 0 })
	f("read_buffer_size: must be at most 64MiB", func(c *client.GRPCConfig) { c.ReadBufferSize = 1 << 30 })
	f(`headers::a b: "a b" is not a valid header name; use letters, digits, -, _ and .`+
		"\nheaders::key: value contains a line break or another character that is not printable ASCII",
		func(c *client.GRPCConfig) { c.Headers = map[string]pipeline.Secret{"a b": "", "key": "secret\n"} })
	f("headers::Authorization: also set by auth; remove one of them", func(c *client.GRPCConfig) {
		c.Headers = map[string]pipeline.Secret{"Authorization": "x"}
		c.Auth = pipeline.Present(client.AuthConfig{BearerTokenFile: "file"})
	})
	f("username: contradicts bearer_token_file; remove one of them\nusername: must not contain a colon",
		func(c *client.GRPCConfig) {
			c.Auth = pipeline.Present(client.AuthConfig{Username: "a:b", BearerTokenFile: "file"})
		})
	f("password: needs username", func(c *client.GRPCConfig) { c.Auth = pipeline.Present(client.AuthConfig{Password: "p"}) })
	f("must have username and password, or bearer_token_file",
		func(c *client.GRPCConfig) { c.Auth = pipeline.Present(client.AuthConfig{}) })
	f("must have both cert_file and key_file or neither", func(c *client.GRPCConfig) { c.TLS = client.TLSConfig{CertFile: "x"} })
	f("insecure: true disables TLS, but certificate files are set; remove insecure or the files",
		func(c *client.GRPCConfig) { c.TLS.CAFile = "x" })
	f(`min_version: unknown TLS version "1"; use 1.0, 1.1, 1.2 or 1.3`, func(c *client.GRPCConfig) { c.TLS.MinVersion = "1" })
	f("max_version: 1.1 is below min_version (1.2)", func(c *client.GRPCConfig) { c.TLS.MaxVersion = "1.1" })
}

// expectErrors compares the keys and messages of errors, one per line.
func expectErrors(t *testing.T, want string, errs ...error) {
	t.Helper()
	var lines []string
	for len(errs) > 0 {
		err := errs[0]
		errs = errs[1:]
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			errs = append(many.Unwrap(), errs...)
		} else if key, ok := err.(*pipeline.KeyError); ok {
			lines = append(lines, strings.TrimPrefix(fmt.Sprintf("%s: %s", key.Key, key.Msg), ": "))
		} else if err != nil {
			t.Errorf("error of type %T: %v", err, err)
		}
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
