package commands_test

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// TestDocumentedYAML loads every YAML block of the documentation: a block with pipelines as a
// complete configuration, or else merged over a preset. Other blocks must be marked with the
// reason.
func TestDocumentedYAML(t *testing.T) {
	validated, marked := 0, 0
	for _, blocks := range docBlocks(t) {
		for _, b := range blocks {
			if !b.isYAML() {
				continue
			}
			if reason, isMarked := b.comment("not validated"); isMarked {
				marked++
				if reason == "" {
					t.Errorf("%s:%d: no reason why the block is not validated", b.page, b.line)
				}
				continue
			}
			if err := loadBlock(b); err != nil {
				t.Errorf("%s:%d: %v\n%s", b.page, b.line, err, b.text)
			}
			validated++
		}
	}
	t.Logf("YAML blocks: %d validated, %d marked with the reason why not", validated, marked)
	if validated < 20 {
		t.Errorf("only %d blocks found", validated)
	}
}

func loadBlock(b *docBlock) error {
	preset, merged := b.comment("preset")
	if !merged && !isComplete(b.text) {
		preset = "all-in-one"
	}
	o := app.LoadOptions{
		Factories: tracing.Components(), Presets: tracing.Presets(), Preset: preset, Files: []string{"block.yaml"},
		ReadFile:  func(string) ([]byte, error) { return []byte(b.text), nil },
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	if preset == "" {
		o.Presets = nil
	}
	_, err := app.Load(o)
	return err
}

// isComplete reports whether a block is a configuration by itself.
func isComplete(yaml string) bool {
	return strings.Contains(yaml, "receivers:\n") && strings.Contains(yaml, "\nservice:") && strings.Contains(yaml, "pipelines:")
}
