package kafka

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testSettings() pipeline.Settings {
	return pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(), Report: func(error) {}}
}

// newCluster starts a fake cluster with the topic "spans".
func newCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, "spans")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func writeFile(t *testing.T, name, contents string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
