package broker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tracing-backend/tracing/test/engines/process"
	"github.com/tracing-backend/tracing/test/harness"
)

// Variable is the environment variable with the addresses of the brokers that [Shared] returns.
const Variable = "KAFKA_BROKERS"

// startTimeout is how long tests wait for brokers. Only a failing test reaches it.
const startTimeout = 2 * time.Minute

// Wanted reports whether tests are to run with real brokers.
func Wanted() bool { return os.Getenv("TRACING_ENGINES") == "1" || os.Getenv(Variable) != "" }

// require skips the test unless TRACING_ENGINES is 1 and the brokers are installed. If CI is true,
// a missing installation fails the test.
func require(tb testing.TB) {
	tb.Helper()
	if os.Getenv("TRACING_ENGINES") != "1" {
		tb.Skip("starts and stops Kafka brokers; make test-engines runs it")
	}
	err := Installed()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		tb.Fatal(err)
	}
	tb.Skip(err)
}

// Start starts a cluster for a test and stops it when the test ends.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	require(tb)
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	if o.Secure {
		harness.SelfSigned(tb, o.Dir)
	}
	c, err := startIn(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			for _, n := range c.nodes {
				tb.Logf("broker %d:\n%s", n.id, process.Tail(n.log()))
			}
		}
		c.stop()
	})
	return c
}

// startIn starts a cluster, with defaults for options that are not set.
func startIn(ctx context.Context, o Options) (*Cluster, error) {
	if o.Brokers == 0 {
		o.Brokers = 3
	}
	if o.Heap == 0 {
		o.Heap = 256
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return newCluster(ctx, o)
}

// shared is the cluster of [Shared].
var shared struct {
	sync.Mutex
	cluster *Cluster
	dir     string
}

// Shared returns a cluster for all tests of the process: the brokers that KAFKA_BROKERS names, or
// three that start with the first test and have listeners with TLS. Tests use topics of their own,
// see [Cluster.Topic], and stop no broker. It skips the test if there are none.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		return shared.cluster
	}
	if addrs := os.Getenv(Variable); addrs != "" {
		shared.cluster = Given(strings.Split(addrs, ",")...)
		return shared.cluster
	}
	require(tb)
	var err error
	if shared.dir, err = os.MkdirTemp("", "tracing-kafka"); err != nil {
		tb.Fatal(err)
	}
	harness.SelfSigned(tb, shared.dir)
	if shared.cluster, err = startIn(context.Background(), Options{Dir: shared.dir, Secure: true}); err != nil {
		tb.Fatal(err)
	}
	return shared.cluster
}

// topics counts the topics of the process.
var topics atomic.Int64

// Topic creates a topic with a unique name and up to three replicas. Settings are name=value. It is
// deleted when the test ends.
func (c *Cluster) Topic(tb testing.TB, partitions int32, settings ...string) string {
	tb.Helper()
	name := UniqueName()
	client, err := Client(c.Brokers()...)
	if err != nil {
		tb.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	configs := map[string]*string{}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		configs[key] = &value
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := admin.CreateTopic(ctx, partitions, int16(min(replicas, len(brokers))), configs, name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Delete(tb, name) })
	return name
}

// Delete deletes a topic, unless all of the cluster is deleted with its folder.
func (c *Cluster) Delete(tb testing.TB, topic string) {
	tb.Helper()
	if len(c.given) == 0 {
		return
	}
	client, err := Client(c.Brokers()...)
	if err != nil {
		tb.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopic(context.Background(), topic); err != nil {
		tb.Error(err)
	}
}

// UniqueName returns a name for a topic or a group that no other test uses, of this run or another.
func UniqueName() string {
	return fmt.Sprintf("tracing-test-%d-%d-%d", time.Now().UnixNano(), os.Getpid(), topics.Add(1))
}

// Tests are the tests of a package. Run stops the cluster of [Shared] and removes temporary files
// when the tests have ended; pass it to goleak.VerifyTestMain.
type Tests struct {
	*testing.M
}

// Run runs the tests and returns the exit code.
func (t Tests) Run() int {
	defer func() {
		if shared.cluster != nil {
			shared.cluster.stop()
		}
		os.RemoveAll(shared.dir) //nolint:errcheck // in the system's folder for temporary files
	}()
	return t.M.Run()
}
