package systemd_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// manager is the notification socket of a service manager.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

// newManager opens a socket and puts it into the environment of processes that the test starts.
func newManager(t *testing.T) *manager {
	dir, err := os.MkdirTemp("", "notify") // the path of a socket has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // in the system's folder for temporary files
	path := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // a read fails if it is closed too early
	t.Setenv("NOTIFY_SOCKET", path)
	return &manager{t: t, conn: conn}
}

// next returns the next message.
func (m *manager) next() string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatalf("no message: %v", err)
	}
	return string(buf[:n])
}

// await waits for messages that match the patterns, in this order, with others between them.
func (m *manager) await(patterns ...string) {
	m.t.Helper()
	for _, p := range patterns {
		re := regexp.MustCompile(`(?s)\A(?:` + p + `)\z`)
		for message := m.next(); !re.MatchString(message); message = m.next() {
			if message == ended {
				m.t.Fatalf("the process ended without a message that matches %q", p)
			}
		}
	}
}

// ended is the message of a process that has ended.
const ended = "ENDED"

// follow runs the program and makes its end a message.
func (m *manager) follow(args ...string) *harness.Process {
	m.t.Helper()
	p := harness.Run(m.t, args...)
	sender, err := net.Dial("unixgram", m.conn.LocalAddr().String())
	if err != nil {
		m.t.Fatal(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		p.Wait()
		sender.Write([]byte(ended)) //nolint:errcheck // then the reader fails
		sender.Close()              //nolint:errcheck // nothing is buffered
	})
	m.t.Cleanup(func() {
		p.Cmd.Process.Kill() //nolint:errcheck // it has usually ended
		waiting.Wait()
	})
	return p
}

func writeConfig(t *testing.T, file, dir, more string) {
	t.Helper()
	text := `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {disk: {reserve: 0}}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: "` + dir + `"
  stop_timeout: 50s
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [disk]}}
` + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The program tells a service manager when it is ready, reloads and stops.
func TestNotify(t *testing.T) {
	m := newManager(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	writeConfig(t, file, dir, "")
	p := m.follow("--config", file)

	m.await("STATUS=ready", "READY=1")
	if code, _, stderr := harness.Command(t, "healthcheck", "--endpoint", strings.TrimPrefix(p.AdminURL(), "http://")); code != 0 {
		t.Errorf("a process that has said that it is ready is not: %s", stderr)
	}

	const reloading = "RELOADING=1\nMONOTONIC_USEC=[0-9]+\nSTATUS=reloading"
	writeConfig(t, file, dir, "processors: {batch: }")
	p.Signal(syscall.SIGHUP)
	m.await(reloading, "STATUS=ready", "READY=1")

	writeConfig(t, file, dir, "unknown: 1")
	p.Signal(syscall.SIGHUP)
	m.await(reloading, "STATUS=configuration reload failed; the previous configuration stays: .*unknown.*", "READY=1")

	p.Signal(syscall.SIGTERM)
	m.await("STOPPING=1\nEXTEND_TIMEOUT_USEC=60000000\nSTATUS=stopping within 50s", ended)
}

// A process that starts but is not ready says why.
func TestNotifyNotReady(t *testing.T) {
	m := newManager(t)
	p := m.follow("query", "--set", "exporters::grpc::endpoint=127.0.0.1:1", "--set", "extensions::query::http::endpoint=localhost:0",
		"--set", "extensions::query::grpc::endpoint=localhost:0", "--set", "extensions::admin::endpoint=localhost:0")
	m.await("STATUS=not ready: .*127.0.0.1:1.*")
	p.Signal(syscall.SIGTERM)
	m.await("STOPPING=1.*", ended)
}

// A process that cannot start says why, and never that it is ready.
func TestNotifyFailedStart(t *testing.T) {
	m := newManager(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	writeConfig(t, file, dir, "")
	if err := os.WriteFile(filepath.Join(dir, "disk"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.follow("--config", file)
	m.await("STATUS=cannot start: starting exporter disk: .*")
	if message := m.next(); message != ended {
		t.Errorf("message %q of a process that cannot start", message)
	}
}

// A process sends signs of life while it runs.
func TestNotifyWatchdog(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "100000")
	p := m.follow(harness.PresetArgs("agent", t.TempDir())...)
	m.await("READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1")
	p.Signal(syscall.SIGTERM)
	m.await("STOPPING=1\n.*")
}

// The watchdog of another process is not this one's.
func TestNotifyForeignWatchdog(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "1000")
	t.Setenv("WATCHDOG_PID", "1")
	p := m.follow(harness.PresetArgs("agent", t.TempDir())...)
	m.await("READY=1")
	p.Signal(syscall.SIGTERM)
	if message := m.next(); !strings.HasPrefix(message, "STOPPING=1\n") {
		t.Errorf("message %q after the start, want STOPPING=1", message)
	}
}
