package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// Node is one server of a cluster. Its methods may be called concurrently.
type Node struct {
	Shard   int // from 1
	Replica int // within the shard, from 1

	tcp, http, interserver int // ports
	dir, packages          string

	mu      sync.Mutex
	process *process.Process // nil unless the server runs
	started int64            // offset in the log where this start begins
}

// Name returns the name of the server, for example shard1-replica2.
func (n *Node) Name() string { return fmt.Sprintf("shard%d-replica%d", n.Shard, n.Replica) }

// Addr returns the address of the native protocol.
func (n *Node) Addr() string { return process.LocalAddr(n.tcp) }

// HTTPAddr returns the address of the HTTP protocol.
func (n *Node) HTTPAddr() string { return process.LocalAddr(n.http) }

// Running reports whether the server has been started and not killed.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil
}

// start starts the server and does not wait for it.
func (n *Node) start() (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var libraries []string
	for _, folder := range []string{"usr/lib", "lib"} {
		found, err := filepath.Glob(filepath.Join(n.packages, folder, "*-linux-gnu"))
		if err != nil {
			return err
		}
		libraries = append(libraries, found...)
	}
	cmd := exec.Command(filepath.Join(n.packages, "usr/sbin/clickhouse-server"), "--config-file="+filepath.Join(n.dir, "config.xml"))
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"), "TZ=UTC")
	n.started = 0
	if info, err := os.Stat(n.Log()); err == nil {
		n.started = info.Size()
	}
	n.process, err = process.Start(cmd, filepath.Join(n.dir, "output.log"))
	return err
}

// Kill ends the server with SIGKILL, if it runs, and waits until it has ended.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.Kill()
		n.process = nil
	}
	return nil
}

// Restart restarts the server after [Node.Kill]. It does not wait; see [Node.WaitReady].
func (n *Node) Restart() error {
	if n.Running() {
		return fmt.Errorf("%s runs already", n.Name())
	}
	return n.start()
}

// WaitReady waits until the server answers, accepts statements for the whole cluster, and its
// replicated tables accept writes, which takes a few seconds after a kill: the session that the
// server had with ZooKeeper must end first.
func (n *Node) WaitReady(ctx context.Context) error {
	if err := n.poll(ctx, n.takesStatements); err != nil {
		return err
	}
	return n.await(ctx, "SELECT count() FROM system.replicas WHERE is_readonly OR is_session_expired", "0")
}

// takesStatements returns an error until the server reads the queue of statements for the whole
// cluster. The server answers before; given such a statement then, it ends with a null pointer.
func (n *Node) takesStatements() error {
	log, err := os.ReadFile(n.Log())
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.started <= int64(len(log)) { // otherwise the log was rotated since
		log = log[n.started:]
	}
	n.mu.Unlock()
	if !bytes.Contains(log, []byte("DDLWorker: Processing tasks")) {
		return errors.New("server does not read the queue of statements")
	}
	return nil
}

// waitSynced waits until the server has fetched everything that the other replicas of its shard
// had.
func (n *Node) waitSynced(ctx context.Context) error {
	if err := n.WaitReady(ctx); err != nil {
		return err
	}
	tables, err := n.Query(ctx, "SELECT concat(database, '.', table) FROM system.replicas")
	if err != nil {
		return err
	}
	for _, table := range strings.Fields(tables) {
		if _, err := n.Query(ctx, "SYSTEM SYNC REPLICA "+table); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a query has a result.
func (n *Node) await(ctx context.Context, sql, want string) error {
	return n.poll(ctx, func() error {
		got, err := n.Query(ctx, sql)
		if err == nil && got != want {
			err = fmt.Errorf("result is %s instead of %s: %s", got, want, sql)
		}
		return err
	})
}

// poll calls ready until it returns nil, the server ends or ctx is done.
func (n *Node) poll(ctx context.Context, ready func() error) error {
	n.mu.Lock()
	p := n.process
	n.mu.Unlock()
	if p == nil {
		return errors.New("server does not run")
	}
	err := p.Poll(ctx, ready)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, n.logTail())
	}
	return err
}

// Query runs a query on this server, over HTTP and so beside the protocol that tests use, and
// returns its result as tab-separated text without the last line break.
func (n *Node) Query(ctx context.Context, sql string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.HTTPAddr()+"/", strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", n.Name(), strings.TrimSpace(string(body)))
	}
	return strings.TrimSuffix(string(body), "\n"), nil
}

// Log returns the file of the log.
func (n *Node) Log() string { return filepath.Join(n.dir, "server.log") }

// logTail returns the last events of the log of errors.
func (n *Node) logTail() string { return process.Tail(filepath.Join(n.dir, "error.log")) }
