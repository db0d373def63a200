package config_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/commands/migrate"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// notReadable matches the errors about text that is not a configuration file at all.
var notReadable = regexp.MustCompile(`not valid YAML|second YAML document|duplicate key|keys must be|the file must have|too large`)

// Configurations with lines removed, repeated, moved and indented differently have a clear error,
// or become YAML that the program reads; what it then finds wrong has a comment.
func TestMutations(t *testing.T) {
	inputs := corpus(t)
	r := rand.New(rand.NewPCG(soak.Seed(t), 0))
	components := tracing.Components()
	for range soak.Rounds(t, 300, 100) {
		text := mutated(r, inputs)
		result, err := migrate.Migrate(migrate.Input{From: migrate.Auto, Source: []byte(text), Components: components})
		if err != nil || result.Documents > 1 { // each of several is a file of its own
			continue
		}
		_, err = app.Load(app.LoadOptions{Factories: components, Files: []string{"output"},
			ReadFile: func(string) ([]byte, error) { return result.YAML, nil }})
		switch {
		case err == nil:
		case notReadable.MatchString(err.Error()):
			t.Fatalf("%v\ninput\n%s\noutput\n%s", err, text, result.YAML)
		case result.Decisions == 0 && !strings.Contains(err.Error(), "environment variable"):
			t.Fatalf("nothing to decide, but %v\ninput\n%s\noutput\n%s", err, text, result.YAML)
		}
	}
}

// mutated returns one of the inputs after some changes of its lines.
func mutated(r *rand.Rand, inputs []input) string {
	lines := strings.SplitAfter(inputs[r.IntN(len(inputs))].text, "\n")
	for range 1 + r.IntN(4) {
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(6) {
		case 0:
			lines = slices.Delete(lines, i, min(i+1+r.IntN(3), len(lines)))
		case 1:
			lines = slices.Insert(lines, j, lines[i])
		case 2:
			lines[i] = "  " + lines[i]
		case 3:
			lines[i] = strings.TrimPrefix(lines[i], "  ")
		case 4:
			if key, _, ok := strings.Cut(lines[i], ":"); ok {
				lines[i] = key + ": " + []string{"", "1", "[a, b]", "{a: b}", "~", `"x # y"`, "# c"}[r.IntN(7)] + "\n"
			}
		case 5:
			lines[i], lines[j] = lines[j], lines[i]
		}
		if len(lines) == 0 {
			return ""
		}
	}
	return strings.Join(lines, "")
}
