// Command demo starts a whole installation on one machine: a ClickHouse cluster of four servers
// (two shards of two replicas, with ZooKeeper), two collectors that store spans in it, and two
// query services with the web UI. It sends traffic to both collectors, prints all addresses, and
// kills and starts servers on demand.
//
// The servers are version 18.16, see package cluster.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
)

// startTimeout is the maximum time until everything that is installed runs.
const startTimeout = 2 * time.Minute

func main() {
	var o options
	flag.StringVar(&o.program, "program", "", "path of the program built from test/engines/clickhouse/legacy/tracing")
	flag.StringVar(&o.dir, "dir", "", "folder for data and logs; by default a temporary folder that is removed at the end")
	flag.IntVar(&o.spans, "spans", 200, "spans per second that are sent; 0 sends none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	program, dir string
	spans        int
}

func run(ctx context.Context, o options) (err error) {
	if o.program == "" {
		return errors.New("flag -program is missing; start the demonstration with make clickhouse-cluster")
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "tracing-clickhouse"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if err := cluster.Install(ctx, os.Stdout); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	fmt.Println("starting ZooKeeper and four ClickHouse servers")
	c, err := cluster.New(starting, cluster.Options{Dir: o.dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Println("starting two collectors and two query services")
	p, err := startPrograms(starting, o, c.Addrs())
	defer p.stop()
	if err != nil {
		return err
	}
	cancel()
	printAddresses(o, c, p)
	sent := sendTraffic(ctx, o.spans, p.otlp)
	obey(ctx, c)
	return sent()
}

// printAddresses prints where everything is.
func printAddresses(o options, c *cluster.Cluster, p *programs) {
	fmt.Println()
	for i, url := range p.query {
		fmt.Printf("web UI, query service %d:          %s\n", i+1, url)
	}
	for i, addr := range p.otlp {
		fmt.Printf("OTLP over gRPC, collector %d:      %s\n", i+1, addr)
	}
	for _, n := range c.Nodes() {
		fmt.Printf("ClickHouse %s:        native %s, http://%s\n", n.Name(), n.Addr(), n.HTTPAddr())
	}
	fmt.Printf("data and logs:                    %s\n", o.dir)
	fmt.Printf("traffic:                          %d spans/s\n\n", o.spans)
	fmt.Println("commands: kill NAME, start NAME (of a server, for example shard1-replica2), status, quit")
}

// obey runs the commands from the standard input until one ends the demonstration, or ctx is done.
func obey(ctx context.Context, c *cluster.Cluster) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case line, more := <-lines:
			if !more { // no terminal: run until a signal
				lines = nil
				continue
			}
			verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if verb == "quit" {
				return
			}
			if err := command(ctx, c, verb, name); err != nil {
				fmt.Println(err)
			}
		}
	}
}

// command runs one command.
func command(ctx context.Context, c *cluster.Cluster, verb, name string) error {
	if verb == "status" {
		for _, n := range c.Nodes() {
			fmt.Printf("%s: %s\n", n.Name(), status(ctx, n))
		}
		return nil
	}
	for _, n := range c.Nodes() {
		if n.Name() != name {
			continue
		}
		switch verb {
		case "kill":
			return n.Kill()
		case "start":
			return n.Restart()
		}
	}
	if verb == "kill" || verb == "start" {
		return fmt.Errorf("unknown server %q; status lists the servers", name)
	}
	return fmt.Errorf("unknown command %q; commands are kill NAME, start NAME, status, quit", verb)
}

// status describes a server.
func status(ctx context.Context, n *cluster.Node) string {
	if !n.Running() {
		return "killed"
	}
	spans, err := n.Query(ctx, "SELECT count() FROM tracing.spans_local")
	if err != nil {
		return err.Error()
	}
	return spans + " spans"
}
