package schematool

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/receivers/zipkin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a command and returns its output.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	components := func() []pipeline.Factory { return []pipeline.Factory{zipkin.Factory(), clickhouse.Factory()} }
	for _, c := range Commands(components, func() []app.Preset { return nil }) {
		if c.Name != "clickhouse schema "+name {
			continue
		}
		fs := flag.NewFlagSet(name, flag.ContinueOnError)
		do := c.Setup(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := do(context.Background(), pipeline.Invocation{Args: fs.Args(), Stdout: &out, Stderr: &out})
		return out.String(), err
	}
	t.Fatalf("no command %s", name)
	return "", nil
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
		{"--set exporters::clickhouse::database=mine", "CREATE DATABASE IF NOT EXISTS `mine`;"},
		{"--config " + file + " --exporter clickhouse", "TTL day + toIntervalDay(3)\n"},
		{"--config " + file + " --exporter clickhouse/archive", "ENGINE = Distributed('main', 'archive', 'spans_local', cityHash64(trace_id));"},
	} {
		if got, err := run(t, "print", strings.Fields(test.args)...); err != nil || !strings.Contains(got, test.want) {
			t.Errorf("print %s: %v, without %q:\n%s", test.args, err, test.want, got)
		}
	}
	for _, test := range []struct{ args, want string }{
		{"--config " + file, "name one with --exporter"},
		{"--config " + file + " --exporter clickhouse/other", `no exporter "clickhouse/other"`},
		{"one two", "at most one preset"},
	} {
		var usage *pipeline.UsageError
		if _, err := run(t, "print", strings.Fields(test.args)...); !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("print %s: %v, want a usage error with %q", test.args, err, test.want)
		}
	}
}

// Without a server, commands fail and say which address they tried.
func TestNoServer(t *testing.T) {
	const closed = "exporters::clickhouse::endpoints=[127.0.0.1:1]"
	for _, name := range []string{"apply", "check"} {
		if _, err := run(t, name, "--set", closed); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
