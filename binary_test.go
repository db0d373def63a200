package tracing_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/internal/bench"
	"github.com/tracing-backend/tracing/internal/bench/load"
)

// binaryDir holds the program that TestMain's end removes; "" until a test needed it.
var binaryDir string

// binary builds the program once for all tests that need a process of its own.
var binary = sync.OnceValues(func() (path string, err error) {
	if binaryDir, err = os.MkdirTemp("", "tracing-test"); err != nil {
		return "", err
	}
	path = filepath.Join(binaryDir, "tracing")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/tracing").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w: %s", err, out)
	}
	return path, nil
})

// skipShort leaves out a long test of the program as a process of its own where tests are shortened, which is under the race detector: it does
// not see into other processes.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("tests are shortened: this one takes long and runs the program as a process of its own; make test runs it")
	}
}

// skipLong leaves out a long test where tests are shortened: what it goes through is raced by the tests of the packages themselves.
func skipLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("tests are shortened: this one takes long under the race detector; make test runs it")
	}
}

// process is a running program.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	mu      sync.Mutex
	lines   []map[string]any
	changed *sync.Cond
	ended   bool
	reader  sync.WaitGroup
}

func run(t testing.TB, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return runProgram(t, path, args...)
}

func runProgram(t testing.TB, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(path, args...)}
	p.changed = sync.NewCond(&p.mu)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.reader.Go(func() { p.read(stderr) })
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.wait()
		}
	})
	return p
}

func (p *process) read(r io.Reader) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := map[string]any{}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			p.t.Errorf("log line is not JSON: %s", s.Text())
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

// await returns the first log line, old or new, that has all the given fields.
func (p *process) await(fields ...string) map[string]any {
	p.t.Helper()
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
			p.t.Fatalf("the process ended without a log line with %v; it wrote %v", fields, p.lines)
		}
		p.changed.Wait()
	}
}

func (p *process) address(component, listener string) string {
	p.t.Helper()
	return p.await("msg", "listening", "component", component, "listener", listener)["address"].(string)
}

func (p *process) wait() int {
	p.reader.Wait()
	p.cmd.Wait() //nolint:errcheck // the exit code is what counts
	return p.cmd.ProcessState.ExitCode()
}

// A SIGTERM in the middle of the load: every acknowledged span was stored, nothing is unaccounted for, and both the last scrape and the
// last log line say so.
func TestStopUnderLoad(t *testing.T) {
	args := []string{"all-in-one", "--set", "extensions::admin::linger=2s", "--set", "service::data_dir=" + t.TempDir()}
	for _, s := range anyPort {
		args = append(args, "--set", s)
	}
	p := run(t, args...)
	target := p.address("otlp", "protocols.grpc")
	admin := "http://" + p.address("admin", "http")
	p.await("msg", "Health Check state change", "status", "ready")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	enough := make(chan struct{})
	var once sync.Once
	var acked int
	var mu sync.Mutex
	done := make(chan load.Result)
	go func() {
		r, _ := load.Run(ctx, load.Options{Target: target, Connections: 4, InFlight: 4, Acked: func(r bench.Request) {
			mu.Lock()
			defer mu.Unlock()
			if acked += r.Spans; acked > 20_000 {
				once.Do(func() { close(enough) })
			}
		}}, endless(bench.New(1, time.Now()).Requests(20_000, 512)))
		done <- r
	}()
	<-enough
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	accounting := p.await("msg", "final accounting of spans")
	m := metrics(t, admin) // admin is the last to stop
	cancel()
	result := <-done
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	if result.Failures[codes.Unavailable] == 0 {
		t.Errorf("no request was refused: the load had ended before the signal came: %+v", result)
	}
	checkAccounting(t, m)
	if accounting["balanced"] != true {
		t.Errorf("final log line: %v", accounting)
	}
	accepted := m[`tracing_pipeline_spans_total{component="otlp",kind="receiver",outcome="accepted",reason=""}`]
	stored := m[`tracing_pipeline_spans_total{component="disk",kind="exporter",outcome="sent",reason=""}`]
	if int(accepted) != result.Acked || stored != accepted {
		t.Errorf("clients hold acknowledgements for %d spans, the receiver accepted %v, %v were stored", result.Acked, accepted, stored)
	}
	logged := accounting["components"].([]any)
	if !slices.ContainsFunc(logged, func(c any) bool {
		m := c.(map[string]any)
		return m["component"] == "otlp" && m["accepted"] == accepted
	}) {
		t.Errorf("the log says %v, /metrics %v", logged, accepted)
	}
	t.Logf("%d spans acknowledged, %d refused", result.Acked, result.Refused)
}

// endless repeats requests without end.
func endless(requests iter.Seq[bench.Request]) iter.Seq[bench.Request] {
	all := slices.Collect(requests)
	return func(yield func(bench.Request) bool) {
		for i := 0; yield(all[i%len(all)]); i++ {
		}
	}
}

func TestVersionAndBadFlag(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "tracing ") {
		t.Errorf("%v %s", err, out)
	}
	out, err = exec.Command(path, "--no-such-flag").CombinedOutput()
	if e := (*exec.ExitError)(nil); err == nil || !strings.Contains(string(out), "no-such-flag") || !strings.Contains(string(out), "usage: tracing") {
		t.Errorf("%v %v %s", err, e, out)
	}
}
