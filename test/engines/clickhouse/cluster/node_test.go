package cluster

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// TestReadyForStatements checks that a server is not ready before it takes statements for the whole
// cluster. While ZooKeeper hangs, it answers queries, but such a statement ends it.
func TestReadyForStatements(t *testing.T) {
	c := Start(t, Options{Shards: 1, Replicas: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := c.Node(0)
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(c.zooKeeper.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	if err := n.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := n.await(ctx, "SELECT 1", "1"); err != nil {
		t.Fatal(err)
	}
	if n.takesStatements() == nil {
		t.Error("the server is ready without ZooKeeper")
	}
	signal(syscall.SIGCONT)
	if err := n.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Query(ctx, "CREATE TABLE default.numbers ON CLUSTER tracing (n UInt64) ENGINE = Memory"); err != nil {
		t.Error(err)
	}
}
