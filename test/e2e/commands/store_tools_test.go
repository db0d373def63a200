package commands_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// storeTool runs `tracing store`, checks its exit code, and returns its standard output.
func storeTool(t *testing.T, exit int, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(harness.Binary(t), append([]string{"store"}, args...)...).Output()
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

// deleteAll deletes all spans with `tracing delete`, and returns their number.
func deleteAll(t *testing.T, admin string) (spans int) {
	t.Helper()
	out, err := exec.Command(harness.Binary(t), "delete", "--yes", "--admin", admin, "--from", "2000-01-01T00:00:00Z").CombinedOutput()
	if err == nil {
		_, err = fmt.Sscanf(string(out), "%d spans deleted", &spans)
	}
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return spans
}

// TestStoreToolsBesideAServer checks that the tools see what a running server has acknowledged, in
// segments and in the log, and that tools that change files refuse to run.
func TestStoreToolsBesideAServer(t *testing.T) {
	const spans = 8000
	dir := t.TempDir()
	p := harness.RunAllInOne(t, dir, "exporters::disk::memtable::max_spans=3000", "exporters::disk::allow_delete=true")
	target := p.OTLPGRPC()
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
		if err := json.Unmarshal(storeTool(t, 0, "inspect", dir, "--json"), &in); err != nil {
			t.Fatal(err)
		}
		return in.Totals.Spans, in.Totals.SpansInLog
	}
	if segments, logs := seen(); segments+logs != r.Acked {
		t.Errorf("%d spans in segments, %d in logs; %d were acknowledged", segments, logs, r.Acked)
	}
	storeTool(t, 0, "verify", dir)
	storeTool(t, 1, "repair", dir)
	storeTool(t, 0, "repair", dir, "--dry-run")
	exported := func() (spans int) {
		out := storeTool(t, 0, "export", dir, "--format", "parquet", "--output", filepath.Join(t.TempDir(), "out"))
		if _, err := fmt.Sscanf(string(out), "exported %d spans", &spans); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		return spans
	}
	if n := exported(); n != r.Acked {
		t.Errorf("%d spans were exported, %d were acknowledged", n, r.Acked)
	}
	if n := deleteAll(t, p.Address("admin", "http")); n != r.Acked || exported() != 0 {
		t.Errorf("%d of %d spans were deleted, or deleted spans are exported", n, r.Acked)
	}
	r, err = load.Run(t.Context(), load.Options{Target: target, Connections: 2, InFlight: 2, Retry: time.Minute},
		bench.New(6, time.Now()).Requests(spans, 100))
	if err != nil || exported() != r.Acked {
		t.Errorf("%d spans were sent after the deletion, but not all of them are exported; %v", r.Acked, err)
	}

	if code := p.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if segments, logs := seen(); segments < r.Acked || logs != 0 || exported() != r.Acked {
		t.Errorf("after the server has stopped: %d spans in segments, %d in logs; %d were acknowledged", segments, logs, r.Acked)
	}
	storeTool(t, 0, "repair", dir)
}
