package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// Shares, wrong passwords and the log have the same client, on HTTP and gRPC listeners.
func TestClient(t *testing.T) {
	f := newFixture(t, 1<<20)
	cfg := server.DefaultHTTPConfig("127.0.0.1:0")
	cfg.TrustedProxies = []string{"10.1.0.0/16", "fd00::1"}
	got := ""
	s, err := server.NewHTTP(f.set, "http", cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = server.Client(r.Context())
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ remote, forwarded, want string }{
		{"192.0.2.7:1234", "", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:1234", "", "192.0.2.7"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1234", "", "fe80::/64"},
		{"@", "", ""},
		{"", "", ""},
		{"192.0.2.7:1234", "198.51.100.1", "192.0.2.7"}, // not a trusted proxy
		{"10.1.2.3:1234", "", "10.1.2.3"},
		{"10.1.2.3:1234", "198.51.100.1", "198.51.100.1"},
		{"10.1.2.3:1234", "198.51.100.1:5678", "198.51.100.1"},
		{"10.1.2.3:1234", "1.1.1.1, 198.51.100.1, 10.1.9.9", "198.51.100.1"}, // the client has set the first
		{"10.1.2.3:1234", "10.1.9.9", "10.1.9.9"},
		{"10.1.2.3:1234", "198.51.100.1, unknown", "10.1.2.3"},
		{"10.1.2.3:1234", "198.51.100.1, unknown, 10.1.9.9", "10.1.9.9"},
		{"[fd00::1]:1234", "2001:db8::1", "2001:db8::/64"},
		{"[fd00::1]:1234", "[2001:db8::1]", "2001:db8::/64"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = x.remote
		r.Header.Set("X-Forwarded-For", x.forwarded)
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		if got != x.want {
			t.Errorf("client %q of %q, %q; want %q", got, x.remote, x.forwarded, x.want)
		}
	}

	for proxy, want := range map[string]string{"127.0.0.0/8": "198.51.100.1", "192.0.2.1": "127.0.0.1"} {
		cfg := grpcConfig()
		cfg.TrustedProxies = []string{proxy}
		conn, _ := newFixture(t, 1<<24).grpc(cfg, func(ctx context.Context, _ int) error {
			got = server.Client(ctx)
			return nil
		})
		if err := call(metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "198.51.100.1"), conn, "Raw", 1); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("client %q of a call; want %q", got, want)
		}
	}
}

// An IPv4 address and network may be written as IPv6, like the addresses of clients.
func TestMappedTrustedProxies(t *testing.T) {
	for proxy, want := range map[string]string{
		"::ffff:10.1.2.3": "198.51.100.1", "::ffff:10.1.0.0/112": "198.51.100.1", "::ffff:0.0.0.0/96": "198.51.100.1", "::/0": "10.1.2.3",
		"::ffff:10.1.2.4": "10.1.2.3", "::ffff:10.2.0.0/112": "10.1.2.3",
	} {
		cfg := server.DefaultHTTPConfig("127.0.0.1:0")
		cfg.TrustedProxies = []string{proxy}
		got := ""
		s, err := server.NewHTTP(newFixture(t, 1<<20).set, "http", cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = server.Client(r.Context())
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, remote := range []string{"10.1.2.3:1234", "[::ffff:10.1.2.3]:1234"} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = remote
			r.Header.Set("X-Forwarded-For", "198.51.100.1")
			if s.Handler().ServeHTTP(httptest.NewRecorder(), r); got != want {
				t.Errorf("client %q of %s with trusted proxy %s; want %q", got, remote, proxy, want)
			}
		}
	}
}

func TestInvalidTrustedProxies(t *testing.T) {
	web, rpc := server.DefaultHTTPConfig("127.0.0.1:0"), grpcConfig()
	web.TrustedProxies = []string{"10.0.0.1", "proxy.example"}
	rpc.TrustedProxies = []string{"10.0.0.0/33"}
	mapped := grpcConfig()
	mapped.TrustedProxies = []string{"::ffff:10.0.0.0/95"}
	for want, err := range map[string]error{
		`"::ffff:10.0.0.0/95" is not an IPv4 network; write 10.0.0.0/8`: mapped.Validate(),
		`"proxy.example" is neither an address nor a network`:           web.Validate(),
		`"10.0.0.0/33" is neither an address nor a network`:             rpc.Validate(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
