package harness

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// Terminate sends SIGTERM and waits until the process has ended.
func (p *Process) Terminate() {
	p.Cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // wait tells
	p.Wait()
}

// Process is a running program.
type Process struct {
	T       testing.TB
	Cmd     *exec.Cmd
	mu      sync.Mutex
	lines   []map[string]any
	changed *sync.Cond
	ended   bool
	reader  sync.WaitGroup
}

// Run starts the program with the given arguments. The process is killed when the test ends, if it still runs.
func Run(t testing.TB, args ...string) *Process {
	t.Helper()
	path, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	return RunProgram(t, path, args...)
}

// RunProgram is like [Run] for another program.
func RunProgram(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p := &Process{T: t, Cmd: exec.Command(path, args...)}
	p.changed = sync.NewCond(&p.mu)
	stderr, err := p.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.reader.Go(func() { p.read(stderr) })
	t.Cleanup(func() {
		if p.Cmd.ProcessState == nil {
			p.Cmd.Process.Kill()
			p.Wait()
		}
	})
	return p
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

// Await returns the first log line, old or new, that has all the given fields.
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
			p.T.Fatalf("the process ended without a log line with %v; it wrote %v", fields, p.lines)
		}
		p.changed.Wait()
	}
}

// Address waits until a listener of a component listens, and returns its address.
func (p *Process) Address(component, listener string) string {
	p.T.Helper()
	return p.Await("msg", "listening", "component", component, "listener", listener)["address"].(string)
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) error { return p.Cmd.Process.Signal(s) }

// LogLines returns the log lines so far.
func (p *Process) LogLines() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// Wait waits until the process has ended, and returns its exit code.
func (p *Process) Wait() int {
	p.reader.Wait()
	p.Cmd.Wait() //nolint:errcheck // the exit code is what counts
	return p.Cmd.ProcessState.ExitCode()
}

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() {
	p.Cmd.Process.Kill() //nolint:errcheck // wait tells
	p.Wait()
}

// LatestAddress is address where a component has listened several times: one that reads a store is exchanged with it.
func (p *Process) LatestAddress(component, listener string) (address string) {
	for _, line := range p.LogLines() {
		if line["msg"] == "listening" && line["component"] == component && line["listener"] == listener {
			address = line["address"].(string)
		}
	}
	return address
}
