package cluster

import (
	"context"
	"os"
	"testing"
	"time"
)

// startTimeout is how long tests wait for a server. Only a failing test reaches it.
const startTimeout = 2 * time.Minute

// Require skips the test unless TRACING_ENGINES is 1 and the cluster is installed. If CI is true, a
// missing installation fails the test.
func Require(tb testing.TB) {
	tb.Helper()
	if os.Getenv("TRACING_ENGINES") != "1" {
		tb.Skip("needs a ClickHouse cluster; make test-engines runs it")
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

// Start starts a cluster for a test and stops it when the test ends. Without a folder in its
// options, it uses a temporary one.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	Require(tb)
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	c, err := New(ctx, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			for _, n := range c.Nodes() {
				tb.Logf("%s:\n%s", n.Name(), n.logTail())
			}
		}
		if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}
