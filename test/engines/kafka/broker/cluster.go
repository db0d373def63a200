package broker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// Options describe a cluster.
type Options struct {
	Dir     string // folder of data, configuration and logs; a temporary one if it is ""
	Brokers int    // 3 by default
	Heap    int    // maximum heap of each broker in MiB, 256 by default
	// Secure adds a listener with TLS and SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER)
	// with the credentials of [User]. Its certificate is cert.pem in Dir.
	Secure bool
	// Measured lets Java optimize the code of the brokers, which takes CPU time at first.
	Measured bool
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	options Options
	nodes   []*node
	given   []string // addresses of brokers that are not ours
}

// Given returns a cluster of brokers that run elsewhere. They cannot be stopped.
func Given(addrs ...string) *Cluster { return &Cluster{given: addrs} }

// newCluster starts a cluster and waits until every broker answers. The caller stops it.
func newCluster(ctx context.Context, o Options) (*Cluster, error) {
	folder, err := Folder()
	if err != nil {
		return nil, err
	}
	const portsOfNode = 3
	ports, err := process.FreePorts(portsOfNode * o.Brokers)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o}
	for i := range o.Brokers {
		p := ports[portsOfNode*i:]
		c.nodes = append(c.nodes, &node{id: i + 1, plain: p[0], controller: p[1], secure: p[2], heap: o.Heap,
			dir: filepath.Join(o.Dir, fmt.Sprintf("broker%d", i+1)), jars: filepath.Join(folder, "jars")})
	}
	if err := c.start(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	id, errs := newClusterID(), make([]error, len(c.nodes))
	if c.options.Secure {
		if err := writeKeystore(c.options.Dir); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		wg.Go(func() {
			errs[i] = n.configure(c.nodes, c.options)
			if errs[i] == nil {
				errs[i] = n.format(ctx, id, c.options)
			}
			if errs[i] == nil {
				errs[i] = n.start(c.options)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range c.nodes {
		if err := c.WaitReady(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) stop() {
	for _, n := range c.nodes {
		n.kill()
	}
}

// Brokers returns the addresses of the brokers.
func (c *Cluster) Brokers() (addrs []string) {
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr())
	}
	return append(addrs, c.given...)
}

// SecureBrokers returns the addresses of the listeners with TLS and SASL, if the cluster has them.
func (c *Cluster) SecureBrokers() (addrs []string) {
	if c.options.Secure {
		for _, n := range c.nodes {
			addrs = append(addrs, n.secureAddr())
		}
	}
	return addrs
}

// Dir returns the folder of the cluster.
func (c *Cluster) Dir() string { return c.options.Dir }

// PIDs returns the process ids of the brokers that run.
func (c *Cluster) PIDs() (pids []int) {
	for _, n := range c.nodes {
		if p := n.running(); p != nil {
			pids = append(pids, p.PID())
		}
	}
	return pids
}

// Kill ends the broker at an index of [Cluster.Brokers] with SIGKILL and waits until it has ended.
func (c *Cluster) Kill(i int) { c.nodes[i].kill() }

// Restart restarts a broker after [Cluster.Kill], with the same addresses and data. It does not
// wait; see [Cluster.WaitReady].
func (c *Cluster) Restart(i int) error { return c.nodes[i].start(c.options) }

// WaitReady waits until the other brokers know that a broker runs, and no partition of a topic
// waits for it any more.
func (c *Cluster) WaitReady(ctx context.Context, i int) error {
	n := c.nodes[i]
	p := n.running()
	if p == nil {
		return fmt.Errorf("broker %d does not run", n.id)
	}
	client, err := Client(c.Brokers()...)
	if err != nil {
		return err
	}
	defer client.Close()
	return p.Poll(ctx, func() error {
		metadata, err := kadm.NewClient(client).Metadata(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(metadata.Brokers.NodeIDs(), int32(n.id)) {
			return fmt.Errorf("broker %d has not joined the cluster", n.id)
		}
		for _, topic := range metadata.Topics {
			for _, partition := range topic.Partitions {
				if slices.Contains(partition.Replicas, int32(n.id)) && !slices.Contains(partition.ISR, int32(n.id)) {
					return fmt.Errorf("broker %d is behind in partition %d of topic %s", n.id, partition.Partition, topic.Topic)
				}
			}
		}
		return nil
	})
}

// Leader returns the index of the broker that leads a partition.
func (c *Cluster) Leader(ctx context.Context, topic string, partition int32) (int, error) {
	client, err := Client(c.Brokers()...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return 0, err
	}
	p, ok := topics[topic].Partitions[partition]
	if !ok || p.Leader < 0 {
		return 0, fmt.Errorf("partition %d of topic %s has no leader: %w", partition, topic, errors.Join(topics[topic].Err, p.Err))
	}
	return int(p.Leader) - 1, nil
}

// Client returns a client of brokers. The caller closes it.
func Client(brokers ...string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(brokers...))
}
