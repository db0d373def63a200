package commands_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
)

// collectorComponents is the folder of the example. It is a module of its own, which requires
// modules that the program does not.
const collectorComponents = "../../../examples/collector-components"

// buildExample builds the program of an example. Its modules come from the module cache or from the
// module proxy; if that is out of reach, the test is skipped, except in continuous integration.
func buildExample(t *testing.T, folder string) (path string) {
	t.Helper()
	harness.DependsOn(t, folder)
	workspace := "off"
	tool := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOWORK="+workspace)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	switch out, err := tool("list", "-deps", "-f", "{{if not .Module}}{{end}}", "."); {
	case err == nil:
	case os.Getenv("CI") == "true" || strings.Contains(out, "updates to go.mod needed") || strings.Contains(out, "missing go.sum entry"):
		t.Fatalf("%v; run go mod tidy in %s\n%s", err, folder, out)
	default:
		t.Skipf("modules of the example cannot be downloaded: %v\n%s", err, out)
	}
	// A workspace lets this module reuse the compiled packages of the program.
	workspace = filepath.Join(t.TempDir(), "go.work")
	if out, err := tool("work", "init", ".", harness.Root(t)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path = filepath.Join(t.TempDir(), "example")
	if out, err := tool("build", "-buildvcs=false", "-o", path, "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestCollectorComponents runs a program with a receiver, a processor and an exporter of the
// OpenTelemetry Collector. Spans of a client arrive in the store and in the file of the exporter.
func TestCollectorComponents(t *testing.T) {
	if testing.Short() {
		t.Skip("building another program takes too long for -short")
	}
	path := buildExample(t, collectorComponents)
	dir := t.TempDir()
	file, endpoint := filepath.Join(dir, "spans.json"), pipelinetest.FixedAddress(t)
	args := append([]string{"--config", filepath.Join(collectorComponents, "config.yaml")},
		harness.SetArgs("receivers::jaeger::protocols::thrift_http::endpoint="+endpoint, "exporters::file::path="+file)...)
	p := harness.RunExecutable(t, path, harness.PresetArgs("all-in-one", dir, args...)...)
	query := p.QueryURL()
	p.AwaitReady()

	sender := transport.NewHTTPTransport("http://" + endpoint + "/api/traces?format=jaeger.thrift")
	tracer, closer := jaeger.NewTracer("backup", jaeger.NewConstSampler(true), jaeger.NewRemoteReporter(sender))
	span := tracer.StartSpan("copy")
	span.SetTag("host.name", "h1")
	span.Finish()
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}

	var answer struct{ Data []harness.UITrace }
	status, body := harness.Fetch(t, query+"/api/traces?service=backup&operation=copy")
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 {
		t.Errorf("search: %d %v %s", status, err, body)
	}
	if code := p.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(written)
	if err != nil || td.SpanCount() != 1 {
		t.Fatalf("file: %v %s", err, written)
	}
	if host, _ := td.ResourceSpans().At(0).Resource().Attributes().Get("host.name"); host.Str() != "h1" {
		t.Errorf("the span was not grouped by host: %s", written)
	}
}
