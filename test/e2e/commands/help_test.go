package commands_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/test/harness"
)

// execute runs the program with additional environment variables, as NAME=VALUE, and returns its
// output.
func execute(t *testing.T, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	return out.String(), log.String(), err
}

// Help for a command is about that command only, and fits on a screen.
func TestHelp(t *testing.T) {
	overview, _, err := execute(t, nil, "help")
	if lines := strings.Count(overview, "\n"); err != nil || lines > 66 || strings.Contains(overview, "--collector.") {
		t.Errorf("%v: overview has %d lines:\n%s", err, lines, overview)
	}
	manual, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range commands.Variables() {
		if !strings.Contains(overview, v.Name) || !strings.Contains(string(manual), "`"+v.Name+"`") {
			t.Errorf("%s is not in the overview or in docs/cli.md", v.Name)
		}
	}
	for _, command := range []string{"validate", "delete", "healthcheck", "migrate", "trace", "search", "services", "canary", "demo",
		"doctor", "store inspect", "store export", "sampling explain", "completion", "components"} {
		words := strings.Fields(command)
		long, _, err := execute(t, nil, append([]string{"help"}, words...)...)
		if lines := strings.Count(long, "\n"); err != nil || lines > 40 || !strings.HasPrefix(long, "usage: tracing ") ||
			!strings.Contains(long, "\nexamples:\n  tracing") && command != "completion" {
			t.Errorf("help %s: %v, %d lines:\n%s", command, err, lines, long)
		}
		flag, _, err := execute(t, nil, append(words, "--help")...)
		if err != nil || flag != long {
			t.Errorf("%s --help: %v, %s", command, err, flag)
		}
	}
	flags, _, err := execute(t, nil, "help", "flags")
	if err != nil || !strings.Contains(flags, "--collector.otlp.grpc.host-port") || !strings.Contains(flags, "--data-dir") {
		t.Errorf("help flags: %v, %s", err, flags)
	}
	for _, args := range []string{"frobnicate", "--frobnicate", "store frobnicate", "help frobnicate", "validate --frobnicate"} {
		_, stderr, err := execute(t, nil, strings.Fields(args)...)
		if lines := strings.Count(stderr, "\n"); err == nil || lines > 14 || !strings.Contains(stderr, "Run \"tracing help") {
			t.Errorf("%s: %v, %d lines:\n%s", args, err, lines, stderr)
		}
	}
}

// Help for a preset lists the flags that change it, and only on request those that change nothing.
func TestPresetHelp(t *testing.T) {
	for preset, flags := range map[string][3]string{ // with an effect, without one in the preset, without one in any
		"all-in-one": {"--collector.otlp.grpc.host-port", "--kafka.consumer.brokers", "--es.*"},
		"agent":      {"--reporter.grpc.host-port", "--collector.otlp.grpc.host-port", "--memory.max-traces"},
	} {
		short, _, err := execute(t, nil, preset, "--help")
		if err != nil || !strings.Contains(short, flags[0]+" ") || strings.Contains(short, flags[1]+" ") || strings.Contains(short, flags[2]) ||
			!strings.Contains(short, "tracing "+preset+" --help=all") {
			t.Errorf("%s: %v\n%s", preset, err, short)
		}
		if again, _, err := execute(t, nil, "help", preset); err != nil || again != short {
			t.Errorf("help %s: %v\n%s", preset, err, again)
		}
		long, _, err := execute(t, nil, preset, "--help=all")
		if err != nil || !strings.Contains(long, flags[2]) || strings.Contains(long, flags[1]+" ") {
			t.Errorf("%s --help=all: %v\n%s", preset, err, long)
		}
	}
}

// Commands that connect to a running process find it by environment variables.
func TestAddressesFromEnvironment(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir(), "exporters.disk.allow_delete=true")
	env := []string{"TRACING_QUERY_URL=" + p.QueryURL(), "TRACING_ADMIN_URL=" + p.AdminURL(), "TRACING_OTLP_URL=http://" + p.OTLPHTTP(),
		"TRACING_SAMPLING_URL=http://" + p.Address("sampling", "http")}
	for _, args := range []string{"canary --once 1", "services", "search", "healthcheck", "delete --service none --yes",
		"sampling explain cart"} {
		if _, stderr, err := execute(t, env, strings.Fields(args)...); err != nil {
			t.Errorf("%s: %v: %s", args, err, stderr)
		}
	}
	p.Terminate()
	for args, want := range map[string]string{
		"services":              "http://127.0.0.9:16686",
		"canary --once 1":       "http://127.0.0.9:",
		"healthcheck":           "127.0.0.9:14269",
		"healthcheck agent":     "127.0.0.9:14271",
		"delete --trace 1":      "http://127.0.0.9:14269",
		"sampling explain cart": "http://127.0.0.9:14268",
	} {
		_, stderr, err := execute(t, []string{"TRACING_LISTEN_HOST=127.0.0.9"}, strings.Fields(args)...)
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: %v: %s, want %s", args, err, stderr, want)
		}
	}
	if _, stderr, _ := execute(t, []string{"TRACING_LISTEN_HOST=::"}, "services"); !strings.Contains(stderr, "http://localhost:16686") {
		t.Errorf("listening on all interfaces: %s", stderr)
	}
}

// Unknown paths are not found: neither the health check of the admin port nor the web UI answers.
func TestUnknownPaths(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir())
	for url, want := range map[string]string{
		p.AdminURL() + "/metric":             "not found; this port serves /, /healthz, /readyz, /status, /metrics",
		p.QueryURL() + "/api/trace/1":        `"errors":[{"code":404,"msg":"no API has GET /api/trace/1; see docs/apis.md"}]`,
		p.QueryURL() + "/api/v3/none":        `"code":404`,
		p.QueryURL() + "/api/traces/1/2/3/4": `"code":404`,
	} {
		if status, body := harness.Fetch(t, url); status != 404 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
}
