package certs_test

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/internal/certs"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func issue(t *testing.T, ca *certstest.Authority, dir, name string) certs.Files {
	t.Helper()
	f := ca.Issue(t, dir, name)
	return certs.Files{Cert: f.Cert, Key: f.Key, CA: f.CA}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// clock is a manual clock that also records reports.
type clock struct {
	mu       sync.Mutex
	now      time.Time
	reported []error
}

func (c *clock) options() certs.ReloadOptions {
	return certs.ReloadOptions{Interval: time.Minute, Now: func() time.Time { return c.now }, Report: func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported = append(c.reported, err)
	}}
}

func (c *clock) reports() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.reported
	c.reported = nil
	return r
}

// handshake returns the names in the certificates that each side saw.
func handshake(t *testing.T, server, client *tls.Config) (seenByClient, seenByServer string, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // TLS alerts need a socket with a buffer
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // used once
	accepted := make(chan error, 1)
	var peer string
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			accepted <- err
			return
		}
		defer conn.Close() //nolint:errcheck // only the handshake is tested
		s := tls.Server(conn, server)
		err = s.Handshake()
		if err == nil {
			peer = peerName(s)
		}
		accepted <- err
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only the handshake is tested
	c := tls.Client(conn, client)
	clientErr := c.Handshake()
	if clientErr != nil {
		conn.Close() //nolint:errcheck // unblocks the server
	} else {
		seenByClient = peerName(c)
	}
	serverErr := <-accepted
	return seenByClient, peer, errors.Join(clientErr, serverErr)
}

func peerName(c *tls.Conn) string {
	if certs := c.ConnectionState().PeerCertificates; len(certs) > 0 {
		return certs[0].Subject.CommonName
	}
	return ""
}

func load(t *testing.T, s *certs.TLSSource) *certs.TLSSource {
	t.Helper()
	if err := s.Load(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCertificatesAreReloaded(t *testing.T) {
	ca, now := certstest.New(t), &clock{}
	serverDir, clientDir := t.TempDir(), t.TempDir()
	server := load(t, certs.NewServerTLS(&tls.Config{MinVersion: tls.VersionTLS12}, issue(t, ca, serverDir, "server 1"), now.options()))
	client := load(t, certs.NewClientTLS(&tls.Config{ServerName: certstest.Host}, issue(t, ca, clientDir, "client 1"), now.options()))
	listener := server.Listener()
	expect := func(step, wantServer, wantClient string) {
		t.Helper()
		s, c, err := handshake(t, listener, client.Config())
		if err != nil || s != wantServer || c != wantClient {
			t.Errorf("%s: client saw %q, server saw %q, error %v; want %q, %q", step, s, c, err, wantServer, wantClient)
		}
	}
	expect("first", "server 1", "client 1")

	issue(t, ca, serverDir, "server 2")
	issue(t, ca, clientDir, "client 2")
	now.now = now.now.Add(59 * time.Second)
	expect("before the interval is over", "server 1", "client 1")
	now.now = now.now.Add(time.Second)
	expect("after the interval", "server 2", "client 2")

	other := certstest.New(t)
	issue(t, other, serverDir, "server 3")
	issue(t, other, clientDir, "client 3")
	now.now = now.now.Add(time.Minute)
	expect("with another authority on both sides", "server 3", "client 3")

	issue(t, ca, clientDir, "client 4")
	now.now = now.now.Add(time.Minute)
	if _, _, err := handshake(t, listener, client.Config()); err == nil {
		t.Error("handshake succeeded with a client of another authority")
	}
	if r := now.reports(); len(r) != 0 {
		t.Errorf("reported %v", r)
	}
}

func TestInvalidFilesKeepThePreviousCertificates(t *testing.T) {
	ca, now, dir := certstest.New(t), &clock{}, t.TempDir()
	files := issue(t, ca, dir, "first")
	server := load(t, certs.NewServerTLS(&tls.Config{}, files, now.options()))
	client := load(t, certs.NewClientTLS(&tls.Config{ServerName: certstest.Host}, files, now.options()))
	advance := func() {
		now.now = now.now.Add(time.Minute)
		if name, _, err := handshake(t, server.Listener(), client.Config()); err != nil || name != "first" {
			t.Errorf("client saw %q, error %v", name, err)
		}
	}
	key, err := os.ReadFile(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, files.Key, []byte("not a key"))
	advance()
	advance()
	if r := now.reports(); len(r) != 2 || r[0] == nil || !strings.Contains(r[0].Error(), files.Key) {
		t.Errorf("reported %v; want the key once from each side", r)
	}
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	advance()
	if r := now.reports(); len(r) != 2 || !errors.Is(r[0], fs.ErrNotExist) {
		t.Errorf("reported %v; want the missing key once from each side", r)
	}
	write(t, files.Key, key)
	advance()
	if r := now.reports(); len(r) != 2 || r[0] != nil || r[1] != nil {
		t.Errorf("reported %v; want nil once from each side", r)
	}
}

func TestLoadErrorNamesTheFile(t *testing.T) {
	ca, dir := certstest.New(t), t.TempDir()
	good := issue(t, ca, dir, "x")
	empty, big := filepath.Join(dir, "empty"), filepath.Join(dir, "big")
	write(t, empty, nil)
	write(t, big, make([]byte, 1<<20+1))
	f := func(files certs.Files, want string) {
		t.Helper()
		err := certs.NewClientTLS(&tls.Config{}, files, new(clock).options()).Load()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f(certs.Files{CA: filepath.Join(dir, "none")}, "none: no such file")
	f(certs.Files{CA: empty}, "empty contains no PEM certificate")
	f(certs.Files{CA: big}, "big is larger than")
	f(certs.Files{CA: dir}, "is a folder")
	f(certs.Files{Cert: good.CA, Key: good.Key}, good.CA+" with key "+good.Key)
	f(certs.Files{Cert: good.Cert, Key: empty}, "failed to find any PEM data")
}

func TestNoClientCertificate(t *testing.T) {
	ca, now := certstest.New(t), &clock{}
	files := issue(t, ca, t.TempDir(), "server")
	anonymous := load(t, certs.NewClientTLS(&tls.Config{ServerName: certstest.Host}, certs.Files{CA: files.CA, SystemCAs: true},
		now.options()))
	if _, _, err := handshake(t, load(t, certs.NewServerTLS(&tls.Config{}, files, now.options())).Listener(), anonymous.Config()); err == nil {
		t.Error("handshake succeeded without a client certificate")
	}
	files.CA = ""
	open := load(t, certs.NewServerTLS(&tls.Config{}, files, now.options()))
	if name, _, err := handshake(t, open.Listener(), anonymous.Config()); err != nil || name != "server" {
		t.Errorf("client saw %q, error %v", name, err)
	}
}

func TestZeroIntervalDisablesReloading(t *testing.T) {
	ca, now, dir := certstest.New(t), &clock{}, t.TempDir()
	opts := now.options()
	opts.Interval = 0
	s := load(t, certs.NewClientTLS(&tls.Config{}, issue(t, ca, dir, "first"), opts))
	before := s.Config()
	issue(t, ca, dir, "second")
	now.now = now.now.Add(time.Hour)
	if s.Config() != before {
		t.Error("files were reread")
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		minVersion, maxVersion string
		lo, hi                 uint16
		errMin, errMax         string
	}{
		{"1.2", "1.3", tls.VersionTLS12, tls.VersionTLS13, "", ""},
		{"1.3", "", tls.VersionTLS13, 0, "", ""},
		{"", "", 0, 0, "", ""},
		{"TLS1.3", "1.9", 0, 0, "1.2 or 1.3", "1.2 or 1.3"},
		{"1.3", "1.2", tls.VersionTLS13, tls.VersionTLS12, "", "1.2 is below min_version (1.3)"},
	} {
		lo, hi, errMin, errMax := certs.Versions(c.minVersion, c.maxVersion)
		if lo != c.lo || hi != c.hi || !contains(errMin, c.errMin) || !contains(errMax, c.errMax) {
			t.Errorf("%q to %q: %d %d %v %v", c.minVersion, c.maxVersion, lo, hi, errMin, errMax)
		}
	}
}

// contains reports whether the text of err contains text, or whether err is nil if text is empty.
func contains(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}
