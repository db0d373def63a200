package config_test

import (
	"strings"
	"testing"
)

// TestKafka checks the flags of collectors and ingesters of Jaeger 1, as flags and as variables.
func TestKafka(t *testing.T) {
	for direction, preset := range map[string]string{"producer": "collector-kafka", "consumer": "ingester"} {
		f := func(line, want string) {
			t.Helper()
			name, value, _ := strings.Cut("kafka."+direction+"."+line, "=")
			if got := changedLinesOf(t, preset, "--"+name+"="+value); !strings.Contains(got, want+" # --"+name) {
				t.Errorf("--%s=%s: %q is missing in\n%s", name, value, want, got)
			}
			variable := strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
			t.Setenv(variable, value)
			if got := changedLinesOf(t, preset); !strings.Contains(got, want+" # environment "+variable) {
				t.Errorf("%s=%s: %q is missing in\n%s", variable, value, want, got)
			}
			t.Setenv(variable, "")
		}
		f("brokers=a:9092, b:9092", "brokers: ['a:9092', 'b:9092']")
		f("topic=jaeger-spans", "topic: jaeger-spans")
		f("encoding=protobuf", "encoding: jaeger_proto")
		f("encoding=json", "encoding: jaeger_json")
		f("encoding=otlp_json", "encoding: otlp_json")
		if direction == "producer" {
			f("compression=GZIP", "compression: gzip")
			f("max-message-bytes=2000000", "max_message_bytes: 2000000")
			f("batch-linger=20ms", "linger: 20ms")
			continue
		}
		f("encoding=zipkin-thrift", "encoding: zipkin_thrift")
		f("group-id=g", "group_id: g")
		f("client-id=c", "client_id: c")
		f("rack-id=r", "rack_id: r")
		f("fetch-max-message-bytes=2097152", "max_partition_fetch_size: 2097152")
	}
	for line, want := range map[string]string{
		"kafka.brokers=a:9092":  "brokers: ['a:9092'] # --kafka.brokers",
		"kafka.topic=t":         "topic: t # --kafka.topic",
		"kafka.encoding=json":   "encoding: jaeger_json # --kafka.encoding",
		"multi-tenancy.enabled": "enabled: true # --multi-tenancy.enabled",
	} {
		if got := changedLinesOf(t, "ingester", "--"+line); !strings.Contains(got, want) {
			t.Errorf("--%s: %q is missing in\n%s", line, want, got)
		}
	}
	got := changedLinesOf(t, "collector-kafka", "--kafka.producer.compression=zstd", "--kafka.producer.compression-level=3")
	if !strings.Contains(got, "level: 3 # --kafka.producer.compression-level") {
		t.Errorf("level of compression: %s", got)
	}
	t.Setenv("KAFKA_BROKERS", "a:9092") // may be for another program
	if got := changedLinesOf(t, "ingester"); got != "" {
		t.Error(got)
	}
}

// TestKafkaAuthentication checks which credentials are used with each method.
func TestKafkaAuthentication(t *testing.T) {
	const prefix = "--kafka.consumer."
	user := []string{prefix + "plaintext.username=u", prefix + "plaintext.password=p"}
	f := func(want string, args ...string) {
		t.Helper()
		got := changedLinesOf(t, "ingester", args...)
		for line := range strings.SplitSeq(want, "\n") {
			if !strings.Contains(got, line) {
				t.Errorf("%q: %q is missing in\n%s", args, line, got)
			}
		}
	}
	f("mechanism: PLAIN #\nusername: u #", append(user, prefix+"authentication=plaintext")...)
	f("mechanism: SCRAM-SHA-256 # --kafka.consumer.plaintext.mechanism\nusername: u #",
		append(user, prefix+"authentication=plaintext", prefix+"plaintext.mechanism=scram-sha-256")...)
	f("mechanism: PLAIN #\nca_file: /ca.pem #",
		append(user, prefix+"authentication=plaintext", prefix+"tls.enabled", prefix+"tls.ca=/ca.pem")...)
	f("ca_file: /ca.pem # --kafka.consumer.tls.ca\ninsecure_skip_verify: true #",
		prefix+"authentication=tls", prefix+"tls.ca=/ca.pem", prefix+"tls.skip-host-verify")
	f("options cannot be used when kafka.consumer.tls.enabled is false", prefix+"tls.ca=/ca.pem")
	f("warning: --kafka.consumer.plaintext.username: has no effect: only used with --kafka.consumer.authentication=plaintext", user...)
	f("--kafka.consumer.authentication: Kerberos is not supported: use plaintext", prefix+"authentication=kerberos")
	f(`--kafka.consumer.authentication: "ldap" is not one of none, tls, plaintext`, prefix+"authentication=ldap")
	if got := changedLinesOf(t, "ingester", prefix+"authentication=none"); got != "" {
		t.Errorf("without authentication: %s", got)
	}
}

// TestKafkaWithoutEffect checks the flags whose effect is given up, with the reason, and values
// that say what is always the case.
func TestKafkaWithoutEffect(t *testing.T) {
	f := func(preset, line, want string) {
		t.Helper()
		got := changedLinesOf(t, preset, "--"+line)
		if want == "" && got != "" || !strings.Contains(got, want) || want != "" && strings.Count(got, "\n") != 1 {
			t.Errorf("--%s: got %q, want %q", line, got, want)
		}
	}
	f("collector-kafka", "kafka.producer.required-acks=local", "min.insync.replicas")
	f("collector-kafka", "kafka.producer.required-acks=noack", "min.insync.replicas")
	f("collector-kafka", "kafka.producer.required-acks=all", "")
	f("collector-kafka", "kafka.producer.batch-size=128000", "max_message_bytes")
	f("collector-kafka", "kafka.producer.batch-max-messages=0", "")
	f("collector-kafka", "kafka.producer.protocol-version=2.8.0", "negotiated")
	f("collector-kafka", "kafka.producer.kerberos.realm=R", "Kerberos is not supported")
	f("ingester", "kafka.consumer.kerberos.use-keytab", "Kerberos is not supported")
	f("ingester", "ingester.parallelism=1000", "max_concurrent")
	f("ingester", "ingester.deadlockInterval=1m", "tracing_kafka_consumer_lag_seconds")
	f("ingester", "ingester.deadlockInterval=0", "")
}

// TestKafkaStorageType checks what becomes of the store in each preset.
func TestKafkaStorageType(t *testing.T) {
	f := func(preset, store string, want ...string) {
		t.Helper()
		t.Setenv("SPAN_STORAGE_TYPE", store)
		got := changedLinesOf(t, preset)
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s with %s: %q is missing in\n%s", preset, store, line, got)
			}
		}
		if len(want) == 0 && got != "" {
			t.Errorf("%s with %s: %s", preset, store, got)
		}
	}
	const v = " # environment SPAN_STORAGE_TYPE"
	f("collector", "kafka", "topic: jaeger-spans"+v, "encoding: jaeger_proto"+v, "extensions: [sampling, admin]"+v, "exporters: [kafka]"+v)
	f("collector-kafka", "kafka")
	both := []string{"topic: jaeger-spans" + v, "exporters: [disk, kafka]" + v}
	f("collector", "disk,kafka", both...)
	f("collector", "kafka,disk", both...)
	f("all-in-one", "kafka", "SPAN_STORAGE_TYPE: spans in Kafka cannot be queried, and extension query reads the store; run the preset "+
		"collector, or to store them here as well, use SPAN_STORAGE_TYPE=disk,kafka")
	f("query", "kafka", "read the store of an ingester: set --grpc-storage.server to its address, port 17271, and SPAN_STORAGE_TYPE=grpc")
	t.Setenv("SPAN_STORAGE_TYPE", "kafka")
	got := changedLinesOf(t, "collector", "--kafka.producer.brokers=k:9092", "--kafka.producer.encoding=otlp_proto")
	for _, want := range []string{"brokers: ['k:9092'] #", "encoding: otlp_proto # --kafka.producer.encoding"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}
