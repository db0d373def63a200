package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/compatflags"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// changedLines returns the lines of print-config --origin that differ from the preset
// all-in-one, and the warnings and errors.
func changedLines(t *testing.T, args ...string) string {
	t.Helper()
	return changedLinesOf(t, "all-in-one", args...)
}

func changedLinesOf(t *testing.T, preset string, args ...string) string {
	t.Helper()
	_, stdout, stderr := inprocess.RunCommand(t, append([]string{"print-config", preset, "--origin"}, args...)...)
	var out []string
	var problems string
	for line := range strings.Lines(stdout) {
		if _, origin, ok := strings.Cut(line, " # "); ok && !strings.HasPrefix(origin, "preset ") && !strings.Contains(line, "acknowledged") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(stderr) { // a number is a port on all interfaces, as established
		if !strings.Contains(line, "address without a host listens on all interfaces") {
			problems += line
		}
	}
	return strings.Join(out, "\n") + problems
}

// TestFlags sets flags on the command line and by environment variables.
func TestFlags(t *testing.T) {
	f := func(flag, value, want string) {
		t.Helper()
		if got := changedLines(t, "--"+flag+"="+value); got != want+" # --"+flag {
			t.Errorf("--%s=%s: got %q, want %q", flag, value, got, want)
		}
		env := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(flag))
		t.Setenv(env, value)
		if got := changedLines(t); got != want+" # environment "+env {
			t.Errorf("%s=%s: got %q, want %q", env, value, got, want)
		}
		t.Setenv(env, "")
	}
	f("log-level", "DEBUG", "level: debug")
	f("log-level", "fatal", "level: error")
	f("admin.http.host-port", ":14270", "endpoint: :14270")
	f("collector.otlp.grpc.host-port", "4400", "endpoint: :4400")
	f("collector.otlp.grpc.max-message-size", "4194305", "max_recv_msg_size_mib: 5")
	f("collector.otlp.grpc.max-connection-age", "5m", "max_connection_age: 5m")
	f("collector.otlp.grpc.max-connection-age-grace", "30s", "max_connection_age_grace: 30s")
	f("collector.otlp.http.host-port", "0.0.0.0:4318", "endpoint: 0.0.0.0:4318")
	f("collector.otlp.http.idle-timeout", "3s", "idle_timeout: 3s")
	f("collector.otlp.http.read-timeout", "3s", "read_timeout: 3s")
	f("collector.otlp.http.read-header-timeout", "3s", "read_header_timeout: 3s")
	f("query.http-server.host-port", "[::1]:1", "endpoint: '[::1]:1'")
	f("query.base-path", "/tracing", "base_path: /tracing")
	f("query.grpc-server.host-port", "16685", "endpoint: :16685")
	f("query.static-files", "/ui", "path: /ui")
	f("query.max-clock-skew-adjustment", "5s", "max_clock_skew_adjustment: 5s")
	f("query.bearer-token-propagation", "true", "bearer_token_propagation: true")
	f("query.additional-headers", "X-A: b: c", "X-A: 'b: c'")
}

func TestSecurityFlags(t *testing.T) {
	got := changedLines(t, "--multi-tenancy.enabled", "--multi-tenancy.tenants=a,b", "--set=receivers::thriftudp::tenant=a",
		"--collector.otlp.grpc.tls.cert=c.pem", "--collector.otlp.grpc.tls.key", "k.pem", "--collector.otlp.grpc.tls.enabled=true",
		"--collector.otlp.http.cors.allowed-origins=https://a, https://b", "--query.http.tls.enabled=false")
	const tenancy = "enabled: true # --multi-tenancy.enabled\ntenants: [a, b] # --multi-tenancy.tenants"
	want := strings.Join([]string{
		"cert_file: c.pem # --collector.otlp.grpc.tls.cert",
		"key_file: k.pem # --collector.otlp.grpc.tls.key",
		tenancy, // gRPC
		tenancy, // HTTP
		"allowed_origins: ['https://a', 'https://b'] # --collector.otlp.http.cors.allowed-origins",
		tenancy, // native, gRPC
		tenancy, // native, HTTP
		"tenant: a # --set receivers::thriftudp::tenant",
		tenancy, // query, HTTP
		tenancy, // query, gRPC
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	t.Setenv("ADMIN_HTTP_TLS_CERT", "c.pem")
	const problem = "environment ADMIN_HTTP_TLS_CERT: admin.http.tls.* options cannot be used when admin.http.tls.enabled is false\n"
	if got := changedLines(t); got != problem {
		t.Errorf("got %q, want %q", got, problem)
	}
}

func TestFlagsWithoutEffect(t *testing.T) {
	for _, flag := range []string{"memory.max-traces", "metrics-backend", "metrics-http-route", "collector.num-workers",
		"collector.queue-size", "collector.queue-size-memory", "query.log-static-assets-access", "query.enable-tracing"} {
		if got := changedLines(t, "--"+flag+"=1"); !strings.HasPrefix(got, "warning: --"+flag+": has no effect: ") {
			t.Errorf("--%s: %q", flag, got)
		}
	}
	const want = "--collector.otlp.grpc.max-message-size: \"4MiB\" is not a number of bytes from 1 to 2147483647\n"
	if got := changedLines(t, "--collector.otlp.grpc.max-message-size", "4MiB"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOrder checks that help texts list flags in the same order each time.
func TestOrder(t *testing.T) {
	names := func() (names []string) {
		for _, f := range compatflags.Sampling() {
			names = append(names, f.Name)
		}
		return names
	}
	if a, b := names(), names(); !slices.Equal(a, b) {
		t.Errorf("got %s, then %s", a, b)
	}
}
