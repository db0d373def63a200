// Package proxy tests the login that docs/login.md describes, with oauth2-proxy in front of the
// program. It is a module of its own, so that oauth2-proxy is no dependency of the program.
package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"
)

const (
	site    = "https://traces.example.com"
	traceID = "5b8efff798038103d269b633813fc60c"
	spans   = `{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}}]},
		"scopeSpans": [{"spans": [{"traceId": "` + traceID + `", "spanId": "eee19b7ec3c1b174", "name": "pay",
		"startTimeUnixNano": "%d"}]}]}]}`
)

// TestLogin runs the configurations of docs/login.md: a proxy with TLS, an identity provider, and
// the program behind it.
func TestLogin(t *testing.T) {
	oidc := startProvider(t)
	query, intake := startProgram(t)
	proxy := startProxy(t, oidc, query)

	stranger := newBrowser(t, proxy)
	if r := stranger.get(t, "/"); r.StatusCode != http.StatusFound || !strings.HasPrefix(r.Header.Get("Location"), oidc.Issuer()) {
		t.Errorf("page without a session: %s, %q", r.Status, r.Header.Get("Location"))
	}
	for _, path := range []string{"/api/services", "/api/ui/v1/tail?q=%7B%7D", "/tempo/api/search"} {
		if r := stranger.get(t, path); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a session: %s", path, r.Status)
		}
	}

	oidc.QueueUser(&mockoidc.MockUser{Subject: "bob", Email: "bob@example.net", EmailVerified: true})
	if r := newBrowser(t, proxy).login(t); r.StatusCode != http.StatusForbidden {
		t.Errorf("user of another domain: %s", r.Status)
	}

	oidc.QueueUser(&mockoidc.MockUser{Subject: "ann", Email: "ann@example.com", EmailVerified: true})
	ann := newBrowser(t, proxy)
	if r := ann.login(t); r.StatusCode != http.StatusOK || !strings.Contains(r.text, "<!doctype html>") {
		t.Fatalf("after the login: %s\n%s", r.Status, r.text)
	}
	send(t, intake)
	if r := ann.get(t, "/api/traces/"+traceID); r.StatusCode != http.StatusOK || !strings.Contains(r.text, `"pay"`) {
		t.Errorf("trace: %s\n%s", r.Status, r.text)
	}
	ann.followTail(t, intake)
}

// startProvider starts an identity provider, which logs in the user that was queued last.
func startProvider(t *testing.T) *mockoidc.MockOIDC {
	t.Helper()
	oidc, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := oidc.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return oidc
}

// startProgram starts the program with the query service of docs/login.md, and returns its address
// and that of the OTLP receiver.
func startProgram(t *testing.T) (query, intake string) {
	t.Helper()
	program := os.Getenv("TEST_PROGRAM")
	if program == "" {
		t.Fatal("TEST_PROGRAM does not name the program; run make test-proxy")
	}
	query, intake = freeAddress(t), freeAddress(t)
	config := strings.Replace(block(t, "```yaml\nextensions:\n  query:\n    http:\n"), "localhost:16686", query, 1)
	config += fmt.Sprintf("    storage: memory\nexporters: {memory: }\nreceivers: {otlp: {protocols: {http: {endpoint: %q}}}}\n"+
		"service: {extensions: [query], pipelines: {traces: {receivers: [otlp], exporters: [memory]}}}\n", intake)
	start(t, query, program, "--config", write(t, "query.yaml", config))
	return query, intake
}

// startProxy starts oauth2-proxy with the configuration of docs/login.md, with other addresses and
// TLS, and returns its address.
func startProxy(t *testing.T, oidc *mockoidc.MockOIDC, query string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "oauth2-proxy")
	build := exec.Command("go", "build", "-o", program, "github.com/oauth2-proxy/oauth2-proxy/v7")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build oauth2-proxy: %v\n%s", err, out)
	}
	secret := make([]byte, 32)
	rand.Read(secret) //nolint:errcheck // never fails
	address, values := freeAddress(t), oidc.Config()
	cert, key := certificate(t)
	config := block(t, "```toml\n")
	for pattern, line := range map[string]string{
		`http_address = .*`:       fmt.Sprintf("https_address = %q\ntls_cert_file = %q\ntls_key_file = %q", address, cert, key),
		`oidc_issuer_url = .*`:    fmt.Sprintf("oidc_issuer_url = %q", oidc.Issuer()),
		`client_id = .*`:          fmt.Sprintf("client_id = %q", values.ClientID),
		`client_secret_file = .*`: fmt.Sprintf("client_secret_file = %q", write(t, "client-secret", values.ClientSecret)),
		`cookie_secret_file = .*`: fmt.Sprintf("cookie_secret_file = %q",
			write(t, "cookie-secret", base64.URLEncoding.EncodeToString(secret))),
		`upstreams = .*`: fmt.Sprintf("upstreams = [%q]", "http://"+query+"/"),
	} {
		lines := regexp.MustCompile("(?m)^" + pattern + "$")
		if !lines.MatchString(config) {
			t.Fatalf("docs/login.md has no line %s in\n%s", pattern, config)
		}
		config = lines.ReplaceAllLiteralString(config, line)
	}
	start(t, address, program, "--config", write(t, "oauth2-proxy.cfg", config))
	return address
}

// block returns the code block of docs/login.md that begins with start, without the line of its
// language.
func block(t *testing.T, start string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/login.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), start)
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("docs/login.md has no block that begins with %q", start)
	}
	_, head, _ := strings.Cut(start, "\n")
	return head + text
}

// start runs a program until the test ends, and waits until it accepts connections.
func start(t *testing.T, address, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }() //nolint:errcheck // it is killed
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), log.String())
		}
	})
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close() //nolint:errcheck // not used
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s has ended", filepath.Base(program))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // another program listens afterwards
	return l.Addr().String()
}

func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// send sends a span to the program.
func send(t *testing.T, intake string) {
	t.Helper()
	r, err := http.Post("http://"+intake+"/v1/traces", "application/json", strings.NewReader(fmt.Sprintf(spans, time.Now().UnixNano())))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // not read
	if r.StatusCode != http.StatusOK {
		t.Fatal(r.Status)
	}
}

// browser has cookies and finds the site at the address of the proxy.
type browser struct{ http.Client }

// response is a response that was read.
type response struct {
	*http.Response
	text string
}

func newBrowser(t *testing.T, proxy string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a certificate of the test
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "traces.example.com:") {
				address = proxy
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{http.Client{Jar: jar, Transport: transport}}
}

// open sends a request as a page of the site does.
func (b *browser) open(t *testing.T, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(path, "/api/") {
		req.Header.Set("Origin", site)
	}
	r, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get reads a path of the site without following redirects.
func (b *browser) get(t *testing.T, path string) response {
	t.Helper()
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { b.CheckRedirect = nil }()
	return read(t, b.open(t, path))
}

// login opens the first page and follows the redirects to the identity provider and back.
func (b *browser) login(t *testing.T) response {
	t.Helper()
	return read(t, b.open(t, "/"))
}

func read(t *testing.T, r *http.Response) response {
	t.Helper()
	defer r.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{r, string(text)}
}

// followTail checks that the live tail shows spans while they are sent: the proxy does not wait for
// the end of the stream, which does not come.
func (b *browser) followTail(t *testing.T, intake string) {
	t.Helper()
	r := b.open(t, "/api/ui/v1/tail?q=%7B%7D&of=spans")
	defer r.Body.Close() //nolint:errcheck // it does not end
	if r.StatusCode != http.StatusOK {
		t.Fatalf("live tail: %s", r.Status)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r.Body); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	for {
		send(t, intake)
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatal("live tail ended without a span")
			}
			if strings.Contains(line, `"pay"`) {
				return
			}
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// certificate writes a certificate and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return pemFiles(t, s.TLS.Certificates[0])
}

func pemFiles(t *testing.T, c tls.Certificate) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))),
		write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}
