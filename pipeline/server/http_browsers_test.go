package server_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// sendTo sends a request that names a host and has the headers, written as name, value.
func sendTo(t *testing.T, c *http.Client, method, url, host string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Host = host
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func writeData(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, "data") //nolint:errcheck // a test
}

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		name     string
		endpoint pipeline.Endpoint
		other    bool // reached at an address that is not a loopback address
		allowed  []string
		accepted []string
		refused  []string
	}{
		{"loopback", "127.0.0.1:0", false, nil,
			[]string{"localhost", "LOCALHOST:1", "app.localhost:4318", "127.0.0.1:4318", "192.0.2.7", "[::1]:80", "[::1]", "localhost.",
				"host.docker.internal:4318", "host.containers.internal", "host.lima.internal."},
			[]string{"evil.example", "evil.example:4318", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost",
				"internal", "xinternal", "host.docker.internal.evil.example"}},
		{"loopback with names", "127.0.0.1:0", false, []string{"Traces.example.com", "*.example.org"},
			[]string{"traces.example.com:80", "TRACES.example.com", "a.example.org", "a.b.example.org:1", "localhost"},
			[]string{"example.com", "x.traces.example.com", "example.org", "aexample.org"}},
		{"loopback with all names", "127.0.0.1:0", false, []string{"*"}, []string{"evil.example"}, nil},
		{"name of the endpoint", "localhost:0", false, nil, []string{"localhost:1"}, []string{"evil.example"}},
		{"open to others", "0.0.0.0:0", true, nil, []string{"collector:4318", "evil.example"}, nil},
		{"open to others, with names", "collector.internal:0", true, []string{"traces.example.com"},
			[]string{"traces.example.com", "10.1.2.3:80", "collector.internal:4318", "localhost"}, []string{"collector", "evil.example"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, 1<<20)
			if c.other {
				f.inMemory() // its addresses are no loopback addresses
			}
			cfg := server.DefaultHTTPConfig(c.endpoint)
			cfg.AllowedHosts = c.allowed
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			_, client, _ := f.http(cfg, writeData)
			for _, host := range c.accepted {
				if code, body := sendTo(t, client, http.MethodGet, "http://server/", host); code != 200 || body != "data" {
					t.Errorf("%s: %d %s", host, code, body)
				}
			}
			for _, host := range c.refused {
				if code, body := sendTo(t, client, http.MethodGet, "http://server/", host); code != 403 || !strings.Contains(body, "add it to allowed_hosts") {
					t.Errorf("%s: %d %s", host, code, body)
				}
			}
			if n := f.refused(server.ReasonHost); n != float64(len(c.refused)) {
				t.Errorf("%v refusals counted, want %d", n, len(c.refused))
			}
		})
	}
}

func TestInvalidAllowedHosts(t *testing.T) {
	for _, name := range []string{"", "http://a", "a:80", "a/b", "*a", "a.*", "**", "*.", "[::1]"} {
		c := server.DefaultHTTPConfig("localhost:0")
		c.AllowedHosts = []string{"traces.example.com", name}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "is not a host name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCrossOriginRequests(t *testing.T) {
	f := newFixture(t, 1<<20)
	cfg := httpConfig()
	cfg.CORS = pipeline.Present(server.CORSConfig{AllowedOrigins: []string{"https://*.example.com"}})
	s, err := server.NewHTTP(f.set, "http", cfg, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	s.SetUnsafe(func(r *http.Request) bool { return r.URL.Path == "/unsafe" })
	f.run(s)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	url, self := "http://"+s.Addr(), "http://"+s.Addr()
	for _, c := range []struct {
		name         string
		header       []string
		get, changes int // status of a GET request, and of those that change state
	}{
		{"program", nil, 200, 200},
		{"same origin", []string{"Origin", self, "Sec-Fetch-Site", "same-origin"}, 200, 200},
		{"same origin, no Sec-Fetch-Site", []string{"Origin", self}, 200, 200},
		{"user", []string{"Sec-Fetch-Site", "none"}, 200, 200},
		{"cross-site", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 200, 403},
		{"cross-site, no Sec-Fetch-Site", []string{"Origin", "https://evil.example"}, 200, 403},
		{"cross-site, no Origin", []string{"Sec-Fetch-Site", "cross-site"}, 200, 403},
		{"opaque origin", []string{"Origin", "null"}, 200, 403},
		{"same site", []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}, 200, 403},
		{"allowed by CORS", []string{"Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"}, 200, 200},
	} {
		if code, body := sendTo(t, client, http.MethodGet, url+"/", "", c.header...); code != c.get {
			t.Errorf("%s, GET: %d %s", c.name, code, body)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if code, body := sendTo(t, client, method, url+"/", "", c.header...); code != c.changes {
				t.Errorf("%s, %s: %d %s", c.name, method, code, body)
			}
		}
		if code, body := sendTo(t, client, http.MethodGet, url+"/unsafe", "", c.header...); code != c.changes ||
			code == 403 && !strings.Contains(body, "cors::allowed_origins") {
			t.Errorf("%s, unsafe GET: %d %s", c.name, code, body)
		}
	}
}

// A page that the listener serves through a proxy is of the same origin if the proxy passes on the
// host and port of its clients.
func TestProxyWithoutTLS(t *testing.T) {
	f := newFixture(t, 1<<20)
	cfg := httpConfig()
	cfg.AllowedHosts = []string{"traces.example.com", "backend"}
	_, client, _ := f.http(cfg, writeData)
	for host, want := range map[string]int{"backend": 403, "traces.example.com": 403, "traces.example.com:8080": 200} {
		code, body := sendTo(t, client, http.MethodPost, "http://server/", host, "Origin", "http://traces.example.com:8080")
		if code != want || want == 403 && !strings.Contains(body, "proxy_set_header Host $http_host") {
			t.Errorf("%s: %d %s, want %d", host, code, body, want)
		}
	}
}

// Privileged requests need credentials unless they are sent to a loopback address without a proxy.
func TestPrivilegedRequests(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		remote bool
		auth   bool
		host   string
		header []string
		want   int
	}{
		{"local", false, false, "localhost", nil, 200},
		{"local, rebound name", false, false, "evil.example", nil, 403},
		{"local, other origin", false, false, "localhost", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"remote", true, false, "localhost", nil, 403},
		{"remote with credentials", true, true, "collector", []string{"Authorization", "Bearer secret"}, 200},
		{"remote with wrong credentials", true, true, "collector", []string{"Authorization", "Bearer x"}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, 1<<20)
			if c.remote {
				f.inMemory()
			}
			cfg := server.DefaultHTTPConfig("0.0.0.0:0")
			if c.auth {
				cfg.Auth = pipeline.Present(authConfig(tokens, ""))
			}
			s, client, _ := f.http(cfg, func(http.ResponseWriter, *http.Request) {})
			s.SetPrivileged(func(r *http.Request) bool { return r.URL.Path == "/heap" })
			code, body := sendTo(t, client, http.MethodGet, "http://server/heap", c.host, c.header...)
			if code != c.want || code == 403 && c.remote && !strings.Contains(body, "set auth or tls::client_ca_file of this listener") {
				t.Errorf("%d %s, want %d", code, body, c.want)
			}
			if c.auth {
				return
			}
			if code, body := sendTo(t, client, http.MethodGet, "http://server/metrics", "collector"); code != 200 {
				t.Errorf("other path: %d %s", code, body)
			}
		})
	}
}

// The clients of a proxy on the same machine can be anywhere.
func TestPrivilegedRequestsThroughProxy(t *testing.T) {
	for _, endpoint := range []pipeline.Endpoint{"127.0.0.1:0", "0.0.0.0:0"} {
		f := newFixture(t, 1<<20)
		s, client, _ := f.http(server.DefaultHTTPConfig(endpoint), writeData)
		s.SetPrivileged(func(r *http.Request) bool { return r.URL.Path == "/heap" })
		for _, header := range [][]string{{"Forwarded", "for=192.0.2.7"}, {"Via", "1.1 proxy"}, {"X-Forwarded-For", "192.0.2.7"},
			{"X-Forwarded-Host", "traces.example.com"}, {"X-Real-IP", "192.0.2.7"}} {
			code, body := sendTo(t, client, http.MethodGet, "http://server/heap", "localhost", header...)
			if code != 403 || !strings.Contains(body, "without a proxy") {
				t.Errorf("%s, %q: %d %s", endpoint, header, code, body)
			}
			if code, body := sendTo(t, client, http.MethodGet, "http://server/metrics", "localhost", header...); code != 200 {
				t.Errorf("%s, %q, other path: %d %s", endpoint, header, code, body)
			}
		}
	}
}

// A request without the header Host, as programs send with HTTP/1.0, is accepted.
func TestNoHost(t *testing.T) {
	f := newFixture(t, 1<<20)
	s, _, _ := f.http(httpConfig(), writeData)
	conn, err := f.dial(t.Context(), s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))  //nolint:errcheck // a test
	io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n") //nolint:errcheck // ReadAll fails
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 200 ") {
		t.Errorf("%v %s", err, answer)
	}
}
