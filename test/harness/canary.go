package harness

import (
	"bytes"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// Canary runs `tracing canary` until it has read what it wrote, and returns its exit code and what it said.
func Canary(t *testing.T, otlp, query string, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	args := []string{"canary", "--once=30", "--interval=2ms", "--read-after=0", "--seed=1", "--otlp", otlp, "--query", query}
	args = append(args, more...)
	code = app.Run(t.Context(), args, &out, &log, tracing.Components(), tracing.Presets()...)
	return code, out.String(), log.String()
}

// CanaryAllRead is the output of [Canary] when every trace was read back unchanged.
const CanaryAllRead = "30 traces written, 0 not acknowledged\nreadings: 60 ok, 0 late, 0 missing, 0 wrong, 0 error\n"
