package commands_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// shellTools are the programs that the documented commands need.
var shellTools = []string{"bash", "curl", "ip", "jq", "openssl", "unshare"}

// shellPrelude defines what comments in the documentation use. All processes of a page end with its
// shell, because they are in a namespace of process ids of their own.
const shellPrelude = `set -euo pipefail
ip link set lo up
# ready waits until the process with this admin port is ready.
ready() {
	for _ in $(seq 1200); do
		curl -sf "localhost:${1:-14269}/readyz" >/dev/null && return
		sleep 0.05
	done
	echo "the process with the admin port ${1:-14269} is not ready" >&2
	return 1
}
`

// TestDocumentedCommands executes every shell block of the documentation that is not marked with
// the reason why not. The blocks of a page run in one shell, in an empty folder and in a network of
// their own, in which the default ports are free.
func TestDocumentedCommands(t *testing.T) {
	pages := docBlocks(t)
	executed, marked := 0, 0
	scripts := map[string]string{}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		script, run, not := pageScript(t, pages[page])
		executed += run
		marked += not
		if run > 0 {
			scripts[page] = script
		}
	}
	t.Logf("shell blocks: %d executed on %d pages, %d marked with the reason why not", executed, len(scripts), marked)
	harness.SkipIfShort(t)
	requireShell(t)
	for _, page := range slices.Sorted(maps.Keys(scripts)) {
		t.Run(page, func(t *testing.T) { runScript(t, scripts[page]) })
	}
}

// requireShell skips the test if a tool is missing, or fails it in CI.
func requireShell(t *testing.T) {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("CI") == "true" {
		skip = t.Fatalf
	}
	for _, tool := range shellTools {
		if _, err := exec.LookPath(tool); err != nil {
			skip("%s is not installed; the documented commands need it", tool)
		}
	}
	if out, err := isolated(t.Context(), "true").CombinedOutput(); err != nil {
		skip("no network of its own for the documented commands: %v: %s", err, out)
	}
}

// isolated returns a command in a network and a namespace of process ids of its own.
func isolated(ctx context.Context, args ...string) *exec.Cmd {
	options := []string{"--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--"}
	return exec.CommandContext(ctx, "unshare", append(options, args...)...)
}

// pageScript returns the script of a page, and how many of its blocks it executes and leaves out.
func pageScript(t *testing.T, blocks []*docBlock) (script string, executed, marked int) {
	t.Helper()
	var s strings.Builder
	s.WriteString(shellPrelude)
	for _, b := range blocks {
		for _, c := range b.comments {
			switch c.key {
			case "file":
				fmt.Fprintf(&s, "cat >%s <<'END_OF_BLOCK'\n%sEND_OF_BLOCK\n", c.value, b.text)
			case "setup":
				s.WriteString(c.value + "\n")
			}
		}
		if !b.isShell() {
			continue
		}
		if reason, isMarked := b.comment("not run"); isMarked {
			marked++
			if reason == "" {
				t.Errorf("%s:%d: no reason why the block is not run", b.page, b.line)
			}
			continue
		}
		executed++
		commands := commandsOf(b.text)
		fmt.Fprintf(&s, "echo '--- %s:%d'\n", b.page, b.line)
		if port, background := b.comment("in the background"); background {
			commands = "{\n" + commands + "} &\nready " + port + "\n"
		}
		s.WriteString(commands)
	}
	return s.String(), executed, marked
}

// commandsOf returns the commands of a block: of a transcript, the lines after the prompt.
func commandsOf(block string) string {
	if !strings.HasPrefix(block, "$ ") {
		return block
	}
	var commands strings.Builder
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands.WriteString(command)
		}
	}
	return commands.String()
}

func runScript(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.Binary(t), filepath.Join(bin, "tracing")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := isolated(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	// A file instead of a pipe: processes in the background hold it, and end after the shell.
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	if err := output.Close(); err != nil {
		t.Error(err)
	}
	text, readErr := os.ReadFile(output.Name())
	if err != nil || readErr != nil {
		t.Fatalf("%v %v %v\n%s", err, ctx.Err(), readErr, text)
	}
}
