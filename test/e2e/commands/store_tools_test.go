package commands_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// tool runs `tracing store` and returns its standard output.
func tool(t *testing.T, exit int, args ...string) []byte {
	t.Helper()
	path, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"store"}, args...)...).Output()
	code := 0
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		code = e.ExitCode()
		t.Logf("%v: %s", args, e.Stderr)
	}
	if code != exit {
		t.Fatalf("%v: exit code %d, want %d: %s", args, code, exit, out)
	}
	return out
}

// eraseAll deletes all spans with the command, and returns how many there were.
func eraseAll(t *testing.T, admin string) (spans int) {
	t.Helper()
	path, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "delete", "--yes", "--admin", admin, "--from", "2000-01-01T00:00:00Z").CombinedOutput()
	if err == nil {
		_, err = fmt.Sscanf(string(out), "%d spans deleted", &spans)
	}
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return spans
}

// Beside a running server the tools see what it has acknowledged, in segments and in the log; what would change files is refused.
func TestStoreToolsBesideAServer(t *testing.T) {
	const spans = 8000
	dir := t.TempDir()
	args := []string{"all-in-one", "--set", "service::data_dir=" + dir, "--set", "exporters::disk::memtable::max_spans=3000",
		"--set", "exporters::disk::allow_delete=true"}
	for _, s := range harness.FreePorts {
		args = append(args, "--set", s)
	}
	p := harness.Run(t, args...)
	target := p.Address("otlp", "protocols.grpc")
	p.Await("msg", "Health Check state change", "status", "ready")
	r, err := load.Run(t.Context(), load.Options{Target: target, Connections: 2, InFlight: 2, Retry: time.Minute},
		bench.New(5, time.Now()).Requests(spans, 100))
	if err != nil || r.Acked < spans {
		t.Fatalf("%d spans were acknowledged, %v", r.Acked, err)
	}

	seen := func() (segments, logs int) {
		var in struct {
			Totals struct {
				Spans      int
				SpansInLog int `json:"spans_in_log"`
			}
		}
		if err := json.Unmarshal(tool(t, 0, "inspect", dir, "--json"), &in); err != nil {
			t.Fatal(err)
		}
		return in.Totals.Spans, in.Totals.SpansInLog
	}
	if segments, logs := seen(); segments+logs != r.Acked {
		t.Errorf("%d spans in segments, %d in logs; %d were acknowledged", segments, logs, r.Acked)
	}
	tool(t, 0, "verify", dir)
	tool(t, 1, "repair", dir)
	tool(t, 0, "repair", dir, "--dry-run")
	exported := func() (spans int) {
		out := tool(t, 0, "export", dir, "--format", "parquet", "--out", filepath.Join(t.TempDir(), "out"))
		if _, err := fmt.Sscanf(string(out), "%d spans in", &spans); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		return spans
	}
	if n := exported(); n != r.Acked {
		t.Errorf("%d spans were exported, %d were acknowledged", n, r.Acked)
	}
	if n := eraseAll(t, p.Address("admin", "http")); n != r.Acked || exported() != 0 {
		t.Errorf("%d spans were deleted of %d, and some are exported all the same", n, r.Acked)
	}
	r, err = load.Run(t.Context(), load.Options{Target: target, Connections: 2, InFlight: 2, Retry: time.Minute},
		bench.New(6, time.Now()).Requests(spans, 100))
	if err != nil || exported() != r.Acked {
		t.Errorf("of %d spans that came after a deletion some are not exported; %v", r.Acked, err)
	}

	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if segments, logs := seen(); segments < r.Acked || logs != 0 || exported() != r.Acked {
		t.Errorf("after the end: %d spans in segments, %d in logs; %d were acknowledged", segments, logs, r.Acked)
	}
	tool(t, 0, "repair", dir)
}
