package commands_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness"
)

// customReceiver is the folder of the example.
const customReceiver = "../../../examples/custom-receiver"

// goTool runs the go command in the module of the example, without a network. workspace is a file,
// or "off".
func goTool(t *testing.T, workspace string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = customReceiver
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false", "GOWORK="+workspace)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestCustomReceiver builds, tests and runs a program with a custom component, which is a module of
// its own. The listener of the component has TLS from the framework.
func TestCustomReceiver(t *testing.T) {
	harness.SkipIfShort(t) // links another program
	harness.DependsOn(t, customReceiver)
	mod := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join(customReceiver, name), filepath.Join(mod, name))
	}
	// The go command adds missing requirements to the copies.
	goTool(t, "off", "list", "-mod=mod", "-modfile="+filepath.Join(mod, "go.mod"), "-deps", "-test", "./...")
	for _, name := range []string{"go.mod", "go.sum"} {
		upToDate(t, filepath.Join(customReceiver, name), filepath.Join(mod, name))
	}
	// A workspace lets this module reuse the compiled packages of the program.
	workspace := filepath.Join(mod, "go.work")
	goTool(t, workspace, "work", "init", ".", harness.Root(t))
	path := filepath.Join(t.TempDir(), "custom-receiver")
	goTool(t, workspace, "build", "-o", path, ".")
	goTool(t, workspace, "vet", "./...")
	goTool(t, workspace, "test", "-vet=off", "./...")
	needsNoOtherModules(t)

	dir := t.TempDir()
	client := &tls.Config{RootCAs: harness.SelfSigned(t, dir), ServerName: "localhost"}
	args := append([]string{"--config", filepath.Join(customReceiver, "config.yaml")},
		harness.SetArgs("receivers::lines::endpoint=localhost:0",
			"receivers::lines::tls={cert_file: "+dir+"/cert.pem, key_file: "+dir+"/key.pem}")...)
	p := harness.RunExecutable(t, path, harness.PresetArgs("all-in-one", t.TempDir(), args...)...)
	lines, query := p.Address("lines", "http"), p.QueryURL()
	p.AwaitReady()

	for text, want := range map[string]string{"backup copy 5300\n": "ok\n", "backup\n": "line 1: 1 words; "} {
		if got := post(t, client, lines, text); !strings.HasPrefix(got, want) {
			t.Errorf("%q: answer %q, want one that begins with %q", text, got, want)
		}
	}
	status, body := harness.Fetch(t, query+"/api/traces?service=backup&operation=copy")
	var answer struct{ Data []harness.UITrace }
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 || len(answer.Data[0].Spans) != 1 {
		t.Fatalf("search: %d %v %s", status, err, body)
	}
	if got := answer.Data[0].Spans[0].Duration; got != 5_300_000 {
		t.Errorf("duration %d us, want 5.3 s", got)
	}
	if code := p.Terminate(); code != 0 {
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

// upToDate checks that the go command has added nothing to a file of the module. With -update it
// copies the file back.
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
		t.Errorf("%s is out of date; run this test with -update", file)
	}
}

// needsNoOtherModules checks that the example requires only modules that the program requires.
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
			t.Errorf("the example requires %s %s, which is not in go.sum of the program", f[0], f[1])
		}
	}
	if seen < 10 {
		t.Errorf("only %d requirements checked", seen)
	}
}

// post sends text over HTTPS and returns the text of the response.
func post(t *testing.T, client *tls.Config, addr, text string) string {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: client}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post("https://"+addr, "text/plain", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
