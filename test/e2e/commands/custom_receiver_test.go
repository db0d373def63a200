package commands_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness"
)

// customReceiver is the folder of the example.
const customReceiver = "../../../examples/custom-receiver"

// goTool runs the go command in the example's module, without a network. The module's files are copies in the folder mod, so that a
// requirement that is missing is added there, and shows.
func goTool(t *testing.T, mod string, args ...string) {
	t.Helper()
	args = append([]string{args[0], "-mod=mod", "-modfile=" + filepath.Join(mod, "go.mod")}, args[1:]...)
	cmd := exec.Command("go", args...)
	cmd.Dir = customReceiver
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A user's program with a component of its own is built and tested in its own module, and runs, with
// the TLS that its listener has from the framework.
func TestCustomReceiver(t *testing.T) {
	mod := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join(customReceiver, name), filepath.Join(mod, name))
	}
	path := filepath.Join(t.TempDir(), "custom-receiver")
	goTool(t, mod, "build", "-o", path, ".")
	goTool(t, mod, "test", "./...")
	for _, name := range []string{"go.mod", "go.sum"} {
		upToDate(t, filepath.Join(customReceiver, name), filepath.Join(mod, name))
	}
	needsNoOtherModules(t)

	args := []string{"all-in-one", "--config", filepath.Join(customReceiver, "config.yaml")}
	client, certFile, keyFile := trusted(t)
	for _, s := range slices.Concat(harness.FreePorts, []string{"receivers::lines::endpoint=localhost:0", "service::data_dir=" + t.TempDir(),
		"receivers::lines::tls={cert_file: " + certFile + ", key_file: " + keyFile + "}"}) {
		args = append(args, "--set", s)
	}
	p := harness.RunProgram(t, path, args...)
	lines, query := p.Address("lines", "tcp"), "http://"+p.Address("query", "http")
	p.Await("msg", "Health Check state change", "status", "ready")

	if got, want := tell(t, client, lines, "backup copy 5300\nbackup\n"), "ok\nrefused: 1 words; "; !strings.HasPrefix(got, want) {
		t.Errorf("answer %q, want one that begins with %q", got, want)
	}
	status, body := harness.Fetch(t, query+"/api/traces?service=backup&operation=copy")
	var answer struct{ Data []harness.UITrace }
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 || len(answer.Data[0].Spans) != 1 {
		t.Fatalf("searching the span: %d %v %s", status, err, body)
	}
	if got := answer.Data[0].Spans[0].Duration; got != 5_300_000 {
		t.Errorf("the span took %d us, want 5.3 s", got)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// upToDate checks that the go command found nothing to add to a file of the example's module, or adds it with -update.
func upToDate(t *testing.T, file, now string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(now)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case string(before) == string(after):
	case golden.Updating():
		copyFile(t, now, file)
	default:
		t.Errorf("%s is out of date: `go run .` fails there; run this test with -update", file)
	}
}

// needsNoOtherModules checks that a custom component brings no dependency that the program does not have.
func needsNoOtherModules(t *testing.T) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(harness.Root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	requires, err := os.ReadFile(filepath.Join(customReceiver, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(requires)) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[1], "v") || f[0] == "github.com/tracing-backend/tracing" {
			continue
		}
		seen++
		if !strings.Contains(string(sums), f[0]+" "+f[1]+" ") {
			t.Errorf("the example needs %s %s, which the main module does not have", f[0], f[1])
		}
	}
	if seen < 10 {
		t.Errorf("only %d requirements were looked at", seen)
	}
}

// trusted returns the files of a certificate for this machine, and the configuration of a client that trusts it.
func trusted(t *testing.T) (client *tls.Config, certFile, keyFile string) {
	t.Helper()
	srv := httptest.NewTLSServer(nil)
	srv.Close()
	pair := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	client = srv.Client().Transport.(*http.Transport).TLSClientConfig
	return client, write("cert.pem", "CERTIFICATE", pair.Certificate[0]), write("key.pem", "PRIVATE KEY", key)
}

// tell sends text over TLS and returns all that is answered.
func tell(t *testing.T, client *tls.Config, addr, text string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, client)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
