package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// The session of a server that is killed ends after sessionTimeout. Until then the server cannot
// write again after a restart.
const (
	tickMillis           = 500
	sessionTimeoutMillis = 4_000 // at most 20 ticks
)

// jars are the libraries of ZooKeeper.
var jars = []string{"zookeeper", "zookeeper-jute", "metrics-core", "snappy-java", "slf4j-api", "slf4j-simple"}

// startZooKeeper starts ZooKeeper with its data in a folder.
func startZooKeeper(packages, dir string, port int) (*process.Process, error) {
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\ntickTime=%d\nadmin.enableServer=false\nmaxClientCnxns=0\n",
		filepath.Join(dir, "data"), port, tickMillis)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	var classpath []string
	for _, j := range jars {
		classpath = append(classpath, filepath.Join(packages, "usr/share/java", j+".jar"))
	}
	cmd := exec.Command("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", strings.Join(classpath, ":"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	return process.Start(cmd, filepath.Join(dir, "zookeeper.log"))
}

// answerTimeout is how long ZooKeeper may take for a response. It does not answer at all on some
// connections that it accepts while it starts.
const answerTimeout = 2 * time.Second

// awaitZooKeeper waits until ZooKeeper serves requests: it listens some time before.
func awaitZooKeeper(ctx context.Context, p *process.Process, port int) error {
	return p.Poll(ctx, func() error {
		deadline := time.Now().Add(answerTimeout)
		conn, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", process.LocalAddr(port))
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "srvr"); err != nil {
			return err
		}
		answer, err := io.ReadAll(conn)
		if err == nil && !bytes.Contains(answer, []byte("Mode: standalone")) {
			err = fmt.Errorf("zookeeper answers %q", answer)
		}
		return err
	})
}
