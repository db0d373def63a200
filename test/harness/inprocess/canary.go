package inprocess

import "testing"

// Canary runs `tracing canary` for 30 traces, and returns its exit code and output. otlp and query
// are URLs.
func Canary(tb testing.TB, otlp, query string, more ...string) (code int, stdout, stderr string) {
	tb.Helper()
	args := []string{"canary", "--once=30", "--interval=2ms", "--read-after=0", "--seed=1", "--otlp", otlp, "--query", query}
	return RunCommand(tb, append(args, more...)...)
}

// CanaryOK is the output of [Canary] when it has read every trace back unchanged.
const CanaryOK = "30 traces written, 0 not acknowledged\nreadings: 60 ok, 0 late, 0 missing, 0 wrong, 0 error\n"
