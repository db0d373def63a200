package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

var (
	quoted    = regexp.MustCompile("`[^`]+`")
	flagName  = regexp.MustCompile(`^--[a-z-]+`)
	configKey = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)+$`)
	// topicKeys are settings of topics in Kafka.
	topicKeys = []string{"retention.ms", "retention.bytes", "min.insync.replicas", "max.message.bytes"}
)

// Every command and flag of the program, and every configuration key, that a runbook names exists.
func TestRunbooks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(harness.Root(t), "docs", "runbooks", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	pages, err := filepath.Glob(filepath.Join(harness.Root(t), "docs", "configuration", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no configuration reference: %v", err)
	}
	var keys strings.Builder
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		keys.Write(content)
	}
	canary, _, err := execute(t, nil, "help", "canary")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range quoted.FindAllString(string(content), -1) {
			words := strings.Fields(strings.Trim(text, "`"))
			switch key := strings.TrimPrefix(strings.TrimSuffix(words[0], ":"), "service."); {
			case words[0] == "tracing":
				commands++
				checkCommand(t, filepath.Base(file), words[1:])
			case strings.HasPrefix(words[0], "--") && !hasFlag(canary, words[0]):
				t.Errorf("%s: canary has no flag %s", filepath.Base(file), words[0])
			case slices.Contains(topicKeys, key):
			case configKey.MatchString(key) && key != "configuration.problem" && !strings.Contains(keys.String(), "| `"+key):
				t.Errorf("%s: no configuration key %s", filepath.Base(file), key)
			}
		}
	}
	if commands < 5 {
		t.Errorf("only %d commands found", commands)
	}
}

// checkCommand checks that the program has a command, which ends at the first flag or argument, and
// its flags.
func checkCommand(t *testing.T, file string, words []string) {
	t.Helper()
	for n := len(words); n > 0; n-- {
		help, _, err := execute(t, nil, append([]string{"help"}, words[:n]...)...)
		if err != nil {
			continue
		}
		for _, w := range words[n:] {
			if strings.HasPrefix(w, "--") && !hasFlag(help, w) {
				t.Errorf("%s: tracing %s has no flag %s", file, strings.Join(words[:n], " "), w)
			}
		}
		return
	}
	t.Errorf("%s: no command tracing %s", file, strings.Join(words, " "))
}

// hasFlag reports whether the help of a command lists a flag.
func hasFlag(help, flag string) bool {
	return strings.Contains(help, "\n  "+flagName.FindString(flag)+" ")
}
