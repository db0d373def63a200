// Package debug debugs components of the program in tests, as docs/debugging.md describes.
package debug

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// Programs are the paths of the programs in the image tracing-debug.
type Programs struct {
	Debugger string // dlv
	Tracing  string // the program without optimizations
}

// Build builds the programs into the folder dir, with the flags of make image-debug.
func Build(tb testing.TB, dir string) Programs {
	tb.Helper()
	p := Programs{filepath.Join(dir, "dlv"), filepath.Join(dir, "tracing")}
	root := harness.Root(tb)
	build(tb, root, p.Tracing, "-gcflags=github.com/tracing-backend/tracing/...=-N -l", "./cmd/tracing")
	build(tb, filepath.Join(root, "tools"), p.Debugger, "github.com/go-delve/delve/cmd/dlv")
	return p
}

// build builds a program in the folder of a module.
func build(tb testing.TB, dir, out string, args ...string) {
	tb.Helper()
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-o", out}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
}

// Stop is a breakpoint, and what the debugger shows there.
type Stop struct {
	Function   string
	Expression string // evaluated at the breakpoint
	Want       string // its value
}

// OTLP is where a request to the OTLP receiver over HTTP arrives.
var OTLP = Stop{"receivers/otlp.(*httpServer).receive", "r.Method", `"POST"`}

// FreeAddress returns an address of this machine on which a debugger can listen.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().String()
}

// sessionTimeout is the maximum duration of a session. A session that does not reach its breakpoint
// fails after this time.
const sessionTimeout = 2 * time.Minute

// Session connects a client to the debugger that listens on address, sets a breakpoint, calls send,
// which makes the component reach it, checks the value there, and lets the component continue. It
// logs the dialog.
func (p Programs) Session(tb testing.TB, address string, s Stop, send func()) {
	tb.Helper()
	commands := []string{"break " + s.Function, "continue", "print " + s.Expression, "stack 2", "clearall", "exit -c"}
	ctx, cancel := context.WithTimeout(tb.Context(), sessionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Debugger, "connect", address)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	var dialog harness.Buffer
	cmd.Stdout, cmd.Stderr = &dialog, &dialog
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	harness.Poll(tb, "breakpoint", func() bool { return strings.Contains(dialog.String(), "Breakpoint 1 set") })
	send()
	if err := cmd.Wait(); err != nil {
		tb.Errorf("debugger: %v", err)
	}
	tb.Logf("dlv connect %s\n%s", address, dialog.String())
	for _, text := range []string{"> [Breakpoint 1] ", s.Function, s.Want, "Breakpoint 1 cleared"} {
		if !strings.Contains(dialog.String(), text) {
			tb.Errorf("%s: no %q in\n%s", s.Function, text, dialog.String())
		}
	}
}
