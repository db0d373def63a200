package compatflags_test

import (
	"fmt"
	"strings"
	"testing"
)

// An agent's command line means what it meant, under both names of its processors.
func TestAgentFlags(t *testing.T) {
	f := func(flag, value, want string) {
		t.Helper()
		if got := overlaidOn(t, "agent", "--"+flag+"="+value); got != want+" # --"+flag {
			t.Errorf("--%s=%s: got %q, want %q", flag, value, got, want)
		}
	}
	twice := func(flag, value, want string) { // of the connection for spans, and of the one for strategies
		t.Helper()
		f(flag, value, want+" # --"+flag+"\n"+want)
	}
	f("http-server.host-port", ":1", "endpoint: :1")
	for _, name := range []string{"tracing-compact", "jaeger-compact", "tracing-binary", "jaeger-binary", "zipkin-compact"} {
		p := "processor." + name + "."
		f(p+"server-host-port", "7000", "endpoint: :7000")
		f(p+"server-host-port", "0.0.0.0:6839", "endpoint: 0.0.0.0:6839")
		f(p+"server-max-packet-size", "1000", "max_packet_size: 1000")
		f(p+"server-max-packet-size", "65536", "max_packet_size: 65527")
		f(p+"server-queue-size", "2000", "queue_size: 131072000")
		f(p+"server-queue-size", "1", "queue_size: 1048576")
		f(p+"server-socket-buffer-size", "0", "socket_buffer: 0")
		f(p+"workers", "50", "workers: 50")
	}
	twice("reporter.grpc.host-port", "a:14250, b:14250", "endpoint: a:14250,b:14250")
	twice("reporter.grpc.host-port", "dns:///collectors:14250", "endpoint: dns:///collectors:14250")
	twice("reporter.grpc.tls.enabled", "true", "insecure: false")
	t.Setenv("REPORTER_GRPC_TLS_ENABLED", "true")
	const tls = "insecure: false # environment REPORTER_GRPC_TLS_ENABLED\n"
	twice("reporter.grpc.tls.ca", "ca.pem", tls+"ca_file: ca.pem")
	twice("reporter.grpc.tls.server-name", "c", tls+"server_name_override: c")
	twice("reporter.grpc.tls.skip-host-verify", "true", tls+"insecure_skip_verify: true")
}

// Whoever asks for something of TLS gets TLS, or no agent.
func TestClientTLSFlagsNeedTLS(t *testing.T) {
	for _, flag := range []string{"ca=ca.pem", "cert=c.pem", "key=k.pem", "server-name=c", "skip-host-verify"} {
		flag = "--reporter.grpc.tls." + flag
		const want = "reporter.grpc.tls.* options cannot be used when reporter.grpc.tls.enabled is false"
		if got := overlaidOn(t, "agent", flag); !strings.Contains(got, want) {
			t.Errorf("%s: %q", flag, got)
		}
	}
}

func TestAgentFlagsThatDoNotFit(t *testing.T) {
	for line, want := range map[string]string{
		"--processor.jaeger-compact.server-queue-size=10MiB": `"10MiB" is not a number of packets from 1 to 2147483647`,
		"--processor.jaeger-compact.workers=many":            `"many" is not a number`,
		"--reporter.grpc.host-port=,":                        `"," names no address; write host:port`,
		"--reporter.grpc.tls.enabled=maybe":                  `"maybe" is not true or false`,
		"--agent.tags=a":                                     `"a" is not a tag; write key=value,other=value`,
		"--reporter.type=grpc":                               "warning: --reporter.type: has no effect: ",
		"--reporter.grpc.retry.max=3":                        "warning: --reporter.grpc.retry.max: has no effect: ",
		"--reporter.grpc.discovery.min-peers=3":              "warning: --reporter.grpc.discovery.min-peers: has no effect: ",
		"--sampling.strategies-file=s.json":                  "extension sampling has no file",
		"--sampling.delay=1m":                                "extension sampling has no adaptive",
		"--sampling-config.type=remote":                      `"remote" is not file or adaptive`,
		"--collector.grpc-server.host-port=:1":               "no receiver of type native is configured",
	} {
		if got := overlaidOn(t, "agent", line); !strings.Contains(got, want) {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestCollectorFlags(t *testing.T) {
	f := func(flag, value, want string) {
		t.Helper()
		if got := overlaidOn(t, "collector", "--"+flag+"="+value); got != want+" # --"+flag {
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
	got := overlaidOn(t, "collector", "--collector.grpc.tls.enabled", "--collector.grpc.tls.cert=c", "--collector.grpc.tls.key=k",
		"--collector.http.tls.enabled", "--collector.http.tls.cert=c", "--collector.http.tls.key=k", "--collector.http.tls.client-ca=ca")
	const want = "cert_file: c # --collector.grpc.tls.cert\nkey_file: k # --collector.grpc.tls.key\n" +
		"cert_file: c # --collector.http.tls.cert\nkey_file: k # --collector.http.tls.key\nclient_ca_file: ca # --collector.http.tls.client-ca"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, flag := range []string{"collector.enable-span-size-metrics",
		"sampling.strategies.bugfix-5270", "downsampling.ratio", "downsampling.hashsalt"} {
		if got := overlaidOn(t, "collector", "--"+flag+"=1"); !strings.HasPrefix(got, "warning: --"+flag+": has no effect: ") {
			t.Errorf("--%s: %q", flag, got)
		}
	}
}

// Adaptive sampling takes the place of the file, with the store that the configuration has, and what counts for it comes into the pipeline.
func TestAdaptiveSamplingFlags(t *testing.T) {
	t.Setenv("SAMPLING_CONFIG_TYPE", "file")
	if got := overlaidOn(t, "collector"); got != "" {
		t.Errorf("file is what it is anyway, and got\n%s", got)
	}
	t.Setenv("SAMPLING_CONFIG_TYPE", "adaptive")
	const env = " # environment SAMPLING_CONFIG_TYPE"
	want := "sampling: sampling" + env + "\nstorage: disk" + env + "\ntarget_samples_per_second: 7 # --sampling.target-samples-per-second\n" +
		"calculation_delay: 1m # --sampling.delay\nprocessors: [adaptive_sampling, batch]" + env
	if got := overlaidOn(t, "collector", "--sampling.delay=1m", "--sampling.target-samples-per-second=7"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := overlaidOn(t, "collector", "--span-storage.type=memory"); strings.Contains(got, "disk") || strings.Count(got, "storage: memory") != 2 {
		t.Errorf("with another store, got\n%s", got)
	}
	// The variable may be set for all processes of a host. An agent's strategies stay those of its collector.
	want = "sampling: sampling" + env + "\nprocessors: [adaptive_sampling, batch]" + env
	if got := overlaidOn(t, "agent"); got != want {
		t.Errorf("in an agent, got\n%s\nwant\n%s", got, want)
	}
}

// Tags are a processor in front of all others, which is there only when asked for.
func TestTagFlags(t *testing.T) {
	t.Setenv("TAG_SET", "from, env")
	const text = "a=b, c = ${TAG_UNSET} ,empty=${TAG_UNSET:},d=${TAG_UNSET:x y},e=${TAG_SET:no},f=x=$y"
	for _, flag := range []string{"agent.tags", "collector.tags"} {
		want := strings.ReplaceAll("a: b # F\nd: x y # F\ne: from, env # F\nempty: \"\" # F\nf: x=$$y # F\nprocessors: [resource_tags, batch] # F", "F", "--"+flag)
		if got := overlaidOn(t, "agent", "--"+flag, text); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := overlaidOn(t, "agent", "--"+flag, "a=${TAG_UNSET}"); got != "" {
			t.Errorf("no tag is left, and got\n%s", got)
		}
	}
}

// Zipkin's clients are served only when asked for.
func TestZipkinFlags(t *testing.T) {
	for _, preset := range []string{"all-in-one", "collector"} {
		receivers := "otlp, native"
		if preset == "all-in-one" {
			receivers += ", thriftudp"
		}
		const origin = "--collector.zipkin.host-port"
		want := fmt.Sprintf("endpoint: :9411 # %[1]s\nreceivers: [%[2]s, zipkin] # %[1]s", origin, receivers)
		if got := overlaidOn(t, preset, origin, "9411"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", preset, got, want)
		}
		if got := overlaidOn(t, preset, origin, ""); got != "" {
			t.Errorf("%s: an empty address means nowhere, and got\n%s", preset, got)
		}
		if got := overlaidOn(t, preset, "--collector.zipkin.tls.enabled"); !strings.Contains(got, "no receiver of type zipkin is configured; "+origin+" adds one") {
			t.Errorf("%s: %q", preset, got)
		}
	}
	t.Setenv("COLLECTOR_ZIPKIN_HOST_PORT", ":9411")
	got := overlaidOn(t, "collector", "--collector.zipkin.tls.enabled", "--collector.zipkin.tls.cert=c", "--collector.zipkin.tls.key=k",
		"--collector.zipkin.cors.allowed-origins=*", "--multi-tenancy.enabled")
	for _, line := range []string{"endpoint: :9411 # environment COLLECTOR_ZIPKIN_HOST_PORT", "cert_file: c # --collector.zipkin.tls.cert",
		"allowed_origins: ['*'] # --collector.zipkin.cors.allowed-origins", "receivers: [otlp, native, zipkin] # environment COLLECTOR_ZIPKIN_HOST_PORT"} {
		if !strings.Contains(got, line) {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
	if n := strings.Count(got, "enabled: true # --multi-tenancy.enabled"); n != 6 {
		t.Errorf("%d listeners of 6 keep tenants apart", n)
	}
	t.Setenv("COLLECTOR_ZIPKIN_HOST_PORT", "")
	t.Setenv("COLLECTOR_ZIPKIN_TLS_ENABLED", "true")
	if got := overlaidOn(t, "agent"); !strings.HasPrefix(got, "warning: environment COLLECTOR_ZIPKIN_TLS_ENABLED: has no effect: ") {
		t.Errorf("an environment is shared by programs, and got %q", got)
	}
}
