package legacy_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
	"github.com/tracing-backend/tracing/test/harness"
)

// programDir is the folder of the program, or "" if no test has needed it.
var programDir string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if programDir != "" {
			os.RemoveAll(programDir) //nolint:errcheck // in the system's folder for temporary files
		}
		os.Exit(code)
	}))
}

var buildProgram = sync.OnceValues(func() (path string, err error) {
	if programDir, err = os.MkdirTemp("", "tracing-legacy"); err != nil {
		return "", err
	}
	path = filepath.Join(programDir, "tracing")
	out, err := exec.Command("go", "build", "-o", path, "./tracing").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// installation is a cluster with programs that use it.
type installation struct {
	*cluster.Cluster
	t *testing.T
}

// install starts a cluster of two shards with two replicas.
func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{cluster.Start(t, cluster.Options{}), t}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return i
}

// exporter is the configuration of the exporter. Its keys follow in the lines of more.
func (i *installation) exporter(more string) string {
	return `
exporters:
  clickhouse:
    endpoints: [` + strings.Join(i.Addrs(), ", ") + `]
    cluster: {name: ` + cluster.Name + `, sharded: true}
` + more
}

// collector starts a collector. A client gets its response when the servers have stored the spans.
func (i *installation) collector(more string) *harness.Process {
	i.t.Helper()
	return i.run(i.exporter(more) + `
receivers:
  otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}
extensions:
  admin: {endpoint: "localhost:0"}
service:
  data_dir: ` + i.t.TempDir() + `
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [clickhouse]}}
`)
}

// query starts a query service.
func (i *installation) query() *harness.Process {
	i.t.Helper()
	return i.run(i.exporter("") + `
extensions:
  query: {storage: clickhouse, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}
service:
  data_dir: ` + i.t.TempDir() + `
  extensions: [query]
`)
}

// run starts the program in the dialect of the cluster, and waits until it is ready.
func (i *installation) run(yaml string) *harness.Process {
	i.t.Helper()
	path, err := buildProgram()
	if err != nil {
		i.t.Fatal(err)
	}
	file := filepath.Join(i.t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		i.t.Fatal(err)
	}
	p := harness.RunExecutable(i.t, path, "--config", file)
	i.t.Cleanup(func() {
		if i.t.Failed() {
			lines := p.LogLines()
			i.t.Logf("log: %v", lines[max(0, len(lines)-8):])
		}
	})
	p.AwaitReady()
	return p
}

// ask returns the result of a query on a server.
func (i *installation) ask(n *cluster.Node, sql string) string {
	i.t.Helper()
	answer, err := n.Query(i.t.Context(), sql)
	if err != nil {
		i.t.Fatal(err)
	}
	return answer
}

// joined joins n requests to one, as a collector does. The encoding of requests allows it.
func joined(requests iter.Seq[bench.Request], n int) iter.Seq[bench.Request] {
	return func(yield func(bench.Request) bool) {
		for part := range slices.Chunk(slices.Collect(requests), n) {
			all := bench.Request{}
			for _, r := range part {
				all.Spans, all.Body = all.Spans+r.Spans, append(all.Body, r.Body...)
			}
			if !yield(all) {
				return
			}
		}
	}
}

// scan parses the number in a response.
func scan(answer string, n *int) error { _, err := fmt.Sscan(answer, n); return err }

// waitSynced waits until the replicas of each shard are equal.
func (i *installation) waitSynced() {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*time.Minute)
	defer cancel()
	if err := i.WaitSynced(ctx); err != nil {
		i.t.Fatal(err)
	}
}
