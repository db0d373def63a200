package broker

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// node is one broker.
type node struct {
	id                        int // from 1
	plain, controller, secure int // ports
	dir, jars                 string
	heap                      int // MiB

	mu      sync.Mutex
	process *process.Process // nil unless the broker runs
}

func (n *node) addr() string { return process.LocalAddr(n.plain) }

func (n *node) secureAddr() string { return net.JoinHostPort("localhost", strconv.Itoa(n.secure)) }

func (n *node) config() string { return filepath.Join(n.dir, "server.properties") }

func (n *node) log() string { return filepath.Join(n.dir, "output.log") }

// java returns the command that runs a class of Kafka. Code is compiled fast instead of well,
// unless the broker is to be measured.
func (n *node) java(ctx context.Context, measured bool, class string, args ...string) *exec.Cmd {
	options := []string{fmt.Sprintf("-Xmx%dm", n.heap), "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError",
		"-Dlog4j2.configurationFile=" + filepath.Join(n.dir, "log4j2.properties"), "-cp", filepath.Join(n.jars, "*")}
	if !measured {
		options = append([]string{"-XX:TieredStopAtLevel=1"}, options...)
	}
	cmd := exec.CommandContext(ctx, "java", append(append(options, class), args...)...)
	cmd.Dir = n.dir
	return cmd
}

// format writes the metadata of an empty broker.
func (n *node) format(ctx context.Context, clusterID string, o Options) error {
	args := []string{"format", "--cluster-id", clusterID, "--config", n.config()}
	if o.Secure {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, User, Password))
		}
	}
	if out, err := n.java(ctx, false, "kafka.tools.StorageTool", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("formatting the storage of broker %d: %w\n%s", n.id, err, out)
	}
	return nil
}

// start starts the broker and does not wait for it.
func (n *node) start(o Options) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return fmt.Errorf("broker %d runs already", n.id)
	}
	n.process, err = process.Start(n.java(context.Background(), o.Measured, "kafka.Kafka", n.config()), n.log())
	return err
}

// kill ends the broker with SIGKILL, if it runs, and waits until it has ended.
func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.Kill()
		n.process = nil
	}
}

// running returns the process, or nil if the broker does not run.
func (n *node) running() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}
