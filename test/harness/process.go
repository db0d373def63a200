package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Process is the program running as a process of its own. Its log is read as it is written.
type Process struct {
	T   testing.TB // the test that started the process
	Cmd *exec.Cmd

	reader  sync.WaitGroup // reads the log, and watches the memory
	peak    atomic.Int64   // KiB; 0 unless watched
	mu      sync.Mutex
	changed *sync.Cond       // lines or ended have changed
	lines   []map[string]any // of the log
	ended   bool             // the log has ended
}

// Run starts the program with the given arguments, and kills it when the test ends.
func Run(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return RunExecutable(tb, Binary(tb), args...)
}

// RunAllInOne starts the preset all-in-one on free ports with the given data directory and
// additional settings, and waits until it is ready.
func RunAllInOne(tb testing.TB, dataDir string, settings ...string) *Process {
	tb.Helper()
	p := Run(tb, PresetArgs("all-in-one", dataDir, SetArgs(settings...)...)...)
	p.AwaitReady()
	return p
}

// RunYAML starts the program with a configuration file of the given content.
func RunYAML(tb testing.TB, yaml string) *Process {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		tb.Fatal(err)
	}
	return Run(tb, "--config", file)
}

// RunExecutable is like [Run] for a program that a test has built. GOGC, which make sets for tests,
// is not in its environment, because tests measure its memory.
func RunExecutable(tb testing.TB, path string, args ...string) *Process {
	tb.Helper()
	p := &Process{T: tb, Cmd: exec.Command(path, args...)}
	p.Cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") })
	p.changed = sync.NewCond(&p.mu)
	stderr, err := p.Cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p.reader.Go(func() { p.read(stderr) })
	tb.Cleanup(func() {
		if p.Cmd.ProcessState == nil {
			p.Kill()
		}
	})
	return p
}

// Command runs a command of the program, for example "validate", as a process of its own, and
// returns its exit code and output. In contrast to package inprocess, the test does not link the
// program.
func Command(tb testing.TB, args ...string) (code int, stdout, stderr string) {
	tb.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), Binary(tb), args...)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); cmd.ProcessState == nil {
		tb.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}

func (p *Process) read(r io.Reader) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := map[string]any{}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			p.T.Errorf("log line is not JSON: %s", s.Text())
		}
		p.mu.Lock()
		p.lines = append(p.lines, line)
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.ended = true
	p.changed.Broadcast()
	p.mu.Unlock()
}

// Await waits for a log line that has all the given fields, written as name, value, name, value,
// and returns the first one. It fails the test if the process ends without such a line.
func (p *Process) Await(fields ...string) map[string]any {
	p.T.Helper()
	matches := func(line map[string]any) bool {
		for i := 0; i+1 < len(fields); i += 2 {
			if line[fields[i]] != fields[i+1] {
				return false
			}
		}
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for seen := 0; ; {
		for ; seen < len(p.lines); seen++ {
			if matches(p.lines[seen]) {
				return p.lines[seen]
			}
		}
		if p.ended {
			p.T.Fatalf("the process ended without a log line with %q; its log is %v", fields, p.lines)
		}
		p.changed.Wait()
	}
}

// AwaitReady waits until the process is ready to receive spans.
func (p *Process) AwaitReady() {
	p.T.Helper()
	p.Await("msg", "Health Check state change", "status", "ready")
}

// Address waits until a component has opened a listener, and returns the listener's address.
func (p *Process) Address(component, listener string) string {
	p.T.Helper()
	return p.Await("msg", "listening", "component", component, "listener", listener)["address"].(string)
}

// LatestAddress returns the address of a listener that a component has opened several times: a
// reload also replaces the components that refer to a replaced store.
func (p *Process) LatestAddress(component, listener string) (address string) {
	for _, line := range p.LogLines() {
		if line["msg"] == "listening" && line["component"] == component && line["listener"] == listener {
			address = line["address"].(string)
		}
	}
	return address
}

// OTLPGRPC returns the address of the OTLP receiver for gRPC.
func (p *Process) OTLPGRPC() string { p.T.Helper(); return p.Address("otlp", "protocols.grpc") }

// OTLPHTTP returns the address of the OTLP receiver for HTTP.
func (p *Process) OTLPHTTP() string { p.T.Helper(); return p.Address("otlp", "protocols.http") }

// QueryURL returns the URL of the query API.
func (p *Process) QueryURL() string { p.T.Helper(); return "http://" + p.Address("query", "http") }

// AdminURL returns the URL of the admin extension.
func (p *Process) AdminURL() string { p.T.Helper(); return "http://" + p.Address("admin", "http") }

// LogLines returns the log lines so far.
func (p *Process) LogLines() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) {
	p.T.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.T.Errorf("sending %v: %v", s, err)
	}
}

// Wait waits until the process has ended, and returns its exit code.
func (p *Process) Wait() int {
	p.reader.Wait()
	p.Cmd.Wait() //nolint:errcheck // the caller checks the exit code
	return p.Cmd.ProcessState.ExitCode()
}

// Terminate sends SIGTERM, waits until the process has ended, and returns its exit code.
func (p *Process) Terminate() int {
	p.T.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() {
	p.Cmd.Process.Kill() //nolint:errcheck // the process may have ended
	p.Wait()
}

// Accounting waits for the final accounting, the last log line of a process that stops, and checks
// that it balances: no span is unaccounted for. It returns the line.
func (p *Process) Accounting() map[string]any {
	p.T.Helper()
	line := p.Await("msg", "final accounting of spans")
	if line["balanced"] != true {
		p.T.Errorf("the final accounting does not balance: %v", line)
	}
	return line
}

// ExporterAccounts returns the final accounts of the exporters: spans by outcome. Outcomes without
// spans are missing.
func (p *Process) ExporterAccounts() (accounts []map[string]any) {
	p.T.Helper()
	for _, c := range p.Accounting()["components"].([]any) {
		if m := c.(map[string]any); m["kind"] == "exporter" {
			accounts = append(accounts, m)
		}
	}
	return accounts
}
