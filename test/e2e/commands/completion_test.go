package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// shells are scripts that load the completion of a shell, complete the line in the variable LINE,
// and print the candidates, one per line. Those of zsh replace functions that need an editor.
var shells = map[string]string{
	"bash": `source <(tracing completion bash)
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDBREAKS=$' \t\n=:'
_tracing_complete
printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh": `compdef() { : }
compset() { : }
_files() { [[ "$*" == -/ ]] && print -l -- *(/N) || print -l -- *(N) }
_describe() { print -l -- "${(@)${(@P)2}%%:*}" }
source <(tracing completion zsh)
words=("${(@s: :)LINE}") CURRENT=${#words} PREFIX=${words[-1]}
_tracing`,
	"fish": `tracing completion fish | source
complete -C "$LINE" | string replace -r '\t.*' '' | cat`,
}

func TestCompletion(t *testing.T) {
	bin := t.TempDir()
	if err := os.Symlink(harness.Binary(t), filepath.Join(bin, "tracing")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"tracing.yaml", "other.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	for shell, script := range shells {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				if shell == "bash" && os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			f := func(line, want, not string) {
				t.Helper()
				arg := map[string]string{"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
				cmd := exec.Command(shell, arg, "-c", script)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "LINE="+line, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
				out, err := cmd.CombinedOutput()
				got := strings.Fields(string(out))
				has := func(w string) bool { return slices.Contains(got, w) || slices.Contains(got, w+"/") }
				lacks := func(w string) bool { return !has(w) }
				if err != nil || slices.ContainsFunc(strings.Fields(want), lacks) || slices.ContainsFunc(strings.Fields(not), has) ||
					want == "" && len(got) > 0 {
					t.Errorf("%q: %v, got %q, want %q, not %q", line, err, got, want, not)
				}
			}
			prefixed := func(name string) string { // bash inserts only what follows =
				if _, value, _ := strings.Cut(name, "="); shell == "bash" {
					return value
				}
				return name
			}
			f("tracing ", "validate store trace all-in-one agent", "--config inspect")
			f("tracing val", "validate", "version")
			f("tracing store ", "inspect verify repair export", "validate")
			f("tracing help sampling e", "explain", "check")
			f("tracing validate c", "collector", "all-in-one canary")
			f("tracing components thr", "thriftudp", "otlp")
			f("tracing completion ", "bash zsh fish", "")
			f("tracing --log-l", "--log-level", "--log-encoding")
			f("tracing agent --reporter.grpc.ho", "--reporter.grpc.host-port", "")
			f("tracing --log-level ", "debug info", "validate")
			f("tracing --log-level=d", prefixed("--log-level=debug"), prefixed("--log-level=info"))
			f("tracing trace --max-s", "--max-spans", "--config")
			f("tracing validate --config tr", "tracing.yaml", "")
			f("tracing store inspect ", "store", "other.txt")
			f("tracing version ", "", "")
		})
	}
}
