package config_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestCollectorFlags(t *testing.T) {
	f := func(flag, value, want string) {
		t.Helper()
		if got := changedLinesOf(t, "collector", "--"+flag+"="+value); got != want+" # --"+flag {
			t.Errorf("--%s=%s: got %q, want %q", flag, value, got, want)
		}
	}
	f("collector.grpc-server.host-port", ":1", "endpoint: :1")
	f("collector.grpc-server.max-message-size", "4194305", "max_recv_msg_size_mib: 5")
	f("collector.grpc-server.max-connection-age", "5m", "max_connection_age: 5m")
	f("collector.grpc-server.max-connection-age-grace", "5m", "max_connection_age_grace: 5m")
	f("collector.http-server.host-port", "1", "endpoint: :1")
	f("collector.http-server.idle-timeout", "3s", "idle_timeout: 3s")
	f("collector.http-server.read-timeout", "3s", "read_timeout: 3s")
	f("collector.http-server.read-header-timeout", "3s", "read_header_timeout: 3s")
	f("sampling.strategies-file", "http://host/s.json", "path: http://host/s.json")
	f("sampling.strategies-reload-interval", "3s", "reload_interval: 3s")
	got := changedLinesOf(t, "collector", "--collector.grpc.tls.enabled", "--collector.grpc.tls.cert=c", "--collector.grpc.tls.key=k",
		"--collector.http.tls.enabled", "--collector.http.tls.cert=c", "--collector.http.tls.key=k", "--collector.http.tls.client-ca=ca")
	const want = "cert_file: c # --collector.grpc.tls.cert\nkey_file: k # --collector.grpc.tls.key\n" +
		"cert_file: c # --collector.http.tls.cert\nkey_file: k # --collector.http.tls.key\nclient_ca_file: ca # --collector.http.tls.client-ca"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, flag := range []string{"collector.enable-span-size-metrics",
		"sampling.strategies.bugfix-5270", "downsampling.hashsalt"} {
		if got := changedLinesOf(t, "collector", "--"+flag+"=x"); !strings.HasPrefix(got, "warning: --"+flag+": has no effect: ") {
			t.Errorf("--%s: %q", flag, got)
		}
	}
}

// TestAdaptiveSamplingFlags checks that adaptive sampling replaces the strategies file, uses the
// store of the configuration, and adds its processor to the pipeline.
func TestAdaptiveSamplingFlags(t *testing.T) {
	t.Setenv("SAMPLING_CONFIG_TYPE", "file")
	if got := changedLinesOf(t, "collector"); got != "" {
		t.Errorf("file is the default; got\n%s", got)
	}
	t.Setenv("SAMPLING_CONFIG_TYPE", "adaptive")
	const env = " # environment SAMPLING_CONFIG_TYPE"
	want := "sampling: sampling" + env + "\nstorage: disk" + env + "\ntarget_samples_per_second: 7 # --sampling.target-samples-per-second\n" +
		"calculation_delay: 1m # --sampling.delay\nprocessors: [adaptive_sampling, batch]" + env
	if got := changedLinesOf(t, "collector", "--sampling.delay=1m", "--sampling.target-samples-per-second=7"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := changedLinesOf(t, "collector", "--span-storage.type=memory")
	if strings.Contains(got, "disk") || strings.Count(got, "storage: memory") != 2 {
		t.Errorf("with another store, got\n%s", got)
	}
	want = "sampling: sampling" + env + "\nstorage: clickhouse" + env + "\nprocessors: [adaptive_sampling, batch]" + env
	if got := changedLinesOf(t, "collector-clickhouse"); got != want {
		t.Errorf("with ClickHouse, got\n%s\nwant\n%s", got, want)
	}
	// The variable may be set for all processes of a host. An agent still gets the strategies from
	// its collector.
	want = "sampling: sampling" + env + "\nprocessors: [adaptive_sampling, batch]" + env
	if got := changedLinesOf(t, "agent"); got != want {
		t.Errorf("in an agent, got\n%s\nwant\n%s", got, want)
	}
}

// TestStorageFlags checks that flags of the store that --span-storage.type adds take effect, also
// those that decide whether other flags apply, in any order and by environment variables.
func TestStorageFlags(t *testing.T) {
	const store, server, enabled, ca = "--span-storage.type=grpc", "--grpc-storage.server=host:1",
		"--grpc-storage.tls.enabled=true", "--grpc-storage.tls.ca=ca.pem"
	const want = "endpoint: host:1 # --grpc-storage.server\n" +
		"insecure: false # --grpc-storage.tls.enabled\nca_file: ca.pem # --grpc-storage.tls.ca"
	for _, preset := range []string{"all-in-one", "collector"} {
		for _, args := range [][]string{{store, server, enabled, ca}, {ca, enabled, server, store}} {
			got := changedLinesOf(t, preset, args...)
			for _, line := range strings.Split(want, "\n") {
				if !strings.Contains(got, line) {
					t.Errorf("%s %v: %s is missing in\n%s", preset, args, line, got)
				}
			}
		}
		got := changedLinesOf(t, preset, store, server, ca, "--grpc-storage.tls.enabled=false")
		if !strings.Contains(got, "cannot be used when grpc-storage.tls.enabled is false") {
			t.Errorf("%s: without TLS, got\n%s", preset, got)
		}
	}
	const two = "endpoints: ['host:1', 'host:2'] # --grpc-storage.server"
	if got := changedLinesOf(t, "query", "--grpc-storage.server=host:1, host:2"); got != two {
		t.Errorf("with several servers, got\n%s\nwant\n%s", got, two)
	}
	t.Setenv("SPAN_STORAGE_TYPE", "grpc")
	t.Setenv("GRPC_STORAGE_SERVER", "host:1")
	t.Setenv("GRPC_STORAGE_TLS_ENABLED", "true")
	if got := changedLinesOf(t, "collector"); !strings.Contains(got, "insecure: false # environment GRPC_STORAGE_TLS_ENABLED") {
		t.Errorf("by environment variables, got\n%s", got)
	}
}

// TestZipkinFlags checks that the flags add a Zipkin receiver, which the presets do not have.
func TestZipkinFlags(t *testing.T) {
	for _, preset := range []string{"all-in-one", "collector"} {
		receivers := "otlp, native"
		if preset == "all-in-one" {
			receivers += ", thriftudp"
		}
		const origin = "--collector.zipkin.host-port"
		want := fmt.Sprintf("endpoint: :9411 # %[1]s\nreceivers: [%[2]s, zipkin] # %[1]s", origin, receivers)
		if got := changedLinesOf(t, preset, origin, "9411"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", preset, got, want)
		}
		if got := changedLinesOf(t, preset, origin, ""); got != "" {
			t.Errorf("%s: with an empty address, got\n%s", preset, got)
		}
		const problem = "no receiver of type zipkin is configured; " + origin + " and --collector.zipkin.http-port add one"
		if got := changedLinesOf(t, preset, "--collector.zipkin.tls.enabled"); !strings.Contains(got, problem) {
			t.Errorf("%s: %q", preset, got)
		}
	}
	t.Setenv("COLLECTOR_ZIPKIN_HOST_PORT", ":9411")
	got := changedLinesOf(t, "collector", "--collector.zipkin.tls.enabled", "--collector.zipkin.tls.cert=c", "--collector.zipkin.tls.key=k",
		"--collector.zipkin.cors.allowed-origins=*", "--multi-tenancy.enabled")
	for _, line := range []string{
		"endpoint: :9411 # environment COLLECTOR_ZIPKIN_HOST_PORT",
		"cert_file: c # --collector.zipkin.tls.cert",
		"allowed_origins: ['*'] # --collector.zipkin.cors.allowed-origins",
		"receivers: [otlp, native, zipkin] # environment COLLECTOR_ZIPKIN_HOST_PORT",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
	if n := strings.Count(got, "enabled: true # --multi-tenancy.enabled"); n != 6 {
		t.Errorf("%d of 6 listeners have tenancy", n)
	}
	t.Setenv("COLLECTOR_ZIPKIN_HOST_PORT", "")
	t.Setenv("COLLECTOR_ZIPKIN_TLS_ENABLED", "true")
	if got := changedLinesOf(t, "agent"); !strings.HasPrefix(got, "warning: environment COLLECTOR_ZIPKIN_TLS_ENABLED: has no effect: ") {
		t.Errorf("with a variable for another program, got %q", got)
	}
}
