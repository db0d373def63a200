package config_test

import (
	"strings"
	"testing"
)

// TestAgentFlags checks the flags of an agent, under both names of its processors.
func TestAgentFlags(t *testing.T) {
	f := func(flag, value, want string) {
		t.Helper()
		if got := changedLinesOf(t, "agent", "--"+flag+"="+value); got != want+" # --"+flag {
			t.Errorf("--%s=%s: got %q, want %q", flag, value, got, want)
		}
	}
	twice := func(flag, value, want string) { // once for spans, once for sampling strategies
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

// TestClientTLSFlagsNeedTLS checks that a TLS flag without --reporter.grpc.tls.enabled is an error.
func TestClientTLSFlagsNeedTLS(t *testing.T) {
	for _, flag := range []string{"ca=ca.pem", "cert=c.pem", "key=k.pem", "server-name=c", "skip-host-verify"} {
		flag = "--reporter.grpc.tls." + flag
		const want = "reporter.grpc.tls.* options cannot be used when reporter.grpc.tls.enabled is false"
		if got := changedLinesOf(t, "agent", flag); !strings.Contains(got, want) {
			t.Errorf("%s: %q", flag, got)
		}
	}
}

func TestInvalidAgentFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--processor.jaeger-compact.server-queue-size=10MiB": `"10MiB" is not a number of packets from 1 to 2147483647`,
		"--processor.jaeger-compact.workers=many":            `"many" is not a number`,
		"--reporter.grpc.host-port=,":                        `no address in ","; write host:port`,
		"--reporter.grpc.tls.enabled=maybe":                  `"maybe" is not true or false`,
		"--agent.tags=a":                                     `"a" is not a tag; write key=value,other=value`,
		"--reporter.type=tchannel":                           "warning: --reporter.type: has no effect: ",
		"--reporter.grpc.retry.max=3":                        "warning: --reporter.grpc.retry.max: has no effect: ",
		"--reporter.grpc.discovery.min-peers=3":              "warning: --reporter.grpc.discovery.min-peers: has no effect: ",
		"--sampling.strategies-file=s.json":                  "extension sampling has no file",
		"--sampling.delay=1m":                                "extension sampling has no adaptive",
		"--sampling-config.type=remote":                      `"remote" is not file or adaptive`,
		"--collector.grpc-server.host-port=:1":               "no receiver of type native is configured",
	} {
		if got := changedLinesOf(t, "agent", line); !strings.Contains(got, want) {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestTagFlags checks that the flags add a processor in front of all others.
func TestTagFlags(t *testing.T) {
	t.Setenv("TAG_SET", "from, env")
	const text = "a=b, c = ${TAG_UNSET} ,empty=${TAG_UNSET:},d=${TAG_UNSET:x y},e=${TAG_SET:no},f=x=$y"
	for _, flag := range []string{"agent.tags", "collector.tags"} {
		const lines = "a: b # F\nd: x y # F\ne: from, env # F\nempty: \"\" # F\nf: x=$$y # F\nprocessors: [resource_tags, batch] # F"
		want := strings.ReplaceAll(lines, "F", "--"+flag)
		if got := changedLinesOf(t, "agent", "--"+flag, text); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := changedLinesOf(t, "agent", "--"+flag, "a=${TAG_UNSET}"); got != "" {
			t.Errorf("without a tag, got\n%s", got)
		}
	}
}
