// Package process runs servers as processes of their own: storage engines for tests, and the
// programs of demonstrations.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// pollInterval is the interval at which Poll calls ready.
const pollInterval = 50 * time.Millisecond

// Process is a server that runs. It ends with the process that started it. Its methods may be
// called concurrently.
type Process struct {
	cmd   *exec.Cmd
	log   string        // file of the standard output and error
	ended chan struct{} // closed when the process has ended
}

// Start starts a command. What it writes to its standard output and error is appended to a file.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = file, file, endsWithParent()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		cmd.Wait() //nolint:errcheck // how a killed process ended does not matter
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL, if the process runs, and waits until it has ended.
func (p *Process) Kill() {
	p.cmd.Process.Kill() //nolint:errcheck // the process may have ended
	<-p.ended
}

// Terminate sends SIGTERM, if the process runs, and waits until it has ended.
func (p *Process) Terminate() {
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // the process may have ended
	<-p.ended
}

// Poll calls ready until it returns nil, the process ends or ctx is done. An error has the last
// lines of the log.
func (p *Process) Poll(ctx context.Context, ready func() error) error {
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("process has ended: %w\n%s", err, Tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%w\n%s", errors.Join(ctx.Err(), err), Tail(p.log))
		case <-time.After(pollInterval):
		}
	}
}

// Tail returns the last lines of a log without stack traces.
func Tail(file string) string {
	const lines = 6
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	var events []string
	for line := range strings.Lines(string(b)) {
		if !stackLine.MatchString(line) {
			events = append(events, line)
		}
	}
	return strings.Join(events[max(0, len(events)-lines):], "")
}

// stackLine matches a line of a stack trace of ClickHouse, "12. /path...", or of a Java program.
var stackLine = regexp.MustCompile(`^(\d+\. |\tat |\s*$)`)
