package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// minShare is the share of the configurations with a traces pipeline that must run after migrate.
const minShare = 0.9

// input is a configuration of another tool.
type input struct {
	dir, file string // testdata/foreign/KIND, and the name in it
	kind      string // name of the folder
	text      string
	real      bool // whether its commands run in the real program
}

func (in input) name() string { return in.kind + "/" + in.file }
func (in input) golden() string {
	return filepath.Join(in.dir, strings.TrimSuffix(in.file, filepath.Ext(in.file)))
}

// corpus returns the configurations of other tools in testdata/foreign. Of each folder, one runs in
// the real program.
//
// Each folder is a format. A file NAME.yaml is a configuration file, NAME.flags the command line of
// a program of Jaeger 1 (with spaces and line breaks between arguments, and the name of the preset
// or a line `docker run` before them), and NAME.env its environment, a line for each variable. The
// golden files hold the exit code and the output of validate and migrate.
func corpus(t *testing.T) (all []input) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root(t), "testdata", "foreign", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if !slices.Contains([]string{".yaml", ".flags", ".env"}, filepath.Ext(f)) {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		dir, file := filepath.Split(f)
		kind := filepath.Base(dir)
		in := input{dir: filepath.Clean(dir), file: file, kind: kind, text: string(text), real: !seen[kind]}
		if seen[in.golden()] {
			t.Fatalf("%s: another input has the same golden files; rename it", in.name())
		}
		seen[kind], seen[in.golden()] = true, true
		all = append(all, in)
	}
	return all
}

// outcome is what a command printed.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d\n--- standard output\n%s--- standard error\n%s", o.code, o.stdout, o.stderr)
}

// run runs a command of the program, inside the test process or in the real program.
func (in input) run(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	if !in.real && len(env) == 0 {
		code, stdout, stderr := inprocess.RunCommand(t, args...)
		return outcome{code, in.short(stdout), in.short(stderr)}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), harness.Binary(t), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append([]string{"HOME=/", "PATH=/"}, env...), &stdout, &stderr
	err := cmd.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), in.short(stdout.String()), in.short(stderr.String())}
}

// short removes the folder from messages.
func (in input) short(s string) string {
	return strings.ReplaceAll(s, in.dir+string(filepath.Separator), "")
}

// validate runs the command validate.
func (in input) validate(t *testing.T) outcome {
	t.Helper()
	switch filepath.Ext(in.file) {
	case ".flags":
		env, args := commandLine(in.text)
		return in.run(t, env, append([]string{"validate"}, args...)...)
	case ".env":
		return in.run(t, variable.FindAllString(in.text, -1), "validate")
	}
	return in.run(t, nil, "validate", "--config", filepath.Join(in.dir, in.file))
}

var (
	variable = regexp.MustCompile(`(?m)^[A-Z_]+=.*`)
	image    = regexp.MustCompile(`^jaegertracing/(?:jaeger-)?([a-z-]+):`)
)

// commandLine returns the variables and arguments with which this program takes the place of the
// one that a text starts: the preset of its name and its flags. The text is that, or a line
// `docker run -e NAME=value IMAGE FLAGS`.
func commandLine(text string) (env, args []string) {
	words := strings.Fields(text)
	at := slices.IndexFunc(words, image.MatchString)
	if at < 0 {
		return nil, words
	}
	preset := image.FindStringSubmatch(words[at])[1]
	if preset == "remote-storage" {
		preset = "collector"
	}
	for _, word := range words[:at] {
		env = append(env, variable.FindAllString(word, -1)...)
	}
	return env, append([]string{preset}, words[at+1:]...)
}

// hasTraces reports whether the configuration has a traces pipeline. Programs of Jaeger 1 always
// have one.
func (in input) hasTraces() bool {
	return in.kind != "jaeger2" && in.kind != "otelcol" || regexp.MustCompile(`(?m)^\s*"?traces(/[\w.-]+)?"?:`).MatchString(in.text)
}

// The output of validate and migrate is as in the golden files, and what migrate prints can be
// started without editing.
func TestForeignConfigurations(t *testing.T) {
	inputs := corpus(t)
	var traces, started atomic.Int32
	t.Run("all", func(t *testing.T) {
		for _, in := range inputs {
			t.Run(in.name(), func(t *testing.T) {
				t.Parallel()
				golden.Check(t, in.golden()+".validate.golden", in.validate(t).String())
				migrated := in.run(t, nil, "migrate", filepath.Join(in.dir, in.file))
				golden.Check(t, in.golden()+".migrate.golden", migrated.String())
				if !in.hasTraces() {
					return
				}
				traces.Add(1)
				if migrated.code > 1 {
					t.Logf("not usable: %s", migrated.stderr)
					return
				}
				for document := range strings.SplitSeq(migrated.stdout, "\n---\n") {
					if err := start(t, document); err != nil {
						t.Logf("does not run: %v", err)
						return
					}
				}
				started.Add(1)
			})
		}
	})
	if traces.Load() == 0 {
		t.Skip("testdata/foreign has no configuration with a traces pipeline")
	}
	share := float64(started.Load()) / float64(traces.Load())
	t.Logf("%d of %d configurations with a traces pipeline run after migrate: %.1f %%", started.Load(), traces.Load(), 100*share)
	if share < minShare {
		t.Errorf("only %.1f %% of the configurations run after migrate, want %.0f %%", 100*share, 100*minShare)
	}
}
