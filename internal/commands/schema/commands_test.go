package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup)) }

// run runs a command.
func run(t *testing.T, name, args string) (code int, stdout, stderr string) {
	t.Helper()
	return harness.Command(t, append([]string{"clickhouse", "schema", name}, strings.Fields(args)...)...)
}

const twoStores = `
receivers: {zipkin: {}}
exporters:
  clickhouse: {database: recent, retention: {spans: 48h}}
  clickhouse/archive: {database: archive, cluster: {name: main, sharded: true}, retention: {spans: 0s}}
service:
  pipelines:
    traces: {receivers: [zipkin], exporters: [clickhouse, clickhouse/archive]}
`

func TestPrint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(twoStores), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{"", "CREATE TABLE IF NOT EXISTS `tracing`.`spans`\n"},
		{"query-clickhouse", "CREATE TABLE IF NOT EXISTS `tracing`.`spans`\n"},
		{"--set exporters::clickhouse::database=mine", "CREATE DATABASE IF NOT EXISTS `mine`;"},
		{"--clickhouse.ttl 24h", "TTL day + toIntervalDay(2)\n"},
		{"--config " + file + " --exporter clickhouse", "TTL day + toIntervalDay(3)\n"},
		{"--config " + file + " --exporter clickhouse/archive", "ENGINE = Distributed('main', 'archive', 'spans_local', cityHash64(trace_id));"},
	} {
		if code, got, problems := run(t, "print", test.args); code != 0 || !strings.Contains(got, test.want) {
			t.Errorf("print %s: exit code %d, %s, without %q:\n%s", test.args, code, problems, test.want, got)
		}
	}
	for _, test := range []struct{ args, want string }{
		{"--config " + file, "name one with --exporter"},
		{"--config " + file + " --exporter clickhouse/other", `no exporter "clickhouse/other"`},
		{"all-in-one", "no exporter of the type clickhouse"},
		{"one two", `unexpected argument "two"`},
	} {
		if code, _, got := run(t, "print", test.args); code != 2 || !strings.Contains(got, test.want) {
			t.Errorf("print %s: exit code %d, want a usage error with %q:\n%s", test.args, code, test.want, got)
		}
	}
}

// Variables have the same effect as when the program starts.
func TestVariables(t *testing.T) {
	t.Setenv("CLICKHOUSE_DATABASE", "mine")
	for _, args := range []string{"", "collector-clickhouse"} {
		if code, got, problems := run(t, "print", args); code != 0 || !strings.Contains(got, "CREATE DATABASE IF NOT EXISTS `mine`;") {
			t.Errorf("print %s: exit code %d, %s:\n%s", args, code, problems, got)
		}
	}
}

// Without a server, commands fail and say which address they tried.
func TestNoServer(t *testing.T) {
	t.Setenv("CLICKHOUSE_ADDRESSES", "127.0.0.1:1")
	for _, name := range []string{"apply", "check"} {
		if code, _, got := run(t, name, ""); code != 1 || !strings.Contains(got, "127.0.0.1:1") {
			t.Errorf("%s: exit code %d: %s", name, code, got)
		}
	}
}
