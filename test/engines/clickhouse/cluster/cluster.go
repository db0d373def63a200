package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// Name is the name of the cluster in the configuration of the servers.
const Name = "tracing"

// Options describe a cluster.
type Options struct {
	Dir      string // folder of data, configuration and logs; it is created
	Shards   int    // 2 by default
	Replicas int    // of every shard, 2 by default
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	folder    string // of the unpacked packages
	zooKeeper *process.Process
	nodes     []*Node
}

// New starts a cluster and waits until every server answers. The caller stops it.
func New(ctx context.Context, o Options) (*Cluster, error) {
	if err := Installed(); err != nil {
		return nil, err
	}
	folder, err := Folder()
	if err != nil {
		return nil, err
	}
	if o.Shards == 0 {
		o.Shards = 2
	}
	if o.Replicas == 0 {
		o.Replicas = 2
	}
	c := &Cluster{folder: folder}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	zooKeeperDir := filepath.Join(o.Dir, "zookeeper")
	if err := os.MkdirAll(zooKeeperDir, 0o755); err != nil {
		return err
	}
	const portsOfNode = 3
	ports, err := process.FreePorts(1 + portsOfNode*o.Shards*o.Replicas)
	if err != nil {
		return err
	}
	l := layout{ZooKeeper: ports[0], Shards: make([][]*Node, o.Shards)}
	for i := range o.Shards * o.Replicas {
		p := ports[1+portsOfNode*i:]
		n := &Node{Shard: i/o.Replicas + 1, Replica: i%o.Replicas + 1, tcp: p[0], http: p[1], interserver: p[2]}
		n.dir = filepath.Join(o.Dir, n.Name())
		l.Shards[n.Shard-1] = append(l.Shards[n.Shard-1], n)
		c.nodes = append(c.nodes, n)
	}
	if c.zooKeeper, err = startZooKeeper(c.folder, zooKeeperDir, l.ZooKeeper); err != nil {
		return err
	}
	if err := awaitZooKeeper(ctx, c.zooKeeper, l.ZooKeeper); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.configure(c.folder, l); err != nil {
			return err
		}
		if err := n.start(); err != nil {
			return err
		}
	}
	return c.WaitReady(ctx)
}

// WaitReady waits until every server answers and accepts writes.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return c.each(func(n *Node) error { return n.WaitReady(ctx) })
}

// WaitSynced waits until every server that runs has fetched what the other replicas of its shard
// have.
func (c *Cluster) WaitSynced(ctx context.Context) error {
	return c.each(func(n *Node) error {
		if !n.Running() {
			return nil
		}
		return n.waitSynced(ctx)
	})
}

// each calls f for every node at the same time.
func (c *Cluster) each(f func(*Node) error) error {
	errs := make([]error, len(c.nodes))
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		wg.Go(func() {
			if err := f(n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Nodes returns the servers: the replicas of the first shard, of the second shard, and so on.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Node returns the server at index i of [Cluster.Nodes].
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// Shard returns the replicas of a shard, which counts from 1.
func (c *Cluster) Shard(number int) (replicas []*Node) {
	for _, n := range c.nodes {
		if n.Shard == number {
			replicas = append(replicas, n)
		}
	}
	return replicas
}

// Addrs returns the addresses of the native protocol of all servers.
func (c *Cluster) Addrs() (addrs []string) {
	for _, n := range c.nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// Stop ends all processes. Data stays.
func (c *Cluster) Stop() error {
	err := c.each((*Node).Kill)
	if c.zooKeeper != nil {
		c.zooKeeper.Kill()
	}
	return err
}
