package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// execute runs the command line with the presets `small` and `empty`.
func execute(ctx context.Context, w *hosttest.World, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	presets := []app.Preset{{Name: "small", YAML: []byte(hosttest.Small)}, {Name: "empty"}}
	code = app.Run(ctx, args, &out, &err, w.Factories(), presets...)
	return code, out.String(), err.String()
}

func TestCommandLine(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const valid, nothing = "the configuration is valid\n", "nothing to run: service.pipelines needs at least one pipeline, for example " +
		"traces: {receivers: [source], exporters: [sink]}\n"
	spare, bad := file("exporters: {sink/spare: }"), file("exporters: {sink: {max_traces: x}}")
	f := func(args string, code int, stdout, stderr string) {
		t.Helper()
		gotCode, gotOut, gotErr := execute(t.Context(), hosttest.NewWorld(), strings.Fields(args)...)
		gotErr, _, _ = strings.Cut(gotErr, "\nusage: ")
		gotErr, _, _ = strings.Cut(gotErr, "\nRun \"tracing help\" for an overview.\n")
		if gotCode != code || !strings.HasPrefix(gotOut, stdout) || stdout == "" && gotOut != "" || gotErr != stderr {
			t.Errorf("%s:\n got %d, %q, %q\nwant %d, %q, %q", args, gotCode, gotOut, gotErr, code, stdout, stderr)
		}
	}
	const usage = "usage: tracing [PRESET] [flags]"
	f("help", 0, usage+"   run a preset", "")
	f("--help", 0, usage+"   run a preset", "")
	f("small --help", 0, "usage: tracing small [flags]\n\nRun the preset small.", "")
	f("help small", 0, "usage: tracing small [flags]\n\nRun the preset small.", "")
	f("validate -h", 0, "usage: tracing validate [PRESET] [flags]\n\nCheck the configuration", "")
	f("help validate", 0, "usage: tracing validate [PRESET] [flags]\n\nCheck the configuration", "")
	f("help flags", 0, "Flags of the commands that load a configuration.", "")
	f("version", 0, "tracing dev ", "")
	f("--version", 0, "tracing dev ", "")
	f("validate", 0, valid, "")
	f("validate small", 0, valid, "")
	f("validate --log-level debug --set exporters.sink.max_traces=7", 0, valid, "")
	const unused = ":1:13: exporters.sink/spare: is configured but not used: no pipeline lists it\n"
	f("validate small --config "+spare, 0, valid, "warning: "+spare+unused)
	f("validate small --strict --config "+spare, 2, "", spare+unused)
	f("validate small --config "+spare+" --config "+bad, 2, "",
		bad+":1:32: exporters.sink.max_traces: \"x\" is not a whole number\n")
	f("validate empty", 2, "", "preset empty: "+nothing)
	f("validate smal", 2, "", "unknown preset \"smal\"; did you mean \"small\"?\n")
	f("validate --config no/such.yaml", 2, "", "cannot read configuration: open no/such.yaml: no such file or directory\n")
	f("empty", 2, "", "preset empty: "+nothing)
	f("smal", 2, "", "tracing: unknown command or preset \"smal\"; did you mean \"small\"?\n")
	f("valdate", 2, "", "tracing: unknown command or preset \"valdate\"; did you mean \"validate\"?\n")
	f("frobnicate", 2, "", "tracing: unknown command or preset \"frobnicate\"; known: "+
		"completion, components, delete, docs, empty, graph, healthcheck, help, print-config, small, validate, version\n")
	f("help frobnicate", 2, "", "tracing: unknown command or preset \"frobnicate\"; known: "+
		"completion, components, delete, docs, empty, graph, healthcheck, help, print-config, small, validate, version\n")
	f("completion tcsh", 2, "", "tracing: unknown shell \"tcsh\"; write bash, zsh or fish\n")
	f("--confg x", 2, "", "tracing: unknown flag --confg; did you mean --config?\n")
	f("validate --str", 2, "", "tracing: unknown flag --str; did you mean --strict?\n")
	f("--verison", 2, "", "tracing: unknown flag --verison; did you mean --version?\n")
	f("-v", 2, "", "tracing: unknown flag --v; did you mean --version?\n")
	f("--frobnicate", 2, "", "tracing: unknown flag --frobnicate\n")
	f("small --version", 0, "tracing dev ", "")
	f("help source", 2, "", "tracing: unknown command or preset \"source\"; "+
		"for the keys of this component, run \"tracing components source\"\n")
	f("--config", 2, "", "tracing: --config has no value\n")
	f("validate --strict small", 0, valid, "")
	f("version x", 2, "", "tracing: unexpected argument \"x\"\n")
	f("components a b", 2, "", "tracing: unexpected argument \"b\"\n")
	f("small large", 2, "", "tracing: unexpected argument \"large\"\n")
	f("--set x", 2, "", "tracing: --set: write path=value, for example --set service::telemetry::logs::level=debug\n")
	f("--log-level loud", 2, "",
		"--log-level: service.telemetry.logs.level: \"loud\" is not a log level; write debug, info, warn or error\n")
	f("--log-level null", 2, "",
		"--log-level: service.telemetry.logs.level: \"null\" is not a log level; write debug, info, warn or error\n")
	f("--set exporters.sink=[1] --set receivers.surce.x=1", 2, "", "--set exporters.sink: exporters.sink: "+
		"must be a block of keys, not a list: max_traces\n"+
		"--set receivers.surce.x: receivers: unknown receiver type \"surce\"; did you mean \"source\"?\n")
}

// Validating builds the components but neither starts nor stops them.
func TestValidateStartsNothing(t *testing.T) {
	w := hosttest.NewWorld()
	w.Fail["build sink"] = errors.New("cannot be")
	code, _, stderr := execute(t.Context(), w, "validate")
	if code != 2 || stderr != "tracing: building exporter sink: cannot be\n" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if got := strings.Join(w.Events, ", "); got != "build sink" {
		t.Errorf("events: %s", got)
	}
}

func TestRunUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := hosttest.NewWorld()
	w.OnEvent = func(event string) {
		if event == "start source" {
			cancel()
		}
	}
	code, stdout, stderr := execute(ctx, w)
	if code != 0 || stdout != "" {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	if got := strings.Join(w.Events, ", "); got != "build sink, build source, start sink, start source, stop source, stop sink" {
		t.Errorf("events: %s", got)
	}
	for _, want := range []string{`"msg":"Health Check state change","status":"ready"`, `"msg":"stopping","at-most":"30s"`,
		`"msg":"Health Check state change","status":"unavailable"`} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no line with %s in\n%s", want, stderr)
		}
	}
	all := strings.Split(strings.TrimSpace(stderr), "\n")
	want := `"msg":"final accounting of spans","components":[{"component":"source","kind":"receiver","received":0,"accepted":0},` +
		`{"component":"sink","kind":"exporter","in":0,"sent":0}],"balanced":true,"peak-inflight-bytes":0}`
	if last := all[len(all)-1]; !strings.HasSuffix(last, want) {
		t.Errorf("the last line is %s", last)
	}
}

func TestRunFails(t *testing.T) {
	f := func(event, wantLog string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := hosttest.NewWorld()
		w.Fail[event] = errors.New("port taken")
		code, _, stderr := execute(ctx, w, "--log-level=error")
		if code != 1 || !strings.Contains(stderr, wantLog) {
			t.Errorf("%s: exit code %d, log\n%s", event, code, stderr)
		}
	}
	f("start source", `"msg":"cannot start","error":"starting receiver source: port taken"`)
	f("stop sink", `"msg":"did not stop cleanly","error":"stopping exporter sink: port taken"`)
}

// With log-encoding console, the log is text.
func TestConsoleLog(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, stderr := execute(ctx, hosttest.NewWorld(), "--set", "service.telemetry.logs.encoding=console")
	if first, _, _ := strings.Cut(stderr, "\n"); strings.HasPrefix(first, "{") || !strings.Contains(first, "\tinfo\t") {
		t.Errorf("the log begins with %s", first)
	}
}
