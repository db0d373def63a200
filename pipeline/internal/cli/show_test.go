package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/compatflags"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// full has a value of every kind. Values such as $${} must not change when they are printed and
// loaded again.
const full = `receivers:
  source: {endpoint: "localhost:4000"}
  source/spare: {endpoint: "localhost:0"}
processors: {step: }
exporters:
  sink: {max_traces: 5}
  hop:
extensions:
  ask:
    storage: sink
    http:
  hub:
    listeners: {a: {endpoint: "localhost:4001"}}
    sinks: [{max_traces: 1}, {}]
    size: 10%
    wait: "5s" # seconds
    token: "my${WORD:-secret}"
service:
  data_dir: "a $${b} 'c' true"
  extensions: [ask, hub]
  pipelines:
    traces: {receivers: [source], processors: [step], exporters: [sink, hop]}
    traces/spare: {receivers: [source/spare], processors: [step], exporters: [hop]}
`

// flagged returns the fake components with flags.
func flagged(w *hosttest.World) []pipeline.Factory {
	factories := w.Factories()
	for i, f := range factories {
		switch f.Kind().String() + " " + f.Type() {
		case "receiver source":
			factories[i] = f.Doc("Makes spans.").Flags(
				pipeline.Flag{Name: "source.enabled", Switch: true, Doc: "Whether it runs."},
				pipeline.Flag{Name: "source.host-port", Key: "endpoint", Value: hostPort, Doc: "Where it listens."})
		case "exporter sink":
			factories[i] = f.Doc("Keeps | takes spans.").Flags(
				pipeline.Flag{Name: "sink.max-traces", Key: "max_traces", Doc: "How many traces it keeps."},
				pipeline.Flag{Name: "sink.workers", Instead: "there are none"})
		case "extension ask":
			factories[i] = f.Flags(
				pipeline.Flag{Name: "ask.http", Key: "http", Presence: true, Doc: "Whether it listens."},
				pipeline.Flag{Name: "ask.host-port", Key: "http::endpoint", Block: "http", Missing: "only with --ask.http", Value: hostPort,
					Doc: "Where it listens."})
		case "extension hub":
			factories[i] = f.Flags(compatflags.Whole()...).Flags(pipeline.Flag{Name: "hub.token", Key: "token", Doc: "Hidden token."})
		case "extension proxy":
			factories[i] = f.Flags(pipeline.Flag{Name: "proxy.of", Key: "of", Doc: "What it reads."})
		}
	}
	factories = append(factories, addable(w)...)
	return append(factories, pipeline.Exporter("vault", func() hosttest.SinkConfig { return hosttest.SinkConfig{} },
		func(s pipeline.Settings, _ hosttest.SinkConfig) (*hosttest.Sink, error) {
			return &hosttest.Sink{Part: hosttest.Part{World: w, ID: s.ID.String()}}, w.RecordBuild(s, "")
		}))
}

type labelConfig struct {
	Labels map[string]string `yaml:"labels" doc:"What to put on."`
}

// addable returns components that flags add.
func addable(w *hosttest.World) []pipeline.Factory {
	return []pipeline.Factory{
		pipeline.Receiver("spout", func() hosttest.SourceConfig { return hosttest.SourceConfig{Endpoint: "localhost:0"} },
			func(s pipeline.Settings, _ hosttest.SourceConfig, _ pipeline.Consumer) (*hosttest.Part, error) {
				return &hosttest.Part{World: w, ID: s.ID.String()}, w.RecordBuild(s, "")
			}).Flags(
			pipeline.Flag{Name: "spout.host-port", Key: "endpoint", Adds: true, Value: hostPort, Doc: "Where it listens."},
			pipeline.Flag{Name: "spout.enabled", Switch: true, Doc: "Whether it runs."}),
		pipeline.Processor("label", func() labelConfig { return labelConfig{} },
			func(s pipeline.Settings, _ labelConfig, next pipeline.Consumer) (*hosttest.Step, error) {
				return &hosttest.Step{Part: hosttest.Part{World: w, ID: s.ID.String()}, Next: next}, w.RecordBuild(s, "")
			}).Flags(pipeline.Flag{Name: "label.of", Key: "labels", Adds: true, Doc: "What to put on.",
			Value: func(text string) (any, error) {
				switch text {
				case "nothing":
					return nil, nil
				case "bad":
					return nil, errors.New("bad is no label")
				}
				return map[string]string{text: "$" + text, "a: b": "{}"}, nil
			}}),
	}
}

// show runs a command line with the presets `full` and `small` and returns its exit code and
// output.
func show(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := app.Run(t.Context(), args, &stdout, &stderr, flagged(hosttest.NewWorld()),
		app.Preset{Name: "full", YAML: []byte(full)}, app.Preset{Name: "small", YAML: []byte(hosttest.Small)})
	out := fmt.Sprintf("exit code %d\n%s", code, stdout.String())
	if stderr.Len() > 0 {
		out += "standard error:\n" + stderr.String()
	}
	return out
}

// Each file of testdata/show has a command line, `# args: `, environment variables, `# env: `, and
// the expected exit code and output.
func TestShow(t *testing.T) {
	hosttest.EachFile(t, "testdata/show/*.txt", func(t *testing.T, file, text string) {
		args, rest := hosttest.Header(text, "# args: ")
		env, want := hosttest.Header(rest, "# env: ")
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			t.Setenv(name, value)
		}
		got := show(t, strings.Fields(strings.Join(args, " "))...)
		if golden.Updating() {
			golden.Write(t, file, strings.TrimSuffix(text, want)+got)
			return
		}
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

// The output of print-config can be loaded and then prints the same.
func TestPrintedConfigLoadsAgain(t *testing.T) {
	f := func(args ...string) {
		t.Helper()
		args = append([]string{"print-config"}, args...)
		first := show(t, append(args, "full")...)
		file := filepath.Join(t.TempDir(), "printed.yaml")
		text, ok := strings.CutPrefix(first, "exit code 0\n")
		if !ok {
			t.Fatal(first)
		}
		text, _, _ = strings.Cut(text, "standard error:\n")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if second := show(t, append(args, "--config", file)...); second != first {
			t.Errorf("%v: first\n%s\nand then\n%s", args, first, second)
		}
	}
	f()
	f("--defaults")
	f("--source.host-port", "4999")
	f("--defaults", "--set", "service::dead_letter_dir=null", "--set", "service::data_dir=~")
	f("--set", `service::data_dir="null"`, "--set", `extensions::hub::token="*x: {"`, "--set", "extensions::hub::size=1000")
}

// Comments are found by key, even if a value before is the same word.
func TestPrintedMeaning(t *testing.T) {
	got := show(t, "print-config", "full", "--set", "service::data_dir=pipelines")
	if n := strings.Count(got, "# acknowledged spans are "); n != 2 {
		t.Errorf("%d pipelines of 2 have a durability comment:\n%s", n, got)
	}
}

func TestHealthcheck(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintln(w, "asked for", r.URL.Path)
	}))
	at := strings.TrimPrefix(s.URL, "http://")
	f := func(want string, args ...string) {
		t.Helper()
		got := strings.ReplaceAll(show(t, append([]string{"healthcheck"}, args...)...), at, "ADDRESS")
		if got, _, _ = strings.Cut(got, "\n\nusage: "); strings.TrimSpace(got) != want {
			t.Errorf("%v: got %q, want %q", args, got, want)
		}
	}
	port := at[strings.LastIndexByte(at, ':')+1:]
	f("exit code 0\nready", "--endpoint", at)
	f("exit code 0\nready", "--endpoint", port)
	f("exit code 0\nready", "--endpoint", ":"+port)
	status = http.StatusServiceUnavailable
	f("exit code 1\nstandard error:\ntracing: not ready: 503 Service Unavailable: asked for /readyz", "--endpoint", at)
	s.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	f("exit code 1\nstandard error:\ntracing: not ready: 404 Not Found: 404 page not found", "--endpoint", secure.URL)
	secure.Close()
	f("exit code 1\nstandard error:\ntracing: Get \"http://ADDRESS/readyz\": dial tcp ADDRESS: connect: connection refused", "--endpoint", at)
	f("exit code 1\nstandard error:\ntracing: \"x\" is not an address; write host:port", "--endpoint", "x")
	f("exit code 2\nstandard error:\ntracing: configuration has no extension that serves health checks; give --endpoint host:port")
	f("exit code 2\nstandard error:\nunknown preset \"ful\"; did you mean \"full\"?", "ful")
}

// hostPort completes a bare port.
func hostPort(text string) (any, error) {
	if !strings.Contains(text, ":") {
		return ":" + text, nil
	}
	return text, nil
}
