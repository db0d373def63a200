package traces

import (
	"bytes"
	"context"
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the time of the clock in tests.
var now = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)

// command runs a command like the program does.
func command(ctx context.Context, t *testing.T, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return now }
	it := tool{env: env, getenv: func(string) string { return "" }, zone: time.UTC}
	setup := map[string]func(*flag.FlagSet) runner{"trace": it.trace, "search": it.search, "services": it.services}[name]
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run := setup(fs)
	var operands []string
	for ; len(args) > 0; args = args[1:] { // flags may be before and after operands
		if err := fs.Parse(args); err != nil {
			return "", "", err
		}
		if args = fs.Args(); len(args) == 0 {
			break
		}
		operands = append(operands, args[0])
	}
	var out, log bytes.Buffer
	err = run(ctx, commands.Invocation{Args: operands, Stdout: &out, Stderr: &log})
	return out.String(), log.String(), err
}

// checkGolden compares got with a file in testdata.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".golden"), got)
}

// invocation returns an invocation that writes everything to out.
func invocation(out io.Writer) commands.Invocation {
	return commands.Invocation{Args: []string{"service"}, Stdout: out, Stderr: out}
}
