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

func TestGRPCSendsHeadersAndTheTokenOfTheMoment(t *testing.T) {
	w, srv := newWorld(t), serve(t, "a")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "first\n")
	cfg := plainGRPC(srv.addr)
	cfg.Headers = map[string]pipeline.Secret{"X-Scope": "blue", "api-key": "k"}
	cfg.Auth.BearerTokenFile = token
	c := w.grpc(cfg)
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
	w.later()
	expect("blue", "k", "Bearer second")
	write(t, token, "two words")
	w.later()
	expect("blue", "k", "Bearer second")
	if w.logs.FilterMessageSnippet("new tokens cannot be used").Len() != 1 {
		t.Errorf("logged %v", w.logs.All())
	}
	if w.logs.FilterMessageSnippet("plain text").Len() != 1 {
		t.Error("no warning of a token that is sent in plain text")
	}
	if agent := srv.header["user-agent"][0]; !strings.HasPrefix(agent, "tracing ") {
		t.Errorf("user agent %q", agent)
	}
}

func TestGRPCCompression(t *testing.T) {
	w, srv := newWorld(t), serve(t, "a")
	for _, name := range []string{"gzip", "zstd", "snappy", "none", ""} {
		cfg := plainGRPC("dns:///" + srv.addr)
		cfg.Compression = name
		if _, err := call(t, w.grpc(cfg)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := strings.TrimSuffix(name, "none"); srv.encoding != want {
			t.Errorf("sent as %q, want %q", srv.encoding, want)
		}
	}
}

func TestGRPCMutualTLSWithCertificatesReplaced(t *testing.T) {
	w, ca := newWorld(t), certstest.New(t)
	serverDir, clientDir := t.TempDir(), t.TempDir()
	secured := func(name string) *grpcServer {
		s := serve(t, name, grpc.Creds(credentials.NewTLS(w.mutualTLS(ca.Issue(t, serverDir, name), "h2"))))
		w.move("next.test:4317", s.addr)
		return s
	}
	files := ca.Issue(t, clientDir, "client 1")
	cfg := client.DefaultGRPCConfig()
	cfg.Endpoint, cfg.WaitForReady, cfg.BalancerName = "next.test:4317,next.test:4317", true, "pick_first" // a list, which is not looked up
	cfg.TLS.ServerName, cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile = certstest.Host, files.CA, files.Cert, files.Key
	first := secured("server 1")
	c := w.grpc(cfg)
	if _, err := call(t, c); err != nil || first.client != "client 1" {
		t.Fatalf("client %q, error %v", first.client, err)
	}

	// Another authority on both sides: the open connection stays, a new one needs the new files.
	ca = certstest.New(t)
	ca.Issue(t, clientDir, "client 2")
	w.later()
	if _, err := call(t, c); err != nil || first.client != "client 1" {
		t.Fatalf("client %q, error %v", first.client, err)
	}
	second := secured("server 2")
	first.stop()
	eventually(t, c, "server 2")
	if second.client != "client 2" {
		t.Errorf("server saw %q", second.client)
	}
}

func TestGRPCRefusesTheWrongServer(t *testing.T) {
	w, ca := newWorld(t), certstest.New(t)
	files := ca.Issue(t, t.TempDir(), "server")
	srv := serve(t, "a", grpc.Creds(credentials.NewTLS(w.mutualTLS(files, "h2"))))
	f := func(change func(*client.TLSConfig), want string) {
		t.Helper()
		cfg := client.DefaultGRPCConfig()
		cfg.Endpoint = srv.addr
		cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile = files.CA, files.Cert, files.Key
		change(&cfg.TLS)
		_, err := call(t, w.grpc(cfg))
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
	f(func(c *client.TLSConfig) { c.CertFile, c.KeyFile = other.Cert, other.Key }, "rpc error") // the server's words may not arrive
}

func TestGRPCBalancesAndReconnects(t *testing.T) {
	w, a, b := newWorld(t), serve(t, "a"), serve(t, "b")
	w.move("a.test:1", a.addr)
	w.move("b.test:1", b.addr)
	cfg := plainGRPC("a.test:1, b.test:1")
	cfg.WaitForReady = true
	c := w.grpc(cfg)
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
	w.move("a.test:1", serve(t, "new a").addr)
	eventually(t, c, "new a", "new a")
}

// eventually makes calls until these servers have answered one after the other.
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
	t.Fatalf("never answered by %v; the latest were %v", names, got[max(0, len(got)-10):])
}

func TestGRPCDestinationDownIsNoStartError(t *testing.T) {
	w, srv := newWorld(t), serve(t, "a")
	srv.stop()
	if _, err := call(t, w.grpc(plainGRPC(srv.addr))); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
}

func TestStartNamesWhatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(t.TempDir(), "missing")
	f := func(want string, change func(tls *client.TLSConfig, auth *client.AuthConfig)) {
		t.Helper()
		g, h := client.DefaultGRPCConfig(), client.DefaultHTTPConfig()
		g.Endpoint, h.Endpoint = "localhost:4317", "https://localhost:4318"
		change(&g.TLS, &g.Auth)
		change(&h.TLS, &h.Auth)
		gc, err := client.NewGRPC(w.set, g)
		if err != nil {
			t.Fatal(err)
		}
		hc, err := client.NewHTTP(w.set, h)
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
		expectErrors(t, want, c.Validate(), c.TLS.Validate())
	}
	f("", func(*client.GRPCConfig) {})
	f("", func(c *client.GRPCConfig) { c.Endpoint = "[::1]:4317,b:1" })
	f("", func(c *client.GRPCConfig) { c.Endpoint = "dns:///b.test:4317" })
	f("", func(c *client.GRPCConfig) { c.Endpoint = "http://b.test:4317/" })
	f("", func(c *client.GRPCConfig) { c.Endpoint, c.TLS.Insecure = "https://b.test:4317", false })
	f("endpoint: must be set; write host:port, for example localhost:4317", func(c *client.GRPCConfig) { c.Endpoint = "" })
	f(`endpoint: "localhost" is not an address; write host:port, for example localhost:4317`, func(c *client.GRPCConfig) { c.Endpoint = "localhost" })
	f(`endpoint: "" is not an address; write host:port, for example localhost:4317`, func(c *client.GRPCConfig) { c.Endpoint = "a:1," })
	f(`endpoint: "dns:///a" is no name for DNS; write dns:///host:port`, func(c *client.GRPCConfig) { c.Endpoint = "dns:///a" })
	f("endpoint: https:// and tls::insecure: true contradict each other; write host:port, tls::insecure decides",
		func(c *client.GRPCConfig) { c.Endpoint = "https://a:1" })
	f(`balancer_name: "best" is not a balancer; write round_robin or pick_first`, func(c *client.GRPCConfig) { c.BalancerName = "best" })
	f(`compression: "lzma" is not a compression; write gzip, zstd, snappy, none`, func(c *client.GRPCConfig) { c.Compression = "lzma" })
	f("connect_timeout: must be above 0, or a connection to nowhere would be waited for without end",
		func(c *client.GRPCConfig) { c.ConnectTimeout = 0 })
	f("keepalive::timeout: must be above 0, or every ping would be one too late", func(c *client.GRPCConfig) { c.Keepalive.Timeout = 0 })
	f("read_buffer_size: must be at most 64MiB", func(c *client.GRPCConfig) { c.ReadBufferSize = 1 << 30 })
	f(`headers::a b: "a b" is no name of a header: letters, digits, -, _ and . make one`+
		"\nheaders::key: the value holds a line break or something else that is no printable ASCII",
		func(c *client.GRPCConfig) { c.Headers = map[string]pipeline.Secret{"a b": "", "key": "secret\n"} })
	f("headers::Authorization: the same header comes from auth::bearer_token_file; delete one of them", func(c *client.GRPCConfig) {
		c.Headers, c.Auth.BearerTokenFile = map[string]pipeline.Secret{"Authorization": "x"}, "file"
	})
	f("cert_file and key_file belong together; write both or neither", func(c *client.GRPCConfig) { c.TLS = client.TLSConfig{CertFile: "x"} })
	f("insecure: is true, which uses no certificates; delete it, or the files", func(c *client.GRPCConfig) { c.TLS.CAFile = "x" })
	f(`min_version: "1" is not a version of TLS; write 1.0, 1.1, 1.2 or 1.3`, func(c *client.GRPCConfig) { c.TLS.MinVersion = "1" })
	f("max_version: 1.1 is below min_version (1.2)", func(c *client.GRPCConfig) { c.TLS.MaxVersion = "1.1" })
}

// expectErrors compares the keys and messages of errors, one a line.
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
