package config_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

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

func TestDataDir(t *testing.T) {
	f := func(want string, env []string, args ...string) {
		t.Helper()
		out, _, err := execute(t, env, append([]string{"print-config"}, args...)...)
		if err != nil || !strings.Contains(out, "data_dir: "+want+"\n") {
			t.Errorf("%v %v: %v, want data_dir: %s in\n%s", env, args, err, want, out)
		}
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("service: {data_dir: /from/file}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f("/from/file", nil, "agent", "--config", file)
	f("/from/variable", []string{"TRACING_DATA_DIR=/from/variable"}, "agent", "--config", file)
	f("/from/flag", []string{"TRACING_DATA_DIR=/from/variable"}, "--data-dir=/from/flag")
	f("./data", []string{"TRACING_DATA_DIR="})
	f("./data", []string{"DATA_DIR=/of/something/else"})
}

// A folder that cannot be used is reported with its absolute path, the user, and what to do.
func TestUnusableDataDir(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "data")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(run *exec.Cmd, want ...string) {
		t.Helper()
		out, err := run.CombinedOutput()
		if err == nil || !containsAll(string(out), want) {
			t.Errorf("%v: %v, want %q in\n%s", run.Args, err, want, out)
		}
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(harness.Binary(t), append(args, "--data-dir=data")...)
		cmd.Dir = dir
		return cmd
	}
	start := append([]string{"all-in-one"}, harness.SetArgs(anyPort...)...)
	f(command("validate"), "folder "+name+", user ", "remove the file that is in the way", "--data-dir, TRACING_DATA_DIR or service.data_dir")
	f(command(start...), "cannot start", "folder "+name+", user ", "remove the file that is in the way")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	running := harness.RunAllInOne(t, name)
	f(command(start...), "locked by another process", "folder "+name+", user ", "configure another folder")
	running.Terminate()
	if os.Geteuid() != 0 {
		t.Log("not root: files that belong to another user are not tested")
		return
	}
	for _, d := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(harness.Binary(t))), filepath.Dir(harness.Binary(t))} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	other := command(start...)
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	f(other, "permission denied", "folder "+name+", user ", "uid 65534", "make the folder writable for this user (chown -R 65534)")
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

// anyPort are settings with which all-in-one listens on free ports.
var anyPort = []string{
	"receivers.otlp.protocols.grpc.endpoint=localhost:0", "receivers.otlp.protocols.http.endpoint=localhost:0",
	"receivers.native.protocols.grpc.endpoint=localhost:0", "receivers.native.protocols.http.endpoint=localhost:0",
	"receivers.thriftudp.compact.endpoint=localhost:0", "receivers.thriftudp.binary.endpoint=localhost:0",
	"receivers.thriftudp.zipkin.endpoint=localhost:0", "extensions.sampling.http.endpoint=localhost:0",
	"extensions.query.http.endpoint=localhost:0", "extensions.query.grpc.endpoint=localhost:0", "extensions.admin.endpoint=localhost:0",
}

func TestIPv6Host(t *testing.T) {
	f := func(env []string, args ...string) {
		t.Helper()
		if _, stderr, err := execute(t, env, append([]string{"validate"}, args...)...); err != nil || stderr != "" {
			t.Errorf("%v %v: %v: %s", env, args, err, stderr)
		}
	}
	f([]string{"TRACING_LISTEN_HOST=::1"})
	f([]string{"TRACING_LISTEN_HOST=[::1]"})
	f([]string{"TRACING_LISTEN_HOST=::"})
	f(nil, "--collector.zipkin.host-port=2001:db8::1:9411", "--collector.otlp.grpc.host-port=[2001:db8::1]:4317")
	f([]string{"TRACING_COLLECTOR_HOST=::1"}, "agent")
	f([]string{"TRACING_STORAGE_HOST=2001:db8::1"}, "query")
	_, stderr, err := execute(t, nil, "validate", "--collector.zipkin.host-port=::1")
	if want := `"::1" is not an address; write [host]:port for an IPv6 address`; err == nil || !strings.Contains(stderr, want) {
		t.Errorf("%v: %s, want %s", err, stderr, want)
	}
	if ln, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Log("this machine has no IPv6, listening is not tested:", err)
	} else {
		ln.Close()
		p := harness.RunYAML(t, `
receivers: {zipkin: {endpoint: "::1:0"}}
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0"}}
service: {extensions: [admin], pipelines: {traces: {receivers: [zipkin], exporters: [nop]}}}`)
		if a := p.Address("zipkin", "http"); !strings.HasPrefix(a, "[::1]:") {
			t.Errorf("listens on %s", a)
		}
	}
}

func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	file := func(yaml string) string {
		name := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(name, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	f := func(want string, env []string, args ...string) {
		t.Helper()
		_, stderr, err := execute(t, env, append([]string{"validate"}, args...)...)
		if got := strings.ReplaceAll(stderr, dir+"/", ""); err != nil || got != want {
			t.Errorf("%v %v: %v\n got %swant %s", env, args, err, got, want)
		}
	}
	f("", nil)
	f("warning: --collector.zipkin.host-port: address without a host listens on all interfaces: receivers.zipkin.endpoint (:9411), "+
		"extensions.admin.endpoint (:14269); write a host before the colon: localhost, or 0.0.0.0 for all\n",
		nil, "--collector.zipkin.host-port=:9411", "--admin.http.host-port=14269")
	f("", []string{"TRACING_LISTEN_HOST=0.0.0.0"})

	zipkin := "receivers: {zipkin: }\nservice:\n  pipelines:\n    traces:\n      receivers: [zipkin]\n"
	f("warning: c.yaml:5:18: service.pipelines.traces.receivers: replaces the list of the preset and switches off "+
		"native, otlp, thriftudp, because lists are not merged; to keep all, write [zipkin, native, otlp, thriftudp]; "+
		"to switch them off on purpose, write `native: null`, `otlp: null`, `thriftudp: null` below receivers\n", nil, "all-in-one", "--config", file(zipkin))
	f("", nil, "all-in-one", "--config",
		file(strings.Replace(zipkin, "{zipkin: }", "{zipkin: , native: null, otlp: null, thriftudp: null}", 1)))
	f("", nil, "all-in-one", "--config", file(strings.Replace(zipkin, "[zipkin]", "[zipkin, native, otlp, thriftudp]", 1)))
	f("warning: --set service.extensions: service.extensions: replaces the list of the preset and switches off "+
		"admin, sampling, because lists are not merged; to keep all, write [query, admin, sampling]; "+
		"to switch them off on purpose, write `admin: null`, `sampling: null` below extensions\n",
		nil, "--set", "service.extensions=[query]", "--set", "receivers.native.sampling=null")

	f("warning: environment TRACING_LISTN_HOST: unknown environment variable has no effect; did you mean \"TRACING_LISTEN_HOST\"?\n",
		[]string{"TRACING_LISTN_HOST=0.0.0.0"})
	f("warning: environment TRACING_LOG_LEVEL: unknown environment variable has no effect; did you mean \"LOG_LEVEL\"?\n",
		[]string{"TRACING_LOG_LEVEL=debug"})
	f("", []string{"TRACING_MY_PORT_NUMBER=4317"}, "--set", "receivers.otlp.protocols.grpc.endpoint=localhost:${TRACING_MY_PORT_NUMBER}")
	f("", []string{"TRACING_SERVICE_HOST=10.0.0.1", "TRACING_SERVICE_PORT_OTLP=4317", "TRACING_COLLECTOR_PORT_4317_TCP_ADDR=10.0.0.1",
		"TRACING_PORT=tcp://10.0.0.1:4317", "TRACING_SAMPLER_TYPE=const", "TRACING_AGENT_HOST=agent"})
}
