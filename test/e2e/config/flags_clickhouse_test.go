package config_test

import (
	"strings"
	"testing"
)

// TestClickHouse checks the flags of the ClickHouse store, as flags and as variables.
func TestClickHouse(t *testing.T) {
	for line, want := range map[string]string{
		"clickhouse.addresses=a:9000, b:9000": "endpoints: ['a:9000', 'b:9000']",
		"clickhouse.protocol=http":            "protocol: http",
		"clickhouse.database=spans":           "database: spans",
		"clickhouse.username=tracing":         "username: tracing",
		"clickhouse.password-file=/p":         "password_file: /p",
		"clickhouse.dial-timeout=3s":          "connect_timeout: 3s",
		"clickhouse.cluster=main":             "name: main",
		"clickhouse.create-schema=false":      "schema: check",
		"clickhouse.create-schema":            "schema: create",
		"clickhouse.ttl=72h":                  "spans: 72h",
	} {
		if got := changedLinesOf(t, "collector-clickhouse", "--"+line); !strings.Contains(got, want+" # --clickhouse.") {
			t.Errorf("--%s: %q is missing in\n%s", line, want, got)
		}
		name, value, _ := strings.Cut(line, "=")
		if value == "" {
			value = "true"
		}
		variable := strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
		t.Setenv(variable, value)
		if got := changedLinesOf(t, "query-clickhouse"); !strings.Contains(got, want+" # environment "+variable) {
			t.Errorf("%s: %q is missing in\n%s", variable, want, got)
		}
		t.Setenv(variable, "")
	}
	got := changedLinesOf(t, "query-clickhouse", "--clickhouse.tls.enabled", "--clickhouse.tls.ca=ca.pem", "--clickhouse.tls.skip-host-verify")
	if !strings.Contains(got, "ca_file: ca.pem # --clickhouse.tls.ca") || !strings.Contains(got, "insecure_skip_verify: true #") {
		t.Errorf("TLS: got\n%s", got)
	}
	got = changedLinesOf(t, "query-clickhouse", "--clickhouse.tls.ca=ca.pem")
	if !strings.Contains(got, "clickhouse.tls.* options cannot be used") {
		t.Errorf("without TLS: got\n%s", got)
	}
	got = changedLinesOf(t, "collector-clickhouse", "--clickhouse.create-schema=maybe")
	if !strings.Contains(got, `"maybe" is not true or false`) {
		t.Errorf("got %s", got)
	}
}

// TestClickHouseStorageType checks that the store can replace the store of a preset.
func TestClickHouseStorageType(t *testing.T) {
	t.Setenv("SPAN_STORAGE_TYPE", "clickhouse")
	t.Setenv("CLICKHOUSE_ADDRESSES", "ch.example:9000")
	for preset, wants := range map[string][]string{
		"all-in-one": {"endpoints: ['ch.example:9000'] #", "exporters: [clickhouse] #", "storage: clickhouse #"},
		"collector":  {"endpoints: ['ch.example:9000'] #", "exporters: [clickhouse] #"},
		"query":      {"endpoints: ['ch.example:9000'] #", "storage: clickhouse #"},
	} {
		got := changedLinesOf(t, preset)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", preset, want, got)
			}
		}
	}
}
