package cluster_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCluster checks that replicas copy each other, that a replica that was killed catches up, and
// that statements for the whole cluster reach every server.
func TestCluster(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	c := cluster.Start(t, cluster.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	query := func(n *cluster.Node, sql string) string {
		t.Helper()
		got, err := n.Query(ctx, sql)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	check := func(n *cluster.Node, sql, want string) {
		t.Helper()
		if got := query(n, sql); got != want {
			t.Errorf("%s: %s is %q, want %q", n.Name(), sql, got, want)
		}
	}
	query(c.Node(0), `CREATE TABLE default.numbers ON CLUSTER tracing (n UInt64)
		ENGINE = ReplicatedMergeTree('/clickhouse/{shard}/numbers', '{replica}') ORDER BY n`)
	query(c.Node(0), `INSERT INTO default.numbers SELECT number FROM system.numbers LIMIT 10`)
	if err := c.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"10", "10", "0", "0"} {
		check(c.Node(i), `SELECT count() FROM default.numbers`, want)
	}

	killed := c.Node(1)
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	query(c.Node(0), `INSERT INTO default.numbers SELECT number + 10 FROM system.numbers LIMIT 10`)
	if err := killed.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	check(killed, `SELECT count(), sum(n) FROM default.numbers`, "20\t190")
	check(c.Node(2), `SELECT count() FROM remote('`+c.Node(0).Addr()+`', default.numbers)`, "20")
}
